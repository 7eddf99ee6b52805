//! Digests of tensors on the device, collected without a wait for each.

use super::writer::Pending;
use burn_backend::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::untile;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::digest::{MAX_BYTES, Partials, launch, most_tensors};
use burn_ir::{BackendIr, TensorHandle};
use cubecl::client::Client;
use cubecl::ir::{ElemType, UIntKind};

/// Launches whose results are read together.
const LAUNCHES: usize = 32;

/// Bytes of tensors that wait for a launch at most: each keeps its memory until then.
const WAITING_BYTES: usize = 1 << 26;

/// Digests of one device: tensors that wait for a launch, and launches that wait to be read.
#[derive(Default)]
pub(super) struct Digests {
    client: Option<Client>,
    tensors: Vec<cubecl::std::tensor::TensorHandle>,
    bytes: usize,
    launched: Vec<Partials>,
    /// Digests asked for since the last take.
    asked: usize,
}

impl Digests {
    /// Asks for the digest of a tensor: its number among those of the next [`take`](Self::take). `None` for a tensor of more
    /// than [`MAX_BYTES`], which has none.
    pub(super) fn ask(&mut self, handle: &CubeFusionHandle, shape: &Shape) -> Option<usize> {
        let most = most_tensors(self.client.get_or_insert_with(|| handle.client.clone()));
        let tensor = plain(handle.clone(), shape);
        let bytes = tensor.shape().iter().product::<usize>() * tensor.dtype.size();
        if bytes > MAX_BYTES {
            return None;
        }
        self.bytes += bytes;
        self.tensors.push(tensor);
        if self.tensors.len() == most || self.bytes >= WAITING_BYTES {
            self.launch();
        }
        self.asked += 1;
        Some(self.asked - 1)
    }

    /// Whether so many digests wait that they should be read.
    pub(super) fn are_many(&self) -> bool {
        self.launched.len() >= LAUNCHES
    }

    /// All digests asked for so far, to be read by another thread: a read waits for what has been submitted before.
    pub(super) fn take(&mut self) -> Pending {
        self.launch();
        self.asked = 0;
        Pending { client: self.client.clone(), launched: core::mem::take(&mut self.launched) }
    }

    fn launch(&mut self) {
        let tensors = core::mem::take(&mut self.tensors);
        self.bytes = 0;
        if let Some(client) = self.client.as_ref().filter(|_| !tensors.is_empty()) {
            let launched = launch(client, tensors, None);
            self.launched.push(launched.unwrap_or_else(|error| panic!("recording: {error}")));
        }
    }
}

/// The tensor as the digest takes it: that of a quantized tensor is of its bytes, scales included.
fn plain(handle: CubeFusionHandle, shape: &Shape) -> cubecl::std::tensor::TensorHandle {
    if let DType::QFloat(_) = handle.dtype {
        let words = handle.handle.size_in_used() as usize / size_of::<u32>();
        let word = ElemType::UInt(UIntKind::U32);
        return cubecl::std::tensor::TensorHandle::new_contiguous(vec![words], handle.handle, word);
    }
    untile(CubeBackend::float_tensor(TensorHandle { handle, shape: shape.clone() })).into()
}
