//! Groups that run as one: a sequence, and another one that reads its results.
//!
//! What a sequence computes for each row, column or channel is a group of its own in the stream, since its shape is another one; so is
//! what comes behind it. If the sequence that reads it needs nothing between, one kernel computes both and writes less.

use super::elementwise::Sequence;
use super::groups::Uses;
use crate::catalogue::is_free;
use burn_ir::{OperationIr, TensorId};
use std::collections::HashSet;

/// Most operations in one sequence of element-wise operations and after it, enough for an optimizer's update of one parameter, and
/// most that run before it.
pub(super) const MAX_OPERATIONS: usize = 64;

/// A group that takes operations.
#[derive(Clone, Default)]
pub(super) struct Open {
    /// The indices of its operations, in program order.
    pub operations: Vec<usize>,
    pub sequence: Option<Sequence>,
    /// The indices of operations that run before the sequence's.
    pub before: Vec<usize>,
    /// The indices of moves of the sequence's results, and of operands that these take away, which run after it, and of frees of what
    /// these read or write.
    pub after: Vec<usize>,
    /// The tensor, if the operations reduce one that the block moves, and are no sequence.
    pub reduces: Option<TensorId>,
}

impl Open {
    /// Whether the operation of this index runs before the sequence or after it.
    pub(super) fn runs_elsewhere(&self, index: usize) -> bool {
        self.before.contains(&index) || self.after.contains(&index)
    }
}

/// The groups of `operations`, of which none needs a later one, with those merged that may be: of other shapes, if it `inlines`.
pub(super) fn merged(groups: Vec<Open>, operations: &[OperationIr], inlines: bool) -> Vec<Open> {
    let mut merging = Merging { uses: Vec::new(), groups, operations, inlines };
    merging.uses = merging.groups.iter().map(|group| merging.uses_of(&group.operations)).collect();
    let mut reader = 0;
    while reader < merging.groups.len() {
        merging.inline(reader);
        let count = merging.groups.len();
        let mut place = reader;
        for earlier in (0..reader).rev() {
            if let Some((group, at)) = merging.as_one(earlier, place) {
                merging.replace(earlier, place, group, at);
                place = at;
            }
        }
        reader = reader + 1 + merging.groups.len() - count;
    }
    merging.groups
}

struct Merging<'a> {
    groups: Vec<Open>,
    /// The uses of each.
    uses: Vec<Uses>,
    operations: &'a [OperationIr],
    /// Whether a sequence computes what broadcasts to its shape.
    inlines: bool,
}

impl Merging<'_> {
    /// The sequence of a group, if its launches may be shared.
    fn sequence(&self, group: usize) -> Option<&Sequence> {
        self.groups[group].sequence.as_ref().filter(|sequence| sequence.may_share())
    }

    fn uses_of(&self, indices: &[usize]) -> Uses {
        Uses::of(indices.iter().map(|&index| &self.operations[index]))
    }

    /// Computes what is one value a row for each element, where a group has such and nothing else needs it.
    fn inline(&mut self, group: usize) {
        let Some(sequence) = self.sequence(group).filter(|sequence| sequence.has_rows()) else { return };
        if let Some(sequence) = self.inlined(sequence, &self.groups[group], &[group]) {
            self.groups[group].sequence = Some(sequence);
        }
    }

    /// The operations of a group as a sequence of the shape of `of`; `merged` are those that it takes the place of.
    fn inlined(&self, of: &Sequence, group: &Open, merged: &[usize]) -> Option<Sequence> {
        let others = (0..self.groups.len()).filter(|index| !merged.contains(index));
        let is_read = |tensor| others.clone().any(|other| self.uses[other].reads(tensor));
        let in_sequence = group.operations.iter().filter(|&&index| !group.runs_elsewhere(index));
        let operations = in_sequence.map(|&index| &self.operations[index]);
        // What another group reads is written, and freed behind that.
        let operations =
            operations.filter(|operation| !matches!(operation, OperationIr::Drop(tensor) if is_read(tensor.id)));
        of.inlined(operations, self.inlines)
    }

    /// A group and an earlier one as one, and its place among the groups once neither is there: if `later` reads a result, and no group
    /// between has to run behind the one and before the other.
    fn as_one(&self, earlier: usize, later: usize) -> Option<(Open, usize)> {
        if !self.uses[later].read_results_of(&self.uses[earlier]) {
            return None;
        }
        let (narrow, reader) = (self.sequence(earlier)?, self.sequence(later)?);
        let between = &self.uses[earlier + 1..later];
        let is_behind_earlier = between.iter().any(|uses| uses.need(&self.uses[earlier]));
        let is_before_later = between.iter().any(|uses| self.uses[later].need(uses));
        let place = match (is_behind_earlier, is_before_later) {
            (false, _) => later - 1,
            (true, false) => earlier,
            (true, true) => return None,
        };
        let [first, second] = [earlier, later].map(|group| &self.groups[group]);
        let in_order = |of: fn(&Open) -> &Vec<usize>| {
            let mut indices = [&of(first)[..], of(second)].concat();
            indices.sort_unstable();
            indices
        };
        let mut group = Open {
            operations: in_order(|group| &group.operations),
            sequence: None,
            before: in_order(|group| &group.before),
            after: in_order(|group| &group.after),
            reduces: None,
        };
        if group.before.len().max(group.operations.len() - group.before.len()) > MAX_OPERATIONS {
            return None;
        }
        // What runs before the later sequence runs before the earlier one then, and what ran after the earlier one after the later.
        let not_before: Vec<_> =
            first.operations.iter().copied().filter(|index| !first.before.contains(index)).collect();
        let crosses = self.uses_of(&second.before).need(&self.uses_of(&not_before))
            || self.uses[later].need(&self.uses_of(&first.after));
        if crosses {
            return None;
        }
        // What leads the later sequence may free what the earlier one reads.
        group.before.retain(|&index| !is_free(&self.operations[index]));
        self.free_after(&mut group);
        let sequence = self.inlined(reader, &group, &[earlier, later])?;
        let is_better = sequence.reads_few_more_than(reader, narrow);
        is_better.then_some((Open { sequence: Some(sequence), ..group }, place))
    }

    /// Leaves the frees of what runs after a group's sequence to after that.
    fn free_after(&self, group: &mut Open) {
        let after = group.after.iter().map(|&index| &self.operations[index]);
        let moved: HashSet<_> =
            after.flat_map(|operation| operation.inputs().chain(operation.outputs())).map(|tensor| tensor.id).collect();
        let is_free_of_moved = |index: &&usize| match &self.operations[**index] {
            OperationIr::Drop(tensor) => moved.contains(&tensor.id) && !group.runs_elsewhere(**index),
            _ => false,
        };
        let frees: Vec<_> = group.operations.iter().filter(is_free_of_moved).copied().collect();
        group.after.extend(frees);
        group.after.sort_unstable();
    }

    /// Puts `group` at a place among the groups, in place of two.
    fn replace(&mut self, earlier: usize, later: usize, group: Open, place: usize) {
        for index in [later, earlier] {
            self.groups.remove(index);
            self.uses.remove(index);
        }
        self.uses.insert(place, self.uses_of(&group.operations));
        self.groups.insert(place, group);
    }
}

#[cfg(test)]
mod tests {
    use super::{Open, merged};
    use crate::route::elementwise::Sequence;
    use burn_backend::{DType, Shape};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, FloatOperationIr, MatmulOpIr, NumericOperationIr, OperationIr, ReduceOpIr,
        ShapeOpIr, TensorId, TensorIr, TensorStatus, UnaryOpIr,
    };
    use core::slice::from_ref;

    fn shaped(id: u64, shape: [usize; 2]) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: Shape::new(shape), status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    /// A tensor in relative form, which lives on.
    fn wide(id: u64) -> TensorIr {
        shaped(id, [1, 2])
    }

    /// One row of such, 0 being a dimension of 1.
    fn narrow(id: u64) -> TensorIr {
        shaped(id, [0, 2])
    }

    fn last(tensor: TensorIr) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor }
    }

    fn sum(lhs: TensorIr, rhs: TensorIr, out: TensorIr) -> OperationIr {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out }))
    }

    fn total(input: TensorIr, out: u64) -> OperationIr {
        let out = TensorIr { shape: Shape::new([0]), ..wide(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(ReduceOpIr { input, out }))
    }

    fn reshape(input: TensorIr, out: TensorIr) -> OperationIr {
        OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input, out }))
    }

    /// Groups of these operations. Reshapes run after the sequence that a group begins with, or before one that they begin with.
    fn opened(groups: &[&[OperationIr]]) -> Vec<Open> {
        let operations = groups.concat();
        let mut first = 0;
        let open = |group: &&[OperationIr]| {
            let indices: Vec<_> = (first..first + group.len()).collect();
            first += group.len();
            let is_moved = |index: &usize| matches!(operations[*index], OperationIr::BaseFloat(_));
            let (moved, others): (Vec<usize>, Vec<usize>) = indices.iter().partition(|index| is_moved(index));
            let mut sequence = Sequence::new(&operations[others[0]], 16, true).expect("a sequence");
            assert!(others[1..].iter().all(|&index| sequence.take(&operations[index])));
            let (before, after) = moved.into_iter().partition(|index| *index < others[0]);
            Open { operations: indices, sequence: Some(sequence), before, after, reduces: None }
        };
        groups.iter().map(open).collect()
    }

    /// The operations of each group once those that may be are merged.
    fn merge(groups: &[&[OperationIr]]) -> Vec<Vec<usize>> {
        merged(opened(groups), &groups.concat(), true).into_iter().map(|group| group.operations).collect()
    }

    #[test]
    fn what_broadcasts_and_is_read_by_one_sequence_alone_is_part_of_it() {
        let row = sum(narrow(0), narrow(1), narrow(2));
        assert_eq!(merge(&[from_ref(&row), &[sum(wide(3), last(narrow(2)), wide(4))]]), [[0, 1]]);
        assert_eq!(merge(&[from_ref(&row), &[sum(wide(3), narrow(2), wide(4))]]), [[0], [1]], "it lives on");
        let freed = OperationIr::Drop(last(narrow(2)));
        assert_eq!(merge(&[from_ref(&row), &[sum(wide(3), narrow(2), wide(4)), freed]]), [[0, 1, 2]]);
        assert_eq!(merge(&[&[row], &[sum(wide(3), last(narrow(1)), wide(4))]]), [[0], [1]], "no result of it is read");
        let exponential = UnaryOpIr { input: narrow(0), out: narrow(2) };
        let exponential = OperationIr::Float(DType::F32, FloatOperationIr::Exp(exponential));
        assert_eq!(
            merge(&[&[exponential], &[sum(wide(3), last(narrow(2)), wide(4))]]),
            [[0], [1]],
            "of many instructions"
        );
        let rows: Vec<_> = (10..19).map(|n| sum(last(narrow(n)), narrow(0), narrow(n + 1))).collect();
        assert_eq!(merge(&[&rows[..8], &[sum(wide(3), last(narrow(18)), wide(4))]]).len(), 1);
        assert_eq!(merge(&[&rows, &[sum(wide(3), last(narrow(19)), wide(4))]]).len(), 2, "too many");
        let roots = |count: u64| {
            let root = |n| FloatOperationIr::Sqrt(UnaryOpIr { input: last(narrow(n)), out: narrow(n + 1) });
            let roots: Vec<_> = (10..10 + count).map(|n| OperationIr::Float(DType::F32, root(n))).collect();
            merge(&[&roots, &[sum(wide(3), last(narrow(10 + count)), wide(4))]]).len()
        };
        assert_eq!((roots(2), roots(3)), (1, 2));
        let many: Vec<_> = (10..14).map(|n| sum(last(narrow(n)), narrow(n + 20), narrow(n + 1))).collect();
        assert_eq!(merge(&[&many[..2], &[sum(wide(3), last(narrow(12)), wide(4))]]).len(), 1);
        assert_eq!(merge(&[&many, &[sum(wide(3), last(narrow(14)), wide(4))]]).len(), 2, "of too many operands");
    }

    #[test]
    fn the_parts_of_a_norms_gradient_are_one() {
        let groups: [&[OperationIr]; 3] = [
            &[sum(wide(0), wide(1), wide(2))],
            &[sum(narrow(3), narrow(4), narrow(5))],
            &[sum(last(wide(2)), last(narrow(5)), wide(6))],
        ];
        assert_eq!(merge(&groups), [[0, 1, 2]]);
    }

    #[test]
    fn what_is_one_value_a_row_is_part_of_the_rows() {
        let column = |id| shaped(id, [1, 0]);
        let rows = [sum(column(0), column(1), column(2)), sum(wide(3), last(column(2)), wide(4))];
        let mut sequence = Sequence::new(&rows[0], 16, true).expect("a sequence");
        assert!(sequence.take(&rows[1]) && sequence.has_rows());
        let opened = |sequence| Open { operations: vec![0, 1], sequence: Some(sequence), ..Open::default() };
        let is_of_rows = |inlines: bool| {
            let merged = merged(vec![opened(sequence.clone())], &rows, inlines);
            merged[0].sequence.as_ref().is_some_and(Sequence::has_rows)
        };
        assert!(!is_of_rows(true) && is_of_rows(false));
    }

    /// A sequence that has no room for a reduction, whose last result is tensor 36.
    fn chain() -> Vec<OperationIr> {
        (20..36).map(|n| sum(last(wide(n)), wide(90), wide(n + 1))).collect()
    }

    /// The sum of the squares of tensor 36.
    fn reduced() -> [OperationIr; 2] {
        [sum(wide(36), wide(36), wide(8)), total(last(wide(8)), 9)]
    }

    #[test]
    fn a_group_between_keeps_its_place() {
        let other = [sum(narrow(3), narrow(4), narrow(5))];
        let then = |between: &[OperationIr], reader| merge(&[&chain(), between, &[reader]]);
        let together = |last: usize| (0..16).chain([last]).collect::<Vec<_>>();
        assert_eq!(then(&other, sum(wide(36), wide(6), wide(7))), [vec![16], together(17)], "it needs neither");
        assert_eq!(then(&other, sum(wide(36), narrow(5), wide(7))), [vec![16], together(17)], "the row lives on");
        assert_eq!(
            then(&reduced(), sum(wide(36), wide(6), wide(7))),
            [together(18), vec![16, 17]],
            "it reads a result"
        );
        let taken = sum(last(wide(36)), wide(6), wide(7));
        assert_eq!(then(&reduced(), taken), [(0..16).collect(), vec![16, 17], vec![18]], "what it reads is taken away");
    }

    #[test]
    fn what_is_freed_before_the_later_sequence_is_freed_behind_both() {
        let product = MatmulOpIr { lhs: wide(7), rhs: wide(8), out: wide(9) };
        let operations = [
            sum(wide(0), wide(1), wide(2)),
            OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product)),
            OperationIr::Drop(wide(0)),
            sum(wide(2), wide(9), wide(3)),
        ];
        let sequence = |index: usize| Sequence::new(&operations[index], 16, true);
        let first = Open { operations: vec![0], sequence: sequence(0), ..Open::default() };
        let second = Open { operations: vec![1, 2, 3], sequence: sequence(3), before: vec![1, 2], ..Open::default() };
        let [group] = &merged(vec![first, second], &operations, true)[..] else { panic!("one group") };
        assert_eq!((&group.operations[..], &group.before[..]), (&[0, 1, 2, 3][..], &[1][..]));
    }

    #[test]
    fn moves_keep_their_place() {
        let first = sum(wide(0), wide(1), wide(2));
        let moved = reshape(wide(2), wide(3));
        let reader = |id| sum(wide(id), wide(6), wide(7));
        assert_eq!(merge(&[&[first.clone(), moved.clone()], &[reader(2)]]), [[0, 1, 2]]);
        assert_eq!(
            merge(&[&[first.clone(), moved.clone()], &[reader(3)]]),
            [vec![0, 1], vec![2]],
            "it reads what is moved"
        );
        let takes = sum(last(wide(2)), wide(6), wide(7));
        assert_eq!(
            merge(&[&[first.clone(), moved.clone()], &[takes]]),
            [vec![0, 1], vec![2]],
            "taken after it is moved"
        );
        assert_eq!(merge(&[from_ref(&first), &[moved, reader(2)]]), [vec![0], vec![1, 2]], "a result is moved before");
        assert_eq!(merge(&[from_ref(&first), &[reshape(wide(8), wide(9)), reader(2)]]), [[0, 1, 2]]);
        let takes = reshape(last(wide(0)), wide(9));
        assert_eq!(merge(&[&[first], &[takes, reader(2)]]), [vec![0], vec![1, 2]], "an operand is moved away before");
    }

    #[test]
    fn what_another_group_reads_is_written_though_it_is_freed() {
        let reader = [sum(wide(36), wide(6), wide(7)), OperationIr::Drop(last(wide(36)))];
        let written = |groups: &[&[OperationIr]]| {
            let operations = groups.concat();
            let merged = merged(opened(groups), &operations, true);
            let sequence = merged[0].sequence.as_ref().expect("a sequence");
            assert!(merged[0].operations.contains(&(operations.len() - 1)), "with the reader");
            let outputs = sequence.outputs().map(|id| id.value()).collect::<Vec<_>>();
            (outputs, merged[0].after.clone())
        };
        assert_eq!(written(&[&chain(), &reader]), (vec![7], vec![]));
        assert_eq!(written(&[&chain(), &reduced(), &reader]), (vec![36, 7], vec![]));
        let moved = [&chain()[..], &[reshape(wide(36), wide(80))]].concat();
        assert_eq!(written(&[&moved, &reader]), (vec![36, 7], vec![16, 18]), "it is moved after the kernel");
    }
}
