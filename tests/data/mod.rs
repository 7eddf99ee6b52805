//! The data loader gives the same batches with any number of workers, and goes on where it left off.

pub mod batchers;
pub mod loader;
pub mod loader_streams;
pub mod positions;
pub mod workers;
