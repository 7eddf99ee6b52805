#![doc = include_str!("../README.md")]

mod check;
mod compile;
mod count;
mod driver;
mod exit;
mod grid;
mod memory;
mod module;
mod nvrtc;
mod queue;
mod record;
mod refused;
mod report;
mod schedule;
mod settings;
mod source;
mod status;
mod streams;
mod subnormals;

pub use report::{Finding, Kind, findings_of};
pub use settings::{Arithmetic, Counts, Findings, Settings, with_settings};
