//! The training of examples/digits_convnet, in processes of their own: determinism is enabled once a process, and the
//! first step is to find no kernel compiled.

use crate::measure::median;
use crate::model::ConvNet;
use crate::side::{EmptyFolder, Side};
use crate::table::Table;
use crate::table::Target::{AtLeast, AtMost};
use anyhow::{Context, Result, ensure};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn_deterministic::data::DataLoaderBuilder;
use examples_common::{Batch, DigitBatcher, DigitSet, Digits};
use std::fs;
use std::time::{Duration, Instant};

const FIRST_STEP: &str = "digits_convnet, time to the first step with empty caches";
const STEPS: &str = "digits_convnet, steps per second";
const DEVICE_MEMORY: &str = "digits_convnet, device memory reserved";
const PROCESS_MEMORY: &str = "digits_convnet, peak memory of the process";

/// What is measured here.
pub const NAMES: [&str; 4] = [FIRST_STEP, STEPS, DEVICE_MEMORY, PROCESS_MEMORY];

const SEED: u64 = 812;
const BATCH_SIZE: usize = 64;
/// In these Burn meets every shape, tunes its kernels and learns what to fuse.
const WARM_UP_EPOCHS: usize = 3;
/// The median of these is reported.
const TIMED_EPOCHS: usize = 9;

/// What one training measures.
struct Measurements {
    first_step: Duration,
    steps_per_second: f64,
    device_mebibytes: f64,
    process_mebibytes: f64,
}

/// Trains `trainings` times on each side, in turns, and adds the medians to `table`.
pub fn compare(table: &mut Table, trainings: usize) -> Result<()> {
    let mut measurements = [Vec::new(), Vec::new()];
    for training in 1..=trainings {
        for (side, measurements) in [Side::Burn, Side::Here].into_iter().zip(&mut measurements) {
            eprintln!("digits_convnet, training {training} of {trainings}, {}..", side.name());
            measurements.push(in_child(side)?);
        }
    }
    let medians =
        |of: fn(&Measurements) -> f64| measurements.each_ref().map(|side| median(side.iter().map(of).collect()));
    let first_step = medians(|measured| measured.first_step.as_secs_f64());
    // Half of Burn's time is twice its speed.
    table.times(FIRST_STEP, first_step.map(Duration::from_secs_f64), Some(AtLeast(2.0)));
    table.quantities(STEPS, medians(|measured| measured.steps_per_second), "/s", Some(AtLeast(0.7)));
    table.quantities(DEVICE_MEMORY, medians(|measured| measured.device_mebibytes), "MiB", Some(AtMost(1.3)));
    table.quantities(PROCESS_MEMORY, medians(|measured| measured.process_mebibytes), "MiB", None);
    Ok(())
}

/// Trains in a new process that finds no cache of the driver's or of CubeCL's.
fn in_child(side: Side) -> Result<Measurements> {
    let caches = EmptyFolder::new()?;
    let output = side.command("--train", &caches)?.output().context("starting the training")?;
    ensure!(output.status.success(), "the training failed: {}", output.status);
    Measurements::parse(&String::from_utf8(output.stdout)?)
}

/// Trains in this process, which has done nothing else, and prints the measurements.
pub fn train(side: Side) -> Result<()> {
    let started = Instant::now();
    let device = side.enter(SEED)?.autodiff();
    let (digits, test) = Digits::load(DigitSet::Digits)?;
    let loader = DataLoaderBuilder::new("train", DigitBatcher).shuffle(SEED).batch_size(BATCH_SIZE);
    let loader = loader.set_device(device.clone()).build(digits);
    let mut model = ConvNet::new(test.side(), &device);
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut step = |model: ConvNet, Batch { images, labels }: Batch| {
        let loss = loss.forward(model.forward(images), labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        optimizer.step(1e-3, model, gradients)
    };

    model = step(model, loader.batches().next().context("there are digits")??);
    device.sync()?;
    let first_step = started.elapsed();

    let mut rates = Vec::new();
    for epoch in 0..WARM_UP_EPOCHS + TIMED_EPOCHS {
        if epoch == WARM_UP_EPOCHS {
            // What only the tuning of kernels needed is no part of a step.
            device.memory_cleanup();
        }
        let started = Instant::now();
        let mut steps = 0;
        for batch in loader.batches() {
            model = step(model, batch?);
            steps += 1;
        }
        device.sync()?;
        rates.push(f64::from(steps) / started.elapsed().as_secs_f64());
    }
    let measurements = Measurements {
        first_step,
        steps_per_second: median(rates.split_off(WARM_UP_EPOCHS)),
        device_mebibytes: device.memory_pool_usage().map_or(f64::NAN, |usage| mebibytes(usage.bytes_reserved)),
        process_mebibytes: peak_memory().map_or(f64::NAN, mebibytes),
    };
    println!("{}", measurements.print());
    Ok(())
}

pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

/// The most memory this process has had at once, in bytes, where Linux says.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

impl Measurements {
    /// One line for [`parse`](Self::parse).
    fn print(&self) -> String {
        let Self { first_step, steps_per_second, device_mebibytes, process_mebibytes } = self;
        format!("{} {steps_per_second} {device_mebibytes} {process_mebibytes}", first_step.as_secs_f64())
    }

    fn parse(line: &str) -> Result<Self> {
        let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>().context("a number")?;
        let &[first_step, steps_per_second, device_mebibytes, process_mebibytes] = numbers.as_slice() else {
            anyhow::bail!("the training printed `{line}`, not four numbers");
        };
        let first_step = Duration::from_secs_f64(first_step);
        Ok(Self { first_step, steps_per_second, device_mebibytes, process_mebibytes })
    }
}
