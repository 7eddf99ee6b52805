//! Reductions of tensors whose axes were moved and joined have the bits of reductions of copies.

use crate::bits::{assert_same, floats};
use burn::prelude::*;

/// A program on a tensor, which reads each result at once where it is `apart`.
type Program = fn(Tensor<4>, bool) -> Vec<TensorData>;

/// A tensor, read where the program is `apart`: what reads it and what computes it share no kernel then.
pub(super) fn stop<const D: usize>(tensor: Tensor<D>, apart: bool) -> Tensor<D> {
    if apart {
        drop(tensor.clone().into_data());
    }
    tensor
}

/// The channels to the front, and all else joined.
fn flat(x: Tensor<4>, apart: bool) -> Tensor<2> {
    let [a, b, c, d] = x.dims();
    stop(x.swap_dims(0, 1), apart).reshape([b, a * c * d])
}

/// As in Burn's batch norm.
fn statistics(x: Tensor<4>, apart: bool) -> Vec<TensorData> {
    let channels = x.dims()[1];
    let mean = stop(flat(x.clone(), apart).mean_dim(1), apart);
    let centred = stop(x - mean.clone().reshape([1, channels, 1, 1]), apart);
    let squares = stop(centred.clone() * centred, apart);
    let variance = flat(squares, apart).mean_dim(1);
    vec![mean.into_data(), variance.into_data()]
}

/// What is moved for the last time, what lives on, what is reduced twice, and what nobody reads.
fn uses(x: Tensor<4>, apart: bool) -> Vec<TensorData> {
    let lives = stop(x.clone() * 2.0, apart);
    let sum = stop(flat(lives.clone(), apart).sum_dim(1), apart);
    let both = stop(flat(lives.clone() + 1.0, apart), apart);
    let (total, product) = (both.clone().sum_dim(1), both.prod_dim(1));
    let unread = flat(lives.clone() * 0.5, apart).sum_dim(1);
    drop(unread);
    let moved = stop(lives * 4.0, apart).swap_dims(0, 1);
    let last = flat(x, apart).prod_dim(1);
    let results = [sum, total, product, last].map(Tensor::into_data);
    results.into_iter().chain([moved.into_data()]).collect()
}

/// Other moves, other joins, other reductions.
fn others(x: Tensor<4>, apart: bool) -> Vec<TensorData> {
    let [a, b, c, d] = x.dims();
    let halves = || stop(x.clone() * 0.5, apart);
    // Reduced axes that are not in order, kept ones that are not, and several kept ones.
    let backwards = halves().permute([1, 3, 0, 2]).reshape([b, d * a * c]).sum_dim(1);
    let kept = halves().permute([2, 1, 0, 3]).reshape([c, b, a * d]).sum_dim(2);
    let two = halves().permute([0, 2, 1, 3]).reshape([a, c, b * d]).mean_dim(2);
    // All axes joined, and none.
    let all = halves().swap_dims(0, 1).reshape([a * b * c * d]).sum_dim(0);
    let none = halves().swap_dims(0, 1).reshape([b, a, c, d]).sum_dim(3);
    // Another axis than the joined one, and other axes joined.
    let rows = halves().swap_dims(0, 1).reshape([b, a * c * d]).sum_dim(0);
    let first = halves().swap_dims(0, 1).reshape([b * a, c * d]).sum_dim(1);
    // Two moves.
    let twice = stop(halves().swap_dims(0, 1), apart).swap_dims(2, 3).reshape([b, a * c * d]).sum_dim(1);
    let largest = flat(halves(), apart).max_dim(1);
    let flat = [backwards, rows, first, twice, largest].map(Tensor::into_data);
    let rest = [kept.into_data(), two.into_data(), all.into_data(), none.into_data()];
    flat.into_iter().chain(rest).collect()
}

#[test]
fn reductions_of_what_is_moved_have_the_bits_of_reductions_of_copies() {
    let device = crate::deterministic_device();
    let shapes = [[2, 3, 4, 5], [5, 7, 9, 11], [3, 3, 3, 3], [1, 3, 8, 8], [3, 1, 8, 8], [2, 3, 1, 1], [9, 4, 40, 31]];
    for shape in shapes {
        let programs: [(&str, Program); 3] = [("statistics", statistics), ("uses", uses), ("others", others)];
        for (name, program) in programs {
            let results = |apart| program(Tensor::from_data(floats(shape), &device), apart);
            for (index, (apart, in_one)) in results(true).iter().zip(&results(false)).enumerate() {
                assert_same(&format!("{name} of {shape:?}: {index}"), apart, in_one);
            }
        }
    }
}
