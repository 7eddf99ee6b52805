//! The device side.

mod accumulator;
pub mod extreme;
pub mod four_elements;
pub mod single;
pub mod source;
