//! How far in a block what a tensor holds gets: which groups depend on it, and which of their results outlive the block.

use super::groups::{Group, Groups};
use crate::backend::Places;
use crate::catalogue::is_free;
use burn_ir::{OperationIr, TensorId, TensorStatus};
use std::collections::{HashMap, HashSet};

/// The reach of each tensor of a block, in relative form.
pub(super) struct Reach {
    /// The groups that use a tensor, or make it.
    users: HashMap<TensorId, Vec<usize>>,
    /// The results of each group that outlive the block.
    pub results: Vec<Vec<TensorId>>,
}

impl Reach {
    /// In a block of `operations` in `groups`.
    pub(super) fn new(operations: &[OperationIr], groups: &Groups) -> Self {
        let mut users: HashMap<TensorId, Vec<usize>> = HashMap::new();
        let mut results = vec![Vec::new(); groups.all.len()];
        let ends = operations.iter().flat_map(OperationIr::inputs);
        let ends: HashSet<_> =
            ends.filter(|input| input.status == TensorStatus::ReadWrite).map(|input| input.id).collect();
        for (number, group) in groups.all.iter().enumerate() {
            for operation in group.operations.iter().map(|&index| &operations[index]).filter(|of| !is_free(of)) {
                for tensor in operation.inputs().chain(operation.outputs()) {
                    let of_tensor = users.entry(tensor.id).or_default();
                    if of_tensor.last() != Some(&number) {
                        of_tensor.push(number);
                    }
                }
                results[number].extend(operation.outputs().map(|result| result.id).filter(|id| !ends.contains(id)));
            }
        }
        Self { users, results }
    }

    fn users(&self, tensor: &TensorId) -> impl Iterator<Item = usize> {
        self.users.get(tensor).into_iter().flatten().copied()
    }

    /// The groups whose results carry the error of an index out of range, on which the tensors `sources` depend: those that depend on one
    /// of them; and, where it `is_new`, those of the sequence with the last operation that is no free.
    pub(super) fn concerned<'a>(
        &self,
        operations: &[OperationIr],
        groups: &'a Groups,
        sources: &[(TensorId, Places)],
        is_new: bool,
    ) -> Vec<&'a Group> {
        let last = |group: &&Group| group.operations.iter().copied().rfind(|&index| !is_free(&operations[index]));
        let newest = groups.all.iter().max_by_key(last).map(|group| group.sequence).filter(|_| is_new);
        let of_groups = groups.all.iter().zip(self.places(groups, sources));
        let concerned = of_groups.filter(|(group, on)| on.is_some() || Some(group.sequence) == newest);
        concerned.map(|(group, _)| group).collect()
    }

    /// The operations on which each group depends, where the tensors `sources` depend on these.
    pub(super) fn places(&self, groups: &Groups, sources: &[(TensorId, Places)]) -> Vec<Option<Places>> {
        let both = |one: Option<Places>, other: Option<Places>| {
            one.zip(other).map(|(one, other)| one.with(other)).or(one).or(other)
        };
        let mut of_groups: Vec<Option<Places>> = vec![None; groups.all.len()];
        for (source, on) in sources {
            self.users(source).for_each(|user| of_groups[user] = both(of_groups[user], Some(*on)));
        }
        for (group, needs) in groups.needs.iter().enumerate() {
            let read = needs.iter().filter(|need| need.reads_result);
            of_groups[group] = read.fold(of_groups[group], |on, need| both(on, of_groups[need.earlier]));
        }
        of_groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::groups::tests::{freed, sum, tensor};
    use burn_ir::TensorIr;

    #[test]
    fn an_index_out_of_range_concerns_what_is_newest_and_what_depends_on_it() {
        let (x, y) = (sum(tensor(0), tensor(1), 2), sum(tensor(3), tensor(1), 4));
        let all = [x, y, sum(tensor(2), tensor(1), 5), freed(0)];
        let of = |parts: &[&[usize]], output: Option<u64>| {
            let group = |operations: &&[usize]| Group::of_operations(&all, operations.to_vec());
            let mut groups: Vec<_> = parts.iter().map(group).collect();
            groups.iter_mut().enumerate().for_each(|(index, group)| group.sequence = index);
            let groups = Groups::new(&all, groups);
            let reach = Reach::new(&all, &groups);
            let source = output.map(|id| (TensorId::new(id), Places::default()));
            let concerned = reach.concerned(&all, &groups, source.as_slice(), true);
            concerned.into_iter().flat_map(|group| group.operations.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[&[0, 2], &[1, 3]], None), [0, 2]);
        assert_eq!(of(&[&[0, 1], &[2, 3]], None), [2, 3]);
        assert_eq!(of(&[&[0], &[1], &[2, 3]], Some(4)), [1, 2, 3]);
        assert_eq!(of(&[&[0], &[2], &[1, 3]], Some(2)), [0, 2]);
        assert_eq!(of(&[&[0], &[2], &[1, 3]], Some(3)), [2, 1, 3], "what reads it");
        // Parts of one sequence.
        let mut groups: Vec<_> = [0, 1, 2].map(|index| Group::of_operations(&all, vec![index])).into();
        groups[0].sequence = 7;
        let groups = Groups::new(&all, groups);
        let reach = Reach::new(&all, &groups);
        assert_eq!(reach.concerned(&all, &groups, &[], true).len(), 2);
        assert!(reach.concerned(&all, &groups, &[], false).is_empty());
    }

    #[test]
    fn what_overwrites_an_operand_of_a_result_does_not_depend_on_it() {
        let last = |id| TensorIr { status: TensorStatus::ReadWrite, ..tensor(id) };
        let all = [sum(tensor(0), tensor(1), 2), sum(last(1), last(1), 3), sum(tensor(2), tensor(4), 5)];
        let groups = [0, 1, 2].map(|index| Group::of_operations(&all, vec![index]));
        let groups = Groups::new(&all, groups.into());
        let reach = Reach::new(&all, &groups);
        assert_eq!(reach.results, [2, 3, 5].map(|id| vec![TensorId::new(id)]));
        let concerned = reach.concerned(&all, &groups, &[(TensorId::new(2), Places::default())], false);
        let concerned: Vec<_> = concerned.into_iter().flat_map(|group| group.operations.clone()).collect();
        assert_eq!(concerned, [0, 2]);
        let on = Places::at(7);
        assert_eq!(reach.places(&groups, &[(TensorId::new(0), on)]), [Some(on), None, Some(on)]);
    }
}
