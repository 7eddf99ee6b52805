//! Slices of one axis that are assigned.
//!
//! Burn's gradient of a slice is zeros with the gradient in the slice's place, added to the gradient of the tensor so far: for each slice
//! two tensors are written and two are read. Here each element is computed where it is read.

use super::reduced::ONE;
use super::{Assigned, Place, ScalarOperand, Sequence, float_of};
use crate::memory::is_only_thread;
use burn_backend::{DType, Shape};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::elementwise::{Instruction, Program, Value, Window};
use burn_fusion::stream::Context;
use burn_ir::{BaseOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::sync::Arc;

impl Sequence {
    /// Assigns a slice of one axis of a tensor that the sequence reads or computes anyway, or that has to be copied; or of one that nothing
    /// else needs, [by itself](Self::assigns_own) while one thread uses tensors.
    pub(super) fn assign(&mut self, operation: &OperationIr) -> Option<()> {
        self.assign_in(operation, is_only_thread)
    }

    fn assign_in(&mut self, operation: &OperationIr, is_only_thread: impl Fn() -> bool) -> Option<()> {
        let OperationIr::BaseFloat(BaseOperationIr::SliceAssign(ir)) = operation else { return None };
        // Kernels of rows have no windows. Parts of a sequence take no rows: there a slice is assigned by itself.
        (self.takes_rows && self.row.is_none()).then_some(())?;
        let axis = part_of(&ir.value.shape, &ir.tensor.shape)?;
        let dtype = float_of(&ir.tensor)?;
        let number = self.becomes_number(&ir.value, &ir.out);
        (ir.tensor.shape == self.shape).then_some(())?;
        let x = match self.place_of(&ir.tensor) {
            Some(Place::Word(value)) => value,
            Some(_) => return None,
            None if ir.tensor.status == TensorStatus::ReadWrite && is_only_thread() => {
                (self.words.is_empty() && self.results.is_empty()).then_some(())?;
                self.own = Some(ir.tensor.id);
                self.word_of(&ir.tensor, dtype)?
            }
            None => self.word_of(&ir.tensor, dtype)?,
        };
        let y = match number {
            Some(number) => number,
            None => self.slice(&ir.value, dtype)?,
        };
        let ranges: Vec<_> = ir.ranges.iter().map(|range| range.start as usize).collect();
        let window = Window {
            axis: self.shape.num_dims() - 1 - axis,
            start: self.scalar(ScalarOperand::Start(*ranges.get(axis)?, ir.tensor.id, axis)),
            length: self.scalar(ScalarOperand::Length(ir.value.id, axis)),
        };
        self.assigned.push(Assigned { ranges, slice: ir.value.id });
        let assigned = Arc::make_mut(&mut self.program).assign(x, y, window);
        self.tensor(&ir.out, ir.tensor.dtype, assigned)
    }

    /// The word operand that is a slice, which nothing else of the sequence reads.
    fn slice(&mut self, slice: &TensorIr, dtype: DType) -> Option<Value> {
        (slice.dtype == dtype && !self.places.contains_key(&slice.id)).then_some(())?;
        self.agree_on_half(dtype)?;
        self.words.push(slice.clone());
        self.places.insert(slice.id, Place::Slice);
        Some(Value::Input(self.words.len() - 1))
    }

    /// Makes a sequence that has done nothing but fill `slice`, which nothing else needs, one of the shape of `out`. Returns the number
    /// in `slice`.
    fn becomes_number(&mut self, slice: &TensorIr, out: &TensorIr) -> Option<Value> {
        let [Instruction::Fill(number, _)] = self.program.instructions() else { return None };
        let is_slice = self.results.iter().map(|(id, ..)| *id).eq([slice.id]) && slice.shape == self.shape;
        (is_slice && slice.status == TensorStatus::ReadWrite).then_some(())?;
        let number = *number;
        self.program = Arc::new(Program::default());
        (self.shape, self.first) = (out.shape.clone(), out.id);
        self.results.clear();
        self.places.clear();
        Some(number)
    }

    /// The tensor to which a slice is assigned and which nothing else needs, if the sequence does nothing else: where the memory
    /// [may be written](crate::memory::may_write), the slice is written in place, which is less work the larger the tensor is.
    pub(in crate::route) fn assigns_own(&self) -> Option<TensorId> {
        self.own
    }

    /// Whether it assigns slices.
    pub(in crate::route) fn assigns(&self) -> bool {
        !self.assigned.is_empty()
    }

    /// Whether the slices of this invocation are neighbouring places of their axis, in order, and all places of the others.
    pub(super) fn fits_slices(&self, context: &Context<CubeFusionHandle>) -> bool {
        let shape = self.global_shape(context);
        // Above, the kernel refuses what Burn's takes.
        shape.num_elements() < u32::MAX as usize
            && self.assigned.iter().all(|assigned| {
                assigned.ranges.iter().enumerate().all(|(axis, &range)| {
                    let (range, length) = (context.ranges[range], context.tensors[&assigned.slice].shape[axis]);
                    range.step == 1 && length > 0 && range.to_range(shape[axis]).len() == length
                })
            })
    }
}

/// The one axis along which `slice` is a part of `tensor`. None where the kernel finds no place along it: an axis of one element, or
/// with one element behind it.
fn part_of(slice: &Shape, tensor: &Shape) -> Option<usize> {
    let rank = tensor.num_dims();
    (slice.num_dims() == rank).then_some(())?;
    let mut parts = (0..rank).filter(|&axis| slice[axis] != tensor[axis]);
    let axis = parts.next().filter(|_| parts.next().is_none())?;
    let is_found = axis + 1 == rank || tensor[axis + 1..].iter().any(|&size| size != ONE);
    (tensor[axis] != ONE && is_found).then_some(axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn_backend::DType::F32;
    use burn_backend::Slice;
    use burn_ir::{BinaryOpIr, CreationOpIr, NumericOperationIr, ReduceDimOpIr, SliceAssignOpIr};

    /// Sequences of steps of elements, in relative form, which live on.
    fn tensor(id: u64, shape: [usize; 3]) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: Shape::new(shape), status: TensorStatus::ReadOnly, dtype: F32 }
    }

    fn last(tensor: TensorIr) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor }
    }

    const ALL: [usize; 3] = [2, 3, 4];
    const STEP: [usize; 3] = [2, ONE, 4];

    fn zeros(out: TensorIr) -> OperationIr {
        OperationIr::BaseFloat(BaseOperationIr::Zeros(CreationOpIr { out }))
    }

    fn assign(tensor: TensorIr, value: TensorIr, out: u64) -> OperationIr {
        let ranges = (0..tensor.shape.num_dims() as isize).map(|id| Slice::new(id, None, 1)).collect();
        let out = TensorIr { id: TensorId::new(out), ..tensor.clone() };
        OperationIr::BaseFloat(BaseOperationIr::SliceAssign(SliceAssignOpIr { tensor, ranges, value, out }))
    }

    fn sum(lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        let out = TensorIr { id: TensorId::new(out), status: TensorStatus::ReadOnly, ..lhs.clone() };
        OperationIr::NumericFloat(F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out }))
    }

    /// How many of the operations one sequence takes, and how many results it writes.
    fn taken(operations: &[OperationIr]) -> (usize, usize) {
        let Some(mut sequence) = Sequence::new(&operations[0], 16, true) else { return (0, 0) };
        let others = operations[1..].iter().take_while(|operation| sequence.take(operation)).count();
        (1 + others, sequence.outputs().count())
    }

    #[test]
    fn gradients_of_slices_are_added_in_one_kernel() {
        let slice = |n: u64| {
            let (empty, full) = (last(tensor(10 * n, ALL)), last(tensor(10 * n + 2, ALL)));
            let total = last(tensor(10 * n - 7, ALL));
            [
                zeros(empty.clone()),
                assign(empty, last(tensor(10 * n + 1, STEP)), 10 * n + 2),
                sum(total, full, 10 * n + 3),
            ]
        };
        let operations: Vec<_> = (1..=4).flat_map(slice).collect();
        assert_eq!(taken(&operations), (12, 1));
        let many: Vec<_> = (1..=30).flat_map(slice).collect();
        assert_eq!(taken(&many), (3 * 13 + 1, 2), "of 16 tensors one was the total, and two are results");
    }

    #[test]
    fn a_number_is_assigned_in_the_kernel_that_copies() {
        let filled = [zeros(tensor(0, STEP)), assign(tensor(1, ALL), last(tensor(0, STEP)), 2)];
        assert_eq!(taken(&filled), (2, 1));
        let lives_on = [zeros(tensor(0, STEP)), assign(tensor(1, ALL), tensor(0, STEP), 2)];
        assert_eq!(taken(&lives_on), (1, 1), "it has to be written");
        let rows = [2, 3, ONE];
        assert_eq!(taken(&[zeros(tensor(0, rows)), assign(tensor(1, ALL), last(tensor(0, rows)), 2)]), (2, 1));
        let own = [zeros(tensor(0, STEP)), assign(last(tensor(1, ALL)), last(tensor(0, STEP)), 2)];
        assert_eq!(taken(&own), (2, 1), "whether it lives on or not");
    }

    #[test]
    fn a_slice_of_a_tensor_that_nothing_else_needs_is_assigned_by_itself() {
        let own = assign(last(tensor(0, ALL)), tensor(1, STEP), 2);
        let empty = || Sequence::empty(Shape::new(ALL), TensorId::new(2), 16, true);
        let mut alone = empty();
        assert_eq!(alone.assign_in(&own, || true), Some(()));
        assert_eq!(alone.assigns_own(), Some(TensorId::new(0)));
        assert!(!alone.take(&sum(tensor(2, ALL), tensor(3, ALL), 4)), "nothing joins it");
        assert!(!alone.take(&assign(last(tensor(2, ALL)), tensor(3, STEP), 4)));
        let joined = |operation: &OperationIr| {
            let mut sequence = Sequence::new(operation, 16, true).expect("one kernel");
            (sequence.assign_in(&own, || true).is_some(), sequence.assigns_own())
        };
        assert_eq!(joined(&sum(tensor(3, ALL), tensor(4, ALL), 5)), (false, None), "it joins nothing");
        assert_eq!(joined(&sum(tensor(0, ALL), tensor(4, ALL), 5)), (true, None), "but what reads the tensor");
        // Of several threads the tensor is copied, and others may do more with it.
        let mut copied = empty();
        assert_eq!(copied.assign_in(&own, || false), Some(()));
        assert_eq!(copied.assigns_own(), None);
        assert!(copied.take(&sum(tensor(2, ALL), tensor(3, ALL), 4)));
    }

    #[test]
    fn a_slice_is_a_part_of_one_axis() {
        assert_eq!(taken(&[assign(tensor(0, ALL), tensor(1, [2, 5, 4]), 2)]), (1, 1));
        assert_eq!(taken(&[assign(tensor(0, ALL), tensor(1, [2, 3, 5]), 2)]), (1, 1), "the last");
        for other in [ALL, [ONE, 3, ONE], [2, ONE, 5]] {
            assert_eq!(taken(&[assign(tensor(0, ALL), tensor(1, other), 2)]), (0, 0), "{other:?}");
        }
        assert_eq!(taken(&[assign(tensor(0, [2, 3, ONE]), tensor(1, [2, 5, ONE]), 2)]), (0, 0), "no neighbours");
        assert_eq!(taken(&[assign(tensor(0, [2, ONE, 4]), tensor(1, [2, 5, 4]), 2)]), (0, 0), "of one element");
    }

    #[test]
    fn a_slice_is_read_nowhere_else() {
        let assigned = assign(tensor(0, ALL), tensor(1, STEP), 2);
        assert_eq!(taken(&[assigned.clone(), sum(tensor(2, ALL), tensor(1, STEP), 3)]), (1, 1));
        assert_eq!(taken(&[assigned.clone(), assign(tensor(2, ALL), tensor(1, STEP), 3)]), (1, 1));
        assert_eq!(taken(&[sum(tensor(4, ALL), tensor(1, STEP), 3), assigned]), (1, 1));
    }

    #[test]
    fn no_rows_are_reduced_beside_slices() {
        let reduction =
            ReduceDimOpIr { input: tensor(2, ALL), out: tensor(3, [2, 3, ONE]), axis: 2, accumulator_len: 0 };
        let reduced = OperationIr::NumericFloat(F32, NumericOperationIr::SumDim(reduction));
        assert_eq!(taken(&[assign(tensor(0, ALL), tensor(1, STEP), 2), reduced.clone()]), (1, 1));
        assert_eq!(
            taken(&[sum(tensor(0, ALL), tensor(1, ALL), 2), reduced, assign(tensor(2, ALL), tensor(4, STEP), 5)]).0,
            2
        );
    }
}
