//! Scans: cumulative sums, products, minima and maxima along an axis.

use super::{Output, operand, run};
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// A cumulative operation along one axis.
type Scan = fn(&Client, TensorHandle, usize) -> Result<TensorHandle, KernelError>;

/// Accumulates along `axis`.
pub(in crate::backend) fn along(
    operation: &'static str,
    scan: Scan,
    tensor: CubeTensor,
    axis: usize,
    plain: impl FnOnce(CubeTensor, usize) -> CubeTensor,
) -> CubeTensor {
    let output = Output::like(&tensor, tensor.shape());
    run(operation, &[&tensor], output, |client| scan(client, operand(&tensor), axis), || plain(tensor.clone(), axis))
}
