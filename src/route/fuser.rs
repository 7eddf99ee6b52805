//! The optimization that takes every operation.

use super::block::Block;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider};
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::OperationIr;

/// The name of the optimization in Burn's registry.
pub(super) const NAME: &str = "burn-deterministic";

pub(super) struct RouteProvider;

impl OptimizationProvider for RouteProvider {
    type Operation = Block;

    fn fuser(&self, device: &CubeDevice) -> CubeFuser {
        CubeFuser::new(RouteFuser { device: device.clone(), operation: None })
    }
}

/// Takes one operation and closes: operations run one by one, in program order.
#[derive(Clone)]
struct RouteFuser {
    device: CubeDevice,
    operation: Option<OperationIr>,
}

impl OperationFuser<CubeOptimization> for RouteFuser {
    fn fuse(&mut self, operation: &OperationIr) {
        if self.operation.is_none() {
            self.operation = Some(operation.clone());
        }
    }

    fn finish(&mut self) -> CubeOptimization {
        let operation = self.operation.take().expect("Burn finishes a fuser only when it is ready");
        CubeOptimization::new(Block::new(self.device.clone(), vec![operation]))
    }

    fn reset(&mut self) {
        self.operation = None;
    }

    fn status(&self) -> FuserStatus {
        match self.operation {
            Some(_) => FuserStatus::Closed,
            None => FuserStatus::Open,
        }
    }

    fn properties(&self) -> FuserProperties {
        FuserProperties { score: self.len() as u64, ready: !self.is_empty() }
    }

    fn len(&self) -> usize {
        self.operation.iter().count()
    }

    fn clone_dyn(&self) -> Box<dyn OperationFuser<CubeOptimization>> {
        Box::new(self.clone())
    }
}
