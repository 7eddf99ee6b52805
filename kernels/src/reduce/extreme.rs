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

use super::kernel::{GeometryLaunch, extreme};
use super::plan::{self, Cube, Kind, Plan, Problem, View};
use super::{Operation, checked, reduced_shape, with_reduced_last};
use crate::KernelError;
use crate::buffer::unwritten;
use crate::dtype::U32;
use crate::order::COLUMNS_BLOCK as BLOCK;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Bytes of four elements of the largest type.
const LARGEST_FOUR: usize = 32;

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

/// The indices of the largest elements along `axis`, which keeps size one, as `index_dtype`.
///
/// # Errors
///
/// As [`index_of`].
pub fn argmax(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    index_of(client, Extreme::Max, input, axis, index_dtype)
}

/// The indices of the smallest elements along `axis`, which keeps size one, as `index_dtype`.
///
/// # Errors
///
/// As [`index_of`].
pub fn argmin(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    index_of(client, Extreme::Min, input, axis, index_dtype)
}

/// The largest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
///
/// # Errors
///
/// As [`index_of`].
pub fn max_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    with_index(client, Extreme::Max, input, axis, index_dtype)
}

/// The smallest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
///
/// # Errors
///
/// As [`index_of`].
pub fn min_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    with_index(client, Extreme::Min, input, axis, index_dtype)
}

/// [`argmax`] or [`argmin`].
///
/// # Errors
///
/// Refuses an axis that the tensor does not have or that has no element, a tensor that 32-bit indices do not reach, and
/// element types that the device does not compute.
pub fn index_of(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    Search::new(client, end, input, axis, index_dtype)?.index_of(client, index_dtype, None)
}

/// [`index_of`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`index_of`], and a plan that does not apply or whose cubes the device does not have.
pub fn index_of_planned(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    Search::new(client, end, input, axis, index_dtype)?.index_of(client, index_dtype, Some(plan))
}

/// [`max_with_indices`] or [`min_with_indices`].
///
/// # Errors
///
/// As [`index_of`].
pub fn with_index(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    Search::new(client, end, input, axis, index_dtype)?.with_index(client, index_dtype, None)
}

/// [`with_index`] by a plan of the caller's choice, which cannot change the results.
///
/// # Errors
///
/// As [`index_of_planned`].
pub fn with_index_planned(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    plan: Plan,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    Search::new(client, end, input, axis, index_dtype)?.with_index(client, index_dtype, Some(plan))
}

/// A checked search.
struct Search {
    end: Extreme,
    input: TensorHandle,
    key: ElemType,
    axis: usize,
    shape: Vec<usize>,
}

impl Search {
    fn new(
        client: &Client,
        end: Extreme,
        input: TensorHandle,
        axis: usize,
        index_dtype: ElemType,
    ) -> Result<Self, KernelError> {
        let kernel = end.name();
        let supported = |dtype| client.properties().supports_type(dtype);
        let dtype = input.dtype;
        let Some(key) = end.operation().accumulator(dtype).filter(|&key| supported(dtype) && supported(key)) else {
            return Err(KernelError::Dtype { kernel, dtype, remedy: "cast the tensor to another type" });
        };
        if !index_dtype.is_int() || !supported(index_dtype) {
            let remedy = "ask for indices of an integer type the device has";
            return Err(KernelError::Dtype { kernel, dtype: index_dtype, remedy });
        }
        let shape = reduced_shape(kernel, input.shape(), input.strides(), &[axis])?;
        if input.shape()[axis] == 0 {
            let reason = format!("no element along axis {axis} of shape {:?}, want at least one", input.shape());
            return Err(KernelError::Shape { kernel, reason });
        }
        Ok(Self { end, input, key, axis, shape })
    }

    fn output(&self, client: &Client, dtype: ElemType) -> TensorHandle {
        unwritten(client, self.shape.clone(), dtype)
    }

    fn index_of(self, client: &Client, index_dtype: ElemType, plan: Option<Plan>) -> Result<TensorHandle, KernelError> {
        let indices = self.output(client, index_dtype);
        if let Some(pass) = self.last_pass(client, plan)? {
            pass.index_of(client, indices.clone());
        }
        Ok(indices)
    }

    fn with_index(
        self,
        client: &Client,
        index_dtype: ElemType,
        plan: Option<Plan>,
    ) -> Result<(TensorHandle, TensorHandle), KernelError> {
        let indices = self.output(client, index_dtype);
        let values = self.output(client, self.input.dtype);
        if let Some(pass) = self.last_pass(client, plan)? {
            pass.with_index(client, values.clone(), indices.clone());
        }
        Ok((values, indices))
    }

    /// Launches every pass but the last one; `None` where the result has no element.
    fn last_pass(self, client: &Client, plan: Option<Plan>) -> Result<Option<Pass>, KernelError> {
        let Self { end, input, key, axis, shape } = self;
        if shape.contains(&0) {
            return Ok(None);
        }
        let (problem, in_place) = Problem::in_place(input.shape(), input.strides(), &[axis], Kind::Search);
        let plan = checked(client, end.name(), plan, &problem)?;
        let first = plan.first.cube();
        for cube in [Some(first), plan.totals].into_iter().flatten() {
            cube.require(client, end.name(), cube.groups, key.size() + size_of::<u32>())?;
        }
        let input = if in_place { input } else { with_reduced_last(client, input, &[axis]) };
        let view = problem.view;
        let mut positions = view.axis;
        // The first pass reads no survivors, and not every pass reads fours, but a binding has to be there.
        let unread = new_indices(client, LARGEST_FOUR / size_of::<u32>());
        let mut form =
            extreme::Form { cube: first, first: true, fours: matches!(plan.first, plan::Pass::FourElements { .. }) };
        let mut survivors = unread.clone();
        loop {
            let blocks = positions.div_ceil(BLOCK);
            let fours = if form.fours { input.clone() } else { unread.clone() };
            let pass = Pass { end, input: input.clone(), fours, key, survivors, view, positions, blocks, form };
            let Some(cube) = plan.totals.filter(|_| blocks > 1) else { return Ok(Some(pass)) };
            survivors = new_indices(client, view.outputs as usize * blocks as usize);
            pass.index_of(client, survivors.clone());
            positions = blocks;
            form = extreme::Form { cube, first: false, fours: false };
        }
    }
}

fn new_indices(client: &Client, length: usize) -> TensorHandle {
    unwritten(client, vec![length], U32)
}

/// One launch: from `positions` candidates an output to one for each of `blocks`.
struct Pass {
    end: Extreme,
    input: TensorHandle,
    /// The input where it is read in fours.
    fours: TensorHandle,
    key: ElemType,
    survivors: TensorHandle,
    view: View,
    positions: u32,
    blocks: u32,
    form: extreme::Form,
}

impl Pass {
    fn cubes(&self) -> (CubeCount, CubeDim) {
        let Cube { width, groups } = self.form.cube;
        let cubes = (self.view.outputs as usize * self.blocks as usize).div_ceil(width as usize);
        (crate::grid::cubes(cubes), CubeDim::new_2d(width, groups))
    }

    fn index_of(self, client: &Client, indices: TensorHandle) {
        let (count, dim) = self.cubes();
        let dtypes = [self.input.dtype, self.key, indices.dtype];
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and `indices` holds one
        // for each. It reads only elements of the view, which `input` covers, and only survivors of its own output.
        unsafe {
            extreme::index_of_extreme::launch_unchecked(
                client,
                count,
                dim,
                self.input.into_arg().into_buffer_arg(),
                self.fours.into_arg().into_buffer_arg(),
                self.survivors.into_arg().into_buffer_arg(),
                indices.into_arg().into_buffer_arg(),
                GeometryLaunch::of(&self.view, self.blocks),
                self.positions,
                self.form,
                self.end.operation(),
                dtypes,
            );
        }
    }

    fn with_index(self, client: &Client, values: TensorHandle, indices: TensorHandle) {
        let (count, dim) = self.cubes();
        let dtypes = [self.input.dtype, self.key, indices.dtype];
        // SAFETY: as in `index_of`, with one block an output, and one value for each.
        unsafe {
            extreme::extreme_with_index::launch_unchecked(
                client,
                count,
                dim,
                self.input.into_arg().into_buffer_arg(),
                self.fours.into_arg().into_buffer_arg(),
                self.survivors.into_arg().into_buffer_arg(),
                values.into_arg().into_buffer_arg(),
                indices.into_arg().into_buffer_arg(),
                GeometryLaunch::of(&self.view, 1),
                self.positions,
                self.form,
                self.end.operation(),
                dtypes,
            );
        }
    }
}
