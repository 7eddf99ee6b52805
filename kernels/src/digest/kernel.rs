//! The device side of [`digest`](super).

use super::reference::{K, LANES};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Units of a cube.
const UNITS: u32 = crate::grid::UNITS;

/// Cube `(x, t)` sums the terms of its vectors of words of tensor `t`, of which `lengths[t]` vectors count, the last one under
/// `masks[t]`, which covers whole vectors of more than one word. With `adds` it writes one sum, `partials[t, x, ..]`, else one for each unit, `partials[t, x, u, ..]`.
#[cube(launch_unchecked)]
pub fn digest<N: Size>(
    tensors: &Sequence<OwnedTensor<Vector<u32, N>>>,
    partials: &mut [u32],
    lengths: Sequence<u32>,
    masks: Sequence<u32>,
    #[comptime] adds: bool,
) {
    let width = N::value();
    let mut first = 0u32;
    let mut second = 0u32;
    let mut third = 0u32;
    let mut fourth = 0u32;
    #[unroll]
    for t in 0..tensors.len() {
        if CUBE_POS_Y == comptime!(t as u32) {
            let length = lengths[t];
            let mask = masks[t];
            let mut i = CUBE_POS_X * UNITS + UNIT_POS_X;
            while i < length {
                let words = tensors[t][i as usize];
                #[unroll]
                for lane in 0..width {
                    let mut x = words.extract(lane);
                    if comptime!(width == 1) {
                        x = select(i + 1 == length, x & mask, x);
                    }
                    let place = i * comptime!(width as u32) + comptime!(lane as u32);
                    let m = mix(place ^ comptime!(K[0]));
                    let t0 = mix(x + m);
                    first += t0;
                    second += t0 * rotated(m, 8u32);
                    third += t0 * rotated(m, 16u32);
                    fourth += t0 * rotated(m, 24u32);
                }
                i += CUBE_COUNT_X * UNITS;
            }
        }
    }
    let cube = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    if adds {
        let mut shared = Shared::<[u32]>::new_slice(comptime!(UNITS as usize * LANES));
        shared[UNIT_POS_X as usize] = first;
        shared[(UNITS + UNIT_POS_X) as usize] = second;
        shared[(2 * UNITS + UNIT_POS_X) as usize] = third;
        shared[(3 * UNITS + UNIT_POS_X) as usize] = fourth;
        sync_cube();
        if UNIT_POS_X < comptime!(LANES as u32) {
            let mut sum = 0u32;
            for unit in 0..UNITS {
                sum += shared[(UNIT_POS_X * UNITS + unit) as usize];
            }
            partials[(cube * comptime!(LANES as u32) + UNIT_POS_X) as usize] = sum;
        }
    } else {
        let place = (cube * UNITS + UNIT_POS_X) * comptime!(LANES as u32);
        partials[place as usize] = first;
        partials[(place + 1) as usize] = second;
        partials[(place + 2) as usize] = third;
        partials[(place + 3) as usize] = fourth;
    }
    keep_subnormals();
}

/// The finalizer of MurmurHash3.
#[cube]
fn mix(x: u32) -> u32 {
    let a = (x ^ (x >> 16)) * 0x85eb_ca6bu32;
    let b = (a ^ (a >> 13)) * 0xc2b2_ae35u32;
    b ^ (b >> 16)
}

/// `x.rotate_left(bits)`, which CubeCL does not have.
#[cube]
fn rotated(x: u32, #[comptime] bits: u32) -> u32 {
    let high = x << bits;
    let low = x >> comptime!(32 - bits);
    high | low
}
