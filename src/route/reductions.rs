//! Which axes an operation of Burn's stream reduces.

use burn_backend::DType;
use burn_deterministic_kernels::elementwise::RowReduction;
use burn_ir::{NumericOperationIr, OperationIr};

/// The axes that a reduction of floats of this rank reduces.
pub(super) fn reduced_axes(operation: &OperationIr, rank: usize) -> Option<Vec<usize>> {
    use NumericOperationIr as Numeric;
    let OperationIr::NumericFloat(_, operation) = operation else { return None };
    match operation {
        Numeric::Sum(_) | Numeric::Prod(_) | Numeric::Mean(_) => Some((0..rank).collect()),
        Numeric::SumDim(ir)
        | Numeric::ProdDim(ir)
        | Numeric::MeanDim(ir)
        | Numeric::MaxDim(ir)
        | Numeric::MinDim(ir) => Some(vec![ir.axis]),
        Numeric::SumDims(ir) => Some(ir.axes.clone()),
        _ => None,
    }
}

/// The reduction along the last axis, which keeps length one, that an operation on f32 or on a half type is.
pub(super) fn row_reduction(operation: &OperationIr) -> Option<RowReduction> {
    use NumericOperationIr as Numeric;
    let OperationIr::NumericFloat(_, numeric) = operation else { return None };
    let reduction = match numeric {
        Numeric::SumDim(_) | Numeric::SumDims(_) => RowReduction::Sum,
        Numeric::ProdDim(_) => RowReduction::Prod,
        Numeric::MeanDim(_) => RowReduction::Mean,
        Numeric::MaxDim(_) => RowReduction::Max,
        Numeric::MinDim(_) => RowReduction::Min,
        _ => return None,
    };
    let input = operation.inputs().next()?;
    let last = input.shape.num_dims().checked_sub(1)?;
    (matches!(input.dtype, DType::F32 | DType::F16 | DType::BF16) && reduced_axes(operation, last + 1)? == [last])
        .then_some(reduction)
}

/// Whether `operation` finds the first element of each row at an end, and its index.
pub(super) fn finds_first(operation: &OperationIr) -> bool {
    use NumericOperationIr::{MaxDimWithIndices, MinDimWithIndices};
    match operation {
        OperationIr::NumericFloat(_, MaxDimWithIndices(ir) | MinDimWithIndices(ir)) => {
            ir.dim + 1 == ir.tensor.shape.num_dims()
        }
        _ => false,
    }
}
