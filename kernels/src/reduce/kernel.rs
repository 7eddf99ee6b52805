//! The device side.

pub mod accumulator;
pub mod all_blocks;
pub mod extreme;
pub mod four_elements;
pub mod short_rows;
pub mod single;
pub mod source;
