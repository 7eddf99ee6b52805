//! Launching updates.

use crate::KernelError;
use crate::device::Machine;
use crate::launch::{MAX_ITERATIONS, grid, unwritten};
use crate::scatter::accepts::{Types, scatter_nd_problem, scatter_problem, select_assign_problem};
use crate::scatter::axes::AxisView;
use crate::scatter::kernel::{ExtentLaunch, finish, fold_chunks, update_touched, walk};
use crate::scatter::plan::{
    Bins, Plan, Problem, Radix, axis_grids, line_iterations, line_refuses, list_refuses, plan, plan_scatter, sums_runs,
};
use crate::scatter::segment::{Keys, Segments, U32, axis_keys, segment, tuple_keys, words, words_arg};
use crate::scatter::{CHUNK, Update};
use crate::scatter::{bins, lines, lists, runs};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::{TensorHandle, into_contiguous};

/// Updates `tensor` with `values` at `indices` along `dim`: `indices` and `values` have one shape, that of `tensor`
/// but for `dim`. Returns a new tensor.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn scatter(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    let problem = scatter_problem(dim, &tensor, &indices, &values)?;
    scatter_planned(
        client,
        plan_scatter(&problem, tensor.dtype, Machine::of(client)),
        dim,
        tensor,
        indices,
        values,
        update,
    )
}

/// [`scatter`] by a plan of the caller's choice, which cannot change the result. Sums of runs have one plan only.
///
/// # Errors
///
/// As [`scatter`], and a plan that does not take as many sources, or as many columns.
pub fn scatter_planned(
    client: &Client,
    plan: Plan,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::scatter";
    let problem = scatter_problem(dim, &tensor, &indices, &values)?;
    let types = Types::of(client, KERNEL, &tensor, &indices, &values)?;
    let flat = problem.flattened();
    if problem.elements() == 0 || flat.sources == 0 {
        return Ok(copy(client, tensor));
    }
    let axis = dim..dim + 1;
    if sums_runs(&problem, update, types.is_float()) {
        let indices = AxisView::new(client, KERNEL, indices, axis.clone())?;
        let operands = Operands::new(client, KERNEL, tensor, values, axis.clone(), axis)?;
        return runs::add(client, operands, &indices, &problem, types);
    }
    let way = way_of(KERNEL, plan, &problem, &flat, types)?;
    if let Way::ByKey(way) = way {
        let all = 0..tensor.shape().len();
        let indices = AxisView::new(client, KERNEL, indices, axis)?;
        let keys = match problem.columns() {
            1 => indices.keys(types.index),
            _ => launch_axis_keys(client, &indices, &problem, types.index),
        };
        let operands = Operands::new(client, KERNEL, tensor, values, all.clone(), all)?;
        return Ok(launch_by_key(client, operands, keys, &flat, way, types, update));
    }
    let indices = AxisView::new(client, KERNEL, indices, axis.clone())?;
    let operands = Operands::new(client, KERNEL, tensor, values, axis.clone(), axis)?;
    Ok(match way {
        Way::Lines => lines::update(client, &operands, &indices, &problem, types, update),
        Way::Touched => launch_touched(client, operands, &indices, &problem, types, update),
        _ => launch_walk(client, operands, &indices, &problem, types, update),
    })
}

/// Updates the rows of `tensor` along `dim` that the one-dimensional `indices` name with those of `values`, whose
/// shape is that of `tensor` but for `dim`, where it has one row an index. Returns a new tensor.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn select_assign(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    let problem = select_assign_problem(dim, &tensor, &indices, &values)?;
    select_assign_planned(
        client,
        plan(&problem, tensor.dtype, Machine::of(client)),
        dim,
        tensor,
        indices,
        values,
        update,
    )
}

/// [`select_assign`] by a plan of the caller's choice, which cannot change the result. Sums of runs have one plan only.
///
/// # Errors
///
/// As [`select_assign`], and a plan that does not take as many sources, or as many columns.
pub fn select_assign_planned(
    client: &Client,
    plan: Plan,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::select_assign";
    let problem = select_assign_problem(dim, &tensor, &indices, &values)?;
    let types = Types::of(client, KERNEL, &tensor, &indices, &values)?;
    if problem.elements() == 0 || problem.sources == 0 {
        return Ok(copy(client, tensor));
    }
    let indices = AxisView::new(client, KERNEL, indices, 0..1)?;
    let operands = Operands::new(client, KERNEL, tensor, values, dim..dim + 1, dim..dim + 1)?;
    if sums_runs(&problem, update, types.is_float()) {
        return runs::add(client, operands, &indices.along_axis_only(), &problem, types);
    }
    Ok(match way_of(KERNEL, plan, &problem, &problem, types)? {
        Way::ByKey(way) => launch_by_key(client, operands, indices.keys(types.index), &problem, way, types, update),
        Way::Walk => launch_walk(client, operands, &indices.along_axis_only(), &problem, types, update),
        Way::Touched => launch_touched(client, operands, &indices.along_axis_only(), &problem, types, update),
        Way::Lines => lines::update(client, &operands, &indices.along_axis_only(), &problem, types, update),
    })
}

/// Updates the slices of `tensor` that the tuples along the last axis of `indices[.., k]` name by their position in the
/// first `k` axes with those of `values`, of shape `indices[..] ++ tensor[k..]`. Returns a new tensor.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn scatter_nd(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    let problem = scatter_nd_problem(&tensor, &indices, &values)?;
    scatter_nd_planned(client, plan(&problem, tensor.dtype, Machine::of(client)), tensor, indices, values, update)
}

/// [`scatter_nd`] by a plan of the caller's choice, which cannot change the result. Sums of runs have one plan only.
///
/// # Errors
///
/// As [`scatter_nd`], and a plan that does not take as many sources, or as many columns.
pub fn scatter_nd_planned(
    client: &Client,
    plan: Plan,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::scatter_nd";
    let problem = scatter_nd_problem(&tensor, &indices, &values)?;
    let types = Types::of(client, KERNEL, &tensor, &indices, &values)?;
    if problem.elements() == 0 || problem.sources == 0 {
        return Ok(copy(client, tensor));
    }
    let batch = indices.shape().len() - 1;
    let parts = indices.shape()[batch];
    let keys = launch_tuple_keys(client, KERNEL, indices, &tensor.shape()[..parts], types.index)?;
    let operands = Operands::new(client, KERNEL, tensor, values, 0..parts, 0..batch)?;
    let view = |keys| {
        let keys = TensorHandle::new_contiguous(vec![problem.sources], keys, U32);
        AxisView::new(client, KERNEL, keys, 0..1).map(AxisView::along_axis_only)
    };
    let by_key = Types { index: U32, ..types };
    if sums_runs(&problem, update, types.is_float()) {
        return runs::add(client, operands, &view(keys)?, &problem, by_key);
    }
    Ok(match way_of(KERNEL, plan, &problem, &problem, types)? {
        Way::ByKey(way) => launch_by_key(client, operands, Keys::made(keys), &problem, way, types, update),
        Way::Walk => launch_walk(client, operands, &view(keys)?, &problem, by_key, update),
        Way::Touched => launch_touched(client, operands, &view(keys)?, &problem, by_key, update),
        Way::Lines => lines::update(client, &operands, &view(keys)?, &problem, by_key, update),
    })
}

/// The tensor and the values of one update.
pub(super) struct Operands {
    pub(super) tensor: AxisView,
    pub(super) values: AxisView,
    original: TensorHandle,
}

impl Operands {
    fn new(
        client: &Client,
        kernel: &'static str,
        tensor: TensorHandle,
        values: TensorHandle,
        tensor_axes: std::ops::Range<usize>,
        value_axes: std::ops::Range<usize>,
    ) -> Result<Self, KernelError> {
        let original = tensor.clone();
        let tensor = AxisView::new(client, kernel, tensor, tensor_axes)?;
        let values = AxisView::new(client, kernel, values, value_axes)?;
        Ok(Self { tensor, values, original })
    }

    /// Elements along the inner axis that a fold reads at once: as many as lie side by side in 16 bytes, or one.
    pub(super) fn vector_width(&self, problem: &Problem, types: Types) -> usize {
        let words = types.storage.size() == 4;
        let fours = problem.inner.is_multiple_of(4) && self.tensor.is_in_vectors(4) && self.values.is_in_vectors(4);
        if words && fours { 4 } else { 1 }
    }

    /// A new tensor of the same elements.
    pub(super) fn copy(&self, client: &Client) -> TensorHandle {
        copy(client, self.original.clone())
    }

    /// A new tensor to write all elements of.
    pub(super) fn output(&self, client: &Client) -> TensorHandle {
        unwritten(client, self.original.shape().to_vec(), self.original.dtype)
    }
}

/// How sources find their rows.
enum Way {
    /// Each destination element looks for its own.
    Walk,
    /// Each looks for the others of its row.
    Touched,
    /// Line by line.
    Lines,
    /// By key.
    ByKey(ByKey),
}

/// How sources with one key each find the row that it names.
enum ByKey {
    /// Sorted, by rank without a geometry.
    Sort(Option<Radix>),
    /// Put side by side for each bin of rows.
    Bins(Bins),
    /// Linked to a list for each row.
    Lists,
}

/// The way of a plan, for a `problem` and what is left of it where each source has one key. Refuses a plan whose units
/// would loop too long, or that is not for these types or columns.
fn way_of(
    kernel: &'static str,
    plan: Plan,
    problem: &Problem,
    by_key: &Problem,
    types: Types,
) -> Result<Way, KernelError> {
    let (walked, sources) = (problem.sources, by_key.sources);
    let refused = |reason| KernelError::Shape { kernel, reason };
    let refusal = match plan {
        Plan::Walk | Plan::Touched | Plan::Rank => None,
        Plan::Lines => line_refuses(problem, types.storage),
        Plan::Radix(radix) => radix.refuses(by_key.rows, sources),
        Plan::Lists => list_refuses(by_key),
        Plan::Bins(bins) => bins.refuses(by_key, types.storage),
    };
    if let Some(reason) = refusal {
        return Err(refused(reason));
    }
    let (way, what, sources, iterations, most) = match plan {
        Plan::Walk => (Way::Walk, "a walk", walked, walked, CHUNK * CHUNK),
        Plan::Touched => (Way::Touched, "a walk", walked, walked, CHUNK * CHUNK),
        Plan::Lines => (Way::Lines, "a line", walked, line_iterations(problem), MAX_ITERATIONS),
        Plan::Rank => (Way::ByKey(ByKey::Sort(None)), "a rank", sources, sources, MAX_ITERATIONS),
        Plan::Radix(radix) => {
            let iterations = radix.iterations(sources);
            (Way::ByKey(ByKey::Sort(Some(radix))), "a radix sort", sources, iterations, MAX_ITERATIONS)
        }
        Plan::Lists => (Way::ByKey(ByKey::Lists), "lists", sources, lists::iterations(sources), MAX_ITERATIONS),
        Plan::Bins(bins) => {
            (Way::ByKey(ByKey::Bins(bins)), "a pass into bins", sources, bins.iterations(sources), MAX_ITERATIONS)
        }
    };
    match iterations <= most {
        true => Ok(way),
        false => Err(refused(format!("{what} of {sources} sources loops {iterations} times, want at most {most}"))),
    }
}

fn launch_by_key(
    client: &Client,
    operands: Operands,
    keys: Keys,
    problem: &Problem,
    way: ByKey,
    types: Types,
    update: Update,
) -> TensorHandle {
    match way {
        ByKey::Lists => lists::update(client, &operands, &keys, problem, types, update),
        ByKey::Bins(geometry) => bins::update(client, &operands, &keys, problem, geometry, types, update),
        ByKey::Sort(radix) => {
            let segments = segment(client, keys, problem.rows, problem.sources, radix);
            fold(client, operands, problem, segments, types, update)
        }
    }
}

fn copy(client: &Client, tensor: TensorHandle) -> TensorHandle {
    let dtype = tensor.dtype;
    match tensor.shape().iter().product::<usize>() {
        0 => unwritten(client, tensor.shape().to_vec(), dtype),
        _ => into_contiguous(client, tensor.binding(), dtype),
    }
}

pub(super) fn extent(problem: &Problem) -> ExtentLaunch {
    ExtentLaunch::new(problem.outer as u32, problem.rows as u32, problem.sources as u32, problem.inner as u32)
}

fn launch_axis_keys(client: &Client, indices: &AxisView, problem: &Problem, dtype: ElemType) -> Keys {
    let length = problem.flattened().sources;
    let keys = words(client, length);
    for (count, dim, tile) in axis_grids(problem.outer, problem.sources, problem.inner) {
        // SAFETY: units stop at the number of indices, which is the length of `keys`; the view covers its indices.
        unsafe {
            axis_keys::launch_unchecked(
                client,
                count,
                dim,
                indices.buffer(),
                words_arg(&keys, length),
                extent(problem),
                tile,
                indices.strides(),
                dtype,
            );
        }
    }
    Keys::made(keys)
}

/// The keys of the tuples in `indices[.., k]`, for a tensor whose first `k` axes have these `sizes`.
pub(super) fn launch_tuple_keys(
    client: &Client,
    kernel: &'static str,
    indices: TensorHandle,
    sizes: &[usize],
    dtype: ElemType,
) -> Result<Handle, KernelError> {
    let batch = indices.shape().len() - 1;
    let tuples: usize = indices.shape()[..batch].iter().product();
    let indices = AxisView::new(client, kernel, indices, 0..batch)?;
    let [_, tuple_stride, part_stride] = indices.strides;
    let mut size_args = SequenceArg::new();
    for &size in sizes {
        size_args.push(size as u32);
    }
    let keys = words(client, tuples);
    let (count, dim) = grid(tuples);
    // SAFETY: units stop at the number of tuples, which is the length of `keys`; the view covers its indices.
    unsafe {
        tuple_keys::launch_unchecked(
            client,
            count,
            dim,
            indices.buffer(),
            words_arg(&keys, tuples),
            tuples as u32,
            tuple_stride,
            part_stride,
            size_args,
            dtype,
        );
    }
    Ok(keys)
}

fn launch_walk(
    client: &Client,
    operands: Operands,
    indices: &AxisView,
    problem: &Problem,
    types: Types,
    update: Update,
) -> TensorHandle {
    let output = operands.output(client);
    for (count, dim, tile) in axis_grids(problem.outer, problem.rows, problem.inner) {
        // SAFETY: units stop at the number of destination elements; the views cover what the extent and their strides
        // reach, and no index is used to address memory.
        unsafe {
            walk::launch_unchecked(
                client,
                count,
                dim,
                operands.tensor.buffer(),
                indices.buffer(),
                operands.values.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                operands.tensor.strides(),
                indices.strides(),
                operands.values.strides(),
                CHUNK as u32,
                update,
                types.is_float(),
                [types.storage, types.accumulator, types.index],
            );
        }
    }
    output
}

fn launch_touched(
    client: &Client,
    operands: Operands,
    indices: &AxisView,
    problem: &Problem,
    types: Types,
    update: Update,
) -> TensorHandle {
    let output = operands.copy(client);
    for (count, dim, tile) in axis_grids(problem.outer, problem.sources, problem.inner) {
        // SAFETY: units stop at the number of values; the views cover what the extent and their strides reach. A row is
        // compared with the extent before it addresses an element, and one source of its line writes that.
        unsafe {
            update_touched::launch_unchecked(
                client,
                count,
                dim,
                indices.buffer(),
                operands.values.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                indices.strides(),
                operands.values.strides(),
                CHUNK as u32,
                update,
                types.is_float(),
                [types.storage, types.accumulator, types.index],
            );
        }
    }
    output
}

/// Folds sorted sources: chunk levels while a row could be left with more than two levels, then the destinations.
fn fold(
    client: &Client,
    operands: Operands,
    problem: &Problem,
    segments: Segments,
    types: Types,
    update: Update,
) -> TensorHandle {
    let output = match segments.by_source {
        true => operands.copy(client),
        false => operands.output(client),
    };
    let width = operands.vector_width(problem, types);
    let inner = problem.inner / width;
    let problem = &Problem { inner, ..*problem };
    let columns = problem.columns();
    let folds_chunks = problem.sources > CHUNK * CHUNK;
    let slots = if folds_chunks { problem.sources.div_ceil(CHUNK) * 2 } else { 0 };
    let length = (slots * columns).max(1);
    let totals = client.empty(length * width * types.accumulator.size());
    // SAFETY: `totals` is made with this length, in vectors of the accumulator type.
    let totals_arg = || unsafe { BufferArg::from_raw_parts(totals.clone(), length) };
    let mut term_bits = 0;
    while problem.sources > (CHUNK * CHUNK) << term_bits {
        for (count, dim, tile) in axis_grids(problem.outer, slots, problem.inner) {
            // SAFETY: units stop at the number of slots times columns, the length of `totals`; sorted places, keys and
            // starts address within the values and each other.
            unsafe {
                fold_chunks::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    words_arg(&segments.keys, problem.sources),
                    words_arg(&segments.places, problem.sources),
                    words_arg(&segments.bounds, segments.bounds_length),
                    operands.values.buffer(),
                    totals_arg(),
                    extent(problem),
                    tile,
                    operands.values.vector_strides(width as u32),
                    term_bits,
                    CHUNK as u32,
                    update,
                    types.is_float(),
                    segments.by_source,
                    [types.storage, types.accumulator],
                );
            }
        }
        term_bits += CHUNK.ilog2();
    }
    let axis = if segments.by_source { problem.sources } else { problem.rows };
    for (count, dim, tile) in axis_grids(problem.outer, axis, problem.inner) {
        // SAFETY: units stop at the number of destination elements; rows of several chunks have had their totals written
        // at this span.
        unsafe {
            finish::launch_unchecked(
                client,
                count,
                dim,
                width,
                operands.tensor.buffer(),
                words_arg(&segments.keys, problem.sources),
                words_arg(&segments.places, problem.sources),
                words_arg(&segments.bounds, segments.bounds_length),
                operands.values.buffer(),
                totals_arg(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                operands.tensor.vector_strides(width as u32),
                operands.values.vector_strides(width as u32),
                term_bits,
                CHUNK as u32,
                update,
                types.is_float(),
                segments.by_source,
                [types.storage, types.accumulator],
            );
        }
    }
    output
}
