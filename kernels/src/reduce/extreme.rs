//! Where along an axis the largest or smallest element is.
//!
//! The index is the lowest one of the elements that no other beats. -0 and +0 tie. A NaN beats everything that is not
//! NaN, for the maximum and for the minimum; NaNs tie. This does not depend on the order of comparison, and floats are
//! compared as integers. It is Burn's rule for `argmax` and `argmin`.
//!
//! With indices the value is the element at the index, to the bit: a NaN keeps its payload, and of two zeros it is the
//! first one, where [`max`](super::max) gives +0 and [`min`](super::min) -0.
//!
//! Cost: one launch, `n` reads an output; an output is never shared between cubes.

use super::kernel::{GeometryLaunch, extreme};
use super::plan::{Machine, Plan, View};
use super::{Operation, readable, reduced_shape};
use crate::KernelError;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

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
pub fn argmax(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    index_of(client, Extreme::Max, input, axis, index_dtype, None)
}

/// The indices of the smallest elements along `axis`, which keeps size one, as `index_dtype`.
pub fn argmin(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    index_of(client, Extreme::Min, input, axis, index_dtype, None)
}

/// The largest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
pub fn max_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    with_index(client, Extreme::Max, input, axis, index_dtype, None)
}

/// The smallest elements along `axis`, which keeps size one, and their indices as `index_dtype`.
pub fn min_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    with_index(client, Extreme::Min, input, axis, index_dtype, None)
}

/// [`argmax`] or [`argmin`] on `forced` instead of the planned cube.
pub fn index_of(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    forced: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let search = Search::new(client, end, input, axis, index_dtype, forced)?;
    let indices = search.output(client, index_dtype);
    if let Some((view, plan)) = search.launch {
        let dtypes = [search.input.dtype, search.key, index_dtype];
        // SAFETY: a unit writes only its own output below `view.outputs`, which both buffers hold, and reads only
        // elements of the view, which lie in `input`.
        unsafe {
            extreme::index_of_extreme::launch_unchecked(
                client,
                crate::launch::cubes(view.outputs.div_ceil(plan.width) as usize),
                CubeDim::new_2d(plan.width, plan.groups),
                search.input.into_arg().into_buffer_arg(),
                indices.clone().into_arg().into_buffer_arg(),
                GeometryLaunch::of(&view, 1),
                plan.width,
                plan.groups,
                end.operation(),
                dtypes,
            );
        }
    }
    Ok(indices)
}

/// [`max_with_indices`] or [`min_with_indices`] on `forced` instead of the planned cube.
pub fn with_index(
    client: &Client,
    end: Extreme,
    input: TensorHandle,
    axis: usize,
    index_dtype: ElemType,
    forced: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let search = Search::new(client, end, input, axis, index_dtype, forced)?;
    let indices = search.output(client, index_dtype);
    let values = search.output(client, search.input.dtype);
    if let Some((view, plan)) = search.launch {
        let dtypes = [search.input.dtype, search.key, index_dtype];
        // SAFETY: as in `index_of`.
        unsafe {
            extreme::extreme_with_index::launch_unchecked(
                client,
                crate::launch::cubes(view.outputs.div_ceil(plan.width) as usize),
                CubeDim::new_2d(plan.width, plan.groups),
                search.input.into_arg().into_buffer_arg(),
                values.clone().into_arg().into_buffer_arg(),
                indices.clone().into_arg().into_buffer_arg(),
                GeometryLaunch::of(&view, 1),
                plan.width,
                plan.groups,
                end.operation(),
                dtypes,
            );
        }
    }
    Ok((values, indices))
}

/// A checked search, ready to launch.
struct Search {
    input: TensorHandle,
    key: ElemType,
    shape: Vec<usize>,
    /// Nothing where the result has no element.
    launch: Option<(View, Plan)>,
}

impl Search {
    fn new(
        client: &Client,
        end: Extreme,
        input: TensorHandle,
        axis: usize,
        index_dtype: ElemType,
        forced: Option<Plan>,
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
        let (reduced, shape) = reduced_shape(kernel, &input, &[axis])?;
        if input.shape()[axis] == 0 {
            let reason = format!("no element along axis {axis} of shape {:?}, want at least one", input.shape());
            return Err(KernelError::Shape { kernel, reason });
        }
        if shape.contains(&0) {
            return Ok(Self { input, key, shape, launch: None });
        }
        let (input, view) = readable(client, input, &reduced);
        let plan = forced.unwrap_or_else(|| super::plan::plan(&view, Machine::of(client)));
        crate::device::require_units(client, kernel, plan.width * plan.groups)?;
        Ok(Self { input, key, shape, launch: Some((view, plan)) })
    }

    fn output(&self, client: &Client, dtype: ElemType) -> TensorHandle {
        let bytes = self.shape.iter().product::<usize>() * dtype.size();
        TensorHandle::new_contiguous(self.shape.clone(), client.empty(bytes), dtype)
    }
}
