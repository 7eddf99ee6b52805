//! The index of the largest or smallest element along an axis.
//!
//! The index is the lowest one of the elements that no other beats. -0 and +0 tie. A NaN beats every number, for the
//! maximum and for the minimum; NaNs tie. This does not depend on the order of comparison, and floats are compared as
//! integers. It is Burn's rule for `argmax` and `argmin`.
//!
//! With indices the value is the element at the index, to the bit: a NaN keeps its payload, and of two zeros it is the
//! first one, where [`reduce::max`](super::max()) gives +0 and [`reduce::min`](super::min()) -0.
//!
//! Cost: `n` reads an output and one launch for each factor of 4096 of `n`; a pass keeps one index for each block of
//! 4096.

use super::kernel::extreme;
use super::operands::{checked, reduced_shape, with_reduced_last};
use super::operation::Operation;
use super::plan::{self, Cube, Kind, Plan, Problem};
use super::view::{View, ViewLaunch};
use crate::KernelError;
use crate::buffer::unwritten;
use crate::dtype::U32;
use crate::error::require_shapes;
use crate::index::require_counts;
use crate::order::COLUMNS_BLOCK as BLOCK;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Bytes of a vector of four elements of the largest type.
const LARGEST_VECTOR: usize = 32;

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl Extreme {
    fn operation(self) -> Operation {
        match self {
            Self::Max => Operation::Max,
            Self::Min => Operation::Min,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Max => "reduce::argmax",
            Self::Min => "reduce::argmin",
        }
    }
}

/// The elements at one end along `axis`, which keeps size one, if `values` are asked for, else an empty tensor; and their
/// indices as `index_dtype`. Launched by `plan`, or by the one that [`plan::plan`] chooses; no plan changes the results.
///
/// # Errors
///
/// Refuses an axis that the tensor does not have or that has no element, a tensor that 32-bit indices do not reach, an axis
/// longer than `index_dtype` can count, element types that the device does not compute, and a plan that does not apply or
/// whose cubes the device does not have.
pub fn search(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    values: bool,
    plan: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let (kernel, dtype) = (end.name(), input.dtype);
    let supported = |dtype| client.properties().supports_type(dtype);
    let Some(key) = end.operation().accumulator(dtype).filter(|&key| supported(dtype) && supported(key)) else {
        return Err(KernelError::Dtype { kernel, dtype, remedy: "cast the tensor to another type" });
    };
    let shape = reduced_shape(kernel, input.shape(), input.strides(), &[axis])?;
    let length = input.shape()[axis];
    require_counts(client, kernel, index_dtype, length)?;
    require_shapes(kernel, length != 0, || {
        format!("no element along axis {axis} of shape {:?}, want at least one", input.shape())
    })?;
    // Elements that are not asked for are bound, and not written.
    let elements = unwritten(client, if values { shape.clone() } else { vec![0] }, dtype);
    let indices = unwritten(client, shape, index_dtype);
    if indices.shape().contains(&0) {
        return Ok((elements, indices));
    }
    let (problem, in_place) = Problem::in_place(input.shape(), input.strides(), &[axis], Kind::Search);
    let plan = checked(client, kernel, plan, &problem)?;
    for cube in [Some(plan.first.cube()), plan.totals].into_iter().flatten() {
        cube.require(client, kernel, cube.groups, key.size() + size_of::<u32>())?;
    }
    let input = if in_place { input } else { with_reduced_last(client, input, &[axis]) };
    let view = problem.view;
    // The first pass reads no candidates, and not every pass reads vectors, but a binding has to be there.
    let unread = new_indices(client, LARGEST_VECTOR / size_of::<u32>());
    let (mut positions, mut cube, mut first) = (view.axis, plan.first.cube(), true);
    let mut candidates = unread.clone();
    loop {
        let blocks = positions.div_ceil(BLOCK);
        let in_vectors = first && matches!(plan.first, plan::Pass::FourElements { .. });
        let form = extreme::Form { cube, first, in_vectors, with_values: values && blocks == 1 };
        let vectors = if in_vectors { &input } else { &unread };
        let pass = Pass { end, input: &input, vectors, key, candidates, view, positions, blocks, form };
        let Some(next) = plan.totals.filter(|_| blocks > 1) else {
            pass.launch(client, &elements, &indices);
            return Ok((elements, indices));
        };
        candidates = new_indices(client, view.outputs as usize * blocks as usize);
        pass.launch(client, &elements, &candidates);
        (positions, cube, first) = (blocks, next, false);
    }
}

fn new_indices(client: &Client, length: usize) -> TensorHandle {
    unwritten(client, vec![length], U32)
}

/// One launch: from `positions` elements of an output, or candidates, to an index for each of `blocks`.
struct Pass<'a> {
    end: Extreme,
    input: &'a TensorHandle,
    /// The input where it is read in vectors of four.
    vectors: &'a TensorHandle,
    key: ElemType,
    /// The indices that the pass before has found: `[outputs, positions]`.
    candidates: TensorHandle,
    view: View,
    positions: u32,
    blocks: u32,
    form: extreme::Form,
}

impl Pass<'_> {
    /// Writes an index for each block, and if the form says so, where an output has one block, the element there.
    fn launch(self, client: &Client, values: &TensorHandle, indices: &TensorHandle) {
        let Cube { width, groups } = self.form.cube;
        let cubes = (self.view.outputs as usize * self.blocks as usize).div_ceil(width as usize);
        let buffer = |tensor: &TensorHandle| tensor.clone().into_arg().into_buffer_arg();
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and `indices` holds one
        // for each, `values` one for each output. It reads only elements of the view, which `input` covers, and only
        // candidates of its own output.
        unsafe {
            extreme::find_extremes::launch_unchecked(
                client,
                crate::grid::cubes(cubes),
                CubeDim::new_2d(width, groups),
                buffer(self.input),
                buffer(self.vectors),
                buffer(&self.candidates),
                buffer(values),
                buffer(indices),
                ViewLaunch::of(&self.view),
                self.blocks,
                self.positions,
                self.form,
                self.end.operation(),
                [self.input.dtype, self.key, indices.dtype],
            );
        }
    }
}
