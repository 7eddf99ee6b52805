//! Products by every plan.

use super::*;
use std::collections::HashSet;

/// Shapes `[m, k, n]`: one that nothing divides; several blocks of `k`; few columns; whole vectors along each axis, which units read four
/// at a time, across columns or along `k`; and a last stage, or the only one, with fewer steps than a vector and as many.
const SHAPES: [[usize; 3]; 6] =
    [[130, 37, 67], [3, 2 * BLOCK + 5, 70], [65, BLOCK + 16, 9], [20, 2 * BLOCK + 4, 140], [20, 3, 36], [20, 4, 36]];

/// Pairs of operands: contiguous; both transposed; the second one; the first one.
const PAIRS: [[bool; 2]; 4] = [[false, false], [true, true], [false, true], [true, false]];

/// Whether a plan has this pair in the shape of this number, where it has half of them in turns.
fn is_its_turn(plan: &Plan, shape: usize, pair: usize) -> bool {
    (shape + usize::from(plan.split) + pair).is_multiple_of(2)
}

/// The pairs of operands, and the roundings of products, that a plan has in a shape: all pairs in turns of roundings; or half of the pairs
/// where operands are exchanged, which no GPU's plan does. A software driver takes minutes to compile each plan for all.
fn cases(plan: &Plan, shape: usize) -> Vec<(usize, usize)> {
    let of_pair = |pair: usize| match plan.swap {
        false => (pair, (shape + usize::from(plan.split) + pair) % PRODUCTS.len()),
        true => (pair, (shape / 2 + pair / 2) % PRODUCTS.len()),
    };
    (0..PAIRS.len()).filter(|&pair| !plan.swap || is_its_turn(plan, shape, pair)).map(of_pair).collect()
}

#[test]
fn every_plan_has_every_pair_with_both_roundings() {
    let (mut met, mut plans_met) = (HashSet::new(), HashSet::new());
    for (shape, sizes) in SHAPES.into_iter().enumerate() {
        // A plan continues sums over blocks, splits them, or has one block.
        let is_one = sizes[1] <= BLOCK;
        for plan in plans(sizes) {
            plans_met.insert((plan, is_one));
            met.extend(cases(&plan, shape).into_iter().map(|(pair, products)| (plan, is_one, pair, products)));
        }
    }
    for (plan, is_one) in plans_met {
        for (pair, transposed) in PAIRS.into_iter().enumerate() {
            let has = |products| met.contains(&(plan, is_one, pair, products));
            assert!(if plan.swap { has(0) || has(1) } else { has(0) && has(1) }, "{plan:?}, transposed {transposed:?}");
        }
    }
}

/// A product by every plan. A process compiles its kernels one by one: each shape has a test of its own.
#[track_caller]
fn check_plans(shape: usize) {
    let client = client();
    let fma = multiply_add_of(&client);
    let [m, k, n] = SHAPES[shape];
    let a = random_values(7 + shape as u64, m * k);
    let b = random_values(17 + shape as u64, k * n);
    let want = PRODUCTS.map(|products| bits(&reference::matmul(&a, &b, [m, k, n], fma.of(products))));
    let lhs = upload(&client, &a, &[m, k], F32);
    let rhs = upload(&client, &b, &[k, n], F32);
    let lhs_t = view(&upload(&client, &transpose(&a, m, k), &[k, m], F32), &[m, k], &[1, m]);
    let rhs_t = view(&upload(&client, &transpose(&b, k, n), &[n, k], F32), &[k, n], &[1, k]);
    for plan in plans([m, k, n]) {
        for (pair, products) in cases(&plan, shape) {
            let [lhs, rhs] = [if PAIRS[pair][0] { &lhs_t } else { &lhs }, if PAIRS[pair][1] { &rhs_t } else { &rhs }];
            let (products, want) = (PRODUCTS[products], &want[products]);
            let out = matmul::matmul(&client, products, lhs.clone(), rhs.clone(), Some(plan)).expect("a valid product");
            let got = download::<f32>(&client, out);
            assert_eq!(&bits(&got), want, "{plan:?} on {m}x{k}x{n}, {products:?}, transposed {:?}", PAIRS[pair]);
        }
    }
}

#[test]
fn gives_the_same_bits() {
    check_plans(0);
}

#[test]
fn gives_the_same_bits_over_blocks() {
    check_plans(1);
}

#[test]
fn gives_the_same_bits_in_few_columns() {
    check_plans(2);
}

#[test]
fn gives_the_same_bits_in_whole_vectors() {
    check_plans(3);
}

#[test]
fn gives_the_same_bits_in_few_steps() {
    check_plans(4);
    check_plans(5);
}

/// Steps of a stage that do not divide a block: it ends within a stage, and the next one goes on there.
#[test]
fn a_block_ends_within_a_stage() {
    let client = client();
    let fma = multiply_add_of(&client);
    let (m, k, n) = (20, 2 * BLOCK + 4, 36);
    let (a, b) = (random_values(190, m * k), random_values(191, k * n));
    let want = reference::matmul(&a, &b, [m, k, n], fma);
    let rhs_t = view(&upload(&client, &transpose(&b, k, n), &[n, k], F32), &[k, n], &[1, k]);
    for rhs in [upload(&client, &b, &[k, n], F32), rhs_t] {
        for split in [false, true] {
            let tile = CubeTile::Tiled { sides: [8; 2], vectors: [1; 2], depth: 12 };
            let plan = Some(Plan { tile, swap: false, split });
            let lhs = upload(&client, &a, &[m, k], F32);
            let out = matmul::matmul(&client, Products::Native, lhs, rhs.clone(), plan).expect("a valid product");
            assert_bits(&download(&client, out), &want);
        }
    }
}

/// f16 operands, f32 chains, one rounding. Of two shapes of one block, and of two of more, each plan has half of the pairs in turns.
#[test]
fn half_rounds_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    let half = |values: Vec<f32>| values.into_iter().map(f16::from_f32).collect::<Vec<_>>();
    for (seed, [m, k, n]) in
        [[20, 40, 36], [18, 39, 21], [5, 2 * BLOCK + 11, 6], [12, BLOCK + 8, 8]].into_iter().enumerate()
    {
        let (a, b) = (half(random_values(120 + seed as u64, m * k)), half(random_values(130, k * n)));
        let (lhs, rhs) = (upload(&client, &a, &[m, k], dtype), upload(&client, &b, &[k, n], dtype));
        if !client.properties().supports_type(dtype) {
            let refused = matmul::matmul(&client, Products::Native, lhs, rhs, None)
                .map(|_| ())
                .expect_err("no f16 on this device");
            assert!(matches!(refused, KernelError::Dtype { .. }), "{refused}");
            skip("the device has no f16");
            continue;
        }
        let widen = |values: &[f16]| values.iter().map(|value| value.to_f32()).collect::<Vec<_>>();
        let want = reference::matmul(&widen(&a), &widen(&b), [m, k, n], multiply_add_of(&client));
        let want: Vec<u16> = want.into_iter().map(|value| f16::from_f32(value).to_bits()).collect();
        let lhs_t = view(&upload(&client, &transpose(&a, m, k), &[k, m], dtype), &[m, k], &[1, m]);
        let rhs_t = view(&upload(&client, &transpose(&b, k, n), &[n, k], dtype), &[k, n], &[1, k]);
        let pairs = [(&lhs, &rhs), (&lhs_t, &rhs_t), (&lhs, &rhs_t), (&lhs_t, &rhs)];
        for plan in plans([m, k, n]) {
            let of_plan = pairs.iter().enumerate().filter(|(pair, _)| is_its_turn(&plan, seed, *pair));
            for (_, &(lhs, rhs)) in of_plan {
                let out = matmul::matmul(&client, Products::Native, lhs.clone(), rhs.clone(), Some(plan))
                    .expect("a valid product");
                let got: Vec<u16> = download::<f16>(&client, out).into_iter().map(f16::to_bits).collect();
                assert_eq!(got, want, "{plan:?} on {m}x{k}x{n}, strides {:?}, {:?}", lhs.strides(), rhs.strides());
            }
        }
    }
}
