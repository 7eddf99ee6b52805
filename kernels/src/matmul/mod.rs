//! Matrix products, `[.., m, k] x [.., k, n] -> [.., m, n]`.
//!
//! # Order contract
//!
//! The [blocked order](crate::order) over `k`, with a multiply-add for `+`, for every output element, whatever the
//! batch, strides, device and plan:
//!
//! ```text
//! total = block(0)                            block(q):  acc = +0
//! for q in 1 .. ceil(k / BLOCK):                         for p in q*BLOCK .. min((q+1)*BLOCK, k):
//!     total = total + block(q)                               acc = a[i,p] * b[p,j] + acc
//! out[i,j] = round(total)                                return acc
//! ```
//!
//! with [`BLOCK`](crate::order::BLOCK) = 1024. Each product is rounded before it is added, or the device's `fma` adds
//! it, as the caller's [`Products`] say; `k = 0` gives zeros. Everything is in the accumulator type: f32 for f16, bf16
//! and f32, f64 for f64, and `round` is the one rounding of a half result. Integers wrap. No tensor cores and no
//! TF32: see [`tensor_cores`].
//!
//! The blocks exist so that a long `k` with few outputs (a weight gradient) runs in parallel; they also bound the
//! length of a chain, and with it the error, by `BLOCK + k / BLOCK` steps instead of `k`.
//!
//! # Cost
//!
//! `m n k` multiply-adds. Operands are read in place through any strides, broadcast ones included. Unless
//! `k` is split, a launch from shared memory has one block of it, and one without 58
//! ([`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS)): later ones read the sums of those before.

mod kernel;
mod launch;
mod operands;
pub mod plan;
pub mod reference;
mod single_kernel;
mod single_launch;
pub mod tensor_cores;
mod tiled_kernel;

use crate::arithmetic::Products;
use crate::buffer::unwritten_each;
use crate::device::{self, Machine};
use crate::planned::require_plan;
use crate::{KernelError, subnormals};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use operands::{NAME, Operands};
use plan::{CubeTile, Plan, Problem};
use single_launch::{Kind, Product};

/// `lhs x rhs`, of `products` where they are floats, launched by `plan`, or by the one that [`plan::plan`] chooses; no
/// plan changes the result.
///
/// Operands have equal rank of at least two and equal element type; each batch axis has equal extents, or is 1 in one
/// operand and broadcast.
///
/// # Errors
///
/// Refuses shapes that do not fit together or that 32-bit indices do not reach, element types that the device does not
/// compute, outputs that take more cubes than any plan has, a plan that does not apply ([`KernelError::Plan`]), and one
/// whose cubes or shared memory the device does not have.
pub fn matmul(
    client: &Client,
    products: Products,
    lhs: TensorHandle,
    rhs: TensorHandle,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let operands = Operands::new(client, products, lhs, rhs)?;
    let plan = plan.unwrap_or_else(|| chosen(client, &operands.problem));
    multiply(client, operands, plan)
}

/// The products of each pair of factors, with the bits of [`matmul`]: those of equal sizes whose plan has
/// [units of one output](plan::CubeTile::Single) are in one launch, as many as it takes.
///
/// # Errors
///
/// As [`matmul`].
pub fn matmul_each(
    client: &Client,
    products: Products,
    pairs: Vec<[TensorHandle; 2]>,
    plan: Option<Plan>,
) -> Result<Vec<TensorHandle>, KernelError> {
    let most = single_launch::most(client);
    let mut results: Vec<Option<TensorHandle>> = vec![None; pairs.len()];
    let mut launches: Vec<(Kind, Vec<(usize, Product)>)> = Vec::new();
    for (index, [lhs, rhs]) in pairs.into_iter().enumerate() {
        let operands = Operands::new(client, products, lhs, rhs)?;
        let (problem, is_empty) = (operands.problem, operands.is_empty());
        let plan = plan.unwrap_or_else(|| chosen(client, &problem));
        if is_empty || !matches!(plan.tile, CubeTile::Single { .. }) || problem.blocks() > 1 {
            results[index] = Some(multiply(client, operands, plan)?);
            continue;
        }
        require_plan(NAME, &plan, plan.refuses(&problem))?;
        let (product, kind) = Product::new(operands, plan);
        match launches.iter_mut().find(|(other, group)| *other == kind && group.len() < kind.most(most)) {
            Some((_, group)) => group.push((index, product)),
            None => launches.push((kind, vec![(index, product)])),
        }
    }
    for (kind, group) in launches {
        let (indices, group): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let outputs = unwritten_each(client, group.iter().map(Product::output).collect());
        let group: Vec<_> = group.into_iter().zip(outputs).collect();
        single_launch::launch(client, kind, &group)?;
        indices.into_iter().zip(group).for_each(|(index, (_, output))| results[index] = Some(output));
    }
    Ok(results.into_iter().map(|result| result.expect("each has a result")).collect())
}

/// Whether [`matmul_each`] has launches of several products on the device.
pub fn shares_launches(client: &Client) -> bool {
    let has_units = device::require_units(client, NAME, CubeTile::SINGLE_UNITS).is_ok();
    has_units && Machine::of(client) == Machine::Gpu && single_launch::most(client) > 1
}

/// The plan for a product on the device.
fn chosen(client: &Client, problem: &Problem) -> Plan {
    match subnormals::is_kept(client) {
        true => plan::of_few_products(problem, Machine::of(client)),
        false => plan::plan(problem, Machine::of(client)),
    }
}

fn multiply(client: &Client, operands: Operands, plan: Plan) -> Result<TensorHandle, KernelError> {
    let dtype = operands.lhs.dtype;
    if let Some(zeros) = operands.zeros(client, dtype) {
        return Ok(zeros);
    }
    let problem = operands.problem;
    require_plan(NAME, &plan, plan.refuses(&problem))?;
    operands.product(client, dtype, plan.parts(&problem), |operands, target| operands.launch(client, plan, target))
}
