//! The device side.

use cubecl::prelude::*;

#[cube(launch_unchecked)]
pub fn sum_level<F: Float>(
    input: &[F],
    output: &mut [F],
    units: u32,
    n: u32,
    inner: u32,
    #[comptime] chunk: u32,
    #[define(F)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let chunks = n.div_ceil(chunk);
    let lane = unit % inner;
    let rest = unit / inner;
    let part = rest % chunks;
    let outer = rest / chunks;
    let first = part * chunk;
    let end = min(first + chunk, n);
    let base = outer * n * inner + lane;
    let mut acc = input[(base + first * inner) as usize];
    for k in first + 1..end {
        acc += input[(base + k * inner) as usize];
    }
    output[unit as usize] = acc;
}
