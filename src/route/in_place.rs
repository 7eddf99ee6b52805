//! Reductions of a moved tensor by groups of their own, without a copy: as the gradient of Burn's batch norm moves the channels of a
//! tensor to the front, joins all other axes if there are several, and takes the sum and the mean of each channel.
//!
//! The fuser opens a group for the reductions of one such tensor. Once the block is whole, and if nothing else reads the tensor, the
//! group [reduces axes](super::moved) of what is moved, which it may compute itself: with the whole sequence that does, if no group
//! between needs that, or else alone.

use super::elementwise::Sequence;
use super::groups::Uses;
use super::merged::Open;
use super::moved::Moved;
use super::reductions::row_reduction;
use crate::catalogue::is_free;
use burn_backend::DType::F32;
use burn_deterministic_kernels::elementwise::RowReduction;
use burn_ir::{BaseOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashSet;

/// What an operation reduces, if it is a sum, a mean or a product of rows of f32.
pub(super) fn reduces(operation: &OperationIr) -> Option<&TensorIr> {
    use RowReduction::{Mean, Prod, Sum};
    let input = operation.inputs().next()?;
    (matches!(row_reduction(operation)?, Sum | Mean | Prod) && input.dtype == F32).then_some(input)
}

/// The operations that give a tensor by moves, by their indices.
pub(super) struct Moves {
    /// Moves the axes of another tensor.
    first: usize,
    /// Joins the last ones, where they are joined.
    join: Option<usize>,
    moved: Moved,
}

impl Moves {
    /// The moves that give `tensor`.
    fn of(operations: &[OperationIr], tensor: TensorId) -> Option<Self> {
        let last = gives(operations, tensor)?;
        let OperationIr::BaseFloat(BaseOperationIr::Reshape(reshape)) = &operations[last] else {
            let (moved, _) = Moved::by(&operations[last])?;
            return Some(Self { first: last, join: None, moved });
        };
        let first = gives(operations, reshape.input.id)?;
        let (mut moved, _) = Moved::by(&operations[first])?;
        moved.join(&operations[last])?;
        Some(Self { first, join: Some(last), moved })
    }

    /// The moves that give what `operation` reduces, if it reduces axes of the source in their order.
    pub(super) fn reduced_by(operation: &OperationIr, operations: &[OperationIr]) -> Option<Self> {
        let moves = Self::of(operations, operation.inputs().next()?.id)?;
        moves.moved.axes_of(operation).is_some().then_some(moves)
    }

    /// All of them.
    fn all(&self) -> Vec<usize> {
        [self.first].into_iter().chain(self.join).collect()
    }

    /// The last.
    pub(super) fn last(&self) -> usize {
        self.join.unwrap_or(self.first)
    }
}

/// The operation with the result `tensor`.
fn gives(operations: &[OperationIr], tensor: TensorId) -> Option<usize> {
    operations.iter().position(|operation| operation.outputs().any(|output| output.id == tensor))
}

/// The groups of `operations`, of which those that reduce a moved tensor do without a copy, if they can; a kernel binds `max_tensors`.
pub(super) fn reduced_in_place(mut groups: Vec<Open>, operations: &[OperationIr], max_tensors: usize) -> Vec<Open> {
    let mut place = 0;
    while place < groups.len() {
        let block = Opened { groups: &groups, operations, max_tensors };
        if let Some(InPlace { sequence, mut taken, computed }) = block.in_place(place) {
            let mut whole = Open::default();
            match computed {
                Some(Computed { group, rest: Some(rest) }) => groups[group].sequence = Some(rest),
                Some(Computed { group, rest: None }) => {
                    whole = groups.remove(group);
                    place -= 1;
                }
                None => {}
            }
            for group in groups.iter_mut().chain([&mut whole]) {
                [&mut group.operations, &mut group.before, &mut group.after]
                    .into_iter()
                    .for_each(|indices| indices.retain(|index| !taken.contains(index)));
            }
            taken.extend(whole.operations);
            let group = &mut groups[place];
            (group.sequence, group.reduces) = (Some(sequence), None);
            for (indices, more) in
                [(&mut group.operations, taken), (&mut group.before, whole.before), (&mut group.after, whole.after)]
            {
                indices.extend(more);
                indices.sort_unstable();
            }
        }
        place += 1;
    }
    groups
}

/// A group that reduces in place.
struct InPlace {
    sequence: Sequence,
    /// The operations that it has then, which other groups had.
    taken: Vec<usize>,
    computed: Option<Computed>,
}

/// The group that computes what is reduced, and what is left of its sequence: nothing where all its operations go to the other one.
struct Computed {
    group: usize,
    rest: Option<Sequence>,
}

struct Opened<'a> {
    groups: &'a [Open],
    operations: &'a [OperationIr],
    max_tensors: usize,
}

impl Opened<'_> {
    /// The group at `place` without a copy, if it reduces a moved tensor that nothing else needs.
    fn in_place(&self, place: usize) -> Option<InPlace> {
        let tensor = self.groups[place].reduces?;
        let moves = Moves::of(self.operations, tensor)?;
        let first = moves.first;
        let group = &self.groups[place];
        let reductions: Vec<_> =
            group.operations.iter().copied().filter(|&index| !group.runs_elsewhere(index)).collect();
        let source = self.operations[first].inputs().next()?;
        let between = self.operations[first].outputs().next()?;
        let is_needed = self.readers(tensor).any(|index| !reductions.contains(&index))
            || moves.join.is_some_and(|join| self.readers(between.id).any(|index| index != join))
            || !self.operations.iter().any(|operation| takes_or_frees(operation, tensor))
            || self.earlier(place).any(|index| index != first && takes(&self.operations[index], source.id));
        if is_needed {
            return None;
        }
        let sequence = |computed: &[usize]| {
            let [computed, reductions] =
                [computed, &reductions].map(|indices| indices.iter().map(|&index| &self.operations[index]));
            Sequence::of_moved(&computed.collect::<Vec<_>>(), source, &moves.moved, reductions, self.max_tensors)
        };
        if let Some((index, group)) = self.computed(place, first, source) {
            let all = self.in_sequence(group, None);
            let frees_moved = reductions.iter().any(|&index| self.is_free_of_moved(index, group));
            if !frees_moved
                && !self.is_needed_between(group, place)
                && let Some(sequence) = sequence(&all)
            {
                let taken = [all, moves.all()].concat();
                return Some(InPlace { sequence, taken, computed: Some(Computed { group, rest: None }) });
            }
            let others = self.in_sequence(group, Some(index)).into_iter().map(|index| &self.operations[index]);
            let rest = Sequence::shared(others, self.max_tensors);
            if let (true, Some(rest)) = (self.may_run_at(index, place), rest)
                && let Some(sequence) = sequence(&[index])
            {
                let computed = Some(Computed { group, rest: Some(rest) });
                return Some(InPlace { sequence, taken: [vec![index], moves.all()].concat(), computed });
            }
        }
        Some(InPlace { sequence: sequence(&[])?, taken: moves.all(), computed: None })
    }

    /// The operations of a group's sequence, but for one.
    fn in_sequence(&self, group: usize, left_out: Option<usize>) -> Vec<usize> {
        let group = &self.groups[group];
        let is_in_sequence = |index: &usize| Some(*index) != left_out && !group.runs_elsewhere(*index);
        group.operations.iter().copied().filter(is_in_sequence).collect()
    }

    fn uses(&self, group: usize) -> Uses {
        Uses::of(self.groups[group].operations.iter().map(|&index| &self.operations[index]))
    }

    /// Whether a group between the two needs that the first one has run.
    fn is_needed_between(&self, first: usize, second: usize) -> bool {
        let uses = self.uses(first);
        (first + 1..second).any(|between| self.uses(between).need(&uses))
    }

    /// Whether an operation frees what runs after a group's sequence reads or writes: the sequence would not write it.
    fn is_free_of_moved(&self, index: usize, group: usize) -> bool {
        let after = self.groups[group].after.iter().map(|&index| &self.operations[index]);
        let mut moved = after.flat_map(|operation| operation.inputs().chain(operation.outputs()));
        matches!(&self.operations[index], OperationIr::Drop(freed) if moved.any(|tensor| tensor.id == freed.id))
    }

    /// Whether an operation may run as late as the group at `place`: what it reads is neither taken nor freed before.
    fn may_run_at(&self, index: usize, place: usize) -> bool {
        let inputs: HashSet<_> = self.operations[index].inputs().map(|input| input.id).collect();
        let takes_input = |other: usize| inputs.iter().any(|&id| takes_or_frees(&self.operations[other], id));
        self.earlier(place).all(|other| other == index || !takes_input(other))
    }

    /// What reads a tensor, but for frees.
    fn readers(&self, tensor: TensorId) -> impl Iterator<Item = usize> {
        let reads =
            move |operation: &OperationIr| !is_free(operation) && operation.inputs().any(|input| input.id == tensor);
        self.operations.iter().enumerate().filter(move |(_, operation)| reads(operation)).map(|(index, _)| index)
    }

    /// The operations of the groups before `place`.
    fn earlier(&self, place: usize) -> impl Iterator<Item = usize> {
        self.groups[..place].iter().flat_map(|group| group.operations.iter().copied())
    }

    /// The operation of an earlier sequence that gives `source`, and the group, if only the move `first` reads the source.
    fn computed(&self, place: usize, first: usize, source: &TensorIr) -> Option<(usize, usize)> {
        let computed = gives(self.operations, source.id)?;
        let is_in_sequence = |group: &Open| {
            let ends = group.sequence.as_ref().is_none_or(Sequence::ends_in_reduction);
            !ends && group.operations.contains(&computed) && !group.runs_elsewhere(computed)
        };
        let group = self.groups[..place].iter().position(is_in_sequence)?;
        let is_alone = source.status == TensorStatus::ReadWrite && self.readers(source.id).eq([first]);
        is_alone.then_some((computed, group))
    }
}

/// Whether `operation` takes `tensor` away.
fn takes(operation: &OperationIr, tensor: TensorId) -> bool {
    let is_taken = |input: &TensorIr| input.id == tensor && input.status == TensorStatus::ReadWrite;
    !is_free(operation) && operation.inputs().any(is_taken)
}

fn takes_or_frees(operation: &OperationIr, tensor: TensorId) -> bool {
    takes(operation, tensor) || matches!(operation, OperationIr::Drop(freed) if freed.id == tensor)
}
