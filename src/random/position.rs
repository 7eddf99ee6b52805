//! Where in its program a thread issued an operation.
//!
//! Burn's stream runs operations later than they are issued, on a thread of the device, so a seed set between two
//! operations cannot be told from one set before both by when they run. But burn-fusion gives every tensor a number from
//! one ascending counter when the operation that makes it is issued: a seed notes the counter, and an operation belongs
//! to the last seed noted before its output's number.

use burn_cubecl::{CubeDevice, fusion::FusionCubeRuntime};
use burn_fusion::client::GlobalFusionClient;
use burn_ir::TensorId;
use core::cell::Cell;
use cubecl::device::CpuDevice;
use std::sync::OnceLock;

thread_local! {
    static ISSUED: Cell<Option<TensorId>> = const { Cell::new(None) };
}

/// The current value of burn-fusion's counter.
pub(super) fn now() -> TensorId {
    // Every client reads the one counter. This one is for a device that no CubeCL runtime here brings up, and is never
    // sent anything.
    static CLIENT: OnceLock<GlobalFusionClient<FusionCubeRuntime>> = OnceLock::new();
    CLIENT.get_or_init(|| GlobalFusionClient::new(CubeDevice::Cpu(CpuDevice))).create_empty_handle()
}

/// Runs `body`, which executes an operation whose (first) output is `output`.
pub(crate) fn issued<T>(output: Option<TensorId>, body: impl FnOnce() -> T) -> T {
    struct Reset(Option<TensorId>);
    impl Drop for Reset {
        fn drop(&mut self) {
            ISSUED.set(self.0);
        }
    }
    let _reset = Reset(ISSUED.replace(output));
    body()
}

/// The position of the operation being run, where it came over Burn's stream.
pub(super) fn of_operation() -> Option<TensorId> {
    ISSUED.get()
}
