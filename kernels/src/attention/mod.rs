//! Scaled dot-product attention: `softmax(Q K^T scale + bias) V`, with masks and capped scores (Vaswani et al.,
//! "Attention Is All You Need", 2017).
//!
//! # Order contract
//!
//! For each query `q[width]` of a head, with its keys `k[keys, width]` and values `v[keys, columns]`, all in f32:
//!
//! ```text
//! s[j]   = round(dot(q, k[j]) * scale)
//! s[j]   = round(tanh(s[j] / softcap) * softcap)       where there is a softcap
//! s[j]   = -inf                                        where the mask is set, or causal and j > i + keys - queries
//! s[j]   = s[j] + bias[j]                              where there is a bias
//! m      = max(f32::MIN, s[0], s[1], ..)
//! e[j]   = exp(s[j] - m)
//! z      = max(f32::MIN_POSITIVE, sum(e))
//! p[j]   = e[j] / z                                    the probabilities
//! out[c] = dot(p, v[.., c])
//! ```
//!
//! `dot` is a [product](crate::matmul), in the blocked order, and `sum` a [sum](crate::reduce), in the columns order
//! (see [`crate::order`]). Each step is rounded on its own: the same steps as kernels of their own give the same bits.
//! `exp`, `tanh` and the divisions are the device's.
//!
//! A query that is masked from every key gives zeros. The value of a masked key has the probability zero, so that an
//! infinite or NaN value gives NaN. Where a score of a query is NaN or +inf, its results are NaN.
//!
//! # Cost
//!
//! One launch, and a workspace of one f32 for each query and key. Q, K and V are read in place through any strides, in
//! vectors of four where elements of a row are adjacent.

mod kernel;
pub mod plan;
pub mod reference;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, require_units};
use crate::dtype::{F32, float_accumulator};
use crate::grid::cubes;
use crate::order::BLOCK;
use crate::view::{broadcast_strides, is_dense_in_vectors, require_reach, require_shape};
use cubecl::ir::UIntKind;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use kernel::{ExtentsLaunch, Form, LayoutLaunch, ScoringLaunch, StepsLaunch};
use plan::{Plan, Problem};

const KERNEL: &str = "attention";

/// The tensors of attention.
#[derive(Clone, Debug)]
pub struct Operands {
    /// `[batch, heads, queries, width]`.
    pub query: TensorHandle,
    /// `[batch, heads, keys, width]`.
    pub key: TensorHandle,
    /// `[batch, heads, keys, columns]`.
    pub value: TensorHandle,
    /// Bools in their storage type, set where a key is masked from a query; broadcasts to
    /// `[batch, heads, queries, keys]`.
    pub mask: Option<TensorHandle>,
    /// Added to the scores; broadcasts to `[batch, heads, queries, keys]`.
    pub bias: Option<TensorHandle>,
}

/// The parameters of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The factor of `Q K^T`.
    pub scale: f32,
    /// The `c` of `tanh(score / c) * c`, which caps scores.
    pub softcap: Option<f32>,
    /// Whether query `i` is masked from the keys after `i + keys - queries`.
    pub causal: bool,
}

impl Operands {
    /// What the plan looks at; `None` where shapes do not fit together, or an element type is not f32.
    fn problem(&self) -> Option<Problem> {
        let &[batch, heads, queries, width] = &self.query.shape()[..] else { return None };
        let &[.., keys, columns] = &self.value.shape()[..] else { return None };
        let fits = self.key.shape()[..] == [batch, heads, keys, width]
            && self.value.shape()[..] == [batch, heads, keys, columns]
            && [Some(&self.query), Some(&self.key), Some(&self.value), self.bias.as_ref()]
                .into_iter()
                .flatten()
                .all(|operand| operand.dtype == F32);
        let qk_lanes = lanes(&self.query).min(lanes(&self.key));
        fits.then_some(Problem { heads: batch * heads, queries, keys, width, columns, qk_lanes })
    }

    /// Whether [`attention`] computes these operands on this device. Where not, the steps of the contract as kernels of
    /// their own give the same bits.
    pub fn fit(&self, client: &Client) -> bool {
        self.problem().and_then(|problem| plan::plan(&problem, Machine::of(client))).is_some()
    }
}

/// Attention: `[batch, heads, queries, columns]`, launched by [`plan::plan`].
///
/// # Errors
///
/// Refuses operands that do not [fit](Operands::fit), masks and biases that do not broadcast, and operands that 32-bit
/// indices do not reach over.
pub fn attention(client: &Client, operands: Operands, params: Params) -> Result<TensorHandle, KernelError> {
    let plan = operands.problem().and_then(|problem| plan::plan(&problem, Machine::of(client)));
    let Some(plan) = plan else { return Err(operands.refusal()) };
    attention_planned(client, operands, params, plan)
}

/// [`attention`] by a plan of the caller's choice, which cannot change the result, on any device.
///
/// # Errors
///
/// As [`attention`], and a plan that does not apply.
pub fn attention_planned(
    client: &Client,
    operands: Operands,
    params: Params,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    let Some(problem) = operands.problem().filter(Problem::fits) else { return Err(operands.refusal()) };
    if let Some(reason) = plan.refuses(&problem) {
        return Err(KernelError::Plan { kernel: KERNEL, reason });
    }
    let Problem { heads, queries, keys, width, columns, qk_lanes } = problem;
    let [batch, of_batch] = [operands.query.shape()[0], operands.query.shape()[1]];
    let Operands { query, key, value, mask, bias } = operands;
    let scored = [batch, of_batch, queries, keys];
    let mask = mask.map(|mask| broadcast("mask", mask, &scored)).transpose()?;
    let bias = bias.map(|bias| broadcast("bias", bias, &scored)).transpose()?;
    let floats: Vec<_> = [&query, &key, &value].into_iter().chain(&bias).collect();
    float_accumulator(client, KERNEL, &floats)?;
    require_reach(KERNEL, mask.as_ref())?;
    require_units(client, KERNEL, Plan::UNITS)?;
    let count = plan.cubes(&problem);
    let workspace = vec![count, keys.div_ceil(4), plan.rows as usize, Plan::UNITS as usize, 4];
    let output = vec![batch, of_batch, queries, columns];
    for shape in [&workspace, &output] {
        if shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).is_none_or(|n| n >= u32::MAX as usize) {
            let reason = format!("{queries} queries and {keys} keys of {heads} heads: more than 2^32 elements");
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
    }
    let (workspace, output) = (unwritten(client, workspace, F32), unwritten(client, output, F32));
    let value_lanes = lanes(&value);
    let form = Form {
        softcap: params.softcap.is_some(),
        causal: params.causal,
        single: keys <= BLOCK,
        qk_lanes: qk_lanes as u32,
        value_lanes: value_lanes as u32,
    };
    let [heads, queries, keys, width, columns] = [of_batch, queries, keys, width, columns].map(|size| size as u32);
    let units = plan.units(&problem) as u32;
    let layout = LayoutLaunch::new(
        steps(Some(&query)),
        steps(Some(&key)),
        steps(Some(&value)),
        steps(mask.as_ref()),
        steps(bias.as_ref()),
    );
    let mask_dtype = mask.as_ref().map_or(ElemType::UInt(UIntKind::U32), |mask| mask.dtype);
    let argument = |tensor: TensorHandle| tensor.into_arg().into_buffer_arg();
    // SAFETY: a unit below `units` has a head and queries of it; the rows, keys and columns that it reads are clamped
    // to the extents, which are those of the operands' shapes, and vectors are read where elements are adjacent and
    // begin at a multiple of their number; it writes to its own part of a workspace for as many units, and results at
    // rows and columns inside the output.
    unsafe {
        kernel::attention::launch_unchecked(
            client,
            cubes(count),
            CubeDim::new_1d(Plan::UNITS),
            qk_lanes,
            value_lanes,
            argument(query),
            argument(key),
            argument(value),
            mask.map(argument).into(),
            bias.map(argument).into(),
            argument(workspace),
            argument(output.clone()),
            ExtentsLaunch::new(units, heads, queries, keys, width, columns),
            layout,
            ScoringLaunch::new(params.scale, params.softcap.unwrap_or(1.0), f32::NEG_INFINITY, 0),
            plan,
            form,
            mask_dtype,
        );
    }
    Ok(output)
}

impl Operands {
    fn refusal(&self) -> KernelError {
        let [query, key, value] = [&self.query, &self.key, &self.value].map(|operand| operand.shape().to_vec());
        let dtypes = [self.query.dtype, self.key.dtype, self.value.dtype];
        let reason = format!(
            "query {query:?}, key {key:?} and value {value:?} of {dtypes:?}: want f32 with four axes that fit together, \
             none empty, up to {BLOCK} elements a query, and fewer keys than a unit may read"
        );
        KernelError::Shape { kernel: KERNEL, reason }
    }
}

/// Elements of a vector in which an operand can be read along its last axis: four, or one.
fn lanes(operand: &TensorHandle) -> usize {
    let (shape, strides) = (operand.shape(), operand.strides());
    let Some(last) = shape.len().checked_sub(1) else { return 1 };
    let others = (0..last).filter(|&axis| shape[axis] != 1).map(|axis| strides[axis]);
    match shape[last].is_multiple_of(4) && is_dense_in_vectors(4, strides[last], others) {
        true => 4,
        false => 1,
    }
}

/// The strides of an operand of four axes; zeros without one.
fn steps(operand: Option<&TensorHandle>) -> StepsLaunch {
    let at = |axis: usize| operand.map_or(0, |operand| operand.strides()[axis] as u32);
    StepsLaunch::new(at(0), at(1), at(2), at(3))
}

/// `operand` with the strides with which it broadcasts to `shape`.
fn broadcast(name: &str, operand: TensorHandle, shape: &[usize; 4]) -> Result<TensorHandle, KernelError> {
    let strides = (operand.shape().len() == shape.len())
        .then(|| broadcast_strides(operand.shape(), operand.strides(), shape))
        .flatten();
    match strides {
        Some(strides) => Ok(TensorHandle::new(operand.handle, shape.to_vec(), strides, operand.dtype)),
        None => require_shape(KERNEL, name, operand.shape(), shape).map(|()| operand),
    }
}
