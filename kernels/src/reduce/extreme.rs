//! Where along an axis the largest or smallest element is.
//!
//! The index is the lowest one of the elements that no other beats. -0 and +0 tie. A NaN beats everything that is not
//! NaN, for the maximum and for the minimum; NaNs tie. This does not depend on the order of comparison, and floats are
//! compared as integers. It is Burn's rule for `argmax` and `argmin`.
//!
//! With indices the value is the element at the index, to the bit: a NaN keeps its payload, and of two zeros it is the
//! first one, where [`reduce::max`](super::max()) gives +0 and [`reduce::min`](super::min()) -0.
//!
//! Cost: `n` reads an output and one launch for each factor of 4096 of `n`; a pass keeps one index for each block of
//! 4096.

use super::kernel::{GeometryLaunch, extreme};
use super::plan::{Plan, View, plan, plan_search};
use super::{Operation, readable, reduced_shape};
use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::Machine;
use crate::order::COLUMNS_BLOCK as BLOCK;
use cubecl::ir::{ElemType, UIntKind};
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
    index_of(client, Extreme::Max, input, axis, index_dtype, None)
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
    index_of(client, Extreme::Min, input, axis, index_dtype, None)
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
    with_index(client, Extreme::Max, input, axis, index_dtype, None)
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
    with_index(client, Extreme::Min, input, axis, index_dtype, None)
}

/// [`argmax`] or [`argmin`] with every pass on `forced` instead of the planned cube.
///
/// # Errors
///
/// Refuses an axis that the tensor does not have or that has no element, a tensor that 32-bit indices do not reach, element
/// types that the device does not compute, and a forced cube that it does not have.
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
    if let Some(pass) = search.last_pass(client)? {
        pass.index_of(client, indices.clone());
    }
    Ok(indices)
}

/// [`max_with_indices`] or [`min_with_indices`] with every pass on `forced` instead of the planned cube.
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
    forced: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let search = Search::new(client, end, input, axis, index_dtype, forced)?;
    let indices = search.output(client, index_dtype);
    let values = search.output(client, search.input.dtype);
    if let Some(pass) = search.last_pass(client)? {
        pass.with_index(client, values.clone(), indices.clone());
    }
    Ok((values, indices))
}

/// A checked search.
struct Search {
    end: Extreme,
    input: TensorHandle,
    key: ElemType,
    reduced: Vec<bool>,
    shape: Vec<usize>,
    forced: Option<Plan>,
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
        let (reduced, shape) = reduced_shape(kernel, input.shape(), input.strides(), &[axis])?;
        if input.shape()[axis] == 0 {
            let reason = format!("no element along axis {axis} of shape {:?}, want at least one", input.shape());
            return Err(KernelError::Shape { kernel, reason });
        }
        Ok(Self { end, input, key, reduced, shape, forced })
    }

    fn output(&self, client: &Client, dtype: ElemType) -> TensorHandle {
        unwritten(client, self.shape.clone(), dtype)
    }

    /// Launches every pass but the last one; `None` where the result has no element.
    fn last_pass(self, client: &Client) -> Result<Option<Pass>, KernelError> {
        let Self { end, input, key, reduced, shape, forced } = self;
        if shape.contains(&0) {
            return Ok(None);
        }
        let machine = Machine::of(client);
        let (input, view) = readable(client, input, &reduced);
        let mut positions = view.axis;
        // The first pass reads no survivors, and not every pass reads fours, but a binding has to be there.
        let unread = new_indices(client, LARGEST_FOUR / size_of::<u32>());
        let mut survivors = unread.clone();
        loop {
            let blocks = positions.div_ceil(BLOCK);
            let first = positions == view.axis;
            let plan = forced.unwrap_or_else(|| match first {
                true => plan_search(&view, machine),
                false => plan(&View { axis: positions, ..view }, machine),
            });
            plan.require(client, end.name(), plan.groups, key.size() + size_of::<u32>())?;
            let form = extreme::Form { plan, first, fours: first && plan.fours && view.in_fours() };
            let fours = if form.fours { input.clone() } else { unread.clone() };
            let pass = Pass { end, input: input.clone(), fours, key, survivors, view, positions, blocks, form };
            if blocks == 1 {
                return Ok(Some(pass));
            }
            survivors = new_indices(client, view.outputs as usize * blocks as usize);
            pass.index_of(client, survivors.clone());
            positions = blocks;
        }
    }
}

fn new_indices(client: &Client, length: usize) -> TensorHandle {
    unwritten(client, vec![length], ElemType::UInt(UIntKind::U32))
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
        let Plan { width, groups, .. } = self.form.plan;
        let cubes = (self.view.outputs as usize * self.blocks as usize).div_ceil(width as usize);
        (crate::grid::cubes(cubes), CubeDim::new_2d(width, groups))
    }

    fn index_of(self, client: &Client, indices: TensorHandle) {
        let (count, dim) = self.cubes();
        let dtypes = [self.input.dtype, self.key, indices.dtype];
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and `indices` holds one
        // for each. It reads only elements of the view, which lie in `input`, and only survivors of its own output.
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
