//! Reductions of a moved tensor by groups of their own, without a copy: as the gradient of Burn's batch norm moves the channels of a
//! tensor to the front, joins all other axes, and takes the sum and the mean of each channel.
//!
//! The fuser opens a group for the reductions of one such tensor. Once the block is whole, and if nothing else reads the tensor, the
//! group [reduces axes](super::moved) of what is moved, which it may compute itself.

use super::elementwise::Sequence;
use super::merged::Open;
use super::moved::Moved;
use crate::catalogue::{self, Fused, fused, is_free};
use burn_backend::DType::F32;
use burn_deterministic_kernels::reduce;
use burn_ir::{BaseOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::HashSet;

/// The sum or the mean of rows of f32 that an operation is, and what it reduces.
pub(super) fn reduces(operation: &OperationIr) -> Option<(reduce::Operation, &TensorIr)> {
    use reduce::Operation::{Mean, Sum};
    let (input, out) = (operation.inputs().next()?, operation.outputs().next()?);
    let Fused::Reduction(reduction @ (Sum | Mean)) = fused(catalogue::operation(operation))? else { return None };
    ([input.dtype, out.dtype] == [F32; 2]).then_some((reduction, input))
}

/// The operations that move the axes of a tensor, and join the last ones, to give `tensor`.
pub(super) fn moves_of(operations: &[OperationIr], tensor: TensorId) -> Option<[usize; 2]> {
    let join = gives(operations, tensor)?;
    let OperationIr::BaseFloat(BaseOperationIr::Reshape(reshape)) = &operations[join] else { return None };
    let first = gives(operations, reshape.input.id)?;
    let (mut moved, _) = Moved::by(&operations[first])?;
    moved.join(&operations[join]).map(|()| [first, join])
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
        if let Some((group, sequence)) = rest {
            groups[group].sequence = Some(sequence);
        }
        let group = &mut groups[place];
        group.sequence = Some(sequence);
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
    /// What is left of the sequence of another group.
    rest: Option<(usize, Sequence)>,
}

struct Opened<'a> {
    groups: &'a [Open],
    operations: &'a [OperationIr],
    max_tensors: usize,
}

impl Opened<'_> {
    /// The group at `place` without a copy, if it reduces a moved tensor that nothing else needs.
    fn in_place(&self, place: usize) -> Option<InPlace> {
        let group = &self.groups[place];
        let tensor = group.reduces.filter(|_| group.sequence.is_none())?;
        let moves @ [first, join] = moves_of(self.operations, tensor)?;
        let reductions: Vec<_> =
            group.operations.iter().copied().filter(|&index| !group.runs_elsewhere(index)).collect();
        let source = self.operations[first].inputs().next()?;
        let moved = self.operations[first].outputs().next()?;
        let is_needed = self.readers(tensor).any(|index| !reductions.contains(&index))
            || self.readers(moved.id).any(|index| index != join)
            || !self.operations.iter().any(|operation| takes_or_frees(operation, tensor))
            || self.earlier(place).any(|index| index != first && takes(&self.operations[index], source.id));
        if is_needed {
            return None;
        }
        if let Some((computed, group, rest)) = self.computed(place, first, source) {
            if let Some(sequence) = self.sequence(Some(computed), moves, &reductions) {
                return Some(InPlace { sequence, taken: vec![computed, first, join], rest: Some((group, rest)) });
            }
        }
        let sequence = self.sequence(None, moves, &reductions)?;
        Some(InPlace { sequence, taken: moves.to_vec(), rest: None })
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

    /// The operation of an earlier group's sequence that gives `source`, if only the move `first` reads that and it may run later; with
    /// that group and what is left of its sequence.
    fn computed(&self, place: usize, first: usize, source: &TensorIr) -> Option<(usize, usize, Sequence)> {
        let computed = gives(self.operations, source.id)?;
        let holds = |group: &Open| group.operations.contains(&computed) && !group.runs_elsewhere(computed);
        let at = self.groups[..place].iter().position(holds)?;
        let inputs: HashSet<_> = self.operations[computed].inputs().map(|input| input.id).collect();
        let takes_input = |index: usize| inputs.iter().any(|&id| takes_or_frees(&self.operations[index], id));
        let is_alone = source.status == TensorStatus::ReadWrite && self.readers(source.id).eq([first]);
        if !is_alone || self.earlier(place).any(|index| index != computed && takes_input(index)) {
            return None;
        }
        let group = &self.groups[at];
        let others = group.operations.iter().filter(|&&index| index != computed && !group.runs_elsewhere(index));
        let rest = Sequence::shared(others.map(|&index| &self.operations[index]), self.max_tensors)?;
        Some((computed, at, rest))
    }

    fn sequence(&self, computed: Option<usize>, moves: [usize; 2], reductions: &[usize]) -> Option<Sequence> {
        let operation = |index: usize| &self.operations[index];
        let reductions = reductions.iter().map(|&index| operation(index));
        Sequence::of_moved(computed.map(operation), moves.map(operation), reductions, self.max_tensors)
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
