//! Recording what a program computes: [`Determinism::record`](crate::Determinism::record) and [`observe`](crate::observe()).
//!
//! ```text
//! thread of the program                      thread of a device                              thread of the writer
//! label, step, epoch, name_parameters  --->  Mark, an operation of Burn's stream
//!                                            Recorder: numbers, places, live tensors
//!                                            digests of results: launch, read  ------------>  Record -> file
//! ```
//!
//! The recorder of a device is a value of its thread: operations of one device run there one after another, in the order in
//! which each thread of the program issued them. So an operation's number is its number among those that its thread issued on
//! its device, and is the same in each run whatever Burn has cached.

mod count;
mod digests;
mod end;
mod issue;
mod kinds;
mod launches;
mod mark;
mod parameters;
mod queue;
mod recorder;
mod scope;
mod settings;
mod steps;
mod writer;

pub use scope::{Scope, epoch, label, name_parameters, step};

pub(crate) use end::begin;
pub(crate) use issue::MARK;
pub(crate) use launches::launched;
pub(crate) use recorder::{Run, Together, each_operation, ends_step, freed};
pub(crate) use scope::Steps;
pub(crate) use settings::of_environment;
pub(crate) use writer::{is_recording, prepare};
