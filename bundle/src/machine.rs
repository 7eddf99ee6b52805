//! What the machine has: NVIDIA's driver, the CUDA toolkit, Vulkan. Only looks, changes nothing.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the dynamic linker looks beside `LD_LIBRARY_PATH` and its cache.
const LIBRARIES: [&str; 6] =
    ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/usr/local/lib"];

/// Where the Vulkan loader finds NVIDIA's driver.
const MANIFESTS: [&str; 5] = [
    "/usr/share/vulkan/icd.d/nvidia_icd.json",
    "/usr/share/vulkan/icd.d/nvidia_icd.x86_64.json",
    "/etc/vulkan/icd.d/nvidia_icd.json",
    "/etc/vulkan/icd.d/nvidia_icd.x86_64.json",
    "/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json",
];

/// A runtime that the programs are built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Cuda,
    Vulkan,
}

impl Runtime {
    /// Whether a device of this name, as goldens have it, is this runtime's.
    pub fn has(self, driver: &str) -> bool {
        let start = match self {
            Self::Cuda => "cuda",
            Self::Vulkan => "wgpu",
        };
        driver.starts_with(start)
    }
}

/// What was found. An `Err` says why a runtime or a tool cannot be used.
pub struct Machine {
    /// The folder of the CUDA toolkit, where there is one.
    toolkit: Option<PathBuf>,
    cuda: Result<(), String>,
    /// The manifest of the Vulkan driver.
    vulkan: Result<OsString, String>,
    /// The program `compute-sanitizer`.
    pub sanitizer: Result<PathBuf, String>,
}

impl Machine {
    pub fn probe() -> Self {
        let toolkit = toolkit();
        Self { cuda: cuda(toolkit.as_deref()), vulkan: vulkan(), sanitizer: sanitizer(toolkit.as_deref()), toolkit }
    }

    /// Why a runtime cannot be used.
    pub fn refusal(&self, runtime: Runtime) -> Option<String> {
        match runtime {
            Runtime::Cuda => self.cuda.clone().err(),
            Runtime::Vulkan => self.vulkan.clone().err(),
        }
    }

    /// Leads `command` to a runtime that can be used.
    pub fn lead(&self, command: &mut Command, runtime: Runtime) {
        match (runtime, &self.vulkan) {
            (Runtime::Vulkan, Ok(manifest)) => {
                command.env("BURN_DEVICE", "wgpu").env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
            }
            _ => {
                command.env("BURN_DEVICE", "cuda");
            }
        }
        let Some(toolkit) = &self.toolkit else { return };
        command.env("CUDA_PATH", toolkit);
        let mut folders: Vec<PathBuf> = listed("LD_LIBRARY_PATH");
        folders.extend(["lib64", "targets/x86_64-linux/lib"].map(|folder| toolkit.join(folder)));
        if let Ok(value) = env::join_paths(folders) {
            command.env("LD_LIBRARY_PATH", value);
        }
    }

    /// The facts for the report, one a line.
    pub fn facts(&self) -> Vec<String> {
        let or_reason = |result: Result<String, String>| result.unwrap_or_else(|reason| reason);
        let shown = |path: &Path| path.display().to_string();
        vec![
            format!("CUDA toolkit: {}", self.toolkit.as_deref().map_or("none found".to_owned(), shown)),
            format!("NVIDIA driver: {}", driver_version().as_deref().unwrap_or("nvidia-smi does not tell")),
            format!("CUDA: {}", or_reason(self.cuda.clone().map(|()| "driver and NVRTC found".to_owned()))),
            format!("Vulkan: {}", or_reason(self.vulkan.clone().map(|path| path.display().to_string()))),
            format!("compute-sanitizer: {}", or_reason(self.sanitizer.as_deref().map(shown).map_err(Clone::clone))),
        ]
    }
}

/// The folders in a variable.
fn listed(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

/// `CUDA_PATH`, or `/usr/local/cuda`, or the last of `/usr/local/cuda-*`, or where `nvcc` is.
fn toolkit() -> Option<PathBuf> {
    if let Some(path) = env::var_os("CUDA_PATH").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let entries = fs::read_dir("/usr/local").into_iter().flatten().flatten().map(|entry| entry.path());
    let versions =
        entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda-")));
    let unversioned = Some(PathBuf::from("/usr/local/cuda")).filter(|path| path.is_dir());
    unversioned.or_else(|| versions.max()).or_else(|| Some(program("nvcc")?.parent()?.parent()?.to_owned()))
}

/// A program in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    listed("PATH").into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The version of NVIDIA's driver, of the first GPU.
fn driver_version() -> Option<String> {
    let mut smi = Command::new(program("nvidia-smi")?);
    let output = smi.args(["--query-gpu=driver_version", "--format=csv,noheader"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Whether the dynamic linker finds a library whose name starts with `name`, given `folders` beside its own.
fn has_library(name: &str, folders: &[PathBuf]) -> bool {
    let is_in = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(name))
    };
    let cached = || {
        let cache = ["ldconfig", "/sbin/ldconfig"].map(|program| Command::new(program).arg("-p").output());
        cache.iter().flatten().any(|output| String::from_utf8_lossy(&output.stdout).contains(&format!("\t{name}")))
    };
    folders.iter().any(|folder| is_in(folder)) || LIBRARIES.iter().any(|folder| is_in(Path::new(folder))) || cached()
}

fn cuda(toolkit: Option<&Path>) -> Result<(), String> {
    let mut folders = listed("LD_LIBRARY_PATH");
    if !has_library("libcuda.so.1", &folders) {
        return Err("no CUDA driver (libcuda.so.1): install NVIDIA's driver".to_owned());
    }
    folders.extend(toolkit.iter().flat_map(|path| [path.join("lib64"), path.join("targets/x86_64-linux/lib")]));
    if !has_library("libnvrtc.so", &folders) {
        return Err("no NVRTC (libnvrtc.so): install the CUDA toolkit, or set CUDA_PATH to its folder".to_owned());
    }
    Ok(())
}

fn vulkan() -> Result<OsString, String> {
    if !has_library("libvulkan.so.1", &listed("LD_LIBRARY_PATH")) {
        return Err("no Vulkan loader (libvulkan.so.1): install libvulkan1".to_owned());
    }
    if let Some(chosen) = env::var_os("VK_DRIVER_FILES").filter(|value| !value.is_empty()) {
        return Ok(chosen);
    }
    let found = MANIFESTS.into_iter().find(|path| Path::new(path).exists());
    found.map(OsString::from).ok_or_else(|| {
        "no manifest of NVIDIA's Vulkan driver (nvidia_icd.json): install the driver's graphics libraries (in a container \
         NVIDIA_DRIVER_CAPABILITIES=all), or set VK_DRIVER_FILES"
            .to_owned()
    })
}

fn sanitizer(toolkit: Option<&Path>) -> Result<PathBuf, String> {
    let name = "compute-sanitizer";
    let in_toolkit = toolkit.into_iter().flat_map(|path| [path.join("bin").join(name), path.join(name).join(name)]);
    let found = program(name).or_else(|| in_toolkit.into_iter().find(|path| path.is_file()));
    found.ok_or_else(|| "no compute-sanitizer, neither in PATH nor in the CUDA toolkit".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let missing = || Err("it is missing".to_owned());
        Machine { toolkit: Some("/cuda".into()), cuda: Ok(()), vulkan: missing(), sanitizer: Err("none".to_owned()) }
    }

    #[test]
    fn a_runtime_that_is_missing_is_refused_with_the_reason() {
        assert_eq!(machine().refusal(Runtime::Vulkan).as_deref(), Some("it is missing"));
        assert_eq!(machine().refusal(Runtime::Cuda), None);
    }

    #[test]
    fn programs_are_led_to_their_device() {
        let variable = |runtime, name: &str| {
            let mut command = Command::new("true");
            let machine = Machine { vulkan: Ok("/driver.json".into()), ..machine() };
            machine.lead(&mut command, runtime);
            let found = command.get_envs().find(|(known, _)| *known == name);
            found.and_then(|(_, value)| Some(value?.to_string_lossy().into_owned()))
        };
        assert_eq!(variable(Runtime::Vulkan, "BURN_DEVICE").as_deref(), Some("wgpu"));
        // NVIDIA's Vulkan driver crashes where this hides the device from CUDA.
        assert_eq!(variable(Runtime::Vulkan, "CUDA_VISIBLE_DEVICES"), None);
        assert_eq!(variable(Runtime::Cuda, "BURN_DEVICE").as_deref(), Some("cuda"));
        assert!(
            variable(Runtime::Cuda, "LD_LIBRARY_PATH")
                .is_some_and(|value| value.ends_with("/cuda/targets/x86_64-linux/lib"))
        );
    }

    #[test]
    fn a_device_tells_its_runtime() {
        let (cuda, vulkan) = ("cuda: NVIDIA H100; NVRM version", "wgpu<wgsl>: NVIDIA H100; NVIDIA 570");
        assert!(Runtime::Cuda.has(cuda) && Runtime::Vulkan.has(vulkan));
        assert!(!Runtime::Cuda.has(vulkan) && !Runtime::Vulkan.has(cuda));
    }

    #[test]
    fn libraries_are_found_by_the_start_of_their_names() {
        assert!(has_library("libc.so", &[]));
        assert!(!has_library("libno-such-library.so", &[]));
    }
}
