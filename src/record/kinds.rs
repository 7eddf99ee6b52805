//! What an operation is to a recording.

use crate::{catalogue, context};
use burn_deterministic_recording::{Draw, Operation};
use burn_ir::{BaseOperationIr, FloatOperationIr, NumericOperationIr, OperationIr};

/// The name of `operation` in a record.
pub(super) fn name(operation: &OperationIr) -> &str {
    match operation {
        OperationIr::Init(_) => Operation::UPLOAD,
        operation => catalogue::name(operation),
    }
}

/// Whether `operation` begins a backward pass: burn-autodiff makes the gradient of a loss of one element so.
pub(super) fn begins_backward_pass(operation: &OperationIr) -> bool {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::Ones(ones)) => ones.out.shape.num_elements() == 1,
        _ => false,
    }
}

/// Whether the results of `operation` may be an update's: element-wise operations of floats, reductions and movements of data.
pub(super) fn is_elementwise(operation: &OperationIr) -> bool {
    match operation {
        OperationIr::Float(_, operation) => !matches!(operation, FloatOperationIr::Matmul(_)),
        OperationIr::NumericFloat(..) | OperationIr::BaseFloat(_) => true,
        _ => false,
    }
}

/// Whether `operation` adds or subtracts two tensors.
pub(super) fn adds(operation: &OperationIr) -> bool {
    matches!(operation, OperationIr::NumericFloat(_, NumericOperationIr::Add(_) | NumericOperationIr::Sub(_)))
}

/// A draw, with a hash of its key.
pub(super) fn drawn((key, stream): &context::Draw) -> Draw {
    let hash = blake3::hash(key);
    let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes");
    Draw { key: u64::from_le_bytes(first), stream: *stream }
}
