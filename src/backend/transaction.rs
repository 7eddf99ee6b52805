//! Reads of several tensors at once: the default body, one read after the other.

use super::Deterministic;
use burn_backend::ops::TransactionOps;
use burn_cubecl::CubeBackend;

impl TransactionOps<Self> for Deterministic<CubeBackend> {}
