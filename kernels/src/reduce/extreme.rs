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

/// Defines a function for each end, for callers that take one as a function.
macro_rules! functions_of_ends {
    ($($(#[$documentation:meta])* $name:ident = $search:ident($end:ident) -> $result:ty;)*) => {$(
        $(#[$documentation])*
        ///
        /// # Errors
        ///
        /// As [`index_of_planned`] without a plan.
        pub fn $name(
            client: &Client,
            input: TensorHandle,
            axis: usize,
            index_dtype: ElemType,
        ) -> Result<$result, KernelError> {
            $search(client, Extreme::$end, input, axis, index_dtype, None)
        }
    )*};
}

functions_of_ends! {
    /// The indices of the largest elements along `axis`, which keeps size one, as `index_dtype`.
    argmax = index_of_planned(Max) -> TensorHandle;
    /// The indices of the smallest elements along `axis`, which keeps size one, as `index_dtype`.
    argmin = index_of_planned(Min) -> TensorHandle;
    /// The largest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
    max_with_indices = with_index_planned(Max) -> (TensorHandle, TensorHandle);
    /// The smallest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
    min_with_indices = with_index_planned(Min) -> (TensorHandle, TensorHandle);
}

/// [`argmax`] or [`argmin`] by a plan of the caller's choice, or by that of [`plan::plan`]; no plan changes the result.
///
/// # Errors
///
/// Refuses an axis that the tensor does not have or that has no element, a tensor that 32-bit indices do not reach, an axis
/// longer than `index_dtype` can count, element types that the device does not compute, and a plan that does not apply or
/// whose cubes the device does not have.
pub fn index_of_planned(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let search = Search::new(client, end, input, axis, index_dtype)?;
    let indices = search.output(client, index_dtype);
    if let Some(pass) = search.last_pass(client, plan)? {
        pass.launch(client, indices.clone(), None);
    }
    Ok(indices)
}

/// [`max_with_indices`] or [`min_with_indices`] by a plan of the caller's choice, or by that of [`plan::plan`]; no plan
/// changes the results.
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
    plan: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let search = Search::new(client, end, input, axis, index_dtype)?;
    let (values, indices) = (search.output(client, search.input.dtype), search.output(client, index_dtype));
    if let Some(pass) = search.last_pass(client, plan)? {
        pass.launch(client, indices.clone(), Some(values.clone()));
    }
    Ok((values, indices))
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
        let shape = reduced_shape(kernel, input.shape(), input.strides(), &[axis])?;
        require_counts(client, kernel, index_dtype, input.shape()[axis])?;
        require_shapes(kernel, input.shape()[axis] != 0, || {
            format!("no element along axis {axis} of shape {:?}, want at least one", input.shape())
        })?;
        Ok(Self { end, input, key, axis, shape })
    }

    fn output(&self, client: &Client, dtype: ElemType) -> TensorHandle {
        unwritten(client, self.shape.clone(), dtype)
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
        // The first pass reads no candidates, and not every pass reads vectors, but a binding has to be there.
        let unread = new_indices(client, LARGEST_VECTOR / size_of::<u32>());
        let in_vectors = matches!(plan.first, plan::Pass::FourElements { .. });
        let mut form = extreme::Form { cube: first, first: true, in_vectors };
        let mut candidates = unread.clone();
        loop {
            let blocks = positions.div_ceil(BLOCK);
            let vectors = if form.in_vectors { input.clone() } else { unread.clone() };
            let pass = Pass { end, input: input.clone(), vectors, key, candidates, view, positions, blocks, form };
            let Some(cube) = plan.totals.filter(|_| blocks > 1) else { return Ok(Some(pass)) };
            candidates = new_indices(client, view.outputs as usize * blocks as usize);
            pass.launch(client, candidates.clone(), None);
            positions = blocks;
            form = extreme::Form { cube, first: false, in_vectors: false };
        }
    }
}

fn new_indices(client: &Client, length: usize) -> TensorHandle {
    unwritten(client, vec![length], U32)
}

/// One launch: from `positions` elements of an output, or candidates, to an index for each of `blocks`.
struct Pass {
    end: Extreme,
    input: TensorHandle,
    /// The input where it is read in vectors of four.
    vectors: TensorHandle,
    key: ElemType,
    /// The indices that the pass before has found: `[outputs, positions]`.
    candidates: TensorHandle,
    view: View,
    positions: u32,
    blocks: u32,
    form: extreme::Form,
}

impl Pass {
    /// Writes an index for each block, or with `values`, where an output has one block, the element there too.
    fn launch(self, client: &Client, indices: TensorHandle, values: Option<TensorHandle>) {
        let Cube { width, groups } = self.form.cube;
        let cubes = (self.view.outputs as usize * self.blocks as usize).div_ceil(width as usize);
        let (count, dim) = (crate::grid::cubes(cubes), CubeDim::new_2d(width, groups));
        let dtypes = [self.input.dtype, self.key, indices.dtype];
        let view = ViewLaunch::of(&self.view);
        let [input, vectors, candidates] =
            [self.input, self.vectors, self.candidates].map(|tensor| tensor.into_arg().into_buffer_arg());
        let indices = indices.into_arg().into_buffer_arg();
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and `indices` holds one
        // for each, `values` one for each output. It reads only elements of the view, which `input` covers, and only
        // candidates of its own output.
        unsafe {
            match values {
                None => extreme::index_of_extreme::launch_unchecked(
                    client,
                    count,
                    dim,
                    input,
                    vectors,
                    candidates,
                    indices,
                    view,
                    self.blocks,
                    self.positions,
                    self.form,
                    self.end.operation(),
                    dtypes,
                ),
                Some(values) => extreme::extreme_with_index::launch_unchecked(
                    client,
                    count,
                    dim,
                    input,
                    vectors,
                    candidates,
                    values.into_arg().into_buffer_arg(),
                    indices,
                    view,
                    self.blocks,
                    self.positions,
                    self.form,
                    self.end.operation(),
                    dtypes,
                ),
            }
        }
    }
}
