//! Batches in shards: the same bits on any number of devices.

mod fold;
pub mod learner;
pub mod models;
mod refusals;
pub mod training;
