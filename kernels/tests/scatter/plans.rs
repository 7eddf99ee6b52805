//! Plans of updates: which problem gets which, and what a plan refuses.

use crate::harness::*;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::radix_sort::{self, Chunks};
use burn_deterministic_kernels::scatter::plan::plan;
use burn_deterministic_kernels::scatter::{self, Addressing, Indexed, Operands, Plan, Problem, Update};
use std::collections::BTreeSet;

/// Sums of f32 with an index for each value.
fn sums(outer: usize, rows: usize, positions: usize, inner: usize) -> Problem {
    Problem { outer, rows, positions, inner, indexed: Indexed::Value, update: Update::Add, dtype: F32 }
}

/// Sums of f32 with an index for each position.
fn rows(rows: usize, positions: usize, inner: usize) -> Problem {
    Problem { indexed: Indexed::Position, ..sums(1, rows, positions, inner) }
}

/// A plan that does not apply is an error with what it wants, and never another plan in its place.
#[test]
fn a_plan_that_does_not_apply_is_an_error() {
    let client = client();
    let floats = |n: usize| upload(&client, &vec![0f32; n], &[n], F32);
    let index = |n: usize| upload(&client, &vec![0i32; n], &[n], I32);
    let text = |positions: usize, update: Update, plan: Plan| {
        let got = scatter::update(
            &client,
            Addressing::Elements { dim: 0 },
            Operands { tensor: floats(3), indices: index(positions), values: floats(positions) },
            update,
            Some(plan),
        );
        got.unwrap_err().to_string()
    };
    let refused = text(60_000, Update::Max, Plan::BruteForce);
    assert!(refused.starts_with("scatter::scatter: BruteForce for Problem"), "{refused}");
    assert!(refused.ends_with("loops 60001 times, want at most 60000"), "{refused}");
    let refused = text(9, Update::Max, Plan::Privatised);
    assert!(refused.ends_with("want sums"), "{refused}");
    let refused = text(60_000, Update::Max, Plan::Segmented(radix_sort::Plan::Rank));
    assert!(refused.ends_with("a rank of 60000 keys, want less than 60000"), "{refused}");
    let short = Chunks { passes: 1, digit_bits: 1, chunk: 64 };
    let refused = text(9, Update::Max, Plan::Segmented(radix_sort::Plan::Chunks(short)));
    assert!(refused.ends_with("passes by 1 to 10 of 2 bits"), "{refused}");
}

/// Whatever is planned applies, up to the most sources that any plan takes.
#[test]
fn planned_updates_are_taken() {
    // Beyond 2^25.8 positions a sort leaves a unit too many blocks; few rows are privatised then.
    let many = sums(1, 2000, 60_500_000, 1);
    assert_eq!(plan(&many, Machine::Software), Some(Plan::Privatised));
    let none = Problem { update: Update::Max, ..sums(1, 2000, 1 << 28, 1) };
    assert_eq!(Plan::candidates(&none), []);
    assert_eq!(plan(&none, Machine::Gpu), None);
    for bits in 0..=25 {
        for positions in [1usize << bits, (1 << bits) + 1] {
            for (outer, rows, inner) in [(1, 1, 1), (1, 1 << 18, 1), (1, 50_000, 64), (64, 1000, 1), (8, 300, 16)] {
                for indexed in [Indexed::Position, Indexed::Batch, Indexed::Value] {
                    let problem = Problem { indexed, ..sums(outer, rows, positions, inner) };
                    if indexed != Indexed::Position && outer * positions * inner > u32::MAX as usize / 2 {
                        continue;
                    }
                    for machine in [Machine::Gpu, Machine::Software] {
                        let plan = plan(&problem, machine).expect("a plan applies");
                        assert_eq!(plan.refuses(&problem), None, "{problem:?} on {machine:?}");
                        assert!(Plan::candidates(&problem).contains(&plan), "{plan:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn plans_are_pinned() {
    use Machine::{Gpu, Software};
    let plan = |problem: &Problem, machine| plan(problem, machine).expect("a plan applies");
    let segmented =
        |plan: Plan| matches!(plan, Plan::Segmented(radix_sort::Plan::Chunks(_) | radix_sort::Plan::Tiles(_)));
    for machine in [Gpu, Software] {
        // The gradient of one element a row of classes.
        assert_eq!(plan(&sums(128, 10, 1, 1), machine), Plan::BruteForce);
        // Few rows of many sources; not where the order does not matter.
        let histogram = sums(1, 64, 1 << 20, 1);
        let by_blocks = if machine == Gpu { Plan::SortedBlocks } else { Plan::Privatised };
        assert_eq!(plan(&histogram, machine), by_blocks);
        assert!(segmented(plan(&Problem { update: Update::Max, ..histogram }, machine)));
        // Single elements of many.
        assert!(segmented(plan(&sums(1, 1 << 18, 1 << 20, 1), machine)));
        // One launch for a million reads.
        assert_eq!(plan(&rows(1000, 1000, 1), machine), Plan::BruteForce);
        // The gradient of a gather within rows.
        assert_eq!(plan(&sums(1024, 1000, 1000, 1), machine), by_blocks);
        assert_eq!(plan(&rows(100, 1 << 13, 256), machine), by_blocks);
    }
    // The gradient of one class of each of many lines.
    assert_eq!(plan(&sums(8192, 50_000, 1, 1), Gpu), Plan::BruteForce);
    assert_eq!(plan(&sums(8192, 50_000, 17, 1), Gpu), Plan::SortedBlocks);
    assert_eq!(plan(&rows(2000, 1000, 1), Software), Plan::Segmented(radix_sort::Plan::Rank));
    assert_eq!(plan(&rows(2000, 1000, 1), Gpu), Plan::SortedBlocks);
    // A cube that sorts a block would loop too often over rows this wide.
    assert_eq!(plan(&rows(16, 64, 1 << 14), Gpu), Plan::Privatised);
    for machine in [Gpu, Software] {
        // The gradient of an embedding, with fewer words than rows and with many of few rows.
        assert!(segmented(plan(&rows(10_000, 1 << 13, 64), machine)));
    }
}

/// Which plans a GPU gets: `kernels/examples/gpu_plans` has a case of each, and `NOT_ON_GPUS` of `cargo xtask inspect` the
/// kernels of the others.
#[test]
fn a_gpu_gets_every_plan_but_sorts_by_chunks() {
    let kind = |plan: Plan| match plan {
        Plan::BruteForce => "brute force",
        Plan::Privatised => "privatised",
        Plan::SortedBlocks => "sorted blocks",
        Plan::Segmented(radix_sort::Plan::Rank) => "segments, ranked",
        Plan::Segmented(radix_sort::Plan::Tiles(_)) => "segments, sorted by tiles",
        Plan::Segmented(radix_sort::Plan::Chunks(_)) => "segments, sorted by chunks",
    };
    let mut kinds = BTreeSet::new();
    for (outer, rows, inner) in [(1, 16, 1), (1, 16, 1 << 14), (1, 1 << 18, 1), (1, 50_000, 64), (64, 1000, 1)] {
        for positions in [1, 64, 1024, 2048, 1 << 13, 1 << 20] {
            for indexed in [Indexed::Position, Indexed::Batch, Indexed::Value] {
                for update in [Update::Add, Update::Max] {
                    let problem = Problem { indexed, update, ..sums(outer, rows, positions, inner) };
                    kinds.extend(plan(&problem, Machine::Gpu).map(kind));
                }
            }
        }
    }
    let all = ["brute force", "privatised", "segments, ranked", "segments, sorted by tiles", "sorted blocks"];
    assert_eq!(kinds, BTreeSet::from(all));
}
