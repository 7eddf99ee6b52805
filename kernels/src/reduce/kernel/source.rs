//! Where the elements of the first pass come from: from memory, or from a program that computes them.

use super::accumulator::{lift, lift_vector};
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

/// Element `at` as the accumulator holds it.
#[cube]
pub(super) fn element<I: Numeric, A: Numeric, B: Int>(
    stored: &[I],
    inputs: &Inputs<B, Const<1>>,
    outputs: &mut Outputs<B, Const<1>>,
    at: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> A {
    match source {
        Source::Stored => lift::<I, A>(stored[at as usize], operation),
        Source::Computed(form) => {
            let word = compute::<B, Const<1>>(inputs, outputs, at, form);
            lift::<f32, A>(f32::reinterpret(word.extract(0usize)), operation)
        }
    }
}

/// The elements from `four * 4` on as the accumulator holds them.
#[cube]
pub(super) fn element_vector<I: Numeric, A: Numeric, B: Int>(
    stored: &[Vector<I, Const<4>>],
    inputs: &Inputs<B, Const<4>>,
    outputs: &mut Outputs<B, Const<4>>,
    four: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> Vector<A, Const<4>> {
    match source {
        Source::Stored => lift_vector::<I, A>(stored[four as usize], operation),
        Source::Computed(form) => {
            let words = compute::<B, Const<4>>(inputs, outputs, four, form);
            lift_vector::<f32, A>(Vector::<f32, Const<4>>::reinterpret(words), operation)
        }
    }
}
