//! Tensors as they are saved.

use burn_backend::{Bytes, DType, Shape, TensorData};
use serde::{Deserialize, Serialize};

/// A tensor's bits. In the index stands all but the bytes, which follow it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) length: u64,
    #[serde(skip, default = "no_bytes")]
    pub(super) bytes: Bytes,
}

fn no_bytes() -> Bytes {
    Bytes::from_bytes_vec(Vec::new())
}

impl Stored {
    pub(super) fn new(data: TensorData) -> Self {
        let (bytes, shape, dtype) = data.into_parts();
        Self { dtype, shape: shape.to_vec(), length: bytes.len() as u64, bytes }
    }

    /// What is known of a tensor without reading it.
    pub(super) fn described(dtype: DType, shape: Shape) -> Self {
        Self { dtype, shape: shape.to_vec(), length: 0, bytes: no_bytes() }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::from(self.shape.clone())
    }

    /// Whether the bytes are as many as dtype and shape say.
    pub(super) fn is_whole(&self) -> bool {
        TensorData::try_from_bytes(self.bytes.clone(), self.shape(), self.dtype).is_ok()
    }

    pub(super) fn into_data(self) -> TensorData {
        let shape = self.shape();
        TensorData::from_bytes(self.bytes, shape, self.dtype)
    }
}
