//! Updates of single elements without a sort: one stable pass puts the values that are for one bin of rows side by side, and
//! one unit takes a bin's values in their order, each into the running tree of its row.
//!
//! A row's bin is its low bits, so that neighbouring rows are in different bins.

use crate::launch::{core_grid, grid};
use crate::scatter::accepts::Types;
use crate::scatter::kernel::row_of;
use crate::scatter::plan::{Bins, Problem};
use crate::scatter::segment::{Keys, scan, words, words_arg};
use crate::scatter::tree::{State, levels, take, take_into_chunk, updated};
use crate::scatter::update::Operands;
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// The number of a row, and the bits of a value for it.
type Pair = Vector<u32, Const<2>>;

/// Most values that a unit takes in one iteration.
pub(super) const STEP: usize = 16;

/// States in a cache line.
pub(super) const LINE: usize = 8;

/// The bins of rows, and the places of what is kept of them.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Geometry {
    bin_bits: u32,
    /// Places for the rows of one bin.
    places: u32,
    /// Runs of sources.
    runs: u32,
}

#[cube]
impl Geometry {
    /// Where what is kept of a row is.
    fn place(&self, row: u32) -> u32 {
        (row & (self.bins() - 1)) * self.places + (row >> self.bin_bits)
    }

    /// The bins.
    fn bins(&self) -> u32 {
        1u32 << self.bin_bits
    }

    /// Where the values of a bin begin and end among all `sources`, if `starts[bin, run]` is where those of a run begin.
    fn range(&self, starts: &[u32], bin: u32, sources: u32) -> (u32, u32) {
        let mut end = sources;
        if bin + 1 != self.bins() {
            end = starts[((bin + 1) * self.runs) as usize];
        }
        (starts[(bin * self.runs) as usize], end)
    }

    /// The place of the row of a pair, and its value.
    fn taken<A: Numeric>(&self, pairs: &[Pair], at: u32) -> (u32, A) {
        let pair = pairs[at as usize];
        (self.place(pair.extract(0usize)), A::reinterpret(pair.extract(1usize)))
    }

    /// Places of all bins.
    fn all(&self) -> u32 {
        self.places << self.bin_bits
    }
}

impl Bins {
    /// The argument of the kernels.
    fn geometry(&self, problem: &Problem) -> GeometryLaunch {
        let (places, runs) = (self.places(problem.rows), self.runs(problem.sources));
        GeometryLaunch::new(self.bin_bits, places as u32, runs as u32)
    }
}

/// One unit per run: counts the sources of each bin, into its column of `counters[bins, runs]`.
///
/// Counts are kept in an array of the unit's own, which software drivers reach in fewer instructions than a buffer.
#[cube(launch_unchecked)]
fn count_bins<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    counters: &mut [u32],
    key_stride: u32,
    rows: u32,
    sources: u32,
    run: u32,
    runs: u32,
    #[comptime] bins: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    let mut counts = Array::<u32>::new(comptime!(bins as usize));
    for bin in 0..bins {
        counts[bin as usize] = 0;
    }
    let width = N::value();
    let width = comptime!(width as u32);
    for at in unit * run / width..min((unit + 1) * run, sources) / width {
        let key = keys[(at * key_stride) as usize];
        #[unroll]
        for lane in 0..width {
            let row = row_of::<I>(key.extract(comptime!(lane as usize)), rows);
            counts[(row & (bins - 1)) as usize] += 1;
        }
    }
    for bin in 0..bins {
        counters[(bin * runs + unit) as usize] = counts[bin as usize];
    }
}

/// One unit per run: moves each value of its run, in order, to the next place of its bin, with its row. `starts[bin, run]` is the
/// first one.
#[cube(launch_unchecked)]
fn place_values<F: Numeric, A: Numeric, I: Int, N: Size>(
    keys: &[Vector<I, N>],
    values: &[Vector<F, N>],
    starts: &[u32],
    pairs: &mut [Pair],
    key_stride: u32,
    value_stride: u32,
    rows: u32,
    sources: u32,
    run: u32,
    runs: u32,
    #[comptime] bins: u32,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    let mut places = Array::<u32>::new(comptime!(bins as usize));
    for bin in 0..bins {
        places[bin as usize] = starts[(bin * runs + unit) as usize];
    }
    let width = N::value();
    let width = comptime!(width as u32);
    for at in unit * run / width..min((unit + 1) * run, sources) / width {
        let key = keys[(at * key_stride) as usize];
        let value = values[(at * value_stride) as usize];
        #[unroll]
        for lane in 0..width {
            let lane = comptime!(lane as usize);
            let row = row_of::<I>(key.extract(lane), rows);
            let bin = (row & (bins - 1)) as usize;
            let to = places[bin];
            places[bin] = to + 1;
            let mut pair = Pair::empty();
            pair.insert(0usize, row);
            pair.insert(1usize, u32::reinterpret(A::cast_from(value.extract(lane))));
            pairs[to as usize] = pair;
        }
    }
}

/// One unit per bin: takes values of it into the trees of its rows. The first launch clears the states of the rows, further ones
/// go on at `next[bin]`.
///
/// `starts[bin, run]` is where the values of a run begin in a bin.
// The outer condition is decided when the kernel is compiled.
#[allow(clippy::collapsible_if)]
#[cube(launch_unchecked)]
fn take_bins<A: Numeric>(
    starts: &[u32],
    pairs: &[Pair],
    next: &mut [u32],
    states: &mut [State],
    totals: &mut [A],
    sources: u32,
    iterations: u32,
    geometry: Geometry,
    #[comptime] is_first: bool,
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
    let (start, end) = geometry.range(starts, bin, sources);
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
    while at < end && done < iterations {
        // Software drivers execute both sides of every branch: what is rare is done once an iteration.
        let mut begins = false;
        #[unroll]
        for _ in 0..step {
            if at < end && !begins {
                let (place, value) = geometry.taken::<A>(pairs, at);
                begins = take_into_chunk::<A>(states, place, value, levels, chunk_length, update, is_float);
                at += u32::cast_from(!begins);
            }
        }
        if comptime!(levels > 0) {
            if begins {
                let (place, value) = geometry.taken::<A>(pairs, at);
                let places = geometry.all();
                take::<A>(states, totals, place, value, places, levels, chunk_length, update, is_float);
                at += 1;
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
    keys: &Keys,
    problem: &Problem,
    bins: Bins,
    types: Types,
    update: Update,
) -> TensorHandle {
    let Problem { rows, sources, .. } = *problem;
    let all = bins.bins() * bins.places(rows);
    let geometry = || bins.geometry(problem);
    let (starts, pairs) = sort_values(client, operands, keys, problem, bins, types);
    let states = words(client, 2 * all);
    let levels = levels(sources);
    let totals_length = (levels as usize * all).max(1);
    let totals = client.empty(totals_length * types.accumulator.size());
    // SAFETY: `states` is made with two words a place, `totals` with this length.
    let (states_arg, totals_arg) = unsafe {
        (|| BufferArg::from_raw_parts(states.clone(), all), || BufferArg::from_raw_parts(totals.clone(), totals_length))
    };
    let next = words(client, bins.bins());
    let iterations = bins.iterations_a_launch(rows);
    for first in (0..Bins::most_iterations(sources)).step_by(iterations) {
        let (count, dim) = core_grid(bins.bins());
        // SAFETY: units stop at the number of bins; pairs name places of their bin, which are the unit's own.
        unsafe {
            take_bins::launch_unchecked(
                client,
                count,
                dim,
                words_arg(&starts, bins.counters(sources)),
                BufferArg::from_raw_parts(pairs.clone(), sources),
                words_arg(&next, bins.bins()),
                states_arg(),
                totals_arg(),
                sources as u32,
                iterations as u32,
                geometry(),
                first == 0,
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

/// The values of each bin side by side in their order, with their rows, and where those of each run begin in each bin.
fn sort_values(
    client: &Client,
    operands: &Operands,
    keys: &Keys,
    problem: &Problem,
    bins: Bins,
    types: Types,
) -> (Handle, Handle) {
    let Problem { rows, sources, .. } = *problem;
    let length = bins.counters(sources);
    let (counters, pairs) = (words(client, length), words(client, 2 * sources));
    let (count, dim) = core_grid(bins.runs(sources));
    // SAFETY: units stop at the number of runs, whose column is the unit's own; runs end at the sources.
    unsafe {
        count_bins::launch_unchecked(
            client,
            count.clone(),
            dim,
            keys.width(sources, bins.run),
            keys.arg(sources),
            words_arg(&counters, length),
            keys.stride,
            rows as u32,
            sources as u32,
            bins.run as u32,
            bins.runs(sources) as u32,
            bins.bins() as u32,
            keys.dtype,
        );
    }
    scan(client, &counters, length);
    let value_stride = operands.values.strides[1];
    let width = if types.storage.size() == 4 && value_stride == 1 { keys.width(sources, bins.run) } else { 1 };
    // SAFETY: units stop at the number of runs, which cover the sources; the counters number the sources, so that
    // the places are a permutation of them.
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
            bins.runs(sources) as u32,
            bins.bins() as u32,
            [types.storage, types.accumulator, keys.dtype],
        );
    }
    (counters, pairs)
}
