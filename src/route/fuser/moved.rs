//! Groups that reduce what is moved: see [`in_place`](crate::route::in_place).

use super::RouteFuser;
use crate::catalogue::is_free;
use crate::route::elementwise::{Sequence, is_move};
use crate::route::in_place::{Moves, reduces};
use crate::route::merged::{MAX_OPERATIONS, Open};
use burn_ir::{OperationIr, TensorId, TensorStatus};
use core::iter::once;

impl RouteFuser {
    /// Takes a reduction of a tensor that the block moves into a group of such, of this tensor; or a move of the result of one.
    /// Returns whether it is taken.
    pub(super) fn reduce_moved(&mut self, operation: &OperationIr) -> bool {
        if !self.has_room(operation) {
            return false;
        }
        if is_move(operation) {
            return self.move_reduced(operation);
        }
        let Some(tensor) = self.moved_operand(operation) else { return false };
        let index = self.operations.len();
        let is_of_tensor = |group: &Open| group.reduces == Some(tensor);
        if let Some(place) = self.groups.iter().chain(once(&self.group)).position(is_of_tensor) {
            return self.take_into(place, tensor, |group| group.operations.push(index));
        }
        // As the sequence does itself with an operation that it does not take.
        self.move_after();
        let begins = self.may_be_followed(operation);
        if begins {
            self.close_group(Open { operations: vec![index], reduces: Some(tensor), ..Open::default() });
        }
        begins
    }

    /// The tensor that `operation` reduces, if the block moves that, and the last group's sequence does not read it, or reduce it
    /// with what it computes.
    fn moved_operand(&self, operation: &OperationIr) -> Option<TensorId> {
        let input = reduces(operation)?;
        let last = Moves::reduced_by(operation, &self.operations)?.last();
        let moves_in_sequence = self.group.operations.contains(&last) && !self.group.runs_elsewhere(last);
        let is_left = match &self.group.sequence {
            // Moves that lead a group: what they are for comes behind them.
            None => !moves_in_sequence,
            Some(sequence) if moves_in_sequence => !sequence.only_moves() && input.status != TensorStatus::ReadWrite,
            Some(sequence) => !sequence.binds(input.id),
        };
        is_left.then_some(input.id)
    }

    /// Takes a move of the result of a group of reductions to after these. Returns whether it does.
    fn move_reduced(&mut self, operation: &OperationIr) -> bool {
        let Some(input) = operation.inputs().next() else { return false };
        let id = input.id;
        let gives = |index: &usize| self.operations[*index].outputs().any(|output| output.id == id);
        let is_of_result = |group: &Open| group.reduces.is_some() && group.operations.iter().any(gives);
        let Some(place) = self.groups.iter().chain(once(&self.group)).position(is_of_result) else { return false };
        let index = self.operations.len();
        self.take_into(place, id, |group| {
            group.operations.push(index);
            group.after.push(index);
        })
    }

    /// Has a group take an operation that reads `tensor`, if the group has room, and no later one reads that. Returns whether it does.
    fn take_into(&mut self, place: usize, tensor: TensorId, take: impl FnOnce(&mut Open)) -> bool {
        let reads = |operation: &OperationIr| operation.inputs().any(|input| input.id == tensor);
        let mut later = self.groups.iter().chain(once(&self.group)).skip(place + 1);
        let is_read_later = later.any(|group| self.operations_of(group).any(reads));
        let count = self.groups.len();
        let group = if place < count { &mut self.groups[place] } else { &mut self.group };
        let may = !is_read_later && group.operations.len() < MAX_OPERATIONS;
        if may {
            take(group);
        }
        may
    }

    /// Takes one more operation where the last group reduces `tensor`: a free; or what reads the tensor too, or a result, so that they are
    /// a sequence of rows. Returns whether `operation` is taken.
    pub(super) fn go_on_behind_reductions(&mut self, tensor: TensorId, operation: &OperationIr) -> bool {
        if is_free(operation) {
            if self.concerns_after(operation) {
                self.take_after(true);
            }
            return true;
        }
        let reads = operation.inputs().any(|input| input.id == tensor) || self.reads_result(operation);
        if !reads || self.concerns_after(operation) {
            return false;
        }
        let in_sequence = self.group.operations.iter().filter(|&&index| !self.group.runs_elsewhere(index));
        let mut operations = in_sequence.map(|&index| &self.operations[index]);
        let sequence = operations.next().and_then(|first| Sequence::new(first, self.max_tensors, true));
        let Some(mut sequence) = sequence else { return false };
        let is_sequence = operations.all(|other| sequence.take(other)) && sequence.take(operation);
        if is_sequence {
            (self.group.sequence, self.group.reduces) = (Some(sequence), None);
        }
        is_sequence
    }
}
