//! The operations that programs have most of beside element-wise ones, without burn-router's interpreter: products, and what moves
//! elements of floats. An interpreter is made for one operation, with a copy of it and containers for its operands and results:
//! of a run of an LSTM that is a fifth of the time (benches/README.md).

use super::handles::global_operand;
use crate::backend::Deterministic;
use burn_backend::ops::FloatTensorOps;
use burn_cubecl::CubeBackend;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{BackendIr, BaseOperationIr, FloatOperationIr, OperationIr, TensorIr};

type B = Deterministic<CubeBackend>;

/// Runs `operation` by the method that the interpreter would call. False for any other operation, which has not run.
pub(super) fn run(operation: &OperationIr, context: &mut Context<CubeFusionHandle>) -> bool {
    use BaseOperationIr::{Expand, Permute, Reshape, Slice, SliceAssign, SwapDims};
    let mut float = |tensor: &TensorIr| global_operand(tensor, context);
    let (out, result) = match operation {
        OperationIr::Float(_, FloatOperationIr::Matmul(ir)) => {
            let (lhs, rhs) = (float(&ir.lhs), float(&ir.rhs));
            (&ir.out, B::float_matmul(lhs, rhs))
        }
        OperationIr::BaseFloat(Reshape(ir)) => (&ir.out, B::float_reshape(float(&ir.input), ir.out.shape.clone())),
        OperationIr::BaseFloat(Expand(ir)) => (&ir.out, B::float_expand(float(&ir.input), ir.out.shape.clone())),
        OperationIr::BaseFloat(SwapDims(ir)) => (&ir.out, B::float_swap_dims(float(&ir.input), ir.dim1, ir.dim2)),
        OperationIr::BaseFloat(Permute(ir)) => (&ir.out, B::float_permute(float(&ir.input), &ir.axes)),
        OperationIr::BaseFloat(Slice(ir)) => (&ir.out, B::float_slice(float(&ir.tensor), &ir.ranges)),
        OperationIr::BaseFloat(SliceAssign(ir)) => {
            let (tensor, value) = (float(&ir.tensor), float(&ir.value));
            (&ir.out, B::float_slice_assign(tensor, &ir.ranges, value))
        }
        _ => return false,
    };
    context.handles.register_handle(out.id, B::float_tensor_handle(result));
    true
}
