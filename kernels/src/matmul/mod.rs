//! Matmul.
