//! The driver of a device, and its version.

use burn_cubecl::CubeDevice;
use cubecl::ir::DeviceIdentity;
use std::fs;
use std::process::Command;

/// `llvmpipe Mesa 22.3.6 (LLVM 15.0.6)`.
pub(super) fn of(device: &CubeDevice, identity: &DeviceIdentity) -> String {
    if identity.name.starts_with("CUDA emulator") {
        return compiler();
    }
    match device {
        #[cfg(feature = "wgpu")]
        CubeDevice::Wgpu(device) => graphics::driver(device, identity),
        CubeDevice::Cuda(_) => kernel_driver("/proc/driver/nvidia/version"),
        CubeDevice::Hip(_) => kernel_driver("/sys/module/amdgpu/version"),
        _ => UNKNOWN.to_owned(),
    }
}

const UNKNOWN: &str = "unknown";

/// The version of a kernel-mode driver: the first line of the file at `path`.
fn kernel_driver(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().map_or_else(|| UNKNOWN.to_owned(), |line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What compiles the kernels of the CUDA emulator, and whose functions (`exp`, `sin`) they call.
fn compiler() -> String {
    let said = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        output.map_or_else(|_| UNKNOWN.to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    format!("g++ {}, {}", said("g++", "-dumpfullversion"), said("getconf", "GNU_LIBC_VERSION"))
}

/// The file of NVRTC that this process has loaded, which has its version in its name (`libnvrtc.so.12.4.127`): kernels are
/// compiled by it, whatever the driver.
#[cfg(target_os = "linux")]
pub(super) fn nvrtc() -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut files = maps.lines().filter_map(|line| line.rsplit_once('/')).map(|(_, file)| file);
    files.find(|file| file.starts_with("libnvrtc.so")).map(str::to_owned)
}

/// Elsewhere a process does not list its libraries as files.
#[cfg(not(target_os = "linux"))]
pub(super) fn nvrtc() -> Option<String> {
    None
}

#[cfg(feature = "wgpu")]
mod graphics {
    use cubecl::future::block_on;
    use cubecl::ir::DeviceIdentity;
    use cubecl::wgpu::wgpu::{AdapterInfo, Backend, Instance, InstanceDescriptor};
    use cubecl::wgpu::{AutoGraphicsApi, WgpuBackend, WgpuDevice};
    use std::sync::{Mutex, PoisonError};

    /// Instances that adapters were listed through. They are kept, and made one at a time: the Vulkan loader crashes when
    /// instances come and go on several threads.
    static INSTANCES: Mutex<Vec<Instance>> = Mutex::new(Vec::new());

    /// The driver of the adapter that CubeCL has opened for `device`. CubeCL keeps the adapter to itself, so it is found
    /// again, by what the client says of it.
    pub(super) fn driver(device: &WgpuDevice, identity: &DeviceIdentity) -> String {
        let mut apis = apis(device.backend).into_iter().flat_map(adapters);
        let found = apis.find(|adapter| {
            adapter.name == identity.name
                && identity.fingerprint == format!("spirv_{}_{}", adapter.vendor, adapter.device)
        });
        found.map_or_else(
            || super::UNKNOWN.to_owned(),
            |AdapterInfo { driver, driver_info, .. }| format!("{driver} {driver_info}").trim().to_owned(),
        )
    }

    fn apis(backend: WgpuBackend) -> Vec<Backend> {
        match backend {
            WgpuBackend::Auto => AutoGraphicsApi::chain(),
            WgpuBackend::Vulkan => vec![Backend::Vulkan],
            WgpuBackend::Metal => vec![Backend::Metal],
            WgpuBackend::Dx12 => vec![Backend::Dx12],
            WgpuBackend::Gl => vec![Backend::Gl],
            WgpuBackend::WebGpu => vec![Backend::BrowserWebGpu],
        }
    }

    fn adapters(api: Backend) -> Vec<AdapterInfo> {
        let mut instances = INSTANCES.lock().unwrap_or_else(PoisonError::into_inner);
        let instance = Instance::new(InstanceDescriptor {
            backends: api.into(),
            ..InstanceDescriptor::new_without_display_handle()
        });
        let adapters = block_on(instance.enumerate_adapters(api.into()));
        instances.push(instance);
        adapters.iter().map(|adapter| adapter.get_info()).collect()
    }
}
