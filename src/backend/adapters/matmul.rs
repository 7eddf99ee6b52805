//! Matrix products.

use super::{Output, Outputs, are_on_tensor_cores, into_handle, operand, products, run};
use burn_backend::{DType, TensorMetadata};
use burn_cubecl::CubeDevice;
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

/// Whether [`float_products`] computes products of f32 of the device, several in a launch.
pub(crate) fn share_launches(device: &CubeDevice) -> bool {
    let client = device.client();
    matmul::shares_launches(&client) && matches!(are_on_tensor_cores(&client, DType::F32), Ok(false))
}

/// The products of pairs of f32, with the bits of [`float_product`] where it uses no tensor cores: of those of equal sizes several
/// in one launch.
///
/// # Errors
///
/// When a kernel refuses operands.
pub(crate) fn float_products(device: &CubeDevice, pairs: Vec<[CubeTensor; 2]>) -> Result<Vec<CubeTensor>, KernelError> {
    let client = device.client();
    let output = |[lhs, rhs]: &[CubeTensor; 2]| {
        let shape = calculate_matmul_output(&lhs.shape(), &rhs.shape()).expect("Burn has checked the shapes");
        Output::like(lhs, shape)
    };
    let outputs: Vec<_> = pairs.iter().map(output).collect();
    let pairs = pairs.into_iter().map(|pair| pair.map(into_handle));
    let results = matmul::matmul_each(&client, products(device), pairs.collect(), None)?;
    Ok(outputs.into_iter().zip(results).map(|(output, result)| output.of(&client, result)).collect())
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
