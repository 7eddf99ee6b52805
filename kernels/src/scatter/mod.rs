//! Scatter.
