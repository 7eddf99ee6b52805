//! The optimization that takes every operation.

use super::block::Block;
use super::elementwise::{Sequence, is_move, is_pure};
use super::groups::Group;
use super::merged::{MAX_OPERATIONS, Open, merged};
use super::moved::{Moved, moves};
use super::{coverage, execution_plans};
use crate::catalogue::is_free;
use crate::device::note_use;
use crate::exit;
use burn_backend::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider};
use burn_deterministic_kernels::elementwise::shares_launches;
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::{OperationIr, TensorIr, TensorStatus};
use core::iter::once;

/// Most operations in a block of several groups: updates of some thirty parameters.
const MAX_OPERATIONS_OF_GROUPS: usize = 512;

/// Bindings a kernel needs besides its tensors: their metadata and its scalars.
const OTHER_BINDINGS: usize = 3;

pub(super) struct RouteProvider;

impl OptimizationProvider for RouteProvider {
    type Operation = Block;

    fn fuser(&self, device: &CubeDevice) -> CubeFuser {
        let device = execution_plans::device_of_server(device);
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

/// Takes operations into groups. A group is a sequence of element-wise operations, with moves and products before it and between its
/// operations, and moves of its results; or any other operation by itself, with the frees after it. Groups follow each other in a
/// block while they may [share launches](Sequence::may_share). An operation goes to the last group; or to an earlier one that it reads
/// a result of, if it has nothing to do with those between; or begins one. In the end some are [merged].
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
    /// A failure concerns the whole block, so what computes reads a result of it, or is element-wise.
    fn begin(&mut self, operation: &OperationIr) -> bool {
        if is_free(operation) {
            return true;
        }
        let is_empty = self.group.operations.is_empty();
        let leads = self.of_group().all(|operation| is_pure(operation) || is_free(operation));
        let continues = self.of_group().all(is_free) || (leads && self.reads_result(operation));
        let sequence = if continues { Sequence::new(operation, self.max_tensors, true) } else { None };
        let operations = core::mem::take(&mut self.group.operations);
        let before = if sequence.is_some() { operations.clone() } else { Vec::new() };
        self.group = Open { operations, sequence, before, after: Vec::new() };
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
        // By itself it may begin a sequence that reduces what it moves, without a copy.
        let moves_axes = Moved::by(operation).is_some_and(|(_, input)| input.dtype == DType::F32);
        self.take_after(is_move(operation) && is_bound && !moves_axes)
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
        let is_full = group.operations.len() >= MAX_OPERATIONS || self.operations.len() >= MAX_OPERATIONS_OF_GROUPS;
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

    /// Begins another group with an operation that the group does not take, where launches of both may be shared. Returns whether it
    /// does.
    fn begin_group(&mut self, operation: &OperationIr) -> bool {
        let moves_alone = self.group.before.iter().all(|&index| {
            let operation = &self.operations[index];
            is_move(operation) || is_free(operation)
        });
        if !moves_alone || self.operations.len() >= MAX_OPERATIONS_OF_GROUPS {
            return false;
        }
        let may_share = self.group.sequence.as_ref().is_some_and(Sequence::may_share);
        match Sequence::new(operation, self.max_tensors, true) {
            Some(next) if may_share && !next.only_moves() => {
                self.close_group(next, vec![]);
                true
            }
            Some(_) => false,
            None => self.reduce_in_group(operation),
        }
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
        let Some(next) = self.shared_sequence([reduced, reduction]) else { return false };
        let indices = self.group.operations.iter().filter(|&&index| index != last && !self.group.runs_elsewhere(index));
        let Some(group) = self.shared_sequence(indices.map(|&index| &self.operations[index])) else { return false };
        self.group.sequence = Some(group);
        self.group.operations.pop();
        self.close_group(next, vec![last]);
        true
    }

    /// The sequence of all the operations, if its launches may be shared.
    fn shared_sequence<'a>(&self, operations: impl IntoIterator<Item = &'a OperationIr>) -> Option<Sequence> {
        let mut operations = operations.into_iter();
        let mut sequence = Sequence::new(operations.next()?, self.max_tensors, true)?;
        operations.all(|operation| sequence.take(operation)).then_some(sequence).filter(Sequence::may_share)
    }

    /// Begins a group with a sequence, which has these operations and the next one.
    fn close_group(&mut self, sequence: Sequence, operations: Vec<usize>) {
        self.move_after();
        let next = Open { operations, sequence: Some(sequence), ..Open::default() };
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
        let joins = self.join(operation);
        let goes_on = !joins
            && match self.group.sequence {
                _ if self.is_full() => false,
                None => self.begin(operation),
                Some(_) => self.go_on(operation),
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
        let merged = merged(opened, &operations, inlines);
        let groups = merged.into_iter().enumerate().flat_map(|(index, group)| {
            let Open { operations: indices, sequence, before, after } = group;
            let groups = Group::all_of(sequence, &operations, indices, before, after);
            groups.into_iter().map(move |group| group.of_sequence(index))
        });
        let groups = groups.collect();
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
mod tests {
    use super::{MAX_OPERATIONS, MAX_OPERATIONS_OF_GROUPS, Open, RouteFuser};
    use burn_backend::{DType, Shape};
    use burn_cubecl::CubeDevice;
    use burn_fusion::{FuserStatus, OperationFuser};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, FloatOperationIr, IrVisitorMut, MatmulOpIr, NumericOperationIr, OperationIr,
        ReduceDimOpIr, ReduceOpIr, SelectOpIr, ShapeOpIr, SwapDimsOpIr, TensorId, TensorIr, TensorStatus,
    };

    fn tensor(id: u64) -> TensorIr {
        let (id, shape) = (TensorId::new(id), Shape::new([1, 2]));
        TensorIr { id, shape, status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    fn product(lhs: u64, rhs: u64, out: u64) -> OperationIr {
        let product = MatmulOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
        OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product))
    }

    fn swap(input: u64, out: u64) -> OperationIr {
        let swap = SwapDimsOpIr { input: tensor(input), out: tensor(out), dim1: 0, dim2: 1 };
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap))
    }

    fn reshape(input: u64, out: u64) -> OperationIr {
        OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input: tensor(input), out: tensor(out) }))
    }

    fn sum(lhs: u64, rhs: u64, out: u64) -> OperationIr {
        let sum = BinaryOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
    }

    fn select(out: u64) -> OperationIr {
        let indices = TensorIr { dtype: DType::I32, ..tensor(91) };
        let select = SelectOpIr { tensor: tensor(90), dim: 0, indices, out: tensor(out) };
        OperationIr::BaseFloat(BaseOperationIr::Select(select))
    }

    /// The groups that the operations open, and how many operations are taken.
    fn opened(operations: &[OperationIr]) -> (Vec<Open>, usize) {
        let mut fuser = RouteFuser {
            device: CubeDevice::default(),
            max_tensors: 16,
            operations: Vec::new(),
            groups: Vec::new(),
            group: Open::default(),
            closed: false,
        };
        operations.iter().for_each(|operation| fuser.fuse(operation));
        assert_eq!(fuser.status() == FuserStatus::Closed, fuser.len() < operations.len());
        let groups = fuser.close();
        let has_place = |group: &Open| group.sequence.is_some() || group.before.is_empty() && group.after.is_empty();
        assert!(groups.iter().all(has_place));
        (groups, fuser.len())
    }

    /// How many operations each group of a block has.
    fn groups(operations: &[OperationIr]) -> Vec<usize> {
        let (groups, count) = opened(operations);
        let mut all: Vec<_> = groups.iter().flat_map(|group| group.operations.clone()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..count), "each is in one group");
        groups.into_iter().map(|group| group.operations.len()).collect()
    }

    /// How many of the operations the first group of a block takes, and the group.
    fn first(operations: &[OperationIr]) -> (usize, Open) {
        (groups(operations)[0], opened(operations).0.swap_remove(0))
    }

    /// How many of the operations the first group takes, and which of these run before a sequence.
    fn block(operations: &[OperationIr]) -> (usize, Vec<usize>) {
        let (count, group) = first(operations);
        assert_eq!(group.after, [0; 0]);
        (count, group.before)
    }

    /// How many of the operations the first group takes, and which of these run before a sequence and after it.
    fn around(operations: &[OperationIr]) -> (usize, [Vec<usize>; 2]) {
        let (count, group) = first(operations);
        (count, [group.before, group.after])
    }

    /// `operation`, with the last use of its operands.
    fn last(mut operation: OperationIr) -> OperationIr {
        struct Last;
        impl IrVisitorMut for Last {
            fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
                tensor.status = TensorStatus::ReadWrite;
            }
        }
        operation.visit_mut(&mut Last);
        operation
    }

    #[test]
    fn products_and_moves_lead_a_sequence_and_run_before_it() {
        assert_eq!(block(&[product(0, 1, 2), reshape(3, 4), sum(2, 4, 5), select(6)]), (3, vec![0, 1]));
        assert_eq!(
            block(&[swap(0, 1), product(2, 1, 3), sum(3, 4, 5)]),
            (3, vec![0, 1]),
            "what only moves is no sequence"
        );
        let freed = OperationIr::Drop(tensor(0));
        assert_eq!(block(&[product(0, 1, 2), freed, sum(2, 4, 5), product(6, 7, 8)]), (4, vec![0, 1, 3]));
        assert_eq!(block(&[product(0, 1, 2), product(2, 3, 4), select(5)]), (2, vec![]), "no sequence at all");
    }

    #[test]
    fn moves_of_results_run_after_the_sequence_which_goes_on() {
        let heads = |product_of: u64, bias: u64| {
            [
                product(0, 1, product_of),
                sum(product_of, 90, bias),
                last(reshape(bias, bias + 1)),
                last(swap(bias + 1, bias + 2)),
            ]
        };
        let operations = [&heads(2, 10)[..], &heads(3, 20), &heads(4, 30), &[product(12, 22, 40)]].concat();
        assert_eq!(around(&operations), (12, [vec![0, 4, 8], vec![2, 3, 6, 7, 10, 11]]));
        let read = [sum(0, 1, 2), reshape(2, 3), sum(2, 4, 5), sum(5, 3, 6)];
        assert_eq!(around(&read), (3, [vec![], vec![1]]), "what reads a moved result comes later");
        assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), product(3, 4, 5)]), (2, [vec![], vec![1]]));
        assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), product(4, 5, 6)]), (3, [vec![2], vec![1]]));
        assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), last(sum(2, 4, 5))]), (2, [vec![], vec![1]]), "taken away");
        assert_eq!(around(&[sum(0, 1, 2), swap(2, 3)]), (1, [vec![], vec![]]), "another sequence may reduce it");
    }

    #[test]
    fn an_operand_is_moved_away_after_the_sequence() {
        assert_eq!(around(&[sum(0, 1, 2), last(reshape(0, 3)), sum(2, 4, 5)]), (3, [vec![], vec![1]]));
        assert_eq!(around(&[sum(0, 1, 2), reshape(0, 3), sum(3, 4, 5)]), (3, [vec![1], vec![]]), "it lives on");
    }

    #[test]
    fn axes_of_a_result_are_moved_after_the_sequence_where_no_reduction_follows() {
        let moved = last(swap(2, 3));
        assert_eq!(around(&[sum(0, 1, 2), moved.clone()]), (2, [vec![], vec![1]]));
        assert_eq!(around(&[sum(0, 1, 2), moved.clone(), last(reshape(3, 4))]), (3, [vec![], vec![1, 2]]));
        let operations = [sum(0, 1, 2), moved.clone(), product(5, 6, 7), sum(7, 1, 8), last(swap(8, 9))];
        assert_eq!(around(&operations), (5, [vec![2], vec![1, 4]]));
        assert_eq!(around(&[sum(0, 1, 2), moved, product(3, 6, 7)]), (2, [vec![], vec![1]]));
    }

    #[test]
    fn what_is_reduced_and_not_read_leaves_nothing_to_after_it() {
        let shaped = |id, shape: &[usize]| TensorIr { shape: Shape::from(shape.to_vec()), ..tensor(id) };
        let moved = SwapDimsOpIr { input: shaped(0, &[2, 3, 4]), out: shaped(1, &[3, 2, 4]), dim1: 0, dim2: 1 };
        let flat = ShapeOpIr { input: shaped(1, &[3, 2, 4]), out: shaped(2, &[3, 8]) };
        let mean = ReduceDimOpIr { input: shaped(2, &[3, 8]), out: shaped(3, &[3, 0]), axis: 1, accumulator_len: 1 };
        let operations = [
            OperationIr::BaseFloat(BaseOperationIr::SwapDims(moved)),
            last(OperationIr::BaseFloat(BaseOperationIr::Reshape(flat))),
            last(OperationIr::NumericFloat(DType::F32, NumericOperationIr::MeanDim(mean))),
            last(OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr {
                input: shaped(0, &[2, 3, 4]),
                out: shaped(4, &[6, 4]),
            }))),
            OperationIr::Drop(shaped(3, &[3, 0])),
            reshape(5, 6),
            sum(6, 7, 8),
        ];
        assert_eq!(around(&operations[..4]), (4, [vec![], vec![3]]));
        assert_eq!(around(&operations), (7, [(0..6).collect(), vec![]]), "each runs once");
    }

    #[test]
    fn axes_that_may_be_reduced_end_the_block() {
        assert_eq!(around(&[sum(0, 1, 2), last(reshape(2, 3)), swap(3, 4)]), (2, [vec![], vec![1]]));
        assert_eq!(around(&[sum(0, 1, 2), last(reshape(2, 3)), last(swap(3, 4))]), (3, [vec![], vec![1, 2]]));
    }

    #[test]
    fn what_runs_after_a_sequence_is_in_program_order() {
        let operations = [sum(0, 1, 2), sum(0, 1, 5), reshape(5, 6), last(swap(2, 3)), reshape(6, 7), sum(0, 1, 8)];
        assert_eq!(around(&operations), (6, [vec![], vec![2, 3, 4]]));
    }

    #[test]
    fn what_a_move_reads_or_writes_is_freed_after_it() {
        let freed = |id| OperationIr::Drop(tensor(id));
        let operations = [sum(0, 1, 2), reshape(2, 3), freed(0), freed(2), freed(3), sum(4, 5, 6)];
        assert_eq!(around(&operations), (6, [vec![], vec![1, 3, 4]]));
        let moved = [sum(0, 1, 2), last(swap(2, 3)), freed(3), sum(4, 5, 6)];
        assert_eq!(around(&moved), (4, [vec![], vec![1, 2]]));
    }

    #[test]
    fn a_block_ends() {
        let after: Vec<_> = (2..80).map(|n| last(reshape(n, n + 1))).collect();
        assert_eq!(around(&[&[sum(0, 1, 2)][..], &after].concat()).0, MAX_OPERATIONS);
    }

    #[test]
    fn as_many_run_before_as_a_sequence_has() {
        let moves = |count| (0..count).map(|n| swap(n, n + 1));
        assert_eq!(block(&moves(70).collect::<Vec<_>>()).0, MAX_OPERATIONS + 1);
        let sums = (60..130).map(|n| {
            let lhs = TensorIr { status: TensorStatus::ReadWrite, ..tensor(n) };
            let sum = BinaryOpIr { lhs, rhs: tensor(200), out: tensor(n + 1) };
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
        });
        let (count, before) = block(&moves(60).chain(sums).collect::<Vec<_>>());
        assert_eq!((count, before.len()), (60 + MAX_OPERATIONS, 60));
    }

    #[test]
    fn what_computes_reads_a_result_of_the_block() {
        assert_eq!(block(&[product(0, 1, 2), product(3, 4, 5)]), (1, vec![]));
        assert_eq!(block(&[product(0, 1, 2), sum(3, 4, 5)]), (1, vec![]));
        assert_eq!(block(&[swap(0, 1), sum(3, 4, 5)]), (1, vec![]));
        assert_eq!(block(&[product(0, 1, 2), swap(3, 4), product(5, 6, 7)]), (2, vec![]));
        assert_eq!(block(&[product(0, 1, 2), swap(3, 4), sum(2, 4, 7)]), (3, vec![0, 1]));
    }

    #[test]
    fn other_operations_run_by_themselves() {
        let freed = OperationIr::Drop(tensor(90));
        assert_eq!(block(&[select(0), freed, sum(0, 1, 2)]), (2, vec![]));
        assert_eq!(block(&[select(0), product(0, 1, 2)]), (1, vec![]));
        assert_eq!(block(&[product(0, 1, 2), select(3)]), (1, vec![]));
        assert_eq!(block(&[sum(0, 1, 2), select(3)]), (1, vec![]));
    }

    #[test]
    fn a_reduction_that_a_sequence_has_no_room_for_begins_a_group_with_what_it_reduces() {
        let total = |input| {
            let out = TensorIr { shape: Shape::new([1]), ..tensor(60) };
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(ReduceOpIr { input: tensor(input), out }))
        };
        let update: Vec<_> = (0..20).map(|n| last(sum(n, 90, n + 1))).collect();
        let followed_by = |others: &[OperationIr]| groups(&[&update[..], others].concat());
        assert_eq!(groups(&[sum(50, 50, 51), last(total(51))]), [2], "room for it");
        assert_eq!(followed_by(&[sum(50, 50, 51), last(total(51))]), [20, 2]);
        assert_eq!(followed_by(&[sum(50, 50, 51), last(total(51)), sum(70, 71, 72)]), [20, 2, 1]);
        let moved = [last(reshape(20, 21)), sum(50, 50, 51), last(total(51))];
        assert_eq!(followed_by(&moved), [21, 2]);
        let (opened, _) = opened(&[&update[..], &moved].concat());
        assert_eq!((&opened[0].after[..], &opened[1].before[..], &opened[1].after[..]), (&[20][..], &[][..], &[][..]));
        assert_eq!(followed_by(&[sum(50, 20, 51), last(total(51))]), [21], "it reads a result of the sequence");
        assert_eq!(followed_by(&[sum(50, 50, 51), sum(50, 50, 52), last(total(51))]), [22], "not the last");
        let after = [sum(50, 50, 51), last(reshape(50, 52)), last(total(51))];
        assert_eq!(followed_by(&after), [22], "what moves its operand away runs after it");
    }

    #[test]
    fn an_operation_joins_the_group_that_it_reads_a_result_of() {
        let column = |id| TensorIr { shape: Shape::new([2, 1]), ..tensor(id) };
        let sum_of = |lhs, rhs, out| {
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: column(out) }))
        };
        let (rows, columns) = (sum(0, 1, 2), sum_of(column(3), column(4), 5));
        let then = |others: &[OperationIr]| groups(&[&[rows.clone(), columns.clone()], others].concat());
        assert_eq!(then(&[sum(2, 0, 6)]), [2, 1]);
        assert_eq!(then(&[last(sum(2, 0, 6)), sum(6, 6, 7), sum_of(column(5), column(4), 8)]), [3, 2]);
        assert_eq!(then(&[sum(2, 5, 6)]), [1, 1, 1], "it reads a result of the group between");
        assert_eq!(then(&[sum(9, 0, 6)]), [1, 1, 1], "it reads no result");
        assert_eq!(then(&[last(sum(2, 4, 6))]), [1, 1, 1], "it takes away an operand of the group between");
        let moved = [rows.clone(), reshape(2, 9), columns.clone()];
        assert_eq!(groups(&[&moved[..], &[sum(2, 0, 6)]].concat()), [3, 1]);
        assert_eq!(groups(&[&moved[..], &[last(sum(2, 0, 6))]].concat()), [2, 1, 1], "it takes away what is moved");
        assert_eq!(groups(&[&moved[..], &[sum(9, 0, 6)]].concat()), [2, 1, 1], "it reads what is moved after");
        let many: Vec<_> = (100..198).map(|n| last(sum(if n == 100 { 2 } else { n }, 90, n + 1))).collect();
        let behind = groups(&[&[rows, columns][..], &many].concat());
        assert_eq!(behind, [MAX_OPERATIONS, 1, 98 - (MAX_OPERATIONS - 1)], "it is full");
    }

    #[test]
    fn a_sequence_behind_frees_is_of_their_block() {
        let freed = OperationIr::Drop(tensor(90));
        assert_eq!(block(&[freed.clone(), sum(0, 1, 2), sum(2, 1, 3)]), (3, vec![0]));
        assert_eq!(
            block(&[freed.clone(), freed.clone(), swap(0, 1), product(1, 2, 3), sum(3, 4, 5)]),
            (5, (0..4).collect())
        );
        assert_eq!(block(&[freed.clone(), product(0, 1, 2), sum(2, 4, 5)]), (3, vec![0, 1]));
        assert_eq!(block(&[freed, select(0)]), (1, vec![]));
    }

    #[test]
    fn groups_of_other_shapes_follow_each_other() {
        let column = |id| TensorIr { shape: Shape::new([2, 1]), ..tensor(id) };
        let sum_of_columns = |lhs, rhs, out| {
            let sum = BinaryOpIr { lhs: column(lhs), rhs: column(rhs), out: column(out) };
            OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
        };
        let (rows, columns) = (sum(0, 1, 2), sum_of_columns(3, 4, 5));
        assert_eq!(groups(&[rows.clone(), columns.clone(), sum(6, 7, 8)]), [1, 1, 1]);
        assert_eq!(groups(&[rows.clone(), reshape(2, 9), sum(9, 0, 10), columns.clone()]), [2, 1, 1]);
        let freed = OperationIr::Drop(tensor(2));
        assert_eq!(groups(&[rows.clone(), columns.clone(), freed, columns.clone()]), [2, 2]);
        assert_eq!(groups(&[product(0, 1, 2), sum(2, 1, 3), columns.clone()]), [2], "a product runs before it");
        assert_eq!(
            groups(&[rows.clone(), columns.clone(), product(6, 7, 8)]),
            [1, 1],
            "of another shape than the sequence"
        );
        assert_eq!(groups(&[rows.clone(), select(9)]), [1]);
        assert_eq!(groups(&[rows.clone(), product(2, 1, 9)]), [1]);
        assert_eq!(groups(&[rows.clone(), swap(90, 91)]), [2], "after it, or before");
        let many: Vec<_> = (0..MAX_OPERATIONS_OF_GROUPS + 9)
            .map(|n| if n % 2 == 0 { rows.clone() } else { columns.clone() })
            .collect();
        assert_eq!(groups(&many).len(), MAX_OPERATIONS_OF_GROUPS);
    }
}
