//! A block of Burn's operation stream, and how it runs.

use super::elementwise::Run;
use super::{bind::bind, coverage, fuser};
use crate::backend::{Deterministic, in_route};
use burn_cubecl::fusion::{FallbackOperation, FusedOperation};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{BackendIr, HandleKind, OperationIr, TensorHandle, TensorIr, TensorStatus};
use burn_router::TensorInterpreter;

type B = Deterministic<CubeBackend>;

/// Operations in program order, in Burn's relative form.
pub(super) struct Block {
    device: CubeDevice,
    interpreter: TensorInterpreter<B>,
    operations: Vec<OperationIr>,
    work: Work,
}

/// How the operations of a block run.
pub(super) enum Work {
    /// One after the other, each on the deterministic backend.
    Operations,
    /// All in one element-wise kernel.
    Elementwise(Box<Run>),
}

impl Block {
    pub(super) fn new(device: CubeDevice, operations: Vec<OperationIr>, work: Work) -> Self {
        Self { interpreter: TensorInterpreter::new(device.clone()), device, operations, work }
    }

    fn run_operations(&mut self, context: &mut Context<CubeFusionHandle>) {
        for index in 0..self.operations.len() {
            let operation = &self.operations[index];
            if matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_)) {
                continue;
            }
            let operation = bind(operation, context);
            in_route(|| self.run_operation(operation, context));
        }
    }

    /// Runs one concrete operation: its inputs move from Burn's handles to the interpreter, its outputs back.
    fn run_operation(&mut self, operation: OperationIr, context: &mut Context<CubeFusionHandle>) {
        for input in operation.inputs() {
            let handle = context.handles.get_handle(&input.id, &input.status);
            self.interpreter.register_tensor_to_device(input.id, tensor(input, handle));
        }
        let outputs: Vec<TensorIr> =
            operation.outputs().map(|output| TensorIr { status: TensorStatus::ReadWrite, ..output.clone() }).collect();
        self.interpreter.register_op(operation);
        for output in outputs {
            let handle = self.interpreter.get_tensor_handle(&output);
            context.handles.register_handle(output.id, handle);
        }
    }
}

/// The primitive behind a handle, by the kind of its dtype.
fn tensor(ir: &TensorIr, handle: CubeFusionHandle) -> HandleKind<B> {
    let handle = TensorHandle { handle, shape: ir.shape.clone() };
    match ir.dtype {
        dtype if dtype.is_float() => HandleKind::Float(B::float_tensor(handle)),
        dtype if dtype.is_bool() => HandleKind::Bool(B::bool_tensor(handle)),
        _ => HandleKind::Int(B::int_tensor(handle)),
    }
}

impl FusedOperation for Block {
    const NAME: &'static str = fuser::NAME;
    type State = Vec<OperationIr>;

    fn num_ops_fused(&self) -> usize {
        self.operations.len()
    }

    fn run(
        &mut self,
        context: &mut Context<CubeFusionHandle>,
        _fallback: &dyn Fn(usize) -> Box<dyn FallbackOperation>,
    ) {
        coverage::routed(|| match &self.work {
            Work::Operations => self.run_operations(context),
            Work::Elementwise(run) => {
                if let Err(error) = run.run(&self.device, context) {
                    panic!("burn-deterministic: {error}");
                }
            }
        });
    }

    fn to_state(&self) -> Self::State {
        self.operations.clone()
    }

    fn from_state(device: &CubeDevice, state: Self::State) -> Self {
        Self::new(device.clone(), state, Work::Operations)
    }
}
