//! Weights are compared by digest, and parameter by parameter.

pub mod compare;
pub mod digest;
