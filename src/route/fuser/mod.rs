//! The optimization that takes every operation.

mod apart;
mod moved;

use crate::backend::copy_by_host;
use crate::catalogue::is_free;
use crate::device::note_use;
use crate::exit;
use crate::route::block::Block;
use crate::route::elementwise::{Sequence, is_move, is_pure};
use crate::route::in_place::reduced_in_place;
use crate::route::merged::{MAX_OPERATIONS, Open, merged};
use crate::route::moved::{Moved, moves};
use crate::route::products::product;
use crate::route::{coverage, execution_plans};
use crate::settings::is_observing;
use apart::{groups, is_lead};
use burn_backend::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider};
use burn_deterministic_kernels::elementwise::shares_launches;
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::{OperationIr, TensorIr, TensorStatus};
use core::iter::once;

/// No group begins in a block of so many operations: updates of some thirty parameters.
const MAX_OPERATIONS_OF_GROUPS: usize = 512;

/// The same where there are products: the device waits until the program has issued the operations.
const MAX_OPERATIONS_OF_PRODUCTS: usize = 128;

/// Bindings a kernel needs besides its tensors: their metadata and its scalars.
const OTHER_BINDINGS: usize = 3;

pub(super) struct RouteProvider;

impl OptimizationProvider for RouteProvider {
    type Operation = Block;

    fn fuser(&self, device: &CubeDevice) -> CubeFuser {
        let device = execution_plans::device_of_server(device);
        if !is_observing() {
            copy_by_host(&device);
        }
        let is_first_use = note_use(&device);
        coverage::covered();
        execution_plans::queue_made(&device);
        let fuser = RouteFuser::new(device.clone());
        if is_first_use {
            exit::wait_for(&device);
        }
        CubeFuser::new(fuser)
    }
}

/// Takes operations into groups. A group is a sequence of element-wise operations, with moves, products and reductions before it and
/// between its operations, and moves of its results; or such moves, products and reductions alone; or any other operation by itself,
/// with the frees after it. Groups of the first two kinds [follow each other](RouteFuser::may_precede_others) in a block. An operation
/// goes to the last group; or to an earlier one that it reads a result of, if it has nothing to do with those between; or begins one.
/// Reductions of what is [moved] are groups too. In the end some are [merged], and products and reductions [apart] from others.
#[derive(Clone)]
pub(super) struct RouteFuser {
    device: CubeDevice,
    max_tensors: usize,
    operations: Vec<OperationIr>,
    /// Those before the last.
    groups: Vec<Open>,
    /// The last.
    group: Open,
    closed: bool,
}

impl RouteFuser {
    pub(super) fn new(device: CubeDevice) -> Self {
        let bindings = device.client().properties().hardware.max_bindings as usize;
        let max_tensors = bindings.saturating_sub(OTHER_BINDINGS);
        Self { device, max_tensors, operations: Vec::new(), groups: Vec::new(), group: Open::default(), closed: false }
    }

    /// The operations of a group.
    fn operations_of<'a>(&'a self, group: &'a Open) -> impl Iterator<Item = &'a OperationIr> {
        group.operations.iter().map(|&index| &self.operations[index])
    }

    /// The operations of the last group.
    fn of_group(&self) -> impl Iterator<Item = &OperationIr> {
        self.operations_of(&self.group)
    }

    /// Begins the group or, behind moves, products and reductions, a sequence; or takes one more of these, or a free. Returns
    /// whether `operation` is taken.
    ///
    /// Behind other operations than these nothing else runs in the block, since its failure would concern that.
    fn begin(&mut self, operation: &OperationIr) -> bool {
        if is_free(operation) {
            return true;
        }
        let is_empty = self.group.operations.is_empty();
        let leads = self.of_group().all(is_lead);
        let continues = self.of_group().all(is_free) || (leads && self.reads_result(operation));
        let sequence = if continues { Sequence::new(operation, self.max_tensors, true) } else { None };
        let operations = core::mem::take(&mut self.group.operations);
        let before = if sequence.is_some() { operations.clone() } else { Vec::new() };
        self.group = Open { operations, sequence, before, ..Open::default() };
        continues && (self.group.sequence.is_some() || is_empty || is_pure(operation)) || leads && is_move(operation)
    }

    /// Takes one more operation: into the sequence, before it, or after it. Returns whether `operation` is taken.
    fn go_on(&mut self, operation: &OperationIr) -> bool {
        if self.concerns_after(operation) {
            return self.take_after(is_free(operation) || is_move(operation) && !may_be_reduced(operation));
        }
        let Some(sequence) = &mut self.group.sequence else { return false };
        if sequence.take(operation) {
            return true;
        }
        if sequence.can_run_before(operation) {
            self.group.before.push(self.operations.len());
            return true;
        }
        if sequence.only_moves() {
            // Nothing is computed yet.
            return self.begin(operation);
        }
        if sequence.moves_a_result() {
            self.move_after();
            return self.go_on(operation);
        }
        let is_bound = operation.inputs().all(|input| sequence.binds(input.id));
        // By itself it may begin a sequence that reduces what it moves, without a copy; and so may a group that follows.
        let moves_axes = Moved::by(operation).is_some_and(|(_, input)| input.dtype == DType::F32);
        self.take_after(is_move(operation) && is_bound && (!moves_axes || self.may_be_followed(operation)))
    }

    /// Takes an operation into the sequence of an earlier group that it reads a result of: an activation behind a norm, with the
    /// norm's statistics between. Returns whether it is taken.
    fn join(&mut self, operation: &OperationIr) -> bool {
        let reads_result_of = |other: &OperationIr| {
            { operation.inputs() }.any(|input| other.outputs().any(|output| output.id == input.id))
        };
        let takes_operand_of = |other: &OperationIr| {
            let taken = operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite);
            taken.into_iter().any(|input| other.inputs().any(|read| read.id == input.id))
        };
        let concerns = |other: &OperationIr| reads_result_of(other) || takes_operand_of(other);
        let Some(place) = self.groups.iter().rposition(|group| self.operations_of(group).any(reads_result_of)) else {
            return false;
        };
        let group = &self.groups[place];
        let is_full = group.operations.len() >= MAX_OPERATIONS || !self.has_room(operation);
        let mut after = group.after.iter().map(|&index| &self.operations[index]);
        let mut later = self.groups[place + 1..].iter().chain(once(&self.group));
        let concerns_group = |group: &Open| self.operations_of(group).any(concerns);
        if is_full || is_move(operation) || after.any(concerns) || later.any(concerns_group) {
            return false;
        }
        let Some(mut sequence) = group.sequence.clone() else { return false };
        let taken = sequence.take(operation) && sequence.may_share();
        if taken {
            let index = self.operations.len();
            let group = &mut self.groups[place];
            group.sequence = Some(sequence);
            group.operations.push(index);
        }
        taken
    }

    /// Begins another group with an operation that the group does not take. Returns whether it does.
    fn begin_group(&mut self, operation: &OperationIr) -> bool {
        if !self.has_room(operation) {
            return false;
        }
        let next = Sequence::new(operation, self.max_tensors, true).filter(|next| !next.only_moves());
        match next {
            Some(_) if self.may_precede_others() => {
                self.close_group(Open { sequence: next, ..Open::default() });
                true
            }
            None if self.group.sequence.is_some() && self.reduce_in_group(operation) => true,
            None if self.may_precede_others() && is_pure(operation) => {
                self.close_group(Open::default());
                self.begin(operation)
            }
            _ => false,
        }
    }

    /// Whether a group may begin, or an earlier one go on, with `operation`.
    fn has_room(&self, operation: &OperationIr) -> bool {
        let has_products = self.operations.iter().chain([operation]).any(|operation| product(operation).is_some());
        let most = if has_products { MAX_OPERATIONS_OF_PRODUCTS } else { MAX_OPERATIONS_OF_GROUPS };
        self.operations.len() < most
    }

    /// Whether other groups may follow the last one: it checks no indices, draws nothing, and nothing of it is refused but for its size.
    fn may_precede_others(&self) -> bool {
        match &self.group.sequence {
            Some(sequence) => !sequence.has_indices() && !sequence.finds_extremes(),
            None => self.of_group().all(is_lead),
        }
    }

    /// Whether another group may follow the last one with `operation`, whose launches may be shared.
    fn may_be_followed(&self, operation: &OperationIr) -> bool {
        let may_share = self.group.sequence.as_ref().is_some_and(Sequence::may_share);
        self.has_room(operation) && (may_share || self.group.reduces.is_some())
    }

    /// Begins another group with a reduction and the operation before it, which gives what is reduced and reads no result of the
    /// group: the square of a gradient that follows the update of a parameter of its shape. Returns whether it does.
    fn reduce_in_group(&mut self, reduction: &OperationIr) -> bool {
        let Some((&last, others)) = self.group.operations.split_last().filter(|_| !is_free(reduction)) else {
            return false;
        };
        let (reduced, mut others) = (&self.operations[last], others.iter().map(|&index| &self.operations[index]));
        let is_reduced = reduction.inputs().all(|input| reduced.outputs().any(|output| output.id == input.id));
        let reads =
            |other: &OperationIr| { reduced.inputs() }.any(|input| other.outputs().any(|output| output.id == input.id));
        if !is_reduced || others.any(reads) || self.group.runs_elsewhere(last) {
            return false;
        }
        let Some(next) = Sequence::shared([reduced, reduction], self.max_tensors) else { return false };
        let indices = self.group.operations.iter().filter(|&&index| index != last && !self.group.runs_elsewhere(index));
        let group = indices.map(|&index| &self.operations[index]);
        let Some(group) = Sequence::shared(group, self.max_tensors) else { return false };
        self.group.sequence = Some(group);
        self.group.operations.pop();
        self.close_group(Open { operations: vec![last], sequence: Some(next), ..Open::default() });
        true
    }

    /// Begins the group `next`.
    fn close_group(&mut self, next: Open) {
        self.move_after();
        self.groups.push(core::mem::replace(&mut self.group, next));
    }

    /// Closes the last group. Returns all.
    fn close(&mut self) -> Vec<Open> {
        self.move_after();
        let mut groups = core::mem::take(&mut self.groups);
        groups.push(core::mem::take(&mut self.group));
        groups
    }

    /// Takes the next operation to run after the sequence, if it `may`. Returns that.
    fn take_after(&mut self, may: bool) -> bool {
        if may {
            self.group.after.push(self.operations.len());
        }
        may
    }

    /// Whether `operation` reads or frees a result of what runs after the sequence, or takes away or frees what that reads.
    fn concerns_after(&self, operation: &OperationIr) -> bool {
        let after = || self.group.after.iter().map(|&index| &self.operations[index]);
        let is_result = |id| after().any(|moved| moved.outputs().any(|out| out.id == id));
        let is_read = |id| after().any(|moved| moved.inputs().any(|input| input.id == id));
        match operation {
            OperationIr::Drop(tensor) => is_result(tensor.id) || is_read(tensor.id),
            _ => { operation.inputs() }
                .any(|input| is_result(input.id) || input.status == TensorStatus::ReadWrite && is_read(input.id)),
        }
    }

    /// Leaves the moves of a result, which no reduction has followed, and what comes behind them to after the sequence.
    fn move_after(&mut self) {
        let is_moving = |sequence: &&mut Sequence| sequence.moves_a_result();
        let Some(sequence) = self.group.sequence.as_mut().filter(is_moving) else { return };
        sequence.stop_moving();
        let in_sequence = self.group.operations.iter().copied().filter(|&index| !self.group.runs_elsewhere(index));
        let moved: Vec<_> = in_sequence.skip_while(|&index| !moves(&self.operations[index])).collect();
        self.group.after.extend(moved);
        self.group.after.sort_unstable();
    }

    /// Whether `operation` reads a result of the group.
    fn reads_result(&self, operation: &OperationIr) -> bool {
        let mut results = self.of_group().flat_map(OperationIr::outputs);
        results.any(|result| operation.inputs().any(|input| input.id == result.id))
    }

    /// Whether a sequence with what runs after it, or what runs before it, has as many operations as it may.
    fn is_full(&self) -> bool {
        let before = self.group.before.len();
        before.max(self.group.operations.len() - before) >= MAX_OPERATIONS
    }
}

/// Whether `operation` moves axes of a tensor of f32 that lives on: it may begin a sequence that reduces them without a copy, as the
/// statistics of a batch norm.
fn may_be_reduced(operation: &OperationIr) -> bool {
    let lives_on = |input: &TensorIr| input.dtype == DType::F32 && input.status != TensorStatus::ReadWrite;
    Moved::by(operation).is_some_and(|(_, input)| lives_on(input))
}

impl OperationFuser<CubeOptimization> for RouteFuser {
    fn fuse(&mut self, operation: &OperationIr) {
        // Burn takes as many operations from its queue as the fuser has, so they must be the first ones.
        if self.closed {
            return;
        }
        let joins = self.reduce_moved(operation) || self.join(operation);
        let goes_on = !joins
            && match self.group {
                _ if self.is_full() => false,
                Open { reduces: Some(tensor), .. } => self.go_on_behind_reductions(tensor, operation),
                Open { sequence: None, .. } => self.begin(operation),
                _ => self.go_on(operation),
            };
        let is_in_last = goes_on || !joins && self.begin_group(operation);
        if is_in_last {
            self.group.operations.push(self.operations.len());
        }
        let taken = is_in_last || joins;
        if taken {
            self.operations.push(operation.clone());
        }
        // Open until the next operation comes: what a read finds pending is what it waits for, and only then is there an
        // occasion to report indices out of range.
        self.closed |= !taken;
    }

    fn finish(&mut self) -> CubeOptimization {
        let opened = self.close();
        let operations = core::mem::take(&mut self.operations);
        execution_plans::made(&operations, &self.device);
        let inlines = shares_launches(&self.device.client());
        let merged = merged(reduced_in_place(opened, &operations, self.max_tensors), &operations, inlines);
        let groups = groups(merged, &operations, self.max_tensors);
        CubeOptimization::new(Block::new(self.device.clone(), operations, groups))
    }

    fn reset(&mut self) {
        self.operations.clear();
        self.groups.clear();
        self.group = Open::default();
        self.closed = false;
    }

    fn status(&self) -> FuserStatus {
        match self.closed {
            true => FuserStatus::Closed,
            false => FuserStatus::Open,
        }
    }

    fn properties(&self) -> FuserProperties {
        FuserProperties { score: self.len() as u64, ready: !self.is_empty() }
    }

    fn len(&self) -> usize {
        self.operations.len()
    }

    fn clone_dyn(&self) -> Box<dyn OperationFuser<CubeOptimization>> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
