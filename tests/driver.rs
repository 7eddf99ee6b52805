//! What decides bits beside the program: the runtime with its compiler, the device model, and the driver with its version.

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

/// Reports the runtime, the device model and the driver of the default device.
pub fn report() {
    let environment = environment();
    let entry = |name| environment.get(name).expect("a device of a runtime");
    process::report("driver", format!("{}: {}; {}", entry("runtime"), entry("device"), entry("driver")));
}
