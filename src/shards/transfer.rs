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
pub(super) struct Copied {
    /// In the order in which they were added.
    values: Vec<TensorData>,
    places: HashMap<ParamId, usize>,
}

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
    /// The device's; and the text of the panic with which Burn tells of a tensor that was computed from one of another
    /// device.
    pub(super) fn execute(self) -> Result<Copied, String> {
        if self.ids.is_empty() {
            return Ok(Copied::default());
        }
        let values = caught(|| self.transaction.try_execute())?;
        let values = values.map_err(|error| error.to_string())?;
        let mut copied = Copied::default();
        self.ids.into_iter().zip(values).for_each(|(id, value)| copied.put_in(id, value));
        Ok(copied)
    }
}

impl Copied {
    pub(super) fn contains(&self, id: ParamId) -> bool {
        self.places.contains_key(&id)
    }

    pub(super) fn get(&self, id: ParamId) -> Option<&TensorData> {
        self.places.get(&id).map(|place| &self.values[*place])
    }

    /// Adds a value, of an id that has none yet.
    pub(super) fn put_in(&mut self, id: ParamId, value: TensorData) {
        self.places.insert(id, self.values.len());
        self.values.push(value);
    }

    /// BLAKE3 of type, shape and bits of each, in order.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for value in &self.values {
            let dtype = format!("{:?}", value.dtype());
            hasher.update(&(dtype.len() as u64).to_le_bytes()).update(dtype.as_bytes());
            hasher.update(&(value.shape().num_dims() as u64).to_le_bytes());
            value.shape().iter().for_each(|size| {
                hasher.update(&(*size as u64).to_le_bytes());
            });
            hasher.update(value.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The tensor of an id, on `device`.
    ///
    /// # Panics
    ///
    /// When none of this id was read.
    pub(super) fn put<const D: usize, K: kind::Basic>(&self, id: ParamId, device: &Device) -> Tensor<D, K> {
        let data = self.get(id).expect("the values of a model of the same parameters").clone();
        let dtype = data.dtype();
        Tensor::from_data(data, (device, dtype))
    }
}
