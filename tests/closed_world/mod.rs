//! Nothing runs unseen: what cannot be deterministic, or does not pass through the backend, is an error that names it.

pub mod configuration;
pub mod coverage;
pub mod custom;
pub mod guarantee;
pub mod indices;
pub mod refusals;
pub mod several_devices;
pub mod uncovered;
