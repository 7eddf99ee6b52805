//! Matrix products.

use super::{Output, operand, products, run};
use crate::context;
use crate::settings::{Guarantee, determinism};
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::matmul::{self, tensor_cores::sums};
use burn_std::calculate_matmul_output;
use cubecl::ir::{ElemType, FloatKind};
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
    let products = products(&lhs.device);
    multiplied(operation, lhs, rhs, plain, |client, lhs, rhs| {
        match lhs.dtype == rhs.dtype && are_on_tensor_cores(client, lhs.dtype)? {
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

/// Whether products of this type run on the device's tensor cores. Their bits are those of some generations of GPUs.
fn are_on_tensor_cores(client: &Client, dtype: ElemType) -> Result<bool, KernelError> {
    let settings = determinism();
    let is_asked = match dtype {
        ElemType::Float(FloatKind::F16 | FloatKind::BF16) => true,
        ElemType::Float(FloatKind::F32) => settings.tensor_float_32,
        _ => false,
    };
    if !is_asked || settings.guarantee != Guarantee::RunToRun {
        return Ok(false);
    }
    // What is launched to ask the device is no part of the operation that asks first.
    context::scoped(|context| &mut context.launches, None, || sums(client, dtype)).map(|sums| sums.is_some())
}
