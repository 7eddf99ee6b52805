//! Collectives. Burn's default bodies run the server that gathers gradients, which ends in [`all_reduce`].
//!
//! [`all_reduce`]: DistributedOps::all_reduce

use super::Deterministic;
use super::forward::forward;
use super::refused::{poison, refuse};
use crate::catalogue;
use burn_backend::distributed::{CollectiveTensor, DistributedOps, ReduceOperation};
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{DeviceId, TensorMetadata};
use burn_cubecl::CubeBackend;

impl DistributedOps<Self> for Deterministic<CubeBackend> {
    forward! {
        MANAGEMENT:
        fn sync_collective(device: &Device<Self>);
    }

    fn all_reduce(tensor: FloatTensor<Self>, op: ReduceOperation, device_ids: Vec<DeviceId>) -> CollectiveTensor<Self> {
        refuse(
            "all_reduce",
            &[&tensor],
            catalogue::refusal("all_reduce"),
            || {
                let reduced = CubeBackend::all_reduce(tensor.clone(), op, device_ids);
                // SAFETY: the handle goes back into a `CollectiveTensor`, which carries the same obligation.
                CollectiveTensor::new(unsafe { reduced.assume_resolved() })
            },
            |error| CollectiveTensor::new(poison(error, &tensor.device, tensor.shape(), tensor.dtype)),
        )
    }
}
