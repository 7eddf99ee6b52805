//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::device::{self, Device, Wanted};
use crate::environment::Environment;
use crate::jobs::{self, Job};
use crate::runtime::{HAS_EMULATOR, Runtime};
use crate::{bundle, emulator, inspect, lint, skips::Skips, workspace};

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

/// Tests of the suite that run there under [`SCHEDULES`]: the short trainings of the examples, against their goldens.
const SHUFFLED: [&str; 1] = ["ends_in_the_same_weights"];

/// Orders of blocks and threads: ascending, and shuffled by two seeds.
const SCHEDULES: u32 = 3;

/// Tests of kernels that run there with every access to memory checked; all of them with `--heavy`. CONTRIBUTING.md lists them.
const CHECKED: [&str; 5] = ["gather::", "index_check::", "matmul::strides", "reduce::edges", "scan::"];

/// The order of blocks and threads of all that runs there once: a shuffled one, because kernels that rely on the ascending
/// order compute the right bits in it.
const SEED: &str = "1";

/// Checks the formatting, which takes a second, then runs every test, all in one profile and one feature set; then Clippy,
/// and a check of packages by themselves, which compile the dependencies anew.
///
/// Where the user has not chosen a device and a software driver is found, the kernels' tests and a part of the suite run on
/// the CUDA emulator too, beside these checks. All tests include that of `cargo xtask inspect`, whose compiler is fetched for
/// it.
pub fn run(options: &Options) -> Result<ExitCode> {
    let skips = Skips::new()?;
    let mut is_good = lint::check_format(&skips, options.strict)?;
    let device = device::find(options.wanted)?;
    if options.filter.is_none() {
        inspect::prepare_tests();
    }
    is_good &= run_on(&device, commands(options, &device), &skips, options)?;
    if options.filter.is_none() {
        // To the end even past a failure, which hides nothing of the others.
        let (mut builds, has_all) = lint::commands(&skips, options.strict, options.heavy)?;
        is_good &= has_all;
        let mut jobs = Vec::new();
        let lacks = |what: &str, error: anyhow::Error| skips.add(what, &format!("{error:#}"), options.strict);
        if options.wanted.is_any() && device.runtime() == Runtime::Wgpu && HAS_EMULATOR {
            match emulator::compiler() {
                Ok(()) => {
                    let emulator = device::find(Wanted::device(Runtime::Emulator))?;
                    jobs.extend(emulated(&emulator, &skips, options)?);
                }
                Err(error) => is_good &= lacks("tests on the emulator", error)?,
            }
            if options.heavy {
                match emulator::compiler().and_then(|()| bundle::require_tools()) {
                    Ok(()) => builds.push(bundle::trial()?),
                    Err(error) => is_good &= lacks("bundle on the emulator", error)?,
                }
            }
        }
        // One after another, because Cargo builds in each of them.
        let name = if options.heavy { "Clippy, packages, bundle" } else { "Clippy and packages" };
        jobs.insert(0, Job::new(name, builds));
        is_good &= jobs::run(jobs, &workspace::target()?.join("test-logs"))?;
    }
    skips.print()?;
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

/// Every test, without the examples: the suite has them, Clippy reads them, and a linker takes minutes for all. Cargo runs
/// documentation's tests in a command of their own.
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

/// The kernels' tests, some of them again with memory checked, [`EMULATED`] of the suite, all under [`SEED`], and [`SHUFFLED`]
/// under each schedule. Programs, not Cargo's commands, which would wait for a build at work beside them.
fn emulated(emulator: &Device, skips: &Skips, options: &Options) -> Result<Vec<Job>> {
    let built = workspace::built(tests(emulator, options).args(["--no-run", "--test", "kernels", "--test", "suite"]))?;
    let program = |name: &str, folder: &str, environment: &Environment| {
        let mut program =
            Command::new(built.get(name).with_context(|| format!("Cargo has built no program `{name}`"))?);
        // As Cargo would.
        program.current_dir(workspace::root().join(folder));
        environment.apply(&mut program);
        skips.apply(&mut program, options.strict);
        anyhow::Ok(program)
    };
    let [(_, environment), ..] = &emulator.schedules()[..] else { unreachable!("there is one") };
    let seeded = |name: &str, folder: &str| {
        let mut program = program(name, folder, environment)?;
        program.env("CUDA_EMULATOR_SEED", SEED);
        anyhow::Ok(program)
    };
    let mut checked = seeded("kernels", "kernels")?;
    checked.env("CUDA_EMULATOR_CHECK", "1");
    let mut suite = seeded("suite", ".")?;
    if !options.heavy {
        checked.args(CHECKED);
        suite.args(EMULATED);
    }
    let mut jobs = vec![
        Job::new("kernels on the emulator", vec![seeded("kernels", "kernels")?]),
        Job::new("kernels on the emulator, checked", vec![checked]),
        Job::new("suite on the emulator", vec![suite]),
    ];
    for (schedule, environment) in emulator.clone().under(SCHEDULES).schedules() {
        let mut trainings = program("suite", ".", &environment)?;
        trainings.args(SHUFFLED);
        jobs.push(Job::new(format!("trainings on the emulator, {}", schedule.unwrap_or_default()), vec![trainings]));
    }
    Ok(jobs)
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
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true, ..options };
        assert_eq!(spelled(&options)[0], format!("{all} --features heavy --no-fail-fast --tests matmul"));
    }
}
