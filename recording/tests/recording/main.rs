//! The format of a recording, and the comparison of two.

mod around;
mod description;
mod epochs;
mod format;
mod lengths;
mod outcomes;
mod overwritten;
mod page;
mod repeats;
mod resumed;
mod resumed_steps;
#[path = "../../../kernels/tests/skip.rs"]
mod skip;
mod states;
mod synthetic;
mod threads;
