//! One operation of Burn's stream on the deterministic backend.

use super::bind::bind;
use super::coverage;
use crate::backend::{Deterministic, in_route};
use crate::catalogue;
use crate::enable::{OnViolation, determinism, warn};
use crate::error::{Error, Refusal};
use crate::random::issued;
use burn_backend::ops::IntTensorOps;
use burn_backend::{Backend, DType, DTypeUsage};
use burn_cubecl::fusion::FallbackOperation;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{
    BackendIr, BaseOperationIr, CastOpIr, FloatOperationIr, HandleKind, OperationIr, TensorHandle, TensorIr,
    TensorStatus,
};
use burn_router::TensorInterpreter;

type B = Deterministic<CubeBackend>;

/// Runs `operation`, given in Burn's relative form, on the tensors of `context`, through burn-router's interpreter,
/// which knows the method of every operation.
///
/// # Panics
///
/// When the operation is refused. In [`OnViolation::Warn`] what the stream itself refuses runs as `plain` instead.
pub(super) fn run(
    operation: &OperationIr,
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
    plain: impl FnOnce() -> Box<dyn FallbackOperation>,
) {
    if matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_)) {
        return;
    }
    let operation = bind(operation, context);
    if let Some(method) = refused_on_the_stream(&operation) {
        let error = Error::from(refusal(method, &operation, device));
        match determinism().on_violation {
            OnViolation::Error => panic!("{error}"),
            OnViolation::Warn => warn(&error),
        }
        return plain().run(context);
    }
    if let Some(dtype) = lacking(&operation, device) {
        panic!("{}", Error::from(unsupported(dtype, &operation, device)));
    }
    let output = operation.outputs().next().map(|output| output.id);
    in_route(|| {
        issued(output, || match operation {
            // burn-fusion emits this cast, and burn-router's interpreter has no arm for it.
            OperationIr::BaseInt(BaseOperationIr::Cast(cast)) => int_cast(&cast, context),
            OperationIr::Float(_, FloatOperationIr::Matmul(ref product)) => {
                let launches = product.out.shape.num_elements() > 0;
                coverage::launching(|| {
                    interpret(operation, device, context);
                    launches
                });
            }
            _ => interpret(operation, device, context),
        })
    });
}

/// Moves the inputs from Burn's handles to an interpreter, runs, and moves the outputs back.
///
/// The interpreter lives for one operation: it keeps its copy of an operand that lives on, and nobody would free that.
fn interpret(operation: OperationIr, device: &CubeDevice, context: &mut Context<CubeFusionHandle>) {
    let mut interpreter = TensorInterpreter::<B>::new(device.clone());
    for input in operation.inputs() {
        interpreter.register_tensor_to_device(input.id, primitive(input, context));
    }
    let outputs: Vec<TensorIr> =
        operation.outputs().map(|output| TensorIr { status: TensorStatus::ReadWrite, ..output.clone() }).collect();
    interpreter.register_op(operation);
    for output in outputs {
        let handle = interpreter.get_tensor_handle(&output);
        context.handles.register_handle(output.id, handle);
    }
}

fn refusal(method: &'static str, operation: &OperationIr, device: &CubeDevice) -> Refusal {
    let (reason, remedy) = catalogue::refusal(method);
    let name = match operation {
        OperationIr::Custom(custom) => format!("{method} `{}`", custom.id),
        _ => format!("{method} ({})", catalogue::operation(operation)),
    };
    Refusal {
        operation: name.into(),
        operands: operands(operation),
        device: format!("{device:?}"),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn operands(operation: &OperationIr) -> String {
    let operands: Vec<_> =
        operation.inputs().map(|input| format!("{:?} {}", &input.shape[..], input.dtype.name())).collect();
    if operands.is_empty() { "none".to_owned() } else { operands.join(", ") }
}

/// A dtype of the operation's that the device cannot hold in a buffer: a kernel on it would not compile.
fn lacking(operation: &OperationIr, device: &CubeDevice) -> Option<DType> {
    let everywhere = |dtype: DType| dtype.is_bool() || matches!(dtype, DType::F32 | DType::I32 | DType::U32);
    let dtypes = operation.inputs().chain(operation.outputs()).map(|tensor| tensor.dtype);
    dtypes
        .filter(|dtype| !everywhere(*dtype))
        .find(|dtype| !B::dtype_usage(device, *dtype).contains(DTypeUsage::Storage))
}

fn unsupported(dtype: DType, operation: &OperationIr, device: &CubeDevice) -> Refusal {
    let result = operation
        .outputs()
        .next()
        .map_or_else(String::new, |output| format!("; the result is {:?} {}", &output.shape[..], output.dtype.name()));
    Refusal {
        operation: catalogue::operation(operation).into(),
        operands: operands(operation),
        device: format!("{device:?}"),
        reason: format!("the device has no {}{result}", dtype.name()),
        remedy: "use a dtype for which `Device::supports_dtype` answers true".to_owned(),
    }
}

/// The catalogue's name for an operation that the stream does not carry to the backend.
fn refused_on_the_stream(operation: &OperationIr) -> Option<&'static str> {
    let is_quantized = |tensor: &TensorIr| matches!(tensor.dtype, DType::QFloat(_));
    match operation {
        OperationIr::Custom(_) => Some("custom"),
        operation if operation.inputs().any(is_quantized) || operation.outputs().any(is_quantized) => Some("quantized"),
        _ => None,
    }
}

fn int_cast(cast: &CastOpIr, context: &mut Context<CubeFusionHandle>) {
    let handle = context.handles.get_handle(&cast.input.id, &cast.input.status);
    let tensor = B::int_tensor(TensorHandle { handle, shape: cast.input.shape.clone() });
    let output = B::int_cast(tensor, cast.out.dtype.into());
    context.handles.register_handle(cast.out.id, B::int_tensor_handle(output));
}

/// The tensor behind a handle, by the kind of its dtype.
fn primitive(tensor: &TensorIr, context: &mut Context<CubeFusionHandle>) -> HandleKind<B> {
    let handle = context.handles.get_handle(&tensor.id, &tensor.status);
    let handle = TensorHandle { handle, shape: tensor.shape.clone() };
    match tensor.dtype {
        dtype if dtype.is_float() => HandleKind::Float(B::float_tensor(handle)),
        dtype if dtype.is_bool() => HandleKind::Bool(B::bool_tensor(handle)),
        _ => HandleKind::Int(B::int_tensor(handle)),
    }
}
