//! Several products at once have the bits of each by itself.

use super::{bits, transpose, view};
use crate::harness::*;
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::matmul::plan::{CubeTile, Plan};
use burn_deterministic_kernels::matmul::{self, reference};
use burn_deterministic_kernels::order::BLOCK;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The factors of a product and its sizes, contiguous or each transposed in memory.
struct Pair {
    lhs: Vec<f32>,
    rhs: Vec<f32>,
    sizes: [usize; 3],
    transposed: [bool; 2],
}

impl Pair {
    fn new(seed: u64, [m, k, n]: [usize; 3], transposed: [bool; 2]) -> Self {
        Self { lhs: random_values(seed, m * k), rhs: random_values(seed + 1000, k * n), sizes: [m, k, n], transposed }
    }

    fn upload(&self, client: &Client) -> [TensorHandle; 2] {
        let [m, k, n] = self.sizes;
        let matrix = |values: &[f32], rows: usize, columns: usize, transposed: bool| match transposed {
            false => upload(client, values, &[rows, columns], F32),
            true => {
                let values = transpose(values, rows, columns);
                view(&upload(client, &values, &[columns, rows], F32), &[rows, columns], &[1, rows])
            }
        };
        [matrix(&self.lhs, m, k, self.transposed[0]), matrix(&self.rhs, k, n, self.transposed[1])]
    }
}

fn check(pairs: &[Pair]) {
    let client = client();
    let fma = multiply_add_of(&client);
    // A driver's compiler takes long over kernels of several products.
    let plans = [(Products::Native, None), (Products::Rounded, None), (Products::Native, Some(SINGLE))];
    for (products, plan) in plans {
        let factors = pairs.iter().map(|pair| pair.upload(&client)).collect();
        let results = matmul::matmul_each(&client, products, factors, plan).expect("valid products");
        assert_eq!(results.len(), pairs.len());
        for (index, (pair, result)) in pairs.iter().zip(results).enumerate() {
            let [m, _, n] = pair.sizes;
            assert_eq!(&result.shape()[..], [m, n], "product {index}");
            let want = reference::matmul(&pair.lhs, &pair.rhs, pair.sizes, fma.of(products));
            assert_eq!(bits(&download(&client, result)), bits(&want), "product {index}, {:?} by {plan:?}", pair.sizes);
        }
    }
}

/// One output a unit, which a software driver would not choose.
const SINGLE: Plan = Plan { tile: CubeTile::Single { sides: [8, 16], depth: 64 }, swap: false, split: false };

const LAYOUTS: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];

#[test]
fn products_of_equal_sizes() {
    // More than a launch has, of sizes with and without vectors.
    for sizes in [[16, 64, 64], [5, 7, 3]] {
        check(&(0..10).map(|seed| Pair::new(seed, sizes, LAYOUTS[0])).collect::<Vec<_>>());
        check(&(0..9).map(|seed| Pair::new(seed, sizes, LAYOUTS[seed as usize % 4])).collect::<Vec<_>>());
    }
    check(&[]);
}

#[test]
fn products_of_different_sizes_and_plans() {
    let all = [
        [16, 64, 64],
        [0, 3, 4],
        [3, 0, 4],
        [3, 4, 0],
        [16, 64, 64],
        [1, 64, 64],
        [64, 64, 1],
        [1, 64, 64],
        [16, BLOCK, 9],
        [16, BLOCK + 1, 9],
        [16, BLOCK + 1, 9],
        [600, 8, 600],
        [600, 8, 600],
        [16, 64, 64],
    ];
    check(&(0..).zip(all).map(|(seed, sizes)| Pair::new(seed, sizes, LAYOUTS[0])).collect::<Vec<_>>());
}

#[test]
fn products_with_other_strides_and_batches() {
    let client = client();
    let fma = multiply_add_of(&client);
    let [m, k, n] = [4, 12, 8];
    let values = random_values(3, 6 * m * k);
    let all = upload(&client, &values, &[6, m, k], F32);
    let weights = random_values(4, 6 * k * n);
    let rhs = upload(&client, &weights, &[6, k, n], F32);
    // [2, 3, m, k] as it lies, with its batch axes swapped, and with one factor for all of an axis.
    let (row, matrix) = ([k, 1], m * k);
    let batches = |outer: usize, inner: usize, shape: [usize; 2]| {
        view(&all, &[shape[0], shape[1], m, k], &[outer, inner, row[0], row[1]])
    };
    let of_rhs = |outer: usize, inner: usize| view(&rhs, &[2, 3, k, n], &[outer, inner, n, 1]);
    let pairs = vec![
        [batches(3 * matrix, matrix, [2, 3]), of_rhs(3 * k * n, k * n)],
        [batches(matrix, 2 * matrix, [2, 3]), of_rhs(3 * k * n, k * n)],
        [batches(matrix, 2 * matrix, [2, 3]), of_rhs(k * n, 2 * k * n)],
        [batches(3 * matrix, 0, [2, 3]), of_rhs(3 * k * n, k * n)],
        [batches(3 * matrix, matrix, [2, 3]), of_rhs(0, k * n)],
        [batches(3 * matrix, matrix, [2, 3]), of_rhs(3 * k * n, k * n)],
    ];
    let factor_of = |(outer, inner): (usize, usize), [i, j]: [usize; 2]| outer * i + inner * j;
    let strides =
        [((3, 1), (3, 1)), ((1, 2), (3, 1)), ((1, 2), (1, 2)), ((3, 0), (3, 1)), ((3, 1), (0, 1)), ((3, 1), (3, 1))];
    let results = matmul::matmul_each(&client, Products::Native, pairs, Some(SINGLE)).expect("valid products");
    for (index, (result, (lhs, rhs))) in results.into_iter().zip(strides).enumerate() {
        assert_eq!(&result.shape()[..], [2, 3, m, n]);
        let got = bits(&download(&client, result));
        for (at, batch) in [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]].into_iter().enumerate() {
            let (a, b) = (factor_of(lhs, batch) * m * k, factor_of(rhs, batch) * k * n);
            let want =
                reference::matmul(&values[a..a + m * k], &weights[b..b + k * n], [m, k, n], fma.of(Products::Native));
            assert_eq!(got[at * m * n..(at + 1) * m * n], bits(&want), "product {index}, matrix {batch:?}");
        }
    }
}

#[test]
fn other_types_have_products_of_their_own() {
    let client = client();
    let integers: Vec<i32> = (0..16 * 16).map(|i: i32| i.wrapping_mul(123_456_789)).collect();
    let ints = upload(&client, &integers, &[16, 16], I32);
    let floats = upload(&client, &random_values(5, 16 * 16), &[16, 16], F32);
    let pair = |tensor: &TensorHandle| [tensor.clone(), tensor.clone()];
    let pairs = vec![pair(&ints), pair(&floats), pair(&ints), pair(&floats)];
    let together = matmul::matmul_each(&client, Products::Native, pairs, None).expect("valid products");
    let by_itself = |tensor: &TensorHandle| {
        matmul::matmul(&client, Products::Native, tensor.clone(), tensor.clone(), None).expect("a valid product")
    };
    let (of_ints, of_floats) = (by_itself(&ints), by_itself(&floats));
    for (result, (want, is_int)) in together.into_iter().zip([(&of_ints, true), (&of_floats, false)].repeat(2)) {
        assert_eq!(result.dtype, want.dtype);
        match is_int {
            true => assert_eq!(download::<i32>(&client, result), download::<i32>(&client, want.clone())),
            false => assert_eq!(bits(&download(&client, result)), bits(&download(&client, want.clone()))),
        }
    }
}

#[test]
fn a_product_that_does_not_fit_is_refused() {
    let client = client();
    let floats = |shape: &[usize]| upload(&client, &vec![1f32; shape.iter().product()], shape, F32);
    let pairs = vec![[floats(&[2, 3]), floats(&[3, 2])], [floats(&[2, 3]), floats(&[2, 3])]];
    let refused = matmul::matmul_each(&client, Products::Native, pairs, None).expect_err("sizes that do not fit");
    assert!(refused.to_string().contains("columns of lhs and rows of rhs must agree"), "{refused}");
}
