//! The groups of a block: which operations run in one way, and which groups run before others.
//!
//! A group that may [share launches](Sequence::may_share) is put off until another one needs that it has run; then it runs with all
//! those put off that do not need it either, side by side. Results are the same in every order that keeps what a group needs.

use super::elementwise::{Parts, Sequence};
use super::work::{Together, Work};
use crate::catalogue;
use burn_ir::{OperationIr, TensorId, TensorStatus};
use std::collections::HashSet;
use std::sync::OnceLock;

/// Most elements of groups side by side: more fill a device by themselves, and results of all are in memory at once.
pub(super) const MOST_ELEMENTS: usize = 1 << 20;

/// Most elements of one that is put off.
pub(super) const MOST_ELEMENTS_OF_ONE: usize = MOST_ELEMENTS / 4;

/// Operations of a block that run in one way.
pub(super) struct Group {
    /// Their indices, in program order.
    pub operations: Vec<usize>,
    pub work: Work,
    /// Of the groups of a block that one sequence has been split into this is the same number.
    sequence: usize,
    /// The work where each operation is recorded; made when that is first asked for.
    recorded: OnceLock<Parts>,
    /// The work in program order, for a recording of something else, made likewise.
    in_order: OnceLock<Parts>,
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
            if catalogue::is_free(operation) {
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
    /// For each group the earlier ones that run before it.
    needs: Vec<Vec<usize>>,
    /// The frees, and the groups that use the tensor.
    frees: Vec<(usize, Vec<usize>)>,
}

impl Group {
    fn new(mut operations: Vec<usize>, work: Work) -> Self {
        operations.sort_unstable();
        Self { operations, work, sequence: 0, recorded: OnceLock::new(), in_order: OnceLock::new() }
    }

    /// The group, of the sequence with this number.
    pub(super) fn of_sequence(self, sequence: usize) -> Self {
        Self { sequence, ..self }
    }

    /// Operations that run one after the other.
    pub(super) fn of_operations(operations: Vec<usize>) -> Self {
        Self::new(operations, Work::Operations)
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
            return vec![Self::new(operations, work)];
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
            Self::new(of_group, work)
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

    /// The sequence, with what runs before and after it, if its launches may be shared.
    pub(super) fn shared(&self) -> Option<&Together> {
        match &self.work {
            Work::Together(together) if together.sequence.may_share() && together.parts.is_empty() => Some(together),
            _ => None,
        }
    }
}

/// What runs next: one group, or several side by side; then the frees with these indices.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub groups: Vec<usize>,
    pub frees: Vec<usize>,
}

impl Groups {
    /// The groups of `operations`, none of which needs a later one.
    pub(super) fn new(operations: &[OperationIr], all: Vec<Group>) -> Self {
        let uses_of = |group: &Group| Uses::of(group.operations.iter().map(|&index| &operations[index]));
        let uses: Vec<_> = all.iter().map(uses_of).collect();
        let needs =
            |(index, of): (usize, &Uses)| (0..index).filter(|&earlier| of.need(&uses[earlier])).collect::<Vec<_>>();
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
        let whole = || Group::of_operations((0..operations.len()).collect());
        let is_in_order = all.iter().flat_map(|group| &group.operations).is_sorted();
        let sequence = || all.iter().find_map(Group::shared).map(|together| together.sequence.clone());
        let whole = (!is_in_order).then(|| (whole(), sequence()));
        Self { needs, frees, all, whole }
    }

    /// The groups whose results carry the error of an index out of range that the operation with the result `output` got: those of the
    /// sequence with the last of `operations` that is no free, and the operation's own with all that need it.
    pub(super) fn concerned(&self, operations: &[OperationIr], output: Option<TensorId>) -> Vec<&Group> {
        let is_free = |index: usize| catalogue::is_free(&operations[index]);
        let last = |group: &&Group| group.operations.iter().copied().rfind(|&index| !is_free(index));
        let newest = self.all.iter().max_by_key(last).map(|group| group.sequence);
        let uses = |index: &usize| {
            let tensors = operations[*index].inputs().chain(operations[*index].outputs());
            !is_free(*index) && tensors.into_iter().any(|tensor| Some(tensor.id) == output)
        };
        let mut depends: Vec<bool> = Vec::new();
        for (group, needs) in self.all.iter().zip(&self.needs) {
            let is_own = group.operations.iter().any(uses);
            depends.push(is_own || needs.iter().any(|&earlier| depends[earlier]));
        }
        let is_concerned = |(group, depends): &(&Group, bool)| *depends || Some(group.sequence) == newest;
        self.all.iter().zip(depends).filter(is_concerned).map(|(group, _)| group).collect()
    }

    /// The steps in which the groups run. `elements` says how many one of a group has whose launches may be shared, if it is to be
    /// put off; those side by side have [`MOST_ELEMENTS`].
    pub(super) fn steps(&self, elements: impl Fn(&Together) -> Option<usize>) -> Vec<Step> {
        let mut order = Order {
            groups: self,
            steps: Vec::new(),
            put_off: Vec::new(),
            done: vec![false; self.all.len()],
            frees: (0..self.frees.len()).collect(),
        };
        for (index, group) in self.all.iter().enumerate() {
            match group.shared().and_then(&elements) {
                Some(elements) => order.put_off.push((index, elements)),
                None => order.run(index),
            }
        }
        order.run_put_off();
        order.steps
    }
}

/// Groups that are put into an order.
struct Order<'a> {
    groups: &'a Groups,
    steps: Vec<Step>,
    /// Those that are put off, with their elements.
    put_off: Vec<(usize, usize)>,
    /// Whether each group has run.
    done: Vec<bool>,
    /// The frees that are left.
    frees: Vec<usize>,
}

impl Order<'_> {
    /// Runs a group by itself, behind those put off, if it needs one of them.
    fn run(&mut self, index: usize) {
        let needs = &self.groups.needs[index];
        if self.put_off.iter().any(|(earlier, _)| needs.contains(earlier)) {
            self.run_put_off();
        }
        self.step(vec![index]);
    }

    /// Runs the groups that are put off, as many side by side as do not need each other.
    fn run_put_off(&mut self) {
        let left = core::mem::take(&mut self.put_off);
        let levels = self.levels(&left);
        for level in 0..=levels.iter().copied().max().unwrap_or(0) {
            let (mut side_by_side, mut sum) = (Vec::new(), 0);
            for (&(index, elements), _) in left.iter().zip(&levels).filter(|(_, of_group)| **of_group == level) {
                if sum + elements > MOST_ELEMENTS {
                    self.step(core::mem::take(&mut side_by_side));
                    sum = 0;
                }
                side_by_side.push(index);
                sum += elements;
            }
            if !side_by_side.is_empty() {
                self.step(side_by_side);
            }
        }
    }

    /// The level of each group that is `left`, behind those of the groups that it needs. Of levels that it may have a group takes the first
    /// one with another group of its kind, a reduction or not, that may have no other level; else its last.
    fn levels(&self, left: &[(usize, usize)]) -> Vec<usize> {
        let mut places = vec![None; self.groups.all.len()];
        left.iter().enumerate().for_each(|(place, (index, _))| places[*index] = Some(place));
        let needs =
            |(index, _): &(usize, usize)| self.groups.needs[*index].iter().filter_map(|&earlier| places[earlier]);
        let mut first = vec![0; left.len()];
        for (place, group) in left.iter().enumerate() {
            first[place] = needs(group).map(|earlier| first[earlier] + 1).max().unwrap_or(0);
        }
        let mut last = vec![first.iter().copied().max().unwrap_or(0); left.len()];
        for (place, group) in left.iter().enumerate().rev() {
            needs(group).for_each(|earlier| last[earlier] = last[earlier].min(last[place] - 1));
        }
        let reduces =
            |place: usize| self.groups.all[left[place].0].shared().is_some_and(|of| of.sequence.ends_in_reduction());
        let fixed = (0..left.len()).filter(|&place| first[place] == last[place]);
        let fixed: HashSet<_> = fixed.map(|place| (first[place], reduces(place))).collect();
        let mut levels = vec![0; left.len()];
        for (place, group) in left.iter().enumerate() {
            let from = needs(group).map(|earlier| levels[earlier] + 1).max().unwrap_or(0);
            let shared = (from..=last[place]).find(|&level| fixed.contains(&(level, reduces(place))));
            levels[place] = shared.unwrap_or(last[place]);
        }
        levels
    }

    /// Runs groups side by side, and then the frees of what no group uses that is left.
    fn step(&mut self, groups: Vec<usize>) {
        groups.iter().for_each(|&index| self.done[index] = true);
        let all = &self.groups.frees;
        let is_unused = |&free: &usize| all[free].1.iter().all(|&group| self.done[group]);
        let (now, later): (Vec<_>, Vec<_>) = self.frees.iter().copied().partition(is_unused);
        self.frees = later;
        self.steps.push(Step { groups, frees: now.into_iter().map(|free| all[free].0).collect() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Groups, MOST_ELEMENTS};
    use crate::route::elementwise::Sequence;
    use crate::route::work::{Together, Work};
    use burn_backend::{DType, Shape};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, FloatOperationIr, MatmulOpIr, NumericOperationIr, OperationIr, ReduceOpIr,
        ShapeOpIr, TensorId, TensorIr, TensorStatus,
    };

    /// A tensor in relative form, which lives on.
    fn tensor(id: u64) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: Shape::new([2, 3]), status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    fn last(id: u64) -> TensorIr {
        TensorIr { status: TensorStatus::ReadWrite, ..tensor(id) }
    }

    fn sum(lhs: TensorIr, rhs: TensorIr, out: u64) -> OperationIr {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: tensor(out) }))
    }

    fn total(input: u64, out: u64) -> OperationIr {
        let out = TensorIr { shape: Shape::new([1]), ..tensor(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(ReduceOpIr { input: last(input), out }))
    }

    fn freed(id: u64) -> OperationIr {
        OperationIr::Drop(last(id))
    }

    /// The groups, each of which is a sequence and frees.
    fn groups(parts: &[&[OperationIr]]) -> Groups {
        let operations = parts.concat();
        let mut all = Vec::new();
        for part in parts {
            let mut sequence: Option<Sequence> = None;
            for operation in *part {
                match &mut sequence {
                    Some(sequence) => assert!(sequence.take(operation)),
                    None => sequence = Sequence::new(operation, 16, true),
                }
            }
            let first = all.iter().map(|group: &Group| group.operations.len()).sum::<usize>();
            let indices = (first..first + part.len()).collect();
            all.extend(Group::all_of(sequence, &operations, indices, vec![], vec![]));
        }
        assert_eq!(all.len(), parts.len());
        Groups::new(&operations, all)
    }

    fn steps(groups: &Groups, elements: impl Fn(&Together) -> Option<usize>) -> Vec<Vec<usize>> {
        let steps = groups.steps(elements);
        let mut all: Vec<_> = steps.iter().flat_map(|step| step.groups.clone()).collect();
        all.sort();
        assert!(all.into_iter().eq(0..groups.all.len()), "each runs once");
        let mut frees: Vec<_> = steps.iter().flat_map(|step| step.frees.clone()).collect();
        frees.sort();
        assert!(frees.into_iter().eq(groups.frees.iter().map(|free| free.0)), "each is freed once");
        steps.into_iter().map(|step| step.groups).collect()
    }

    /// The operations that clip a gradient and update a parameter with it.
    fn update(first: u64) -> [Vec<OperationIr>; 3] {
        let at = |n| first + n;
        [
            vec![sum(tensor(at(0)), tensor(at(0)), at(1)), total(at(1), at(2))],
            vec![sum(last(at(2)), tensor(900), at(3))],
            vec![sum(last(at(0)), last(at(3)), at(4))],
        ]
    }

    #[test]
    fn updates_of_parameters_run_side_by_side() {
        let updates = [update(0), update(10), update(20)].concat();
        let groups = groups(&updates.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(steps(&groups, |_| Some(1)), [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
        assert_eq!(steps(&groups, |_| None), (0..9).map(|group| vec![group]).collect::<Vec<_>>(), "in program order");
    }

    #[test]
    fn a_large_group_runs_in_its_place_behind_what_it_needs() {
        let updates = [update(0), update(10), update(20)].concat();
        let groups = groups(&updates.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // The operations of the groups begin with 0, 2, 3, 4, ..
        let large = |first: usize| move |together: &Together| (together.operations[0] != first).then_some(1);
        assert_eq!(steps(&groups, large(4)), [vec![3], vec![0, 6], vec![1, 4, 7], vec![2, 5, 8]]);
        assert_eq!(steps(&groups, large(7)), [vec![0, 3], vec![1, 4], vec![2], vec![5], vec![6], vec![7], vec![8]]);
    }

    #[test]
    fn those_side_by_side_have_so_many_elements() {
        let sums: Vec<_> = (0..5).map(|n| vec![sum(tensor(10 * n), tensor(10 * n), 10 * n + 1)]).collect();
        let groups = groups(&sums.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(steps(&groups, |_| Some(MOST_ELEMENTS / 2)), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(steps(&groups, |_| Some(MOST_ELEMENTS / 2 + 1)), [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn the_last_use_of_an_operand_comes_behind_the_others() {
        let groups =
            groups(&[&[sum(tensor(0), tensor(1), 2)], &[sum(last(0), tensor(3), 4)], &[sum(tensor(1), tensor(3), 5)]]);
        assert_eq!(steps(&groups, |_| Some(1)), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn sums_that_one_operation_reads_are_side_by_side() {
        let groups = groups(&[
            &[sum(tensor(0), tensor(1), 2)],
            &[sum(tensor(0), tensor(3), 4), total(4, 5)],
            &[sum(tensor(2), tensor(3), 6), total(6, 7)],
            &[sum(tensor(5), tensor(7), 8)],
        ]);
        assert_eq!(steps(&groups, |_| Some(1)), [vec![0], vec![1, 2], vec![3]]);
    }

    #[test]
    fn tensors_are_freed_behind_all_groups_that_use_them() {
        let groups = groups(&[
            &[sum(tensor(0), tensor(1), 2)],
            &[sum(tensor(3), tensor(3), 4), freed(0), freed(9)],
            &[sum(tensor(2), tensor(1), 5), freed(1)],
            &[sum(tensor(6), tensor(7), 8), freed(2), freed(3)],
        ]);
        let frees = |put_off: bool| {
            let steps = groups.steps(|_| put_off.then_some(1));
            steps.into_iter().map(|step| (step.groups, step.frees)).collect::<Vec<_>>()
        };
        let one_by_one = [(vec![0], vec![2, 3]), (vec![1], vec![8]), (vec![2], vec![5, 7]), (vec![3], vec![])];
        assert_eq!(frees(false), one_by_one);
        assert_eq!(frees(true), [(vec![0, 1, 3], vec![2, 3, 8]), (vec![2], vec![5, 7])]);
    }

    #[test]
    fn an_index_out_of_range_concerns_what_is_newest_and_what_depends_on_it() {
        let (x, y) = (sum(tensor(0), tensor(1), 2), sum(tensor(3), tensor(1), 4));
        let all = [x, y, sum(tensor(2), tensor(1), 5), freed(0)];
        let of = |parts: &[&[usize]], output: Option<u64>| {
            let group = |operations: &&[usize]| Group::of_operations(operations.to_vec());
            let mut groups: Vec<_> = parts.iter().map(group).collect();
            groups.iter_mut().enumerate().for_each(|(index, group)| group.sequence = index);
            let groups = Groups::new(&all, groups);
            let concerned = groups.concerned(&all, output.map(TensorId::new));
            concerned.into_iter().flat_map(|group| group.operations.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[&[0, 2], &[1, 3]], None), [0, 2]);
        assert_eq!(of(&[&[0, 1], &[2, 3]], None), [2, 3]);
        assert_eq!(of(&[&[0], &[1], &[2, 3]], Some(4)), [1, 2, 3]);
        assert_eq!(of(&[&[0], &[2], &[1, 3]], Some(2)), [0, 2]);
        assert_eq!(of(&[&[0], &[2], &[1, 3]], Some(3)), [2, 1, 3], "what reads it");
        // Parts of one sequence.
        let mut groups: Vec<_> = [0, 1, 2].map(|index| Group::of_operations(vec![index])).into();
        groups[0].sequence = 7;
        assert_eq!(Groups::new(&all, groups).concerned(&all, None).len(), 2);
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
        let product = |lhs: u64, rhs: u64, out: u64| {
            let product = MatmulOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
            OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product))
        };
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
}
