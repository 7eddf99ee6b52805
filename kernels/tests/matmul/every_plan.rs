//! Products by every plan.

use super::*;

/// Every plan with some of the `cases`, which the plans of a tile have in turns, from `first` on: a software driver takes minutes to
/// compile every plan for every case.
fn in_turns<T: Copy>(plans: &[Plan], cases: &[T], first: usize) -> Vec<(Plan, T)> {
    let of_plan = |(at, plan): (usize, &Plan)| {
        let count = plans.iter().filter(|other| other.tile == plan.tile).count();
        cases.iter().skip((first + at) % count).step_by(count).map(|case| (*plan, *case)).collect::<Vec<_>>()
    };
    plans.iter().enumerate().flat_map(of_plan).collect()
}

#[test]
fn every_tile_has_every_case() {
    let plans = plans([20, 2 * BLOCK + 4, 140]);
    let cases = [0, 1, 2, 3, 4, 5, 6, 7];
    for first in 0..4 {
        let turns = in_turns(&plans, &cases, first);
        for Plan { tile, .. } in &plans {
            let mut of_tile: Vec<_> =
                turns.iter().filter(|(plan, _)| plan.tile == *tile).map(|(_, case)| *case).collect();
            of_tile.sort_unstable();
            assert_eq!(of_tile, cases, "{tile:?}");
        }
        assert!(plans.iter().all(|plan| turns.iter().any(|(other, _)| other == plan)));
    }
}

/// A product by every plan, each tile with every pair of operands, contiguous and transposed, and each pair with one rounding of
/// products, which an odd `seed` exchanges. A process compiles its kernels one by one: each shape has a test of its own.
#[track_caller]
fn check_plans(seed: u64, [m, k, n]: [usize; 3]) {
    let client = client();
    let fma = multiply_add_of(&client);
    let a = random_values(7 + seed, m * k);
    let b = random_values(17 + seed, k * n);
    let want = PRODUCTS.map(|products| bits(&reference::matmul(&a, &b, [m, k, n], fma.of(products))));
    let lhs = upload(&client, &a, &[m, k], F32);
    let rhs = upload(&client, &b, &[k, n], F32);
    let lhs_t = view(&upload(&client, &transpose(&a, m, k), &[k, m], F32), &[m, k], &[1, m]);
    let rhs_t = view(&upload(&client, &transpose(&b, k, n), &[n, k], F32), &[k, n], &[1, k]);
    let pairs = [(&lhs, &rhs), (&lhs_t, &rhs_t), (&lhs, &rhs_t), (&lhs_t, &rhs)];
    let case = |(at, pair)| {
        let of_pair = (at + seed as usize) % PRODUCTS.len();
        (pair, PRODUCTS[of_pair], &want[of_pair])
    };
    let cases: Vec<_> = pairs.into_iter().enumerate().map(case).collect();
    for (plan, ((lhs, rhs), products, want)) in in_turns(&plans([m, k, n]), &cases, seed as usize) {
        let out = matmul::matmul(&client, products, lhs.clone(), rhs.clone(), Some(plan)).expect("a valid product");
        let got = download::<f32>(&client, out);
        let strides = (lhs.strides(), rhs.strides());
        assert_eq!(&bits(&got), want, "{plan:?} on {m}x{k}x{n}, {products:?}, strides {strides:?}");
    }
}

#[test]
fn gives_the_same_bits() {
    check_plans(0, [130, 37, 67]);
}

#[test]
fn gives_the_same_bits_over_blocks() {
    check_plans(1, [3, 2 * BLOCK + 5, 70]);
}

#[test]
fn gives_the_same_bits_in_few_columns() {
    check_plans(2, [65, BLOCK + 16, 9]);
}

/// Whole vectors along each axis: units read them four at a time, across columns or along `k`.
#[test]
fn gives_the_same_bits_in_whole_vectors() {
    check_plans(3, [20, 2 * BLOCK + 4, 140]);
}

/// A last stage, or the only one, with fewer steps than a vector and as many.
#[test]
fn gives_the_same_bits_in_few_steps() {
    check_plans(4, [20, 3, 36]);
    check_plans(5, [20, 4, 36]);
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

/// f16 operands, f32 chains, one rounding.
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
        for (plan, (lhs, rhs)) in in_turns(&plans([m, k, n]), &pairs, seed) {
            let out = matmul::matmul(&client, Products::Native, lhs.clone(), rhs.clone(), Some(plan))
                .expect("a valid product");
            let got: Vec<u16> = download::<f16>(&client, out).into_iter().map(f16::to_bits).collect();
            assert_eq!(got, want, "{plan:?} on {m}x{k}x{n}, strides {:?}, {:?}", lhs.strides(), rhs.strides());
        }
    }
}
