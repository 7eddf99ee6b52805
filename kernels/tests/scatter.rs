//! Scatter kernels against their references.

use crate::harness::*;
use burn_deterministic_kernels::scatter::plan::{Problem, Radix};
use burn_deterministic_kernels::scatter::{self, Plan, Update, reference};
use cubecl::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn random_indices(seed: u64, len: usize, rows: usize) -> Vec<i32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| (rng.random::<u32>() as usize % rows) as i32).collect()
}

fn wide(indices: &[i32]) -> Vec<i64> {
    indices.iter().map(|&i| i64::from(i)).collect()
}

#[test]
fn scatter_add_matches_reference() {
    let client = client();
    for (rows, sources) in [(1, 1), (1, 64), (1, 65), (3, 130), (64, 4095), (7, 4097), (5, 20_000), (1, 270_000)] {
        let tensor = random_values(1, rows);
        let values = random_values(2, sources);
        let indices = random_indices(3, sources, rows);
        let want = reference::scatter([1, rows, 1], &tensor, &wide(&indices), &values, |a, b| a + b);
        let mut plans = vec![Plan::Radix(Radix::new(rows, sources))];
        if sources <= 5000 {
            plans.push(Plan::Rank);
        }
        if sources <= 4096 {
            plans.push(Plan::Walk);
        }
        for plan in plans {
            let got = scatter::scatter_planned(
                &client,
                plan,
                0,
                upload(&client, &tensor, &[rows], F32),
                upload(&client, &indices, &[sources], I32),
                upload(&client, &values, &[sources], F32),
                Update::Add,
            );
            println!("{plan:?} {rows} {sources}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}
