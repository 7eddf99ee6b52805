//! Reductions of a moved tensor by groups of their own, without a copy: as the gradient of Burn's batch norm moves the channels of a
//! tensor to the front, joins all other axes, and takes the sum and the mean of each channel.
//!
//! The fuser opens a group for the reductions of one such tensor. Once the block is whole, and if nothing else reads the tensor, the
//! group [reduces axes](super::moved) of what is moved, which it may compute itself.

use super::elementwise::Sequence;
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

/// The operations that move the axes of a tensor, and join the last ones, to give `tensor`; and how.
pub(super) fn moves_of(operations: &[OperationIr], tensor: TensorId) -> Option<([usize; 2], Moved)> {
    let join = gives(operations, tensor)?;
    let OperationIr::BaseFloat(BaseOperationIr::Reshape(reshape)) = &operations[join] else { return None };
    let first = gives(operations, reshape.input.id)?;
    let (mut moved, _) = Moved::by(&operations[first])?;
    moved.join(&operations[join])?;
    Some(([first, join], moved))
}

/// The operation with the result `tensor`.
fn gives(operations: &[OperationIr], tensor: TensorId) -> Option<usize> {
    operations.iter().position(|operation| operation.outputs().any(|output| output.id == tensor))
}

/// The groups of `operations`, of which those that reduce a moved tensor do without a copy, if they can; a kernel binds `max_tensors`.
pub(super) fn reduced_in_place(mut groups: Vec<Open>, operations: &[OperationIr], max_tensors: usize) -> Vec<Open> {
    for place in 0..groups.len() {
        let block = Opened { groups: &groups, operations, max_tensors };
        let Some(InPlace { sequence, taken, rest }) = block.in_place(place) else { continue };
        for group in &mut groups {
            [&mut group.operations, &mut group.before, &mut group.after]
                .into_iter()
                .for_each(|indices| indices.retain(|index| !taken.contains(index)));
        }
        if let Some(Rest { group, sequence }) = rest {
            groups[group].sequence = Some(sequence);
        }
        let group = &mut groups[place];
        (group.sequence, group.reduces) = (Some(sequence), None);
        group.operations.extend(taken);
        group.operations.sort_unstable();
    }
    groups
}

/// A group that reduces in place.
struct InPlace {
    sequence: Sequence,
    /// The operations that it has then, which other groups had.
    taken: Vec<usize>,
    rest: Option<Rest>,
}

/// What is left of the sequence of a group whose operation another one has taken.
struct Rest {
    group: usize,
    sequence: Sequence,
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
        let ([first, join], moved) = moves_of(self.operations, tensor)?;
        let group = &self.groups[place];
        let reductions: Vec<_> =
            group.operations.iter().copied().filter(|&index| !group.runs_elsewhere(index)).collect();
        let source = self.operations[first].inputs().next()?;
        let between = self.operations[first].outputs().next()?;
        let is_needed = self.readers(tensor).any(|index| !reductions.contains(&index))
            || self.readers(between.id).any(|index| index != join)
            || !self.operations.iter().any(|operation| takes_or_frees(operation, tensor))
            || self.earlier(place).any(|index| index != first && takes(&self.operations[index], source.id));
        if is_needed {
            return None;
        }
        let sequence = |computed: Option<usize>| {
            let [computed, reductions] =
                [computed.as_slice(), &reductions].map(|indices| indices.iter().map(|&index| &self.operations[index]));
            Sequence::of_moved({ computed }.next(), source, &moved, reductions, self.max_tensors)
        };
        if let Some((index, rest)) = self.computed(place, first, source)
            && let Some(sequence) = sequence(Some(index))
        {
            return Some(InPlace { sequence, taken: vec![index, first, join], rest: Some(rest) });
        }
        Some(InPlace { sequence: sequence(None)?, taken: vec![first, join], rest: None })
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

    /// The operation of an earlier sequence that gives `source`, with what is left of that sequence, if only the move `first` reads the
    /// source, and the operation may run as late as the group at `place`: what it reads is neither taken nor freed before.
    fn computed(&self, place: usize, first: usize, source: &TensorIr) -> Option<(usize, Rest)> {
        let computed = gives(self.operations, source.id)?;
        let is_in_sequence = |group: &Open| {
            group.sequence.is_some() && group.operations.contains(&computed) && !group.runs_elsewhere(computed)
        };
        let at = self.groups[..place].iter().position(is_in_sequence)?;
        let inputs: HashSet<_> = self.operations[computed].inputs().map(|input| input.id).collect();
        let takes_input = |index: usize| inputs.iter().any(|&id| takes_or_frees(&self.operations[index], id));
        let is_alone = source.status == TensorStatus::ReadWrite && self.readers(source.id).eq([first]);
        if !is_alone || self.earlier(place).any(|index| index != computed && takes_input(index)) {
            return None;
        }
        let group = &self.groups[at];
        let others = group.operations.iter().filter(|&&index| index != computed && !group.runs_elsewhere(index));
        let sequence = Sequence::shared(others.map(|&index| &self.operations[index]), self.max_tensors)?;
        Some((computed, Rest { group: at, sequence }))
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
