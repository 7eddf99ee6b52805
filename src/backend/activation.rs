//! Activations. Burn's default bodies compose them of elementwise operations and reductions.

use super::Deterministic;
use burn_backend::ops::ActivationOps;
use burn_cubecl::CubeBackend;

impl ActivationOps<Self> for Deterministic<CubeBackend> {}
