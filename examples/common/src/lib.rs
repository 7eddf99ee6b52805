//! What the examples share, so that each of them is a model and its training: the data, the command line, progress and
//! plots, and the weights as files that can be compared.

mod arguments;
mod bar;
mod confusion;
mod digits;
mod help;
#[cfg(test)]
#[allow(dead_code, reason = "each package's tests read a part of what it reads")]
#[path = "../../../xtask/src/markdown.rs"]
mod markdown;
mod mnist;
mod picture;
mod plot;
mod resume;
mod run;
mod text;
mod weights;

pub use arguments::{Arguments, DigitSet};
pub use bar::Bar;
pub use confusion::Confusion;
pub use digits::{Batch, Digit, DigitBatcher, Digits};
pub use help::{DIGITS, Help, LEFT, TEXT};
pub use run::Run;
pub use text::{CONSTITUTION, Characters, PassageBatcher, Passages, TextBatch, Words};
pub use weights::{Difference, first_difference, save_weights};
