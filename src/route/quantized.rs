//! Quantized tensors on Burn's stream, which burn-router's interpreter does not carry.
//!
//! burn-fusion issues these operations on them and no others: all else is composed of a `dequantize`, the operation on
//! floats, and a `quantize`.

use crate::backend::Deterministic;
use burn_backend::ops::QTensorOps;
use burn_backend::quantization::QuantizationParametersPrimitive;
use burn_backend::{DType, TensorPrimitive};
use burn_cubecl::CubeBackend;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_ir::{BaseOperationIr, FloatOperationIr, HandleContainer, OperationIr, TensorIr};

type B = Deterministic<CubeBackend>;
type Handles = HandleContainer<CubeFusionHandle>;

/// Whether an operand or a result of the operation is quantized.
pub(super) fn takes_part(operation: &OperationIr) -> bool {
    operation.nodes().iter().any(|tensor| is_quantized(tensor.dtype))
}

/// Whether [`run`] knows the operation.
pub(super) fn is_known(operation: &OperationIr) -> bool {
    use {BaseOperationIr as Base, FloatOperationIr as Float};
    match operation {
        OperationIr::Float(_, operation) => {
            matches!(operation, Float::Quantize(_) | Float::Dequantize(_) | Float::Matmul(_))
        }
        OperationIr::BaseFloat(operation) => matches!(
            operation,
            Base::Reshape(_)
                | Base::SwapDims(_)
                | Base::Permute(_)
                | Base::Flip(_)
                | Base::Expand(_)
                | Base::Slice(_)
                | Base::Select(_)
                | Base::Gather(_)
        ),
        _ => false,
    }
}

/// Runs an operation with quantized tensors, given in global form, on the deterministic backend.
///
/// # Panics
///
/// When it is refused, or not [known](is_known).
pub(super) fn run(operation: &OperationIr, handles: &mut Handles) {
    match operation {
        OperationIr::Float(_, FloatOperationIr::Quantize(ir)) => {
            let tensor = handles.get_float_tensor::<B>(&ir.tensor);
            let scales = handles.get_float_tensor::<B>(&ir.qparams.scales);
            let global = ir.qparams.global.as_ref().map(|global| handles.get_float_tensor::<B>(global));
            let output = B::quantize(tensor, &ir.scheme, QuantizationParametersPrimitive { scales, global });
            handles.register_quantized_tensor::<B>(&ir.out.id, output);
        }
        OperationIr::Float(_, FloatOperationIr::Dequantize(ir)) => {
            let output = B::dequantize(handles.get_quantized_tensor::<B>(&ir.input), ir.out.dtype.into());
            handles.register_float_tensor::<B>(&ir.out.id, output);
        }
        OperationIr::Float(_, FloatOperationIr::Matmul(ir)) => {
            let (lhs, rhs) = (operand(&ir.lhs, handles), operand(&ir.rhs, handles));
            match B::q_matmul(lhs, rhs) {
                TensorPrimitive::Float(output) => handles.register_float_tensor::<B>(&ir.out.id, output),
                TensorPrimitive::QFloat(output) => handles.register_quantized_tensor::<B>(&ir.out.id, output),
            }
        }
        OperationIr::BaseFloat(operation) => moved(operation, handles),
        _ => unreachable!("burn-fusion issues no such operation on quantized tensors"),
    }
}

/// Movements and reads at indices, whose results are quantized too.
fn moved(operation: &BaseOperationIr, handles: &mut Handles) {
    let (out, output) = match operation {
        BaseOperationIr::Reshape(ir) => {
            (&ir.out, B::q_reshape(handles.get_quantized_tensor::<B>(&ir.input), ir.out.shape.clone()))
        }
        BaseOperationIr::Expand(ir) => {
            (&ir.out, B::q_expand(handles.get_quantized_tensor::<B>(&ir.input), ir.out.shape.clone()))
        }
        BaseOperationIr::SwapDims(ir) => {
            (&ir.out, B::q_swap_dims(handles.get_quantized_tensor::<B>(&ir.input), ir.dim1, ir.dim2))
        }
        BaseOperationIr::Permute(ir) => (&ir.out, B::q_permute(handles.get_quantized_tensor::<B>(&ir.input), &ir.axes)),
        BaseOperationIr::Flip(ir) => (&ir.out, B::q_flip(handles.get_quantized_tensor::<B>(&ir.input), &ir.axes)),
        BaseOperationIr::Slice(ir) => (&ir.out, B::q_slice(handles.get_quantized_tensor::<B>(&ir.tensor), &ir.ranges)),
        BaseOperationIr::Select(ir) => {
            let tensor = handles.get_quantized_tensor::<B>(&ir.tensor);
            (&ir.out, B::q_select(tensor, ir.dim, handles.get_int_tensor::<B>(&ir.indices)))
        }
        BaseOperationIr::Gather(ir) => {
            let tensor = handles.get_quantized_tensor::<B>(&ir.tensor);
            (&ir.out, B::q_gather(ir.dim, tensor, handles.get_int_tensor::<B>(&ir.indices)))
        }
        _ => unreachable!("burn-fusion issues no such operation on quantized tensors"),
    };
    handles.register_quantized_tensor::<B>(&out.id, output);
}

fn operand(tensor: &TensorIr, handles: &mut Handles) -> TensorPrimitive<B> {
    match is_quantized(tensor.dtype) {
        true => TensorPrimitive::QFloat(handles.get_quantized_tensor::<B>(tensor)),
        false => TensorPrimitive::Float(handles.get_float_tensor::<B>(tensor)),
    }
}

pub(super) fn is_quantized(dtype: DType) -> bool {
    matches!(dtype, DType::QFloat(_))
}
