//! The format of a recording, and the comparison of two.

mod format;
mod synthetic;
