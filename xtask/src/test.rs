//! `cargo xtask test`.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::device::{self, Device, Wanted};
use crate::environment::Environment;
use crate::jobs::{self, Job};
use crate::runtime::{HAS_EMULATOR, Runtime};
use crate::skips::Skips;
use crate::workspace::Program;
use crate::{bundle, emulator, inspect, lint, workspace};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Only the tests whose name contains this, and neither Clippy nor the packages by themselves
    filter: Option<String>,

    #[command(flatten)]
    wanted: Wanted,

    /// Also the tests that take long, a check of the packages that need Burn by themselves, and the bundle on the emulator
    #[arg(long)]
    heavy: bool,

    /// A test that the device or the system cannot run fails, and so does a check whose tool is not installed
    #[arg(long)]
    strict: bool,
}

/// Tests of the suite that run on the emulator too, where the user has not chosen a device; all of them with `--heavy`.
const EMULATED: [&str; 5] =
    ["batch_invariance::", "order::", "repeatability::run_to_run", "shards::models::", "shards::training::"];

/// Tests of the suite that run there under the last of [`SCHEDULES`]: the short trainings of the examples, against their goldens.
const SHUFFLED: [&str; 1] = ["ends_in_the_same_weights"];

/// Orders of blocks and threads: ascending, and shuffled by two seeds. All but the last are left to `--heavy`, for time: trainings take
/// minutes under each. What relies on the ascending order has the right bits in it.
const SCHEDULES: u32 = 3;

/// Tests of kernels that run there with every access to memory checked; all of them with `--heavy`. CONTRIBUTING.md lists them.
const CHECKED: [&str; 6] = ["donated::", "gather::", "index_check::", "matmul::strides", "reduce::edges", "scan::"];

/// The order of blocks and threads of all that runs there once: a shuffled one, because kernels that rely on the ascending
/// order compute the right bits in it.
const SEED: &str = "1";

/// Tests of the suite that run there with streams that are so many milliseconds late, of what threads do to each other: 0 shows what a
/// thread should wait for and does not, 100 what is written while another thread has yet to read it.
const LATE: [(&str, &[&str]); 2] = [
    ("0", &["backend::streams", "repeatability::threads", "data::workers"]),
    ("100", &["another_thread_has", "repeatability::reads", "data::workers", "data::loader_streams"]),
];

/// Tests of the suite that take minutes, by a part of their names: only with `--heavy`.
const LONG: [&str; 1] = ["recordings::faults::plain_burns_scatter_add"];

/// Checks the formatting, which takes a second; builds every test, all in one profile and one feature set; then runs them, as
/// many programs at a time as there are cores, beside a check of packages by themselves and, with `--heavy`, Clippy.
///
/// Where the user has not chosen a device and a software driver is found, the kernels' tests and a part of the suite run on
/// the CUDA emulator too. All tests include that of `cargo xtask inspect`, whose compiler is fetched for it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let skips = Skips::new()?;
    let mut is_good = lint::check_format(&skips, options.strict)?;
    let mut failed = Vec::new();
    let device = device::find(options.wanted)?;
    if options.filter.is_some() {
        is_good &= run_on(&device, commands(options, &device), &skips, options)?;
    } else {
        inspect::prepare_tests();
        let (jobs, has_all) = jobs(&device, &skips, options)?;
        // To the end even past a failure, which hides nothing of the others.
        failed = jobs::run(jobs, &workspace::target()?.join("test-logs"))?;
        is_good &= has_all & failed.is_empty();
    }
    skips.print()?;
    // Last, because the list above is long and of some logs only the end is kept.
    failed.iter().for_each(|failure| eprintln!("\n{failure}"));
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs commands under each schedule of a device, to the end even past a failure.
fn run_on(device: &Device, mut commands: Vec<Command>, skips: &Skips, options: &Options) -> Result<bool> {
    let mut is_good = true;
    for (schedule, environment) in device.schedules() {
        if let Some(name) = schedule {
            eprintln!("blocks and threads {name}");
        }
        for tests in &mut commands {
            environment.apply(tests);
            skips.apply(tests, options.strict);
            is_good &= workspace::succeeds(tests)?;
        }
    }
    Ok(is_good)
}

/// Tests by name, without the examples: the suite has them, Clippy reads them, and a linker takes minutes for all. Cargo
/// runs documentation's tests in a command of their own.
fn commands(options: &Options, device: &Device) -> Vec<Command> {
    let targets = ["--tests", "--doc"].into_iter();
    let of = |target| {
        let mut tests = tests(device, options);
        // To the end even past a failure: the first broken binary hides nothing of the others.
        tests.args(["--no-fail-fast", target]).args(&options.filter);
        tests
    };
    targets.map(of).collect()
}

fn tests(device: &Device, options: &Options) -> Command {
    let mut command = device.cargo("test");
    command.arg("--release");
    if options.heavy {
        command.args(["--features", "heavy"]);
    }
    command
}

/// Every test and check, those that take longest first. Whether all is there that has to be.
fn jobs(device: &Device, skips: &Skips, options: &Options) -> Result<(Vec<Job>, bool)> {
    let built = workspace::built(tests(device, options).args(["--no-run", "--tests"]))?;
    // Clippy compiles Burn's crates once more, which takes as long as half of the tests.
    let (mut builds, mut is_good) = match options.heavy {
        true => lint::commands(skips, options.strict, true)?,
        false => (lint::light_commands(), true),
    };
    let programs = Programs { built: &built, skips, options };
    let mut jobs = Vec::new();
    let mut lacks = |what: &str, error: anyhow::Error| {
        is_good &= skips.add(what, &format!("{error:#}"), options.strict)?;
        anyhow::Ok(())
    };
    if options.wanted.is_any() && device.runtime() == Runtime::Wgpu && HAS_EMULATOR {
        match emulator::compiler() {
            Ok(()) => jobs = programs.emulated(&device::find(Wanted::device(Runtime::Emulator))?)?,
            Err(error) => lacks("tests on the emulator", error)?,
        }
        if options.heavy {
            match emulator::compiler().and_then(|()| bundle::require_tools()) {
                Ok(()) => builds.push(bundle::trial()?),
                Err(error) => lacks("bundle on the emulator", error)?,
            }
        }
    }
    let mut suite = Vec::new();
    let mut kernels = Vec::new();
    // Under Cargo, which tells tests of their package and of the programs beside them.
    let mut others = Vec::new();
    for (_, environment) in device.schedules() {
        let mut tests_of_suite = programs.program("suite", ".", &environment)?;
        if !options.heavy {
            tests_of_suite.args(LONG.iter().flat_map(|name| ["--skip", name]));
        }
        suite.push(tests_of_suite);
        kernels.push(programs.program("kernels", "kernels", &environment)?);
        for mut tests in other_tests(device, options, &built) {
            environment.apply(&mut tests);
            skips.apply(&mut tests, options.strict);
            others.push(tests);
        }
    }
    // One after another, because Cargo builds in each of them.
    others.append(&mut builds);
    let first = [Job::new("suite", suite), Job::new("other tests and packages", others)];
    jobs.splice(0..0, first.into_iter().chain([Job::new("kernels", kernels)]));
    Ok((jobs, is_good))
}

/// All tests but the kernels' and the suite, and those of the documentation.
fn other_tests(device: &Device, options: &Options, built: &[Program]) -> [Command; 2] {
    let mut tests = [tests(device, options), tests(device, options)];
    tests[0].args(["--no-fail-fast", "--lib", "--bins"]);
    let of_tests = built.iter().filter(|program| program.kind == "test").map(|program| &*program.name);
    for name in of_tests.filter(|name| !["kernels", "suite"].contains(name)).collect::<BTreeSet<_>>() {
        tests[0].args(["--test", name]);
    }
    tests[1].args(["--no-fail-fast", "--doc"]);
    tests
}

/// Programs that Cargo has built, to be run without it: Cargo's commands wait for a build at work beside them.
struct Programs<'a> {
    built: &'a [Program],
    skips: &'a Skips,
    options: &'a Options,
}

impl Programs<'_> {
    /// A program in a folder, as Cargo would run it.
    fn program(&self, name: &str, folder: &str, environment: &Environment) -> Result<Command> {
        let mut program = Command::new(workspace::path_of(self.built, name)?);
        program.current_dir(workspace::root().join(folder));
        environment.apply(&mut program);
        self.skips.apply(&mut program, self.options.strict);
        Ok(program)
    }

    /// The kernels' tests, some of them again with memory checked, [`EMULATED`] of the suite, all under [`SEED`], [`LATE`] under late
    /// streams, and [`SHUFFLED`] under the last schedule, or with `--heavy` under each.
    fn emulated(&self, emulator: &Device) -> Result<Vec<Job>> {
        let [(_, environment), ..] = &emulator.schedules()[..] else { unreachable!("there is one") };
        let seeded = |name: &str, folder: &str| {
            let mut program = self.program(name, folder, environment)?;
            program.env("CUDA_EMULATOR_SEED", SEED);
            anyhow::Ok(program)
        };
        let mut checked = seeded("kernels", "kernels")?;
        checked.env("CUDA_EMULATOR_CHECK", "1");
        let mut suite = seeded("suite", ".")?;
        if !self.options.heavy {
            checked.args(CHECKED);
            suite.args(EMULATED);
        }
        let late = |(milliseconds, tests): &(&str, &[&str])| {
            let mut program = seeded("suite", ".")?;
            program.env("CUDA_EMULATOR_QUEUES", milliseconds).args(*tests);
            anyhow::Ok(program)
        };
        let late = LATE.iter().map(late).collect::<Result<Vec<_>>>()?;
        let mut jobs = vec![
            Job::new("threads on the emulator, with late streams", late),
            Job::new("kernels on the emulator", vec![seeded("kernels", "kernels")?]),
            Job::new("suite on the emulator", vec![suite]),
            Job::new("kernels on the emulator, checked", vec![checked]),
        ];
        let left_out = if self.options.heavy { 0 } else { SCHEDULES as usize - 1 };
        for (schedule, environment) in emulator.clone().under(SCHEDULES).schedules().into_iter().skip(left_out) {
            let mut trainings = self.program("suite", ".", &environment)?;
            trainings.args(SHUFFLED);
            jobs.push(Job::new(
                format!("trainings on the emulator, {}", schedule.unwrap_or_default()),
                vec![trainings],
            ));
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_runs_with_the_same_features() {
        let device = Device::new(Runtime::Vulkan, Environment::default());
        let all = "test --workspace --features vulkan,autotune --release";
        let spelled =
            |options: &Options| commands(options, &device).iter().map(workspace::arguments).collect::<Vec<_>>();
        let options = Options { filter: None, wanted: Wanted::device(Runtime::Vulkan), heavy: false, strict: false };
        assert_eq!(spelled(&options), [format!("{all} --no-fail-fast --tests"), format!("{all} --no-fail-fast --doc")]);
        let program = |name: &str, kind: &str| Program { name: name.into(), kind: kind.into(), path: "/t".into() };
        let built =
            [program("kernels", "test"), program("faults", "test"), program("burn", "lib"), program("suite", "test")];
        let others = other_tests(&device, &options, &built).map(|command| workspace::arguments(&command));
        let of_others = "--no-fail-fast --lib --bins --test faults";
        assert_eq!(others, [format!("{all} {of_others}"), format!("{all} --no-fail-fast --doc")]);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true, ..options };
        assert_eq!(spelled(&options)[0], format!("{all} --features heavy --no-fail-fast --tests matmul"));
    }
}
