//! Sequences that need no result of each other, in as few launches as these take.

use super::Sequence;
use super::means::{Reduced, results_of_each};
use crate::route::rerun::Work;
use burn_cubecl::CubeDevice;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{self, Call, Operands, Results};
use burn_deterministic_kernels::reduce::{self, ReductionCall, reduce_program_each};
use burn_fusion::stream::Context;
use burn_ir::OperationIr;
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// What a sequence has computed, and what it has reduced.
type Computed = (Results, Vec<TensorHandle>);

impl Sequence {
    /// Whether its launches may be shared: it needs no kernel of rows, checks no indices, assigns no slices, and reduces nothing or
    /// what it computes.
    pub(in crate::route) fn may_share(&self) -> bool {
        let reduces_result = self.reduction.as_ref().is_none_or(|reduction| reduction.word.is_some());
        self.moved.is_none() && reduces_result && !self.needs_rows() && !self.has_indices() && !self.assigns()
    }

    /// The sequence of all the `operations`, if its launches may be shared.
    pub(in crate::route) fn shared<'a>(
        operations: impl IntoIterator<Item = &'a OperationIr>,
        max_tensors: usize,
    ) -> Option<Self> {
        let mut operations = operations.into_iter();
        let mut sequence = Self::new(operations.next()?, max_tensors, true)?;
        operations.all(|operation| sequence.take(operation)).then_some(sequence).filter(Self::may_share)
    }

    /// Whether it checks indices.
    pub(in crate::route) fn has_indices(&self) -> bool {
        !self.indexed.is_empty()
    }
}

/// The sequences as the program knows them.
pub(in crate::route) fn work_of_each(sequences: &[&Sequence], context: &Context<CubeFusionHandle>) -> Work {
    let all: Vec<_> = sequences.iter().map(|sequence| sequence.work(context)).collect();
    let methods: Vec<_> = all.iter().map(|work| &work.operation[..]).collect();
    Work {
        operation: methods.join(", "),
        inputs: all.iter().flat_map(|work| work.inputs.iter().cloned()).collect(),
        outputs: all.iter().flat_map(|work| work.outputs.iter().cloned()).collect(),
    }
}

/// Runs `sequences`, which [may share](Sequence::may_share) launches, on the tensors of `context`. Returns whether a kernel was
/// launched.
///
/// # Panics
///
/// When a kernel refuses the operands.
pub(in crate::route) fn run_each(
    sequences: &[&Sequence],
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
) -> bool {
    let sequences: Vec<_> = sequences.iter().copied().filter(|sequence| sequence.lives_on()).collect();
    let shapes: Vec<_> = sequences.iter().map(|sequence| sequence.global_shape(context)).collect();
    let operands = |sequence: &&Sequence| {
        let words = sequence.word_operands(context);
        sequence.operands(words, context)
    };
    let operands = sequences.iter().map(operands).collect();
    let shapes_of: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let computed = compute(&device.client(), &sequences, &shapes_of, operands).unwrap_or_else(|error| {
        let methods: Vec<_> = sequences.iter().flat_map(|sequence| sequence.methods.iter().copied()).collect();
        panic!("{} on {device:?}: {error}", methods.join(", "))
    });
    for (sequence, (results, reduced)) in sequences.iter().zip(computed) {
        sequence.register(results, reduced, device, context);
    }
    shapes.iter().any(|shape| shape.num_elements() > 0)
}

/// Launches the kernels: what each sequence, on a shape and operands, gives.
fn compute(
    client: &Client,
    sequences: &[&Sequence],
    shapes: &[&[usize]],
    operands: Vec<Operands>,
) -> Result<Vec<Computed>, KernelError> {
    let mut computed: Vec<Option<Computed>> = sequences.iter().map(|_| None).collect();
    let (mut calls, mut reductions) = (Vec::new(), Vec::new());
    for (index, ((sequence, shape), operands)) in sequences.iter().zip(shapes).zip(operands).enumerate() {
        let call = Call { program: &sequence.program, shape, operands, condition_dtype: sequence.condition_type() };
        match &sequence.reduction {
            None => calls.push((index, call)),
            Some(reduction) => {
                let (operation, axes) = (reduction.operation(), &reduction.axes[..]);
                let mean = reduction.has_mean_beside_sum();
                reductions.push((index, ReductionCall { operation, input: call, axes, mean }));
            }
        }
    }
    let (indices, calls): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
    for (index, results) in indices.into_iter().zip(elementwise::run_each(client, calls)?) {
        computed[index] = Some((results, vec![]));
    }
    let (indices, reductions): (Vec<_>, Vec<_>) = reductions.into_iter().unzip();
    let reduced = reduce_program_each(client, reductions)?;
    let of = |(&index, reduced): (&usize, reduce::Reduced)| {
        let reduction = sequences[index].reduction.as_ref().expect("it has reduced something");
        let of_kernel = Reduced { reduction, shape: shapes[index], result: reduced.reduced, mean: reduced.mean };
        (reduced.results, of_kernel)
    };
    let (results, reduced): (Vec<_>, Vec<_>) = indices.iter().zip(reduced).map(of).unzip();
    let reduced = results_of_each(client, &reduced)?;
    for (index, (results, reduced)) in indices.into_iter().zip(results.into_iter().zip(reduced)) {
        computed[index] = Some((results, reduced));
    }
    Ok(computed.into_iter().map(|computed| computed.expect("each sequence is computed")).collect())
}
