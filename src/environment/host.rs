//! The operating system and the processor.

use burn_deterministic_recording::Environment;
use std::env::consts::{ARCH, OS};
use std::fs;

pub(super) fn facts() -> Environment {
    let mut facts = Environment::new();
    facts.set("os", system().unwrap_or_else(|| OS.to_owned()));
    facts.set("cpu", processor().unwrap_or_else(|| ARCH.to_owned()));
    facts
}

/// `Debian GNU/Linux 12 (bookworm)`.
#[cfg(not(target_os = "macos"))]
fn system() -> Option<String> {
    Some(value(&fs::read_to_string("/etc/os-release").ok()?, "PRETTY_NAME", '=')?.trim_matches('"').to_owned())
}

/// `macOS 15.1`: Metal's driver is part of the system.
#[cfg(target_os = "macos")]
fn system() -> Option<String> {
    let output = std::process::Command::new("sw_vers").arg("-productVersion").output().ok()?;
    Some(format!("macOS {}", String::from_utf8_lossy(&output.stdout).trim()))
}

/// `AMD EPYC 7763 64-Core Processor`; some systems do not tell.
fn processor() -> Option<String> {
    value(&fs::read_to_string("/proc/cpuinfo").ok()?, "model name", ':')
}

/// What follows the first `name` and `separator` of a line of `text`.
fn value(text: &str, name: &str, separator: char) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(separator));
    pairs.find_map(|(found, value)| (found.trim() == name).then(|| value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_follows_its_name() {
        let text = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nmodel name\t: AMD EPYC\n";
        assert_eq!(value(text, "PRETTY_NAME", '=').as_deref(), Some("\"Debian GNU/Linux 12 (bookworm)\""));
        assert_eq!(value(text, "model name", ':').as_deref(), Some("AMD EPYC"));
        assert_eq!(value(text, "model", ':'), None);
    }
}
