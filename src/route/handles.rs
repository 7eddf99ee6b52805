//! Burn's handles of tensors.

use burn_backend::Shape;
use burn_cubecl::kernel::untile;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{TensorId, TensorIr, TensorStatus};

/// The operand of a kernel behind the relative tensor `operand`, which goes with its last use.
///
/// # Panics
///
/// When there is none.
pub(super) fn operand(operand: &TensorIr, context: &mut Context<CubeFusionHandle>) -> CubeTensor {
    let global = &context.tensors[&operand.id];
    let (id, shape) = (global.id, global.shape.clone());
    taken(id, &operand.status, shape, context)
}

/// The operand of a kernel behind a tensor in global form, as [`operand`].
pub(super) fn global_operand(operand: &TensorIr, context: &mut Context<CubeFusionHandle>) -> CubeTensor {
    taken(operand.id, &operand.status, operand.shape.clone(), context)
}

fn taken(id: TensorId, status: &TensorStatus, shape: Shape, context: &mut Context<CubeFusionHandle>) -> CubeTensor {
    // Burn skips what depends on a tensor with an error, but a read that is the tensor's last use takes the error away;
    // and now and then it loses a tensor that threads share.
    let exists = context.handles.has_handle(&id) || context.handles.error(&id).is_some();
    assert!(
        exists,
        "Burn has no data for operand {id:?}: an earlier read returned the reason, or the tensor was lost between threads"
    );
    let handle = context.handles.get_handle(&id, status);
    // Burn's own conversion copies each field.
    let meta = Box::new(handle.metadata(shape));
    let CubeFusionHandle { client, handle, device, dtype, qparams, .. } = handle;
    untile(CubeTensor { client, handle, meta, device, dtype, qparams })
}
