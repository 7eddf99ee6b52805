//! One operation of Burn's stream on the deterministic backend.

use super::against_reference::{checked, not_reached};
use super::bind::bind;
use super::custom::{self, Known};
use super::handles::global_operand;
use super::rerun::{Work, operands, repeated};
use super::{coverage, direct, quantized};
use crate::backend::{Deterministic, ir};
use crate::catalogue;
use crate::context;
use crate::error::{Error, Refusal};
use crate::memory;
use crate::panic;
use crate::promise;
use crate::random::repeatable;
use crate::record;
use crate::violation::violated;
use burn_backend::ops::IntTensorOps;
use burn_backend::{Backend, DType, DTypeUsage, StreamId};
use burn_cubecl::fusion::FallbackOperation;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{
    BackendIr, BaseOperationIr, CastOpIr, FloatOperationIr, HandleKind, OperationIr, TensorId, TensorIr, TensorStatus,
};
use burn_router::TensorInterpreter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type B = Deterministic<CubeBackend>;

/// Runs `operation`, given in Burn's relative form, on the tensors of `context`: by its method for [some](direct), by burn-router's
/// interpreter, which knows the method of every operation, for all others.
///
/// # Panics
///
/// When the operation is refused. What has no method here runs as `plain`: a custom operation that is known or promised
/// to be deterministic, and in [`OnViolation::Warn`] all else that would be refused, but for types the device lacks.
pub(super) fn run(
    operation: &OperationIr,
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
    plain: impl Fn() -> Box<dyn FallbackOperation>,
) {
    if without_work(operation, context, &plain) {
        return;
    }
    let operation = bind(operation, context);
    let dtypes: Vec<_> = operation.inputs().chain(operation.outputs()).map(|tensor| tensor.dtype).collect();
    let is_quantized = dtypes.iter().any(|&dtype| quantized::is_quantized(dtype));
    let runs_plain = match refused_on_the_stream(&operation, is_quantized) {
        None => false,
        Some(method) => {
            not_reached([&operation]);
            violated(&Error::from(refusal(method, &operation, device)));
            true
        }
    };
    let runs_plain = runs_plain
        || match &operation {
            OperationIr::Custom(custom) => matches!(custom::known(custom), None | Some(Known::OnTheHost)),
            _ => false,
        };
    if !runs_plain && let Some(dtype) = unsupported_dtype(&dtypes, device) {
        not_reached([&operation]);
        panic!("{}", Error::from(unsupported(dtype, &operation, device)));
    }
    let work = |_: &Context<_>| Work {
        operation: catalogue::name(&operation).to_owned(),
        inputs: operation.inputs().cloned().collect(),
        outputs: operation.outputs().cloned().collect(),
    };
    recorded(&operation, context, |context| {
        checked(
            device,
            context,
            |_| vec![operation.clone()],
            |context| {
                repeated(device, context, work, |context| {
                    on_this_stream(&operation, context, |context| match runs_plain {
                        true => on_plain(&operation, context, plain()),
                        false => on_the_backend(&operation, is_quantized, device, context),
                    });
                });
            },
        );
    });
}

/// Runs `operation`, given in Burn's relative form, on Burn's plain backend.
pub(super) fn run_plain(
    operation: &OperationIr,
    context: &mut Context<CubeFusionHandle>,
    plain: impl Fn() -> Box<dyn FallbackOperation>,
) {
    if !without_work(operation, context, &plain) {
        recorded(&bind(operation, context), context, |context| plain().run(context));
    } else if let OperationIr::Drop(_) = operation {
        plain().run(context);
    }
}

/// Whether `operation`, given in Burn's relative form, computes nothing: then it is done.
fn without_work(
    operation: &OperationIr,
    context: &mut Context<CubeFusionHandle>,
    plain: &impl Fn() -> Box<dyn FallbackOperation>,
) -> bool {
    match operation {
        OperationIr::Init(_) if !record::is_recording() => {}
        // Burn frees it behind the block, which holds its memory until then.
        OperationIr::Drop(tensor) if !record::is_recording() => {
            let tensor = TensorIr { id: context.tensors[&tensor.id].id, ..tensor.clone() };
            context.handles.free(&tensor);
        }
        OperationIr::Init(_) => recorded(&bind(operation, context), context, |_| ()),
        OperationIr::Drop(_) => record::freed(&bind(operation, context), &context.handles),
        OperationIr::Custom(custom) if custom.id == record::MARK => plain().run(context),
        _ => return false,
    }
    true
}

/// Runs `body`, which runs `operation`, and records that where the process records.
fn recorded(
    operation: &OperationIr,
    context: &mut Context<CubeFusionHandle>,
    body: impl FnOnce(&mut Context<CubeFusionHandle>),
) {
    let Some(run) = record::Run::begin(operation, &context.handles) else { return body(context) };
    let mut draws = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| repeatable(&mut draws, || body(context))));
    let error = result.as_ref().err().map(|payload| panic::text(&**payload).unwrap_or("a panic").to_owned());
    run.end(operation, &context.handles, &draws, error);
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// Runs `body`, which runs `operation` by Burn's kernels, perhaps: on the current stream, and not in place, but for a slice that is assigned
/// where it [may write](memory::may_write).
fn on_this_stream(
    operation: &OperationIr,
    context: &mut Context<CubeFusionHandle>,
    body: impl FnOnce(&mut Context<CubeFusionHandle>),
) {
    let (mut kept, mut of_others) = (Vec::new(), Vec::new());
    for input in operation.inputs() {
        match context.handles.get_handle_ref(&input.id) {
            Some(of_other) if of_other.handle.stream != StreamId::current() => {
                of_others.push((input.id, of_other.clone()));
            }
            // Where there is another handle, Burn's kernels copy.
            Some(own) if input.status == TensorStatus::ReadWrite => {
                let is_assigned_to = assigned_to(operation) == Some(input.id);
                // A recording has the kernels that a copy launches: the same in every run.
                if !is_assigned_to || record::is_recording() || !memory::may_write(&own.client, &own.handle) {
                    kept.push(own.handle.clone());
                }
            }
            _ => {}
        }
    }
    for (tensor, of_other) in &of_others {
        let here = CubeFusionHandle { client: of_other.device.client(), ..of_other.clone() };
        context.handles.register_handle(*tensor, here);
    }
    body(context);
    for (tensor, of_other) in of_others {
        if context.handles.has_handle(&tensor) {
            context.handles.register_handle(tensor, of_other);
        }
    }
}

/// The tensor to which a slice is assigned.
fn assigned_to(operation: &OperationIr) -> Option<TensorId> {
    let (OperationIr::BaseFloat(base) | OperationIr::BaseInt(base) | OperationIr::BaseBool(base)) = operation else {
        return None;
    };
    match base {
        BaseOperationIr::SliceAssign(assign) => Some(assign.tensor.id),
        _ => None,
    }
}

/// Runs an operation on Burn's plain backend, and gives its results [clients](ir::owned) as ours have.
fn on_plain(operation: &OperationIr, context: &mut Context<CubeFusionHandle>, plain: Box<dyn FallbackOperation>) {
    plain.run(context);
    for output in operation.outputs() {
        if let Some(handle) = context.handles.get_handle_ref(&output.id).cloned() {
            context.handles.register_handle(output.id, ir::owned(handle));
        }
    }
}

fn on_the_backend(
    operation: &OperationIr,
    is_quantized: bool,
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
) {
    let output = operation.outputs().next().map(|output| output.id);
    context::scoped(
        |context| &mut context.operation,
        Some(context::Operation { output }),
        || match operation {
            operation if is_quantized => quantized::run(operation, &mut context.handles),
            OperationIr::Custom(operation) => {
                let known = custom::known(operation).expect("all others run as Burn's own");
                custom::run(operation, known, &mut context.handles);
            }
            // burn-fusion emits this cast, and burn-router's interpreter has no arm for it.
            OperationIr::BaseInt(BaseOperationIr::Cast(cast)) => int_cast(cast, context),
            OperationIr::Float(_, FloatOperationIr::Matmul(product)) => {
                // A sum of no products is zero, and nothing is launched for it.
                let launches = product.out.shape.num_elements() > 0 && product.lhs.shape.num_elements() > 0;
                coverage::launching(|| {
                    interpret(operation, device, context);
                    launches
                });
            }
            _ => interpret(operation, device, context),
        },
    );
}

/// Moves the inputs from Burn's handles to an interpreter, runs, and moves the outputs back; or runs [without](direct) one.
///
/// The interpreter lives for one operation: it keeps its copy of an operand that lives on, and nobody would free that.
fn interpret(operation: &OperationIr, device: &CubeDevice, context: &mut Context<CubeFusionHandle>) {
    if direct::run(operation, context) {
        return;
    }
    let mut interpreter = TensorInterpreter::<B>::new(device.clone());
    for input in operation.inputs() {
        interpreter.register_tensor_to_device(input.id, primitive(input, context));
    }
    let outputs: Vec<TensorIr> =
        operation.outputs().map(|output| TensorIr { status: TensorStatus::ReadWrite, ..output.clone() }).collect();
    interpreter.register_op(operation.clone());
    for output in outputs {
        let handle = interpreter.get_tensor_handle(&output);
        context.handles.register_handle(output.id, handle);
    }
}

fn refusal(method: &'static str, operation: &OperationIr, device: &CubeDevice) -> Refusal {
    let (reason, remedy) = catalogue::refusal(method);
    Refusal {
        operation: catalogue::name(operation).to_owned().into(),
        operands: operands(operation.inputs()),
        device: format!("{device:?}"),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// A dtype of these that the device cannot hold in a buffer: a kernel on it would not compile.
fn unsupported_dtype(dtypes: &[DType], device: &CubeDevice) -> Option<DType> {
    let everywhere = |dtype: DType| dtype.is_bool() || matches!(dtype, DType::F32 | DType::I32 | DType::U32);
    let mut others = dtypes.iter().copied().filter(|&dtype| !everywhere(dtype));
    others.find(|&dtype| !B::dtype_usage(device, dtype).contains(DTypeUsage::Storage))
}

fn unsupported(dtype: DType, operation: &OperationIr, device: &CubeDevice) -> Refusal {
    let result = operation
        .outputs()
        .next()
        .map_or_else(String::new, |output| format!("; the result is {:?} {}", &output.shape[..], output.dtype.name()));
    Refusal {
        operation: catalogue::name(operation).to_owned().into(),
        operands: operands(operation.inputs()),
        device: format!("{device:?}"),
        reason: format!("the device has no {}{result}", dtype_name(dtype)),
        remedy: "use a dtype for which `Device::supports_dtype` answers true".to_owned(),
    }
}

/// A dtype as an error names it.
fn dtype_name(dtype: DType) -> String {
    match dtype {
        DType::QFloat(scheme) => format!("{:?} values with {:?} scales", scheme.value, scheme.scale_dtype()),
        dtype => dtype.name().to_owned(),
    }
}

/// The catalogue's entry for an operation that the stream does not carry to the backend.
fn refused_on_the_stream(operation: &OperationIr, is_quantized: bool) -> Option<&'static str> {
    match operation {
        OperationIr::Custom(custom) if custom::known(custom).is_some() => None,
        OperationIr::Custom(custom) => (!promise::keeps(&custom.id)).then_some("custom"),
        operation if is_quantized && !quantized::is_known(operation) => Some("quantized"),
        _ => None,
    }
}

fn int_cast(cast: &CastOpIr, context: &mut Context<CubeFusionHandle>) {
    let output = B::int_cast(global_operand(&cast.input, context), cast.out.dtype.into());
    context.handles.register_handle(cast.out.id, B::int_tensor_handle(output));
}

/// The tensor behind a handle, by the kind of its dtype.
fn primitive(tensor: &TensorIr, context: &mut Context<CubeFusionHandle>) -> HandleKind<B> {
    let operand = global_operand(tensor, context);
    match tensor.dtype {
        dtype if dtype.is_float() => HandleKind::Float(operand),
        dtype if dtype.is_bool() => HandleKind::Bool(operand),
        _ => HandleKind::Int(operand),
    }
}
