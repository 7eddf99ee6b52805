//! The course of a training: its epochs and steps, what is shown meanwhile, and what it leaves behind.

use crate::picture::write_picture;
use crate::plot::{Curve, Measured, write_plot};
use crate::resume::{self, Settings};
use crate::{Arguments, Confusion, save_weights};
use anyhow::{Context, Result, ensure};
use burn::module::Module;
use burn::prelude::*;
use burn_deterministic::checkpoint::{self, Checkpoint, CheckpointWriter};
use burn_deterministic::data::{DataLoader, LoadError};
use burn_deterministic::environment;
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Steps from one look at the losses to the next, for the progress bar: a look waits for the device. They are looked at where
/// no bar is shown too, so that the operations of a training are the same everywhere.
const LOOK_EVERY: usize = 16;

/// Counts epochs and steps, shows them, keeps the losses, and knows when a checkpoint is due.
///
/// ```text
/// let mut run = Run::start("digits_convnet", &arguments, 12, &["loss"])?;
/// if let Some(mut checkpoint) = run.resume()? {
///     model = checkpoint.module("model", model)?;
///     optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
///     loader.resume_at(&checkpoint.value("loader")?)?;
///     checkpoint.resume()?; // last, for it restores the random state
/// }
/// while run.epoch(train.len().div_ceil(batch_size))? {
///     for batch in run.batches(&loader) {
///         // one step of training
///         run.step(&[loss])?;
///         run.checkpoint(|checkpoint| {
///             checkpoint
///                 .with_module("model", &model)?
///                 .with_optimizer("optimizer", &optimizer, &model)?
///                 .with_value("loader", &loader.position())
///         })?;
///     }
///     run.end_epoch(&[("test accuracy", accuracy)])?;
/// }
/// run.finish(&model.valid(), digest(&model))
/// ```
pub struct Run {
    name: &'static str,
    out: PathBuf,
    settings: Settings,
    folder: Option<PathBuf>,
    writer: Option<CheckpointWriter>,
    checkpoint_every: Option<usize>,
    resume: bool,
    epochs: usize,
    /// The present epoch, from 1; 0 before the first.
    epoch: usize,
    /// The steps of the present epoch, and how many of them have been taken.
    epoch_steps: usize,
    epoch_taken: usize,
    /// Steps taken in all, and those that another process took.
    steps: usize,
    resumed: usize,
    limit: usize,
    bar: ProgressBar,
    curves: Vec<Curve>,
    /// Losses by step and curve that have not been read yet, for reading one waits for the device.
    pending: Vec<Tensor<1>>,
    /// The metrics at the end of each epoch.
    measured: Vec<Measured>,
    /// The metrics that are printed at the end.
    metrics: Vec<(String, f32)>,
    /// What is in the folder for the results.
    written: Vec<String>,
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
            settings: resume::settings(name, arguments),
            folder: arguments.checkpoint.clone(),
            writer: None,
            checkpoint_every: arguments.checkpoint_every,
            resume: arguments.resume,
            epochs: arguments.epochs.unwrap_or(epochs),
            epoch: 0,
            epoch_steps: 0,
            epoch_taken: 0,
            steps: 0,
            resumed: 0,
            limit: arguments.steps.unwrap_or(usize::MAX),
            bar: ProgressBar::hidden(),
            curves: losses.iter().map(|name| Curve { name, values: Vec::new() }).collect(),
            pending: Vec::new(),
            measured: Vec::new(),
            metrics: Vec::new(),
            written: Vec::new(),
            started: Instant::now(),
            first_step: None,
        })
    }

    /// Names something else that decides the weights: checkpoints of a training with another are refused.
    pub fn depending_on(mut self, what: &str, value: impl Display) -> Self {
        self.settings.insert(what.to_owned(), value.to_string());
        self
    }

    /// Writes images `[n, 1, height, width]`, black at 0 and white at 1, in rows of `columns`, to the folder for the results.
    ///
    /// # Errors
    ///
    /// When the images cannot be read or the file cannot be written.
    pub fn picture(&mut self, file: &str, images: Tensor<4>, columns: usize) -> Result<()> {
        write_picture(&self.out.join(file), images, columns)?;
        self.written.push(file.to_owned());
        Ok(())
    }

    /// Writes `confusion.svg`: which classes the model takes for which.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn confusion(&mut self, confusion: &Confusion) -> Result<()> {
        confusion.write(&self.out.join("confusion.svg"))?;
        self.written.push("confusion.svg".to_owned());
        Ok(())
    }

    /// Epochs that the training has at most.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// For a loop that keeps checkpoints itself: their folder, which is that of `--checkpoint`, or an empty one among the
    /// results.
    ///
    /// # Errors
    ///
    /// When the folder cannot be opened, another training writes there, or it has checkpoints of another training, or
    /// without `--resume` of any.
    pub fn folder(&mut self) -> Result<PathBuf> {
        if let Some(folder) = &self.folder {
            self.writer = Some(resume::open(folder, &self.settings, self.resume)?);
            return Ok(folder.clone());
        }
        let folder = self.out.join("checkpoints");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        Ok(folder)
    }

    /// For a loop that keeps the losses itself: those of each curve, the metrics after each epoch of `steps` steps, and the
    /// last metrics.
    pub fn report(&mut self, losses: Vec<Vec<f32>>, steps: usize, epochs: &[Vec<(&str, f32)>], last: &[(&str, f32)]) {
        for (curve, values) in self.curves.iter_mut().zip(losses) {
            curve.values = values;
        }
        self.epoch_steps = steps;
        self.measured = (1..).zip(epochs).map(|(epoch, metrics)| (epoch * steps, owned(metrics))).collect();
        self.metrics = owned(last);
    }

    /// Opens the folder of `--checkpoint`. With `--resume` and a checkpoint in it, this is it; the example restores what it
    /// put there, the positions of its loaders too, and ends the restoring.
    ///
    /// # Errors
    ///
    /// When the folder cannot be opened, another training writes there, or it has checkpoints of another training or
    /// without `--resume` of any; when the last one is damaged, or other versions wrote it; and when it has come further
    /// than the command line allows.
    pub fn resume(&mut self) -> Result<Option<Checkpoint>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let mut writer = resume::open(folder, &self.settings, self.resume)?;
        let latest = resume::latest(&mut writer)?;
        self.writer = Some(writer);
        let Some(mut checkpoint) = latest else {
            if self.resume {
                println!("no checkpoint in {} yet: starting at the beginning", folder.display());
            }
            return Ok(None);
        };
        let (epoch, epoch_taken): (usize, usize) = checkpoint.value("epoch and steps in it")?;
        let losses: Vec<Vec<f32>> = checkpoint.value("losses")?;
        self.measured = checkpoint.value("metrics")?;
        let steps = losses[0].len();
        ensure!(
            steps <= self.limit && epoch <= self.epochs,
            "{checkpoint} is in epoch {epoch}, after {steps} steps: more than `--epochs` or `--steps` allows; raise it, or \
             give another folder"
        );
        println!("going on after step {steps}, in epoch {epoch}");
        // `epoch` begins it once more.
        (self.epoch, self.epoch_taken) = (epoch - 1, epoch_taken);
        (self.steps, self.resumed) = (steps, steps);
        for (curve, values) in self.curves.iter_mut().zip(losses) {
            curve.values = values;
        }
        Ok(Some(checkpoint))
    }

    /// Begins the next epoch, of `steps` steps, or goes on with the one that a checkpoint was taken in; `false` after the
    /// last.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn epoch(&mut self, steps: usize) -> Result<bool> {
        // At the end of an epoch, a checkpoint is taken before the epoch is ended.
        let resumed = self.epoch_steps == 0 && self.epoch_taken > 0;
        if !resumed {
            if self.epoch == self.epochs || self.steps == self.limit {
                return Ok(false);
            }
            self.epoch_taken = 0;
        }
        self.epoch += 1;
        self.epoch_steps = steps;
        let style =
            ProgressStyle::with_template("epoch {prefix} [{bar:30}] {pos}/{len} batches, {per_sec}, {eta} left{msg}")?;
        let length = self.epoch_taken + self.steps_left();
        self.bar = ProgressBar::new(length as u64).with_style(style).with_position(self.epoch_taken as u64);
        self.bar.set_prefix(format!("{}/{}", self.epoch, self.epochs));
        Ok(true)
    }

    /// How many more steps the epoch has, and `--steps` allows.
    fn steps_left(&self) -> usize {
        (self.limit - self.steps).min(self.epoch_steps - self.epoch_taken)
    }

    /// The batches of these steps.
    pub fn batches<I, O>(&self, loader: &DataLoader<I, O>) -> impl Iterator<Item = Result<O, LoadError>> + use<I, O>
    where
        I: Send + 'static,
        O: Send + 'static,
    {
        // A pass for no steps would take the loader to the next epoch.
        let left = self.steps_left();
        (left > 0).then(|| loader.batches().take(left)).into_iter().flatten()
    }

    /// Ends a step with the losses `[1]` it had.
    ///
    /// # Errors
    ///
    /// With what the first step left on the device.
    pub fn step(&mut self, losses: &[Tensor<1>]) -> Result<()> {
        assert_eq!(losses.len(), self.curves.len(), "a loss for each curve");
        self.steps += 1;
        self.epoch_taken += 1;
        self.pending.extend(losses.iter().map(|loss| loss.clone().detach()));
        if self.first_step.is_none() {
            losses[0].device().sync()?;
            self.first_step = Some(Instant::now());
        }
        self.bar.inc(1);
        if self.epoch_taken.is_multiple_of(LOOK_EVERY) {
            self.read_losses()?;
            let means = self.means().map(|(name, mean)| format!(", {name} {mean:.4}"));
            self.bar.set_message(means.collect::<String>());
        }
        Ok(())
    }

    /// Saves a checkpoint, when one is due after this step: `with` puts into it what the example trains.
    ///
    /// # Errors
    ///
    /// When something of it cannot be read, or it cannot be written.
    pub fn checkpoint(&mut self, with: impl FnOnce(Checkpoint) -> Result<Checkpoint, checkpoint::Error>) -> Result<()> {
        if self.writer.is_none() {
            return Ok(());
        }
        let ends_epoch = self.epoch_taken == self.epoch_steps;
        let ends = self.steps == self.limit || ends_epoch && self.epoch == self.epochs;
        let due = self.checkpoint_every.map_or(ends_epoch, |every| self.steps.is_multiple_of(every));
        if !due && !ends {
            return Ok(());
        }
        self.read_losses()?;
        let losses: Vec<&[f32]> = self.curves.iter().map(|curve| &curve.values[..]).collect();
        let checkpoint =
            Checkpoint::new(self.steps as u64)?.with_value("epoch and steps in it", &(self.epoch, self.epoch_taken))?;
        let checkpoint = with(checkpoint.with_value("losses", &losses)?.with_value("metrics", &self.measured)?)?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.save(&checkpoint).with_context(|| {
            format!(
                "the checkpoint of step {} was not saved; earlier ones are whole: make room for it, then go on with \
                 `--resume`",
                self.steps
            )
        })?;
        Ok(())
    }

    /// Reads the losses of the steps since it was last called.
    fn read_losses(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let losses = Tensor::cat(std::mem::take(&mut self.pending), 0).try_into_data()?.try_to_vec::<f32>()?;
        let count = self.curves.len();
        for (index, curve) in self.curves.iter_mut().enumerate() {
            curve.values.extend(losses.iter().skip(index).step_by(count));
        }
        Ok(())
    }

    /// The mean of each loss over the steps of the epoch that have been read.
    fn means(&self) -> impl Iterator<Item = (&'static str, f32)> {
        self.curves.iter().map(move |Curve { name, values }| {
            let mean = values[self.steps - self.epoch_taken..].iter().sum::<f32>() / self.epoch_taken as f32;
            (*name, mean)
        })
    }

    /// Ends an epoch, and prints the means of its losses and the given metrics.
    ///
    /// # Errors
    ///
    /// When the losses cannot be read.
    pub fn end_epoch(&mut self, metrics: &[(&str, f32)]) -> Result<()> {
        self.read_losses()?;
        let shown = |(name, value): (&str, f32)| format!("{name} {value:.4}");
        let values: Vec<String> = self.means().map(shown).chain(metrics.iter().copied().map(shown)).collect();
        self.bar.finish_and_clear();
        println!("epoch {}/{}: {}", self.epoch, self.epochs, values.join(", "));
        self.metrics = owned(metrics);
        self.measured.push((self.steps, self.metrics.clone()));
        Ok(())
    }

    /// Ends the training: prints its speed, its last metrics, and the digests of the environment and the weights, and writes
    /// `loss.svg`, `weights/` and `environment.txt`.
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
            let rate = (self.steps - self.resumed - 1) as f64 / first_step.elapsed().as_secs_f64();
            println!("first step after {compile:.2} s, then {rate:.2} steps/s");
        }
        for (name, value) in &self.metrics {
            println!("{name}: {value:.4}");
        }
        write_plot(&self.out.join("loss.svg"), self.name, &self.curves, &self.measured, self.epoch_steps)?;
        save_weights(model, &self.out.join("weights"))?;
        let environment = environment();
        let file = self.out.join("environment.txt");
        fs::write(&file, format!("{environment}\ndigest: {}\n", environment.digest()))
            .with_context(|| format!("writing {}", file.display()))?;
        let pictures: String = self.written.iter().map(|file| format!("{file}, ")).collect();
        println!("loss.svg, {pictures}weights and environment.txt: {}", self.out.display());
        println!("environment: {}", environment.digest());
        println!("digest: {digest}");
        Ok(())
    }
}

fn owned(metrics: &[(&str, f32)]) -> Vec<(String, f32)> {
    metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}
