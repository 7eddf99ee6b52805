//! What reductions and searches do before they are launched: check the axes and the plan, and copy what does not join.

use super::plan::{self, Plan, Problem};
use crate::copy;
use crate::device::Machine;
use crate::error::require_shapes;
use crate::planned::require_plan;
use crate::view::{axis_length, checked_elements, is_reached};
use crate::{KernelError, subnormals};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The shape of the result.
pub(super) fn reduced_shape(
    name: &'static str,
    shape: &[usize],
    strides: &[usize],
    axes: &[usize],
) -> Result<Vec<usize>, KernelError> {
    for &axis in axes {
        axis_length(name, shape, axis)?;
    }
    checked_elements(name, shape)?;
    require_shapes(name, is_reached(shape, strides), || {
        format!("shape {shape:?} with strides {strides:?} reaches over 2^32 elements")
    })?;
    Ok(shape.iter().enumerate().map(|(axis, &size)| if axes.contains(&axis) { 1 } else { size }).collect())
}

/// The plan, or the one that [`plan::plan`] chooses; an error if it does not apply.
pub(super) fn checked(
    client: &Client,
    kernel: &'static str,
    plan: Option<Plan>,
    problem: &Problem,
) -> Result<Plan, KernelError> {
    let plan = plan.unwrap_or_else(|| match subnormals::is_kept(client) {
        true => plan::of_few_operations(problem),
        false => plan::plan(problem, Machine::of(client)),
    });
    require_plan(kernel, &plan, plan.refuses(problem))?;
    Ok(plan)
}

/// A dense copy of the input with the reduced axes last.
pub(super) fn with_reduced_last(client: &Client, input: TensorHandle, axes: &[usize]) -> TensorHandle {
    let (reduced, kept): (Vec<usize>, Vec<usize>) = (0..input.shape().len()).partition(|axis| axes.contains(axis));
    let order: Vec<usize> = kept.into_iter().chain(reduced).collect();
    let shape: Vec<usize> = order.iter().map(|&i| input.shape()[i]).collect();
    let strides: Vec<usize> = order.iter().map(|&i| input.strides()[i]).collect();
    let dtype = input.dtype;
    let permuted = TensorHandle::new(input.handle, shape, strides, dtype);
    copy::dense(client, permuted)
}
