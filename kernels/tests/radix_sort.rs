//! Plans of sorts by keys.

use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::radix_sort::plan::{Plan, Radix, Tiles, plan};

#[test]
fn planned_sorts_are_taken() {
    for bits in 0..31 {
        for keys in [1usize << bits, (2 << bits) - 1] {
            for rows in [1, 1 << 10, 1 << 20, u32::MAX as usize] {
                for plan in [Machine::Gpu, Machine::Software].map(|machine| plan(rows, keys, machine)) {
                    assert_eq!(plan.refuses(rows, keys), None, "{keys} keys in 0..={rows}");
                    assert!(Plan::candidates(rows, keys).contains(&plan));
                }
                // `cargo xtask inspect` relies on it.
                assert!(!matches!(plan(rows, keys, Machine::Gpu), Plan::Radix(_)), "chunks are for software drivers");
            }
        }
    }
}

#[test]
fn a_plan_that_does_not_sort_is_refused() {
    let Plan::Radix(radix) = plan(1 << 20, 1 << 20, Machine::Software) else { panic!("2^20 keys are not ranked") };
    for wrong in [
        Radix { passes: radix.passes - 1, ..radix },
        Radix { chunk: 0, ..radix },
        Radix { digit_bits: 11, ..radix },
        Radix { chunk: 1 << 20, ..radix },
        Radix { chunk: 1 << 60, ..radix },
        Radix { chunk: usize::MAX, ..radix },
        Radix { passes: 33, digit_bits: 1, chunk: 64 },
        Radix { passes: (1 << 31) + 1, digit_bits: 2, chunk: 64 },
        Radix { passes: u32::MAX, digit_bits: 10, chunk: 64 },
    ] {
        assert!(Plan::Radix(wrong).refuses(1 << 20, 1 << 20).is_some(), "{wrong:?}");
    }
    let Plan::Tiles(tiles) = plan(1 << 20, 1 << 20, Machine::Gpu) else { panic!("2^20 keys are not ranked") };
    for wrong in [
        Tiles { passes: tiles.passes - 1, ..tiles },
        Tiles { passes: 3, digit_bits: 9 },
        Tiles { passes: 3, digit_bits: 0 },
        Tiles { passes: 33, digit_bits: 1 },
        Tiles { passes: u32::MAX, digit_bits: 8 },
    ] {
        assert!(Plan::Tiles(wrong).refuses(1 << 20, 1 << 20).is_some(), "{wrong:?}");
    }
    assert!(Plan::Rank.refuses(1, 1 << 20).is_some());
}
