//! The optimization that takes every operation.

use super::block::Block;
use super::elementwise::{Sequence, is_move, is_pure};
use super::moved::{Moved, moves};
use super::work::Work;
use super::{coverage, execution_plans};
use crate::device::note_use;
use crate::exit;
use burn_backend::DType;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider};
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::{OperationIr, TensorIr, TensorStatus};

/// Most operations in one sequence of element-wise operations and after it, enough for an optimizer's update of one parameter, and
/// most that run before it.
const MAX_OPERATIONS: usize = 64;

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

/// Takes operations in program order: moves and products before a sequence of element-wise ones and between these, the sequence
/// together with moves of its results, any other by itself, with the frees after it.
#[derive(Clone)]
pub(super) struct RouteFuser {
    device: CubeDevice,
    max_tensors: usize,
    operations: Vec<OperationIr>,
    sequence: Option<Sequence>,
    /// The indices of operations that run before the sequence's.
    before: Vec<usize>,
    /// The indices of moves of the sequence's results, and of operands that these take away, which run after it, and of frees of what
    /// these read or write.
    after: Vec<usize>,
    closed: bool,
}

impl RouteFuser {
    pub(super) fn new(device: CubeDevice) -> Self {
        let bindings = device.client().properties().hardware.max_bindings as usize;
        let max_tensors = bindings.saturating_sub(OTHER_BINDINGS);
        Self {
            device,
            max_tensors,
            operations: Vec::new(),
            sequence: None,
            before: Vec::new(),
            after: Vec::new(),
            closed: false,
        }
    }

    /// Begins the block or, behind moves, products and reductions, a sequence; or takes one more of these, or a free. Returns
    /// whether `operation` is taken.
    ///
    /// A failure concerns the whole block, so what computes reads a result of it.
    fn begin(&mut self, operation: &OperationIr) -> bool {
        if is_free(operation) {
            return true;
        }
        let leads = self.operations.iter().all(|operation| is_pure(operation) || is_free(operation));
        let continues = self.operations.is_empty() || (leads && self.reads_result(operation));
        self.sequence = if continues { Sequence::new(operation, self.max_tensors, true) } else { None };
        self.before = if self.sequence.is_some() { (0..self.operations.len()).collect() } else { Vec::new() };
        self.after.clear();
        continues && (self.sequence.is_some() || self.operations.is_empty() || is_pure(operation))
            || leads && is_move(operation)
    }

    /// Takes one more operation: into the sequence, before it, or after it. Returns whether `operation` is taken.
    fn go_on(&mut self, operation: &OperationIr) -> bool {
        if self.concerns_after(operation) {
            return self.take_after(is_free(operation) || is_move(operation) && !may_be_reduced(operation));
        }
        let Some(sequence) = &mut self.sequence else { return false };
        if sequence.take(operation) {
            return true;
        }
        if sequence.can_run_before(operation) {
            self.before.push(self.operations.len());
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

    /// Takes the next operation to run after the sequence, if it `may`. Returns that.
    fn take_after(&mut self, may: bool) -> bool {
        if may {
            self.after.push(self.operations.len());
        }
        may
    }

    /// Whether `operation` reads or frees a result of what runs after the sequence, or takes away or frees what that reads.
    fn concerns_after(&self, operation: &OperationIr) -> bool {
        let after = || self.after.iter().map(|&index| &self.operations[index]);
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
        let Some(sequence) = self.sequence.as_mut().filter(|sequence| sequence.moves_a_result()) else { return };
        sequence.stop_moving();
        let runs_elsewhere = |index: &usize| self.before.contains(index) || self.after.contains(index);
        let in_sequence = (0..self.operations.len()).filter(|index| !runs_elsewhere(index));
        let moved: Vec<_> = in_sequence.skip_while(|&index| !moves(&self.operations[index])).collect();
        self.after.extend(moved);
        self.after.sort_unstable();
    }

    /// Whether `operation` reads a result of the block.
    fn reads_result(&self, operation: &OperationIr) -> bool {
        let results = || self.operations.iter().flat_map(OperationIr::outputs);
        operation.inputs().any(|input| results().any(|result| result.id == input.id))
    }
}

/// Whether `operation` moves axes of a tensor of f32 that lives on: it may begin a sequence that reduces them without a copy, as the
/// statistics of a batch norm.
fn may_be_reduced(operation: &OperationIr) -> bool {
    let lives_on = |input: &TensorIr| input.dtype == DType::F32 && input.status != TensorStatus::ReadWrite;
    Moved::by(operation).is_some_and(|(_, input)| lives_on(input))
}

fn is_free(operation: &OperationIr) -> bool {
    matches!(operation, OperationIr::Drop(_))
}

impl OperationFuser<CubeOptimization> for RouteFuser {
    fn fuse(&mut self, operation: &OperationIr) {
        // Burn takes as many operations from its queue as the fuser has, so they must be the first ones.
        if self.closed {
            return;
        }
        let taken = match self.sequence {
            _ if self.before.len().max(self.operations.len() - self.before.len()) >= MAX_OPERATIONS => false,
            None => self.begin(operation),
            Some(_) => self.go_on(operation),
        };
        if taken {
            self.operations.push(operation.clone());
        }
        // Open until the next operation comes: what a read finds pending is what it waits for, and only then is there an
        // occasion to report indices out of range.
        self.closed |= !taken;
    }

    fn finish(&mut self) -> CubeOptimization {
        self.move_after();
        let operations = core::mem::take(&mut self.operations);
        execution_plans::made(&operations, &self.device);
        let (before, after) = (core::mem::take(&mut self.before), core::mem::take(&mut self.after));
        let work = Work::of(self.sequence.take(), &operations, before, after);
        CubeOptimization::new(Block::new(self.device.clone(), operations, work))
    }

    fn reset(&mut self) {
        self.operations.clear();
        self.sequence = None;
        self.before.clear();
        self.after.clear();
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
    use super::{MAX_OPERATIONS, RouteFuser};
    use burn_backend::{DType, Shape};
    use burn_cubecl::CubeDevice;
    use burn_fusion::{FuserStatus, OperationFuser};
    use burn_ir::{
        BaseOperationIr, BinaryOpIr, FloatOperationIr, IrVisitorMut, MatmulOpIr, NumericOperationIr, OperationIr,
        ReduceDimOpIr, SelectOpIr, ShapeOpIr, SwapDimsOpIr, TensorId, TensorIr, TensorStatus,
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

    /// The fuser after the operations.
    fn fuser(operations: &[OperationIr]) -> RouteFuser {
        let mut fuser = RouteFuser {
            device: CubeDevice::default(),
            max_tensors: 16,
            operations: Vec::new(),
            sequence: None,
            before: Vec::new(),
            after: Vec::new(),
            closed: false,
        };
        operations.iter().for_each(|operation| fuser.fuse(operation));
        assert_eq!(fuser.status() == FuserStatus::Closed, fuser.len() < operations.len());
        assert!(fuser.sequence.is_some() || fuser.before.is_empty() && fuser.after.is_empty());
        fuser.move_after();
        fuser
    }

    /// How many of the operations a block takes, and which of these run before a sequence.
    fn block(operations: &[OperationIr]) -> (usize, Vec<usize>) {
        let fuser = fuser(operations);
        assert_eq!(fuser.after, [0; 0]);
        (fuser.len(), fuser.before)
    }

    /// How many of the operations a block takes, and which of these run before a sequence and after it.
    fn around(operations: &[OperationIr]) -> (usize, [Vec<usize>; 2]) {
        let fuser = fuser(operations);
        (fuser.len(), [fuser.before, fuser.after])
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
}
