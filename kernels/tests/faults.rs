//! Planted faults: copies of a kernel with one fault each, and what finds it. CONTRIBUTING.md lists where else they are planted.

use crate::harness::{F32, assert_bits, client, multiply_add_of, random_values, upload};
use crate::skip::skip;
use burn_deterministic_kernels::arithmetic::MultiplyAdd;
use burn_deterministic_kernels::reduce::reference;
use cubecl::prelude::*;
use cubecl::server::ServerError;
use std::env;
use std::process::Command;

/// What is wrong with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
    /// Nothing.
    None,
    /// Units add to the output as they come. The emulator refuses to compile it.
    AtomicAdd,
    /// Unit 0 reads the columns without waiting for them. The emulator's racecheck finds it.
    MissingBarrier,
    /// Columns begin one element too far. Its memcheck finds it.
    OffByOne,
    /// Nobody writes the last column. Its initcheck finds it.
    Uninitialised,
    /// Columns are added in descending order. The comparison with the reference finds it.
    AnotherOrder,
    /// A product is not rounded before it is added. The comparison with the reference finds it where `fma` rounds once.
    Contraction,
}

const COLUMNS: u32 = 64;

const UNITS: u32 = 32;

/// Elements: columns of 15 and of 16.
const LENGTH: usize = 1000;

/// `a * b` rounded, as `multiply_rounded` in `kernels/src`.
#[cube]
fn rounded(a: f32, b: f32) -> f32 {
    let rounded = fma(a, b, f32::reinterpret(0x8000_0000u32));
    f32::reinterpret(u32::reinterpret(rounded) ^ (CUBE_COUNT_X >> 31))
}

/// The chain over the products of one column.
#[cube]
fn column(lhs: &[f32], rhs: &[f32], first: u32, length: u32, #[comptime] fault: Fault) -> f32 {
    let mut at = first as usize;
    if comptime!(fault == Fault::OffByOne) {
        at += 1;
    }
    let mut chain = rounded(lhs[at], rhs[at]);
    for _ in 1..(length - first).div_ceil(COLUMNS) {
        at += COLUMNS as usize;
        if comptime!(fault == Fault::Contraction) {
            chain = fma(lhs[at], rhs[at], chain);
        } else {
            chain += rounded(lhs[at], rhs[at]);
        }
    }
    chain
}

/// A copy of `reduce_single` for one block by several units, which adds products: `output[0]` from `lhs[length]`, `rhs[length]`.
#[cube(launch_unchecked)]
fn sum_of_products(lhs: &[f32], rhs: &[f32], output: &mut [f32], length: u32, #[comptime] fault: Fault) {
    let mut shared = Shared::<[f32]>::new_slice(COLUMNS as usize);
    let written = if comptime!(fault == Fault::Uninitialised) { COLUMNS - 1 } else { COLUMNS };
    let mut c = UNIT_POS_X;
    while c < written {
        shared[c as usize] = column(lhs, rhs, c, length, fault);
        c += UNITS;
    }
    if comptime!(fault != Fault::MissingBarrier) {
        sync_cube();
    }
    if UNIT_POS_X == 0 {
        let first = if comptime!(fault == Fault::AnotherOrder) { COLUMNS - 1 } else { 0u32 };
        let mut total = shared[first as usize];
        for c in 1..COLUMNS {
            let next = if comptime!(fault == Fault::AnotherOrder) { COLUMNS - 1 - c } else { c };
            total += shared[next as usize];
        }
        output[0] = total;
    }
}

/// The same, by units that add to the output.
#[cube(launch_unchecked)]
fn atomic_sum_of_products(lhs: &[f32], rhs: &[f32], output: &mut [Atomic<f32>], length: u32) {
    let mut c = UNIT_POS_X;
    while c < COLUMNS {
        output[0].fetch_add(column(lhs, rhs, c, length, Fault::None));
        c += UNITS;
    }
}

/// Their sum has other bits in descending order, and others with contracted products.
fn operands() -> [Vec<f32>; 2] {
    [7, 8].map(|seed| random_values(seed, LENGTH))
}

/// The sum by a copy with a fault, or the device's error.
fn sum(client: &Client, fault: Fault) -> Result<f32, ServerError> {
    let [lhs, rhs] = operands().map(|values| upload(client, &values, &[LENGTH], F32));
    let [lhs, rhs] = [lhs, rhs].map(|tensor| tensor.into_arg().into_buffer_arg());
    let output = client.create_from_slice(&[0; 4]);
    let (cubes, units) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(UNITS));
    // SAFETY: without a fault they read the 1000 elements of each operand, and write one; faults are for the emulator, which
    // finds an access beyond them.
    unsafe {
        let at = BufferArg::from_raw_parts(output.clone(), 1);
        match fault {
            Fault::AtomicAdd => {
                atomic_sum_of_products::launch_unchecked(client, cubes, units, lhs, rhs, at, LENGTH as u32)
            }
            _ => sum_of_products::launch_unchecked(client, cubes, units, lhs, rhs, at, LENGTH as u32, fault),
        }
    }
    let bytes = client.read_one(output)?;
    Ok(f32::from_le_bytes(bytes[..4].try_into().expect("four bytes of one f32")))
}

fn expected() -> f32 {
    let [lhs, rhs] = operands();
    let products: Vec<f32> = lhs.iter().zip(&rhs).map(|(a, b)| a * b).collect();
    reference::sum(&products)
}

#[test]
fn the_kernel_without_a_fault_passes() {
    assert_bits(&[sum(&client(), Fault::None).expect("the device works")], &[expected()]);
    expect_from_checks(Fault::None, None);
}

#[test]
fn another_order_is_not_the_references() {
    let got = sum(&client(), Fault::AnotherOrder).expect("the device works");
    assert_ne!(got.to_bits(), expected().to_bits(), "the operands do not show a wrong order");
}

#[test]
fn a_contracted_product_is_not_the_references() {
    let client = client();
    if multiply_add_of(&client) == MultiplyAdd::Unfused {
        return skip("`fma` rounds twice on this device: a contracted product is a rounded one");
    }
    let got = sum(&client, Fault::Contraction).expect("the device works");
    assert_ne!(got.to_bits(), expected().to_bits(), "the operands do not show a contraction");
}

#[test]
fn an_atomic_add_is_refused() {
    expect_from_checks(Fault::AtomicAdd, Some("the kernel uses `atom`: atomics run in no fixed order"));
}

#[test]
fn a_missing_barrier_is_found() {
    expect_from_checks(Fault::MissingBarrier, Some("racecheck (threads): kernel `sum_of_products"));
}

#[test]
fn an_index_off_by_one_is_found() {
    expect_from_checks(Fault::OffByOne, Some("reads 4 bytes at byte 4000 of buffer 0"));
}

#[test]
fn an_uninitialised_read_is_found() {
    expect_from_checks(Fault::Uninitialised, Some("reads 4 bytes at byte 252 of shared memory that nobody wrote"));
}

/// Names the fault in a process that [`expect_from_checks`] started.
const CHILD: &str = "BURN_DETERMINISTIC_FAULT";

/// The program of the process that [`expect_from_checks`] starts: computes with the fault.
#[test]
#[ignore = "the program that other tests run"]
fn computed() {
    let name = env::var(CHILD).expect("a fault is named");
    use Fault::*;
    let faults = [None, AtomicAdd, MissingBarrier, OffByOne, Uninitialised];
    let fault = faults.into_iter().find(|fault| format!("{fault:?}") == name).expect("a fault");
    println!("{}", sum(&client(), fault).expect("no fault is found"));
}

/// Computes with a fault on the emulator with its checks, in a process of its own, and requires that it fails and says
/// `finding`; without one, that it succeeds.
fn expect_from_checks(fault: Fault, finding: Option<&str>) {
    if !client().properties().identity.name.starts_with("CUDA emulator") {
        return skip("only the CUDA emulator checks races and accesses to memory");
    }
    let mut command = Command::new(env::current_exe().expect("a test has a path"));
    command.args(["--exact", "faults::computed", "--ignored", "--nocapture"]).env(CHILD, format!("{fault:?}"));
    let output = command.env("CUDA_EMULATOR_CHECK", "1").env_remove("CUDA_EMULATOR_REPORT").output();
    let output = output.expect("the test runs itself");
    let said = String::from_utf8_lossy(&output.stderr);
    match finding {
        Some(finding) => assert!(!output.status.success() && said.contains(finding), "{:?}: {said}", output.status),
        None => assert!(output.status.success(), "{:?}: {said}", output.status),
    }
}
