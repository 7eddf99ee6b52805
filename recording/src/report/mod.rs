//! A comparison for people: as text, and as a page.

mod escape;
mod graph;
mod html;
mod picture;
mod text;
mod words;

pub use html::html;
