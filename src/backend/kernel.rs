//! From Burn's tensors to the kernels' operands and back.

use super::refused::refused;
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// Wraps a kernel's result as a tensor that lives where `like` lives.
pub(super) fn tensor(output: TensorHandle, like: &CubeTensor, dtype: burn_backend::DType) -> CubeTensor {
    CubeTensor::new(like.client.clone(), output.handle, *output.metadata, like.device.clone(), dtype)
}
