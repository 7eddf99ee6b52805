//! The CUDA emulator: this workspace's package `cuda-emulator`, in place of NVIDIA's driver and compiler.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::environment::Environment;
use crate::remedy::{self, Means, Remedy};
use crate::{apt, workspace};

/// The names under which CubeCL looks for the driver, for NVRTC and for NCCL, of which the emulator has no function: what uses it fails.
const LIBRARIES: [&str; 5] = ["libcuda.so", "libcuda.so.1", "libnvrtc.so", "libnvrtc.so.12", "libnccl.so"];

/// Builds the emulator, and returns the variables that lead programs to it; installs g++, which compiles the kernels,
/// where it is missing.
pub fn prepare() -> Result<Environment> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("--device emulator: the CUDA emulator runs on Linux on x86-64 only; leave `--device` out");
    }
    compiler()?;
    let mut build = workspace::cargo("build");
    workspace::succeed(build.args(["--release", "--package", "cuda-emulator"]))?;
    let target = workspace::target()?;
    let folder = target.join("cuda-emulator");
    let (libraries, toolkit) = (folder.join("lib"), folder.join("toolkit"));
    for path in [&libraries, &toolkit] {
        fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))?;
    }
    for name in LIBRARIES {
        link(&target.join("release/libcuda_emulator.so"), &libraries.join(name))?;
    }
    let mut environment = Environment::default();
    environment.search_libraries_in(libraries);
    // CubeCL wants a toolkit to be there, and the emulator reads none of its headers.
    environment.set("CUDA_PATH", toolkit);
    environment.set("CUDA_EMULATOR_CACHE", folder.join("kernels"));
    // Tests train on up to four. A shell that was led to Vulkan before hides them.
    environment.set("CUDA_EMULATOR_DEVICES", "4");
    environment.set("CUDA_VISIBLE_DEVICES", "0,1,2,3");
    Ok(environment)
}

/// The first version of g++ that compiles what CubeCL writes.
const COMPILER: u32 = 12;

/// Finds g++, or installs it where that may be done.
///
/// # Errors
///
/// There is none, or it is too old.
pub fn compiler() -> Result<()> {
    if !remedy::is_program("g++") {
        match remedy::of_compiler(&Means::probe()) {
            Remedy::Install { sudo } => apt::install("no C++ compiler", &["g++"], sudo)?,
            Remedy::TellUser(advice) => bail!("no C++ compiler for the CUDA emulator: {advice}"),
            Remedy::UnpackSwiftShader => unreachable!("it is no compiler"),
        }
    }
    let output = Command::new("g++").args(["-dumpfullversion", "-dumpversion"]).output().context("starting g++")?;
    check_version(String::from_utf8_lossy(&output.stdout).trim())
}

fn check_version(version: &str) -> Result<()> {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= COMPILER),
        "g++ {version} is too old for the CUDA emulator: install g++ {COMPILER} or later"
    );
    Ok(())
}

/// A symbolic link that may be there.
fn link(library: &Path, name: &Path) -> Result<()> {
    if fs::read_link(name).is_ok_and(|there| there == library) {
        return Ok(());
    }
    let _ = fs::remove_file(name);
    #[cfg(unix)]
    std::os::unix::fs::symlink(library, name).with_context(|| format!("linking {}", name.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_version;

    #[test]
    fn an_old_compiler_is_named() {
        assert!(check_version("12.2.0").is_ok() && check_version("13").is_ok());
        for old in ["11.4.0", "9", ""] {
            let error = check_version(old).expect_err("it is too old").to_string();
            assert!(error.contains("g++ 12 or later"), "{error}");
        }
    }
}
