//! Updates of single elements without a sort: one stable pass puts the values that are for one bin of rows side by side, and
//! one unit takes a bin's values in their order, each into the running tree of its row.
//!
//! A row's bin is its low bits, so that neighbouring rows are in different bins.

use crate::launch::{cubes, grid};
use crate::scatter::accepts::Types;
use crate::scatter::kernel::row_of;
use crate::scatter::lines::CORE_UNITS;
use crate::scatter::plan::{Bins, Problem};
use crate::scatter::segment::{Digits, Keys, count, run_grid, words, words_arg};
use crate::scatter::tree::{State, carry, levels, take, updated};
use crate::scatter::update::Operands;
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// The number of a row, and the bits of a value for it.
type Pair = Vector<u32, Const<2>>;

/// Values that a unit takes in one iteration of the innermost loop.
pub(super) const STEP: usize = 4;

/// Most iterations of that loop in a round, after which a chunk that is full is carried on.
pub(super) const ROUND: usize = 64;

/// States in a cache line.
pub(super) const LINE: usize = 8;

/// The bins of rows, and the places of what is kept of them.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Geometry {
    pub bin_bits: u32,
    /// Places for the rows of one bin.
    pub places: u32,
    /// Runs of sources.
    pub runs: u32,
}

#[cube]
impl Geometry {
    /// Where what is kept of a row is.
    pub(super) fn place(&self, row: u32) -> u32 {
        (row & (self.bins() - 1)) * self.places + (row >> self.bin_bits)
    }

    /// The bins.
    pub(super) fn bins(&self) -> u32 {
        1u32 << self.bin_bits
    }

    /// Where the sources of a bin begin and end, if `ends[bin, run]` is where those of a run end in it.
    pub(super) fn range(&self, ends: &[u32], bin: u32) -> (u32, u32) {
        let mut start = 0u32;
        if bin != 0 {
            start = ends[(bin * self.runs - 1) as usize];
        }
        (start, ends[(bin * self.runs + self.runs - 1) as usize])
    }

    /// Places of all bins.
    fn all(&self) -> u32 {
        self.places << self.bin_bits
    }
}

impl Bins {
    /// The arguments of the kernels.
    pub(super) fn geometry(&self, problem: &Problem) -> GeometryLaunch {
        let runs = problem.sources.div_ceil(self.run);
        GeometryLaunch::new(self.bin_bits, self.places(problem.rows) as u32, runs as u32)
    }
}

/// One unit per run: moves each value of its run, in order, to the next place of its bin, with its row.
#[cube(launch_unchecked)]
fn place_values<F: Numeric, A: Numeric, I: Int, N: Size>(
    keys: &[Vector<I, N>],
    values: &[Vector<F, N>],
    counters: &mut [u32],
    pairs: &mut [Pair],
    key_stride: u32,
    value_stride: u32,
    rows: u32,
    sources: u32,
    run: u32,
    geometry: Geometry,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= geometry.runs {
        terminate!();
    }
    let width = N::value();
    for at in unit * run / comptime!(width as u32)..min((unit + 1) * run, sources) / comptime!(width as u32) {
        let key = keys[(at * key_stride) as usize];
        let value = values[(at * value_stride) as usize];
        #[unroll]
        for lane in 0..width {
            let row = row_of::<I>(key.extract(lane), rows);
            let counter = ((row & (geometry.bins() - 1)) * geometry.runs + unit) as usize;
            let to = counters[counter];
            counters[counter] = to + 1;
            let mut pair = Pair::empty();
            pair.insert(0usize, row);
            pair.insert(1usize, u32::reinterpret(A::cast_from(value.extract(lane))));
            pairs[to as usize] = pair;
        }
    }
}

/// One unit per bin: takes values of it into the trees of its rows, in a number of rounds. The first launch clears the states
/// of the rows, further ones go on at `next[bin]`.
///
/// `ends[bin, run]` is where the values of a run end in a bin.
// The outer condition is decided when the kernel is compiled.
#[allow(clippy::collapsible_if)]
#[cube(launch_unchecked)]
fn take_bins<A: Numeric>(
    ends: &[u32],
    pairs: &[Pair],
    next: &mut [u32],
    states: &mut [State],
    totals: &mut [A],
    rounds: u32,
    geometry: Geometry,
    #[comptime] is_first: bool,
    #[comptime] round: u32,
    #[comptime] step: u32,
    #[comptime] line: u32,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(A)] _dtype: ElemType,
) {
    let bin = ABSOLUTE_POS as u32;
    if bin >= geometry.bins() {
        terminate!();
    }
    let (start, end) = geometry.range(ends, bin);
    let mut at = start;
    if comptime!(is_first) {
        for first in 0..geometry.places / line {
            #[unroll]
            for within in 0..line {
                states[(bin * geometry.places + first * line + within) as usize] = State::new(0u32);
            }
        }
    } else {
        at = next[bin as usize];
    }
    let mut done = 0u32;
    while at < end && done < rounds {
        // Software drivers execute both sides of every branch, but leave loops: what is rare is done once a round.
        let mut steps = 0u32;
        let mut full = false;
        let mut place = 0u32;
        while steps < round && at < end && !full {
            #[unroll]
            for _ in 0..step {
                if at < end && !full {
                    let pair = pairs[at as usize];
                    place = geometry.place(pair.extract(0usize));
                    let value = A::reinterpret(pair.extract(1usize));
                    full = take::<A>(states, totals, place, value, levels, chunk_length, update, is_float);
                    at += 1;
                }
            }
            steps += 1;
        }
        if comptime!(levels > 1) {
            if full {
                carry::<A>(&*states, totals, place, geometry.all(), levels, chunk_length, update, is_float);
            }
        }
        done += 1;
    }
    next[bin as usize] = at;
}

/// One unit per vector of rows: updates their elements.
#[cube(launch_unchecked)]
fn update_rows<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    states: &[State],
    totals: &[A],
    output: &mut [Vector<F, N>],
    tensor_stride: u32,
    vectors: u32,
    geometry: Geometry,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= vectors {
        terminate!();
    }
    let width = N::value();
    let before = tensor[(unit * tensor_stride) as usize];
    let mut after = Vector::<F, N>::empty();
    #[unroll]
    for lane in 0..width {
        let place = geometry.place(unit * comptime!(width as u32) + comptime!(lane as u32));
        let before = before.extract(lane);
        let element =
            updated::<F, A>(before, states, totals, place, geometry.all(), levels, chunk_length, update, is_float);
        after.insert(lane, element);
    }
    output[unit as usize] = after;
}

/// Updates rows of one element.
pub(super) fn update(
    client: &Client,
    operands: &Operands,
    keys: Keys,
    problem: &Problem,
    bins: Bins,
    types: Types,
    update: Update,
) -> TensorHandle {
    let Problem { rows, sources, .. } = *problem;
    let all = bins.bins() * bins.places(rows);
    let geometry = || bins.geometry(problem);
    let (ends, pairs) = sort_values(client, operands, &keys, problem, bins, types, geometry());
    let states = words(client, 2 * all);
    let levels = levels(sources);
    let totals_length = (levels as usize * all).max(1);
    let totals = client.empty(totals_length * types.accumulator.size());
    // SAFETY: `states` is made with two words a place, `totals` with this length.
    let (states_arg, totals_arg) = unsafe {
        (|| BufferArg::from_raw_parts(states.clone(), all), || BufferArg::from_raw_parts(totals.clone(), totals_length))
    };
    let next = words(client, bins.bins());
    let rounds = bins.rounds(rows);
    for first in (0..Bins::all_rounds(sources)).step_by(rounds) {
        let (count, dim) = (cubes(bins.bins().div_ceil(CORE_UNITS as usize)), CubeDim::new_1d(CORE_UNITS));
        // SAFETY: units stop at the number of bins; pairs name places of their bin, which are the unit's own.
        unsafe {
            take_bins::launch_unchecked(
                client,
                count,
                dim,
                words_arg(&ends, bins.counters(sources)),
                BufferArg::from_raw_parts(pairs.clone(), sources),
                words_arg(&next, bins.bins()),
                states_arg(),
                totals_arg(),
                rounds as u32,
                geometry(),
                first == 0,
                ROUND as u32,
                STEP as u32,
                LINE as u32,
                levels,
                CHUNK as u32,
                update,
                types.is_float(),
                types.accumulator,
            );
        }
    }
    let output = operands.output(client);
    let stride = operands.tensor.strides[1];
    let width = if stride == 1 && types.storage.size() == 4 && rows.is_multiple_of(4) { 4 } else { 1 };
    let vectors = rows / width;
    let (count, dim) = grid(vectors);
    // SAFETY: units stop at the number of vectors of rows, of which the view covers the elements and each has a place.
    unsafe {
        update_rows::launch_unchecked(
            client,
            count,
            dim,
            width,
            operands.tensor.buffer(),
            states_arg(),
            totals_arg(),
            output.clone().into_arg().into_buffer_arg(),
            stride,
            vectors as u32,
            geometry(),
            levels,
            CHUNK as u32,
            update,
            types.is_float(),
            [types.storage, types.accumulator],
        );
    }
    output
}

/// The values of each bin side by side in their order, with their rows, and where those of each run end in each bin.
fn sort_values(
    client: &Client,
    operands: &Operands,
    keys: &Keys,
    problem: &Problem,
    bins: Bins,
    types: Types,
    geometry: GeometryLaunch,
) -> (Handle, Handle) {
    let Problem { rows, sources, .. } = *problem;
    let length = bins.counters(sources);
    let (counters, pairs) = (words(client, length), words(client, 2 * sources));
    count(client, keys, Digits { shift: 0, bins: bins.bins(), run: bins.run }, rows, sources, &counters);
    let value_stride = operands.values.strides[1];
    let width = if types.storage.size() == 4 && value_stride == 1 { keys.width(sources, bins.run) } else { 1 };
    let (count, dim) = run_grid(sources.div_ceil(bins.run));
    // SAFETY: units stop at the number of runs, which cover the sources; the counters number the sources, so that the
    // places are a permutation of them.
    unsafe {
        place_values::launch_unchecked(
            client,
            count,
            dim,
            width,
            keys.arg(sources),
            operands.values.buffer(),
            words_arg(&counters, length),
            BufferArg::from_raw_parts(pairs.clone(), sources),
            keys.stride,
            value_stride,
            rows as u32,
            sources as u32,
            bins.run as u32,
            geometry,
            [types.storage, types.accumulator, keys.dtype],
        );
    }
    (counters, pairs)
}
