//! What a program says about the place where it is, as operations of Burn's stream: so they keep their place among the
//! others.

use super::mark::Mark;
use super::recorder;
use super::writer::is_recording;
use crate::device;
use burn_backend::StreamId;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::ExecutionError;
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation};
use burn_ir::OperationIr;

/// The id of the operations.
pub(crate) const MARK: &str = "burn-deterministic::mark";

/// Puts `mark` between the operations that the calling thread has issued and those that it will issue, on each device in
/// use.
pub(super) fn issue(mark: &Mark) {
    if !is_recording() {
        return;
    }
    let mut devices = device::in_use();
    if devices.is_empty() {
        devices.extend(device::default_cube());
    }
    devices.iter().for_each(|device| issue_on(device, StreamId::current(), mark.clone()));
}

/// Puts `mark` behind the operations that the thread of `stream` has issued on `device`.
pub(super) fn issue_on(device: &CubeDevice, stream: StreamId, mark: Mark) {
    let client = GlobalFusionClient::<FusionCubeRuntime>::new(device.clone());
    let operation = OperationIr::Custom(CustomOpIr::new(MARK, &[], &[]));
    // What it runs belongs to that thread too.
    stream.executes(|| client.register(stream, operation, Issued(mark)));
}

#[derive(Debug)]
struct Issued(Mark);

impl Operation<FusionCubeRuntime> for Issued {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        recorder::mark(&self.0, handles);
        Ok(())
    }
}
