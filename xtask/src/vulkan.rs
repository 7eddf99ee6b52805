//! Which Vulkan device programs compute on.
//!
//! In this order: what the user's variables say; a GPU with a driver; an installed software driver; and where there
//! is none of these, a software driver that is installed or unpacked first (module `remedy`).

use std::fs;

use anyhow::{Context, Result, bail};

use crate::environment::Environment;
use crate::remedy::{Means, Remedy, of_vulkan};
use crate::system::{Gpu, System, variable};
use crate::{apt, swiftshader, workspace};

/// SwiftShader, unpacked, whatever else the machine has.
pub fn swiftshader() -> Result<Environment> {
    let mut environment = Environment::default();
    take_swiftshader(&mut environment, &System::probe())?;
    Ok(environment)
}

/// Finds a device, installing a software driver where there is none, and returns the variables that lead to it.
pub fn find() -> Result<Environment> {
    let mut environment = Environment::default();
    let mut system = System::probe();
    if choose(&system) == Choice::Missing {
        match of_vulkan(&Means::probe()) {
            Remedy::Install { sudo } => {
                apt::install("no Vulkan driver", &["mesa-vulkan-drivers", "libvulkan1"], sudo)?;
                system = System::probe();
            }
            Remedy::UnpackSwiftShader => {
                take_swiftshader(&mut environment, &system).context(
                    "no Vulkan driver, and none could be unpacked without root; \
                     type `sudo apt-get install mesa-vulkan-drivers libvulkan1`, then run this again",
                )?;
                return Ok(environment);
            }
            Remedy::TellUser(advice) => bail!("no Vulkan device: {advice}"),
        }
    }
    match choose(&system) {
        Choice::User(name) => eprintln!("device: as {name} says"),
        Choice::Native => eprintln!("device: the system's own graphics interface"),
        Choice::Gpu { driver } => eprintln!("device: GPU, Vulkan driver {driver}"),
        Choice::Software { driver } => {
            eprintln!("device: the processor, software Vulkan driver {driver}");
            if !system.gpus.is_empty() {
                eprintln!("note: this machine has a GPU, but no Vulkan driver for it");
            }
            select_software(&mut environment);
        }
        Choice::Missing => bail!("no Vulkan device, although its packages are installed: {system:?}"),
    }
    quiet_mesa(&mut environment, &system)?;
    Ok(environment)
}

fn take_swiftshader(environment: &mut Environment, system: &System) -> Result<()> {
    let driver = swiftshader::unpacked()?;
    eprintln!("device: the processor, software Vulkan driver SwiftShader");
    // Loaders before 1.3.207 know only the second name.
    environment.set("VK_DRIVER_FILES", &driver.manifest);
    environment.set("VK_ICD_FILENAMES", &driver.manifest);
    select_software(environment);
    if !system.loader {
        environment.search_libraries_in(driver.loader_folder);
    }
    quiet_mesa(environment, system)
}

/// Leads to the software Vulkan driver, past OpenGL.
///
/// Where Vulkan has software drivers only, CubeCL settles on OpenGL if that shows anything but software, as in a
/// virtual machine with an OpenGL GPU, and then finds no device `Cpu` there. So OpenGL gets no driver.
fn select_software(environment: &mut Environment) {
    environment.set("CUBECL_WGPU_DEFAULT_DEVICE", "Cpu");
    environment.set("__EGL_VENDOR_LIBRARY_FILENAMES", "/dev/null");
}

/// Mesa complains in every process for which XDG_RUNTIME_DIR is not set, as it is not in containers.
fn quiet_mesa(environment: &mut Environment, system: &System) -> Result<()> {
    if system.os == "linux" && variable("XDG_RUNTIME_DIR").is_none() {
        let folder = workspace::target()?.join("runtime");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        environment.set("XDG_RUNTIME_DIR", folder);
    }
    Ok(())
}

/// What a machine computes on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    /// What the user's variable of this name says.
    User(&'static str),
    /// Metal on macOS, DirectX on Windows: always there.
    Native,
    /// A GPU through this Vulkan driver.
    Gpu { driver: String },
    /// The processor through this Vulkan driver.
    Software { driver: String },
    /// Nothing yet.
    Missing,
}

/// Software drivers, by the beginning of their names: Mesa's lavapipe and SwiftShader.
const SOFTWARE: [&str; 2] = ["lvp", "vk_swiftshader"];

fn choose(system: &System) -> Choice {
    if let Some(name) = system.user_choice {
        return Choice::User(name);
    }
    if matches!(system.os, "macos" | "windows") {
        return Choice::Native;
    }
    if !system.loader {
        return Choice::Missing;
    }
    let driver = |wanted: &dyn Fn(&str) -> bool| system.drivers.iter().find(|driver| wanted(driver)).cloned();
    if let Some(driver) = driver(&|driver| system.gpus.iter().any(|gpu| drives(driver, *gpu))) {
        return Choice::Gpu { driver };
    }
    match driver(&|driver| begins_with_one_of(driver, &SOFTWARE)) {
        Some(driver) => Choice::Software { driver },
        None => Choice::Missing,
    }
}

/// Whether a driver is for a GPU: packages install the manifests of many, whatever the machine has.
///
/// Two are left out on purpose. Mesa's `virtio` finds a device in few of the virtual machines that have its render
/// node, and its `dzn` does not conform to Vulkan, for which wgpu passes it over.
fn drives(driver: &str, gpu: Gpu) -> bool {
    let families: &[&str] = match gpu {
        Gpu::Nvidia => &["nvidia"],
        Gpu::RenderNode { vendor: Some(0x1002) } => &["radeon", "amd"],
        Gpu::RenderNode { vendor: Some(0x10de) } => &["nouveau"],
        Gpu::RenderNode { vendor: Some(0x8086) } => &["intel"],
        Gpu::RenderNode { vendor: Some(_) } => &[],
        Gpu::RenderNode { vendor: None } => &["asahi", "broadcom", "freedreno", "panfrost", "powervr"],
    };
    begins_with_one_of(driver, families)
}

fn begins_with_one_of(driver: &str, families: &[&str]) -> bool {
    families.iter().any(|family| driver.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: Gpu = Gpu::RenderNode { vendor: Some(0x8086) };

    /// A container with Debian's mesa-vulkan-drivers and libvulkan1, and no GPU.
    fn container() -> System {
        System {
            os: "linux",
            user_choice: None,
            loader: true,
            drivers: ["intel_hasvk_icd", "intel_icd", "lvp_icd", "radeon_icd"].map(String::from).to_vec(),
            gpus: Vec::new(),
            cuda: None,
            rocm: None,
        }
    }

    fn software(driver: &str) -> Choice {
        Choice::Software { driver: driver.to_owned() }
    }

    #[test]
    fn drivers_of_absent_gpus_do_not_count() {
        assert_eq!(choose(&container()), software("lvp_icd"));
    }

    #[test]
    fn a_gpu_with_its_driver_comes_before_software() {
        let system = System { gpus: vec![INTEL], ..container() };
        assert_eq!(choose(&system), Choice::Gpu { driver: "intel_hasvk_icd".to_owned() });

        let mut system = System { gpus: vec![Gpu::Nvidia], ..container() };
        system.drivers.push("nvidia_icd".to_owned());
        assert_eq!(choose(&system), Choice::Gpu { driver: "nvidia_icd".to_owned() });
    }

    #[test]
    fn a_gpu_without_its_driver_leaves_software() {
        for gpu in [Gpu::Nvidia, Gpu::RenderNode { vendor: Some(0x10de) }, Gpu::RenderNode { vendor: None }] {
            assert_eq!(choose(&System { gpus: vec![gpu], ..container() }), software("lvp_icd"));
        }
    }

    #[test]
    fn a_virtual_machines_gpu_leaves_software() {
        let mut system = System { gpus: vec![Gpu::RenderNode { vendor: Some(0x1af4) }], ..container() };
        system.drivers.push("virtio_icd".to_owned());
        assert_eq!(choose(&system), software("lvp_icd"));
    }

    #[test]
    fn an_installed_swiftshader_is_a_software_driver() {
        let system = System { drivers: vec!["vk_swiftshader_icd".to_owned()], ..container() };
        assert_eq!(choose(&system), software("vk_swiftshader_icd"));
    }

    #[test]
    fn a_bare_machine_has_no_device() {
        assert_eq!(choose(&System { loader: false, drivers: Vec::new(), ..container() }), Choice::Missing);
        assert_eq!(choose(&System { drivers: Vec::new(), ..container() }), Choice::Missing);
    }

    #[test]
    fn drivers_are_of_no_use_without_the_loader() {
        assert_eq!(choose(&System { loader: false, gpus: vec![INTEL], ..container() }), Choice::Missing);
    }

    #[test]
    fn the_user_comes_first() {
        let system = System { user_choice: Some("VK_DRIVER_FILES"), gpus: vec![INTEL], ..container() };
        assert_eq!(choose(&system), Choice::User("VK_DRIVER_FILES"));
        let bare = System { loader: false, drivers: Vec::new(), ..system };
        assert_eq!(choose(&bare), Choice::User("VK_DRIVER_FILES"));
    }

    #[test]
    fn macos_and_windows_need_no_vulkan() {
        for os in ["macos", "windows"] {
            assert_eq!(choose(&System { os, loader: false, drivers: Vec::new(), ..container() }), Choice::Native);
        }
    }
}
