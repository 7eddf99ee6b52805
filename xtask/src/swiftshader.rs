//! SwiftShader, a software Vulkan driver that needs no installation.
//!
//! Debian ships it inside the package chromium-common. apt-get fetches packages for any user, given folders of its
//! own for the package lists, and dpkg-deb unpacks them anywhere.

use std::env::consts::ARCH;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{self, succeed};

/// SwiftShader, unpacked.
pub struct SwiftShader {
    /// The driver's manifest, which names its library relative to itself.
    pub manifest: PathBuf,
    /// The folder of a Vulkan loader.
    pub loader_folder: PathBuf,
}

impl SwiftShader {
    fn under(root: &Path) -> Self {
        Self {
            manifest: root.join("usr/lib/chromium/vk_swiftshader_icd.json"),
            loader_folder: root.join("usr/lib").join(format!("{ARCH}-linux-gnu")),
        }
    }

    fn is_complete(&self) -> bool {
        self.manifest.exists()
            && self.manifest.with_file_name("libvk_swiftshader.so").exists()
            && self.loader_folder.join("libvulkan.so.1").exists()
    }
}

/// SwiftShader in the target folder, fetched and unpacked on the first call.
pub fn unpacked() -> Result<SwiftShader> {
    let target = workspace::target()?;
    let root = target.join("swiftshader");
    let driver = SwiftShader::under(&root);
    if !driver.is_complete() {
        eprintln!("unpacking SwiftShader, a software Vulkan driver, into {}", root.display());
        // Under another name until complete, so that an interrupted fetch is not taken for a driver.
        let partial = target.join("swiftshader.partial");
        for folder in [&root, &partial] {
            remove(folder)?;
        }
        fetch(&partial)?;
        fs::rename(partial.join("root"), &root).with_context(|| format!("naming {}", root.display()))?;
        remove(&partial)?;
        ensure!(driver.is_complete(), "swiftshader: chromium-common unpacked at {} lacks it", root.display());
    }
    Ok(driver)
}

/// Fetches the packages into `folder` and unpacks them into its subfolder `root`.
fn fetch(folder: &Path) -> Result<()> {
    let packages = folder.join("packages");
    for subfolder in ["packages", "lists/partial", "cache/archives/partial"] {
        let path = folder.join(subfolder);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
    }
    // Lists of our own even where the system has some: those may name versions that the archive no longer has.
    let mut update = apt_get(folder);
    update.arg("update");
    // A source of the user's that cannot be reached does not matter here, the packages being Debian's.
    if let Err(error) = succeed(&mut update) {
        eprintln!("warning: {error:#}");
    }
    succeed(apt_get(folder).args(["download", "chromium-common", "libvulkan1"]).current_dir(&packages))?;
    for entry in fs::read_dir(&packages).with_context(|| format!("listing {}", packages.display()))? {
        let package = entry?.path();
        succeed(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder.join("root")))?;
    }
    Ok(())
}

/// apt-get with its state under `folder`, leaving stdout to our caller.
fn apt_get(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").arg("--option=Acquire::Retries=3");
    for (option, subfolder) in [("Dir::State::Lists", "lists"), ("Dir::Cache", "cache")] {
        command.arg(format!("--option={option}={}", folder.join(subfolder).display()));
    }
    command.stdout(io::stderr());
    command
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.with_context(|| format!("removing {}", folder.display())),
    }
}
