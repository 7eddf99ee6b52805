//! The launches of enumeration sorts, selections, and radix sorts of all lines together.

use super::comparison::Form;
use super::kernel::{self, ExtentsLaunch, Wanted};
use super::plan::{Problem, Selection};
use crate::buffer::{words, words_arg};
use crate::grid::{axis_grids, grid};
use crate::radix_sort::{self, Keys};
use crate::view::AxisView;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

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

    pub(super) fn select(
        &self,
        input: &AxisView,
        (values, indices): &(TensorHandle, TensorHandle),
        selection: Selection,
    ) {
        let Problem { outer, length, inner, .. } = self.problem;
        let Selection { slots, chunk } = selection;
        let group = selection.group(length);
        // Chunks and groups have whole vectors.
        let whole = chunk.is_multiple_of(4) && group.is_multiple_of(4);
        let width = if inner == 1 && whole { input.axis_vector_width(length) } else { 1 };
        let mut positions = length;
        // The first pass reads no candidates, and the last one leaves none, but a binding has to be there.
        let (mut candidates, mut candidates_length) = (words(self.client, 1), 1);
        loop {
            let chunks = positions.div_ceil(chunk);
            let last = chunks == 1;
            let left_length = if last { 1 } else { outer * chunks * slots * inner };
            let left = words(self.client, left_length);
            for (count, dim, unit) in axis_grids(outer, chunks, inner) {
                // SAFETY: units stop at the number of chunks, each of which has its slots in `left`, or the last ones of
                // a line in the outputs; candidates are positions of their line, which the view covers. A line has at
                // least as many elements as are kept, so that their slots are filled.
                unsafe {
                    kernel::keep_first::launch_unchecked(
                        self.client,
                        count,
                        dim,
                        if positions == length { width } else { 1 },
                        input.buffer(),
                        words_arg(&candidates, candidates_length),
                        words_arg(&left, left_length),
                        values.clone().into_arg().into_buffer_arg(),
                        indices.clone().into_arg().into_buffer_arg(),
                        self.extents(),
                        unit,
                        input.strides(),
                        positions as u32,
                        chunk as u32,
                        group as u32,
                        slots as u32,
                        positions == length,
                        last,
                        self.wanted,
                        self.form,
                        self.types,
                    );
                }
            }
            if last {
                return;
            }
            (candidates, candidates_length) = (left, left_length);
            positions = chunks * slots;
        }
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
