//! Updates at indices against their references.

mod edges;
mod orders;
mod plans;
mod types;

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::gather;
use burn_deterministic_kernels::index_check::Flags;
use burn_deterministic_kernels::scatter::{self, Addressing, Indexed, Operands, Plan, Problem, Update, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::{bf16, f16};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

const I64: ElemType = ElemType::Int(IntKind::I64);

const NUMERIC: [Update; 5] = [Update::Assign, Update::Add, Update::Mul, Update::Min, Update::Max];

/// Indices of which about one in sixteen is outside `0..rows`, on either side.
pub fn random_indices(seed: u64, len: usize, rows: usize) -> Vec<i32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let outside = |draw: u32| if draw & 1 == 0 { -1 - (draw >> 20) as i32 } else { rows as i32 + (draw >> 20) as i32 };
    (0..len)
        .map(|_| match (rng.random::<u32>(), rng.random::<u32>()) {
            (which, draw) if which % 16 == 0 => outside(draw),
            (_, draw) => (draw as usize % rows.max(1)) as i32,
        })
        .collect()
}

pub fn wide(indices: &[i32]) -> Vec<i64> {
    indices.iter().map(|&index| i64::from(index)).collect()
}

/// The update's operation on `f32`, as the contract states it.
pub fn combine(update: Update) -> impl Fn(f32, f32) -> f32 {
    move |left, right| match update {
        Update::Assign => right,
        Update::Add => left + right,
        Update::Mul => left * right,
        Update::Min if right.is_nan() || (right < left && !left.is_nan()) => right,
        Update::Max if right.is_nan() || (right > left && !left.is_nan()) => right,
        Update::Min | Update::Max => left,
        Update::Or => f32::from(left != 0.0 || right != 0.0),
    }
}

/// An update by the plan for it.
fn updated(
    client: &Client,
    addressing: Addressing,
    [tensor, indices, values]: [TensorHandle; 3],
    update: Update,
) -> Result<TensorHandle, KernelError> {
    scatter::update(client, addressing, Operands { tensor, indices, values }, update, None)
}

/// An update of f32 along the middle axis of `shape`, with an index for each value or for each position.
fn problem([outer, rows, inner]: [usize; 3], positions: usize, indexed: Indexed, update: Update) -> Problem {
    Problem { outer, rows, positions, inner, indexed, update, dtype: F32 }
}

fn check_scatter(client: &Client, shape @ [outer, rows, inner]: [usize; 3], positions: usize, update: Update) {
    let (into, from) = (outer * rows * inner, outer * positions * inner);
    let (tensor, mut values) = (random_values(1, into), random_values(2, from));
    if update == Update::Mul {
        // Close to 1: long products of others become subnormal, which some devices flush.
        values.iter_mut().for_each(|value| *value = 0.9375 + *value / 16.0);
    }
    let indices = random_indices(3, from, rows);
    let want = reference::scatter(shape, &tensor, &wide(&indices), &values, combine(update));
    let plans = Plan::candidates(&problem(shape, positions, Indexed::Value, update));
    assert!(plans.len() > 1, "{shape:?}: {plans:?}");
    for plan in plans {
        let got = scatter::update(
            client,
            Addressing::Elements { dim: 1 },
            Operands {
                tensor: upload(client, &tensor, &shape, F32),
                indices: upload(client, &indices, &[outer, positions, inner], I32),
                values: upload(client, &values, &[outer, positions, inner], F32),
            },
            update,
            Some(plan),
        );
        println!("scatter {update:?} of {positions} into {shape:?} by {plan:?}");
        assert_bits(&download(client, got.unwrap()), &want);
    }
}

/// Rows along the middle axis of `shape`, updated at `indices` by every plan, against the reference.
fn check_rows(client: &Client, shape @ [outer, rows, inner]: [usize; 3], indices: &[i32], update: Update) {
    let positions = indices.len();
    let tensor = random_values(4, outer * rows * inner);
    let mut values = random_values(5, outer * positions * inner);
    if update == Update::Mul {
        values.iter_mut().for_each(|value| *value = 0.9375 + *value / 16.0);
    }
    let want = reference::select_assign(shape, &tensor, &wide(indices), &values, combine(update));
    for plan in Plan::candidates(&problem(shape, positions, Indexed::Position, update)) {
        println!("select_assign {update:?} of {positions} into {shape:?} by {plan:?}");
        let got = scatter::update(
            client,
            Addressing::Rows { dim: 1 },
            Operands {
                tensor: upload(client, &tensor, &shape, F32),
                indices: upload(client, indices, &[positions], I32),
                values: upload(client, &values, &[outer, positions, inner], F32),
            },
            update,
            Some(plan),
        );
        assert_bits(&download(client, got.unwrap()), &want);
    }
}

fn whole_column(client: &Client) -> TensorHandle {
    upload(client, &[1.0f32, 2.0], &[2, 1], F32)
}
