//! Where the elements of the first pass come from: from memory, or from a program that computes them.

use super::operation::{lift, lift_four};
use crate::elementwise::{Form, Inputs, Outputs, compute, compute_four};
use crate::reduce::Operation;
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
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    at: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> A {
    match source {
        Source::Stored => lift::<I, A>(stored[at as usize], operation),
        Source::Computed(form) => {
            let word = compute::<B>(inputs, outputs, at, form);
            lift::<f32, A>(f32::reinterpret(word), operation)
        }
    }
}

/// The elements from `four * 4` on as the accumulator holds them.
#[cube]
pub(super) fn element_four<I: Numeric, A: Numeric, B: Int>(
    stored: &[Vector<I, Const<4>>],
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    four: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> Vector<A, Const<4>> {
    match source {
        Source::Stored => lift_four::<I, A>(stored[four as usize], operation),
        Source::Computed(form) => {
            let words = compute_four::<B>(inputs, outputs, four, form);
            lift_four::<f32, A>(Vector::<f32, Const<4>>::reinterpret(words), operation)
        }
    }
}
