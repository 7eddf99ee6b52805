//! What broadcasts to the sequence's shape and nothing else needs: it is computed for each element that reads it, by the same
//! operations, so with the same bits.

use super::Sequence;
use super::reduced::ONE;
use crate::catalogue::{self, Fused, fused};
use burn_backend::Shape;
use burn_deterministic_kernels::elementwise::{Binary, Unary};
use burn_ir::{OperationIr, TensorIr};

/// What may be computed for each element: so many sums, a division counting as [`DIVISION`]. A GPU's kernel still waits for memory.
const MAX_INLINED: usize = 8;

/// Operands that a sequence may read more when it computes what broadcasts in place of reading that.
const MAX_MORE_OPERANDS: usize = 2;

/// A quotient or a root, in sums.
const DIVISION: usize = 4;

/// Whether `narrow` is not `shape`, and broadcasts to it.
fn broadcasts_to(narrow: &Shape, shape: &Shape) -> bool {
    narrow.num_dims() == shape.num_dims()
        && narrow != shape
        && narrow.iter().zip(shape.iter()).all(|(narrow, of_shape)| narrow == of_shape || *narrow == ONE)
}

/// How many sums a GPU computes in the time of `operation`, if that is no function of many instructions.
fn cost(operation: &OperationIr) -> Option<usize> {
    use Unary::{Absolute, Negate, Reciprocal, SquareRoot};
    match fused(catalogue::operation(operation))? {
        Fused::Unary(Absolute | Negate) => Some(1),
        Fused::Unary(Reciprocal | SquareRoot) | Fused::Binary(Binary::Divide) => Some(DIVISION),
        Fused::Binary(Binary::Add | Binary::Subtract | Binary::Multiply) => Some(1),
        Fused::Clamp | Fused::Fill(_) | Fused::Compare(..) | Fused::Mask(_) | Fused::BoolToFloat => Some(1),
        _ => None,
    }
}

impl Sequence {
    /// The `operations` as a sequence of this one's shape whose launches may be shared; with results of other shapes, if it `inlines`
    /// and nothing else needs those.
    pub(in crate::route) fn inlined<'a>(
        &self,
        operations: impl IntoIterator<Item = &'a OperationIr>,
        inlines: bool,
    ) -> Option<Sequence> {
        let mut sequence = Self::empty(self.shape.clone(), self.first, self.max_tensors, false);
        sequence.inlined = inlines.then(Vec::new);
        let mut sum = 0;
        for operation in operations {
            let before = sequence.inlined.as_ref().map(Vec::len);
            sequence.take(operation).then_some(())?;
            if sequence.inlined.as_ref().map(Vec::len) != before {
                sum += cost(operation)?;
            }
        }
        let is_inlined = |id| sequence.inlined.as_ref().is_some_and(|inlined| inlined.contains(id));
        let lives_on = sequence.results.iter().any(|(id, ..)| is_inlined(id));
        (!lives_on && sum <= MAX_INLINED && sequence.may_share()).then_some(sequence)
    }

    /// Takes `out` as a result of another shape, which broadcasts to the sequence's, if it may.
    pub(super) fn inlines(&mut self, out: &TensorIr) -> bool {
        let Some(inlined) = &mut self.inlined else { return false };
        let may = broadcasts_to(&out.shape, &self.shape);
        if may {
            inlined.push(out.id);
        }
        may
    }

    /// Whether it reads few operands more than `reader`, in which it computes what `narrow` computed, or both have one shape: operands
    /// that broadcast may be read element by element.
    pub(in crate::route) fn reads_few_more_than(&self, reader: &Sequence, narrow: &Sequence) -> bool {
        let operands = |sequence: &Sequence| sequence.words.len() + sequence.conditions.len();
        narrow.shape == reader.shape || operands(self) <= operands(reader) + MAX_MORE_OPERANDS
    }
}
