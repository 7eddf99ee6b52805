//! The groups of a block: which operations run in one way, and which groups need that others have run. Results are the same in every
//! order that keeps what a group needs.

use super::elementwise::{Inner, Parts, Sequence, is_move};
use super::products::product;
use super::work::{Together, Work};
use crate::catalogue::is_free;
use burn_backend::Shape;
use burn_ir::{OperationIr, TensorId, TensorStatus};
use std::collections::HashSet;
use std::sync::OnceLock;

/// Operations of a block that run in one way.
pub(super) struct Group {
    /// Their indices, in program order.
    pub operations: Vec<usize>,
    pub work: Work,
    pub kind: Kind,
    /// Of the groups of a block that one sequence has been split into this is the same number.
    pub sequence: usize,
    /// The work where each operation is recorded; made when that is first asked for.
    recorded: OnceLock<Parts>,
    /// The work in program order, for a recording of something else, made likewise.
    in_order: OnceLock<Parts>,
}

/// What a group launches. Groups of one kind may share launches, but for the last two kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// A product of f32 of operands of these shapes.
    Product([Shape; 2]),
    /// A sequence of element-wise operations.
    Sequence,
    /// The same, which ends in a reduction; or a reduction alone.
    Reduction,
    /// At most copies: the operations move, or free.
    Moves,
    /// Anything else.
    Other,
}

/// An earlier group that runs before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub earlier: usize,
    /// Whether a result of it is read. If not, an operand of it is taken away.
    pub reads_result: bool,
}

/// What operations read, write and take away.
#[derive(Default)]
pub(super) struct Uses {
    read: HashSet<TensorId>,
    written: HashSet<TensorId>,
    taken: HashSet<TensorId>,
}

impl Uses {
    /// The uses of `operations`, but for the frees.
    pub(super) fn of<'a>(operations: impl IntoIterator<Item = &'a OperationIr>) -> Self {
        let mut uses = Self::default();
        for operation in operations {
            if is_free(operation) {
                continue;
            }
            for input in operation.inputs() {
                uses.read.insert(input.id);
                if input.status == TensorStatus::ReadWrite {
                    uses.taken.insert(input.id);
                }
            }
            uses.written.extend(operation.outputs().map(|output| output.id));
        }
        uses
    }

    /// Whether a tensor is read.
    pub(super) fn reads(&self, tensor: TensorId) -> bool {
        self.read.contains(&tensor)
    }

    /// Whether something is read that the `earlier` ones write.
    pub(super) fn read_results_of(&self, earlier: &Self) -> bool {
        !self.read.is_disjoint(&earlier.written)
    }

    /// Whether the `earlier` ones have to run before these: a result of theirs is read, or an operand of theirs is taken away.
    pub(super) fn need(&self, earlier: &Self) -> bool {
        self.read_results_of(earlier) || !self.taken.is_disjoint(&earlier.read)
    }
}

/// The groups of a block, of which none needs a later one, and the order in which they may run.
pub(super) struct Groups {
    pub all: Vec<Group>,
    /// All operations, where the groups one after the other are not program order, with a sequence of some.
    pub whole: Option<(Group, Option<Sequence>)>,
    /// For each group what it needs.
    pub needs: Vec<Vec<Need>>,
    /// The frees, and the groups that use the tensor.
    pub frees: Vec<(usize, Vec<usize>)>,
}

impl Group {
    fn new(all: &[OperationIr], mut operations: Vec<usize>, work: Work) -> Self {
        operations.sort_unstable();
        let kind = Kind::of(&work, operations.iter().map(|&index| &all[index]));
        Self { operations, work, kind, sequence: 0, recorded: OnceLock::new(), in_order: OnceLock::new() }
    }

    /// The group, of the sequence with this number.
    pub(super) fn of_sequence(self, sequence: usize) -> Self {
        Self { sequence, ..self }
    }

    /// Operations that run one after the other.
    pub(super) fn of_operations(all: &[OperationIr], operations: Vec<usize>) -> Self {
        Self::new(all, operations, Work::Operations)
    }

    /// A move, a product or a reduction alone, or a free.
    pub(super) fn lead(all: &[OperationIr], index: usize, max_tensors: usize) -> Self {
        let reduction = Sequence::of_reduction(&all[index], max_tensors);
        let work = reduction.map_or(Work::Operations, |sequence| Work::Reduction(Box::new(sequence)));
        Self::new(all, vec![index], work)
    }

    /// The groups of some `operations` of `all`, which are those of `sequence` where there is one, but for those that run `before` or
    /// `after`.
    pub(super) fn all_of(
        sequence: Option<Sequence>,
        all: &[OperationIr],
        operations: Vec<usize>,
        before: Vec<usize>,
        after: Vec<usize>,
    ) -> Vec<Self> {
        let is_of_parts = |sequence: &Sequence| sequence.has_rows() && !sequence.needs_rows() && !sequence.only_moves();
        let Some(sequence) = sequence.as_ref().filter(|sequence| is_of_parts(sequence)) else {
            let work = Work::of(sequence, all, &operations, before, after);
            return vec![Self::new(all, operations, work)];
        };
        // One value a row, and rows of which none is reduced: no kernel has both.
        let others = operations.into_iter().filter(|index| !before.contains(index) && !after.contains(index));
        let parts = sequence.parts(all, others, false);
        let count = parts.len();
        let part = |(index, (operations, part)): (usize, (Vec<usize>, Option<Sequence>))| {
            let before = if index == 0 { before.clone() } else { vec![] };
            let after = if index + 1 == count { after.clone() } else { vec![] };
            let of_group = [&before[..], &operations, &after].concat();
            let work =
                part.map_or(Work::Operations, |part| Work::together(all, part, operations, before, after, vec![]));
            Self::new(all, of_group, work)
        };
        parts.into_iter().enumerate().map(part).collect()
    }

    /// The operations, which are some of `all`, in parts that write every result.
    pub(super) fn recorded(&self, sequence: &Sequence, all: &[OperationIr]) -> &Parts {
        self.recorded.get_or_init(|| sequence.parts(all, self.operations.iter().copied(), true))
    }

    /// The operations, which are some of `all`, in parts in program order.
    pub(super) fn in_order(&self, sequence: &Sequence, all: &[OperationIr]) -> &Parts {
        self.in_order.get_or_init(|| sequence.parts(all, self.operations.iter().copied(), false))
    }

    /// The sequence, if its launches may be shared.
    pub(super) fn shared(&self) -> Option<&Sequence> {
        match &self.work {
            Work::Together(together) => together.shares().then_some(&together.sequence),
            Work::Reduction(sequence) => Some(sequence),
            Work::Operations => None,
        }
    }

    /// The operations that run side by side with those of other groups.
    pub(super) fn side_by_side(&self) -> &[usize] {
        self.together().map_or(&self.operations, |together| &together.operations)
    }

    /// The sequence with what runs before and after it, if it has such.
    pub(super) fn together(&self) -> Option<&Together> {
        match &self.work {
            Work::Together(together) => Some(together),
            Work::Operations | Work::Reduction(_) => None,
        }
    }
}

impl Kind {
    /// The kind of the `work` of `operations`.
    fn of<'a>(work: &Work, operations: impl Iterator<Item = &'a OperationIr>) -> Self {
        let operations: Vec<_> = operations.filter(|operation| !is_free(operation)).collect();
        match work {
            Work::Operations if operations.iter().all(|operation| is_move(operation)) => Self::Moves,
            Work::Operations => match operations[..] {
                [operation] => product(operation).map_or(Self::Other, |product| {
                    Self::Product([product.lhs.shape.clone(), product.rhs.shape.clone()])
                }),
                _ => Self::Other,
            },
            Work::Reduction(_) => Self::Reduction,
            Work::Together(together) if !together.shares() => Self::Other,
            Work::Together(together) if together.sequence.ends_in_reduction() => Self::Reduction,
            Work::Together(_) => Self::Sequence,
        }
    }
}

impl Groups {
    /// The groups of `operations`, none of which needs a later one.
    pub(super) fn new(operations: &[OperationIr], mut all: Vec<Group>) -> Self {
        let inner = Inner::of(operations);
        all.iter_mut().for_each(|group| group.work.donate(&inner));
        let uses_of = |group: &Group| Uses::of(group.operations.iter().map(|&index| &operations[index]));
        let uses: Vec<_> = all.iter().map(uses_of).collect();
        let need = |of: &Uses, earlier: usize| {
            let reads_result = of.read_results_of(&uses[earlier]);
            of.need(&uses[earlier]).then_some(Need { earlier, reads_result })
        };
        let needs = |(index, of): (usize, &Uses)| (0..index).filter_map(|earlier| need(of, earlier)).collect();
        let needs = uses.iter().enumerate().map(needs).collect();
        let users = |tensor: TensorId| {
            let uses_tensor =
                |index: &usize| uses[*index].read.contains(&tensor) || uses[*index].written.contains(&tensor);
            (0..all.len()).filter(uses_tensor).collect()
        };
        let free = |(index, operation): (usize, &OperationIr)| match operation {
            OperationIr::Drop(tensor) => Some((index, users(tensor.id))),
            _ => None,
        };
        let frees = operations.iter().enumerate().filter_map(free).collect();
        let whole = || Group::of_operations(operations, (0..operations.len()).collect());
        let is_in_order = all.iter().flat_map(|group| &group.operations).is_sorted();
        let sequence = || all.iter().find_map(Group::shared).cloned();
        let whole = (!is_in_order).then(|| (whole(), sequence()));
        Self { needs, frees, all, whole }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Group, Groups};
    use crate::route::elementwise::Sequence;
    use crate::route::work::Work;
    use burn_backend::{DType, Shape};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, CastOpIr, CreationOpIr, FloatOperationIr, MatmulOpIr, NumericOperationIr,
        OperationIr, ShapeOpIr, TensorId, TensorIr, TensorStatus,
    };

    /// A tensor in relative form, which lives on.
    pub(in crate::route) fn tensor(id: u64) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: Shape::new([2, 3]), status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    pub(in crate::route) fn last(id: u64) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor(id) }
    }

    pub(in crate::route) fn sum(lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: tensor(out) }))
    }

    pub(in crate::route) fn freed(id: u64) -> OperationIr {
        OperationIr::Drop(last(id))
    }

    pub(in crate::route) fn product(lhs: u64, rhs: u64, out: u64) -> OperationIr {
        let product = MatmulOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
        OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product))
    }

    #[test]
    fn what_has_one_value_a_row_is_a_group_of_its_own() {
        let vector = |id| TensorIr { shape: Shape::new([4]), ..tensor(id) };
        // In relative form 0 is a dimension of 1.
        let one = |id| TensorIr { shape: Shape::new([0]), ..tensor(id) };
        let shaped = |of: &dyn Fn(u64) -> TensorIr, lhs, rhs, out| {
            let sum = BinaryOpIr { lhs, rhs, out: of(out) };
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
        };
        let moved = ShapeOpIr { input: tensor(0), out: tensor(1) };
        let after = ShapeOpIr { input: vector(8), out: tensor(9) };
        let operations = [
            OperationIr::BaseFloat(BaseOperationIr::Reshape(moved)),
            shaped(&one, one(2), one(3), 4),
            shaped(&vector, vector(7), one(4), 8),
            OperationIr::BaseFloat(BaseOperationIr::Reshape(after)),
        ];
        let mut sequence = Sequence::new(&operations[1], 16, true).expect("a sequence");
        assert!(sequence.take(&operations[2]) && sequence.has_rows() && sequence.may_share());
        let groups = Group::all_of(Some(sequence), &operations, (0..4).collect(), vec![0], vec![3]);
        let [first, second] = &groups[..] else { panic!("two groups") };
        assert_eq!((&first.operations[..], &second.operations[..]), (&[0, 1][..], &[2, 3][..]));
        let (Work::Together(first), Work::Together(second)) = (&first.work, &second.work) else { panic!("kernels") };
        assert_eq!((&first.before[..], first.after.len(), second.before.len()), (&[0][..], 0, 0));
        assert_eq!((&second.operations[..], &second.after[..]), (&[2][..], &[3][..]));
        assert!(groups.iter().all(|group| group.shared().is_some()));
    }

    #[test]
    fn a_recording_has_the_operations_in_program_order() {
        let operations = [sum(tensor(0), tensor(1), 2), product(3, 4, 5), sum(tensor(2), tensor(1), 6)];
        let mut sequence = Sequence::new(&operations[0], 16, true).expect("a sequence");
        assert!(sequence.can_run_before(&operations[1]) && sequence.take(&operations[2]));
        let [group] = &Group::all_of(Some(sequence), &operations, (0..3).collect(), vec![1], vec![])[..] else {
            panic!("one group")
        };
        let Work::Together(together) = &group.work else { panic!("in one kernel") };
        assert!(!together.is_in_order());
        let parts = group.in_order(&together.sequence, &operations);
        assert_eq!(parts.iter().map(|(indices, _)| indices.clone()).collect::<Vec<_>>(), [[0], [1], [2]]);
    }

    /// The operands that the sequence of the `operations` from `first` on may overwrite, in a block of all.
    fn donated(operations: &[OperationIr], first: usize) -> Vec<usize> {
        let is_in_sequence = |operation: &&OperationIr| !is_lead(operation);
        let mut sequence = Sequence::new(&operations[first], 16, true).expect("a sequence");
        let indices: Vec<_> = (first..operations.len()).filter(|&index| is_in_sequence(&&operations[index])).collect();
        assert!(indices[1..].iter().all(|&index| sequence.take(&operations[index])));
        let leads = |indices: core::ops::Range<usize>| indices.map(|index| Group::lead(operations, index, 16));
        let last = indices[indices.len() - 1];
        let mut all: Vec<_> = leads(0..first).collect();
        all.extend(Group::all_of(Some(sequence), operations, indices, vec![], vec![]));
        all.extend(leads(last + 1..operations.len()));
        let groups = Groups::new(operations, all);
        let together = groups.all.iter().find_map(Group::together).expect("a sequence");
        together.sequence.donated().to_vec()
    }

    fn is_lead(operation: &OperationIr) -> bool {
        !matches!(operation, OperationIr::NumericFloat(_, NumericOperationIr::Add(_)))
    }

    #[test]
    fn what_begins_and_ends_in_the_block_shares_memory() {
        let of = |sums: &[OperationIr]| donated(&[&[product(0, 1, 2)], sums].concat(), 1);
        assert_eq!(of(&[sum(last(2), tensor(3), 4), freed(4)]), [0], "a product");
        assert_eq!(of(&[sum(last(3), last(2), 4), freed(4)]), [1], "and no operand of an earlier block");
        assert_eq!(of(&[sum(tensor(2), tensor(3), 4), freed(4)]), [0; 0], "nor what lives on");
        assert_eq!(of(&[sum(tensor(2), tensor(3), 4), sum(last(4), last(2), 5), freed(5)]), [0], "by its last use");
        assert_eq!(of(&[sum(last(2), tensor(3), 4)]), [0; 0], "a result that lives on is of its own");
        let one_lives_on = [sum(tensor(2), tensor(3), 4), sum(tensor(4), last(2), 5), freed(5)];
        assert_eq!(of(&one_lives_on), [0; 0], "one of two");
        let taken = MatmulOpIr { lhs: last(4), rhs: tensor(6), out: tensor(7) };
        let taken = OperationIr::Float(DType::F32, FloatOperationIr::Matmul(taken));
        assert_eq!(of(&[sum(last(2), tensor(3), 4), taken]), [0], "by another product");
        // Under another name it may leave the block.
        let reshape = |input| {
            let reshape = ShapeOpIr { input, out: tensor(5) };
            OperationIr::BaseFloat(BaseOperationIr::Reshape(reshape))
        };
        let first = sum(last(2), tensor(3), 4);
        assert_eq!(of(&[first.clone(), reshape(last(4))]), [0; 0]);
        assert_eq!(of(&[first.clone(), reshape(tensor(4)), freed(4)]), [0; 0]);
        assert_eq!(of(&[first.clone(), reshape(last(4)), freed(5)]), [0]);
        let of_5 = MatmulOpIr { lhs: last(5), rhs: tensor(6), out: tensor(7) };
        let of_5 = OperationIr::Float(DType::F32, FloatOperationIr::Matmul(of_5));
        assert_eq!(of(&[first, reshape(last(4)), of_5]), [0]);
    }

    #[test]
    fn another_name_of_what_is_older_shares_no_memory() {
        let reshaped = ShapeOpIr { input: last(0), out: tensor(2) };
        let reshaped = OperationIr::BaseFloat(BaseOperationIr::Reshape(reshaped));
        let cast = OperationIr::BaseFloat(BaseOperationIr::Cast(CastOpIr { input: last(0), out: tensor(2) }));
        let filled = OperationIr::BaseFloat(BaseOperationIr::Zeros(CreationOpIr { out: tensor(2) }));
        for older in [reshaped, cast, filled] {
            assert_eq!(donated(&[older, sum(last(2), tensor(3), 4), freed(4)], 1), [0; 0]);
        }
        let of_f64 = |tensor: TensorIr| TensorIr { dtype: DType::F64, ..tensor };
        let sum_of_f64 = BinaryOpIr { lhs: of_f64(tensor(0)), rhs: of_f64(tensor(1)), out: of_f64(tensor(2)) };
        let of_f64 = OperationIr::NumericFloat(DType::F64, NumericOperationIr::Add(sum_of_f64));
        let used = [of_f64, sum(last(2), tensor(3), 4), freed(4)];
        assert_eq!(donated(&used, 1), [0; 0], "which Burn computes");
    }
}
