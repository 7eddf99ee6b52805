//! What an update does to an element.

/// How a value is combined with the element it updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// The value replaces the element.
    Assign,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// The smaller, NaN if either is.
    Min,
    /// The larger, NaN if either is.
    Max,
    /// Logical or of booleans stored as integers.
    Or,
}
