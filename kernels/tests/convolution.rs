//! Convolution kernels against their references.
