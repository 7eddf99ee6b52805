//! How a fold is laid over the device. Nothing here can change a result.

use crate::KernelError;
use crate::device::{Machine, require_shared_memory, require_units};
use crate::order::{COLUMNS, COLUMNS_BLOCK as BLOCK};
use crate::view::{is_dense_in_vectors, join};
use cubecl::prelude::Client;

// A unit walks one block: its elements, and a loop over its columns around them, each of which is a loop to leave.
const _: () = assert!(((BLOCK + 3 * COLUMNS) as usize) <= crate::grid::MAX_ITERATIONS);

/// The elements of a reduction as two times two nested loops; strides count elements.
///
/// An output is `(outer, inner)`, its reduced index is `(axis_outer, axis_inner)`, both row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Number of outputs.
    pub outputs: u32,
    /// Outputs in the inner of their two loops.
    pub inner: u32,
    /// Distance of two outputs of the outer loop.
    pub outer_stride: u32,
    /// Distance of two outputs of the inner loop.
    pub inner_stride: u32,
    /// Number of elements an output is folded from.
    pub axis: u32,
    /// Elements in the inner of their two loops.
    pub axis_inner: u32,
    /// Distance of two elements of the outer loop.
    pub axis_outer_stride: u32,
    /// Distance of two elements of the inner loop.
    pub axis_stride: u32,
}

impl View {
    /// `outputs` rows of `axis` elements, row by row.
    pub fn rows(outputs: u32, axis: u32) -> Self {
        Self {
            outputs,
            inner: outputs.max(1),
            outer_stride: 0,
            inner_stride: axis,
            axis,
            axis_inner: axis.max(1),
            axis_outer_stride: 0,
            axis_stride: 1,
        }
    }

    /// The view of `shape` with `strides` reduced over the axes for which `reduced` holds; `None` when the kept or the
    /// reduced axes do not join to two loops. Every size is at least one.
    pub fn of(shape: &[usize], strides: &[usize], reduced: &[bool]) -> Option<Self> {
        let loops = |which: bool| {
            let joined: Vec<(usize, usize)> =
                join((0..shape.len()).filter(|&i| reduced[i] == which), shape, &[strides])
                    .into_iter()
                    .map(|(size, axis)| (size, strides[axis]))
                    .collect();
            match joined[..] {
                [] => Some([(1, 0), (1, 0)]),
                [inner] => Some([(1, 0), inner]),
                [outer, inner] => Some([outer, inner]),
                _ => None,
            }
        };
        let ([outer, inner], [axis_outer, axis_inner]) = (loops(false)?, loops(true)?);
        Some(Self {
            outputs: (outer.0 * inner.0) as u32,
            inner: inner.0 as u32,
            outer_stride: outer.1 as u32,
            inner_stride: inner.1 as u32,
            axis: (axis_outer.0 * axis_inner.0) as u32,
            axis_inner: axis_inner.0 as u32,
            axis_outer_stride: axis_outer.1 as u32,
            axis_stride: axis_inner.1 as u32,
        })
    }
}

impl View {
    /// Whether the elements can be read four at a time: they lie side by side, those of each output begin at a multiple
    /// of four, and a block has a row at least, and whole fours in its last one.
    pub fn in_fours(&self) -> bool {
        let outputs = [self.outer_stride as usize, self.inner_stride as usize];
        let dense = is_dense_in_vectors(4, self.axis_stride as usize, outputs) && self.axis_inner == self.axis;
        let last_block = self.axis - (self.axis.div_ceil(BLOCK) - 1) * BLOCK;
        dense && self.axis.is_multiple_of(4) && last_block >= COLUMNS
    }

    /// Whether four outputs at a time can be folded: they lie side by side, from a multiple of four on, and so in each step
    /// along the axis.
    pub fn has_outputs_in_fours(&self) -> bool {
        let others = [self.outer_stride as usize, self.axis_stride as usize];
        let dense = is_dense_in_vectors(4, self.inner_stride as usize, others) && self.axis_inner == self.axis;
        dense && self.inner.is_multiple_of(4)
    }
}

/// The cube of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Blocks side by side in a cube.
    pub width: u32,
    /// Units that share the columns of one block; with one there is no shared memory and no barrier.
    pub groups: u32,
    /// Whether a unit reads four elements at a time where they lie that way, [those of an output](View::in_fours) or those
    /// of [four outputs](View::has_outputs_in_fours).
    pub fours: bool,
}

impl Plan {
    /// Every kind of plan, for tests that force one.
    pub const ALL: [Self; 6] =
        [Self::WALK, Self::NARROW_WALK, Self::SHARED_WALK, Self::SIDE_BY_SIDE, Self::ONE_BLOCK, Self::FOURS];
    /// One unit a block.
    pub const WALK: Self = Self { width: 64, groups: 1, fours: false };
    /// One unit a block and few a cube: more cubes where there are few blocks.
    pub const NARROW_WALK: Self = Self { width: 8, groups: 1, fours: false };
    /// Four units a block, for many blocks of a dense axis on a software driver: fewer lanes then read a block apart.
    pub const SHARED_WALK: Self = Self { width: 8, groups: 4, fours: false };
    /// Eight units a block, for outputs that lie side by side in memory.
    pub const SIDE_BY_SIDE: Self = Self { width: 32, groups: 8, fours: false };
    /// One unit a column, for an axis that lies side by side in memory.
    pub const ONE_BLOCK: Self = Self { width: 1, groups: COLUMNS, fours: false };

    /// One unit a block, which reads it in the order of memory, four elements at a time; or one a block of four outputs.
    pub const FOURS: Self = Self { width: 8, groups: 1, fours: true };

    /// Refuses a device that does not have the units of a cube, or the shared memory for `slots` elements of `bytes`
    /// bytes beside each of its blocks.
    pub(super) fn require(
        self,
        client: &Client,
        kernel: &'static str,
        slots: u32,
        bytes: usize,
    ) -> Result<(), KernelError> {
        require_units(client, kernel, self.width * self.groups)?;
        // A unit with a block of its own shares nothing.
        let shared = if self.groups == 1 { 0 } else { (slots * self.width) as usize * bytes };
        require_shared_memory(client, kernel, shared)
    }
}

/// The cube of one pass over `view` that may read four elements at a time, of an output or of four outputs.
pub fn plan_fold(view: &View, machine: Machine) -> Plan {
    match machine {
        Machine::Software if view.has_outputs_in_fours() => Plan::FOURS,
        _ => plan_search(view, machine),
    }
}

/// The cube of one pass over `view` that may read four elements of an output at a time.
pub(super) fn plan_search(view: &View, machine: Machine) -> Plan {
    match machine {
        Machine::Software if view.in_fours() => Plan::FOURS,
        _ => plan(view, machine),
    }
}

/// The cube of one pass over `view` that reads single elements.
pub fn plan(view: &View, machine: Machine) -> Plan {
    let blocks = u64::from(view.axis.div_ceil(BLOCK)) * u64::from(view.outputs);
    let dense_axis = view.outputs == 1 || view.axis_stride <= view.inner_stride;
    match machine {
        Machine::Software if blocks < 1 << 12 => Plan::NARROW_WALK,
        Machine::Software if dense_axis => Plan::SHARED_WALK,
        Machine::Software => Plan::WALK,
        Machine::Gpu if view.axis <= COLUMNS => Plan::WALK,
        Machine::Gpu if dense_axis => Plan::ONE_BLOCK,
        // Enough outputs fill the device with one unit each.
        Machine::Gpu if blocks >= 1 << 18 => Plan::WALK,
        Machine::Gpu => Plan::SIDE_BY_SIDE,
    }
}

/// Whether the first pass over `view` should compute its elements rather than read what another kernel has written.
pub fn computes(view: &View, machine: Machine) -> bool {
    match machine {
        Machine::Gpu => true,
        // Without vectors a program takes longer here than writing and reading its result.
        Machine::Software => view.in_fours(),
    }
}
