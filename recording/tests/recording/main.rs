//! The format of a recording, and the comparison of two.

mod around;
mod epochs;
mod format;
mod lengths;
mod outcomes;
mod overwritten;
mod page;
mod repeats;
mod resumed;
mod states;
mod synthetic;
mod threads;
