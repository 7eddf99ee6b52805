//! Batches in shards: the same bits on any number of devices.

mod fold;
pub mod group;
mod group_failures;
mod group_refusals;
pub mod learner;
mod loader;
pub mod models;
mod refusals;
pub mod training;
