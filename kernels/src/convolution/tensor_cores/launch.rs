//! Launches.

use super::super::launch::{Operands, unwritten_result};
use super::super::plan::{Pass, Problem};
use super::super::shape::{Geometry, view_data, view_weight};
use super::applies::applies;
use super::pack::{Positions, pack};
use super::plan::{self, Plan};
use super::product::{Product, Taps, positions, products};
use crate::KernelError;
use crate::buffer::{dense, unwritten};
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::launch::{BlockRange, Launch};
use crate::matmul::tensor_cores::plan::VECTOR;
use crate::matmul::tensor_cores::sums;
use crate::order::parts::{self, Bias};
use crate::planned::require_plan;
use crate::view::{is_contiguous, with_layout};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// One pass of f16, bf16, or f32 whose factors are rounded to TF32, by `plan`, or by the one that [`plan::plan`] chooses; no plan changes
/// the result.
///
/// `kernel` is the operation, as errors name it.
///
/// # Errors
///
/// As [`run_pass`](super::super::run_pass), and for element types of which the device has no [`sums`], and passes
/// that do not [apply](applies()).
pub fn run_pass(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    operands: Operands,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let dtype = operands.source.dtype;
    if sums(client, dtype)?.is_none() {
        let remedy = "use `convolution::run_pass`: the device has no tensor cores whose sums of this type are known";
        return Err(KernelError::Dtype { kernel, dtype, remedy });
    }
    if !applies(problem, dtype) {
        let reason = format!("{problem:?} has the order of chains: use `convolution::run_pass`");
        return Err(KernelError::Shape { kernel, reason });
    }
    let (result, sum) = unwritten_result(client, kernel, problem, &operands)?;
    if result.shape().contains(&0) {
        return Ok(result);
    }
    let Geometry { batch, groups, .. } = problem.geometry;
    let width = VECTOR as usize / dtype.size();
    let plan = plan.unwrap_or_else(|| plan::plan(problem, dtype));
    require_plan(kernel, &plan, plan.refuses(problem, dtype))?;

    let Operands { source, other, bias } = operands;
    let bias = bias.map(|bias| dense(client, bias));
    let all = products(problem, 0..batch, width);
    let blocks = plan::blocks(&all.iter().map(|product| product.size).collect::<Vec<_>>());
    let left = |product: &Product| match problem.pass {
        Pass::ToWeight => Ok(gradient_rows(client, other.clone(), groups)),
        Pass::ToOutput | Pass::ToInput => weight_rows(client, kernel, problem, &other, product, width),
    };
    let left = all.iter().map(left).collect::<Result<Vec<_>, _>>()?;
    // Sums of blocks are kept in `sum` until they are complete: in a part for each block that is computed side by side with others,
    // behind the total of those before.
    let count = if plan.span < blocks && plan.span > 1 { plan.span + 1 } else { plan.span };
    let is_complete = blocks == 1 || (dtype == sum && plan.span == 1 && bias.is_none());
    let target = match is_complete {
        true => result.clone(),
        false => unwritten(client, vec![count, result.shape().iter().product()], sum),
    };
    let view = view_data(source, groups);
    let places = positions(problem);
    let mut launches = Vec::new();
    for first in (0..batch).step_by(plan.samples) {
        let samples = first..batch.min(first + plan.samples);
        let mut shape = view.shape().to_vec();
        shape[0] = samples.len();
        let (begin, strides) = (first * view.strides()[0], view.strides().to_vec());
        let source = pack(client, kernel, with_layout(view.clone(), shape, strides), begin, &places, width)?;
        for (product, lhs) in products(problem, samples, width).into_iter().zip(&left) {
            let Product { size, factor, has_fours, .. } = product;
            launches.push(Launch {
                kernel,
                problem: size,
                tile: plan.tile_of(&size),
                lhs: lhs.clone(),
                rhs: with_layout(source.clone(), vec![groups, size.k, size.n], vec![source.strides()[1], 0, 0]),
                along_k: problem.pass != Pass::ToWeight,
                width,
                gathered: Some(factor),
                bias: if blocks == 1 { bias.clone() } else { None },
                output_width: if has_fours { 4 } else { 1 },
                single: blocks == 1 || plan.span > 1,
            });
        }
    }
    let chain = |count: usize, last: bool| {
        let bias = bias.clone().filter(|_| last);
        let bias = bias.map(|values| Bias { values, positions: result.shape()[2..].iter().product() });
        parts::chain(client, kernel, target.clone(), count, bias, &result, last)
    };
    for first in (0..blocks).step_by(plan.span) {
        let part = usize::from(first > 0 && plan.span > 1);
        let count = plan.span.min(blocks - first);
        for launch in launches.iter().filter(|launch| first < launch.problem.blocks().max(1)) {
            let blocks = BlockRange { first, count, part };
            // SAFETY: `products` gives places of the packed source and of the result, all of them, and columns in fours where
            // these are neighbours from a multiple of four on (its tests); the target has `count` parts of the result's size.
            unsafe { launch.enqueue(client, blocks, &target)? };
        }
        if plan.span > 1 {
            chain(part + count, first + count == blocks)?;
        }
    }
    if plan.span == 1 && !is_complete {
        chain(1, true)?;
    }
    Ok(result)
}

/// An output's gradient as `[groups, channels, samples and positions]`.
fn gradient_rows(client: &Client, gradient: TensorHandle, groups: usize) -> TensorHandle {
    let gradient = view_data(gradient, groups);
    let order = [1, 2, 0, 3, 4, 5];
    let (shape, strides) = (order.map(|axis| gradient.shape()[axis]), order.map(|axis| gradient.strides()[axis]));
    let view = with_layout(gradient, shape.to_vec(), strides.to_vec());
    let rows = if is_contiguous(&shape, &strides) { view } else { dense(client, view) };
    let steps = shape[2..].iter().product::<usize>();
    with_layout(rows, vec![shape[0], shape[1], steps], vec![shape[1] * steps, steps, 1])
}

/// The weights of a product as `[groups, channels, taps and channels of the source]`.
fn weight_rows(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    weight: &TensorHandle,
    product: &Product,
    width: usize,
) -> Result<TensorHandle, KernelError> {
    let matmul::Problem { batch, m, k, .. } = product.size;
    let rows = |tensor| with_layout(tensor, vec![batch, m, k], vec![m * k, k, 1]);
    if k == 0 {
        // Nothing is read of it.
        return Ok(rows(weight.clone()));
    }
    let view = view_weight(weight.clone(), problem.geometry.groups, problem.pass == Pass::ToInput);
    let (mut shape, mut strides) = (view.shape().to_vec(), view.strides().to_vec());
    let mut begin = 0;
    for (axis, &Taps { first, count, step }) in product.taps.iter().enumerate() {
        begin += first * strides[axis + 3];
        (shape[axis + 3], strides[axis + 3]) = (count, strides[axis + 3] * step);
    }
    let positions = Positions { lengths: product.taps.map(|taps| taps.count), lead: [0; 3] };
    let packed = pack(client, kernel, with_layout(view, shape, strides), begin, &positions, width)?;
    Ok(rows(packed))
}
