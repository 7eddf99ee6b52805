//! What decides bits beside the program: the runtime with its compiler, the device model, and the driver with its version.
//! The only file of the tests that names runtimes.

use crate::process::{self, Program};
use cubecl::Device;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// `wgpu<wgsl>: llvmpipe (LLVM 15.0.6, 256 bits); llvmpipe Mesa 22.3.6 (LLVM 15.0.6)`.
pub fn name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    // In a process of its own: wgpu tells of its driver while it sets the device up.
    NAME.get_or_init(|| Program::new("driver").run().reported("driver").to_owned())
}

/// Whether kernels run on the CUDA emulator, which refuses operations of a warp and graphs by name: kernels of plain Burn's
/// have them.
pub fn is_emulator() -> bool {
    name().starts_with("cuda: CUDA emulator")
}

/// Reports the runtime, the device model and the driver of the default device.
pub fn report() {
    let device = Device::default();
    let driver = match &device {
        Device::Wgpu(_) => graphics_driver(),
        Device::Cuda(_) => kernel_driver("/proc/driver/nvidia/version"),
        Device::Hip(_) => kernel_driver("/sys/module/amdgpu/version"),
        other => panic!("no test runs on {other:?}"),
    };
    let client = device.client();
    let name = &client.properties().identity.name;
    let driver = if name.starts_with("CUDA emulator") { compiler() } else { driver };
    process::report("driver", format!("{}: {name}; {driver}", client.name()));
}

/// What compiles the kernels of the CUDA emulator, and whose functions (`exp`, `sin`) they call.
fn compiler() -> String {
    let said = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        let output =
            output.unwrap_or_else(|error| panic!("`{program} {argument}`, which tells a driver's version: {error}"));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    format!("g++ {}, {}", said("g++", "-dumpfullversion"), said("getconf", "GNU_LIBC_VERSION"))
}

#[cfg(feature = "wgpu")]
fn graphics_driver() -> String {
    use cubecl::wgpu::{AutoGraphicsApi, RuntimeOptions, WgpuDevice, init_setup};
    let info = init_setup::<AutoGraphicsApi>(&WgpuDevice::default(), RuntimeOptions::default()).adapter.get_info();
    format!("{} {}", info.driver, info.driver_info)
}

#[cfg(not(feature = "wgpu"))]
fn graphics_driver() -> String {
    unreachable!("wgpu is not compiled in")
}

/// The version of a driver of the operating system's kernel, from its first line.
fn kernel_driver(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .next()
        .map_or_else(|| "no driver".to_owned(), |line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}
