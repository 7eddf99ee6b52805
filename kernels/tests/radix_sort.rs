//! Plans of sorts by keys.

use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::radix_sort::plan::{Chunks, Plan, Problem, Tiles, plan};

#[test]
fn planned_sorts_are_taken() {
    for bits in 0..31 {
        for length in [1usize << bits, (2 << bits) - 1] {
            for rows in [1, 1 << 10, 1 << 20, u32::MAX as usize] {
                let problem = Problem { length, rows };
                for plan in [Machine::Gpu, Machine::Software].map(|machine| plan(&problem, machine)) {
                    assert_eq!(plan.refuses(&problem), None, "{problem:?}");
                    assert!(Plan::candidates(&problem).contains(&plan));
                }
                // `cargo xtask inspect` relies on it.
                assert!(!matches!(plan(&problem, Machine::Gpu), Plan::Chunks(_)), "chunks are for software drivers");
            }
        }
    }
}

#[test]
fn a_plan_that_does_not_sort_is_refused() {
    let problem = Problem { length: 1 << 20, rows: 1 << 20 };
    let Plan::Chunks(chunks) = plan(&problem, Machine::Software) else { panic!("2^20 keys are not ranked") };
    for wrong in [
        Chunks { passes: chunks.passes - 1, ..chunks },
        Chunks { chunk: 0, ..chunks },
        Chunks { digit_bits: 11, ..chunks },
        Chunks { chunk: 1 << 20, ..chunks },
        Chunks { chunk: 1 << 60, ..chunks },
        Chunks { chunk: usize::MAX, ..chunks },
        Chunks { passes: 33, digit_bits: 1, chunk: 64 },
        Chunks { passes: (1 << 31) + 1, digit_bits: 2, chunk: 64 },
        Chunks { passes: u32::MAX, digit_bits: 10, chunk: 64 },
    ] {
        assert!(Plan::Chunks(wrong).refuses(&problem).is_some(), "{wrong:?}");
    }
    let Plan::Tiles(tiles) = plan(&problem, Machine::Gpu) else { panic!("2^20 keys are not ranked") };
    for wrong in [
        Tiles { passes: tiles.passes - 1, ..tiles },
        Tiles { passes: 3, digit_bits: 9 },
        Tiles { passes: 3, digit_bits: 0 },
        Tiles { passes: 33, digit_bits: 1 },
        Tiles { passes: u32::MAX, digit_bits: 8 },
    ] {
        assert!(Plan::Tiles(wrong).refuses(&problem).is_some(), "{wrong:?}");
    }
    assert!(Plan::Rank.refuses(&problem).is_some());
}
