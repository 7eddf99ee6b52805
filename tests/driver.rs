//! What decides bits beside the program: the runtime with its compiler, the device model, and the driver with its version. On
//! NVIDIA GPUs by CUDA that is also what compiles kernels, NVRTC with its version or CubeCL's LLVM.

use crate::process::{self, Program};
use burn_deterministic::environment;
use std::sync::OnceLock;

/// `wgpu<wgsl>: llvmpipe (LLVM 15.0.6, 256 bits); llvmpipe Mesa 22.3.6 (LLVM 15.0.6)`.
pub fn name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    // In a process of its own: other tests may have opened other devices.
    NAME.get_or_init(|| Program::new("driver").run().reported("driver").to_owned())
}

/// Whether kernels run on the CUDA emulator, which refuses operations of a warp and graphs by name: kernels of plain Burn's
/// have them.
pub fn is_emulator() -> bool {
    name().starts_with("cuda: CUDA emulator")
}

/// Reports the runtime, the device model, the driver of the default device, and the compiler where neither names it.
pub fn report() {
    let environment = environment();
    let entry = |name| environment.get(name).expect("a device of a runtime");
    let (runtime, device) = (entry("runtime"), entry("device"));
    let compiler = compiler(runtime, device, environment.get("nvrtc"));
    process::report("driver", format!("{runtime}: {device}; {}{compiler}", entry("driver")));
}

/// What compiles kernels for an NVIDIA GPU. Of the emulator's compiler the driver is the name, and WGSL's is in the driver.
fn compiler(runtime: &str, device: &str, nvrtc: Option<&str>) -> String {
    match (cfg!(feature = "cuda-nvrtc"), nvrtc) {
        _ if runtime != "cuda" || device.starts_with("CUDA emulator") => String::new(),
        (true, Some(library)) => format!("; NVRTC {library}"),
        (true, None) => "; NVRTC".to_owned(),
        (false, _) => "; CubeCL's LLVM".to_owned(),
    }
}

#[test]
fn what_compiles_for_nvidia_gpus_is_named() {
    let named = compiler("cuda", "NVIDIA H100", Some("libnvrtc.so.12.9.86"));
    let by_nvrtc = cfg!(feature = "cuda-nvrtc");
    assert_eq!(named, if by_nvrtc { "; NVRTC libnvrtc.so.12.9.86" } else { "; CubeCL's LLVM" });
    assert_eq!(compiler("cuda", "CUDA emulator on the CPU (sm_90)", None), "");
    assert_eq!(compiler("wgpu<wgsl>", "NVIDIA H100", None), "");
}
