//! Scatter kernels against their references.
