//! Elementary functions and other element-wise operations that are kernels of ours below Burn's stream too. On the
//! stream `route::elementwise` runs them with their neighbours.

use super::{Output, operand, run};
use crate::backend::Deterministic;
use crate::backend::forward::only_run_to_run;
use crate::backend::refused::{poison, refuse};
use crate::context::in_method;
use crate::error::Error;
use crate::settings::{Guarantee, determinism};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{DType, FloatDType, IntDType, Scalar, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_deterministic_kernels::elementwise::{self, Binary, Instruction, Operands, Program, Unary, Value};
use cubecl::ir::{ElemType, UIntKind};
use std::sync::Arc;

/// A function of each element.
pub(in crate::backend) fn unary(
    operation: &'static str,
    function: Unary,
    tensor: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let work = Work::of(Instruction::Unary(function, Value::Input(0)), &[]);
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor))
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
    let work = Work::of(Instruction::Binary(function, Value::Input(0), Value::Input(1)), &[]);
    compute(operation, work, [lhs, rhs], shape, |[lhs, rhs]| plain(lhs, rhs))
}

/// A function of each element and a number, which is rounded to f32.
pub(in crate::backend) fn with_scalar(
    operation: &'static str,
    function: Binary,
    tensor: CubeTensor,
    scalar: Scalar,
    plain: impl FnOnce(CubeTensor, Scalar) -> CubeTensor,
) -> CubeTensor {
    let shape = tensor.shape();
    let work = Work::of(Instruction::Binary(function, Value::Input(0), Value::Scalar(0)), &[scalar]);
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, scalar))
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
    let mut program = Program::default();
    program.clamp(Value::Input(0), Value::Scalar(0), Value::Scalar(1));
    let work = Work { elementary: false, ..Work::new(program, &[min, max]) };
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
    if tensor.dtype == DType::F64 || out_dtype != IntDType::I32 {
        return only_run_to_run(operation, tensor, |tensor| plain(tensor, out_dtype));
    }
    let work = Work { dtype: Some(DType::I32), ..Work::of(Instruction::ToInt(Value::Input(0)), &[]) };
    compute(operation, work, [tensor], shape, |[tensor]| plain(tensor, out_dtype))
}

/// What a kernel computes.
struct Work {
    program: Program,
    scalars: Vec<u32>,
    /// Whether the device has a function of its own for f64.
    elementary: bool,
    /// The dtype of the result, if it is not that of the operands.
    dtype: Option<DType>,
}

impl Work {
    /// Of a program whose last word is the result.
    fn new(mut program: Program, scalars: &[Scalar]) -> Self {
        program.output_word(program.words() - 1);
        let scalars = scalars.iter().map(|scalar| scalar.elem::<f32>().to_bits()).collect();
        Self { program, scalars, elementary: true, dtype: None }
    }

    fn of(instruction: Instruction, scalars: &[Scalar]) -> Self {
        let mut program = Program::default();
        program.word(instruction);
        Self::new(program, scalars)
    }
}

/// Runs a program on tensors of f32, or of half types as f32, which are rounded once. The inner backend computes f64,
/// where it can.
fn compute<const N: usize>(
    operation: &'static str,
    work: Work,
    tensors: [CubeTensor; N],
    shape: Shape,
    plain: impl FnOnce([CubeTensor; N]) -> CubeTensor,
) -> CubeTensor {
    let dtype = tensors[0].dtype;
    match dtype {
        DType::F32 => run(
            operation,
            &tensors.each_ref(),
            Output { dtype: work.dtype.unwrap_or(dtype), ..Output::like(&tensors[0], shape.clone()) },
            |client| {
                let Work { program, scalars, .. } = work;
                let operands = Operands { words: tensors.iter().map(operand).collect(), conditions: vec![], scalars };
                let conditions = ElemType::UInt(UIntKind::U32);
                let results = elementwise::run(client, &Arc::new(program), &shape, operands, conditions)?;
                Ok(results.words.into_iter().next().expect("the program has one output"))
            },
            || plain(tensors.clone()),
        ),
        DType::F64 if work.elementary => of_f64(operation, tensors, shape, plain),
        DType::F64 => in_method(|| plain(tensors)),
        half => {
            let wide = tensors.map(|tensor| Deterministic::<CubeBackend>::float_cast(tensor, FloatDType::F32));
            let is_float = work.dtype.is_none();
            let result = compute(operation, work, wide, shape, plain);
            match is_float {
                true => Deterministic::<CubeBackend>::float_cast(result, half.into()),
                false => result,
            }
        }
    }
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
