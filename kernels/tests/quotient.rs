//! Quotients and square roots that are corrected: the host's bits, whatever the device divides.

use crate::harness::*;
use burn_deterministic_kernels::quotient::{corrected_quotient, corrected_root};
use cubecl::prelude::*;

/// Units of a cube.
const UNITS: u32 = 64;

#[cube(launch_unchecked)]
fn divided(operands: &[u32], results: &mut [u32], #[comptime] off: i32) {
    let unit = ABSOLUTE_POS;
    let (a, b) = (f32::reinterpret(operands[unit * 2]), f32::reinterpret(operands[unit * 2 + 1]));
    results[unit * 2] = u32::reinterpret(corrected_quotient(a, b, off));
    results[unit * 2 + 1] = u32::reinterpret(corrected_root(a, off));
}

/// The corrected quotient of each pair, and the root of its first number.
fn on_device(client: &Client, pairs: &[[u32; 2]], off: i32) -> Vec<[u32; 2]> {
    let mut operands = pairs.to_vec();
    operands.resize(pairs.len().next_multiple_of(UNITS as usize), [0; 2]);
    let count = 2 * operands.len();
    let input = client.create_from_slice(bytemuck::cast_slice(&operands));
    let output = client.empty(4 * count);
    // SAFETY: a unit reads its two operands, and writes its two results; the buffers hold those of all units.
    unsafe {
        divided::launch_unchecked(
            client,
            CubeCount::Static(operands.len() as u32 / UNITS, 1, 1),
            CubeDim::new_1d(UNITS),
            BufferArg::from_raw_parts(input, count),
            BufferArg::from_raw_parts(output.clone(), count),
            off,
        );
    }
    let bytes = client.read_one(output).expect("the device works");
    bytemuck::pod_collect_to_vec::<u8, [u32; 2]>(&bytes[..8 * pairs.len()])
}

/// Zeros, subnormal and normal ends, powers of two and their neighbours, infinities and a NaN, of both signs.
fn edges() -> Vec<u32> {
    let edges = [
        0,
        1,
        2,
        3,
        5,
        0x0040_0000,
        0x007f_fffe,
        0x007f_ffff,
        0x0080_0000,
        0x0080_0001,
        0x00ff_ffff,
        0x0100_0000,
        0x1a35_04f3,
        0x3380_0000,
        0x3f00_0000,
        0x3f7f_fffe,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x3f80_0002,
        0x3fff_fffe,
        0x3fff_ffff,
        0x4000_0000,
        0x4040_0000,
        0x407f_fffe,
        0x407f_ffff,
        0x4080_0000,
        0x4b7f_ffff,
        0x4b80_0000,
        0x7e80_0000,
        0x7eff_ffff,
        0x7f00_0000,
        0x7f00_0001,
        0x7f7f_fffe,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
    ];
    edges.into_iter().chain(edges.map(|bits| bits | 0x8000_0000)).collect()
}

fn pairs() -> Vec<[u32; 2]> {
    let edges = edges();
    let mut pairs: Vec<[u32; 2]> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| [a, b])).collect();
    let mut word = 1u32;
    let mut next = || {
        word = word.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        word ^ word >> 15
    };
    for _ in 0..1 << 15 {
        // All bits; then quotients that are near the middle of two floats, or a float, or subnormal.
        pairs.push([next(), next()]);
        let (q, b) = (next() & 0x007f_ffff | 0x3f80_0000, next() & 0x007f_ffff | 0x3f80_0000);
        let near = (f32::from_bits(q) * f32::from_bits(b)).to_bits();
        pairs.extend([[near, b], [near + 1, b], [near - 1, b]]);
        pairs.push([next() & 0x807f_ffff | 0x0100_0000, next() & 0x00ff_ffff | 0x3f80_0000]);
    }
    pairs
}

fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fc0_0000 } else { x.to_bits() }
}

#[test]
fn corrected_quotients_and_roots_have_the_bits_of_the_host() {
    let (client, pairs) = (client(), pairs());
    // Beside the device's own result, what is farther off.
    for off in [0, 1, -5, 5] {
        for (&[a, b], [quotient, root]) in pairs.iter().zip(on_device(&client, &pairs, off)) {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            let (q, r) = (canonical(x / y), canonical(x.sqrt()));
            assert_eq!(quotient, q, "{a:#010x} / {b:#010x} is {quotient:#010x}, want {q:#010x}, from {off} ULP off");
            assert_eq!(root, r, "sqrt({a:#010x}) is {root:#010x}, want {r:#010x}, from {off} ULP off");
        }
    }
}

/// Without a correction, and with one that reaches less far than the device is off, bits are wrong.
#[test]
fn a_result_too_far_off_is_not_corrected() {
    let (client, pairs) = (client(), pairs());
    let got = on_device(&client, &pairs, 20);
    let wrong =
        pairs.iter().zip(got).filter(|([a, b], got)| got[0] != canonical(f32::from_bits(*a) / f32::from_bits(*b)));
    assert!(wrong.count() > pairs.len() / 2);
}
