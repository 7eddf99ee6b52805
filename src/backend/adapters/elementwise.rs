//! Elementary functions and other element-wise operations that are kernels of ours below Burn's stream too. On the
//! stream `route::elementwise` runs them with their neighbours.

use super::{Output, operand, run};
use crate::backend::forward::{cast_run_to_run, f64_run_to_run};
use crate::backend::refused::{poison, refuse};
use crate::context::in_method;
use crate::error::Error;
use crate::settings::{Guarantee, determinism};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::{BoolDType, DType, FloatDType, IntDType, Scalar, Shape, TensorMetadata};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::append_only::AppendOnly;
use burn_deterministic_kernels::elementwise::{
    self, Binary, Comparison, Half, Instruction, IntBinary, Operands, Program, Unary, Value,
};
use burn_std::{bf16, f16};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::InputScalar;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

/// The half type that this is, if it is one.
pub(crate) fn half(dtype: DType) -> Option<Half> {
    match dtype {
        DType::F16 => Some(Half::F16),
        DType::BF16 => Some(Half::Bf16),
        _ => None,
    }
}

/// The bits of a number as an f32, rounded to that and then, where `dtype` is a half type, to it: Burn's own order.
pub(crate) fn scalar_bits(scalar: Scalar, dtype: DType) -> u32 {
    let value: f32 = scalar.elem();
    let rounded = match dtype {
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::BF16 => bf16::from_f32(value).to_f32(),
        _ => value,
    };
    rounded.to_bits()
}

/// A function of each element.
pub(in crate::backend) fn unary(
    operation: &'static str,
    function: Unary,
    tensor: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let f64 = match function {
        Unary::Absolute | Unary::Round | Unary::Floor | Unary::Ceiling | Unary::Truncate => Double::Exact,
        Unary::Reciprocal | Unary::SquareRoot => Double::Rounded,
        _ => Double::Elementary,
    };
    let work = Work { f64, ..Work::of(Instruction::Unary(function, Value::Input(0)), &[]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor))
}

/// Whether the device has functions of its own for f64.
fn of_binary(function: Binary) -> Double {
    match function {
        Binary::Power | Binary::ArcTangent => Double::Elementary,
        _ => Double::Rounded,
    }
}

/// A function of two elements, whose tensors broadcast.
pub(in crate::backend) fn binary(
    operation: &'static str,
    function: Binary,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let shape = lhs.shape().broadcast(&rhs.shape()).expect("Burn checks that shapes broadcast");
    let instruction = Instruction::Binary(function, Value::Input(0), Value::Input(1));
    let work = Work { f64: of_binary(function), ..Work::of(instruction, &[]) };
    compute(operation, work, [lhs, rhs], shape, |[lhs, rhs]| plain(lhs, rhs))
}

/// A function of each element and a number, which is rounded to the tensor's type, but the exponent of a power to f32.
pub(in crate::backend) fn with_scalar(
    operation: &'static str,
    function: Binary,
    tensor: CubeTensor,
    scalar: Scalar,
    plain: impl FnOnce(CubeTensor, Scalar) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let dtype = if function == Binary::Power { DType::F32 } else { tensor.dtype };
    let instruction = Instruction::Binary(function, Value::Input(0), Value::Scalar(0));
    let work = Work { f64: of_binary(function), ..Work::of(instruction, &[scalar_bits(scalar, dtype)]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, scalar))
}

/// Whether two elements, whose tensors broadcast, compare so.
pub(in crate::backend) fn compare(
    operation: &'static str,
    comparison: Comparison,
    lhs: CubeTensor,
    rhs: CubeTensor,
    out_dtype: BoolDType,
    plain: impl FnOnce(CubeTensor, CubeTensor, BoolDType) -> CubeTensor,
) -> CubeTensor {
    let shape = lhs.shape().broadcast(&rhs.shape()).expect("Burn checks that shapes broadcast");
    let function = Function::Compare(comparison, Value::Input(1));
    let work = Work { f64: Double::Exact, result: Some(out_dtype.into()), ..Work::new(function, &[]) };
    compute(operation, work, [lhs, rhs], shape, |[lhs, rhs]| plain(lhs, rhs, out_dtype))
}

/// Whether each element compares so with a number, which is rounded to the tensor's type.
pub(in crate::backend) fn compare_with_scalar(
    operation: &'static str,
    comparison: Comparison,
    tensor: CubeTensor,
    scalar: Scalar,
    out_dtype: BoolDType,
    plain: impl FnOnce(CubeTensor, Scalar, BoolDType) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let function = Function::Compare(comparison, Value::Scalar(0));
    let work = Work::new(function, &[scalar_bits(scalar, tensor.dtype)]);
    let work = Work { f64: Double::Exact, result: Some(out_dtype.into()), ..work };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, scalar, out_dtype))
}

/// 1 of each positive element, -1 of a negative one, and 0 of a zero or NaN.
pub(in crate::backend) fn sign(
    operation: &'static str,
    tensor: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let numbers = [0.0f32, 1.0, -1.0].map(f32::to_bits);
    let work = Work { f64: Double::Exact, ..Work::new(Function::Sign, &numbers) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor))
}

/// Each element as a float of another type; a half type's are rounded once.
pub(in crate::backend) fn cast(
    operation: &'static str,
    tensor: CubeTensor,
    dtype: FloatDType,
    plain: fn(CubeTensor, FloatDType) -> CubeTensor,
) -> CubeTensor {
    let (from, to) = (tensor.dtype, DType::from(dtype));
    let half = match (half(from), half(to)) {
        (None, Some(half)) if from == DType::F32 => half,
        (Some(half), None) if to == DType::F32 => half,
        (Some(from), Some(to)) if from != to => {
            let wide = cast(operation, tensor, FloatDType::F32, plain);
            return cast(operation, wide, dtype, plain);
        }
        _ if from == DType::F64 && to != from => {
            return f64_run_to_run(operation, [tensor], |[tensor]| plain(tensor, dtype));
        }
        // To f64, which is exact, or to the same type.
        _ => return in_method(|| plain(tensor, dtype)),
    };
    let shape = tensor.shape();
    let work = Work { result: Some(to), ..Work::of(Instruction::Unary(half.rounding(), Value::Input(0)), &[]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, dtype))
}

/// Each i32 as an f32, and that rounded to a half type; integers of other types and other floats as the inner backend has
/// them.
pub(in crate::backend) fn from_int(
    operation: &'static str,
    tensor: CubeTensor,
    out_dtype: FloatDType,
    plain: impl FnOnce(CubeTensor, FloatDType) -> CubeTensor,
) -> CubeTensor {
    let to = DType::from(out_dtype);
    let is_rounded = match tensor.dtype {
        DType::I64 | DType::U64 => true,
        DType::U32 => to != DType::F64,
        DType::I32 => false,
        // Of at most 16 bits.
        _ => half(to).is_some(),
    };
    if is_rounded {
        return cast_run_to_run(operation, tensor, |tensor| plain(tensor, out_dtype));
    }
    if tensor.dtype != DType::I32 || half(to).is_none() {
        return in_method(|| plain(tensor, out_dtype));
    }
    let shape = tensor.shape();
    let work = Work { result: Some(to), ..Work::of(Instruction::ToFloat(Value::Input(0)), &[]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, out_dtype))
}

/// A function of two integers, whose tensors broadcast.
pub(in crate::backend) fn integers(
    operation: &'static str,
    function: IntBinary,
    lhs: CubeTensor,
    rhs: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let shape = lhs.shape().broadcast(&rhs.shape()).expect("Burn checks that shapes broadcast");
    run(
        operation,
        &[&lhs, &rhs],
        Output::like(&lhs, shape.clone()),
        |client| elementwise::of_integers(client, function, operand(&lhs), operand(&rhs), &shape),
        || plain(lhs.clone(), rhs.clone()),
    )
}

/// A function of each integer and a number, which is one of the tensor's type.
pub(in crate::backend) fn integers_with_scalar(
    operation: &'static str,
    function: IntBinary,
    tensor: CubeTensor,
    scalar: Scalar,
    plain: impl FnOnce(CubeTensor, Scalar) -> CubeTensor,
) -> CubeTensor {
    let (shape, dtype) = (tensor.shape(), dtype_to_elem_type(tensor.dtype));
    run(
        operation,
        &[&tensor],
        Output::like(&tensor, shape.clone()),
        |client| {
            let number = client.create_from_slice(InputScalar::new(scalar, dtype).as_bytes());
            let number = TensorHandle::new_contiguous(vec![1], number, dtype);
            elementwise::of_integers(client, function, operand(&tensor), number, &shape)
        },
        || plain(tensor.clone(), scalar),
    )
}

/// Each element within `min ..= max`, which are rounded to f32; a NaN stays.
pub(in crate::backend) fn clamp(
    operation: &'static str,
    tensor: CubeTensor,
    min: Scalar,
    max: Scalar,
    plain: impl FnOnce(CubeTensor, Scalar, Scalar) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let limits = [min, max].map(|limit| scalar_bits(limit, DType::F32));
    let work = Work { f64: Double::Exact, ..Work::new(Function::Clamp, &limits) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, min, max))
}

/// Each element truncated to an integer: of f32 and half types to an i32 the nearest one, and 0 of a NaN.
pub(in crate::backend) fn into_int(
    operation: &'static str,
    tensor: CubeTensor,
    out_dtype: IntDType,
    plain: impl FnOnce(CubeTensor, IntDType) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    if tensor.dtype == DType::F64 {
        return f64_run_to_run(operation, [tensor], |[tensor]| plain(tensor, out_dtype));
    }
    if out_dtype != IntDType::I32 {
        return cast_run_to_run(operation, tensor, |tensor| plain(tensor, out_dtype));
    }
    let work = Work { result: Some(DType::I32), ..Work::of(Instruction::ToInt(Value::Input(0)), &[]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, out_dtype))
}

/// What the inner backend's kernel makes of f64.
enum Double {
    /// What every device makes of it.
    Exact,
    /// One operation, rounded by the device.
    Rounded,
    /// A function that the device's compiler has, or has not.
    Elementary,
}

/// What a kernel computes of its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    One(Instruction),
    /// The first operand within the first two scalars.
    Clamp,
    /// The first three scalars, 0, 1 and -1, by the first operand's sign.
    Sign,
    /// A condition of the first operand and a value.
    Compare(Comparison, Value),
}

/// Programs that have run: the kernel of one is looked up by it, and freed memory of the host's takes as long as a launch where
/// another thread has allocated it.
static PROGRAMS: AppendOnly<(Function, Option<Half>), Arc<Program>> = AppendOnly::new();

impl Function {
    /// The program that writes it, rounded where the result is of a half type.
    fn program(self, half: Option<Half>) -> Arc<Program> {
        let key = (self, half);
        PROGRAMS.get(&key).unwrap_or_else(|| PROGRAMS.keep(key, Arc::new(self.make(half)))).clone()
    }

    fn make(self, half: Option<Half>) -> Program {
        let mut program = Program::default();
        let x = Value::Input(0);
        match self {
            Self::Compare(comparison, other) => {
                program.condition(Instruction::Compare(comparison, x, other));
                program.output_condition(0);
                return program;
            }
            Self::One(instruction) => program.word(instruction),
            Self::Clamp => program.clamp(x, Value::Scalar(0), Value::Scalar(1)),
            Self::Sign => {
                let [zero, one, minus_one] = [0, 1, 2].map(Value::Scalar);
                let is_negative = program.condition(Instruction::Compare(Comparison::Less, x, zero));
                let other = program.word(Instruction::Select(is_negative, minus_one, zero));
                let is_positive = program.condition(Instruction::Compare(Comparison::Greater, x, zero));
                program.word(Instruction::Select(is_positive, one, other))
            }
        };
        let last = program.words() - 1;
        match half {
            None => program.output_word(last),
            Some(half) => {
                program.rounded(Value::Result(last), half);
                program.output_half(last + 1, half);
            }
        }
        program
    }
}

/// What a kernel computes, and of what.
struct Work {
    function: Function,
    scalars: Vec<u32>,
    f64: Double,
    /// The dtype of the result, if it is not that of the operands.
    result: Option<DType>,
}

impl Work {
    fn new(function: Function, scalars: &[u32]) -> Self {
        Self { function, scalars: scalars.to_vec(), f64: Double::Elementary, result: None }
    }

    fn of(instruction: Instruction, scalars: &[u32]) -> Self {
        Self::new(Function::One(instruction), scalars)
    }
}

/// Runs a program with one output on tensors of f32, of i32, or of half types, which are computed in f32 and rounded once. The
/// inner backend computes f64, where it can.
fn compute<const N: usize>(
    operation: &'static str,
    work: Work,
    tensors: [CubeTensor; N],
    shape: Shape,
    plain: impl FnOnce([CubeTensor; N]) -> CubeTensor,
) -> CubeTensor {
    if tensors[0].dtype == DType::F64 {
        return match work.f64 {
            Double::Exact => in_method(|| plain(tensors)),
            Double::Rounded => f64_run_to_run(operation, tensors, plain),
            Double::Elementary => of_f64(operation, tensors, shape, plain),
        };
    }
    let output = Output::like(&tensors[0], shape.clone());
    let output = Output { dtype: work.result.unwrap_or(output.dtype), ..output };
    let dtype = output.dtype;
    run(
        operation,
        &tensors.each_ref(),
        output,
        |client| {
            let operands = Operands {
                words: tensors.iter().map(operand).collect(),
                conditions: vec![],
                scalars: work.scalars.clone(),
            };
            let conditions = match dtype {
                DType::Bool(_) => dtype_to_elem_type(dtype),
                _ => ElemType::UInt(UIntKind::U32),
            };
            let results = elementwise::run(client, &work.function.program(half(dtype)), &shape, operands, conditions)?;
            let mut results = results.words.into_iter().chain(results.halves).chain(results.conditions);
            Ok(results.next().expect("the program has one output"))
        },
        || plain(tensors.clone()),
    )
}

/// Has the inner backend compute a function of f64, where the device's compiler has it.
fn of_f64<const N: usize>(
    operation: &'static str,
    tensors: [CubeTensor; N],
    shape: Shape,
    plain: impl FnOnce([CubeTensor; N]) -> CubeTensor,
) -> CubeTensor {
    let device = tensors[0].device.clone();
    let reason = match (&device, determinism().guarantee) {
        (CubeDevice::Wgpu(_), _) => {
            "SPIR-V has its elementary functions in 16 and 32 bits, and drivers compute something else in 64"
        }
        (_, Guarantee::GpuToGpu) => "functions of f64 are the device's own",
        (_, Guarantee::RunToRun) => return in_method(|| plain(tensors)),
    };
    let operands = tensors.clone();
    let poisoned = |error: &Error| poison(error, &device, shape, DType::F64);
    refuse(operation, &operands.each_ref(), (reason, "cast the tensor to f32"), || plain(tensors), poisoned)
}
