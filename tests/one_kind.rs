//! Devices of one kind, for trainings on several.

use burn::prelude::*;
use burn_deterministic::{covers, devices};

/// So many devices of one kind: adapters of CUDA or ROCm, or one adapter of wgpu's under several names, each with a queue and
/// memory of its own. Fewer where there are no more.
pub fn devices_of_one_kind(count: usize) -> Vec<Device> {
    let first = Device::default();
    #[cfg(feature = "wgpu")]
    if format!("{first:?}").contains("Wgpu") {
        use burn_dispatch::devices::{WgpuBackend, WgpuDevice, WgpuDeviceKind};
        let kinds = [WgpuDeviceKind::DefaultDevice, WgpuDeviceKind::Cpu];
        let names = [WgpuBackend::Auto, WgpuBackend::Vulkan]
            .into_iter()
            .flat_map(|backend| kinds.clone().map(|kind| Device::new(WgpuDevice::new(kind).on(backend))));
        return names.take(count).collect();
    }
    let others = devices().into_iter().filter(|device| *device != first && covers(device));
    let kind = std::mem::discriminant(&first.as_dispatch().to_owned());
    let others = others.filter(|device| std::mem::discriminant(&device.as_dispatch().to_owned()) == kind);
    [first.clone()].into_iter().chain(others).take(count).collect()
}
