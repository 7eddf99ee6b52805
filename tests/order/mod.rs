//! The order of an operation is a function of shape, parameters and type: not of layout, of neighbours in a kernel, or of how it is
//! composed.

pub mod attention;
pub mod channels;
pub mod checked;
pub mod cumulative;
pub mod fusion;
pub mod groups;
pub mod layout;
pub mod modules;
pub mod moved;
pub mod products;
pub mod rows;
pub mod slices;
pub mod sorting;
