//! What a sequence reduces: rows, after which it goes on, or other axes, with which it ends.

use super::{Place, Reduction, Sequence, float_of};
use crate::catalogue::{self, Fused, fused};
use crate::route::moved::Moved;
use crate::route::reductions::reduced_axes;
use burn_backend::DType::F32;
use burn_backend::Shape;
use burn_deterministic_kernels::elementwise::{Instruction, IntBinary, RowReduction, Value};
use burn_deterministic_kernels::reduce;
use burn_ir::{OperationIr, TensorId, TensorIr, TensorStatus};
use std::sync::Arc;

/// Instructions of a program that is reduced: a kernel of a reduction has many copies of it.
const MAX_REDUCED_INSTRUCTIONS: usize = 16;

/// Reductions of rows of a program: each part of a kernel between two of them has copies of what is one value a row.
const MAX_ROW_REDUCTIONS: usize = 8;

/// What a dimension of 1 is in Burn's relative shapes.
pub(super) const ONE: usize = 0;

/// Whether `row` has one value for each row of `shape`. Of one element a row, what is one value a row could not be told from what is
/// not.
pub(super) fn is_row_of(row: &Shape, shape: &Shape) -> bool {
    let Some(last) = shape.num_dims().checked_sub(1) else { return false };
    row.num_dims() == last + 1 && row[..last] == shape[..last] && row[last] == ONE && shape[last] != ONE
}

impl Sequence {
    /// Whether it has one value a row of something.
    pub(in crate::route) fn has_rows(&self) -> bool {
        self.row.is_some()
    }

    /// Whether it needs a kernel of rows: one of elements reads four at a time, and reduces none.
    pub(in crate::route) fn needs_rows(&self) -> bool {
        self.program.instructions().iter().any(|instruction| matches!(instruction, Instruction::Reduce(..)))
    }

    /// Whether it reduces rows to an extreme, which is refused where they are empty.
    pub(in crate::route) fn finds_extremes(&self) -> bool {
        use RowReduction::{Mean, Or, Prod, Sum};
        let is_extreme = |instruction: &Instruction| match instruction {
            Instruction::Reduce(reduction, _) => !matches!(reduction, Sum | Mean | Prod | Or),
            _ => false,
        };
        self.program.instructions().iter().any(is_extreme)
    }

    /// Whether it ends in a reduction of other axes than rows, or of all.
    pub(in crate::route) fn ends_in_reduction(&self) -> bool {
        self.reduction.is_some()
    }

    /// Whether one value a row has this shape, which the first one sets.
    pub(super) fn takes_row(&mut self, shape: &Shape) -> bool {
        if self.row.is_none() && self.takes_rows && !self.assigns() && is_row_of(shape, &self.shape) {
            self.row = Some(shape.clone());
        }
        self.row.as_ref() == Some(shape)
    }

    /// Whether a result was moved and not reduced.
    pub(in crate::route) fn moves_a_result(&self) -> bool {
        self.moved.as_ref().is_some_and(|moved| self.has_result(moved.source))
    }

    /// Leaves the moves of a result to after the kernel, which writes it.
    pub(in crate::route) fn stop_moving(&mut self) {
        self.moved = None;
    }

    /// Whether the kernel writes a tensor.
    fn has_result(&self, id: TensorId) -> bool {
        self.outputs().any(|output| *output == id)
    }

    /// Whether the kernel reads or writes a tensor.
    pub(in crate::route) fn binds(&self, id: TensorId) -> bool {
        self.words.iter().chain(&self.conditions).any(|operand| operand.id == id) || self.has_result(id)
    }

    /// Whether nothing is computed but where an operand moves.
    pub(in crate::route) fn only_moves(&self) -> bool {
        self.moved.is_some() && self.outputs().next().is_none()
    }

    /// Makes rows of a sequence whose results have one value for each, where the result of `operation` has more of one of them.
    pub(super) fn widen(&mut self, operation: &OperationIr) {
        let Some(out) = operation.outputs().next() else { return };
        if self.takes_rows && self.row.is_none() && !self.assigns() && is_row_of(&self.shape, &out.shape) {
            self.row = Some(core::mem::replace(&mut self.shape, out.shape.clone()));
            self.first = out.id;
            Arc::make_mut(&mut self.program).fill_rows();
        }
    }

    /// Reduces the rows of one of its results, or of an operand, and goes on.
    pub(super) fn reduce_rows(&mut self, reduction: RowReduction, input: &TensorIr, out: &TensorIr) -> Option<()> {
        if !self.can_reduce(1) || input.shape != self.shape || !self.takes_row(&out.shape) {
            return None;
        }
        let dtype = float_of(input)?;
        let value = self.word_of(input, dtype)?;
        self.float(out, dtype, Instruction::Reduce(reduction, value))
    }

    /// Whether it may have so many more reductions of rows.
    pub(super) fn can_reduce(&self, more: usize) -> bool {
        let is_reduction = |instruction: &&Instruction| matches!(instruction, Instruction::Reduce(..));
        self.program.instructions().iter().filter(is_reduction).count() + more <= MAX_ROW_REDUCTIONS
    }

    /// Moves a result, or the operand that it begins with; goes on to move it; or ends the sequence with its reduction.
    pub(super) fn moves(&mut self, operation: &OperationIr) -> Option<()> {
        let Some(moved) = &mut self.moved else { return self.move_first(operation) };
        if moved.join(operation).is_some() {
            return Some(());
        }
        use reduce::Operation::{Mean, Prod, Sum};
        let method = catalogue::operation(operation);
        let Fused::Reduction(reduction @ (Sum | Prod | Mean)) = fused(method)? else { return None };
        let (axes, source) = (moved.reduced_by(operation)?, moved.source);
        let out = operation.outputs().next()?;
        let word = match self.places.get(&source)? {
            Place::Word(Value::Result(word)) => Some(*word),
            _ => None,
        };
        self.results.retain(|(id, ..)| *id != source);
        self.methods.push(method);
        let is_operand = word.is_none();
        self.reduction = Some(Reduction { word, is_operand, axes, outs: vec![(reduction, out.id)] });
        (out.dtype == F32).then_some(())
    }

    /// Moves a result that nothing else needs, or the operand that the sequence begins with.
    fn move_first(&mut self, operation: &OperationIr) -> Option<()> {
        let (moved, input) = Moved::by(operation)?;
        let short = self.program.instructions().len() <= MAX_REDUCED_INSTRUCTIONS;
        if !self.takes_rows || !short || self.row.is_some() || self.half.is_some() || input.dtype != F32 {
            return None;
        }
        match self.places.get(&input.id) {
            Some(Place::Word(Value::Result(_))) => {
                (input.shape == self.shape && input.status == TensorStatus::ReadWrite).then_some(())?;
            }
            None if self.methods.is_empty() => {
                self.word_of(input, F32)?;
            }
            _ => return None,
        }
        self.moved = Some(moved);
        Some(())
    }

    /// Ends the sequence with the reduction of one of its results.
    pub(super) fn end_with(
        &mut self,
        reduction: reduce::Operation,
        operation: &OperationIr,
        input: &TensorIr,
        out: &TensorIr,
    ) -> Option<()> {
        // An operand alone is not worth a kernel of its own: the reduction by itself has one that is compiled already.
        let &Place::Word(Value::Result(word)) = self.places.get(&input.id)? else { return None };
        let short = self.program.instructions().len() <= MAX_REDUCED_INSTRUCTIONS;
        if !short || self.half.is_some() || input.dtype != F32 || out.dtype != F32 || input.shape != self.shape {
            return None;
        }
        self.place_of(input)?;
        let axes = reduced_axes(operation, self.shape.num_dims())?;
        let outs = vec![(reduction, out.id)];
        self.reduction = Some(Reduction { word: Some(word), is_operand: false, axes, outs });
        Some(())
    }

    /// A sequence that ends with `reductions`, one or a sum and a mean, of what `source` is `moved` to, and with frees. The operations
    /// `computed` give the source, if there are some; nothing else reads that.
    pub(in crate::route) fn of_moved<'a>(
        computed: &[&OperationIr],
        source: &TensorIr,
        moved: &Moved,
        reductions: impl IntoIterator<Item = &'a OperationIr>,
        max_tensors: usize,
    ) -> Option<Self> {
        let mut sequence = match computed {
            [first, others @ ..] => {
                let mut sequence = Self::new(first, max_tensors, true)?;
                others.iter().all(|operation| sequence.take(operation)).then_some(sequence)?
            }
            [] => Self::of_operand(source, max_tensors)?,
        };
        let &Place::Word(Value::Result(word)) = sequence.places.get(&source.id)? else { return None };
        let short = sequence.program.instructions().len() <= MAX_REDUCED_INSTRUCTIONS;
        let fits = source.dtype == F32 && source.shape == sequence.shape;
        if !short || !fits || sequence.row.is_some() || sequence.half.is_some() {
            return None;
        }
        sequence.results.retain(|(id, ..)| *id != source.id);
        let (frees, reductions): (Vec<_>, Vec<_>) =
            reductions.into_iter().partition(|operation| catalogue::is_free(operation));
        let axes = moved.axes_of(reductions.first()?)?;
        let mut outs = Vec::new();
        for operation in reductions {
            let method = catalogue::operation(operation);
            let (Fused::Reduction(reduction), out) = (fused(method)?, operation.outputs().next()?) else { return None };
            (out.dtype == F32).then_some(())?;
            outs.push((reduction, out.id));
            sequence.methods.push(method);
        }
        use reduce::Operation::{Mean, Sum};
        let operations: Vec<_> = outs.iter().map(|(operation, _)| *operation).collect();
        if !matches!(operations[..], [_] | [Sum, Mean] | [Mean, Sum]) {
            return None;
        }
        let is_operand = computed.is_empty();
        sequence.reduction = Some(Reduction { word: Some(word), is_operand, axes, outs });
        frees.into_iter().for_each(|free| assert!(sequence.take(free), "a sequence takes each free"));
        let is_reduced = sequence.reduction.is_some() && sequence.tensors() <= max_tensors;
        (is_reduced && sequence.may_share()).then_some(sequence)
    }

    /// The sequence of a sum or a product of an operand of f32. Means share no launches.
    pub(in crate::route) fn of_reduction(operation: &OperationIr, max_tensors: usize) -> Option<Self> {
        use reduce::Operation::{Prod, Sum};
        let method = catalogue::operation(operation);
        let Fused::Reduction(reduction @ (Sum | Prod)) = fused(method)? else { return None };
        let (input, out) = (operation.inputs().next()?, operation.outputs().next()?);
        if input.dtype != F32 || out.dtype != F32 {
            return None;
        }
        let axes = reduced_axes(operation, input.shape.num_dims())?;
        let mut sequence = Self::of_operand(input, max_tensors)?;
        let &Place::Word(Value::Result(word)) = sequence.places.get(&input.id)? else { return None };
        sequence.reduction =
            Some(Reduction { word: Some(word), is_operand: true, axes, outs: vec![(reduction, out.id)] });
        sequence.methods.push(method);
        sequence.may_share().then(|| sequence.finish())
    }

    /// A sequence whose one result is its operand.
    fn of_operand(operand: &TensorIr, max_tensors: usize) -> Option<Self> {
        let mut sequence = Self::empty(operand.shape.clone(), operand.id, max_tensors, true);
        let x = sequence.word_of(operand, F32)?;
        // The same bits.
        let copied = Arc::make_mut(&mut sequence.program).word(Instruction::IntBinary(IntBinary::Or, x, x));
        sequence.places.insert(operand.id, Place::Word(copied));
        Some(sequence)
    }
}

impl Reduction {
    /// Whether it gives a sum, and the mean of the same elements.
    pub(super) fn has_mean_beside_sum(&self) -> bool {
        let has = |operation| self.outs.iter().any(|(other, _)| *other == operation);
        has(reduce::Operation::Sum) && has(reduce::Operation::Mean)
    }

    /// The operation of the kernel: a mean beside a sum is that sum, divided.
    pub(super) fn operation(&self) -> reduce::Operation {
        let sum = self.outs.iter().find(|(operation, _)| *operation == reduce::Operation::Sum);
        sum.unwrap_or(&self.outs[0]).0
    }
}
