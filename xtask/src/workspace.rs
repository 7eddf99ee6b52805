//! The workspace's folders, and Cargo run in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

/// The workspace's root folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace's root")
}

/// Cargo's target folder, wherever the user put it: Cargo built this program at `<target>/debug/xtask`.
pub fn target() -> Result<PathBuf> {
    let program = env::current_exe().context("finding this program's own path")?;
    let target =
        program.ancestors().nth(2).with_context(|| format!("{} lies in no target folder", program.display()))?;
    Ok(target.to_owned())
}

/// A Cargo command in the workspace's root.
pub fn cargo(subcommand: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.arg(subcommand).current_dir(root());
    // What `cargo run` tells this program of its package. ring's build script would run again because of it, and all of Burn
    // be compiled again, whenever a command of the user's own follows one of `cargo xtask`.
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

fn is_of_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| variable.starts_with(start))
}

/// Runs a command to its end; its exit code becomes ours, and it has said all there is to say about it.
pub fn exit_code_of(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("starting {}", spelled(command)))?;
    // A child that a signal ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Runs a command to its end and says whether it succeeded; it has said all there is to say about it.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status = command.status().with_context(|| format!("starting {}", spelled(command)))?;
    Ok(status.success())
}

/// Runs a command that has to succeed.
pub fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", spelled(command)))?;
    ensure!(status.success(), "{} failed: {status}", spelled(command));
    Ok(())
}

/// A program that Cargo has built.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its target.
    pub name: String,
    /// Cargo's word for the kind of its target: `lib`, `bin`, `test`, `example`, `bench`.
    pub kind: String,
    pub path: PathBuf,
}

/// The programs that a Cargo command has built or found up to date.
pub fn built(build: &mut Command) -> Result<Vec<Program>> {
    build.arg("--message-format=json-render-diagnostics");
    let spelled = spelled(build);
    let output = build.stderr(Stdio::inherit()).output().with_context(|| format!("starting {spelled}"))?;
    ensure!(output.status.success(), "{spelled} failed: {}", output.status);
    let messages =
        String::from_utf8(output.stdout).with_context(|| format!("{spelled} wrote something else than text"))?;
    Ok(executables(&messages))
}

/// The path of a program by its name.
pub fn path_of<'a>(programs: &'a [Program], name: &str) -> Result<&'a Path> {
    let program = programs.iter().find(|program| program.name == name);
    program.map(|program| &*program.path).with_context(|| format!("Cargo has built no program `{name}`"))
}

/// The programs that Cargo's messages name.
fn executables(messages: &str) -> Vec<Program> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let named = messages.filter_map(|message| {
        let path = message.get("executable")?.as_str()?.into();
        let target = message.get("target")?;
        let text = |value: &serde_json::Value| Some(value.as_str()?.to_owned());
        Some(Program { name: text(target.get("name")?)?, kind: text(target.get("kind")?.get(0)?)?, path })
    });
    named.collect()
}

/// The arguments of a command, for tests.
#[cfg(test)]
pub fn arguments(command: &Command) -> String {
    command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The command line, for messages.
pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_of_no_package() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some(), "Cargo tells a test of its package");
        let removed = |name: &str| cargo("build").get_envs().any(|(known, value)| known == name && value.is_none());
        assert!(["CARGO_PKG_NAME", "CARGO_PKG_VERSION_PRE", "CARGO_MANIFEST_DIR"].into_iter().all(removed));
    }

    #[test]
    fn cargo_names_the_programs_it_has_built() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"kind":["test"],"name":"suite"},"executable":"/t/suite-12"}"#,
            "\nrunning\n",
        );
        let suite = Program { name: "suite".to_owned(), kind: "test".to_owned(), path: "/t/suite-12".into() };
        assert_eq!(executables(messages), [suite]);
    }
}
