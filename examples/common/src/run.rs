//! The course of a training: its epochs and steps, what is shown meanwhile, and what it leaves behind.

use crate::plot::{Curve, write_plot};
use crate::{Arguments, save_weights};
use anyhow::{Context, Result};
use burn::module::Module;
use burn::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Counts epochs and steps, shows them, and keeps the losses.
///
/// ```ignore
/// let mut run = Run::start("digits_convnet", &arguments, 12, &["loss"])?;
/// while run.epoch(train.len().div_ceil(batch_size))? {
///     for batch in loader.batches().take(run.steps_left()) {
///         // one step of training
///         run.step(&[loss])?;
///     }
///     run.end_epoch(&[("test accuracy", accuracy)])?;
/// }
/// run.finish(&model.valid(), digest(&model.valid()))
/// ```
pub struct Run {
    name: &'static str,
    out: PathBuf,
    epochs: usize,
    epoch: usize,
    steps: usize,
    limit: usize,
    bar: ProgressBar,
    curves: Vec<Curve>,
    /// This epoch's losses, by step and curve: reading one waits for the device, so they are read once an epoch.
    pending: Vec<Tensor<1>>,
    metrics: Vec<(String, f32)>,
    started: Instant,
    first_step: Option<Instant>,
}

impl Run {
    /// Begins a training of `epochs` epochs, where the command line does not say another number, with a curve for each
    /// of `losses`.
    ///
    /// # Errors
    ///
    /// When the folder for the results cannot be made.
    pub fn start(name: &'static str, arguments: &Arguments, epochs: usize, losses: &[&'static str]) -> Result<Self> {
        let out = arguments.out.clone().unwrap_or_else(|| Path::new("target/results").join(name));
        fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
        Ok(Self {
            name,
            out,
            epochs: arguments.epochs.unwrap_or(epochs),
            epoch: 0,
            steps: 0,
            limit: arguments.steps.unwrap_or(usize::MAX),
            bar: ProgressBar::hidden(),
            curves: losses.iter().map(|name| Curve { name, values: Vec::new() }).collect(),
            pending: Vec::new(),
            metrics: Vec::new(),
            started: Instant::now(),
            first_step: None,
        })
    }

    /// The folder for the results.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Begins the next epoch, of `steps` steps; `false` after the last.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn epoch(&mut self, steps: usize) -> Result<bool> {
        if self.epoch == self.epochs || self.steps_left() == 0 {
            return Ok(false);
        }
        let style = ProgressStyle::with_template("epoch {prefix} [{bar:30}] {pos}/{len} batches, {per_sec}")?;
        self.bar = ProgressBar::new(steps.min(self.steps_left()) as u64).with_style(style);
        self.bar.set_prefix(format!("{}/{}", self.epoch + 1, self.epochs));
        self.epoch += 1;
        Ok(true)
    }

    /// How many more steps `--steps` allows.
    pub fn steps_left(&self) -> usize {
        self.limit - self.steps
    }

    /// Ends a step with the losses `[1]` it had.
    ///
    /// # Errors
    ///
    /// With what the first step left on the device.
    pub fn step(&mut self, losses: &[Tensor<1>]) -> Result<()> {
        assert_eq!(losses.len(), self.curves.len(), "a loss for each curve");
        self.steps += 1;
        self.pending.extend(losses.iter().map(|loss| loss.clone().detach()));
        if self.first_step.is_none() {
            losses[0].device().sync()?;
            self.first_step = Some(Instant::now());
        }
        self.bar.inc(1);
        Ok(())
    }

    /// Ends an epoch, and prints the means of its losses and the given metrics.
    ///
    /// # Errors
    ///
    /// When the losses cannot be read.
    pub fn end_epoch(&mut self, metrics: &[(&str, f32)]) -> Result<()> {
        let losses = Tensor::cat(std::mem::take(&mut self.pending), 0).try_into_data()?.try_to_vec::<f32>()?;
        let mut line = format!("epoch {}/{}:", self.epoch, self.epochs);
        let count = self.curves.len();
        for (index, curve) in self.curves.iter_mut().enumerate() {
            let values = losses.iter().skip(index).step_by(count).copied();
            curve.values.extend(values.clone());
            let mean = values.sum::<f32>() / (losses.len() / count) as f32;
            line.push_str(&format!(" {} {mean:.4},", curve.name));
        }
        for (name, value) in metrics {
            line.push_str(&format!(" {name} {value:.4},"));
        }
        self.metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        self.bar.finish_and_clear();
        println!("{}", line.trim_end_matches(','));
        Ok(())
    }

    /// Ends the training: prints its speed, its last metrics and the digest, and writes `loss.svg` and `weights/`.
    ///
    /// # Errors
    ///
    /// When something cannot be written.
    pub fn finish<M: Module>(self, model: &M, digest: impl Display) -> Result<()> {
        for device in model.devices() {
            device.sync()?;
        }
        if let Some(first_step) = self.first_step {
            let compile = (first_step - self.started).as_secs_f64();
            let rate = (self.steps - 1) as f64 / first_step.elapsed().as_secs_f64();
            println!("first step after {compile:.2} s, then {rate:.2} steps/s");
        }
        for (name, value) in &self.metrics {
            println!("{name}: {value:.4}");
        }
        write_plot(&self.out.join("loss.svg"), self.name, &self.curves)?;
        save_weights(model, &self.out.join("weights"))?;
        println!("loss.svg and weights: {}", self.out.display());
        println!("digest: {digest}");
        Ok(())
    }
}
