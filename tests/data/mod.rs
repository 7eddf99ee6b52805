//! The data loader gives the same batches with any number of workers, and goes on where it left off.

pub mod adapters;
pub mod batchers;
pub mod epochs;
pub mod kill;
pub mod loader;
pub mod loader_streams;
pub mod padding;
pub mod positions;
pub mod sampling;
pub mod stages;
pub mod stream;
pub mod workers;
