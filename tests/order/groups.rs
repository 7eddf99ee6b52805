//! Sequences that share launches, in another order than the program's, have the bits of a kernel each, one after the other.

use super::rows::{self, Program, check};
use crate::bits::floats;
use burn::prelude::*;
use burn::tensor::activation;

/// A tensor that one sequence reads late, and another one moves and frees.
fn freed(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let t = x.clone() * 3.0;
    stop(&t);
    let total = (t.clone() * x.clone()).sum().reshape([1, 1]);
    stop(&total);
    let factor = total + 1.0;
    stop(&factor);
    // Behind the factor.
    let late = (t.clone() * factor).sum().reshape([1, 1]);
    stop(&late);
    // Needs nothing that waits.
    let sum = (t.clone() + 1.0).sum_dim(0);
    stop(&sum);
    let moved = t.clone().reshape([columns, rows]);
    drop(t);
    let more = sum.clone() * 2.0;
    stop(&more);
    let other = Tensor::<2>::ones([3, 5], &x.device()) * 2.0;
    stop(&other);
    vec![late, sum, moved, more, other]
}

/// A row is read by a matrix, moved, and freed.
fn moved(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [_, columns] = x.dims();
    let row = x.clone().slice([0..1, 0..columns]) + 0.0;
    stop(&row);
    let t = row.clone() + 1.0;
    stop(&t);
    let flat = t.clone().reshape([columns, 1]);
    let sum = x.clone() + t.clone();
    drop(t);
    stop(&sum);
    // The deviation of each column is part of the kernel that divides by it.
    let deviation = (row.clone().square() + 1.0).sqrt();
    stop(&deviation);
    let quotient = sum.clone() / deviation;
    stop(&quotient);
    vec![sum, flat, quotient, row]
}

/// Gradients are clipped by their norms, and parameters of many shapes updated.
fn updates(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let shapes = [[rows, columns], [1, columns], [rows, 1], [columns, rows], [1, columns], [1, 1], [rows, columns]];
    let mut read = Vec::new();
    for (n, shape) in shapes.into_iter().enumerate() {
        let parameter = x.clone().slice([0..shape[0].min(rows), 0..shape[1].min(columns)]).sum() * (n as f32);
        let gradient = Tensor::<2>::from_data(floats([shape[0], shape[1]]), &x.device()).cast(x.dtype());
        let norm = gradient.clone().square().sum().sqrt().reshape([1, 1]);
        stop(&norm);
        let factor = (norm.add_scalar(1e-6).recip() * 5.0).clamp_max(1.0);
        stop(&factor);
        let clipped = gradient * factor;
        stop(&clipped);
        let momentum = clipped.clone() * 0.9 + clipped.clone().square() * 0.1;
        stop(&momentum);
        let updated = parameter.reshape([1, 1]) - momentum.clone() / (momentum.square().sqrt() + 1e-5) * 0.01;
        stop(&updated);
        read.push(updated);
    }
    read
}

/// Columns are normalised, statistics updated, and what is normalised goes on behind these.
fn normalised(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let mean = x.clone().mean_dim(0);
    stop(&mean);
    let difference = x.clone() - mean.clone();
    let variance = difference.square().mean_dim(0);
    stop(&variance);
    let deviation = (variance.clone() + 1e-5).sqrt();
    stop(&deviation);
    let normal = (x.clone() - mean.clone()) / deviation;
    stop(&normal);
    let running_mean = mean.clone() * 0.1 + mean.ones_like() * 0.9;
    stop(&running_mean);
    let running_variance = variance.clone() * 0.1 + variance.ones_like() * 0.9;
    stop(&running_variance);
    let active = activation::relu(normal.clone());
    stop(&active);
    // A statistic, and what a later one takes away.
    let centred = active.clone() - running_mean.clone();
    stop(&centred);
    let scale = running_mean * running_variance;
    stop(&scale);
    let scaled = centred * scale;
    stop(&scaled);
    vec![normal, active, scaled, mean, variance]
}

/// Layers of several sizes and their gradients: products, sums of columns and of rows, and sums over the layers, in turn.
fn layers(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let weight =
        |n: usize, shape| Tensor::<2>::from_data(floats(shape), &x.device()).cast(x.dtype()) * (n as f32 - 1.5);
    let mut read = Vec::new();
    let mut input: Option<Tensor<2>> = None;
    for n in 0..4 {
        let gradient = x.clone() * (n as f32 + 0.5);
        stop(&gradient);
        let weight = weight(n, [columns, if n == 2 { 3 } else { columns }]);
        let bias = gradient.clone().sum_dim(0);
        stop(&bias);
        let product = gradient.clone().matmul(weight.clone());
        stop(&product);
        let of_weight = gradient.clone().transpose().matmul(product.clone());
        stop(&of_weight);
        let of_rows = product.clone().sum_dim(1);
        stop(&of_rows);
        let moved = of_weight.clone().transpose();
        let more = product.matmul(weight.transpose()) + bias.clone();
        stop(&more);
        let sum = input.map_or(more.clone(), |before| before + more);
        stop(&sum);
        read.extend([bias * 2.0, moved + 1.0, of_rows.mean_dim(0)]);
        input = Some(sum);
    }
    // Read by a sequence that waits, and taken away by a move.
    let square = x.clone().slice([0..1, 0..columns]).square();
    let taken = x.clone() + 3.0;
    stop(&taken);
    let shifted = taken.clone() + square.clone();
    let deviation = square.clone() * square;
    let flat = taken.reshape([columns, rows]);
    read.extend([shifted, deviation, flat]);
    // Freed between a sequence that reads it and the one that both are part of.
    let doubled = x.clone() * 2.0;
    stop(&doubled);
    let sum = doubled.clone() + x.clone();
    let row = x.clone().slice([0..1, 0..columns]).matmul(weight(4, [columns, columns]));
    drop(doubled);
    read.push(sum + row);
    read.extend(input);
    read
}

/// Products that their activations overwrite, and these the next ones, in a block; and one that lives on beside its activation.
fn activations(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let weight = |shape| Tensor::<2>::from_data(floats(shape), &x.device()).cast(x.dtype());
    let more = weight([96, rows]).matmul(x.clone());
    stop(&more);
    let wide = more.matmul(weight([columns, 512]));
    stop(&wide);
    let active = activation::gelu(wide + weight([1, 512]));
    stop(&active);
    let next = active.matmul(weight([512, 512]) * 0.01);
    stop(&next);
    let chosen = activation::softmax(next / 8.0, 1);
    stop(&chosen);
    let last = chosen.matmul(weight([512, 300]));
    stop(&last);
    let twice = last.clone() * 2.0 + 1.0;
    stop(&twice);
    let total = twice.sum_dim(1);
    vec![last, total]
}

const PROGRAMS: [(&str, Program); 6] = [
    ("freed", freed),
    ("moved", moved),
    ("updates", updates),
    ("normalised", normalised),
    ("layers", layers),
    ("activations", activations),
];

/// Reads the results of each program.
pub(super) fn read_all(device: &Device) {
    rows::read_all(&PROGRAMS, device);
}

#[test]
fn sequences_have_the_same_bits_in_shared_launches_and_alone() {
    check(&PROGRAMS, |x| x, &crate::deterministic_device());
}
