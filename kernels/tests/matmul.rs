//! Matmul kernels against their references.
