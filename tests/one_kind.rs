//! Devices of one kind, for trainings on several.

use burn::prelude::*;
use burn_backend::Device as _;
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
    // With the runtime: a `DispatchDevice` has one variant for all of CubeCL's.
    let kind = |device: &Device| device.as_dispatch().to_id().type_id;
    let others = devices().into_iter().filter(|device| *device != first && covers(device));
    let others = others.filter(|device| kind(device) == kind(&first));
    [first.clone()].into_iter().chain(others).take(count).collect()
}
