//! Launches.

use super::super::launch::{Operands, unwritten_result};
use super::super::plan::{Pass, Problem};
use super::super::shape::{view_data, view_weight};
use super::pack::{Positions, pack};
use super::plan::{self, Plan};
use super::product::{Product, Taps, positions, products};
use crate::KernelError;
use crate::buffer::{dense, unwritten};
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::launch::{Blocks, Launch};
use crate::matmul::tensor_cores::plan::VECTOR;
use crate::order::parts::{self, Bias};
use crate::planned::require_plan;
use crate::view::with_layout;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Sizes of the products of a pass, of elements of so many bytes.
pub(super) fn sizes(problem: &Problem, bytes: usize) -> Vec<matmul::Problem> {
    products(problem, VECTOR as usize / bytes).into_iter().map(|product| product.size).collect()
}

/// The pass, of a type whose sums are known.
pub(super) fn multiply(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    operands: Operands,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let (result, sum) = unwritten_result(client, kernel, problem, &operands)?;
    let dtype = result.dtype;
    if result.shape().contains(&0) {
        return Ok(result);
    }
    let groups = problem.geometry.groups;
    let width = VECTOR as usize / dtype.size();
    let products = products(problem, width);
    let sizes: Vec<_> = products.iter().map(|product| product.size).collect();
    let plan = plan.unwrap_or_else(|| plan::plan(&sizes));
    require_plan(kernel, &plan, plan.refuses(&sizes))?;

    let Operands { source, other, bias } = operands;
    let bias = bias.map(|bias| dense(client, bias));
    let source = pack(client, kernel, view_data(source, groups), 0, &positions(problem), width)?;
    let blocks = plan::blocks(&sizes);
    // Sums of blocks are kept in `sum` until they are complete: in a part for each block that is computed side by side with others,
    // behind the total of those before.
    let single = blocks == 1 || plan.span > 1;
    let count = if plan.span < blocks && plan.span > 1 { plan.span + 1 } else { plan.span };
    let is_complete = blocks == 1 || (dtype == sum && plan.span == 1 && bias.is_none());
    let target = match is_complete {
        true => result.clone(),
        false => unwritten(client, vec![count, result.shape().iter().product()], sum),
    };
    let mut launches = Vec::new();
    for product in products {
        let lhs = match problem.pass {
            Pass::ToWeight => gradient_rows(client, other.clone(), groups),
            Pass::ToOutput | Pass::ToInput => weight_rows(client, kernel, problem, &other, &product, width)?,
        };
        let Product { size, factor, has_fours, .. } = product;
        let stride = source.strides()[1];
        launches.push(Launch {
            kernel,
            problem: size,
            tile: plan.tile_of(&size),
            lhs,
            rhs: with_layout(source.clone(), vec![groups, size.k, size.n], vec![stride, 1, 1]),
            along_k: problem.pass != Pass::ToWeight,
            width,
            gathered: Some(factor),
            bias: if blocks == 1 { bias.clone() } else { None },
            output_width: if has_fours { 4 } else { 1 },
            single,
        });
    }
    let chain = |count: usize, last: bool| {
        let bias = bias.clone().filter(|_| last);
        let bias = bias.map(|values| Bias { values, positions: result.shape()[2..].iter().product() });
        parts::chain(client, kernel, target.clone(), count, bias, &result, last)
    };
    for launch in &launches {
        let blocks = launch.problem.blocks().max(1);
        for first in (0..blocks).step_by(plan.span) {
            let count = plan.span.min(blocks - first);
            let part = usize::from(first > 0 && plan.span > 1);
            launch.enqueue(client, Blocks { first, count, part }, &target)?;
            if plan.span > 1 {
                chain(part + count, first + count == blocks)?;
            }
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
    let rows = dense(client, with_layout(gradient, shape.to_vec(), strides.to_vec()));
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
