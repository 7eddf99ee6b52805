//! What a program says about the place where it is, as operations of Burn's stream: so they keep their place among the
//! others.

use super::mark::Mark;
use super::recorder;
use super::writer::{is_recording, note_environment};
use crate::device;
use crate::environment::environment;
use crate::random::run_on;
use burn_backend::StreamId;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::ExecutionError;
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation};
use burn_ir::OperationIr;
use core::time::Duration;
use std::sync::mpsc::channel;
use std::thread;

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
        devices.push(CubeDevice::default());
    }
    devices.iter().for_each(|device| issue_on(device, StreamId::current(), mark.clone()));
}

fn issue_on(device: &CubeDevice, stream: StreamId, mark: Mark) {
    let client = GlobalFusionClient::<FusionCubeRuntime>::new(device.clone());
    let operation = OperationIr::Custom(CustomOpIr::new(MARK, &[], &[]));
    client.register(stream, operation, Issued(mark));
}

/// Runs the operations and marks that wait when the process ends, if it records: the last step ends with one. Waits for
/// `limit` at most: the process may end in a device's own thread, which runs nothing then.
pub(crate) fn run_queued(limit: Duration) {
    if !is_recording() {
        return;
    }
    let (done, ran) = channel();
    // The thread-locals of this thread may be gone.
    let run = move || {
        for stream in recorder::streams() {
            for device in device::in_use() {
                issue_on(&device, stream, Mark::ProcessEnds);
                // What fails is nobody's to read any more.
                let _ = run_on(&device, stream);
            }
        }
        let _ = done.send(environment());
    };
    if thread::Builder::new().spawn(run).is_ok() && let Ok(environment) = ran.recv_timeout(limit) {
        note_environment(environment);
    }
}

#[derive(Debug)]
struct Issued(Mark);

impl Operation<FusionCubeRuntime> for Issued {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        recorder::mark(&self.0, handles);
        Ok(())
    }
}
