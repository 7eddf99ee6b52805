//! What a program keeps does not grow, and it ends whenever it wants to.

pub mod exit;
pub mod growth;
