//! Attention: the mean of values, weighted by how well their keys fit a query.
//!
//! # Order contract
//!
//! For each query of a head, with its keys `k[j]` and their values `v[j]`, all in f32:
//!
//! ```text
//! s[j] = round(dot(query, k[j]) * scale)
//! s[j] = round(tanh(s[j] / softcap) * softcap)         where there is a softcap
//! s[j] = -inf                                          where the mask is set, or the query does not see the key
//! s[j] = s[j] + bias[j]                                where there is a bias
//! m    = the largest of f32::MIN and s
//! e[j] = exp(s[j] - m)
//! z    = the larger of f32::MIN_POSITIVE and sum(e)
//! out[c] = dot(e / z, v[.., c])
//! ```
//!
//! `dot` is the chain of a matrix product ([`crate::matmul`]), so that the values of more than 1024 keys are summed in
//! blocks, and `sum` the tree of a sum along an axis ([`crate::reduce`]). Each step is rounded on its own: the same steps
//! as kernels of their own give the same bits. `exp`, `tanh` and the divisions are the device's.
//!
//! In causal attention query `i` of `n` sees the keys up to `i + keys - n`. A query that sees no key gives zeros. A value
//! whose key is not seen takes part with a weight of zero, so that one that is infinite or not a number gives NaN. Where
//! a score of a query is NaN or +inf, its results are NaN.
//!
//! # Cost
//!
//! One launch, and a workspace of one f32 for each query and key. Queries, keys and values are read in place through any
//! strides, four elements at a time where they lie side by side.

mod kernel;
pub mod plan;
pub mod reference;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, float_accumulator, require_reach, require_shape, require_units};
use crate::dtype::F32;
use crate::grid::{MAX_ITERATIONS, cubes};
use crate::order::BLOCK;
use crate::view::{broadcast_strides, is_dense_in_vectors};
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
    /// Bools in their storage type, where set a query does not see a key; broadcasts to
    /// `[batch, heads, queries, keys]`.
    pub mask: Option<TensorHandle>,
    /// What is added to the scores; broadcasts to `[batch, heads, queries, keys]`.
    pub bias: Option<TensorHandle>,
}

/// How queries and keys make scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// What an inner product is multiplied by.
    pub scale: f32,
    /// Holds scores within plus and minus this, smoothly.
    pub softcap: Option<f32>,
    /// Whether a query sees only the keys up to its own place, counted from the last one of both.
    pub causal: bool,
}

impl Operands {
    /// What the plan looks at; none where shapes or element types are not this kernel's.
    fn problem(&self) -> Option<Problem> {
        let &[batch, heads, queries, width] = &self.query.shape()[..] else { return None };
        let &[.., keys, columns] = &self.value.shape()[..] else { return None };
        let fits = self.key.shape()[..] == [batch, heads, keys, width]
            && self.value.shape()[..] == [batch, heads, keys, columns]
            && [Some(&self.query), Some(&self.key), Some(&self.value), self.bias.as_ref()]
                .into_iter()
                .flatten()
                .all(|operand| operand.dtype == F32);
        let narrow = vector(&self.query).min(vector(&self.key));
        fits.then_some(Problem { heads: batch * heads, queries, keys, width, columns, narrow })
    }

    /// Whether [`attention`] takes these operands. Where it does not, its steps one by one have the same bits.
    pub fn fit(&self, client: &Client) -> bool {
        self.problem().and_then(|problem| plan::plan(problem, Machine::of(client))).is_some()
    }
}

/// Attention: `[batch, heads, queries, columns]`, launched by [`plan::plan`].
///
/// # Errors
///
/// Refuses operands that do not [fit](Operands::fit), masks and biases that do not broadcast, and operands that 32-bit
/// indices do not reach over.
pub fn attention(client: &Client, operands: Operands, params: Params) -> Result<TensorHandle, KernelError> {
    let plan = operands.problem().and_then(|problem| plan::plan(problem, Machine::of(client)));
    let Some(plan) = plan else { return Err(operands.refusal()) };
    attention_planned(client, operands, params, plan)
}

/// [`attention`] launched by a given plan: the same bits.
///
/// # Errors
///
/// As [`attention`], on every device.
pub fn attention_planned(
    client: &Client,
    operands: Operands,
    params: Params,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    let Some(problem) = operands.problem() else { return Err(operands.refusal()) };
    let Problem { heads, queries, keys, width, columns, narrow } = problem;
    let empty = [heads, queries, keys, width, columns].contains(&0);
    if empty || width > BLOCK || plan.iterations(problem) > MAX_ITERATIONS {
        return Err(operands.refusal());
    }
    let [batch, of_batch] = [operands.query.shape()[0], operands.query.shape()[1]];
    let Operands { query, key, value, mask, bias } = operands;
    let scored = [batch, of_batch, queries, keys];
    let mask = mask.map(|mask| broadcast("mask", mask, &scored)).transpose()?;
    let bias = bias.map(|bias| broadcast("bias", bias, &scored)).transpose()?;
    let floats: Vec<_> = [&query, &key, &value].into_iter().chain(&bias).collect();
    float_accumulator(client, KERNEL, &floats)?;
    require_reach(KERNEL, mask.as_ref())?;
    require_units(client, KERNEL, Plan::UNITS)?;
    let count = plan.cubes(heads, queries);
    let workspace = vec![count, keys.div_ceil(4), plan.rows as usize, Plan::UNITS as usize, 4];
    let output = vec![batch, of_batch, queries, columns];
    for shape in [&workspace, &output] {
        if shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).is_none_or(|n| n >= u32::MAX as usize) {
            let reason = format!("{queries} queries and {keys} keys of {heads} heads: more than 2^32 elements");
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
    }
    let (workspace, output) = (unwritten(client, workspace, F32), unwritten(client, output, F32));
    let wide = vector(&value);
    let form = Form {
        softcap: params.softcap.is_some(),
        causal: params.causal,
        single: keys <= BLOCK,
        narrow: narrow as u32,
        wide: wide as u32,
    };
    let [heads, queries, keys, width, columns] = [of_batch, queries, keys, width, columns].map(|size| size as u32);
    let units = plan.units(problem.heads, problem.queries) as u32;
    let layout = LayoutLaunch::new(
        steps(Some(&query)),
        steps(Some(&key)),
        steps(Some(&value)),
        steps(mask.as_ref()),
        steps(bias.as_ref()),
    );
    let mask_dtype = mask.as_ref().map_or(ElemType::UInt(UIntKind::U32), |mask| mask.dtype);
    let argument = |tensor: TensorHandle| tensor.into_arg().into_buffer_arg();
    // SAFETY: a unit below `units` has a head and queries of it; rows, keys and columns at which it reads are held
    // within the extents that the operands' shapes were checked for, and vectors are read where elements lie side by
    // side from a multiple of their number on; it writes the scores of its own place in a workspace of as many units,
    // and results at rows and columns inside the output.
    unsafe {
        kernel::attention::launch_unchecked(
            client,
            cubes(count),
            CubeDim::new_1d(Plan::UNITS),
            narrow,
            wide,
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
             none empty, up to {BLOCK} elements a query, and fewer keys than a unit may walk"
        );
        KernelError::Shape { kernel: KERNEL, reason }
    }
}

/// Elements of a vector in which an operand can be read along its last axis: four, or one.
fn vector(operand: &TensorHandle) -> usize {
    let (shape, strides) = (operand.shape(), operand.strides());
    let Some(last) = shape.len().checked_sub(1) else { return 1 };
    let others = (0..last).filter(|&axis| shape[axis] != 1).map(|axis| strides[axis]);
    match shape[last].is_multiple_of(4) && is_dense_in_vectors(4, strides[last], others) {
        true => 4,
        false => 1,
    }
}

/// The strides of an operand of four axes; zeros for one that is not there.
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
