//! Packages, installed by Debian's package manager.

use std::io;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::succeed;

/// Installs packages, saying why.
pub fn install(why: &str, packages: &[&str], sudo: bool) -> Result<()> {
    let names = packages.join(", ");
    eprintln!("{why}: installing {names}");
    let mut update = apt_get(sudo);
    update.args(["-qq", "update"]);
    // A source of the user's that cannot be reached does not matter here, the packages being Debian's.
    if let Err(error) = succeed(&mut update) {
        eprintln!("warning: {error:#}");
    }
    let mut install = apt_get(sudo);
    install.args(["-qq", "--yes", "--no-install-recommends", "install"]).args(packages);
    succeed(&mut install).with_context(|| format!("{why}, and {names} could not be installed"))
}

/// apt-get that never asks, waits for another one at work, and leaves stdout to our caller.
fn apt_get(sudo: bool) -> Command {
    let mut command = Command::new(if sudo { "sudo" } else { "env" });
    if sudo {
        command.args(["--non-interactive", "env"]);
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    command.args(["--option=Acquire::Retries=3", "--option=DPkg::Lock::Timeout=300"]);
    command.stdout(io::stderr());
    command
}
