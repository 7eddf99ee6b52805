//! Several products at once have the bits of each by itself.

use super::{bits, transpose, view};
use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::matmul::plan::{CubeTile, Plan};
use burn_deterministic_kernels::matmul::{self, reference};
use burn_deterministic_kernels::order::BLOCK;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

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
    let swapped = Plan { swap: true, ..SINGLE };
    let plans = [
        (Products::Native, None),
        (Products::Rounded, None),
        (Products::Native, Some(SINGLE)),
        (Products::Rounded, Some(swapped)),
    ];
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
    let batches = [2, 3, 4];
    let count: usize = batches.iter().product();
    let (a, b) = (random_values(3, count * m * k), random_values(4, count * k * n));
    let lhs = upload(&client, &a, &[count, m, k], F32);
    let rhs = upload(&client, &b, &[count, k, n], F32);
    // The strides of the batch axes, in matrices. The first five have one axis or two that are left when axes are joined,
    // of 24, of 6 and 4, and of 2 and 12.
    let strides: [[[usize; 3]; 2]; 8] = [
        [[12, 4, 1], [12, 4, 1]],
        [[3, 1, 6], [3, 1, 6]],
        [[1, 8, 2], [1, 8, 2]],
        [[3, 1, 6], [3, 1, 6]],
        [[12, 4, 1], [12, 4, 1]],
        [[1, 8, 2], [12, 4, 1]],
        [[12, 0, 1], [12, 4, 1]],
        [[12, 4, 1], [0, 0, 1]],
    ];
    let batched = |tensor: &TensorHandle, strides: [usize; 3], [rows, columns]: [usize; 2]| {
        let [first, second, third] = strides.map(|stride| stride * rows * columns);
        view(tensor, &[2, 3, 4, rows, columns], &[first, second, third, columns, 1])
    };
    let pairs = strides.map(|[of_lhs, of_rhs]| [batched(&lhs, of_lhs, [m, k]), batched(&rhs, of_rhs, [k, n])]);
    let results = matmul::matmul_each(&client, Products::Native, pairs.to_vec(), Some(SINGLE)).expect("valid products");
    for (index, (result, [of_lhs, of_rhs])) in results.into_iter().zip(strides).enumerate() {
        assert_eq!(&result.shape()[..], [2, 3, 4, m, n]);
        let got = bits(&download(&client, result));
        for batch in 0..count {
            let place = [batch / 12, batch / 4 % 3, batch % 4];
            let matrix = |strides: [usize; 3]| (0..3).map(|axis| place[axis] * strides[axis]).sum::<usize>();
            let (of_a, of_b) = (matrix(of_lhs) * m * k, matrix(of_rhs) * k * n);
            let (a, b) = (&a[of_a..of_a + m * k], &b[of_b..of_b + k * n]);
            let want = reference::matmul(a, b, [m, k, n], fma.of(Products::Native));
            assert_eq!(got[batch * m * n..(batch + 1) * m * n], bits(&want), "product {index}, matrix {place:?}");
        }
    }
}

#[test]
fn products_of_several_types() {
    let client = client();
    let integers: Vec<i32> = (0..16 * 16).map(|i: i32| i.wrapping_mul(123_456_789)).collect();
    let mut tensors =
        vec![upload(&client, &integers, &[16, 16], I32), upload(&client, &random_values(5, 16 * 16), &[16, 16], F32)];
    let half = ElemType::Float(FloatKind::F16);
    let halves: Vec<f16> = random_values(6, 16 * 16).into_iter().map(f16::from_f32).collect();
    match client.properties().supports_type(half) {
        true => tensors.push(upload(&client, &halves, &[16, 16], half)),
        false => skip(format_args!("the device has no f16")),
    }
    let pairs = tensors.iter().cycle().take(2 * tensors.len()).map(|tensor| [tensor.clone(), tensor.clone()]);
    let together =
        matmul::matmul_each(&client, Products::Native, pairs.collect(), Some(SINGLE)).expect("valid products");
    for (tensor, result) in tensors.iter().cycle().zip(together) {
        let by_itself = matmul::matmul(&client, Products::Native, tensor.clone(), tensor.clone(), Some(SINGLE));
        let want = by_itself.expect("a valid product");
        assert_eq!((result.dtype, result.shape()), (tensor.dtype, want.shape()));
        let words = |result: TensorHandle| match result.dtype.size() {
            2 => download::<u16>(&client, result).into_iter().map(u32::from).collect(),
            _ => download::<u32>(&client, result),
        };
        assert_eq!(words(result), words(want), "{:?}", tensor.dtype);
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
