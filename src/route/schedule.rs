//! The order in which the groups of a block run.
//!
//! A group whose launches may be shared is put off until a group that runs at once needs it, or until the end of the block. Those that
//! were put off then run level by level, the groups of one level and kind side by side. Moves share no launches, and wait for what
//! they move.

use super::groups::{Groups, Kind, Need};
use std::collections::HashSet;

/// Most elements of groups side by side: more fill a device by themselves, and results of all are in memory at once.
pub(super) const MOST_ELEMENTS: usize = 1 << 20;

/// Most elements of one that is put off.
pub(super) const MOST_ELEMENTS_OF_ONE: usize = MOST_ELEMENTS / 4;

/// Elements that groups put off read and write, beyond which they run: 64 MiB of f32, where these are whole tensors.
pub(super) const MOST_HELD: usize = 1 << 24;

/// The size of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// The elements of its sequence or result.
    pub elements: usize,
    /// The elements that it reads or writes, at most.
    pub held: usize,
}

/// What runs next: one group, or several of one [kind](Kind) side by side; then the frees with these indices.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub groups: Vec<usize>,
    pub frees: Vec<usize>,
}

/// The steps in which the groups run. `size` says how large a group is whose launches may be shared, if it is to be put off; those side
/// by side have [`MOST_ELEMENTS`].
pub(super) fn steps(groups: &Groups, size: impl Fn(usize) -> Option<Size>) -> Vec<Step> {
    let count = groups.all.len();
    let mut order = Order {
        groups,
        steps: Vec::new(),
        put_off: Vec::new(),
        is_put_off: vec![false; count],
        done: vec![false; count],
        frees: (0..groups.frees.len()).collect(),
    };
    for (index, group) in groups.all.iter().enumerate() {
        let waits = || groups.needs[index].iter().any(|need| order.is_put_off[need.earlier]);
        let size = match group.kind {
            Kind::Moves => waits().then(Size::default),
            _ => size(index),
        };
        match size {
            Some(size) => order.put_off(index, size),
            None => order.run(index),
        }
    }
    order.run_put_off();
    order.steps
}

/// Groups that are put into an order.
struct Order<'a> {
    groups: &'a Groups,
    steps: Vec<Step>,
    /// Those that are put off, with their sizes.
    put_off: Vec<(usize, Size)>,
    /// Whether each group is one of them.
    is_put_off: Vec<bool>,
    /// Whether each group has run.
    done: Vec<bool>,
    /// The frees that are left.
    frees: Vec<usize>,
}

impl Order<'_> {
    fn put_off(&mut self, index: usize, size: Size) {
        self.put_off.push((index, size));
        self.is_put_off[index] = true;
        if self.put_off.iter().map(|(_, size)| size.held).sum::<usize>() > MOST_HELD {
            self.run_put_off();
        }
    }

    /// Runs all groups that are put off.
    fn run_put_off(&mut self) {
        let groups = core::mem::take(&mut self.put_off);
        self.run_by_level(&groups);
    }

    /// Runs a group by itself, behind those put off that it needs, and that these need.
    fn run(&mut self, index: usize) {
        if !self.put_off.is_empty() {
            let mut is_needed = vec![false; index + 1];
            is_needed[index] = true;
            for later in (0..=index).rev().filter(|&later| later == index || self.is_put_off[later]) {
                if is_needed[later] {
                    self.groups.needs[later].iter().for_each(|need| is_needed[need.earlier] = true);
                }
            }
            let groups = core::mem::take(&mut self.put_off);
            let (now, later) = groups.into_iter().partition(|(earlier, _)| is_needed[*earlier]);
            self.put_off = later;
            self.run_by_level(&now);
        }
        self.step(vec![index]);
    }

    /// Runs `groups`, level by level: in a level first products, those of one size side by side; then sequences, then reductions, and
    /// then moves, one by one.
    fn run_by_level(&mut self, groups: &[(usize, Size)]) {
        if groups.is_empty() {
            return;
        }
        let levels = self.levels(groups);
        for level in 0..=levels.iter().copied().max().unwrap_or(0) {
            let of_level = groups.iter().zip(&levels).filter(|(_, of_group)| **of_group == level);
            let mut products: Vec<(&Kind, Vec<(usize, Size)>)> = Vec::new();
            let (mut sequences, mut reductions, mut moves) = (Vec::new(), Vec::new(), Vec::new());
            for (&group, _) in of_level {
                match &self.groups.all[group.0].kind {
                    kind @ Kind::Product(_) => match products.iter_mut().find(|(other, _)| *other == kind) {
                        Some((_, of_size)) => of_size.push(group),
                        None => products.push((kind, vec![group])),
                    },
                    Kind::Sequence => sequences.push(group),
                    Kind::Reduction => reductions.push(group),
                    Kind::Moves => moves.push(group.0),
                    Kind::Other => unreachable!("it shares no launch, so it is not put off"),
                }
            }
            products.into_iter().for_each(|(_, of_size)| self.run_at_once(&of_size));
            self.run_at_once(&sequences);
            self.run_at_once(&reductions);
            moves.into_iter().for_each(|index| self.step(vec![index]));
        }
    }

    /// Runs groups that share launches, as many side by side as have few enough elements.
    fn run_at_once(&mut self, groups: &[(usize, Size)]) {
        let (mut side_by_side, mut sum) = (Vec::new(), 0);
        for &(index, Size { elements, .. }) in groups {
            if sum + elements > MOST_ELEMENTS && !side_by_side.is_empty() {
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

    /// The level of each group, at least its [height](Self::height) above those of the groups that it needs. Of the levels that it may have, a
    /// group takes the lowest one with another group of its kind that may have no other level; if there is none its highest, and a
    /// move its lowest.
    fn levels(&self, groups: &[(usize, Size)]) -> Vec<usize> {
        let mut places = vec![None; self.groups.all.len()];
        groups.iter().enumerate().for_each(|(place, (index, _))| places[*index] = Some(place));
        let places = &places;
        let needs = |&(index, _): &(usize, Size)| {
            let of_these = move |need: &Need| Some((places[need.earlier]?, self.height(index, *need)));
            self.groups.needs[index].iter().filter_map(of_these)
        };
        let kind = |place: usize| &self.groups.all[groups[place].0].kind;
        let mut first = vec![0; groups.len()];
        for (place, group) in groups.iter().enumerate() {
            first[place] = needs(group).map(|(earlier, height)| first[earlier] + height).max().unwrap_or(0);
        }
        let mut last = vec![first.iter().copied().max().unwrap_or(0); groups.len()];
        for (place, group) in groups.iter().enumerate().rev() {
            needs(group).for_each(|(earlier, height)| last[earlier] = last[earlier].min(last[place] - height));
        }
        let fixed = (0..groups.len()).filter(|&place| first[place] == last[place]);
        let fixed: HashSet<_> = fixed.map(|place| (first[place], kind(place))).collect();
        let mut levels = vec![0; groups.len()];
        for (place, group) in groups.iter().enumerate() {
            let from = needs(group).map(|(earlier, height)| levels[earlier] + height).max().unwrap_or(0);
            let shared = (from..=last[place]).find(|&level| fixed.contains(&(level, kind(place))));
            levels[place] = match kind(place) {
                Kind::Moves => from,
                _ => shared.unwrap_or(last[place]),
            };
        }
        levels
    }

    /// How many levels a group is above one that it needs, at least: 0 for moves, which run last in a level, and for groups that take an
    /// operand of one of their kind away, since groups side by side bind operands in their order; but not where moves run before or after
    /// the sequences. Else 1.
    fn height(&self, index: usize, need: Need) -> usize {
        let [earlier, later] = [need.earlier, index].map(|index| &self.groups.all[index]);
        let are_sequences_alone = earlier.together().is_none_or(|together| together.after.is_empty())
            && later.together().is_none_or(|together| together.before.is_empty());
        let is_behind = match (&earlier.kind, &later.kind) {
            (_, Kind::Moves) => true,
            (Kind::Product(earlier), Kind::Product(later)) => !need.reads_result && earlier == later,
            (Kind::Sequence, Kind::Sequence | Kind::Reduction) | (Kind::Reduction, Kind::Reduction) => {
                !need.reads_result && are_sequences_alone
            }
            _ => false,
        };
        usize::from(!is_behind)
    }

    /// Runs groups side by side, and then the frees of what no group uses that is left.
    fn step(&mut self, groups: Vec<usize>) {
        for &index in &groups {
            self.done[index] = true;
            self.is_put_off[index] = false;
        }
        let all = &self.groups.frees;
        let is_unused = |&free: &usize| all[free].1.iter().all(|&group| self.done[group]);
        let (now, later): (Vec<_>, Vec<_>) = self.frees.iter().copied().partition(is_unused);
        self.frees = later;
        self.steps.push(Step { groups, frees: now.into_iter().map(|free| all[free].0).collect() });
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_ELEMENTS, MOST_HELD, Size, Step, steps};
    use crate::route::elementwise::Sequence;
    use crate::route::groups::tests::{freed, last, product, sum, tensor};
    use crate::route::groups::{Group, Groups};
    use burn_backend::{DType, Shape};
    use burn_ir::{
        BaseOperationIr, FloatOperationIr, MatmulOpIr, NumericOperationIr, OperationIr, ReduceDimOpIr, ReduceOpIr,
        SwapDimsOpIr, TensorIr,
    };

    fn total(input: u64, out: u64) -> OperationIr {
        let out = TensorIr { shape: Shape::new([1]), ..tensor(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(ReduceOpIr { input: last(input), out }))
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

    /// Checks that each group runs once, and that each free does.
    fn ordered(groups: &Groups, elements: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
        let steps = steps(groups, |group| elements(group).map(|elements| Size { elements, held: elements }));
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
        assert_eq!(ordered(&groups, |_| Some(1)), [[0, 3, 6], [1, 4, 7], [2, 5, 8]]);
        assert_eq!(ordered(&groups, |_| None), (0..9).map(|group| vec![group]).collect::<Vec<_>>(), "in program order");
    }

    #[test]
    fn a_large_group_runs_in_its_place_behind_what_it_needs() {
        let updates = [update(0), update(10), update(20)].concat();
        let groups = groups(&updates.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let large = |index: usize| move |group: usize| (group != index).then_some(1);
        assert_eq!(ordered(&groups, large(3)), [vec![3], vec![0, 6], vec![1, 4, 7], vec![2, 5, 8]]);
        let behind = [vec![3], vec![4], vec![5], vec![0, 6], vec![1, 7], vec![2, 8]];
        assert_eq!(ordered(&groups, large(5)), behind, "what it does not need waits");
    }

    #[test]
    fn those_side_by_side_have_so_many_elements() {
        let sums: Vec<_> = (0..5).map(|n| vec![sum(tensor(10 * n), tensor(10 * n), 10 * n + 1)]).collect();
        let groups = groups(&sums.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(ordered(&groups, |_| Some(MOST_ELEMENTS / 2)), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(ordered(&groups, |_| Some(MOST_ELEMENTS / 2 + 1)), [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn those_put_off_hold_so_many_elements() {
        let groups = leads(&[product(0, 1, 2), product(3, 4, 5), product(6, 7, 8), product(9, 10, 11)]);
        let order = |held: usize| {
            let steps = steps(&groups, |_| Some(Size { elements: 1, held }));
            steps.into_iter().map(|step| step.groups).collect::<Vec<_>>()
        };
        assert_eq!(order(MOST_HELD / 4), [[0, 1, 2, 3]]);
        assert_eq!(order(MOST_HELD / 2), [vec![0, 1, 2], vec![3]]);
        // What has run holds nothing.
        let operations = [product(0, 1, 2), product(2, 3, 4), product(5, 6, 7), product(8, 9, 10)];
        let groups = leads(&operations);
        let size = Size { elements: 1, held: MOST_HELD / 2 };
        let steps = steps(&groups, |index| (index != 1).then_some(size));
        assert_eq!(steps.into_iter().map(|step| step.groups).collect::<Vec<_>>(), [vec![0], vec![1], vec![2, 3]]);
    }

    #[test]
    fn the_last_use_of_an_operand_comes_behind_the_others() {
        let groups =
            groups(&[&[sum(tensor(0), tensor(1), 2)], &[sum(last(0), tensor(3), 4)], &[sum(tensor(1), tensor(3), 5)]]);
        assert_eq!(ordered(&groups, |_| Some(1)), [[0, 1, 2]], "which are bound before");
    }

    #[test]
    fn sums_that_one_operation_reads_are_side_by_side() {
        let groups = groups(&[
            &[sum(tensor(0), tensor(1), 2)],
            &[sum(tensor(0), tensor(3), 4), total(4, 5)],
            &[sum(tensor(2), tensor(3), 6), total(6, 7)],
            &[sum(tensor(5), tensor(7), 8)],
        ]);
        assert_eq!(ordered(&groups, |_| Some(1)), [vec![0], vec![1, 2], vec![3]]);
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
            let steps = steps(&groups, |_| put_off.then_some(Size { elements: 1, held: 2 }));
            steps.into_iter().map(|Step { groups, frees }| (groups, frees)).collect::<Vec<_>>()
        };
        let one_by_one = [(vec![0], vec![2, 3]), (vec![1], vec![8]), (vec![2], vec![5, 7]), (vec![3], vec![])];
        assert_eq!(frees(false), one_by_one);
        assert_eq!(frees(true), [(vec![0, 1, 3], vec![2, 3, 8]), (vec![2], vec![5, 7])]);
    }

    fn swap(input: TensorIr, out: u64) -> OperationIr {
        let swap = SwapDimsOpIr { input, out: tensor(out), dim1: 0, dim2: 1 };
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap))
    }

    fn column_sum(input: u64, out: u64) -> OperationIr {
        let reduction = ReduceDimOpIr { input: tensor(input), out: tensor(out), axis: 0, accumulator_len: 1 };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::SumDim(reduction))
    }

    /// Each operation by itself.
    fn leads(operations: &[OperationIr]) -> Groups {
        let all = (0..operations.len()).map(|index| Group::lead(operations, index, 16)).collect();
        Groups::new(operations, all)
    }

    #[test]
    fn products_of_equal_sizes_and_reductions_run_side_by_side() {
        // The gradients of a layer's weight, input and bias, twice.
        let layer =
            |first: u64| [product(first, 90, first + 1), column_sum(first, first + 2), product(91, first, first + 3)];
        let groups = leads(&[layer(0), layer(10), layer(20)].concat());
        assert_eq!(ordered(&groups, |_| Some(1)), [vec![0, 2, 3, 5, 6, 8], vec![1, 4, 7]]);
        let of_other_sizes = TensorIr { shape: Shape::new([3, 5]), ..tensor(5) };
        let other = MatmulOpIr { lhs: tensor(0), rhs: of_other_sizes, out: tensor(6) };
        let other = OperationIr::Float(DType::F32, FloatOperationIr::Matmul(other));
        assert_eq!(ordered(&leads(&[product(0, 1, 2), other, product(3, 4, 7)]), |_| Some(1)), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn moves_wait_for_what_they_move_and_take_no_level() {
        let of = |operations: &[OperationIr]| ordered(&leads(operations), |_| Some(1));
        assert_eq!(of(&[product(0, 1, 2), swap(tensor(3), 4)]), [[1], [0]]);
        let behind = [product(0, 1, 2), swap(tensor(2), 3), product(3, 4, 5), product(2, 6, 7)];
        assert_eq!(of(&behind), [vec![0], vec![1], vec![2, 3]]);
        let taken = [product(0, 1, 2), swap(last(0), 3), product(5, 6, 7)];
        assert_eq!(of(&taken), [vec![0, 2], vec![1]], "an operand is taken away behind those that read it");
    }

    #[test]
    fn what_is_needed_late_waits_for_the_end() {
        let operations = [column_sum(0, 1), product(0, 2, 3), product(3, 4, 5), column_sum(3, 6)];
        let groups = leads(&operations);
        assert_eq!(ordered(&groups, |index| (index != 2).then_some(1)), [vec![1], vec![2], vec![0, 3]]);
    }
}
