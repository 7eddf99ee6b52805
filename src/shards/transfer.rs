//! Copies of tensors by way of the host, many in one read.

use crate::panic::caught;
use burn_backend::TensorData;
use burn_core::module::ParamId;
use burn_core::tensor::kind;
use burn_core::tensor::{Device, Tensor, Transaction};
use std::collections::{HashMap, HashSet};

/// Tensors to be read together.
#[derive(Default)]
pub(super) struct Reads {
    transaction: Transaction,
    ids: Vec<ParamId>,
    seen: HashSet<ParamId>,
}

/// Their values.
#[derive(Default)]
pub(super) struct Copied(HashMap<ParamId, TensorData>);

impl Reads {
    /// Adds a tensor, if there is none of this id yet.
    pub(super) fn add<const D: usize, K: kind::Transaction>(
        &mut self,
        id: ParamId,
        tensor: impl FnOnce() -> Tensor<D, K>,
    ) {
        if self.seen.insert(id) {
            self.transaction = core::mem::take(&mut self.transaction).register(tensor());
            self.ids.push(id);
        }
    }

    /// Reads them, and waits for the device once.
    ///
    /// # Errors
    ///
    /// The device's; and the text of the panic with which Burn tells of a tensor that was computed from one of another device.
    pub(super) fn execute(self) -> Result<Copied, String> {
        if self.ids.is_empty() {
            return Ok(Copied::default());
        }
        let values = caught(|| self.transaction.try_execute())?;
        let values = values.map_err(|error| error.to_string())?;
        Ok(Copied(self.ids.into_iter().zip(values).collect()))
    }
}

impl Copied {
    pub(super) fn contains(&self, id: ParamId) -> bool {
        self.0.contains_key(&id)
    }

    /// The tensor of an id, on `device`.
    ///
    /// # Panics
    ///
    /// When none of this id was read.
    pub(super) fn put<const D: usize, K: kind::Basic>(&self, id: ParamId, device: &Device) -> Tensor<D, K> {
        let data = self.0[&id].clone();
        let dtype = data.dtype();
        Tensor::from_data(data, (device, dtype))
    }
}
