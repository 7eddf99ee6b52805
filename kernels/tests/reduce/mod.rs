//! Reductions against their references.

mod edges;
mod extremes;
mod orders;
mod plans;
mod types;

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::order::COLUMNS_BLOCK as BLOCK;
use burn_deterministic_kernels::reduce::extreme::{Extreme, search};
use burn_deterministic_kernels::reduce::plan::{Cube, Kind, Pass, Plan, Problem, View, plan};
use burn_deterministic_kernels::reduce::{self, Operation, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::Client;
use cubecl::std::tensor::TensorHandle;
use std::fmt::Debug;

const F16: ElemType = ElemType::Float(FloatKind::F16);

const F64: ElemType = ElemType::Float(FloatKind::F64);

const I64: ElemType = ElemType::Int(IntKind::I64);

const U8: ElemType = ElemType::UInt(UIntKind::U8);

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Around every size at which the order changes shape.
const LENGTHS: [usize; 20] =
    [1, 2, 3, 63, 64, 65, 97, 127, 128, 129, 1000, 4032, 4095, 4096, 4097, 4160, 4161, 10_007, 65_537, 300_000];

/// The values of each output of `values` in the shape `shape`, in the order of the contract.
fn outputs_of<T: Copy>(values: &[T], shape: &[usize], axes: &[usize]) -> Vec<Vec<T>> {
    let outputs = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).product::<usize>();
    let mut found = vec![Vec::new(); outputs];
    for (place, &value) in values.iter().enumerate() {
        let (mut rest, mut output, mut scale) = (place, 0, 1);
        for axis in (0..shape.len()).rev() {
            let index = rest % shape[axis];
            rest /= shape[axis];
            if !axes.contains(&axis) {
                output += index * scale;
                scale *= shape[axis];
            }
        }
        found[output].push(value);
    }
    found
}

/// Every plan for the reduction of a dense tensor of `shape` over `axes`, those of both machines among them.
#[track_caller]
fn plans(shape: &[usize], axes: &[usize], kind: Kind) -> Vec<Plan> {
    let strides: Vec<usize> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
    let problem = Problem::new(shape, &strides, axes, kind);
    let plans = Plan::candidates(&problem);
    for machine in [Machine::Gpu, Machine::Software] {
        assert!(plans.contains(&plan(&problem, machine)), "{problem:?} on {machine:?}");
    }
    plans
}

/// A tensor with the same elements whose last axis lies outermost, with two foreign elements after each of its own.
fn scattered(client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
    let last = *shape.last().expect("an axis");
    let rows = values.len() / last;
    let mut memory = vec![f32::NAN; values.len() * 3];
    for (place, &value) in values.iter().enumerate() {
        memory[3 * ((place % last) * rows + place / last)] = value;
    }
    let mut strides = vec![3; shape.len()];
    for axis in (0..shape.len() - 1).rev().skip(1) {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    strides[shape.len() - 1] = 3 * rows;
    TensorHandle::new(client.create_from_slice(bytemuck::cast_slice(&memory)), shape.to_vec(), strides, F32)
}

/// `values` with zeros of both signs, and with a NaN in one element of seven where `with_nan`.
fn with_specials(mut values: Vec<f32>, with_nan: bool) -> Vec<f32> {
    for (i, value) in values.iter_mut().enumerate() {
        match i % 7 {
            1 => *value = -0.0,
            2 => *value = 0.0,
            3 if with_nan && i % 5 == 0 => *value = f32::from_bits(0xffc1_2345),
            _ => {}
        }
    }
    values
}

#[track_caller]
fn assert_equal<T: PartialEq + Debug>(got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "length");
    if let Some(i) = (0..got.len()).find(|&i| got[i] != want[i]) {
        panic!("element {i} of {}: got {:?}, want {:?}", got.len(), got[i], want[i]);
    }
}
