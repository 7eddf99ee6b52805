//! How the operations of a block run.

use super::elementwise::{Inner, Parts, Sequence};
use super::products::{Lead, leads};
use burn_ir::OperationIr;

/// How the operations of a block run.
pub(super) enum Work {
    /// One after the other, each on the deterministic backend.
    Operations,
    /// In one kernel.
    Together(Box<Together>),
    /// One reduction of an operand: by itself, or side by side with others, as a sequence.
    Reduction(Box<Sequence>),
}

/// Operations in one kernel.
pub(super) struct Together {
    /// The indices of those that run before, in program order.
    pub before: Vec<usize>,
    /// How these run where nothing is recorded.
    pub leads: Vec<Lead>,
    /// The indices of those in the kernel.
    pub operations: Vec<usize>,
    /// What these are.
    pub sequence: Sequence,
    /// The indices of those that move results, and run by themselves after, in program order.
    pub after: Vec<usize>,
    /// All in parts, for the case that the kernel has rows, and no need for them or no room, or assigns slices that are no parts.
    pub parts: Parts,
}

impl Together {
    /// Whether its launches may be shared.
    pub(super) fn shares(&self) -> bool {
        self.sequence.may_share() && self.parts.is_empty()
    }

    /// Whether everything runs in program order.
    pub(super) fn is_in_order(&self) -> bool {
        self.before.iter().chain(&self.operations).chain(&self.after).is_sorted()
    }
}

impl Work {
    /// Lets sequences write results in the memory of operands.
    pub(super) fn donate(&mut self, inner: &Inner) {
        if let Self::Together(together) = self {
            together.sequence.donate(inner);
            together.parts.iter_mut().filter_map(|(_, part)| part.as_mut()).for_each(|part| part.donate(inner));
        }
    }

    /// The work of some `operations` of `all`, which are those of `sequence` where there is one, but for those that run
    /// `before` or `after`.
    pub(super) fn of(
        sequence: Option<Sequence>,
        all: &[OperationIr],
        operations: &[usize],
        before: Vec<usize>,
        after: Vec<usize>,
    ) -> Self {
        let Some(sequence) = sequence.filter(|sequence| !sequence.only_moves()) else { return Self::Operations };
        let is_in_sequence = |index: &usize| !before.contains(index) && !after.contains(index);
        let others: Vec<_> = operations.iter().copied().filter(is_in_sequence).collect();
        let mut parts = match sequence.has_rows() || sequence.assigns() {
            true => sequence.parts(all, others.iter().copied(), false),
            false => vec![],
        };
        let (operations, sequence) = match parts.pop() {
            // One reduction, maybe of what is computed where it is read: it has kernels of its own.
            Some((_, None)) if parts.is_empty() && !sequence.assigns() => return Self::Operations,
            Some((operations, Some(part))) if parts.is_empty() => (operations, part),
            last => {
                parts.extend(last);
                if !parts.is_empty() && !before.is_empty() {
                    parts.insert(0, (before.clone(), None));
                }
                if !parts.is_empty() && !after.is_empty() {
                    parts.push((after.clone(), None));
                }
                (others, sequence.finish())
            }
        };
        Self::together(all, sequence, operations, before, after, parts)
    }

    /// The work of a closed `sequence` of some `operations` that is one kernel, and of what runs `before` and `after`; in `parts`, if
    /// there may be no such kernel.
    pub(super) fn together(
        all: &[OperationIr],
        sequence: Sequence,
        operations: Vec<usize>,
        before: Vec<usize>,
        after: Vec<usize>,
        parts: Parts,
    ) -> Self {
        let leads = leads(all, &before);
        Self::Together(Box::new(Together { before, leads, operations, sequence, after, parts }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lead, Work};
    use crate::route::elementwise::{Parts, Sequence};
    use burn_backend::{DType, Shape, Slice};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, CastOpIr, CreationOpIr, FloatOperationIr, IrVisitorMut, MatmulOpIr,
        NumericOperationIr, OperationIr, ReduceDimOpIr, ShapeOpIr, SliceAssignOpIr, SwapDimsOpIr, TensorId, TensorIr,
        TensorStatus, UnaryOpIr,
    };

    /// A tensor in relative form, of rows of the dimension `columns`, 0 being one of 1, which lives on.
    fn tensor(id: u64, columns: usize) -> TensorIr {
        let (id, shape) = (TensorId::new(id), Shape::new([4, columns]));
        TensorIr { id, shape, status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    fn last_use(tensor: TensorIr) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor }
    }

    fn reduced(reduce: fn(ReduceDimOpIr) -> NumericOperationIr, input: TensorIr, out: u64) -> OperationIr {
        let reduction = ReduceDimOpIr { input, out: tensor(out, 0), axis: 1, accumulator_len: 1 };
        OperationIr::NumericFloat(DType::F32, reduce(reduction))
    }

    fn binary(function: fn(BinaryOpIr) -> NumericOperationIr, lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        OperationIr::NumericFloat(DType::F32, function(BinaryOpIr { lhs, rhs, out: tensor(out, 8) }))
    }

    fn product(lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        OperationIr::Float(DType::F32, FloatOperationIr::Matmul(MatmulOpIr { lhs, rhs, out: tensor(out, 8) }))
    }

    fn softmax() -> Vec<OperationIr> {
        let exponential = UnaryOpIr { input: tensor(2, 8), out: tensor(3, 8) };
        vec![
            reduced(NumericOperationIr::MaxDim, tensor(0, 8), 1),
            binary(NumericOperationIr::Sub, tensor(0, 8), tensor(1, 0), 2),
            OperationIr::Float(DType::F32, FloatOperationIr::Exp(exponential)),
            reduced(NumericOperationIr::SumDim, tensor(3, 8), 4),
            binary(NumericOperationIr::Div, tensor(3, 8), tensor(4, 0), 5),
        ]
    }

    fn sequence(operations: &[OperationIr]) -> Option<Sequence> {
        let (first, others) = operations.split_first()?;
        let mut sequence = Sequence::new(first, 16, true)?;
        others.iter().all(|operation| sequence.take(operation)).then_some(sequence)
    }

    fn work(sequence: Option<Sequence>, all: &[OperationIr], before: Vec<usize>, after: Vec<usize>) -> Work {
        Work::of(sequence, all, &(0..all.len()).collect::<Vec<_>>(), before, after)
    }

    /// The same of another type.
    fn cast(operations: Vec<OperationIr>, dtype: DType) -> Vec<OperationIr> {
        struct To(DType);
        impl IrVisitorMut for To {
            fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
                tensor.dtype = self.0;
            }
        }
        let mut operations = operations;
        operations.iter_mut().for_each(|operation| operation.visit_mut(&mut To(dtype)));
        operations
    }

    #[test]
    fn a_softmax_is_one_kernel_or_parts() {
        let parts = |dtype: DType| {
            let operations = cast(softmax(), dtype);
            let work = work(sequence(&operations), &operations, vec![], vec![]);
            let Work::Together(together) = work else { panic!("it runs in one kernel") };
            assert_eq!(together.operations, [0, 1, 2, 3, 4], "{dtype:?}");
            together.parts.into_iter().map(|(indices, part)| (indices, part.is_some())).collect::<Vec<_>>()
        };
        assert_eq!(parts(DType::F32), [(vec![0], false), (vec![1, 2, 3], true), (vec![4], true)]);
        // Of half types no reduction ends a kernel.
        for half in [DType::F16, DType::BF16] {
            assert_eq!(parts(half), [(vec![0], false), (vec![1, 2], true), (vec![3], false), (vec![4], true)]);
        }
    }

    #[test]
    fn rows_of_two_half_types_share_no_kernel() {
        let mut operations = cast(softmax(), DType::F16);
        operations
            .push(cast(vec![binary(NumericOperationIr::Add, tensor(6, 8), tensor(7, 8), 8)], DType::BF16).remove(0));
        assert!(sequence(&operations[..5]).is_some() && sequence(&operations).is_none());
    }

    #[test]
    fn one_reduction_keeps_its_own_kernels() {
        let half = cast(softmax(), DType::F16);
        assert!(matches!(work(sequence(&half[..1]), &half[..1], vec![], vec![]), Work::Operations));
        let operations = softmax();
        assert!(matches!(work(sequence(&operations[..1]), &operations[..1], vec![], vec![]), Work::Operations));
        let computed = &operations[2..4];
        let Work::Together(together) = work(sequence(computed), computed, vec![], vec![]) else {
            panic!("in one kernel")
        };
        assert!(together.parts.is_empty() && !together.sequence.has_rows());
        // What runs before does not change that.
        let led = [&[product(tensor(6, 8), tensor(7, 8), 2)], computed].concat();
        let Work::Together(together) = work(sequence(computed), &led, vec![0], vec![]) else { panic!("in one kernel") };
        assert_eq!((&together.before[..], &together.operations[..]), (&[0][..], &[1, 2][..]));
        assert_eq!(together.leads, [Lead::Operation(0)]);
        let more = |out| product(tensor(6, 8), tensor(7, 8), out);
        let led = [&[more(2), more(8)], computed, &[more(9)]].concat();
        let Work::Together(together) = work(sequence(computed), &led, vec![0, 1, 4], vec![]) else {
            panic!("in one kernel")
        };
        assert_eq!((&together.before[..], &together.operations[..]), (&[0, 1, 4][..], &[2, 3][..]));
        assert_eq!(together.leads, [Lead::Products(vec![0, 1, 4])], "of equal sizes");
        assert!(together.parts.is_empty() && !together.sequence.has_rows());
        let led = [&[product(tensor(6, 8), tensor(7, 8), 2)], &operations[..1]].concat();
        assert!(matches!(work(sequence(&operations[..1]), &led, vec![0], vec![]), Work::Operations));
    }

    fn unary(function: fn(UnaryOpIr) -> FloatOperationIr, input: TensorIr, out: TensorIr) -> OperationIr {
        OperationIr::Float(DType::F32, function(UnaryOpIr { input, out }))
    }

    /// The indices of the operations of each part, and whether these are one sequence.
    fn parts(operations: &[OperationIr], before: Vec<usize>) -> Vec<(Vec<usize>, bool)> {
        let those: Vec<_> = { operations.iter().enumerate() }
            .filter(|(index, _)| !before.contains(index))
            .map(|(_, operation)| operation.clone())
            .collect();
        let Work::Together(together) = work(sequence(&those), operations, before, vec![]) else {
            panic!("in one kernel")
        };
        together.parts.into_iter().map(|(indices, part)| (indices, part.is_some())).collect()
    }

    #[test]
    fn a_cast_to_the_same_type_is_another_name() {
        let cast =
            |input, out: u64| OperationIr::BaseFloat(BaseOperationIr::Cast(CastOpIr { input, out: tensor(out, 8) }));
        let exponential = unary(FloatOperationIr::Exp, tensor(0, 8), tensor(1, 8));
        let root = unary(FloatOperationIr::Sqrt, last_use(tensor(2, 8)), tensor(3, 8));
        let outputs = |operations: &[OperationIr]| {
            let sequence = sequence(operations).expect("they run in one kernel");
            sequence.outputs().map(|id| id.value()).collect::<Vec<_>>()
        };
        assert_eq!(outputs(&[exponential.clone(), cast(last_use(tensor(1, 8)), 2)]), [2]);
        assert_eq!(outputs(&[exponential.clone(), cast(tensor(1, 8), 2), root]), [1, 3], "both live on");
        assert!(Sequence::new(&cast(tensor(0, 8), 1), 16, true).is_none(), "an operand by itself is no copy");
        assert!(sequence(&[exponential]).expect("one kernel").can_run_before(&cast(tensor(4, 8), 5)));
    }

    #[test]
    fn one_value_a_row_is_computed_with_the_row_that_it_is_of() {
        let (exp, sqrt) = (FloatOperationIr::Exp, FloatOperationIr::Sqrt);
        let mut operations = vec![
            unary(exp, tensor(0, 8), tensor(1, 8)),
            unary(sqrt, tensor(2, 0), tensor(3, 0)),
            binary(NumericOperationIr::Mul, tensor(1, 8), tensor(3, 0), 4),
        ];
        let apart = vec![(vec![0], true), (vec![1], true), (vec![2], true)];
        assert_eq!(parts(&operations, vec![]), apart, "without a reduction each shape has its kernel");
        operations.push(reduced(NumericOperationIr::SumDim, tensor(4, 8), 5));
        assert_eq!(parts(&operations, vec![]), [(vec![0], true), (vec![1], true), (vec![2, 3], true)]);
        operations.swap(0, 1);
        assert_eq!(parts(&operations, vec![]), [(vec![0], true), (vec![1, 2, 3], true)], "one value a row first");
        operations.insert(1, product(tensor(6, 8), tensor(7, 8), 9));
        assert_eq!(parts(&operations, vec![1]), [(vec![1], false), (vec![0], true), (vec![2, 3, 4], true)]);
        // A sum of columns ends what has no reduction of rows.
        let columns = ReduceDimOpIr {
            input: tensor(4, 8),
            out: TensorIr { shape: Shape::new([0, 8]), ..tensor(5, 8) },
            axis: 0,
            accumulator_len: 1,
        };
        operations[4] = OperationIr::NumericFloat(DType::F32, NumericOperationIr::SumDim(columns));
        assert_eq!(parts(&operations, vec![1]), [(vec![1], false), (vec![0], true), (vec![2, 3, 4], true)]);
    }

    /// The squares of images, the channels of these to the front, all else joined, and the mean.
    fn variance() -> Vec<OperationIr> {
        let images = |id, shape: &[usize]| TensorIr { shape: Shape::from(shape.to_vec()), ..tensor(id, 1) };
        let (x, flat, mean) = (images(0, &[2, 3, 4, 5]), images(3, &[3, 40]), images(4, &[3, 1]));
        let (squares, moved) = (images(1, &[2, 3, 4, 5]), images(2, &[3, 2, 4, 5]));
        let square = BinaryOpIr { lhs: x.clone(), rhs: x, out: squares.clone() };
        let swap = SwapDimsOpIr { input: last_use(squares), out: moved.clone(), dim1: 0, dim2: 1 };
        let join = ShapeOpIr { input: last_use(moved), out: flat.clone() };
        let reduction = ReduceDimOpIr { input: last_use(flat), out: mean, axis: 1, accumulator_len: 1 };
        vec![
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Mul(square)),
            OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap)),
            OperationIr::BaseFloat(BaseOperationIr::Reshape(join)),
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::MeanDim(reduction)),
        ]
    }

    /// Zeros with a slice assigned, and a sum with what was there.
    fn slice_added() -> Vec<OperationIr> {
        let whole = |id| TensorIr { shape: Shape::new([2, 3, 4]), ..tensor(id, 1) };
        let slice = TensorIr { shape: Shape::new([2, 0, 4]), ..last_use(tensor(2, 1)) };
        let ranges = (0..3).map(|id| Slice::new(id, None, 1)).collect();
        let assign = SliceAssignOpIr { tensor: last_use(whole(1)), ranges, value: slice, out: whole(3) };
        let sum = BinaryOpIr { lhs: last_use(whole(0)), rhs: last_use(whole(3)), out: whole(4) };
        vec![
            OperationIr::BaseFloat(BaseOperationIr::Zeros(CreationOpIr { out: whole(1) })),
            OperationIr::BaseFloat(BaseOperationIr::SliceAssign(assign)),
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum)),
        ]
    }

    #[test]
    fn slices_that_do_not_fit_are_assigned_by_themselves() {
        let shape = |parts: &Parts| parts.iter().map(|(all, part)| (all.clone(), part.is_some())).collect::<Vec<_>>();
        let operations = slice_added();
        let Work::Together(together) = work(sequence(&operations), &operations, vec![], vec![]) else {
            panic!("in one kernel")
        };
        assert_eq!((&together.operations[..], together.sequence.outputs().count()), (&[0, 1, 2][..], 1));
        assert_eq!(shape(&together.parts), [(vec![0], true), (vec![1], false), (vec![2], true)]);
        // Alone too it is one kernel.
        let alone = [operations[1].clone()];
        let Work::Together(together) = work(sequence(&alone), &alone, vec![], vec![]) else { panic!("in one kernel") };
        assert_eq!(shape(&together.parts), [(vec![0], false)]);
    }

    #[test]
    fn what_runs_before_or_after_keeps_its_place_in_parts() {
        let mut operations = slice_added();
        let moved = ShapeOpIr { input: last_use(operations[2].outputs().next().unwrap().clone()), out: tensor(5, 8) };
        operations.push(OperationIr::BaseFloat(BaseOperationIr::Reshape(moved)));
        operations.insert(0, product(tensor(8, 4), tensor(9, 8), 10));
        let Work::Together(together) = work(sequence(&operations[1..4]), &operations, vec![0], vec![4]) else {
            panic!("in one kernel")
        };
        let indices: Vec<_> = together.parts.iter().map(|(indices, _)| indices.clone()).collect();
        assert_eq!(indices, [[0], [1], [2], [3], [4]]);
        assert!(together.is_in_order());
        operations.swap(3, 4);
        let Work::Together(together) = work(sequence(&slice_added()), &operations, vec![0], vec![3]) else {
            panic!("in one kernel")
        };
        assert!(!together.is_in_order());
    }

    fn together(operations: &[OperationIr]) -> (Vec<usize>, usize) {
        let Work::Together(together) = work(sequence(operations), operations, vec![], vec![]) else {
            panic!("in one kernel")
        };
        (together.operations, together.sequence.outputs().count())
    }

    #[test]
    fn what_is_moved_and_joined_is_reduced_in_place() {
        let operations = variance();
        assert_eq!(together(&operations), (vec![0, 1, 2, 3], 1));
        assert_eq!(together(&operations[1..]), (vec![0, 1, 2], 1), "an operand");
    }

    #[test]
    fn what_is_moved_and_not_reduced_is_no_sequence_or_moved_after_it() {
        let operations = variance();
        for moved in [&operations[1..2], &operations[1..3]] {
            assert!(matches!(work(sequence(moved), moved, vec![], vec![]), Work::Operations), "an operand");
        }
        for count in [2, 3] {
            let mut sequence = sequence(&operations[..count]).expect("one kernel, and moves");
            assert!(sequence.moves_a_result());
            sequence.stop_moving();
            let work = work(Some(sequence), &operations[..count], vec![], (1..count).collect());
            let Work::Together(together) = work else { panic!("in one kernel") };
            assert_eq!((&together.operations[..], together.sequence.outputs().count()), (&[0][..], 1));
        }
        // The flat tensor lives on.
        let mut operations = variance();
        if let OperationIr::NumericFloat(_, NumericOperationIr::MeanDim(mean)) = &mut operations[3] {
            mean.input.status = TensorStatus::ReadOnly;
        }
        assert!(sequence(&operations).is_none());
    }

    #[test]
    fn what_reads_no_result_and_leaves_the_operands_may_run_before() {
        let sequence = sequence(&softmax()[..3]).expect("they run in one kernel");
        let may = |operation: &OperationIr| sequence.can_run_before(operation);
        assert!(may(&product(tensor(8, 4), last_use(tensor(9, 8)), 10)), "of other tensors");
        assert!(may(&product(tensor(0, 8), tensor(9, 8), 10)), "of an operand that lives on");
        assert!(!may(&product(last_use(tensor(0, 8)), tensor(9, 8), 10)), "of one that it would take away");
        assert!(!may(&product(tensor(3, 8), tensor(9, 8), 10)), "of a result");
        assert!(!may(&binary(NumericOperationIr::Add, tensor(8, 8), tensor(9, 8), 10)), "no product, sum or move");
        let half = TensorIr { dtype: DType::F16, ..tensor(8, 8) };
        assert!(!may(&product(half.clone(), half, 10)), "of other floats, which may be refused");
    }
}
