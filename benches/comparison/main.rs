//! The same work on plain Burn and on burn-deterministic, in one run: `cargo xtask bench [filter]`.
//!
//! Prints a Markdown table with the medians of both and their ratio. It has a harness of its own, because a ratio on a
//! machine that does other work as well is only fair when the two take turns sample by sample, which neither divan nor
//! criterion does. benches/README.md has a record.

mod agreement;
#[path = "../../kernels/tests/device.rs"]
mod device;
mod devices;
mod examples;
mod growth;
mod loading;
mod measure;
#[path = "../../examples/digits_convnet/model.rs"]
mod model;
#[path = "../../tests/one_kind.rs"]
mod one_kind;
mod operations;
mod programs;
mod side;
mod table;
mod training;

use anyhow::Result;
use burn::backend::Backend;
use burn_cubecl::CubeBackend;
use clap::Parser;
use programs::Programs;
use side::Side;
use std::io::stdin;
use table::Table;

#[derive(Parser)]
#[command(about = "Compares burn-deterministic with plain Burn")]
struct Arguments {
    /// Only the work whose name contains one of these; `growth`, to time ours on ever more elements; or `examples`, to train each example.
    filters: Vec<String>,
    /// Samples of each operation on each backend.
    #[arg(long, default_value_t = 15)]
    samples: usize,
    /// Trainings on each backend, each in a process of its own; 0 for none.
    #[arg(long, default_value_t = 3)]
    trainings: usize,
    /// Only the rows whose number is I modulo N, of I/N, without trainings. Runs all of them, prints `ready`, waits for a line on
    /// standard input, and measures then: several such programs compile and tune side by side, and one of them at a time measures.
    #[arg(long, hide = true, value_parser = part)]
    part: Option<[usize; 2]>,
    /// Train in this process and print the measurements. For the processes that the benchmark starts.
    #[arg(long, hide = true)]
    train: Option<Side>,
    /// Train with burn-train's `Learner` in this process and print the steps of a second. For the processes that the benchmark
    /// starts.
    #[arg(long, hide = true)]
    learn: Option<Side>,
    /// Train the example of `--example` in this process and print the steps of a second and the memory. For the processes that the
    /// benchmark starts.
    #[arg(long, hide = true, requires = "example")]
    run: Option<Side>,
    /// The example of `--run`.
    #[arg(long, hide = true, requires = "run")]
    example: Option<String>,
    /// The devices of `--learn`.
    #[arg(long, hide = true, default_value_t = 1)]
    devices: usize,
    /// Run programs in this process as standard input says. For the processes that the benchmark starts.
    #[arg(long, hide = true)]
    serve: Option<Side>,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(side) = arguments.train {
        return training::train(side);
    }
    if let Some(side) = arguments.learn {
        return devices::train(side, arguments.devices);
    }
    if let (Some(side), Some(example)) = (arguments.run, &arguments.example) {
        return examples::train(side, example);
    }
    if let Some(side) = arguments.serve {
        return programs::serve(side);
    }
    if arguments.filters == ["growth"] {
        println!("{}\n", circumstances());
        growth::print(arguments.samples);
        return Ok(());
    }
    if arguments.filters == [examples::NAME] {
        let mut table = Table::new(arguments.filters, None);
        examples::compare(&mut table, arguments.trainings)?;
        println!("{}\n\n{table}", circumstances());
        return Ok(());
    }
    let mut programs = Programs::default();
    let mut table = Table::new(arguments.filters, arguments.part);
    if arguments.part.is_some() {
        operations::compare(&mut table, 1);
        programs.compare(&mut table, 1)?;
        table.forget_rows();
        println!("ready");
        stdin().read_line(&mut String::new())?;
    }
    let trains = arguments.trainings > 0 && arguments.part.is_none();
    if trains && training::NAMES.into_iter().any(|name| table.wants(name)) {
        training::compare(&mut table, arguments.trainings)?;
    }
    if trains && devices::is_wanted(&mut table) {
        devices::compare(&mut table, arguments.trainings)?;
    }
    loading::compare(&mut table, arguments.samples);
    operations::compare(&mut table, arguments.samples);
    programs.compare(&mut table, arguments.samples)?;
    println!("{}\n", circumstances());
    println!("{table}");
    Ok(())
}

/// `I/N`
fn part(text: &str) -> Result<[usize; 2], String> {
    let numbers = text.split_once('/').and_then(|(index, count)| Some([index.parse().ok()?, count.parse().ok()?]));
    numbers.filter(|[index, count]| index < count).ok_or_else(|| "I/N is wanted, with I less than N".to_owned())
}

fn circumstances() -> String {
    format!("{}, {} processors, load {}", device(), processors(), load().unwrap_or("unknown".to_owned()))
}

fn device() -> String {
    let device = device::default_device();
    format!("{} {:?}", CubeBackend::name(&device), device)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// The processes that were running or ready to, on average over the last 1, 5 and 15 minutes, where Linux says.
fn load() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    Some(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
