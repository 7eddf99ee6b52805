//! The backend itself, and its handles.

use super::host::Host;
use super::uncomputed::Quantized;
use super::{Reference, limits::not_checked};
use burn_backend::{Backend, BackendTypes, DType, DTypeUsage, DTypeUsageSet, ExecutionError, GraphUnsupported};
use burn_cubecl::CubeDevice;
use burn_ir::{BackendIr, HandleKind, TensorHandle};

impl BackendTypes for Reference {
    type Device = CubeDevice;
    type FloatTensorPrimitive = Host;
    type IntTensorPrimitive = Host;
    type BoolTensorPrimitive = Host;
    type QuantizedTensorPrimitive = Quantized;
    type GraphPrimitive = GraphUnsupported;
}

impl Backend for Reference {
    fn name(device: &CubeDevice) -> String {
        format!("reference<{device:?}>")
    }

    fn seed(_device: &CubeDevice, _seed: u64) {
        not_checked("a seed of the backend");
    }

    fn flush(_device: &CubeDevice) -> Result<(), ExecutionError> {
        Ok(())
    }

    fn dtype_usage(_device: &CubeDevice, dtype: DType) -> DTypeUsageSet {
        match dtype {
            DType::QFloat(_) => DTypeUsageSet::empty(),
            _ => DTypeUsage::Storage | DTypeUsage::Arithmetic,
        }
    }

    fn device_count(_type_id: u16) -> usize {
        1
    }
}

/// A handle is the tensor, of whatever kind: they share a type.
impl BackendIr for Reference {
    type Handle = HandleKind<Self>;

    fn float_tensor(handle: TensorHandle<Self::Handle>) -> Host {
        tensor_of(handle.handle)
    }

    fn int_tensor(handle: TensorHandle<Self::Handle>) -> Host {
        tensor_of(handle.handle)
    }

    fn bool_tensor(handle: TensorHandle<Self::Handle>) -> Host {
        tensor_of(handle.handle)
    }

    fn quantized_tensor(handle: TensorHandle<Self::Handle>) -> Quantized {
        match handle.handle {
            HandleKind::Quantized(tensor) => tensor,
            _ => not_checked("a quantized tensor"),
        }
    }

    fn float_tensor_handle(tensor: Host) -> Self::Handle {
        HandleKind::Float(tensor)
    }

    fn int_tensor_handle(tensor: Host) -> Self::Handle {
        HandleKind::Int(tensor)
    }

    fn bool_tensor_handle(tensor: Host) -> Self::Handle {
        HandleKind::Bool(tensor)
    }

    fn quantized_tensor_handle(tensor: Quantized) -> Self::Handle {
        HandleKind::Quantized(tensor)
    }
}

/// The tensor of a handle.
pub(crate) fn tensor_of(handle: HandleKind<Reference>) -> Host {
    match handle {
        HandleKind::Float(tensor) | HandleKind::Int(tensor) | HandleKind::Bool(tensor) => tensor,
        HandleKind::Quantized(tensor) => match tensor {},
    }
}
