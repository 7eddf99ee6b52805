//! Reductions of tensors whose axes were moved and joined have the bits of reductions of copies.

use crate::bits::{assert_same, floats};
use burn::prelude::*;

/// Does what it is given, or nothing.
type Stop<'a> = &'a dyn Fn(&dyn Fn() -> TensorData);

/// A piece of a program, which reads a tensor after each operation where it stops.
type Program = fn(&Tensor<4>, Stop) -> Vec<TensorData>;

/// The channels to the front, and all else joined.
fn flat(x: Tensor<4>, stop: Stop) -> Tensor<2> {
    let [a, b, c, d] = x.dims();
    let moved = x.swap_dims(0, 1);
    stop(&|| moved.clone().into_data());
    moved.reshape([b, a * c * d])
}

fn statistics(x: &Tensor<4>, stop: Stop) -> Vec<TensorData> {
    let channels = x.dims()[1];
    let mean = flat(x.clone(), stop).mean_dim(1);
    stop(&|| mean.clone().into_data());
    let centred = x.clone() - mean.clone().reshape([1, channels, 1, 1]);
    stop(&|| centred.clone().into_data());
    let squares = centred.clone() * centred;
    stop(&|| squares.clone().into_data());
    let variance = flat(squares, stop).mean_dim(1);
    vec![mean.into_data(), variance.into_data()]
}

/// Sums of what lives on, of what is reduced twice, and by another order of the axes.
fn others(x: &Tensor<4>, stop: Stop) -> Vec<TensorData> {
    let [a, b, c, d] = x.dims();
    let twice = x.clone() * 2.0;
    stop(&|| twice.clone().into_data());
    let lives = flat(twice.clone(), stop).sum_dim(1);
    stop(&|| lives.clone().into_data());
    let both = flat(twice + 1.0, stop);
    stop(&|| both.clone().into_data());
    let (sum, product) = (both.clone().sum_dim(1), both.prod_dim(1));
    // Axes of the reduction, and of what is kept, that are not in order.
    let backwards = (x.clone() * 0.5).permute([1, 3, 0, 2]);
    stop(&|| backwards.clone().into_data());
    let backwards = backwards.reshape([b, d * a * c]).sum_dim(1);
    let kept = (x.clone() * 0.5).permute([2, 1, 0, 3]).reshape([c, b, a * d]).sum_dim(2);
    // Another axis than the joined one, and other axes joined.
    let rows = (x.clone() * 3.0).swap_dims(0, 1).reshape([b, a * c * d]).sum_dim(0);
    let first = (x.clone() * 3.0).swap_dims(0, 1).reshape([b * a, c * d]).sum_dim(1);
    let moved = (x.clone() * 4.0).swap_dims(0, 1);
    let results = [lives, sum, product, backwards, rows, first].map(Tensor::into_data);
    results.into_iter().chain([kept.into_data(), moved.into_data()]).collect()
}

#[test]
fn reductions_of_what_is_moved_have_the_bits_of_reductions_of_copies() {
    let device = crate::deterministic_device();
    for shape in [[2, 3, 4, 5], [5, 7, 9, 11], [1, 3, 8, 8], [3, 1, 8, 8], [2, 3, 1, 1], [9, 4, 40, 31]] {
        let x = Tensor::<4>::from_data(floats(shape), &device);
        let programs: [(&str, Program); 2] = [("statistics", statistics), ("others", others)];
        for (name, program) in programs {
            let in_one = program(&x, &|_| ());
            let apart = program(&x, &|read| drop(read()));
            for (index, (apart, in_one)) in apart.iter().zip(&in_one).enumerate() {
                assert_same(&format!("{name} of {shape:?}: {index}"), apart, in_one);
            }
        }
    }
}
