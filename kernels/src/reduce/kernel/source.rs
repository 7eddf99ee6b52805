//! Where the elements of the first pass come from: from memory, or from a program that computes them.

use super::accumulator::lift_lanes;
use crate::elementwise::{Form, Inputs, Outputs, compute};
use crate::reduce::operation::Operation;
use cubecl::prelude::*;

/// Where elements come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// From memory.
    Stored,
    /// From a program, which computes each element as it is read. Elements are numbered in the order of its shape.
    Computed(Form),
}

/// Vector `at` of elements as the accumulator holds them.
#[cube]
pub(super) fn elements<I: Numeric, A: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    at: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> Vector<A, N> {
    match source {
        Source::Stored => lift_lanes::<I, A, N>(stored[at as usize], operation),
        Source::Computed(form) => {
            let words = compute::<B, f32, N>(inputs, outputs, at, form);
            lift_lanes::<f32, A, N>(Vector::<f32, N>::reinterpret(words), operation)
        }
    }
}
