//! Operands in whose memory a sequence writes results.
//!
//! CubeCL has a queue of the device for each thread. It says of a tensor whether another handle has its memory, not whether a kernel of
//! another queue still reads it; and a queue that reads a tensor of another one waits for what that has launched when the memory was
//! reserved. So both the operand and the result are tensors that begin and end in one block, which no other thread's operation
//! reads: that would end the block before.

use super::{Sequence, float_of};
use crate::catalogue::{self, Fused, fused};
use burn_ir::{FloatOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashSet;

/// The tensors of a block that may share memory.
pub(crate) struct Inner {
    /// The results of operations that reserve memory for what they give. Others may give what they read under another name.
    reserved: HashSet<TensorId>,
    /// What an operation takes away, or is freed.
    ended: HashSet<TensorId>,
}

impl Inner {
    /// Those of the block of `operations`.
    pub(crate) fn of(operations: &[OperationIr]) -> Self {
        let reserves = |operation: &&OperationIr| {
            let is_product = matches!(operation, OperationIr::Float(_, FloatOperationIr::Matmul(_)));
            let meaning = fused(catalogue::operation(operation));
            is_product || matches!(meaning, Some(Fused::Unary(_) | Fused::Binary(_)))
        };
        let results = operations.iter().filter(reserves).flat_map(OperationIr::outputs);
        let is_taken = |input: &&TensorIr| input.status == TensorStatus::ReadWrite;
        let taken = operations.iter().flat_map(|operation| operation.inputs().filter(is_taken).collect::<Vec<_>>());
        Self {
            reserved: results.filter(|result| float_of(result).is_some()).map(|result| result.id).collect(),
            // A free takes its tensor away too.
            ended: taken.map(|input| input.id).collect(),
        }
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
