//! Digests of tensors on the device, collected without a wait for each.

use super::writer::Pending;
use burn_backend::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::untile;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::digest::{Partials, launch, most_tensors};
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
    /// A read borrows it for as long as it lasts, on another thread: one value for each device is never freed.
    client: Option<&'static Client>,
    tensors: Vec<cubecl::std::tensor::TensorHandle>,
    bytes: usize,
    launched: Vec<Partials>,
    /// Digests asked for since the last read.
    asked: usize,
}

impl Digests {
    /// Asks for the digest of a tensor: its number among those of the next [`read`](Self::read). `None` for a tensor of
    /// 2^32 elements or more, which has none.
    pub(super) fn ask(&mut self, handle: &CubeFusionHandle, shape: &Shape) -> Option<usize> {
        u32::try_from(shape.num_elements()).ok()?;
        let client = *self.client.get_or_insert_with(|| Box::leak(Box::new(handle.client.clone())));
        let tensor = plain(handle.clone(), shape);
        self.bytes += tensor.shape().iter().product::<usize>() * tensor.dtype.size();
        self.tensors.push(tensor);
        if self.tensors.len() == most_tensors(client) || self.bytes >= WAITING_BYTES {
            self.launch();
        }
        self.asked += 1;
        Some(self.asked - 1)
    }

    /// Whether so many digests wait that they should be read.
    pub(super) fn are_many(&self) -> bool {
        self.launched.len() >= LAUNCHES
    }

    /// Has all digests asked for so far read, without waiting for them.
    pub(super) fn read(&mut self) -> Pending {
        self.launch();
        self.asked = 0;
        let launched = core::mem::take(&mut self.launched);
        let Some(client) = self.client.filter(|_| !launched.is_empty()) else { return Pending::default() };
        let handles = launched.iter().map(Partials::handle).collect();
        Pending { read: Some((client, Box::pin(client.read_async(handles)))), launched }
    }

    fn launch(&mut self) {
        let tensors = core::mem::take(&mut self.tensors);
        self.bytes = 0;
        if let Some(client) = self.client.filter(|_| !tensors.is_empty()) {
            let launched = launch(client, tensors);
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
