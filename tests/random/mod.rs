//! Random numbers are a function of the seed and of a place in a tree of streams, and have the distribution asked for.

pub mod device_seed;
pub mod distributions;
pub mod initialize;
pub mod seeds;
