//! Matrix products.

use super::{Output, operand, products, run};
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::matmul;
use burn_std::calculate_matmul_output;

/// The batched product `[.., m, k] x [.., k, n]`, whose batch axes broadcast.
pub(in crate::backend) fn product(
    operation: &'static str,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    // Shapes that do not fit together are the kernel's to refuse.
    let shape = calculate_matmul_output(&lhs.shape(), &rhs.shape()).unwrap_or_else(|_| lhs.shape());
    run(
        operation,
        &[&lhs, &rhs],
        Output::like(&lhs, shape),
        |client| matmul::matmul(client, products(&lhs.device), operand(&lhs), operand(&rhs), None),
        || plain(lhs.clone(), rhs.clone()),
    )
}
