//! Matrix products.

use super::{Output, are_on_tensor_cores, operand, products, run};
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::matmul;
use burn_std::calculate_matmul_output;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The batched product `[.., m, k] x [.., k, n]` of integers, whose batch axes broadcast.
pub(in crate::backend) fn product(
    operation: &'static str,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let products = products(&lhs.device);
    multiplied(operation, lhs, rhs, plain, |client, lhs, rhs| matmul::matmul(client, products, lhs, rhs, None))
}

/// The same of floats, on tensor cores where they [are](are_on_tensor_cores).
pub(in crate::backend) fn float_product(
    operation: &'static str,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let (products, dtype, is_one_type) = (products(&lhs.device), lhs.dtype, lhs.dtype == rhs.dtype);
    multiplied(operation, lhs, rhs, plain, |client, lhs, rhs| {
        match is_one_type && are_on_tensor_cores(client, dtype)? {
            true => matmul::tensor_cores::matmul(client, lhs, rhs, None),
            false => matmul::matmul(client, products, lhs, rhs, None),
        }
    })
}

fn multiplied(
    operation: &'static str,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
    kernel: impl FnOnce(&Client, TensorHandle, TensorHandle) -> Result<TensorHandle, KernelError>,
) -> CubeTensor {
    // Shapes that do not fit together are the kernel's to refuse.
    let shape = calculate_matmul_output(&lhs.shape(), &rhs.shape()).unwrap_or_else(|_| lhs.shape());
    run(
        operation,
        &[&lhs, &rhs],
        Output::like(&lhs, shape),
        |client| kernel(client, operand(&lhs), operand(&rhs)),
        || plain(lhs.clone(), rhs.clone()),
    )
}
