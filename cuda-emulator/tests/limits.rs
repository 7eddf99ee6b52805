//! Launches that an H100 refuses are refused here.

mod driver;

use cuda_emulator::with_settings;
use driver::{Function, settings};

const INVALID_VALUE: i32 = 1;

const ONE: [u32; 3] = [1, 1, 1];

/// The most bytes of shared memory of a block that asks for them.
const MAX_SHARED: u32 = 227 << 10;

fn nothing() -> Function {
    let source = "extern \"C\" __global__ void nothing() {}";
    with_settings(settings(None, false), || Function::load(source, "nothing")).expect("it compiles")
}

fn launched(function: &Function, grid: [u32; 3], block: [u32; 3], shared: u32) -> i32 {
    // SAFETY: the kernel has no parameters.
    with_settings(settings(None, false), || unsafe { function.launch(grid, block, shared, &mut []) })
}

#[test]
fn grids_and_blocks_have_the_most_along_each_axis() {
    let function = nothing();
    for (grid, block) in [([1, 0xFFFF, 1], ONE), ([1, 1, 0xFFFF], ONE), (ONE, [1, 1024, 1]), (ONE, [16, 1, 64])] {
        assert_eq!(launched(&function, grid, block, 0), 0, "{grid:?} {block:?}");
    }
    for (grid, block) in [
        ([1, 0x1_0000, 1], ONE),
        ([1, 1, 0x1_0000], ONE),
        ([0x8000_0000, 1, 1], ONE),
        ([u32::MAX; 3], ONE),
        ([0, 1, 1], ONE),
        (ONE, [1, 1, 65]),
        (ONE, [1025, 1, 1]),
        (ONE, [32, 33, 1]),
        (ONE, [1, 0, 1]),
    ] {
        assert_eq!(launched(&function, grid, block, 0), INVALID_VALUE, "{grid:?} {block:?}");
    }
}

#[test]
fn more_shared_memory_than_48_kib_is_asked_for() {
    let function = nothing();
    assert_eq!(launched(&function, ONE, ONE, 48 << 10), 0);
    assert_eq!(launched(&function, ONE, ONE, (48 << 10) + 1), INVALID_VALUE);
    assert_eq!(function.ask_for_shared(MAX_SHARED as i32 + 1), INVALID_VALUE);
    assert_eq!(function.ask_for_shared(-1), INVALID_VALUE);
    assert_eq!(function.ask_for_shared(MAX_SHARED as i32), 0);
    assert_eq!(launched(&function, ONE, ONE, MAX_SHARED), 0);
    assert_eq!(launched(&function, ONE, ONE, MAX_SHARED + 1), INVALID_VALUE);
}
