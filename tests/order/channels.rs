//! Reductions of what is moved, joined or not, with the kernel that computes it and without a copy, have the bits of a kernel each.

use super::moved::stop;
use crate::bits::{assert_same, floats};
use burn::prelude::*;

/// Reads a tensor where each operation is to have a kernel of its own.
struct Kernels {
    apart: bool,
}

impl Kernels {
    fn of<const D: usize>(&self, tensor: Tensor<D>) -> Tensor<D> {
        stop(tensor, self.apart)
    }
}

/// Of images by channel, as an operation of burn-nn's batch norm sees them.
fn rows(x: Tensor<4>) -> Tensor<2> {
    let [samples, channels, height, width] = x.dims();
    x.swap_dims(0, 1).reshape([channels, samples * height * width])
}

/// One value a channel.
fn wide(x: Tensor<2>) -> Tensor<4> {
    let [channels, _] = x.dims();
    x.reshape([1, channels, 1, 1])
}

type Program = fn(&Tensor<4>, &Kernels) -> Vec<TensorData>;

fn read<const D: usize>(tensor: Tensor<D>) -> TensorData {
    tensor.into_data()
}

/// The gradients of a batch norm.
fn gradients(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let gradient = kernels.of(kernels.of(x.clone() * 2.0) + 1.0);
    let normal = kernels.of(x.clone() - 0.25);
    let by_channel = kernels.of(rows(gradient.clone()));
    let products = kernels.of(rows(gradient.clone() * normal.clone()));
    let [beta, gamma] = [by_channel.clone(), products.clone()].map(|moved| kernels.of(moved.sum_dim(1)));
    let scale = wide(kernels.of(products.mean_dim(1)));
    let shift = wide(kernels.of(by_channel.mean_dim(1)));
    let difference = kernels.of(gradient - shift);
    let part = kernels.of(normal * scale);
    let input = kernels.of(difference - part);
    vec![read(beta), read(gamma), read(input)]
}

/// What is moved is a result too.
fn lives_on(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let moved = rows(kernels.of(x.clone() * 3.0));
    let sum = kernels.of(moved.clone().sum_dim(1));
    let mean = kernels.of(moved.clone().mean_dim(1));
    let other = kernels.of(wide(mean.clone()) + x.clone());
    vec![read(sum), read(mean), read(other), read(moved)]
}

/// What is moved is read beside its mean, as by a norm of rows.
fn centred(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let active = kernels.of(x.clone() * 3.0);
    let moved = rows(active.clone());
    let mean = kernels.of(moved.clone().mean_dim(1));
    let difference = kernels.of(moved - mean);
    let more = kernels.of(active + 1.0);
    vec![read(difference), read(more)]
}

/// What is moved is taken away, and what it is computed from freed, before it is reduced.
fn taken(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let doubled = kernels.of(x.clone() * 2.0);
    let other = kernels.of(x.clone() + 0.5);
    let moved = rows(doubled.clone());
    let products = rows(kernels.of(other.clone() * doubled.clone()));
    drop(other);
    let tripled = kernels.of(doubled * 3.0);
    let sum = kernels.of(moved.clone().sum_dim(1));
    let sum_of_products = kernels.of(products.clone().sum_dim(1));
    let mean_of_products = kernels.of(products.mean_dim(1));
    let mean = kernels.of(moved.mean_dim(1));
    let late = kernels.of(tripled.clone() - wide(mean.clone()) * wide(mean_of_products));
    vec![read(sum), read(sum_of_products), read(mean), read(late), read(tripled)]
}

/// What is multiplied is moved too, and freed between the reductions of the products.
fn freed(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let sum = kernels.of(x.clone() + 0.5);
    let moved = sum.clone().swap_dims(0, 1);
    let products = rows(kernels.of(sum.clone() * x.clone()));
    let first = kernels.of(products.clone().sum_dim(1));
    drop(sum);
    let second = kernels.of(products.mean_dim(1));
    let more = kernels.of(moved.clone() * 2.0);
    vec![read(first), read(second), read(moved), read(more)]
}

/// One reduction of each, or the same twice; and a sum that nothing needs.
fn alone(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let y = kernels.of(x.clone() * 0.7);
    let [once, twice, unread] = [rows(y.clone()), rows(kernels.of(y.clone() * x.clone())), rows(y.clone())];
    let [first, second] = [twice.clone(), twice].map(|moved| kernels.of(moved.sum_dim(1)));
    let mean = kernels.of(once.mean_dim(1));
    let dropped = kernels.of(unread.clone().sum_dim(1));
    drop(dropped);
    let used = kernels.of(unread.mean_dim(1));
    let shifted = kernels.of(y - wide(used.clone()));
    vec![read(first), read(second), read(mean), read(used), read(shifted)]
}

/// Axes in another order than the tensor's are copied.
fn reversed(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let [samples, channels, height, width] = x.dims();
    if samples == 0 {
        // Burn's reshape takes a 0 for the size that the axis has.
        return vec![];
    }
    let y = kernels.of(x.clone() * 0.7);
    let moved = y.clone().permute([1, 3, 2, 0]).reshape([channels, width * height * samples]);
    let sum = kernels.of(moved.clone().sum_dim(1));
    let mean = kernels.of(moved.mean_dim(1));
    let shifted = kernels.of(y - wide(mean));
    vec![read(sum), read(shifted)]
}

/// The gradients of a batch norm of rows: axes are swapped, and none are joined.
fn of_two_axes(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let [samples, channels, height, width] = x.dims();
    if samples == 0 {
        return vec![];
    }
    let x = kernels.of(x.clone().reshape([samples * height * width, channels]));
    let gradient = kernels.of(kernels.of(x.clone() * 2.0) + 1.0);
    let normal = kernels.of(x - 0.25);
    let by_channel = kernels.of(gradient.clone().swap_dims(0, 1));
    let products = kernels.of(gradient.clone() * normal.clone()).swap_dims(0, 1);
    let beta = kernels.of(by_channel.clone().sum_dim(1));
    let gamma = kernels.of(products.clone().sum_dim(1));
    let [scale, shift] = [products, by_channel].map(|moved| kernels.of(moved.mean_dim(1)).reshape([1, channels]));
    let difference = kernels.of(gradient - shift);
    let part = kernels.of(normal * scale);
    let input = kernels.of(difference - part);
    vec![read(beta), read(gamma), read(input)]
}

/// Rows that are swapped, their mean, which is reshaped, and what reads both.
fn centred_rows(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let [samples, channels, height, width] = x.dims();
    if samples == 0 {
        return vec![];
    }
    let active = kernels.of(x.clone().reshape([samples * height * width, channels]) * 3.0);
    let moved = active.clone().swap_dims(0, 1);
    let mean = kernels.of(moved.clone().mean_dim(1));
    let flat = mean.clone().reshape([channels]);
    let difference = kernels.of(moved.clone() - mean);
    let scaled = kernels.of(difference.clone() * 2.0);
    let more = kernels.of(active + flat.clone().reshape([1, channels]));
    vec![read(difference), read(scaled), read(flat), read(more), read(moved)]
}

/// Axes that are moved and not joined: in order; in order but for one that is kept; and what lives on, or is freed between.
fn apart(x: &Tensor<4>, kernels: &Kernels) -> Vec<TensorData> {
    let y = kernels.of(x.clone() * 0.7);
    let in_order = kernels.of(y.clone() + 0.5).permute([1, 2, 3, 0]);
    let first = kernels.of(in_order.clone().sum_dim(3));
    let second = kernels.of(in_order.mean_dim(3));
    let other_order = kernels.of(y.clone() * x.clone()).permute([1, 0, 3, 2]);
    let third = kernels.of(other_order.clone().sum_dim(3));
    let fourth = kernels.of(other_order.clone().mean_dim(3));
    let along_another = kernels.of(other_order.sum_dim(1));
    let lives_on = y.clone().swap_dims(1, 3);
    let fifth = kernels.of(lives_on.clone().sum_dim(3));
    drop(y);
    let sixth = kernels.of(lives_on.clone().mean_dim(3));
    let seventh = kernels.of(lives_on * 2.0);
    [first, second, third, fourth, along_another, fifth, sixth, seventh].map(read).into()
}

const PROGRAMS: [(&str, Program); 10] = [
    ("gradients", gradients),
    ("lives_on", lives_on),
    ("centred", centred),
    ("taken", taken),
    ("freed", freed),
    ("alone", alone),
    ("reversed", reversed),
    ("of_two_axes", of_two_axes),
    ("centred_rows", centred_rows),
    ("apart", apart),
];

/// Of one element, of more than one block, of channels alone, and of none.
const SHAPES: [[usize; 4]; 7] =
    [[2, 3, 4, 5], [1, 1, 1, 1], [3, 2, 1, 7], [4, 3, 40, 40], [8, 40, 32, 32], [2, 70, 1, 1], [0, 3, 2, 2]];

/// Reads the results of each program.
pub(super) fn read_all(device: &Device) {
    for shape in SHAPES {
        for (_, program) in PROGRAMS {
            drop(program(&Tensor::from_data(floats(shape), device), &Kernels { apart: false }));
        }
    }
}

#[test]
fn what_is_moved_and_reduced_has_the_same_bits_with_a_copy_and_without() {
    let device = crate::deterministic_device();
    for shape in SHAPES {
        let x = Tensor::<4>::from_data(floats(shape), &device);
        for (name, program) in PROGRAMS {
            let [one, apart] = [false, true].map(|apart| program(&x, &Kernels { apart }));
            assert_eq!(one.len(), apart.len());
            for (index, (one, apart)) in one.iter().zip(&apart).enumerate() {
                assert_same(&format!("{name} of {shape:?}, result {index}"), apart, one);
            }
        }
    }
}
