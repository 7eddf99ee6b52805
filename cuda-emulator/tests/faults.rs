//! Planted faults: each is found and named, and its mended twin passes.

mod driver;

use cuda_emulator::{Finding, Kind, findings_of};
use driver::{Run, settings};

const INPUT: [f32; 64] = [1.5; 64];

fn launch(name: &str, source: &str) -> Result<(Vec<u32>, i32), String> {
    let run = Run { source, name, blocks: 2, threads: 64, shared: 256, input: &INPUT, output: 128 };
    // Faults that need one block, for which several would be another fault.
    let run = if name.starts_with("blocks") { run } else { Run { blocks: 1, output: 64, ..run } };
    run.with(settings(None, true))
}

/// The findings of a kernel of `faults`, and the status of its launch.
fn findings(name: &str, source: &str) -> (Vec<Finding>, i32) {
    let (_, status) = launch(name, source).unwrap_or_else(|log| panic!("{name} does not compile: {log}"));
    (findings_of(name), status)
}

macro_rules! fault {
    ($name:ident, $mended:ident, $kind:expr, $status:expr, $($part:expr),+) => {
        #[test]
        fn $name() {
            let (found, status) = findings(stringify!($name), include_str!(concat!("faults/", stringify!($name), ".cu")));
            assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [$kind], "{found:?}");
            assert_eq!(status, $status);
            for part in [$($part),+] {
                assert!(found[0].first.contains(part), "{part:?} is not in {:?}", found[0].first);
            }
        }

        #[test]
        fn $mended() {
            let mended = findings(stringify!($mended), include_str!(concat!("faults/", stringify!($mended), ".cu")));
            assert_eq!(mended, (vec![], 0));
        }
    };
}

const ILLEGAL_ADDRESS: i32 = 700;
const MISALIGNED_ADDRESS: i32 = 716;

fault!(missing_barrier, missing_barrier_mended, Kind::ThreadRace, 0, "shared memory", "thread (");
fault!(
    off_by_one,
    off_by_one_mended,
    Kind::Memory,
    ILLEGAL_ADDRESS,
    "block (0, 0, 0), thread (63, 0, 0)",
    "reads 4 bytes at byte 256 of buffer 0 (`input`), which has 256 bytes"
);
fault!(
    uninitialised_global,
    uninitialised_global_mended,
    Kind::Initialisation,
    0,
    "thread (0, 0, 0) reads 4 bytes at byte 0 of buffer 1 (`output`) (256 bytes) that nobody wrote"
);
fault!(
    uninitialised_shared,
    uninitialised_shared_mended,
    Kind::Initialisation,
    0,
    "thread (1, 0, 0) reads 4 bytes at byte 4 of shared memory that nobody wrote"
);
fault!(
    barrier_in_a_branch,
    barrier_in_a_branch_mended,
    Kind::Barrier,
    0,
    "32 threads wait at a barrier that 32 have left"
);
fault!(
    blocks_at_one_address,
    blocks_at_one_address_mended,
    Kind::BlockRace,
    0,
    "block (1, 0, 0), thread (0, 0, 0) writes byte 0 of buffer 1",
    "which block (0, 0, 0) used"
);

// Of the 63 writes after the first, each is after another thread's.
fault!(
    flag_of_many_values,
    flag_of_many_values_mended,
    Kind::ThreadRace,
    0,
    "thread (1, 0, 0) writes byte 0 of buffer 1",
    "which thread (0, 0, 0) used without a barrier between"
);
fault!(
    flag_written_again,
    flag_written_again_mended,
    Kind::ThreadRace,
    0,
    "thread (63, 0, 0) writes byte 0 of buffer 1",
    "which other threads used without a barrier between"
);
fault!(
    flag_read_beside,
    flag_read_beside_mended,
    Kind::ThreadRace,
    0,
    "thread (63, 0, 0) reads byte 0 of buffer 1",
    "which other threads used without a barrier between"
);

#[test]
fn atomic_add() {
    let refusal = launch("atomic_add", include_str!("faults/atomic_add.cu")).expect_err("an atomic is refused");
    assert!(refusal.contains("`atomicAdd`"), "{refusal}");
}

#[test]
fn atomic_add_mended() {
    let run = Run {
        source: include_str!("faults/atomic_add_mended.cu"),
        name: "atomic_add_mended",
        blocks: 1,
        threads: 64,
        shared: 0,
        input: &INPUT,
        output: 1,
    };
    assert_eq!(run.with(settings(None, true)), Ok((vec![96.0f32.to_bits()], 0)));
    assert_eq!(findings_of("atomic_add_mended"), []);
}

#[test]
fn different_barriers() {
    let (found, _) = findings("different_barriers", include_str!("faults/different_barriers.cu"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].kind == Kind::Barrier && found[0].first.contains("different barriers"), "{found:?}");
}

#[test]
fn far_outside() {
    let (found, status) = findings("far_outside", include_str!("faults/far_outside.cu"));
    assert_eq!(
        (found.len(), found[0].kind, found[0].count, status),
        (1, Kind::Memory, 64, ILLEGAL_ADDRESS),
        "{found:?}"
    );
    assert!(found[0].first.contains("outside every buffer"), "{found:?}");
}

/// A variable of the source, which other launches would find changed.
#[test]
fn global_variable() {
    let (found, status) = findings("global_variable", include_str!("faults/global_variable.cu"));
    assert_eq!((found.len(), found[0].kind, status), (1, Kind::Memory, ILLEGAL_ADDRESS), "{found:?}");
    assert!(found[0].first.contains("writes 4 bytes"), "{found:?}");
}

/// It holds a pattern, the same in every run.
#[test]
fn unset_element() {
    let source = include_str!("faults/unset_element.cu");
    let run = Run { source, name: "unset_element", blocks: 1, threads: 4, shared: 0, input: &INPUT[..4], output: 4 };
    let (bits, _) = run.with(settings(None, false)).expect("it compiles");
    assert_eq!(bits, [0xFEFE_FEFE; 4]);
}

/// A GPU may read the input from a cache that sees no write.
#[test]
fn written_constant() {
    let source = include_str!("faults/written_constant.cu");
    let run = |name, source| {
        let run = Run { source, name, blocks: 1, threads: 64, shared: 0, input: &INPUT, output: 64 };
        run.in_place(settings(None, true)).expect("it compiles");
        findings_of(name)
    };
    let found = run("written_constant", source);
    assert_eq!((found.len(), found[0].kind), (1, Kind::Constant), "{found:?}");
    assert!(found[0].first.contains("byte 0 of buffer 0 (`input`)"), "{found:?}");
    assert_eq!(run("written_constant_mended", include_str!("faults/written_constant_mended.cu")), []);
}

/// The output begins where the input ends: after 64 elements, and after 3.
#[test]
fn misaligned_vectors() {
    let source = include_str!("faults/misaligned_vectors.cu");
    let run = |input: &[f32]| {
        let run = Run { source, name: "misaligned_vectors", blocks: 1, threads: 1, shared: 0, input, output: 4 };
        run.with(settings(None, false)).expect("it compiles").1
    };
    assert_eq!(run(&INPUT), 0);
    assert_eq!(findings_of("misaligned_vectors"), []);
    assert_eq!(run(&INPUT[..3]), MISALIGNED_ADDRESS);
    let found = findings_of("misaligned_vectors");
    assert!(found[0].kind == Kind::Memory && found[0].first.contains("`output`"), "{found:?}");
    assert!(found[0].first.contains("aligned to 16 bytes"), "{found:?}");
}

#[test]
fn what_does_not_compile_says_why() {
    let source = include_str!("faults/off_by_one.cu").replace("threadIdx.x + 1", "nowhere");
    let log = launch("off_by_one", &source).expect_err("an unknown name does not compile");
    assert!(log.contains("‘nowhere’ was not declared"), "{log}");
}
