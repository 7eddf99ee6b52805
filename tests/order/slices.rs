//! Slices that are assigned and added, and moves between operations, have the bits of a kernel each, in one kernel and in parts.

use super::rows::{self, Program, check};
use crate::bits::floats;
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::{DType, FloatDType, activation, s};

/// Steps of a sequence.
const STEPS: usize = 24;

/// A sequence of rows of `x`, each step another multiple.
fn sequence(x: &Tensor<2>) -> Tensor<3> {
    let [rows, columns] = x.dims();
    let multiples = Tensor::<3>::from_data(floats([1, STEPS, 1]), &x.device()).cast(x.dtype());
    x.clone().reshape([rows, 1, columns]) * multiples
}

/// A sequence as a matrix.
fn flat(sequence: &Tensor<3>) -> Tensor<2> {
    sequence.clone().flatten(0, 1)
}

/// As the gradient of a loop over steps: what each step has, in zeros, is added to what those before it have.
fn added(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let steps = sequence(x);
    let mut total = steps.clone();
    for step in (0..STEPS).rev() {
        let step = step as i64;
        let slice = steps.clone().slice(s![.., step..step + 1, ..]);
        stop(&flat(&slice));
        let gradient = steps.zeros_like().slice_assign(s![.., step..step + 1, ..], slice);
        stop(&flat(&gradient));
        total = total + gradient;
        stop(&flat(&total));
    }
    vec![flat(&total)]
}

/// Parts of several places, along every axis, from the end on, with steps, backwards, and all of it.
fn parts(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let steps = sequence(x);
    let slices = [
        s![.., -5..-1, ..].to_vec(),
        s![.., 0..3, ..].to_vec(),
        s![0..1, .., ..].to_vec(),
        s![.., .., -1..].to_vec(),
        s![.., 1..9;2, ..].to_vec(),
        s![.., 1..9;-2, ..].to_vec(),
        s![.., 2..6;-1, ..].to_vec(),
        s![..;-1, 2..6, ..].to_vec(),
        s![..;-1, .., ..].to_vec(),
        s![0..1, 3..4].to_vec(),
        s![.., 3..4].to_vec(),
        s![.., .., ..].to_vec(),
    ];
    let mut total = steps.clone();
    for slice in slices {
        let part = steps.clone().slice(&slice[..]) * 2.0;
        stop(&flat(&part));
        let assigned = steps.zeros_like().slice_assign(&slice[..], part);
        stop(&flat(&assigned));
        total = total + assigned;
        stop(&flat(&total));
    }
    vec![flat(&total)]
}

/// Slices of tensors that live on, a number in place of a slice, and a slice that is taken behind that.
fn shared(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let steps = sequence(x);
    let value = steps.clone().slice(s![.., 0..2, ..]) * 3.0;
    stop(&flat(&value));
    let assigned = steps.clone().slice_assign(s![.., 4..6, ..], value.clone());
    stop(&flat(&assigned));
    let sum = assigned.clone() + steps.clone();
    stop(&flat(&sum));
    // A slice that two read.
    let twice = sum.clone().slice_assign(s![.., 7..9, ..], value.clone()) + assigned;
    stop(&flat(&twice));
    let again = twice.clone().slice_assign(s![.., 9..11, ..], value);
    stop(&flat(&again));
    let mut gradient = again + twice;
    stop(&flat(&gradient));
    let mut read = Vec::new();
    for step in (0..4i64).rev() {
        let place = s![.., step..step + 1, ..];
        let slice = gradient.clone().slice(place);
        let others = gradient.clone().slice_assign(place, slice.zeros_like());
        stop(&flat(&others));
        let slice = gradient.slice(place);
        stop(&flat(&slice));
        read.push(flat(&slice) * 0.5);
        gradient = others;
    }
    read.extend([flat(&gradient), flat(&sum)]);
    read
}

/// Attention's projections, whose heads are moved to the front.
fn heads(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let columns = columns.min(100);
    let x = x.clone().slice([0..rows, 0..columns]);
    let width = 8;
    let all = Tensor::<2>::from_data(floats([3 * columns, width]), &x.device()).cast(x.dtype());
    let bias = Tensor::<2>::from_data(floats([1, width]), &x.device()).cast(x.dtype());
    let head = |n: usize| {
        let product = x.clone().matmul(all.clone().slice(n * columns..(n + 1) * columns));
        stop(&product);
        let sum = product + bias.clone();
        stop(&sum);
        sum.reshape([rows, 2, width / 2]).swap_dims(0, 1)
    };
    let (q, k, v) = (head(0), head(1), head(2));
    let scores = activation::softmax(q.clone().matmul(k.clone().transpose()), 2);
    stop(&flat(&scores));
    let context = scores.matmul(v.clone());
    stop(&flat(&context));
    vec![flat(&context.swap_dims(0, 1)), flat(&q), flat(&k), flat(&v)]
}

/// A result that is moved, moved on, read and freed, while operations beside it go on.
fn moved(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let sum = x.clone() + 1.0;
    stop(&sum);
    let turned = sum.clone().reshape([columns, rows]);
    let product = sum.clone() * x.clone();
    stop(&product);
    let back = turned.clone().transpose();
    drop(turned);
    let difference = product - sum.clone();
    stop(&difference);
    // The last use of what has been moved.
    let last = sum * difference.clone();
    stop(&last);
    let first = difference.clone().slice(0..1);
    let total = difference.sum_dim(0);
    stop(&total);
    vec![back, last, first, total]
}

const PROGRAMS: [(&str, Program); 5] =
    [("added", added), ("parts", parts), ("shared", shared), ("heads", heads), ("moved", moved)];

/// Reads the results of each program.
pub(super) fn read_all(device: &Device) {
    rows::read_all(&PROGRAMS, device);
}

#[test]
fn slices_and_moves_have_the_same_bits_however_they_are_cut() {
    check(&PROGRAMS, |x| x, &crate::deterministic_device());
}

#[test]
fn slices_and_moves_of_half_types_have_the_same_bits_however_they_are_cut() {
    let device = crate::deterministic_device();
    for (dtype, half) in [(DType::F16, FloatDType::F16), (DType::BF16, FloatDType::BF16)] {
        if !device.supports_dtype(dtype) {
            skip(format_args!("the device has no {dtype:?}"));
            continue;
        }
        check(&PROGRAMS, |x| x.cast(half), &device);
    }
}

/// What is added has the numbers that a loop over elements has.
#[test]
fn slices_are_added_where_they_belong() {
    let device = crate::deterministic_device();
    let [rows, columns] = [2, 4];
    let x = Tensor::<2>::from_data(floats([rows, columns]), &device);
    let read = |tensor: Tensor<2>| tensor.into_data().try_to_vec::<f32>().expect("floats");
    let steps = read(flat(&sequence(&x)));
    let want: Vec<_> = steps.iter().map(|step| (step + step).to_bits()).collect();
    // Each other step has added 0, which changes no number.
    let [got] = added(&x, &|_| ()).try_into().expect("one result");
    assert_eq!(read(got).into_iter().map(f32::to_bits).collect::<Vec<_>>(), want);
}
