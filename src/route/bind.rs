//! From the relative operations of a cached block to the concrete ones of this invocation.
//!
//! Burn caches a block with positional tensor ids, shape ids in place of dimensions, and placeholders for scalars and
//! slice bounds; the context of an invocation has the values.

use burn_backend::Slice;
use burn_fusion::stream::{Context, ScalarId};
use burn_ir::{IrVisitorMut, OperationIr, ScalarIr, TensorIr};

/// `operation` with the tensors, scalars and ranges of `context` in it.
pub(super) fn bind<H>(operation: &OperationIr, context: &Context<H>) -> OperationIr {
    let mut bound = operation.clone();
    bound.visit_mut(&mut Binder { context });
    bound
}

struct Binder<'a, H> {
    context: &'a Context<H>,
}

impl<H> IrVisitorMut for Binder<'_, H> {
    fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
        let global = &self.context.tensors[&tensor.id];
        tensor.id = global.id;
        tensor.shape = global.shape.clone();
    }

    fn visit_scalar_mut(&mut self, scalar: &mut ScalarIr) {
        if let ScalarIr::UInt(placeholder) = *scalar
            && let Some(value) = self.context.scalars.get(&ScalarId { value: placeholder })
        {
            *scalar = *value;
        }
    }

    fn visit_range_mut(&mut self, range: &mut Slice) {
        if let Some(concrete) = self.context.ranges.get(range.start as usize) {
            *range = *concrete;
        }
    }
}
