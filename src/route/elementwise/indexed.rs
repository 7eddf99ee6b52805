//! Rows at one index each, along the last axis: the element there, an update there, and the first element at an end with its index.
//!
//! Burn's gradient of a maximum is zeros with the gradient at the maximum's index, and that of a loss of classes zeros with the
//! gradient at the class: they are computed where they are read.

use super::reduced::is_row_of;
use super::{Indexed, Place, Sequence, float_of};
use crate::backend::adapters::elementwise::half;
use burn_backend::DType::I32;
use burn_backend::tensor::IndexingUpdateOp;
use burn_deterministic_kernels::elementwise::{Instruction, RowReduction, Value};
use burn_deterministic_kernels::reduce::extreme::Extreme;
use burn_ir::{BaseOperationIr, NumericOperationIr, OperationIr, TensorIr};
use std::sync::Arc;

impl Sequence {
    /// Reads each row of a tensor that the sequence reads or computes anyway at one index.
    pub(super) fn gather(&mut self, method: &'static str, operation: &OperationIr) -> Option<()> {
        let OperationIr::BaseFloat(BaseOperationIr::Gather(ir)) = operation else { return None };
        let has_room = self.takes_rows && self.can_reduce(1);
        (has_room && self.is_one_a_row(&ir.tensor, ir.dim, [&ir.indices, &ir.out])).then_some(())?;
        let x = self.known_elements(&ir.tensor)?;
        let index = self.index(method, operation, &ir.indices)?;
        let zero = self.bits(0);
        let element = Arc::make_mut(&mut self.program).gather(x, index, zero);
        self.tensor(&ir.out, ir.tensor.dtype, element)
    }

    /// Adds one value to each row of a tensor that the sequence reads or computes anyway.
    pub(super) fn scatter(&mut self, method: &'static str, operation: &OperationIr) -> Option<()> {
        let OperationIr::BaseFloat(BaseOperationIr::Scatter(ir)) = operation else { return None };
        let is_sum = ir.update == IndexingUpdateOp::Add;
        (is_sum && self.is_one_a_row(&ir.tensor, ir.dim, [&ir.indices, &ir.value])).then_some(())?;
        let (x, dtype) = (self.known_elements(&ir.tensor)?, ir.tensor.dtype);
        let y = self.word_of(&ir.value, dtype)?;
        let index = self.index(method, operation, &ir.indices)?;
        let negative_zero = self.bits((-0f32).to_bits());
        let updated = Arc::make_mut(&mut self.program).scatter_add(x, index, y, negative_zero, half(dtype));
        self.tensor(&ir.out, dtype, updated)
    }

    /// Finds the first element of each row at an end, and its index.
    pub(super) fn first_with_index(&mut self, end: Extreme, operation: &OperationIr) -> Option<()> {
        use NumericOperationIr::{MaxDimWithIndices, MinDimWithIndices};
        let OperationIr::NumericFloat(_, MaxDimWithIndices(ir) | MinDimWithIndices(ir)) = operation else {
            return None;
        };
        let has_room = self.takes_rows && self.can_reduce(2);
        (has_room && self.is_one_a_row(&ir.tensor, ir.dim, [&ir.out_indices, &ir.out])).then_some(())?;
        let dtype = float_of(&ir.tensor)?;
        let x = self.word_of(&ir.tensor, dtype)?;
        let (element, place) = match end {
            Extreme::Max => (RowReduction::FirstMax, RowReduction::ArgMax),
            Extreme::Min => (RowReduction::FirstMin, RowReduction::ArgMin),
        };
        // Moved, so that it needs no rounding.
        self.word(&ir.out, dtype, Instruction::Reduce(element, x))?;
        self.word(&ir.out_indices, I32, Instruction::Reduce(place, x))
    }

    /// Whether `axis` is the last one of `tensor`, which has the sequence's shape, and each row has one value of the others.
    fn is_one_a_row(&self, tensor: &TensorIr, axis: usize, others: [&TensorIr; 2]) -> bool {
        let is_last = axis + 1 == self.shape.num_dims() && tensor.shape == self.shape;
        is_last && others.iter().all(|other| is_row_of(&other.shape, &self.shape))
    }

    /// The value of a float tensor of the sequence's shape that it reads or computes.
    fn known_elements(&mut self, tensor: &TensorIr) -> Option<Value> {
        float_of(tensor)?;
        match self.place_of(tensor)? {
            Place::Word(value) => Some(value),
            Place::Condition(_) | Place::Slice => None,
        }
    }

    /// The word operand that an index is.
    fn index(&mut self, method: &'static str, operation: &OperationIr, indices: &TensorIr) -> Option<usize> {
        // What the sequence computes is checked by an operation of its own.
        let Value::Input(index) = self.word_of(indices, I32)? else { return None };
        if self.indexed.iter().all(|indexed| indexed.index != index) {
            let operands = operation.inputs().map(|input| input.id).collect();
            let out = operation.outputs().next()?.id;
            self.indexed.push(Indexed { method, operands, index, out });
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::elementwise::reduced::ONE;
    use burn_backend::DType::{self, F32};
    use burn_backend::Shape;
    use burn_ir::{
        BinaryOpIr, CreationOpIr, GatherOpIr, ReduceDimOpIr, ReduceDimWithIndicesOpIr, ScatterOpIr, TensorId,
        TensorStatus,
    };

    /// A tensor in relative form, of rows of the dimension `columns`, which lives on.
    fn tensor(id: u64, columns: usize, dtype: DType) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: Shape::new([1, columns]), status: TensorStatus::ReadOnly, dtype }
    }

    fn elements(id: u64) -> TensorIr {
        tensor(id, 2, F32)
    }

    fn of_rows(id: u64, dtype: DType) -> TensorIr {
        tensor(id, ONE, dtype)
    }

    fn zeros(out: u64) -> OperationIr {
        OperationIr::BaseFloat(BaseOperationIr::Zeros(CreationOpIr { out: elements(out) }))
    }

    fn scatter(ids: [u64; 4], dim: usize, update: IndexingUpdateOp) -> OperationIr {
        let [tensor, indices, value, out] = ids;
        OperationIr::BaseFloat(BaseOperationIr::Scatter(ScatterOpIr {
            tensor: elements(tensor),
            dim,
            indices: of_rows(indices, I32),
            value: of_rows(value, F32),
            update,
            out: elements(out),
        }))
    }

    fn gather(tensor: u64, indices: TensorIr, out: TensorIr) -> OperationIr {
        OperationIr::BaseFloat(BaseOperationIr::Gather(GatherOpIr { tensor: elements(tensor), dim: 1, indices, out }))
    }

    fn largest(x: TensorIr, out: u64, out_indices: TensorIr) -> OperationIr {
        let out = TensorIr { dtype: x.dtype, ..of_rows(out, F32) };
        let reduction = ReduceDimWithIndicesOpIr { tensor: x, dim: 1, out, out_indices };
        OperationIr::NumericFloat(F32, NumericOperationIr::MaxDimWithIndices(reduction))
    }

    fn sum(input: u64, out: u64) -> OperationIr {
        let reduction = ReduceDimOpIr { input: elements(input), out: of_rows(out, F32), axis: 1, accumulator_len: 0 };
        OperationIr::NumericFloat(F32, NumericOperationIr::SumDim(reduction))
    }

    fn product(lhs: TensorIr, rhs: TensorIr, out: TensorIr) -> OperationIr {
        OperationIr::NumericFloat(F32, NumericOperationIr::Mul(BinaryOpIr { lhs, rhs, out }))
    }

    /// How many of the operations one sequence takes.
    fn taken(operations: &[OperationIr], takes_rows: bool) -> usize {
        let Some(mut sequence) = Sequence::new(&operations[0], 16, takes_rows) else { return 0 };
        1 + operations[1..].iter().take_while(|operation| sequence.take(operation)).count()
    }

    #[test]
    fn a_gradient_at_an_index_is_computed_where_it_is_read() {
        let add = IndexingUpdateOp::Add;
        let operations =
            [zeros(0), scatter([0, 1, 2, 3], 1, add), product(elements(3), elements(4), elements(5)), sum(5, 6)];
        assert_eq!(taken(&operations, true), 4);
        assert_eq!(taken(&operations, false), 4, "the sum ends it");
    }

    #[test]
    fn an_update_that_is_not_one_sum_a_row_runs_by_itself() {
        let add = IndexingUpdateOp::Add;
        assert_eq!(taken(&[zeros(0), scatter([0, 1, 2, 3], 0, add)], true), 1, "along another axis");
        assert_eq!(taken(&[zeros(0), scatter([0, 1, 2, 3], 1, IndexingUpdateOp::Assign)], true), 1, "another update");
        assert_eq!(taken(&[scatter([0, 1, 2, 3], 1, add)], true), 0, "of a tensor that nothing else reads");
        let mut many = scatter([0, 1, 2, 3], 1, add);
        if let OperationIr::BaseFloat(BaseOperationIr::Scatter(ir)) = &mut many {
            (ir.indices.shape, ir.value.shape) = (Shape::new([1, 3]), Shape::new([1, 3]));
        }
        assert_eq!(taken(&[zeros(0), many], true), 1, "of several values a row");
    }

    #[test]
    fn an_element_of_a_tensor_that_is_read_anyway_is_taken() {
        let read = gather(2, of_rows(5, I32), of_rows(6, F32));
        let product = product(elements(0), elements(1), elements(2));
        assert_eq!(taken(&[product.clone(), read.clone()], true), 2);
        assert_eq!(taken(std::slice::from_ref(&read), true), 0, "it would read the whole tensor");
        let long = gather(2, of_rows(5, DType::I64), of_rows(6, F32));
        assert_eq!(taken(&[product, long], true), 1, "of long indices");
    }

    #[test]
    fn an_index_that_the_sequence_computes_is_checked_elsewhere() {
        let found = largest(elements(0), 1, of_rows(2, I32));
        assert_eq!(taken(&[found.clone(), gather(0, of_rows(2, I32), of_rows(3, F32))], true), 1);
        assert_eq!(taken(&[found, product(elements(0), of_rows(1, F32), elements(3)), sum(3, 4)], true), 3);
    }

    #[test]
    fn a_maximum_with_other_types_runs_by_itself() {
        assert_eq!(taken(&[largest(elements(0), 1, of_rows(2, DType::I64))], true), 0);
        assert_eq!(taken(&[largest(tensor(0, 2, DType::BF16), 1, of_rows(2, I32))], true), 1);
        assert_eq!(taken(&[largest(tensor(0, 2, DType::F64), 1, of_rows(2, I32))], true), 0);
        assert_eq!(
            taken(&[largest(elements(0), 1, of_rows(2, I32))], false),
            0,
            "only a kernel of rows reduces and goes on"
        );
    }
}
