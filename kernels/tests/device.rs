//! The device of tests and benchmarks.

/// CubeCL's default device of what is compiled in. Where that are several, `BURN_DEVICE` chooses, as it does for Burn.
pub fn default_device() -> cubecl::Device {
    match std::env::var("BURN_DEVICE").as_deref() {
        Ok("wgpu" | "vulkan") => cubecl::Device::Wgpu(Default::default()),
        _ => cubecl::Device::default(),
    }
}
