//! `cargo xtask inspect`: what NVIDIA's compiler makes of every kernel, without a GPU.

mod analysis;
mod cases;
mod checks;
mod collect;
mod date;
mod device;
mod exceptions;
mod launchable;
mod mix;
mod nvrtc;
mod render;
mod resources;
mod sass;
mod self_test;
mod tools;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace;
use cases::{Case, Kernel};
use collect::Program;
use exceptions::Exceptions;
use nvrtc::Compiler;
use render::{Accepted, Row};
use tools::Tools;

/// Options of `cargo xtask inspect`.
#[derive(Args)]
pub struct Options {
    /// Only check that planted faults are reported
    #[arg(long)]
    self_test: bool,

    /// A built `gpu_plans` of the feature `cuda-nvrtc`, in place of building it
    #[arg(long)]
    program: Option<PathBuf>,
}

/// The report in the repository.
const REPORT: &str = "docs/gpu.md";

/// Compiles every kernel, prints the report, and compares it with the one in the repository; `UPDATE_DOCS=1` writes that.
pub fn run(options: &Options) -> Result<ExitCode> {
    let tools = Tools::fetched()?;
    let folder = workspace::target()?.join("inspect");
    if options.self_test {
        self_test::run(&tools, &folder)?;
        eprintln!("self-test: every planted fault is reported, and nothing else");
        return Ok(ExitCode::SUCCESS);
    }
    let cases = Program::new(options.program.as_deref())?.cases(&folder.join("sources"))?;
    let all = launchable::find(&workspace::root().join("kernels/src"))?;
    let mut faults = launchable::faults(&all, &launchable::launched(&cases, &all), &launchable::NOT_ON_GPUS);
    let of_cubecl = launchable::OF_CUBECL.map(str::to_owned);
    let names: Vec<String> = all.into_iter().map(|launchable| launchable.name).chain(of_cubecl).collect();
    let kernels = distinct(&cases);
    eprintln!("compiling {} kernels of {} cases", kernels.len(), cases.len());
    let compilers = (0..thread::available_parallelism().map_or(1, usize::from))
        .map(|index| Compiler::new(&tools, &folder.join("cache"), &folder.join(format!("compiler-{index}"))))
        .collect::<Result<Vec<_>>>()?;
    let only: Vec<&Kernel> = kernels.iter().map(|(_, kernel)| *kernel).collect();
    let analyses = analysis::analyse(&compilers, &only)?;
    let rows = kernels.into_iter().zip(analyses).map(|((case, kernel), on)| {
        let function =
            kernel.function(&names).with_context(|| format!("{} is no kernel of kernels/src", kernel.entry))?;
        Ok(Row { function, case, kernel, on })
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let (accepted, refused) = judge(&rows, &mut Exceptions::of_project()?);
    faults.extend(refused);
    let report = render::report(&cases, &rows, &launchable::NOT_ON_GPUS, &accepted);
    print!("{report}");
    faults.extend(outdated(&report)?);
    for fault in &faults {
        eprintln!("fault: {fault}");
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fetches NVIDIA's compiler for the test that planted faults are reported. Where it is not to be had, that is said, and the
/// test is listed as skipped.
pub fn prepare_tests() {
    if let Err(error) = Tools::fetched() {
        eprintln!("note: tests of `cargo xtask inspect` that need NVIDIA's compiler are skipped: {error:#}");
    }
}

/// The kernels of all cases, each once, with the first case that launches it.
fn distinct(cases: &[Case]) -> Vec<(&str, &Kernel)> {
    let mut seen = BTreeSet::new();
    let launches =
        cases.iter().flat_map(|case| case.launches.iter().map(|launch| (case.name.as_str(), &*launch.kernel)));
    launches.filter(|(_, kernel)| seen.insert(&kernel.source)).collect()
}

/// What the exceptions accept, and what they do not, with what is wrong with them.
fn judge(rows: &[Row<'_>], exceptions: &mut Exceptions) -> (Vec<Accepted>, Vec<String>) {
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for Row { function, case, on, .. } in rows {
        for (analysis, device) in on.iter().zip(device::DEVICES) {
            for finding in &analysis.findings {
                let place = format!("{case}: `{function}` on {}", device.architecture);
                let finding_text = format!("{}: {}", finding.kind, finding.detail);
                match exceptions.accept(case, function, device.architecture, finding) {
                    Some(exception) => accepted.push(Accepted {
                        place,
                        finding: finding_text,
                        reason: exception.reason.clone(),
                        until: exception.until.clone(),
                    }),
                    None => refused.push(format!("{place}: {finding_text}")),
                }
            }
        }
    }
    refused.extend(exceptions.faults(&date::today()));
    (accepted, refused)
}

/// Whether the report in the repository is another one; with `UPDATE_DOCS` set it is replaced.
fn outdated(report: &str) -> Result<Option<String>> {
    let path = workspace::root().join(REPORT);
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, report).with_context(|| format!("writing {}", path.display()))?;
        return Ok(None);
    }
    let present = fs::read_to_string(&path).unwrap_or_default();
    let fault = format!("{REPORT} is not what this command prints; `UPDATE_DOCS=1 cargo xtask inspect` writes it");
    Ok((present != report).then_some(fault))
}
