//! Handles, which are the inner backend's.

use super::Deterministic;
use crate::memory::of_owner;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor, QuantizedTensor};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_cubecl_fusion::{CubeFusionHandle, Tiles};
use burn_ir::{BackendIr, TensorHandle};
use burn_std::Metadata;

impl BackendIr for Deterministic<CubeBackend> {
    type Handle = <CubeBackend as BackendIr>::Handle;

    fn float_tensor(handle: TensorHandle<Self::Handle>) -> FloatTensor<Self> {
        CubeBackend::float_tensor(handle)
    }

    fn int_tensor(handle: TensorHandle<Self::Handle>) -> IntTensor<Self> {
        CubeBackend::int_tensor(handle)
    }

    fn bool_tensor(handle: TensorHandle<Self::Handle>) -> BoolTensor<Self> {
        CubeBackend::bool_tensor(handle)
    }

    fn quantized_tensor(handle: TensorHandle<Self::Handle>) -> QuantizedTensor<Self> {
        CubeBackend::quantized_tensor(handle)
    }

    fn float_tensor_handle(tensor: FloatTensor<Self>) -> Self::Handle {
        handle(tensor)
    }

    fn int_tensor_handle(tensor: IntTensor<Self>) -> Self::Handle {
        handle(tensor)
    }

    fn bool_tensor_handle(tensor: BoolTensor<Self>) -> Self::Handle {
        handle(tensor)
    }

    fn quantized_tensor_handle(tensor: QuantizedTensor<Self>) -> Self::Handle {
        handle(tensor)
    }
}

/// The handle of a tensor, [owned]. Burn's own conversion copies each field.
pub(crate) fn handle(tensor: CubeTensor) -> CubeFusionHandle {
    let CubeTensor { client, handle, meta, device, dtype, qparams } = tensor;
    let is_tiled = meta.is_tiled();
    let Metadata { shape, strides, tiling, .. } = *meta;
    let tiles = is_tiled.then_some(Tiles { shape, tiling });
    owned(CubeFusionHandle { client, handle, device, dtype, strides, tiles, qparams })
}

/// The handle with the client of its [owner](of_owner).
pub(crate) fn owned(handle: CubeFusionHandle) -> CubeFusionHandle {
    CubeFusionHandle { client: of_owner(handle.client, &handle.handle), ..handle }
}
