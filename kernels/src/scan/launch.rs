//! The launches of a scan: `reduce_blocks` where lines have several blocks, `chain_totals` for every
//! [`chained`](super::Plan::chained) of them, `scan_blocks`.

use super::kernel::{self, ExtentsLaunch};
use super::operation::Operation;
use super::plan::Problem;
use crate::grid::axis_grids;
use crate::view::AxisView;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The launches of one scan.
pub(super) struct Launch<'a> {
    pub client: &'a Client,
    pub operation: Operation,
    pub problem: Problem,
    /// The types of the elements, of what is kept between blocks, and of what is compared.
    pub types: [ElemType; 3],
}

impl Launch<'_> {
    fn extents(&self) -> ExtentsLaunch {
        ExtentsLaunch::new(self.problem.length as u32, self.problem.inner as u32)
    }

    pub fn run(&self, input: &AxisView, output: &TensorHandle, chained: usize) {
        let Problem { outer, inner, .. } = self.problem;
        let blocks = self.problem.blocks();
        let totals_length = outer * blocks * inner;
        let totals = self.client.empty(totals_length * self.types[1].size());
        // SAFETY: `totals` is made with this length, in elements of the accumulator type.
        let totals_arg = || unsafe { BufferArg::from_raw_parts(totals.clone(), totals_length) };
        // A line of one block needs no total.
        let reduced = if blocks > 1 { outer } else { 0 };
        for (count, dim, unit) in axis_grids(reduced, blocks, inner) {
            // SAFETY: units stop at the number of blocks, the length of `totals`; the view covers what the lines and
            // its strides reach.
            unsafe {
                kernel::reduce_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals_arg(),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
        let firsts = (1..blocks).step_by(chained);
        for (first, (count, dim, unit)) in firsts.flat_map(|first| axis_grids(outer, 1, inner).map(move |g| (first, g)))
        {
            // SAFETY: units stop at the number of lines, each of which has its totals in `totals`.
            unsafe {
                kernel::chain_totals::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    totals_arg(),
                    self.extents(),
                    unit,
                    first as u32,
                    (first + chained).min(blocks) as u32,
                    self.operation,
                    [self.types[1], self.types[2]],
                );
            }
        }
        for (count, dim, unit) in axis_grids(outer, blocks, inner) {
            // SAFETY: as for the totals; the output has as many elements as the lines.
            unsafe {
                kernel::scan_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals_arg(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
    }
}
