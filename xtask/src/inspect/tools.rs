//! NVIDIA's compiler and disassembler, fetched from PyPI at pinned versions into the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{self, succeed};

/// The wheels of Linux on x86-64, for pip.
pub const PINS: &str = "\
nvidia-cuda-nvrtc-cu12==12.9.86 --hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-runtime-cu12==12.9.79 --hash=sha256:25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
nvidia-cuda-nvcc-cu12==12.9.86 --hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
nvidia-cuda-nvdisasm==13.5.37 --hash=sha256:d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca
";

/// The compiler's version, for the report.
pub const COMPILER: &str = "NVRTC 12.9.86";

/// Where NVIDIA's tools lie.
pub struct Tools {
    /// The library of the compiler.
    pub nvrtc: PathBuf,
    /// The folders of CUDA's headers: of the runtime, and of the compiler, which has what `mma.h` includes.
    pub includes: [PathBuf; 2],
    /// The disassembler.
    pub nvdisasm: PathBuf,
}

impl Tools {
    fn under(root: &Path) -> Self {
        Self {
            nvrtc: root.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
            includes: ["cuda_runtime", "cuda_nvcc"].map(|package| root.join("nvidia").join(package).join("include")),
            nvdisasm: root.join("nvidia/cu13/bin/nvdisasm"),
        }
    }

    /// The tools in a folder, where these versions were fetched before.
    pub fn kept(root: &Path) -> Option<Self> {
        let present = fs::read_to_string(root.join("pins.txt")).ok()?;
        (present == PINS).then(|| Self::under(root))
    }

    /// The tools in the target folder, fetched on the first call.
    ///
    /// # Errors
    ///
    /// On a system that they are not for, without Python's pip, or where PyPI cannot be reached.
    pub fn fetched() -> Result<Self> {
        ensure!(
            cfg!(all(target_os = "linux", target_arch = "x86_64")),
            "inspect: NVRTC is pinned for Linux on x86-64 only; run this command there"
        );
        let folder = workspace::target()?.join("inspect");
        let root = folder.join("tools");
        if let Some(tools) = Self::kept(&root) {
            return Ok(tools);
        }
        eprintln!("fetching NVRTC and nvdisasm (140 MB) from PyPI into {}", root.display());
        // Under another name until complete, so that an interrupted fetch is not taken for the tools.
        let partial = folder.join("tools.partial");
        for folder in [&root, &partial] {
            if folder.exists() {
                fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
            }
        }
        fetch(&partial)?;
        fs::rename(&partial, &root).with_context(|| format!("naming {}", root.display()))?;
        Ok(Self::under(&root))
    }
}

fn fetch(folder: &Path) -> Result<()> {
    let wheels = folder.join("wheels");
    fs::create_dir_all(&wheels).with_context(|| format!("creating {}", wheels.display()))?;
    let pins = folder.join("pins.txt");
    fs::write(&pins, PINS).with_context(|| format!("writing {}", pins.display()))?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--retries=1",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]);
    pip.arg("--require-hashes").arg("--dest").arg(&wheels).arg("--requirement").arg(&pins);
    succeed(&mut pip).context("inspect: the tools were not fetched; python3 with pip is needed, and PyPI")?;
    for wheel in fs::read_dir(&wheels).with_context(|| format!("listing {}", wheels.display()))? {
        succeed(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel?.path()).arg(folder))?;
    }
    fs::remove_dir_all(&wheels).with_context(|| format!("removing {}", wheels.display()))?;
    make_executable(&Tools::under(folder).nvdisasm)
}

/// Archives of Python lose the mode of a file.
#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> Result<()> {
    Ok(())
}
