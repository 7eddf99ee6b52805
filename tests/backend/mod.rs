//! Whatever way an operation takes to the backend: below the tensor API, from another process, by an extension.

pub mod autodiff_backend;
pub mod extensions;
pub mod host;
pub mod in_place;
pub mod remote;
mod streams;
mod transactions;
