//! Tests that read this crate's sources, at the place where they were built: `cargo xtask bundle` leaves them out.

mod forbidden;
mod plans;
mod subnormals;
