//! Matmul kernels against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::matmul::plan::{CubeTile, MAX_PARTS, Plan, Problem, Vectors, plan};
use burn_deterministic_kernels::matmul::{self, reference};
use burn_deterministic_kernels::order::BLOCK;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

mod each;
mod every_plan;

const DIRECT: CubeTile = CubeTile::Direct { rows: 16, columns: 8 };
const FLAT: CubeTile = CubeTile::Direct { rows: 4, columns: 8 };
const WIDE: CubeTile = CubeTile::Direct { rows: 8, columns: 16 };
const THIN: CubeTile = CubeTile::Direct { rows: 1, columns: 32 };
const STRETCH: CubeTile = CubeTile::Direct { rows: 1, columns: 64 };
const ROWS: CubeTile = CubeTile::Direct { rows: 1, columns: 8 };
const FEW_ROWS: CubeTile = CubeTile::Direct { rows: 1, columns: 4 };
const ONE: CubeTile = CubeTile::Separate { side: 1 };
const FOUR: CubeTile = CubeTile::Separate { side: 4 };
const LARGE: CubeTile = CubeTile::LARGE;
const MIDDLE: CubeTile = CubeTile::MIDDLE;
const SMALL: CubeTile = CubeTile::SMALL;

/// One product of `[m, k] x [k, n]` of f32, which single elements are read of.
fn problem([m, k, n]: [usize; 3]) -> Problem {
    Problem { batch: 1, m, k, n, element: 4, accumulator: 4, vectors: Vectors::None, swapped_vectors: Vectors::None }
}

/// Every plan for `[m, k] x [k, n]`: single elements and vectors have the same.
fn plans(sizes: [usize; 3]) -> Vec<Plan> {
    let plans = Plan::candidates(&problem(sizes));
    for machine in [Machine::Gpu, Machine::Software] {
        assert!(plans.contains(&plan(&problem(sizes), machine)), "{sizes:?} on {machine:?}");
    }
    assert_eq!(plans.iter().any(|plan| plan.split), sizes[1] > BLOCK);
    // `cargo xtask inspect` relies on it.
    let on_gpus = plan(&problem(sizes), Machine::Gpu).tile;
    let is_for_gpus = matches!(on_gpus, CubeTile::Tiled { .. } | CubeTile::Single { .. });
    assert!(is_for_gpus, "{on_gpus:?} is for software drivers");
    plans
}

/// The same elements through other shape and strides.
fn view(tensor: &TensorHandle, shape: &[usize], strides: &[usize]) -> TensorHandle {
    TensorHandle::new(tensor.handle.clone(), shape.to_vec(), strides.to_vec(), tensor.dtype)
}

/// Row-major transpose of `[rows, columns]`.
fn transpose<T: Copy>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..rows * columns).map(|at| values[at % rows * columns + at / rows]).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn product(client: &Client, lhs: TensorHandle, rhs: TensorHandle) -> Vec<f32> {
    download(client, matmul::matmul(client, Products::Native, lhs, rhs, None).expect("a valid product"))
}

#[test]
fn equals_reference_on_every_shape() {
    let client = client();
    let fma = multiply_add_of(&client);
    let shapes = [
        [0, 3, 4],
        [3, 0, 4],
        [3, 4, 0],
        [1, 1, 1],
        [1, 7, 1],
        [2, 3, 5],
        [1, 64, 33],
        [33, 64, 1],
        [16, 16, 16],
        [17, 31, 65],
        [64, 64, 64],
        [63, 65, 127],
        [128, 256, 10],
        [5, BLOCK - 1, 3],
        [5, BLOCK, 3],
        [5, BLOCK + 1, 3],
        [2, 3 * BLOCK + 7, 9],
        [70_001, 3, 2],
        [2, 3, 70_001],
    ];
    for (seed, [m, k, n]) in shapes.into_iter().enumerate() {
        let a = random_values(seed as u64, m * k);
        let b = random_values(100 + seed as u64, k * n);
        for products in PRODUCTS {
            let (lhs, rhs) = (upload(&client, &a, &[m, k], F32), upload(&client, &b, &[k, n], F32));
            let out = matmul::matmul(&client, products, lhs, rhs, None).expect("a valid product");
            assert_eq!(&out.shape()[..], [m, n]);
            assert_bits(&download(&client, out), &reference::matmul(&a, &b, [m, k, n], fma.of(products)));
        }
    }
}

/// Few outputs, of more products and blocks of `k` than a cube has units, and not a multiple of them.
#[test]
fn units_with_tiles_of_their_own_match_the_reference() {
    let client = client();
    let fma = multiply_add_of(&client);
    let shapes = [[1, 1, 20 * BLOCK, 1], [3, 1, 3 * BLOCK + 7, 1], [11, 4, BLOCK + 4, 4], [37, 3, 5, 2]];
    for (seed, [batch, m, k, n]) in shapes.into_iter().enumerate() {
        let a = random_values(170 + seed as u64, batch * m * k);
        let b = random_values(180 + seed as u64, batch * k * n);
        let (lhs, rhs) = (upload(&client, &a, &[batch, m, k], F32), upload(&client, &b, &[batch, k, n], F32));
        let products = a.chunks(m * k).zip(b.chunks(k * n));
        let want: Vec<f32> = products.flat_map(|(a, b)| reference::matmul(a, b, [m, k, n], fma)).collect();
        let plans = plans([m, k, n]).into_iter().filter(|plan| matches!(plan.tile, CubeTile::Separate { .. }));
        for plan in plans.map(Some).chain([None]) {
            let out =
                matmul::matmul(&client, Products::Native, lhs.clone(), rhs.clone(), plan).expect("a valid product");
            assert_eq!(bits(&download(&client, out)), bits(&want), "{plan:?} on {batch} times {m}x{k}x{n}");
        }
    }
}

/// Lines that are dense and have whole vectors, and yet do not all begin at a multiple of four.
#[test]
fn lines_off_a_multiple_of_four_are_read_one_at_a_time() {
    let client = client();
    let fma = multiply_add_of(&client);
    let (m, k, n) = (8, 12, 16);
    let (a, b) = (random_values(150, 2 * m * (k + 1)), random_values(151, 2 * n * (k + n)));
    let (lhs, rhs) = (upload(&client, &a, &[a.len()], F32), upload(&client, &b, &[b.len()], F32));
    let rows = |values: &[f32], count: usize, length: usize, stride: usize| -> Vec<f32> {
        (0..count).flat_map(|row| values[row * stride..][..length].to_vec()).collect()
    };
    for (lhs_row, rhs_row) in [(k + 1, n), (k, n + 2), (k + 2, n + 1), (k, n)] {
        let want = reference::matmul(&rows(&a, m, k, lhs_row), &rows(&b, k, n, rhs_row), [m, k, n], fma);
        let got = product(&client, view(&lhs, &[m, k], &[lhs_row, 1]), view(&rhs, &[k, n], &[rhs_row, 1]));
        assert_bits(&got, &want);
        // The second operand dense along k.
        let rhs_column = k + rhs_row - n;
        let columns = transpose(&rows(&b, n, k, rhs_column), n, k);
        let want = reference::matmul(&rows(&a, m, k, lhs_row), &columns, [m, k, n], fma);
        let got = product(&client, view(&lhs, &[m, k], &[lhs_row, 1]), view(&rhs, &[k, n], &[1, rhs_column]));
        assert_bits(&got, &want);
    }
    // Batches that begin between vectors.
    let want: Vec<f32> = (0..2)
        .flat_map(|at| reference::matmul(&a[at * m * k..][..m * k], &b[at * (k * n + 1)..][..k * n], [m, k, n], fma))
        .collect();
    let batches = view(&rhs, &[2, k, n], &[k * n + 1, n, 1]);
    assert_bits(&product(&client, view(&lhs, &[2, m, k], &[m * k, k, 1]), batches), &want);
}

/// The same product summed in another order has other bits: what the contract is there to prevent.
#[test]
fn order_is_visible_in_the_bits() {
    let client = client();
    let fma = multiply_add_of(&client);
    let k = 2 * BLOCK + 300;
    let (a, b) = (random_values(3, 8 * k), random_values(4, 8 * k));
    let want = reference::matmul(&a, &b, [8, k, 8], fma);
    let descending = |i: usize, j: usize| reference::dot((0..k).rev().map(|p| (a[i * k + p], b[p * 8 + j])), fma);
    let unblocked = |i: usize, j: usize| (0..k).fold(0.0, |acc, p| fma.apply(a[i * k + p], b[p * 8 + j], acc));
    let differing = |other: &dyn Fn(usize, usize) -> f32| {
        (0..64).filter(|at| other(at / 8, at % 8).to_bits() != want[*at].to_bits()).count()
    };
    assert!(differing(&descending) > 32, "a descending chain differs in {} of 64", differing(&descending));
    assert!(differing(&unblocked) > 32, "an unblocked chain differs in {} of 64", differing(&unblocked));
    let (lhs, rhs) = (upload(&client, &a, &[8, k], F32), upload(&client, &b, &[k, 8], F32));
    for _ in 0..10 {
        assert_bits(&product(&client, lhs.clone(), rhs.clone()), &want);
    }
}

#[test]
fn batches_broadcast_and_merge() {
    let client = client();
    let fma = multiply_add_of(&client);
    let (m, k, n) = (9, 21, 13);
    for (seed, (lhs_batch, rhs_batch)) in [
        ([2, 3], [2, 3]),
        ([1, 3], [2, 3]),
        ([2, 3], [2, 1]),
        ([2, 1], [1, 3]),
        ([2, 3], [1, 1]),
        ([1, 1], [4, 1]),
        ([0, 2], [1, 2]),
    ]
    .into_iter()
    .enumerate()
    {
        let size = |batch: [usize; 2]| batch[0] * batch[1];
        let a = random_values(40 + seed as u64, size(lhs_batch) * m * k);
        let b = random_values(60 + seed as u64, size(rhs_batch) * k * n);
        let lhs = upload(&client, &a, &[lhs_batch[0], lhs_batch[1], m, k], F32);
        let rhs = upload(&client, &b, &[rhs_batch[0], rhs_batch[1], k, n], F32);
        let out_batch = [0, 1].map(|axis| if lhs_batch[axis] == 1 { rhs_batch[axis] } else { lhs_batch[axis] });
        let mut want = Vec::new();
        for at in 0..size(out_batch) {
            let index = [at / out_batch[1], at % out_batch[1]];
            let offset = |batch: [usize; 2]| {
                let [x, y] = [0, 1].map(|axis| if batch[axis] == 1 { 0 } else { index[axis] });
                x * batch[1] + y
            };
            let (x, y) = (offset(lhs_batch) * m * k, offset(rhs_batch) * k * n);
            want.extend(reference::matmul(&a[x..x + m * k], &b[y..y + k * n], [m, k, n], fma));
        }
        let out = matmul::matmul(&client, Products::Native, lhs, rhs, None).expect("a valid product");
        assert_eq!(&out.shape()[..], [out_batch[0], out_batch[1], m, n]);
        assert_bits(&download(&client, out), &want);
    }
}

/// Matrices after the first one begin at whole vectors, and a batch of one is repeated by a stride of 0.
#[test]
fn batches_in_whole_vectors_match_the_reference_under_every_tile() {
    let client = client();
    let fma = multiply_add_of(&client);
    let (batch, [m, k, n]) = (3, [20, 24, 36]);
    let (a, b) = (random_values(71, batch * m * k), random_values(72, batch * k * n));
    let lhs = upload(&client, &a, &[batch, m, k], F32);
    let rhs = upload(&client, &b, &[batch, k, n], F32);
    let repeated = upload(&client, &b[..k * n], &[1, k, n], F32);
    // Rows that do not continue each other, so that the batch is not merged into them.
    let apart = view(&lhs, &[batch, m - 1, k], &[m * k, k, 1]);
    for tile in [DIRECT, LARGE, MIDDLE, SMALL] {
        let plan = Some(Plan { tile, swap: false, split: false });
        let product = |lhs: &TensorHandle, rhs: &TensorHandle| {
            let out = matmul::matmul(&client, Products::Native, lhs.clone(), rhs.clone(), plan);
            download::<f32>(&client, out.expect("a valid product"))
        };
        let want = |rows: usize, of_rhs: fn(usize) -> usize| {
            let matrices = (0..batch).flat_map(|at| {
                let (a, b) = (&a[at * m * k..][..rows * k], &b[of_rhs(at) * k * n..][..k * n]);
                reference::matmul(a, b, [rows, k, n], fma)
            });
            matrices.collect::<Vec<_>>()
        };
        assert_bits(&product(&lhs, &rhs), &want(m, |at| at));
        assert_bits(&product(&apart, &repeated), &want(m - 1, |_| 0));
    }
}

/// A batch repeated by a stride of 0 must not be mistaken for rows that continue each other.
#[test]
fn strides_do_not_show() {
    let client = client();
    let fma = multiply_add_of(&client);
    let (m, k, n) = (6, 10, 7);
    let a = random_values(80, 4 * m * k);
    let b = random_values(81, 2 * k * n);
    let (lhs, rhs) = (upload(&client, &a, &[4, m, k], F32), upload(&client, &b, &[2 * k, n], F32));
    let first = |x: usize| reference::matmul(&a[x..x + m * k], &b[..k * n], [m, k, n], fma);

    let repeated = view(&lhs, &[3, 1, m, k], &[0, 0, k, 1]);
    let once = view(&rhs, &[1, 1, k, n], &[0, 0, n, 1]);
    assert_bits(&product(&client, repeated, once), &[first(0), first(0), first(0)].concat());

    let every_other = view(&lhs, &[2, m, k], &[2 * m * k, k, 1]);
    let once = view(&rhs, &[1, k, n], &[0, n, 1]);
    assert_bits(&product(&client, every_other, once), &[first(0), first(2 * m * k)].concat());

    let sliced_rows = view(&rhs, &[k, n], &[2 * n, 1]);
    let even: Vec<f32> = (0..k).flat_map(|p| b[2 * p * n..][..n].to_vec()).collect();
    let want = reference::matmul(&a[..m * k], &even, [m, k, n], fma);
    assert_bits(&product(&client, view(&lhs, &[m, k], &[k, 1]), sliced_rows), &want);

    let one_row_for_all = view(&lhs, &[m, k], &[0, 1]);
    let want = reference::matmul(&a[..k].repeat(m), &b[..k * n], [m, k, n], fma);
    assert_bits(&product(&client, one_row_for_all, view(&rhs, &[k, n], &[n, 1])), &want);
}

/// A software driver ends a shader's loops after 65535 iterations: the last element must be added all the same.
#[test]
fn the_end_of_a_long_chain_counts() {
    let client = client();
    let (m, k, n) = (3, 70_001, 5);
    let small = |at: usize| (at * 7 % 5) as i32 - 2;
    let mut a: Vec<i32> = (0..m * k).map(small).collect();
    let b: Vec<i32> = (0..k * n).map(|at| small(at) + 1).collect();
    (1..=m).for_each(|row| a[row * k - 1] = 1000 * row as i32);
    // Every sum is an integer far below 2^24, so that no order rounds.
    let want: Vec<f32> =
        (0..m * n).map(|at| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<i32>() as f32).collect();
    let floats = |values: &[i32]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
    let (lhs, rhs) = (upload(&client, &floats(&a), &[m, k], F32), upload(&client, &floats(&b), &[k, n], F32));
    assert_bits(&product(&client, lhs.clone(), rhs.clone()), &want);
    for plan in plans([m, k, n]) {
        let out =
            matmul::matmul(&client, Products::Native, lhs.clone(), rhs.clone(), Some(plan)).expect("a valid product");
        assert_eq!(bits(&download(&client, out)), bits(&want), "{plan:?}");
    }
    let dtype = ElemType::Float(FloatKind::F16);
    if client.properties().supports_type(dtype) {
        let mut ends = vec![f16::ZERO; k];
        ends[k - 1] = f16::from_f32(3.0);
        let (lhs, rhs) = (upload(&client, &ends, &[1, k], dtype), upload(&client, &ends, &[k, 1], dtype));
        let plan = Plan { tile: FLAT, swap: false, split: false };
        let out = matmul::matmul(&client, Products::Native, lhs, rhs, Some(plan)).expect("a valid product");
        assert_eq!(download::<f16>(&client, out), [f16::from_f32(9.0)]);
    } else {
        skip("the device has no f16");
    }
}

/// Each step rounds the product and the sum by at most 2^-24 of `sum |a b|`; a path has BLOCK + blocks steps.
#[test]
fn error_stays_within_the_bound() {
    let client = client();
    for (seed, [m, k, n]) in [[20, 300, 20], [6, 10 * BLOCK + 1, 6]].into_iter().enumerate() {
        let (a, b) = (random_values(90 + seed as u64, m * k), random_values(95 + seed as u64, k * n));
        let got = product(&client, upload(&client, &a, &[m, k], F32), upload(&client, &b, &[k, n], F32));
        for at in 0..m * n {
            let terms = (0..k).map(|p| f64::from(a[at / n * k + p]) * f64::from(b[p * n + at % n]));
            let (exact, magnitude) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            let steps = (k.min(BLOCK) + k.div_ceil(BLOCK) + 1) as f64;
            let bound = 1.01 * steps * 2f64.powi(-24) * magnitude;
            assert!((f64::from(got[at]) - exact).abs() <= bound, "element {at}: {} for {exact}", got[at]);
        }
    }
}

#[test]
fn integers_wrap() {
    let client = client();
    let word = |value: f32| value.to_bits() as i32;
    for [m, k, n] in [[19, BLOCK + 30, 23], [20, BLOCK + 32, 24]] {
        let a: Vec<i32> = random_values(110, m * k).into_iter().map(word).collect();
        let b: Vec<i32> = random_values(111, k * n).into_iter().map(word).collect();
        let want: Vec<i32> = (0..m * n)
            .map(|at| (0..k).fold(0i32, |acc, p| acc.wrapping_add(a[at / n * k + p].wrapping_mul(b[p * n + at % n]))))
            .collect();
        for plan in plans([m, k, n]).into_iter().filter(|plan| plan.tile == DIRECT || plan.tile == SMALL) {
            let (lhs, rhs) = (upload(&client, &a, &[m, k], I32), upload(&client, &b, &[k, n], I32));
            let out = matmul::matmul(&client, Products::Native, lhs, rhs, Some(plan)).expect("a valid product");
            assert_eq!(download::<i32>(&client, out), want, "{plan:?}");
        }
    }
}

#[test]
fn double_is_a_chain_of_doubles() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F64);
    let (m, k, n) = (5, 33, 7);
    let wide = |seed, len| random_values(seed, len).into_iter().map(|x| f64::from(x) / 3.0).collect::<Vec<_>>();
    let (a, b) = (wide(140, m * k), wide(141, k * n));
    let (lhs, rhs) = (upload(&client, &a, &[m, k], dtype), upload(&client, &b, &[k, n], dtype));
    let out = match matmul::matmul(&client, Products::Native, lhs, rhs, None) {
        Ok(out) => download::<f64>(&client, out),
        Err(refused) => return assert!(matches!(refused, KernelError::Dtype { .. }), "{refused}"),
    };
    let chain = |at: usize, step: fn(f64, f64, f64) -> f64| {
        (0..k).fold(0.0, |acc, p| step(a[at / n * k + p], b[p * n + at % n], acc))
    };
    let fused: Vec<f64> = (0..m * n).map(|at| chain(at, f64::mul_add)).collect();
    let unfused: Vec<f64> = (0..m * n).map(|at| chain(at, |a, b, c| a * b + c)).collect();
    assert!(out == fused || out == unfused, "neither the fused nor the unfused chain");
}

/// A chain starts at +0, so a lone product of -0 gives +0; what is not finite stays so.
#[test]
fn chains_start_at_positive_zero() {
    let client = client();
    let lhs = upload(&client, &[-0.0f32, f32::INFINITY, f32::NAN], &[3, 1], F32);
    let got = product(&client, lhs, upload(&client, &[1.0f32, -2.0], &[1, 2], F32));
    assert_eq!([got[0].to_bits(), got[1].to_bits()], [0, 0]);
    assert_eq!([got[2], got[3]], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(got[4].is_nan() && got[5].is_nan());
}

#[test]
fn plans_fit_problem_and_device() {
    let lying = |[batch, m, k, n]: [usize; 4], accumulator, [vectors, swapped_vectors]: [Vectors; 2], machine| {
        plan(&Problem { batch, m, k, n, element: accumulator, accumulator, vectors, swapped_vectors }, machine)
    };
    let gpu = |batch, m, k, n, accumulator| {
        let plan = lying([batch, m, k, n], accumulator, [Vectors::None, Vectors::None], Machine::Gpu);
        assert_eq!(plan, lying([batch, m, k, n], accumulator, [Vectors::Columns, Vectors::Steps], Machine::Gpu));
        plan
    };
    assert_eq!(gpu(1, 4096, 4096, 4096, 4), Plan { tile: LARGE, swap: false, split: false });
    let of_8_bytes = gpu(1, 4096, 4096, 4096, 8).tile;
    assert_eq!(of_8_bytes, CubeTile::MIDDLE_OF_8_BYTES, "the large tile of 8-byte accumulators needs too much memory");
    let halves = Problem { element: 2, ..problem([4096; 3]) };
    assert_eq!(plan(&halves, Machine::Gpu).tile, MIDDLE);
    assert_eq!(gpu(1, 64, 50_000, 288, 4), Plan { tile: SMALL, swap: false, split: true });
    assert!(!gpu(1, 64, BLOCK, 288, 4).split, "one block has nothing to split");
    let software = |m, n, vectors| lying([1, m, 256, n], 4, vectors, Machine::Software);
    assert_eq!(software(128, 10, [Vectors::None, Vectors::None]), Plan { tile: DIRECT, swap: true, split: false });
    assert_eq!(software(1, 1000, [Vectors::None, Vectors::None]), Plan { tile: THIN, swap: false, split: false });
    assert_eq!(software(1, 4096, [Vectors::Columns, Vectors::None]).tile, STRETCH);
    assert_eq!(software(1, 512, [Vectors::Columns, Vectors::None]).tile, THIN, "too few stretches");
    assert_eq!(software(2048, 1, [Vectors::Steps, Vectors::Steps]), Plan { tile: ROWS, swap: true, split: false });
    assert_eq!(software(512, 1, [Vectors::Steps, Vectors::Steps]).tile, FEW_ROWS);
    assert_eq!(software(1, 1, [Vectors::Steps, Vectors::Steps]), Plan { tile: ONE, swap: false, split: false });
    assert_eq!(software(3, 4, [Vectors::Columns, Vectors::None]).tile, FOUR);
    let long = |batch| lying([batch, 1, 1 << 20, 1], 4, [Vectors::Steps; 2], Machine::Software);
    assert!(long(1).split && long(15 * 8).split && !long(15 * 8 + 1).split, "as many cubes as keep a driver busy");
    assert_eq!(software(64, 128, [Vectors::Columns, Vectors::None]), Plan { tile: WIDE, swap: false, split: false });
    assert_eq!(software(64, 64, [Vectors::Columns, Vectors::None]).tile, DIRECT, "the wide tile would waste half");
    assert!(software(64, 64, [Vectors::None, Vectors::Columns]).swap, "the transposed product reads four at a time");
}

/// A plan that does not apply is an error with what it wants, and never another plan in its place.
#[test]
fn a_plan_that_does_not_apply_is_an_error() {
    let client = client();
    let zeros = |shape: &[usize]| upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
    let whole = Plan { tile: DIRECT, swap: false, split: false };
    let text = |plan: Plan| {
        let refused =
            matmul::matmul(&client, Products::Native, zeros(&[2, BLOCK]), zeros(&[BLOCK, 3]), Some(plan)).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { kernel: "matmul", .. }), "{refused}");
        refused.to_string()
    };
    assert!(text(Plan { split: true, ..whole }).ends_with("want 2 to 60000 blocks to split"));
    let columns = Plan { tile: CubeTile::Direct { rows: 2, columns: 6 }, ..whole };
    assert!(text(columns).ends_with("want rows, and columns in vectors"));
    let tiled = |sides, vectors, depth| CubeTile::Tiled { sides, vectors, depth };
    let staged = [[16, 12], [6, 16], [4, 8], [0, 8], [0, 0]].map(|sides| tiled(sides, [1; 2], 16));
    for sides in [[1 << 26; 2], [u32::MAX - 3, 8], [64, 32]] {
        let text = text(Plan { tile: tiled(sides, [1; 2], 16), ..whole });
        assert!(text.ends_with("want at most 1024 units"), "{text}");
    }
    let unstaged =
        [([8; 2], [2; 2], 16), ([8, 16], [4, 2], 16), ([8; 2], [1, 0], 16), ([8; 2], [1; 2], 6), ([8; 2], [1; 2], 0)];
    for tile in staged.into_iter().chain(unstaged.map(|(sides, vectors, depth)| tiled(sides, vectors, depth))) {
        let text = text(Plan { tile, ..whole });
        assert!(
            text.ends_with("want units in fours and eights along its edges, and enough to stage it in fours of steps"),
            "{text}"
        );
    }
    for tile in [
        CubeTile::Direct { rows: 16, columns: 12 },
        CubeTile::Direct { rows: 1 << 16, columns: 1 << 16 },
        CubeTile::Direct { rows: u32::MAX, columns: 4 },
        tiled([16; 2], [3; 2], 16),
        tiled([16; 2], [1 << 28; 2], 16),
        tiled([16; 2], [1, 33], 16),
    ] {
        assert!(text(Plan { tile, ..whole }).ends_with("want at most 128 outputs a unit"), "{tile:?}");
    }
    assert_eq!(CubeTile::MOST_OUTPUTS, 128);
    for sides in [[0, 1], [16, 16], [u32::MAX; 2]] {
        assert!(text(Plan { tile: CubeTile::Single { sides, depth: 64 }, ..whole }).ends_with("want 1 to 128 outputs"));
    }
    for (sides, depth) in [([8, 16], 0), ([8, 16], 12), ([1, 1], 2048), ([64, 2], 128)] {
        let text = text(Plan { tile: CubeTile::Single { sides, depth }, ..whole });
        assert!(text.ends_with("want steps in eights, and at most 9 vectors a unit to stage them"), "{text}");
    }
    let split = Plan { split: true, ..whole };
    assert!(split.refuses(&problem([1, MAX_PARTS * BLOCK, 1])).is_none());
    assert!(split.refuses(&problem([1, MAX_PARTS * BLOCK + 1, 1])).is_some());
    let sums = split.refuses(&problem([1 << 16, 2 * BLOCK, 1 << 15])).unwrap();
    assert!(sums.ends_with("want fewer than 2^32 sums of blocks"), "{sums}");
}

#[test]
fn refusals_name_the_shapes() {
    let client = client();
    let zeros = |shape: &[usize]| upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
    let refusal = |lhs: &[usize], rhs: &[usize]| {
        matmul::matmul(&client, Products::Native, zeros(lhs), zeros(rhs), None)
            .map(|_| ())
            .expect_err("a refusal")
            .to_string()
    };
    for (lhs, rhs, reason) in [
        (&[2, 3][..], &[4, 2][..], "columns of lhs and rows of rhs must agree"),
        (&[3], &[3], "same rank of at least 2"),
        (&[2, 3, 4], &[4, 2], "same rank of at least 2"),
        (&[2, 3, 4], &[3, 4, 2], "batch axes must agree or be 1"),
    ] {
        let text = refusal(lhs, rhs);
        assert!(
            text.contains(reason) && text.contains(&format!("{lhs:?}")) && text.contains(&format!("{rhs:?}")),
            "{text}"
        );
    }
    let one = zeros(&[1, 1]);
    let (row, column) = (view(&one, &[1, 1 << 32], &[0, 0]), view(&one, &[1 << 32, 1], &[0, 0]));
    let text =
        matmul::matmul(&client, Products::Native, row, column, None).map(|_| ()).expect_err("a refusal").to_string();
    assert!(text.contains("k reaches over 4294967296 elements"), "{text}");
    let integers = upload(&client, &[0i32; 4], &[2, 2], I32);
    assert!(matches!(
        matmul::matmul(&client, Products::Native, zeros(&[2, 2]), integers, None),
        Err(KernelError::Dtype { .. })
    ));
}
