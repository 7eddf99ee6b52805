//! Updates of single elements without a sort: the sources of a run that name rows of one bin are linked in their order,
//! and one unit follows a bin's links through all runs, keeping the fold of each of its rows.
//!
//! A row's bin is its low bits, so that neighbouring rows are in different bins.

use crate::launch::{cubes, grid};
use crate::scatter::accepts::Types;
use crate::scatter::kernel::{combine, row_of};
use crate::scatter::plan::{Chains, Problem};
use crate::scatter::segment::{Keys, run_grid, words, words_arg};
use crate::scatter::update::Operands;
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Units in a cube that follows links: a vector register of most CPUs, since a cube is one core's work.
const BIN_UNITS: u32 = 8;

/// Levels of the contract's tree of which a row keeps the chunk in the making: enough for `CHUNK` to this power of sources.
pub(super) const LEVELS: u32 = 4;

/// The geometry of the links.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Geometry {
    rows: u32,
    sources: u32,
    run: u32,
    runs: u32,
    bin_bits: u32,
    /// Places for the rows of one bin.
    places: u32,
    /// Bits of a link that hold the row's number within its bin; the others hold the next source's within its run.
    row_bits: u32,
}

/// One unit per run: links its sources from the last to the first, so that `heads[run, bin]` is the first of each bin.
///
/// A number within a run of the run's length ends a chain.
#[cube(launch_unchecked)]
fn link_runs<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    heads: &mut [u32],
    links: &mut [u32],
    stride: u32,
    geometry: Geometry,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= geometry.runs {
        terminate!();
    }
    let bins = 1u32 << geometry.bin_bits;
    for bin in 0..bins {
        heads[(unit * bins + bin) as usize] = geometry.run;
    }
    let width = N::value();
    let first = unit * geometry.run;
    let vectors = (min(first + geometry.run, geometry.sources) - first) / comptime!(width as u32);
    for back in 1..vectors + 1 {
        let within = (vectors - back) * comptime!(width as u32);
        let keys = keys[((first + within) / comptime!(width as u32) * stride) as usize];
        #[unroll]
        for lane in 0..width {
            let lane = comptime!(width - 1 - lane);
            let row = row_of::<I>(keys.extract(lane), geometry.rows);
            if row < geometry.rows {
                let local = within + comptime!(lane as u32);
                let head = (unit * bins + (row & (bins - 1))) as usize;
                links[(first + local) as usize] = (heads[head] << geometry.row_bits) | (row >> geometry.bin_bits);
                heads[head] = local;
            }
        }
    }
}

/// One unit per row: no source so far.
#[cube(launch_unchecked)]
fn clear<N: Size>(rows: &mut [Vector<u32, N>], length: u32) {
    let row = ABSOLUTE_POS as u32;
    if row >= length {
        terminate!();
    }
    rows[row as usize] = Vector::<u32, N>::new(0u32);
}

/// One unit per bin: adds its sources in runs `first..end` to their rows.
#[cube(launch_unchecked)]
fn follow<F: Numeric, A: Numeric, N: Size>(
    heads: &[u32],
    links: &[u32],
    values: &[F],
    rows: &mut [Vector<u32, N>],
    totals: &mut [A],
    value_stride: u32,
    first: u32,
    end: u32,
    geometry: Geometry,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let bin = ABSOLUTE_POS as u32;
    let bins = 1u32 << geometry.bin_bits;
    if bin >= bins {
        terminate!();
    }
    let all = bins * geometry.places;
    let first_place = bin * geometry.places;
    let length = geometry.run;
    let row_bits = geometry.row_bits;
    let row_mask = (1u32 << row_bits) - 1;
    let mut run = first;
    let mut at = heads[(first * bins + bin) as usize];
    let mut place = 0u32;
    while run < end {
        // Until a row's chunk is complete, which is rare: software drivers execute both sides of every branch, but leave
        // loops.
        let mut complete = false;
        while run < end && !complete {
            if at == length {
                run += 1;
                if run < end {
                    at = heads[(run * bins + bin) as usize];
                }
            } else {
                let source = run * length + at;
                let link = links[source as usize];
                place = first_place + (link & row_mask);
                let state = rows[place as usize];
                let count = state.extract(0usize);
                let opens = count & (chunk_length - 1) == 0;
                complete = opens && count != 0;
                if !complete {
                    let value = A::cast_from(values[(source * value_stride) as usize]);
                    let total = combine::<A>(A::reinterpret(state.extract(1usize)), value, update, is_float);
                    let mut after = Vector::<u32, N>::empty();
                    after.insert(0usize, count + 1);
                    after.insert(1usize, u32::reinterpret(select(opens, value, total)));
                    rows[place as usize] = after;
                    at = link >> row_bits;
                }
            }
        }
        if complete {
            let source = run * length + at;
            let state = rows[place as usize];
            let count = state.extract(0usize);
            let mut term = A::reinterpret(state.extract(1usize));
            let mut terms = count;
            let mut ends = true;
            #[unroll]
            for level in 1..LEVELS {
                // The chunk below is complete: the next term of the chunk on this level.
                if ends {
                    terms /= chunk_length;
                    let kept = (all * comptime!(level - 1) + place) as usize;
                    if (terms - 1) & (chunk_length - 1) != 0 {
                        term = combine::<A>(totals[kept], term, update, is_float);
                    }
                    totals[kept] = term;
                    ends = terms & (chunk_length - 1) == 0;
                }
            }
            let mut after = Vector::<u32, N>::empty();
            after.insert(0usize, count + 1);
            after.insert(1usize, u32::reinterpret(A::cast_from(values[(source * value_stride) as usize])));
            rows[place as usize] = after;
            at = links[source as usize] >> row_bits;
        }
    }
}

/// One unit per row: combines its levels and updates its element.
#[cube(launch_unchecked)]
fn update_rows<F: Numeric, A: Numeric, N: Size>(
    tensor: &[F],
    rows: &[Vector<u32, N>],
    totals: &[A],
    output: &mut [F],
    tensor_stride: u32,
    geometry: Geometry,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let row = ABSOLUTE_POS as u32;
    if row >= geometry.rows {
        terminate!();
    }
    let bins = 1u32 << geometry.bin_bits;
    let place = (row & (bins - 1)) * geometry.places + (row >> geometry.bin_bits);
    let before = tensor[(row * tensor_stride) as usize];
    let state = rows[place as usize];
    let count = state.extract(0usize);
    let mut total = A::reinterpret(state.extract(1usize));
    let mut terms = count / chunk_length;
    if terms * chunk_length == count {
        // The last chunk is not yet a term of the next level's.
        terms = select(count == 0, 0u32, terms - 1);
    }
    let mut kept = place;
    while terms != 0 {
        if terms & (chunk_length - 1) != 0 {
            total = combine::<A>(totals[kept as usize], total, update, is_float);
        }
        terms /= chunk_length;
        kept += bins * geometry.places;
    }
    let updated = F::cast_from(combine::<A>(A::cast_from(before), total, update, is_float));
    output[row as usize] = select(count == 0, before, updated);
}

/// Updates rows of one element.
pub(super) fn fold(
    client: &Client,
    operands: &Operands,
    keys: &Keys,
    problem: &Problem,
    chains: Chains,
    types: Types,
    update: Update,
) -> TensorHandle {
    let (rows, sources) = (problem.rows, problem.sources);
    let runs = sources.div_ceil(chains.run);
    let bins = 1usize << chains.bin_bits;
    // An odd number of cache lines for the rows of a bin, so that those of neighbouring bins meet in no cache set.
    let places = (rows.div_ceil(bins).div_ceil(8) | 1) * 8;
    let all = bins * places;
    let geometry = || {
        GeometryLaunch::new(
            rows as u32,
            sources as u32,
            chains.run as u32,
            runs as u32,
            chains.bin_bits,
            places as u32,
            chains.row_bits(rows),
        )
    };
    let heads_length = runs * bins;
    let (heads, links, kept) = (words(client, heads_length), words(client, sources), words(client, 2 * all));
    let levels = (1..LEVELS).filter(|&level| sources > CHUNK.pow(level)).count() * all;
    let totals = client.empty(levels.max(1) * types.accumulator.size());
    // SAFETY: `kept` is made with two words a place, `totals` with `levels` elements, or with one.
    let (kept_arg, totals_arg) = unsafe {
        (|| BufferArg::from_raw_parts(kept.clone(), all), || BufferArg::from_raw_parts(totals.clone(), levels.max(1)))
    };
    let width = if keys.stride == 1 && sources.is_multiple_of(4) && chains.run.is_multiple_of(4) { 4 } else { 1 };
    let (count, dim) = run_grid(runs);
    // SAFETY: units stop at the number of runs, which cover the sources, and bins are below their number.
    unsafe {
        link_runs::launch_unchecked(
            client,
            count,
            dim,
            width,
            keys.arg(sources),
            words_arg(&heads, heads_length),
            words_arg(&links, sources),
            keys.stride,
            geometry(),
            keys.dtype,
        );
    }
    let (count, dim) = grid(all / 2);
    // SAFETY: units stop at the number of pairs of places, which is even, and `kept` has four words for each.
    unsafe {
        let kept = BufferArg::from_raw_parts(kept.clone(), all / 2);
        clear::launch_unchecked(client, count, dim, 4, kept, (all / 2) as u32);
    }
    let window = chains.window();
    for first in (0..runs).step_by(window) {
        let (count, dim) = (cubes(bins.div_ceil(BIN_UNITS as usize)), CubeDim::new_1d(BIN_UNITS));
        // SAFETY: units stop at the number of bins; links name sources of their run and rows of their bin.
        unsafe {
            follow::launch_unchecked(
                client,
                count,
                dim,
                2,
                words_arg(&heads, heads_length),
                words_arg(&links, sources),
                operands.values.buffer(),
                kept_arg(),
                totals_arg(),
                operands.values.strides[1],
                first as u32,
                (first + window).min(runs) as u32,
                geometry(),
                CHUNK as u32,
                update,
                types.is_float(),
                [types.storage, types.accumulator],
            );
        }
    }
    let output = operands.output(client);
    let (count, dim) = grid(rows);
    // SAFETY: units stop at the number of rows, of which the view covers the elements.
    unsafe {
        update_rows::launch_unchecked(
            client,
            count,
            dim,
            2,
            operands.tensor.buffer(),
            kept_arg(),
            totals_arg(),
            output.clone().into_arg().into_buffer_arg(),
            operands.tensor.strides[1],
            geometry(),
            CHUNK as u32,
            update,
            types.is_float(),
            [types.storage, types.accumulator],
        );
    }
    output
}
