#![doc = include_str!("../README.md")]

pub mod backend;
mod burn_loader;
pub mod catalogue;
mod check;
pub mod checkpoint;
mod compare;
mod context;
pub mod data;
mod device;
mod digest;
mod enable;
mod environment;
mod error;
mod exit;
#[cfg(doctest)]
mod guides;
mod initialize;
mod known_answer;
mod memory;
mod module;
mod observe;
mod panic;
mod promise;
mod random;
mod record;
mod reference;
#[cfg(feature = "train")]
pub mod rl;
mod route;
mod settings;
pub mod shards;
mod violation;
mod worker_streams;

pub use backend::Deterministic;
pub use burn_deterministic_kernels::arithmetic::MultiplyAdd;
pub use burn_deterministic_kernels::known_answer::{Arithmetic, Casts, Rounding, Subnormals};
pub use burn_deterministic_recording::{Environment, EnvironmentDifference, Level};
pub use check::{ReferenceCheck, Unchecked, reference_check};
pub use compare::{Comparison, Difference, ElementDifference, Form, TensorDifference, compare};
pub use device::covers;
pub use digest::{Digest, digest, digests, try_digest};
pub use enable::enable_op_determinism;
pub use environment::{device_environment, devices, environment};
pub use error::{Error, Refusal};
pub use initialize::initialize;
pub use known_answer::{device_arithmetic, require_guarantee};
pub use observe::observe;
pub use promise::{Promise, promise_deterministic, promises};
pub use random::{
    EnteredStream, RandomState, RandomStream, StreamRng, random_state, restore_random_state, set_random_seed,
};
pub use record::{Scope, epoch, label, name_parameters, step};
pub use settings::{Determinism, Guarantee, OnViolation, is_op_determinism_enabled};
