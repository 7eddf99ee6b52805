//! A block of Burn's operation stream, and how it runs.

use super::against_reference::{checked, not_reached};
use super::bind::bind;
use super::elementwise::{Parts, Sequence};
use super::products::{self, Lead};
use super::rerun::{self, repeated};
use super::work::Work;
use super::{coverage, execution_plans, interpret};
use crate::backend::{OutOfRange, out_of_range};
use crate::catalogue;
use crate::context;
use crate::error::Error;
use crate::exit;
use crate::known_answer;
use crate::record;
use crate::settings::is_observing;
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
    /// The work where each operation is recorded; made when that is first asked for.
    recorded: Option<Parts>,
    /// The work in program order, for a recording of something else, made likewise.
    in_order: Option<Parts>,
}

impl Block {
    pub(super) fn new(device: CubeDevice, operations: Vec<OperationIr>, work: Work) -> Self {
        let client = device.client();
        Self { device, client, operations, work, recorded: None, in_order: None }
    }

    /// Refuses to run while a graph of kernels is captured.
    fn check_capture(&self) {
        let computing = self.operations.iter().find(|operation| catalogue::computes(operation));
        if let (true, Some(operation)) = (self.client.is_capturing(), computing) {
            let (operation, device) = (catalogue::operation(operation), format!("{:?}", self.device));
            violated(&Error::Captured { operation, device });
        }
    }

    /// Refuses a device whose arithmetic is not what the kernels rely on. True where the settings let that pass: then
    /// the block runs on the plain backend.
    fn check_arithmetic(&self) -> bool {
        // A graph of kernels that is captured may hold no other kernel; the next block asks.
        if !self.client.is_capturing()
            && let Err(error) = known_answer::of(&self.device)
        {
            not_reached(&self.operations);
            violated(error);
            return true;
        }
        false
    }

    /// Runs the block's operations on Burn's plain backend.
    fn run_plain(
        &self,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for (index, operation) in self.operations.iter().enumerate() {
            interpret::run_plain(operation, context, || fallback(index));
        }
    }

    /// Runs some of the block's operations one after the other.
    fn run_each(
        &self,
        operations: impl IntoIterator<Item = usize>,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for index in operations {
            interpret::run(&self.operations[index], &self.device, context, || fallback(index));
        }
    }

    /// Runs the block's operations in parts.
    fn run_parts(
        &self,
        parts: &Parts,
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for (operations, part) in parts {
            match part {
                Some(part) => self.run_together(part, operations, context, fallback),
                None => self.run_each(operations.iter().copied(), context, fallback),
            }
        }
    }

    /// Whether a step of a recording ends among the operations.
    fn ends_step(&self, context: &Context<CubeFusionHandle>) -> bool {
        record::ends_step(&self.operations, |operation| bind(operation, context))
    }

    /// Runs the operations that run before the kernel.
    fn run_leads(
        &self,
        leads: &[Lead],
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        for lead in leads {
            match lead {
                Lead::Operation(index) => self.run_each([*index], context, fallback),
                Lead::Products(indices) => {
                    let those = || indices.iter().map(|&index| &self.operations[index]);
                    if !products::share_launches(those(), &self.device, context) {
                        self.run_each(indices.iter().copied(), context, fallback);
                        continue;
                    }
                    let work = |context: &Context<_>| products::work(those(), context);
                    self.run_at_once(indices, work, context, |context| products::run(those(), &self.device, context));
                }
            }
        }
    }

    /// Runs some of the block's operations in one kernel.
    fn run_together(
        &self,
        sequence: &Sequence,
        operations: &[usize],
        context: &mut Context<CubeFusionHandle>,
        fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        let Some(error) = sequence.refused(&self.device, context) else {
            let work = |context: &Context<_>| sequence.work(context);
            return self.run_at_once(operations, work, context, |context| sequence.run(&self.device, context));
        };
        let recorded = self.recording(operations, context);
        not_reached(operations.iter().map(|&index| &self.operations[index]));
        violated(&error);
        operations.iter().for_each(|&index| fallback(index).run(context));
        if let Some(recorded) = recorded {
            recorded.end(&mut context.handles);
        }
    }

    /// Runs some of the block's operations, which are `work`, by `body`, which returns whether it launched a kernel.
    fn run_at_once(
        &self,
        operations: &[usize],
        work: impl Fn(&Context<CubeFusionHandle>) -> rerun::Work,
        context: &mut Context<CubeFusionHandle>,
        body: impl Fn(&mut Context<CubeFusionHandle>) -> bool,
    ) {
        let recorded = self.recording(operations, context);
        let bound = |context: &Context<_>| self.bound(operations, context);
        checked(&self.device, context, bound, |context| {
            repeated(&self.device, context, work, |context| coverage::launching(|| body(context)));
        });
        if let Some(recorded) = recorded {
            recorded.end(&mut context.handles);
        }
    }

    /// Some of the block's operations in global form.
    fn bound(&self, operations: &[usize], context: &Context<CubeFusionHandle>) -> Vec<OperationIr> {
        operations.iter().map(|&index| bind(&self.operations[index], context)).collect()
    }

    /// The recording of some of the block's operations that run at once.
    fn recording(&self, operations: &[usize], context: &Context<CubeFusionHandle>) -> Option<record::Together> {
        record::Together::begin(|| self.bound(operations, context), &context.handles)
    }

    /// Reports an index out of range, in this block or in an earlier one: if the program waits for this block, it waits
    /// for the checks too.
    ///
    /// # Panics
    ///
    /// When there is one. The results of the operation and of this block carry the error.
    fn report_indices(&self, context: &mut Context<CubeFusionHandle>) {
        // An upload carries no error.
        if !self.operations.iter().any(catalogue::computes) {
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
            && custom.id == execution_plans::EXCHANGE
        {
            // Whatever else is refused.
            fallback(0).run(context);
            return coverage::done();
        }
        exit::hold();
        if is_observing() {
            return self.run_plain(context, fallback);
        }
        coverage::routed();
        self.check_capture();
        let is_refused = self.check_arithmetic();
        match &self.work {
            _ if is_refused => self.run_plain(context, fallback),
            Work::Operations => self.run_each(0..self.operations.len(), context, fallback),
            Work::Together(_) if self.ends_step(context) => self.run_each(0..self.operations.len(), context, fallback),
            Work::Together(together) if record::each_operation() => {
                let parts = self.recorded.take().unwrap_or_else(|| together.sequence.writing_all(&self.operations));
                self.run_parts(&parts, context, fallback);
                self.recorded = Some(parts);
            }
            Work::Together(together) if !together.sequence.fits(&self.client, context) => {
                self.run_parts(&together.parts, context, fallback);
            }
            // A recording numbers results in program order.
            Work::Together(together) if record::is_recording() && !together.is_in_order() => {
                let parts = self.in_order.take().unwrap_or_else(|| together.in_order(&self.operations));
                self.run_parts(&parts, context, fallback);
                self.in_order = Some(parts);
            }
            Work::Together(together) => {
                match record::is_recording() {
                    true => self.run_each(together.before.iter().copied(), context, fallback),
                    false => self.run_leads(&together.leads, context, fallback),
                }
                self.run_together(&together.sequence, &together.operations, context, fallback);
                self.run_each(together.after.iter().copied(), context, fallback);
            }
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
