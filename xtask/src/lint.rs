//! `cargo xtask lint`: checks that read the sources and compute nothing.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use crate::device::Device;
use crate::environment::Environment;
use crate::runtime::Runtime;
use crate::skips::Skips;
use crate::workspace;

/// Options of `cargo xtask lint`.
#[derive(Args)]
pub struct Options {
    /// A check whose tool is not installed fails
    #[arg(long)]
    strict: bool,
}

/// Checks the formatting, runs Clippy on every target, and checks by itself each package that needs no Burn.
pub fn run(options: &Options) -> Result<ExitCode> {
    let skips = Skips::new()?;
    let mut is_good = check_format(&skips, options.strict)?;
    let (commands, has_all) = commands(&skips, options.strict, false)?;
    is_good &= has_all;
    for mut command in commands {
        is_good &= workspace::succeeds(&mut command)?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Clippy on every target, warnings being errors, and a check of packages by themselves: of those that need no Burn, and of
/// the others too if `heavy`. Rust's minimal installation has no Clippy; that is listed among what is skipped. Whether all
/// is there that has to be.
pub fn commands(skips: &Skips, strict: bool, heavy: bool) -> Result<(Vec<Command>, bool)> {
    let has_clippy = is_installed("clippy");
    let is_good = require(has_clippy, "Clippy", "clippy", skips, strict)?;
    let most = if heavy { Needs::Burn } else { Needs::CubeCl };
    Ok((has_clippy.then(clippy).into_iter().chain(packages(most)).collect(), is_good))
}

/// The check of packages that need neither CubeCL nor Burn: for others continuous integration has no time.
pub fn light_commands() -> Vec<Command> {
    packages(Needs::Little).collect()
}

/// Says whether it is good that a tool is there, or is not.
fn require(is_there: bool, name: &str, component: &str, skips: &Skips, strict: bool) -> Result<bool> {
    match is_there {
        true => Ok(true),
        false => skips.add(name, &format!("not installed, `rustup component add {component}` does that"), strict),
    }
}

/// With the features that tests have without a GPU: the code of two runtimes, and nothing that is compiled only for this.
fn clippy() -> Command {
    let mut clippy = Device::new(Runtime::Wgpu, Environment::default()).cargo("clippy");
    clippy.args(["--all-targets", "--", "--deny", "warnings"]);
    clippy
}

/// What a package needs that is compiled once more for it, since by itself it has fewer features of its dependencies than in the
/// workspace, where it has those that the others ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    /// What takes a minute.
    Little,
    /// CubeCL and wgpu.
    CubeCl,
    /// Burn: such a package is checked as a program that depends on it has it, without what its tests need.
    Burn,
}

/// The packages, each with its features.
const ALONE: [(Needs, &[&str]); 7] = [
    (Needs::Little, &["burn-deterministic-recording", "--all-targets"]),
    (Needs::Little, &["cuda-emulator", "--all-targets"]),
    (Needs::Little, &["bundle", "--all-targets"]),
    (Needs::Little, &["xtask", "--all-targets"]),
    (Needs::CubeCl, &["burn-deterministic-kernels", "--features", "wgpu", "--all-targets"]),
    (Needs::Burn, &["burn-deterministic", "--features", "wgpu"]),
    (Needs::Burn, &["burn-deterministic-cli", "--features", "wgpu"]),
];

/// A check of each package that needs no more than this, by itself.
fn packages(most: Needs) -> impl Iterator<Item = Command> {
    ALONE.into_iter().filter(move |(needs, _)| *needs <= most).map(|(_, arguments)| {
        let mut check = workspace::cargo("check");
        check.arg("--package").args(arguments);
        check
    })
}

/// Checks the formatting. Rust's minimal installation has no formatter; that is listed among what is skipped. Whether that is
/// good.
pub fn check_format(skips: &Skips, strict: bool) -> Result<bool> {
    if !is_installed("fmt") {
        return require(false, "formatting", "rustfmt", skips, strict);
    }
    let mut check = workspace::cargo("fmt");
    workspace::succeed(check.args(["--all", "--check"])).context("`cargo fmt` would change the sources")?;
    Ok(true)
}

fn is_installed(subcommand: &str) -> bool {
    let mut version = workspace::cargo(subcommand);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::HAS_EMULATOR;

    #[test]
    fn clippy_reads_all_that_the_tests_compile() {
        let clippy = clippy();
        let features = Device::new(Runtime::Wgpu, Environment::default()).features();
        let all = format!("clippy --workspace --features {features} --all-targets -- --deny warnings");
        assert_eq!(workspace::arguments(&clippy), all);
        let skips_llvm = clippy.get_envs().any(|(name, _)| name == "DOCS_RS");
        assert_eq!((features.contains("cuda-nvrtc"), skips_llvm), (HAS_EMULATOR, HAS_EMULATOR));
    }

    #[test]
    fn a_tool_that_is_not_installed_is_skipped_and_fails_where_that_is_asked_for() {
        let skips = Skips::new().expect("a file in the target folder");
        let require = |is_there, strict| require(is_there, "Clippy", "clippy", &skips, strict).expect("the same file");
        assert!(require(true, true) && require(false, false) && !require(false, true));
    }

    /// Members that are not checked by themselves, and why.
    const NOT_ALONE: [(&str, &str); 1] = [("examples-common", "no program has it without the workspace")];

    #[test]
    fn every_member_is_checked_by_itself_or_left_out_with_a_reason() {
        let name = |folder: &str| {
            let path = workspace::root().join(folder).join("Cargo.toml");
            let manifest = std::fs::read_to_string(path).expect("a member has a manifest");
            let manifest: toml::Value = toml::from_str(&manifest).expect("a manifest is TOML");
            (manifest["package"]["name"].as_str().expect("a name is text").to_owned(), manifest)
        };
        let (root, manifest) = name(".");
        let members = manifest["workspace"]["members"].as_array().expect("a list").iter();
        let mut members: Vec<_> = members.map(|member| name(member.as_str().expect("a folder")).0).collect();
        members.push(root);
        members.sort_unstable();
        let checked = ALONE.iter().map(|(_, arguments)| arguments[0]);
        let mut known: Vec<_> = checked.chain(NOT_ALONE.map(|(name, _)| name)).collect();
        known.sort_unstable();
        assert_eq!(members, known);
    }

    #[test]
    fn what_compiles_cubecl_or_burn_once_more_is_left_to_lint_and_heavy() {
        let spelled = |most| packages(most).map(|check| workspace::arguments(&check)).collect::<Vec<_>>();
        assert_eq!(spelled(Needs::Little)[0], "check --package burn-deterministic-recording --all-targets");
        let counts = [Needs::Little, Needs::CubeCl, Needs::Burn].map(|most| spelled(most).len());
        assert_eq!(counts, [4, 5, 7]);
    }
}
