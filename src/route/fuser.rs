//! The optimization that takes every operation.

use super::block::Block;
use super::elementwise::{Sequence, is_pure};
use super::work::Work;
use super::{coverage, execution_plans};
use crate::device::note_use;
use crate::exit;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider};
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::OperationIr;

/// Most operations in one sequence of element-wise operations: enough for an optimizer's update of one parameter.
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
/// together, any other by itself, with the frees after it.
#[derive(Clone)]
pub(super) struct RouteFuser {
    device: CubeDevice,
    max_tensors: usize,
    operations: Vec<OperationIr>,
    sequence: Option<Sequence>,
    /// The indices of operations that run before the sequence's.
    before: Vec<usize>,
    closed: bool,
}

impl RouteFuser {
    pub(super) fn new(device: CubeDevice) -> Self {
        let bindings = device.client().properties().hardware.max_bindings as usize;
        let max_tensors = bindings.saturating_sub(OTHER_BINDINGS);
        Self { device, max_tensors, operations: Vec::new(), sequence: None, before: Vec::new(), closed: false }
    }
}

impl RouteFuser {
    /// Begins a sequence with `operation`, which has as many operands and results as a kernel binds, or takes one that runs by
    /// itself: the first one, and behind moves and products one more. Returns whether it is taken.
    fn begin(&mut self, operation: &OperationIr) -> bool {
        let is_free = |operation: &OperationIr| matches!(operation, OperationIr::Drop(_));
        let leads = self.operations.iter().all(|operation| is_pure(operation) || is_free(operation));
        self.sequence = if leads { Sequence::new(operation, self.max_tensors, true) } else { None };
        self.before = if self.sequence.is_some() { (0..self.operations.len()).collect() } else { Vec::new() };
        self.sequence.is_some() || self.operations.is_empty() || is_free(operation) || (leads && is_pure(operation))
    }
}

impl OperationFuser<CubeOptimization> for RouteFuser {
    fn fuse(&mut self, operation: &OperationIr) {
        // Burn takes as many operations from its queue as the fuser has, so they must be the first ones.
        if self.closed {
            return;
        }
        let taken = match &mut self.sequence {
            _ if self.operations.len() == MAX_OPERATIONS => false,
            None => self.begin(operation),
            Some(sequence) => {
                if sequence.take(operation) {
                    true
                } else if sequence.can_run_before(operation) {
                    self.before.push(self.operations.len());
                    true
                } else {
                    // Where it only moves, nothing is computed yet.
                    sequence.only_moves() && self.begin(operation)
                }
            }
        };
        if taken {
            self.operations.push(operation.clone());
        }
        // Open until the next operation comes: what a read finds pending is what it waits for, and only then is there an
        // occasion to report indices out of range.
        self.closed |= !taken;
    }

    fn finish(&mut self) -> CubeOptimization {
        let operations = core::mem::take(&mut self.operations);
        execution_plans::made(&operations, &self.device);
        let work = Work::of(self.sequence.take(), &operations, core::mem::take(&mut self.before));
        CubeOptimization::new(Block::new(self.device.clone(), operations, work))
    }

    fn reset(&mut self) {
        self.operations.clear();
        self.sequence = None;
        self.before.clear();
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
