//! Launching sorts.

use super::comparison::Form;
use super::kernel::{self, ExtentsLaunch, Wanted};
use super::plan::{Choice, Problem};
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
        let most = self.problem.most();
        let by = |rows: usize, keys: Handle, places: Option<Handle>, plan: radix_sort::Plan| {
            let sorted = radix_sort::sort(self.client, Keys::words(keys), places, rows, elements, plan);
            (sorted.keys, sorted.positions)
        };
        let (mut spare, mut places) = by(most, low, None, plan);
        if self.form.wide {
            self.gather_keys(&high, &places, &spare, elements);
            (spare, places) = by(most, spare, Some(places), plan);
        }
        let lines = outer * inner;
        if lines > 1 {
            self.segment_ids(&places, &spare, elements);
            (_, places) = by(lines - 1, spare, Some(places), plan.for_others(lines - 1, elements));
        }
        for (count, dim, unit) in axis_grids(outer, self.problem.kept, inner) {
            // SAFETY: units stop at the number of elements kept; the places of a line are those of its elements, which
            // the view covers.
            unsafe {
                kernel::permute::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    words_arg(&places, elements),
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

    pub(super) fn select(&self, input: &AxisView, (values, indices): &(TensorHandle, TensorHandle), choice: Choice) {
        let Problem { outer, length, inner, .. } = self.problem;
        let Choice { slots, chunk } = choice;
        let group = choice.group(length);
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

    /// `keys[p] = of[places[p]]`.
    fn gather_keys(&self, of: &Handle, places: &Handle, keys: &Handle, elements: usize) {
        let (count, dim) = grid(elements);
        // SAFETY: units stop at `elements`, of which places are a permutation and which each buffer has.
        unsafe {
            kernel::gather_keys::launch_unchecked(
                self.client,
                count,
                dim,
                words_arg(of, elements),
                words_arg(places, elements),
                words_arg(keys, elements),
                elements as u32,
            );
        }
    }

    /// `keys[p] = places[p] / length`: the line of the element at `places[p]`.
    fn segment_ids(&self, places: &Handle, keys: &Handle, elements: usize) {
        let (count, dim) = grid(elements);
        // SAFETY: units stop at `elements`, the length of both buffers.
        unsafe {
            kernel::segment_ids::launch_unchecked(
                self.client,
                count,
                dim,
                words_arg(places, elements),
                words_arg(keys, elements),
                self.problem.length as u32,
                elements as u32,
            );
        }
    }
}
