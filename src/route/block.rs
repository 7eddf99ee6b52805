//! A block of Burn's operation stream, and how it runs.

use super::elementwise::Sequence;
use super::rerun::repeated;
use super::{coverage, interpret, plans};
use crate::backend::{OutOfRange, out_of_range};
use crate::catalogue;
use crate::context;
use crate::error::Error;
use crate::exit;
use crate::known_answer;
use crate::violation::violated;
use burn_backend::ExecutionError;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{FallbackOperation, FusedOperation};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{OperationIr, TensorError};
use cubecl::client::Client;

/// Operations in program order, in Burn's relative form.
pub(super) struct Block {
    device: CubeDevice,
    client: Client,
    operations: Vec<OperationIr>,
    work: Work,
}

/// How the operations of a block run.
pub(super) enum Work {
    /// One after the other, each on the deterministic backend.
    Operations,
    /// All in one element-wise kernel.
    Elementwise(Box<Sequence>),
}

impl Block {
    pub(super) fn new(device: CubeDevice, operations: Vec<OperationIr>, work: Work) -> Self {
        let client = device.client();
        Self { device, client, operations, work }
    }

    /// Refuses to run while a graph of kernels is captured.
    fn check_capture(&self) {
        let works = |operation: &&OperationIr| !matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_));
        if let (true, Some(operation)) = (self.client.is_capturing(), self.operations.iter().find(works)) {
            let (operation, device) = (catalogue::operation(operation), format!("{:?}", self.device));
            violated(&Error::Captured { operation, device });
        }
    }

    /// Refuses a device whose arithmetic is not what the kernels rely on. True where the settings let that pass: then the block
    /// runs on the plain backend.
    fn check_arithmetic(&self) -> bool {
        // A graph of kernels that is captured may hold no other kernel; the next block asks.
        if !self.client.is_capturing()
            && let Err(error) = known_answer::of(&self.device)
        {
            violated(error);
            return true;
        }
        false
    }

    /// Reports an index out of range, in this block or in an earlier one: if the program waits for this block, it waits
    /// for the checks too.
    ///
    /// # Panics
    ///
    /// When there is one. The results of the operation and of this block carry the error.
    fn report_indices(&self, context: &mut Context<CubeFusionHandle>) {
        // An upload carries no error: what it brings is not computed.
        let works = |operation: &OperationIr| !matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_));
        if !self.operations.iter().any(works) {
            return;
        }
        let waits = context::with(|context| context.waits);
        let Some(OutOfRange { error, output }) = out_of_range(&self.device, waits) else { return };
        if let Some(output) = output.filter(|output| context.handles.has_handle(output)) {
            let error = TensorError::new(ExecutionError::with_context(error.to_string()));
            context.handles.set_error(output, error);
        }
        panic!("{error}");
    }
}

impl FusedOperation for Block {
    /// In Burn's registry of optimizations.
    const NAME: &'static str = "burn-deterministic";
    type State = Vec<OperationIr>;

    fn num_ops_fused(&self) -> usize {
        self.operations.len()
    }

    /// # Panics
    ///
    /// When an operation is refused: Burn turns the panic into an error of the tensors the block was to write.
    fn run(&mut self, context: &mut Context<CubeFusionHandle>, fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>) {
        if let [OperationIr::Custom(custom)] = &self.operations[..]
            && custom.id == plans::EXCHANGE
        {
            // Whatever else is refused.
            fallback(0).run(context);
            return coverage::done();
        }
        exit::hold();
        coverage::routed();
        self.check_capture();
        let is_refused = self.check_arithmetic();
        match &self.work {
            _ if is_refused => (0..self.operations.len()).for_each(|index| fallback(index).run(context)),
            Work::Operations => {
                for (index, operation) in self.operations.iter().enumerate() {
                    interpret::run(operation, &self.device, context, || fallback(index));
                }
            }
            Work::Elementwise(run) => match run.refused(&self.device, context) {
                None => repeated(
                    &self.device,
                    context,
                    |context| run.work(context),
                    |context| {
                        coverage::launching(|| run.run(&self.device, context));
                    },
                ),
                Some(error) => {
                    violated(&error);
                    (0..self.operations.len()).for_each(|index| fallback(index).run(context));
                }
            },
        }
        self.report_indices(context);
        coverage::done();
    }

    fn to_state(&self) -> Self::State {
        self.operations.clone()
    }

    fn from_state(device: &CubeDevice, state: Self::State) -> Self {
        // Element-wise operations have the same bits one by one.
        Self::new(device.clone(), state, Work::Operations)
    }
}
