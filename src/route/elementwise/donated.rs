//! Operands in whose memory a sequence writes results.
//!
//! Both the operand and the result are tensors that begin and end in one block, under every name: no other thread has them. CubeCL would say
//! of a tensor whether another handle has its memory, not whether a kernel of another thread's queue still reads it (`memory`).

use super::{Sequence, float_of};
use crate::catalogue::{self, Fused, fused};
use burn_ir::{FloatOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashSet;

/// The tensors of a block that may share memory.
pub(crate) struct Inner {
    /// The floats among the results of operations that reserve memory for what they give.
    reserved: HashSet<TensorId>,
    /// What ends in the block, with all that may be its memory under another name.
    ended: HashSet<TensorId>,
}

/// Whether an operation reserves memory for what it gives. Others may give what they read under another name, or write in place.
fn reserves(operation: &OperationIr) -> bool {
    use Fused::{Binary, Compare, Reduction, Unary};
    let is_product = matches!(operation, OperationIr::Float(_, FloatOperationIr::Matmul(_)));
    let meaning = fused(catalogue::operation(operation));
    is_product || matches!(meaning, Some(Unary(_) | Binary(_) | Compare(..) | Reduction(_)))
}

impl Inner {
    /// Those of the block of `operations`.
    pub(crate) fn of(operations: &[OperationIr]) -> Self {
        let results = operations.iter().filter(|operation| reserves(operation)).flat_map(OperationIr::outputs);
        let reserved = results.filter(|result| float_of(result).is_some()).map(|result| result.id).collect();
        let mut ended = HashSet::new();
        for operation in operations.iter().rev() {
            let leaves = !reserves(operation) && operation.outputs().any(|output| !ended.contains(&output.id));
            // A free takes its tensor away too, and has no outputs.
            for input in operation.inputs() {
                if leaves {
                    ended.remove(&input.id);
                } else if input.status == TensorStatus::ReadWrite {
                    ended.insert(input.id);
                }
            }
        }
        Self { reserved, ended }
    }
}

impl Sequence {
    /// Lets the sequence write results in the memory of operands that nothing reads after it, where these and all results are `inner`.
    pub(crate) fn donate(&mut self, inner: &Inner) {
        let ends = self.results.iter().all(|(id, ..)| inner.ended.contains(id));
        let is_donated =
            |word: &TensorIr| ends && word.status == TensorStatus::ReadWrite && inner.reserved.contains(&word.id);
        let words = self.words.iter().enumerate().filter(|(_, word)| is_donated(word));
        self.donated = words.map(|(index, _)| index).collect();
    }

    /// The words in whose memory results may be written, by their index.
    #[cfg(test)]
    pub(crate) fn donated(&self) -> &[usize] {
        &self.donated
    }
}
