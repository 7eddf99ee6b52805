//! The launches of a scan: the blocks' totals where lines have several blocks, `chain_totals` for every
//! [`chained`](super::Plan::chained) of them, the blocks.

use super::kernel::{self, ExtentsLaunch};
use super::operation::Operation;
use super::plan::{Plan, Problem};
use super::staged_kernel::{self, ROWS, STAGED, UNITS};
use crate::grid::{axis_grids, cubes};
use crate::view::AxisView;
use crate::{KernelError, device};
use cubecl::prelude::*;
use cubecl::server::Handle;
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

    /// # Errors
    ///
    /// Where the device has too little shared memory for a plan from there.
    pub fn run(&self, input: &AxisView, output: &TensorHandle, plan: Plan) -> Result<(), KernelError> {
        let Problem { outer, inner, .. } = self.problem;
        let blocks = self.problem.blocks();
        if plan.staged {
            device::require_units(self.client, self.operation.name(), UNITS)?;
            let staged = STAGED as usize * self.types[1].size();
            device::require_shared_memory(self.client, self.operation.name(), staged)?;
        }
        let length = outer * blocks * inner;
        let totals = Totals { handle: self.client.empty(length * self.types[1].size()), length };
        // A line of one block needs no total.
        if blocks > 1 {
            match plan.staged {
                true => self.reduce_staged(input, &totals),
                false => self.reduce(input, &totals),
            }
            self.chain(&totals, plan.chained);
        }
        match plan.staged {
            true => self.scan_staged(input, &totals, output),
            false => self.scan(input, &totals, output),
        }
        Ok(())
    }

    fn reduce(&self, input: &AxisView, totals: &Totals) {
        for (count, dim, unit) in axis_grids(self.problem.outer, self.problem.blocks(), self.problem.inner) {
            // SAFETY: units stop at the number of blocks, the length of `totals`; the view covers what the lines and
            // its strides reach.
            unsafe {
                kernel::reduce_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals.buffer(),
                    self.extents(),
                    unit,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
    }

    fn reduce_staged(&self, input: &AxisView, totals: &Totals) {
        let count = totals.length.div_ceil(ROWS as usize);
        // SAFETY: cubes stop at `count`, and their rows at the number of blocks, the length of `totals`; elements past
        // the end of a line are not read.
        unsafe {
            staged_kernel::reduce_staged::launch_unchecked(
                self.client,
                cubes(count),
                CubeDim::new_1d(UNITS),
                input.buffer(),
                totals.buffer(),
                self.extents(),
                input.strides(),
                totals.length as u32,
                count as u32,
                self.operation,
                self.types,
            );
        }
    }

    fn chain(&self, totals: &Totals, chained: usize) {
        let Problem { outer, inner, .. } = self.problem;
        let blocks = self.problem.blocks();
        let firsts = (1..blocks).step_by(chained);
        for (first, (count, dim, unit)) in firsts.flat_map(|first| axis_grids(outer, 1, inner).map(move |g| (first, g)))
        {
            // SAFETY: units stop at the number of lines, each of which has its totals in `totals`.
            unsafe {
                kernel::chain_totals::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    totals.buffer(),
                    self.extents(),
                    unit,
                    first as u32,
                    (first + chained).min(blocks) as u32,
                    self.operation,
                    [self.types[1], self.types[2]],
                );
            }
        }
    }

    fn scan(&self, input: &AxisView, totals: &Totals, output: &TensorHandle) {
        for (count, dim, unit) in axis_grids(self.problem.outer, self.problem.blocks(), self.problem.inner) {
            // SAFETY: as for the totals; the output has as many elements as the lines.
            unsafe {
                kernel::scan_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals.buffer(),
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

    fn scan_staged(&self, input: &AxisView, totals: &Totals, output: &TensorHandle) {
        let count = totals.length.div_ceil(ROWS as usize);
        // SAFETY: as for the totals; the output has as many elements as the lines.
        unsafe {
            staged_kernel::scan_staged::launch_unchecked(
                self.client,
                cubes(count),
                CubeDim::new_1d(UNITS),
                input.buffer(),
                totals.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                self.extents(),
                input.strides(),
                totals.length as u32,
                count as u32,
                self.operation,
                self.types,
            );
        }
    }
}

/// The last results of all blocks, `[outer, blocks, inner]`, in the type they are kept in.
struct Totals {
    handle: Handle,
    length: usize,
}

impl Totals {
    fn buffer(&self) -> BufferArg {
        // SAFETY: `handle` is made with this length, in elements of the accumulator type.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), self.length) }
    }
}
