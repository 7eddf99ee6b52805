//! What the machine offers: the Vulkan loader, drivers, GPUs. Only looks, changes nothing.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

/// The variables by which a user picks a device or a driver.
const USER_CHOICES: [&str; 3] = ["CUBECL_WGPU_DEFAULT_DEVICE", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// The facts from which a device is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The operating system, spelled as in `std::env::consts::OS`.
    pub os: &'static str,
    /// The variable by which the user already picked a device or a driver.
    pub user_choice: Option<&'static str>,
    /// Whether the Vulkan loader is installed.
    pub loader: bool,
    /// The installed Vulkan drivers for this processor, by manifest name without suffixes: `lvp_icd`.
    pub drivers: Vec<String>,
    /// The GPUs whose device files this user can reach.
    pub gpus: Vec<Gpu>,
    /// The library of NVIDIA's CUDA driver.
    pub cuda: Option<PathBuf>,
    /// The library of AMD's ROCm.
    pub rocm: Option<PathBuf>,
}

/// A GPU, as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpu {
    /// `/dev/nvidia0` and on: NVIDIA's own kernel module.
    Nvidia,
    /// `/dev/dri/renderD128` and on, with the PCI vendor id; on a system-on-chip there is no PCI device.
    RenderNode { vendor: Option<u16> },
}

impl System {
    /// Looks at this machine.
    pub fn probe() -> Self {
        Self {
            os: env::consts::OS,
            user_choice: USER_CHOICES.into_iter().find(|name| variable(name).is_some()),
            loader: library("libvulkan.so.1").is_some(),
            drivers: manifest_folders().iter().flat_map(|folder| names(folder)).filter_map(|n| driver(&n)).collect(),
            gpus: gpus(),
            cuda: library("libcuda.so.1"),
            rocm: library("libamdhip64.so"),
        }
    }
}

/// A variable's value. Set to nothing counts as not set.
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The folders of a variable that lists folders, or of its default.
fn folders_of(name: &str, default: &str) -> Vec<PathBuf> {
    env::split_paths(&variable(name).unwrap_or_else(|| default.into())).collect()
}

/// A shared library, where the dynamic linker finds it.
fn library(name: &str) -> Option<PathBuf> {
    library_folders().into_iter().map(|folder| folder.join(name)).find(|path| path.exists())
}

/// Where the dynamic linker finds shared libraries, on the distributions we know.
fn library_folders() -> Vec<PathBuf> {
    let multiarch = format!("{}-linux-gnu", env::consts::ARCH);
    let mut folders = folders_of("LD_LIBRARY_PATH", "");
    for root in ["/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64"] {
        folders.push(PathBuf::from(root));
        folders.push(Path::new(root).join(&multiarch));
    }
    // Where Windows has its driver in its subsystem for Linux, and ROCm its libraries.
    folders.extend(["/usr/lib/wsl/lib", "/opt/rocm/lib"].map(PathBuf::from));
    folders
}

/// Whether a library that is named as CUDA's driver is the emulator, to which a shell was led before.
pub fn is_emulator(library: &Path) -> bool {
    let file = fs::canonicalize(library).ok();
    file.is_some_and(|file| file.file_name().is_some_and(|name| name == "libcuda_emulator.so"))
}

/// Whether the dynamic linker finds NVRTC, by the names that cudarc tries.
pub fn has_nvrtc() -> bool {
    let names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11"];
    // SAFETY: a library of NVIDIA's, as CubeCL would load it; loading it starts nothing.
    names.iter().any(|name| unsafe { libloading::Library::new(*name) }.is_ok())
}

/// Where the Vulkan loader looks for driver manifests: the XDG configuration and data folders, and `/etc`.
fn manifest_folders() -> Vec<PathBuf> {
    let home = env::home_dir().unwrap_or_default();
    let under_home = |name, folder| variable(name).map_or_else(|| home.join(folder), PathBuf::from);
    let mut bases = vec![under_home("XDG_CONFIG_HOME", ".config"), under_home("XDG_DATA_HOME", ".local/share")];
    bases.extend(folders_of("XDG_CONFIG_DIRS", "/etc/xdg"));
    bases.push(PathBuf::from("/etc"));
    bases.extend(folders_of("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    bases.push(PathBuf::from("/run/opengl-driver/share")); // NixOS
    bases.into_iter().map(|base| base.join("vulkan/icd.d")).collect()
}

/// The names in a folder, sorted; none where there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The driver that a manifest `<driver>[.<processor>].json` is for, unless it is for another processor.
fn driver(manifest: &str) -> Option<String> {
    let stem = manifest.strip_suffix(".json")?;
    match stem.split_once('.') {
        None => Some(stem.to_owned()),
        Some((driver, processor)) => (processor == env::consts::ARCH).then(|| driver.to_owned()),
    }
}

fn gpus() -> Vec<Gpu> {
    let nvidia = names(Path::new("/dev")).into_iter().filter(|name| is_numbered(name, "nvidia")).map(|_| Gpu::Nvidia);
    let nodes = names(Path::new("/dev/dri")).into_iter().filter(|name| is_numbered(name, "renderD"));
    nvidia.chain(nodes.filter(|name| can_open(name)).map(|name| Gpu::RenderNode { vendor: vendor(&name) })).collect()
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Desktop systems let only the group `render` open a render node.
fn can_open(node: &str) -> bool {
    OpenOptions::new().read(true).write(true).open(Path::new("/dev/dri").join(node)).is_ok()
}

/// The PCI vendor id of a render node, which the kernel spells `0x8086`.
fn vendor(node: &str) -> Option<u16> {
    let id = fs::read_to_string(Path::new("/sys/class/drm").join(node).join("device/vendor")).ok()?;
    u16::from_str_radix(id.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_emulator_is_known_by_its_file() {
        let folder = env::temp_dir().join(format!("xtask-{}-system", std::process::id()));
        let (library, link) = (folder.join("libcuda_emulator.so"), folder.join("libcuda.so.1"));
        fs::create_dir_all(&folder).expect("a temporary folder");
        fs::write(&library, "").expect("a temporary folder");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&library, &link).expect("a temporary folder");
        assert!(is_emulator(&link));
        assert!(!is_emulator(Path::new("/usr/lib/libcuda.so.1")));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_manifest_names_its_driver() {
        assert_eq!(driver("nvidia_icd.json").as_deref(), Some("nvidia_icd"));
        assert_eq!(driver(&format!("lvp_icd.{}.json", env::consts::ARCH)).as_deref(), Some("lvp_icd"));
    }

    #[test]
    fn a_manifest_for_another_processor_is_no_driver() {
        assert_eq!(driver("lvp_icd.another.json"), None);
        assert_eq!(driver("lvp_icd.json.disabled"), None);
    }

    #[test]
    fn only_numbered_device_files_are_gpus() {
        assert!(is_numbered("nvidia0", "nvidia") && is_numbered("renderD128", "renderD"));
        assert!(!is_numbered("nvidiactl", "nvidia") && !is_numbered("nvidia", "nvidia"));
        assert!(!is_numbered("card0", "renderD"));
    }
}
