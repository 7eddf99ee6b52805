//! What broadcasts to the sequence's shape and nothing else needs: it is computed for each element that reads it, by the same
//! operations, so with the same bits.

use super::Sequence;
use super::reduced::ONE;
use crate::catalogue::{self, Fused, fused};
use burn_backend::Shape;
use burn_deterministic_kernels::elementwise::{Binary, Unary};
use burn_ir::{OperationIr, TensorIr};

/// Operations whose results are computed for each element: with some of a few instructions each, a kernel still waits for memory.
const MAX_INLINED: usize = 8;

/// Whether `narrow` is not `shape`, and broadcasts to it.
fn broadcasts_to(narrow: &Shape, shape: &Shape) -> bool {
    narrow.num_dims() == shape.num_dims()
        && narrow != shape
        && narrow.iter().zip(shape.iter()).all(|(narrow, of_shape)| narrow == of_shape || *narrow == ONE)
}

/// Whether a GPU computes `operation` in the time in which it reads an element: no function of many instructions.
fn is_short(operation: &OperationIr) -> bool {
    use Unary::{Absolute, Negate, Reciprocal, SquareRoot};
    match fused(catalogue::operation(operation)) {
        Some(Fused::Unary(function)) => matches!(function, Absolute | Negate | Reciprocal | SquareRoot),
        Some(Fused::Binary(function)) => {
            matches!(function, Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide)
        }
        Some(Fused::Clamp | Fused::Fill(_) | Fused::Compare(..) | Fused::Mask(_) | Fused::BoolToFloat) => true,
        _ => false,
    }
}

impl Sequence {
    /// The `operations` as a sequence of this one's shape whose launches may be shared, if nothing else needs those of their results
    /// that are of another shape.
    pub(in crate::route) fn inlined<'a>(
        &self,
        operations: impl IntoIterator<Item = &'a OperationIr>,
    ) -> Option<Sequence> {
        let mut sequence = Self::empty(self.shape.clone(), self.first, self.max_tensors, false);
        sequence.inlined = Some(Vec::new());
        for operation in operations {
            let before = sequence.inlined.as_ref().map(Vec::len);
            let is_taken = sequence.take(operation);
            let is_inlined = sequence.inlined.as_ref().map(Vec::len) != before;
            if !is_taken || is_inlined && !is_short(operation) {
                return None;
            }
        }
        let inlined = sequence.inlined.as_ref()?;
        let lives_on = sequence.results.iter().any(|(id, ..)| inlined.contains(id));
        (!lives_on && sequence.may_share()).then_some(sequence)
    }

    /// Takes `out` as a result of another shape, which broadcasts to the sequence's, if it may.
    pub(super) fn inlines(&mut self, out: &TensorIr) -> bool {
        let Some(inlined) = &mut self.inlined else { return false };
        let may = inlined.len() < MAX_INLINED && broadcasts_to(&out.shape, &self.shape);
        if may {
            inlined.push(out.id);
        }
        may
    }
}
