//! Kernels that keep subnormal numbers: IEEE 754's bits, on a device that takes these for zero too.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::subnormals::keep_subnormals_if;
use cubecl::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Units of a cube.
const UNITS: u32 = 64;

/// What an operation gives on the host.
type Host = fn(f32, f32, f32) -> u32;

/// The kernel's results, in its order.
const OPERATIONS: [(&str, Host); 26] = [
    ("a + b", |a, b, _| (a + b).to_bits()),
    ("a - b", |a, b, _| (a - b).to_bits()),
    ("a * b", |a, b, _| (a * b).to_bits()),
    ("fma(a, b, c)", |a, b, c| (a * b + c).to_bits()),
    ("fma(a, b, -0.0)", |a, b, _| (a * b).to_bits()),
    ("a / b", |a, b, _| (a / b).to_bits()),
    ("sqrt(a)", |a, _, _| a.sqrt().to_bits()),
    ("-a", |a, _, _| (-a).to_bits()),
    ("|a|", |a, _, _| a.abs().to_bits()),
    ("min(a, b)", |a, b, _| if b < a { b } else { a }.to_bits()),
    ("max(a, b)", |a, b, _| if b > a { b } else { a }.to_bits()),
    ("a < b", |a, b, _| (a < b).into()),
    ("a <= b", |a, b, _| (a <= b).into()),
    ("a > b", |a, b, _| (a > b).into()),
    ("a >= b", |a, b, _| (a >= b).into()),
    ("a == b", |a, b, _| (a == b).into()),
    ("a is not 0", |a, _, _| (a != 0.0).into()),
    ("floor(a)", |a, _, _| a.floor().to_bits()),
    ("ceil(a)", |a, _, _| a.ceil().to_bits()),
    ("trunc(a)", |a, _, _| a.trunc().to_bits()),
    ("(a * b + c) * a", |a, b, c| ((a * b + c) * a).to_bits()),
    ("a + b + c of vectors", |a, b, c| (a + b + c).to_bits()),
    ("b + b + c of vectors", |_, b, c| (b + b + c).to_bits()),
    ("a b of vectors", |a, b, _| (a * b).to_bits()),
    ("a != b", |a, b, _| (a != b).into()),
    ("round(a)", |a, _, _| a.round_ties_even().to_bits()),
];

/// A kernel with every operation, whose operations are in branches and in a loop too.
#[cube(launch_unchecked)]
fn compute(operands: &[u32], results: &mut [u32], #[comptime] kept: bool) {
    let unit = ABSOLUTE_POS;
    let a = f32::reinterpret(operands[unit * 3]);
    let b = f32::reinterpret(operands[unit * 3 + 1]);
    let c = f32::reinterpret(operands[unit * 3 + 2]);
    let first = unit * comptime!(OPERATIONS.len());
    if unit < results.len() {
        results[first] = u32::reinterpret(a + b);
        results[first + 1] = u32::reinterpret(a - b);
    }
    results[first + 2] = u32::reinterpret(a * b);
    results[first + 3] = u32::reinterpret(fma(a, b, c));
    results[first + 4] = u32::reinterpret(fma(a, b, f32::reinterpret(0x8000_0000u32)));
    results[first + 5] = u32::reinterpret(a / b);
    results[first + 6] = u32::reinterpret(a.sqrt());
    results[first + 7] = u32::reinterpret(-a);
    results[first + 8] = u32::reinterpret(a.abs());
    results[first + 9] = u32::reinterpret(min(a, b));
    results[first + 10] = u32::reinterpret(max(a, b));
    results[first + 11] = u32::cast_from(a < b);
    results[first + 12] = u32::cast_from(a <= b);
    results[first + 13] = u32::cast_from(a > b);
    results[first + 14] = u32::cast_from(a >= b);
    results[first + 15] = u32::cast_from(a == b);
    results[first + 16] = u32::cast_from(bool::cast_from(a));
    results[first + 17] = u32::reinterpret(a.floor());
    results[first + 18] = u32::reinterpret(a.ceil());
    results[first + 19] = u32::reinterpret(a.trunc());
    let mut turning = b;
    for i in 0..2 {
        turning = if i == 0 { fma(a, turning, c) } else { a * turning };
    }
    results[first + 20] = u32::reinterpret(turning);
    let mut vector = Vector::<f32, Const<2>>::empty();
    vector.insert(0usize, a);
    vector.insert(1usize, b);
    let sums = vector + Vector::new(b) + Vector::new(c);
    results[first + 21] = u32::reinterpret(sums.extract(0usize));
    results[first + 22] = u32::reinterpret(sums.extract(1usize));
    let products = vector * Vector::new(b);
    results[first + 23] = u32::reinterpret(products.extract(0usize));
    results[first + 24] = u32::cast_from(a != b);
    results[first + 25] = u32::reinterpret(a.round());
    keep_subnormals_if(kept);
}

/// The results of each three operands.
fn on_device(client: &Client, operands: &[[u32; 3]], kept: bool) -> Vec<[u32; OPERATIONS.len()]> {
    let count = operands.len().next_multiple_of(UNITS as usize);
    let mut padded = operands.to_vec();
    padded.resize(count, [0; 3]);
    let input = client.create_from_slice(bytemuck::cast_slice(&padded));
    let output = client.empty(4 * count * OPERATIONS.len());
    // SAFETY: a unit reads its three operands, and writes its results; the buffers hold those of all units.
    unsafe {
        compute::launch_unchecked(
            client,
            CubeCount::Static(count as u32 / UNITS, 1, 1),
            CubeDim::new_1d(UNITS),
            BufferArg::from_raw_parts(input, 3 * count),
            BufferArg::from_raw_parts(output.clone(), OPERATIONS.len() * count),
            kept,
        );
    }
    let bytes = client.read_one(output).expect("the device works");
    let words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
    let rows = words.chunks_exact(OPERATIONS.len()).take(operands.len());
    rows.map(|row| row.try_into().expect("a row has all results")).collect()
}

/// The ends of subnormal numbers, of what the kernels take for small, of normal numbers; both signs.
fn edges() -> Vec<u32> {
    let magnitudes = [
        0u32,
        1,
        2,
        3,
        0x0000_0100,
        0x0040_0000,
        0x0040_0001,
        0x007f_fffe,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x00c0_0000,
        0x00ff_ffff,
        0x0100_0000,
        0x0c7f_ffff,
        0x0d7f_ffff,
        0x0d80_0000,
        0x0d80_0001,
        0x0e00_0000,
        0x1f80_0000,
        0x1fff_ffff,
        0x2000_0000,
        0x33ff_ffff,
        0x3f00_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x4000_0000,
        0x4b00_0001,
        0x6000_0000,
        0x7e80_0000,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
    ];
    magnitudes.iter().flat_map(|&bits| [bits, bits | 1 << 31]).collect()
}

fn operands() -> Vec<[u32; 3]> {
    let edges = edges();
    let mut all = Vec::new();
    for (i, &a) in edges.iter().enumerate() {
        for (j, &b) in edges.iter().enumerate() {
            all.push([a, b, edges[(i * 7 + j * 3) % edges.len()]]);
        }
    }
    // Products near the least normal number, and sums of small numbers.
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for i in 0..1 << 15 {
        let [a, b, c]: [u32; 3] = rng.random();
        let (a, c) = match i % 3 {
            0 => (a & 0x807f_ffff | (a >> 8 & 0x1f) << 23, c & 0x807f_ffff | (c >> 8 & 0x1f) << 23),
            _ => (a, c & 0x81ff_ffff),
        };
        let sum_of_exponents = 100 + (b >> 5) % 40;
        let exponent = sum_of_exponents.saturating_sub(a >> 23 & 0xff);
        let b = match i % 3 {
            1 => b & 0x807f_ffff | exponent << 23,
            _ => b & 0x81ff_ffff,
        };
        all.push([a, b, c]);
    }
    all
}

#[test]
fn operations_have_the_bits_of_the_host() {
    let client = client();
    let operands = operands();
    let alike = |a: u32, b: u32| a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan();
    let is_extreme = |name: &str| name.starts_with("min") || name.starts_with("max");
    for (row, of) in on_device(&client, &operands, true).iter().zip(&operands) {
        let [a, b, c] = of.map(f32::from_bits);
        for (&got, (name, host)) in row.iter().zip(OPERATIONS) {
            let want = match name {
                _ if is_extreme(name) && a.is_nan() => b.to_bits(),
                _ if is_extreme(name) && b.is_nan() => a.to_bits(),
                // Of zeros of both signs, the device's.
                _ if is_extreme(name) && a == 0.0 && b == 0.0 => got & 1 << 31,
                // The device's own, on lavapipe: false.
                "a != b" if a.is_nan() || b.is_nan() => got & 1,
                _ => host(a, b, c),
            };
            assert!(alike(got, want), "{name} of {of:08x?} is {got:08x}, want {want:08x}");
        }
    }
}

#[test]
fn a_device_that_takes_them_for_zero_has_other_bits() {
    let client = client();
    let subnormal = [[0x0040_0000, 0x3f00_0000, 0x0000_0001]];
    let [kept, own] = [true, false].map(|kept| on_device(&client, &subnormal, kept));
    let flushes = takes_subnormals_for_zero(&client);
    assert_eq!(kept == own, !flushes, "{kept:08x?} {own:08x?}");
    if !flushes {
        skip("the device computes with subnormal numbers: nothing differs");
    }
}
