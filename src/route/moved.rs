//! A tensor whose axes are moved, and joined if there are several to reduce, before it is reduced: as Burn's batch norm moves the
//! channels of a batch of images to the front, joins all other axes, and takes the mean of each channel.
//!
//! A reduction over these axes of the tensor itself has the same terms in the same order, and needs no copy.

use super::reductions::row_reduction;
use burn_ir::{BaseOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};

/// Where a tensor has been moved to.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    /// The tensor before it was moved.
    pub source: TensorId,
    /// The moved tensor.
    out: TensorIr,
    /// The axes of the source, in the moved tensor's order.
    axes: Vec<usize>,
    /// The axes before the last one of the moved tensor, which all others are joined to; `None` before they are.
    kept: Option<usize>,
}

/// Whether `operation` moves or joins axes.
pub(super) fn moves(operation: &OperationIr) -> bool {
    use BaseOperationIr::{Permute, Reshape, SwapDims};
    matches!(operation, OperationIr::BaseFloat(SwapDims(_) | Permute(_) | Reshape(_)))
}

impl Moved {
    /// What a float tensor becomes whose axes `operation` moves, and the tensor.
    pub(super) fn by(operation: &OperationIr) -> Option<(Self, &TensorIr)> {
        let OperationIr::BaseFloat(operation) = operation else { return None };
        let (input, out, axes) = match operation {
            BaseOperationIr::SwapDims(ir) => {
                let mut axes: Vec<usize> = (0..ir.input.shape.num_dims()).collect();
                axes.swap(ir.dim1, ir.dim2);
                (&ir.input, &ir.out, axes)
            }
            BaseOperationIr::Permute(ir) => (&ir.input, &ir.out, ir.axes.clone()),
            _ => return None,
        };
        Some((Self { source: input.id, out: out.clone(), axes, kept: None }, input))
    }

    /// Joins axes, if `operation` does that to the last ones of the moved tensor, and nothing else needs it.
    pub(super) fn join(&mut self, operation: &OperationIr) -> Option<()> {
        let OperationIr::BaseFloat(BaseOperationIr::Reshape(ir)) = operation else { return None };
        let kept = ir.out.shape.num_dims().checked_sub(1)?;
        // As many elements as before: the last axis has those of all that are not kept. Relative shapes are equal where the
        // program's are.
        let joins = kept < self.axes.len() && ir.out.shape[..kept] == self.out.shape[..kept];
        (self.kept.is_none() && self.is_taken_by(&ir.input) && joins).then_some(())?;
        (self.out, self.kept) = (ir.out.clone(), Some(kept));
        Some(())
    }

    /// The axes of the source that `operation` reduces, if it reduces the joined ones, or the last where none are joined, and nothing
    /// else needs the moved tensor.
    pub(super) fn reduced_by(&self, operation: &OperationIr) -> Option<Vec<usize>> {
        self.axes_of(operation).filter(|_| operation.inputs().next().is_some_and(|input| self.is_taken_by(input)))
    }

    /// The axes of the source that `operation` reduces, if it reduces the joined ones, or the last where none are joined.
    pub(super) fn axes_of(&self, operation: &OperationIr) -> Option<Vec<usize>> {
        row_reduction(operation)?;
        let kept = self.kept.or_else(|| self.axes.len().checked_sub(1))?;
        let (kept, reduced) = self.axes.split_at(kept);
        let is_in_order = kept.is_sorted() && reduced.is_sorted();
        (operation.inputs().next()?.id == self.out.id && is_in_order).then(|| reduced.to_vec())
    }

    /// Whether `input` is the last use of the moved tensor.
    fn is_taken_by(&self, input: &TensorIr) -> bool {
        input.id == self.out.id && input.status == TensorStatus::ReadWrite
    }
}
