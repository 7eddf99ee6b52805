//! The mean beside a sum of the same elements: the sum, divided by their number once, as [`reduce`] computes a mean.

use super::Reduction;
use burn_backend::BoolStore;
use burn_backend::DType::{Bool, F32};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{self, Binary, Call, Instruction, Operands, Program, Value};
use burn_deterministic_kernels::reduce;
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;
use std::sync::{Arc, LazyLock};

/// A word divided by a scalar.
static QUOTIENT: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let mut program = Program::default();
    program.word(Instruction::Binary(Binary::Divide, Value::Input(0), Value::Scalar(0)));
    program.output_word(0);
    Arc::new(program)
});

/// What a kernel has reduced.
pub(super) struct Reduced<'a> {
    pub reduction: &'a Reduction,
    /// The shape of the elements.
    pub shape: &'a [usize],
    /// The result of [the kernel's operation](Reduction::operation).
    pub result: TensorHandle,
    /// The mean, where the kernel has given that too.
    pub mean: Option<TensorHandle>,
}

impl Reduced<'_> {
    /// The mean of elements of which the kernel has given the sum alone, where there is such.
    fn quotient(&self) -> Option<Call<'_>> {
        if self.mean.is_some() || !self.reduction.has_mean_beside_sum() {
            return None;
        }
        let count: usize = self.reduction.axes.iter().map(|&axis| self.shape[axis]).product();
        let scalars = vec![(count as f32).to_bits()];
        let operands = Operands { words: vec![self.result.clone()], conditions: vec![], scalars };
        let condition_dtype = dtype_to_elem_type(Bool(BoolStore::U32));
        Some(Call { program: &QUOTIENT, shape: self.result.shape(), operands, condition_dtype })
    }

    /// The mean of no elements: whatever NaN a device has for 0 / 0, this is the one of a mean by itself.
    fn empty_mean(&self, client: &Client) -> Result<TensorHandle, KernelError> {
        let nothing = TensorHandle::new_contiguous(self.shape.to_vec(), client.empty(0), dtype_to_elem_type(F32));
        reduce::mean(client, nothing, &self.reduction.axes)
    }
}

/// The results of each reduction, in the order of its results. On a GPU all quotients are in one launch.
pub(super) fn results_of_each(client: &Client, all: &[Reduced<'_>]) -> Result<Vec<Vec<TensorHandle>>, KernelError> {
    let is_empty = |reduced: &Reduced<'_>| reduced.shape.contains(&0);
    let calls = all.iter().filter(|reduced| !is_empty(reduced)).filter_map(Reduced::quotient).collect();
    let mut means = elementwise::run_each(client, calls)?.into_iter().flat_map(|results| results.words);
    let results = |reduced: &Reduced<'_>| {
        let operation = reduced.reduction.operation();
        let result = |(out, _): &(reduce::Operation, _)| match (*out == operation, &reduced.mean) {
            (true, _) => Ok(reduced.result.clone()),
            (false, Some(mean)) => Ok(mean.clone()),
            (false, None) if is_empty(reduced) => reduced.empty_mean(client),
            (false, None) => Ok(means.next().expect("a mean for each sum beside one")),
        };
        reduced.reduction.outs.iter().map(result).collect()
    };
    all.iter().map(results).collect()
}
