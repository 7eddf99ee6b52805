//! The repository's examples as they are, on plain Burn by their `--plain`, in processes of their own: `cargo xtask bench examples`.
//! digits_convnet and the Learner have rows of their own.

use crate::measure::median;
use crate::side::{EmptyFolder, Side};
use crate::table::Table;
use crate::table::Target::{AtLeast, AtMost};
use crate::training::mebibytes;
use anyhow::{Context, Result, ensure};
use burn::prelude::*;
use examples_common::Arguments;
use std::time::{Duration, Instant};

/// An example, and the names of its rows.
struct Example {
    name: &'static str,
    steps: &'static str,
    memory: &'static str,
    run: fn(&Arguments) -> Result<()>,
}

macro_rules! examples {
    ($($name:ident = $path:literal,)*) => {
        $(
            #[path = $path]
            #[expect(dead_code, reason = "its `main` and what `--help` says")]
            mod $name;
        )*

        const EXAMPLES: &[Example] = &[$(Example {
            name: stringify!($name),
            steps: concat!(stringify!($name), ", steps per second with evaluations"),
            memory: concat!(stringify!($name), ", device memory reserved with evaluations"),
            run: $name::run,
        }),*];
    };
}

examples! {
    digits_gan = "../../examples/digits_gan/main.rs",
    digits_mlp = "../../examples/digits_mlp/main.rs",
    digits_resnet = "../../examples/digits_resnet/main.rs",
    digits_transfer = "../../examples/digits_transfer/main.rs",
    digits_unet = "../../examples/digits_unet/main.rs",
    digits_vae = "../../examples/digits_vae/main.rs",
    text_lstm = "../../examples/text_lstm/main.rs",
    text_table = "../../examples/text_table/main.rs",
    text_transformer = "../../examples/text_transformer/main.rs",
    word2vec = "../../examples/word2vec/main.rs",
}

/// Steps of the first training, in which Burn meets every shape, tunes its kernels and learns what to fuse; and of the two whose
/// difference is timed, so that the begin and the end of a training are not.
const STEPS: [usize; 3] = [24, 24, 120];

/// The filter of these rows, which other filters do not name: each training tunes kernels in empty caches.
pub const NAME: &str = "examples";

/// Trains each example `trainings` times on each side, in turns, and adds the medians to `table`.
pub fn compare(table: &mut Table, trainings: usize) -> Result<()> {
    for Example { name, steps, memory, .. } in EXAMPLES {
        let (mut rates, mut reserved) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for training in 1..=trainings {
            for (place, side) in [Side::Burn, Side::Here].into_iter().enumerate() {
                eprintln!("{name}, training {training} of {trainings}, {}..", side.name());
                let [rate, mebibytes] = in_child(side, name)?;
                rates[place].push(rate);
                reserved[place].push(mebibytes);
            }
        }
        table.quantities(steps, rates.map(median), "/s", Some(AtLeast(1.0)));
        table.quantities(memory, reserved.map(median), "MiB", Some(AtMost(1.0)));
    }
    Ok(())
}

fn in_child(side: Side, name: &str) -> Result<[f64; 2]> {
    let caches = EmptyFolder::new()?;
    let mut command = side.command("--run", &caches)?;
    let output = command.args(["--example", name]).output().with_context(|| format!("starting {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", output.status);
    let printed = String::from_utf8(output.stdout)?;
    let numbers = printed.lines().last().context("a line")?.split_whitespace().map(str::parse);
    numbers.collect::<Result<Vec<f64>, _>>()?.try_into().ok().context("two numbers")
}

/// Trains an example in this process, which has done nothing else, and prints the steps of a second and the MiB that are reserved on
/// the device.
pub fn train(side: Side, name: &str) -> Result<()> {
    let example = EXAMPLES.iter().find(|example| example.name == name).with_context(|| format!("no example {name}"))?;
    let out = tempfile::tempdir()?;
    let out = out.path().to_str().context("the path of a temporary folder")?;
    let timed = |steps: usize| -> Result<Duration> {
        let steps = steps.to_string();
        let plain = matches!(side, Side::Burn).then_some("--plain");
        let arguments = Arguments::from_words(["--steps", &steps, "--out", out].into_iter().chain(plain))?;
        let started = Instant::now();
        (example.run)(&arguments)?;
        Device::default().sync()?;
        Ok(started.elapsed())
    };
    let [first, fewer, more] = STEPS;
    timed(first)?;
    // What only the tuning of kernels needed is no part of a step.
    let device = Device::default();
    device.memory_cleanup();
    let begin_and_end = timed(fewer)?;
    let took = timed(more)?.checked_sub(begin_and_end).context("a longer training takes longer")?;
    let usage = device.memory_pool_usage().context("the device has a pool of memory")?;
    println!("{} {}", (more - fewer) as f64 / took.as_secs_f64(), mebibytes(usage.bytes_reserved));
    Ok(())
}
