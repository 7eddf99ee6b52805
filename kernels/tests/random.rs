//! Random kernels against their references.
