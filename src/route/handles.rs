//! Burn's handles of tensors.

use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::untile;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{BackendIr, TensorHandle, TensorIr};

/// The handle and the shape of an operand, which goes with its last use.
///
/// # Panics
///
/// When there is none.
pub(super) fn taken(tensor: &TensorIr, context: &mut Context<CubeFusionHandle>) -> TensorHandle<CubeFusionHandle> {
    // Burn skips what depends on a tensor with an error, but a read that is the tensor's last use takes the error away;
    // and now and then it loses a tensor that threads share.
    let exists = context.handles.has_handle(&tensor.id) || context.handles.error(&tensor.id).is_some();
    assert!(
        exists,
        "Burn has no data for operand {:?}: an earlier read returned the reason, or the tensor was lost between threads",
        tensor.id
    );
    TensorHandle { handle: context.handles.get_handle(&tensor.id, &tensor.status), shape: tensor.shape.clone() }
}

/// The operand of a kernel behind the relative tensor `operand`, as [`taken`].
pub(super) fn operand(operand: &TensorIr, context: &mut Context<CubeFusionHandle>) -> CubeTensor {
    let global = context.tensors[&operand.id].clone();
    let handle = taken(&TensorIr { status: operand.status, ..global }, context);
    untile(CubeBackend::float_tensor(handle))
}
