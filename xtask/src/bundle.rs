//! `cargo xtask bundle`: one folder to try this repository on a GPU machine that has neither Rust nor a network.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;

use crate::device::Device;
use crate::environment::Environment;
use crate::runtime::{HAS_EMULATOR, Runtime};
use crate::{emulator, remedy, workspace};

/// The most that the folder may hold, in bytes.
const LIMIT: u64 = 60 << 20;

/// The programs that the bundle's `run` starts; `bundle/src/stage.rs` has the same names.
const PROGRAMS: [&str; 4] = ["kernels", "suite", "comparison", "gpu_plans"];

/// Options of `cargo xtask bundle`.
#[derive(Args)]
pub struct Options {
    /// The folder to make; an earlier bundle there is replaced [default: bundle in the target folder]
    #[arg(long)]
    out: Option<PathBuf>,

    /// A program that is built already, as NAME=PATH: kernels, suite, comparison or gpu_plans
    #[arg(long = "program", value_parser = named_path, hide = true)]
    programs: Vec<(String, PathBuf)>,

    /// Then start it on the CUDA emulator, where its shortest stages have to pass
    #[arg(long = "try")]
    is_tried: bool,
}

/// The stages that `--try` starts: the suite and the kernels' tests, unpacked and led to a device.
const TRIED: [&str; 2] = ["device", "known-answer"];

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if PROGRAMS.contains(&name) => Ok((name.to_owned(), path.into())),
        _ => Err(format!("NAME=PATH is wanted, with a name of {}", PROGRAMS.join(", "))),
    }
}

/// Builds the programs for CUDA and wgpu, and packs them with the program `run`, the goldens and a few lines about them.
pub fn run(options: &Options) -> Result<ExitCode> {
    ensure!(HAS_EMULATOR, "cargo xtask bundle: a bundle is made on Linux on x86-64, and runs there");
    require_tools()?;
    // The one build for wgpu and for CUDA by NVRTC.
    let device = Device::new(Runtime::Emulator, Environment::default());
    let mut programs: BTreeMap<_, _> = options.programs.iter().cloned().collect();
    for mut build in builds(&device, &programs) {
        programs.extend(workspace::built(&mut build)?.into_iter().map(|program| (program.name, program.path)));
    }
    let mut runner = workspace::cargo("build");
    let runner = workspace::built(runner.args(["--release", "--package", "bundle"]))?;
    let runner = workspace::path_of(&runner, "run")?;

    let folder = options.out.clone().map_or_else(|| workspace::target().map(|target| target.join("bundle")), Ok)?;
    clear(&folder)?;
    let packed = folder.join("programs");
    fs::create_dir_all(&packed).with_context(|| format!("creating {}", packed.display()))?;
    for name in PROGRAMS {
        let program = programs.get(name).with_context(|| format!("Cargo has built no program `{name}`"))?;
        pack(program, &packed.join(name))?;
    }
    strip(runner, &folder.join("run"))?;
    let goldens = workspace::root().join("tests/goldens/examples.json");
    fs::copy(&goldens, folder.join("goldens.json")).with_context(|| format!("copying {}", goldens.display()))?;
    fs::write(folder.join("about.txt"), about(&device)?).context("writing about.txt")?;

    let size = size(&folder)?;
    println!("{}: {:.1} MiB", folder.display(), size as f64 / f64::from(1 << 20));
    ensure!(size < LIMIT, "the bundle is larger than {} MiB", LIMIT >> 20);
    if options.is_tried {
        try_out(&folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the programs that pack a bundle.
///
/// # Errors
///
/// One is missing.
pub fn require_tools() -> Result<()> {
    for (tool, package) in [("strip", "binutils"), ("xz", "xz-utils")] {
        ensure!(remedy::is_program(tool), "cargo xtask bundle: no program `{tool}`: install the package {package}");
    }
    Ok(())
}

/// A command that makes a bundle beside the user's own, and tries it.
pub fn trial() -> Result<Command> {
    let mut trial = Command::new(env::current_exe().context("finding this program's own path")?);
    trial.args(["bundle", "--try", "--out"]).arg(workspace::target()?.join("tried-bundle"));
    Ok(trial)
}

/// Runs [`TRIED`] on the emulator, and looks for their rows in the report.
fn try_out(bundle: &Path) -> Result<()> {
    let environment = emulator::prepare()?;
    let out = workspace::target()?.join("tried-bundle-report");
    if out.exists() {
        // It is of another bundle.
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    let mut run = Command::new(bundle.join("run"));
    run.args(["--only", &TRIED.join(","), "--minutes", "5", "--out"]).arg(&out);
    environment.apply(&mut run);
    workspace::succeed(&mut run)?;
    let rows = out.join("report.json");
    let rows = fs::read_to_string(&rows).with_context(|| format!("reading {}", rows.display()))?;
    let failed = not_passed(&rows)?;
    ensure!(
        failed.is_empty(),
        "the bundle on the CUDA emulator: {} has not passed: see {}",
        failed.join(", "),
        out.display()
    );
    Ok(())
}

/// Those of [`TRIED`] that the rows of a report do not call passed.
fn not_passed(rows: &str) -> Result<Vec<&'static str>> {
    let report: serde_json::Value = serde_json::from_str(rows).context("the rows of a bundle's report are no JSON")?;
    let rows = report["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let has_passed = |stage: &str| rows.iter().any(|row| row["name"] == stage && row["result"]["outcome"] == "Passed");
    Ok(TRIED.into_iter().filter(|stage| !has_passed(stage)).collect())
}

/// The commands that build what is not given.
fn builds(device: &Device, given: &BTreeMap<String, PathBuf>) -> Vec<Command> {
    let is_wanted = |name: &&str| !given.contains_key(*name);
    let mut builds = Vec::new();
    let tests: Vec<_> = ["kernels", "suite"].into_iter().filter(is_wanted).collect();
    if !tests.is_empty() {
        // As `cargo xtask test` builds them.
        let mut command = device.cargo("test");
        command.args(["--release", "--no-run"]);
        command.args(tests.iter().flat_map(|name| ["--test", name]));
        builds.push(command);
    }
    if is_wanted(&"comparison") {
        // As `cargo xtask bench` builds it.
        let mut command = device.cargo("bench");
        command.args(["--bench", "comparison", "--no-run"]);
        builds.push(command);
    }
    if is_wanted(&"gpu_plans") {
        // As `cargo xtask inspect` builds it.
        let mut command = device.cargo("build");
        command.args(["--release", "--example", "gpu_plans"]);
        builds.push(command);
    }
    builds
}

/// Removes an earlier bundle, and nothing else.
fn clear(folder: &Path) -> Result<()> {
    let is_empty = folder.read_dir().map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        return Ok(());
    }
    if !folder.join("about.txt").is_file() || !folder.join("programs").is_dir() {
        bail!("{} holds something else than a bundle: name another folder by `--out`", folder.display());
    }
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

/// A copy of a program without its symbols.
fn strip(program: &Path, copy: &Path) -> Result<()> {
    let mut command = Command::new("strip");
    workspace::succeed(command.arg("-o").arg(copy).arg(program))
}

/// A stripped program as `NAME.xz`.
fn pack(program: &Path, copy: &Path) -> Result<()> {
    strip(program, copy)?;
    let packed = copy.with_extension("xz");
    let target = File::create(&packed).with_context(|| format!("creating {}", packed.display()))?;
    // Level 6 makes them smaller by 15 % than level 1, and takes two minutes. More threads would make it larger.
    let mut xz = Command::new("xz");
    workspace::succeed(xz.args(["-6", "--stdout"]).arg(copy).stdout(target))?;
    fs::remove_file(copy).with_context(|| format!("removing {}", copy.display()))
}

/// What the report says of the build, one fact a line.
fn about(device: &Device) -> Result<String> {
    let commit = output("git", &["rev-parse", "HEAD"]).unwrap_or_else(|error| format!("unknown ({error:#})"));
    let is_changed = output("git", &["status", "--porcelain"]).is_ok_and(|changes| !changes.is_empty());
    let changed = if is_changed { ", with changes that are not committed" } else { "" };
    let rustc = output("rustc", &["--version"])?;
    let libc = output("ldd", &["--version"])?;
    let libc = libc.lines().next().unwrap_or_default();
    Ok(format!("commit: {commit}{changed}\nfeatures: {}\nbuilt by: {rustc}\nbuilt with: {libc}\n", device.features()))
}

/// What a command prints, in the workspace's root.
fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(workspace::root()).output();
    let output = output.with_context(|| format!("starting {program}"))?;
    ensure!(output.status.success(), "{program} {} failed: {}", arguments.join(" "), output.status);
    let text = String::from_utf8(output.stdout).map_err(|_| anyhow!("{program} wrote something else than text"))?;
    Ok(text.trim_end().to_owned())
}

/// All files in a folder, in bytes.
fn size(folder: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry.context("reading a folder")?;
        let metadata = entry.metadata().with_context(|| format!("reading {}", entry.path().display()))?;
        size += if metadata.is_dir() { self::size(&entry.path())? } else { metadata.len() };
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_not_built() {
        let device = Device::new(Runtime::Emulator, Environment::default());
        let spelled = |given: &[&str]| {
            let given = given.iter().map(|&name| (name.to_owned(), PathBuf::new())).collect();
            builds(&device, &given).iter().map(workspace::arguments).collect::<Vec<_>>()
        };
        let bench = "bench --workspace --features wgpu,cuda-nvrtc,autotune --bench comparison --no-run";
        let plans = "build --workspace --features wgpu,cuda-nvrtc,autotune --release --example gpu_plans";
        assert_eq!(spelled(&["kernels", "suite"]), [bench, plans]);
        let suite = "test --workspace --features wgpu,cuda-nvrtc,autotune --release --no-run --test suite";
        assert_eq!(spelled(&["kernels", "comparison", "gpu_plans"]), [suite]);
        assert_eq!(spelled(&[]).len(), 3);
        assert!(named_path("tests=/a").is_err() && named_path("suite=/a").is_ok());
    }

    #[test]
    fn a_stage_that_did_not_run_has_not_passed() {
        let row = |name: &str, outcome: &str| format!(r#"{{"name": "{name}", "result": {{"outcome": "{outcome}"}}}}"#);
        let failed = |rows: &[String]| not_passed(&format!(r#"{{"rows": [{}]}}"#, rows.join(", "))).expect("JSON");
        assert_eq!(failed(&[row("device", "Passed"), row("known-answer", "Passed")]), [""; 0]);
        assert_eq!(failed(&[row("device", "NotPossible"), row("known-answer", "Passed")]), ["device"]);
        assert_eq!(failed(&[row("device", "Passed")]), ["known-answer"]);
        assert!(not_passed("").is_err());
    }

    #[test]
    fn only_a_bundle_is_replaced() {
        let folder = std::env::temp_dir().join(format!("xtask-{}-bundle", std::process::id()));
        fs::create_dir_all(folder.join("programs")).expect("a temporary folder");
        fs::write(folder.join("thesis.txt"), "years of work").expect("a temporary folder");
        let error = clear(&folder).expect_err("it is something else").to_string();
        assert!(error.contains("--out") && folder.join("thesis.txt").exists(), "{error}");
        fs::write(folder.join("about.txt"), "").expect("a temporary folder");
        assert_eq!(size(&folder).expect("it is there"), 13);
        clear(&folder).expect("a bundle");
        assert!(!folder.exists());
    }
}
