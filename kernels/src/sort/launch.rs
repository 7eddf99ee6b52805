//! The launches of enumeration sorts, selections, and radix sorts of all lines together.

use super::comparison::Form;
use super::cube_selection_kernel::{self, ChunksLaunch};
use super::kernel::{self, ExtentsLaunch, Wanted};
use super::plan::{Problem, Selection, Selector};
use super::selection_kernel;
use crate::buffer::{words, words_arg};
use crate::grid::{axis_grids, cubes, grid};
use crate::radix_sort::{self, Keys};
use crate::view::AxisView;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// Words on the device, and how many.
type Words = (Handle, usize);

/// One launch of a selection, over all lines: what chunks of the `positions` of a line keep.
struct Pass<'a> {
    selection: Selection,
    positions: usize,
    chunks: usize,
    /// The indices at the positions; the positions themselves in the first pass.
    candidates: Option<&'a Words>,
    /// Where the indices that are kept go; into the result in the last pass.
    left: Option<&'a Words>,
}

impl Pass<'_> {
    fn candidates(&self) -> Option<BufferArg> {
        self.candidates.map(|(handle, length)| words_arg(handle, *length))
    }

    fn left(&self) -> Option<BufferArg> {
        self.left.map(|(handle, length)| words_arg(handle, *length))
    }
}

/// The launches of one sort.
pub(super) struct Launch<'a> {
    pub client: &'a Client,
    pub problem: Problem,
    pub form: Form,
    pub wanted: Wanted,
    pub types: [ElemType; 2],
}

impl Launch<'_> {
    fn extents(&self) -> ExtentsLaunch {
        let Problem { length, inner, kept, .. } = self.problem;
        ExtentsLaunch::new(length as u32, inner as u32, kept as u32)
    }

    pub(super) fn rank(&self, input: &AxisView, (values, indices): &(TensorHandle, TensorHandle)) {
        let Problem { outer, length, inner, .. } = self.problem;
        for (count, dim, unit) in axis_grids(outer, length.div_ceil(kernel::RANKED), inner) {
            // SAFETY: units stop at the number of elements; the view covers what the lines and its strides reach. Ranks
            // are a permutation of a line, and only those below `kept` are written, where the outputs have a place.
            unsafe {
                kernel::rank_lines::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    values.clone().into_arg().into_buffer_arg(),
                    indices.clone().into_arg().into_buffer_arg(),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.form,
                    self.wanted,
                    self.types,
                );
            }
        }
    }

    pub(super) fn radix(
        &self,
        input: &AxisView,
        (values, indices): &(TensorHandle, TensorHandle),
        plan: radix_sort::Plan,
    ) {
        let Problem { outer, length, inner, .. } = self.problem;
        let elements = outer * length * inner;
        let low = words(self.client, elements);
        let high_length = if self.form.wide { elements } else { 1 };
        let high = words(self.client, high_length);
        for (count, dim, unit) in axis_grids(outer, length, inner) {
            // SAFETY: units stop at the number of elements, the length of the keys; the view covers what the lines and
            // its strides reach.
            unsafe {
                kernel::line_keys::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    words_arg(&low, elements),
                    words_arg(&high, high_length),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.form,
                    self.types[0],
                );
            }
        }
        let by_word = self.problem.by_word();
        let mut sorted = radix_sort::sort(self.client, Keys::words(low), None, &by_word, plan);
        // The keys of a sort that is done have the memory for those of the next.
        if self.form.wide {
            self.gather_keys(&high, &sorted.positions, &sorted.keys, elements);
            sorted = radix_sort::sort(self.client, Keys::words(sorted.keys), Some(sorted.positions), &by_word, plan);
        }
        if let Some(by_line) = self.problem.by_line() {
            self.segment_ids(&sorted.positions, &sorted.keys, elements);
            let plan = plan.for_next(&by_line);
            sorted = radix_sort::sort(self.client, Keys::words(sorted.keys), Some(sorted.positions), &by_line, plan);
        }
        for (count, dim, unit) in axis_grids(outer, self.problem.kept, inner) {
            // SAFETY: units stop at the number of elements kept; the positions of a line are those of its elements, which
            // the view covers.
            unsafe {
                kernel::permute::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    words_arg(&sorted.positions, elements),
                    values.clone().into_arg().into_buffer_arg(),
                    indices.clone().into_arg().into_buffer_arg(),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.wanted,
                    self.types,
                );
            }
        }
    }

    pub(super) fn select(&self, input: &AxisView, outputs: &(TensorHandle, TensorHandle), selection: Selection) {
        let Problem { outer, length, inner, .. } = self.problem;
        let mut positions = length;
        let mut candidates = None;
        loop {
            let chunks = positions.div_ceil(selection.chunk);
            let left = (chunks > 1).then(|| {
                let length = outer * chunks * selection.slots * inner;
                (words(self.client, length), length)
            });
            let pass = Pass { selection, positions, chunks, candidates: candidates.as_ref(), left: left.as_ref() };
            match selection.selector {
                Selector::Unit => self.select_by_units(input, outputs, &pass),
                Selector::Cube => self.select_by_cubes(input, outputs, &pass),
            }
            if left.is_none() {
                return;
            }
            candidates = left;
            positions = chunks * selection.slots;
        }
    }

    fn select_by_units(&self, input: &AxisView, (values, indices): &(TensorHandle, TensorHandle), pass: &Pass<'_>) {
        let Problem { outer, length, inner, .. } = self.problem;
        let Selection { slots, chunk, .. } = pass.selection;
        let group = pass.selection.group(length);
        for (count, dim, unit) in axis_grids(outer, pass.chunks, inner) {
            // SAFETY: units stop at the number of chunks, each of which has its slots in `left`, or the last ones of
            // a line in the outputs; candidates are positions of their line, which the view covers. A line has at
            // least as many elements as are kept, so that their slots are filled.
            unsafe {
                selection_kernel::keep_first::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    self.width(input, pass, group),
                    input.buffer(),
                    pass.candidates().into(),
                    pass.left().into(),
                    values.clone().into_arg().into_buffer_arg(),
                    indices.clone().into_arg().into_buffer_arg(),
                    self.extents(),
                    unit,
                    input.strides(),
                    pass.positions as u32,
                    chunk as u32,
                    group as u32,
                    slots as u32,
                    self.wanted,
                    self.form,
                    self.types,
                );
            }
        }
    }

    fn select_by_cubes(&self, input: &AxisView, (values, indices): &(TensorHandle, TensorHandle), pass: &Pass<'_>) {
        let Selection { slots, chunk, .. } = pass.selection;
        let count = self.problem.outer * pass.chunks;
        // SAFETY: cubes stop at the number of chunks; as above of their slots, their candidates and the outputs.
        unsafe {
            cube_selection_kernel::keep_first_by_cubes::launch_unchecked(
                self.client,
                cubes(count),
                CubeDim::new_1d(cube_selection_kernel::UNITS),
                self.width(input, pass, 4),
                input.buffer(),
                pass.candidates().into(),
                pass.left().into(),
                values.clone().into_arg().into_buffer_arg(),
                indices.clone().into_arg().into_buffer_arg(),
                input.strides(),
                ChunksLaunch::new(pass.positions as u32, chunk as u32, self.problem.kept as u32, count as u32),
                slots as u32,
                pass.selection.shared_words(self.form.wide),
                self.wanted,
                self.form,
                self.types,
            );
        }
    }

    /// The width of vectors in which a pass reads the lines: chunks and groups have whole ones.
    fn width(&self, input: &AxisView, pass: &Pass<'_>, group: usize) -> usize {
        let whole = pass.selection.chunk.is_multiple_of(4) && group.is_multiple_of(4);
        let in_vectors = pass.candidates.is_none() && self.problem.inner == 1 && whole;
        if in_vectors { input.axis_vector_width(self.problem.length) } else { 1 }
    }

    /// `keys[p] = of[positions[p]]`.
    fn gather_keys(&self, of: &Handle, positions: &Handle, keys: &Handle, elements: usize) {
        let (count, dim) = grid(elements);
        // SAFETY: units stop at `elements`, of which positions are a permutation and which each buffer has.
        unsafe {
            kernel::gather_keys::launch_unchecked(
                self.client,
                count,
                dim,
                words_arg(of, elements),
                words_arg(positions, elements),
                words_arg(keys, elements),
                elements as u32,
            );
        }
    }

    /// `keys[p] = positions[p] / length`: the line of the element at `positions[p]`.
    fn segment_ids(&self, positions: &Handle, keys: &Handle, elements: usize) {
        let (count, dim) = grid(elements);
        // SAFETY: units stop at `elements`, the length of both buffers.
        unsafe {
            kernel::segment_ids::launch_unchecked(
                self.client,
                count,
                dim,
                words_arg(positions, elements),
                words_arg(keys, elements),
                self.problem.length as u32,
                elements as u32,
            );
        }
    }
}
