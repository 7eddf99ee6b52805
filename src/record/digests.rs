//! Digests of tensors on the device, collected without a wait for each.

use super::writer::{Launched, Pending};
use crate::memory;
use burn_backend::{DType, Shape};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::untile;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::digest::{MAX_BYTES, launch, most_tensors, width};
use burn_ir::BackendIr;
use cubecl::client::Client;
use cubecl::ir::{ElemType, UIntKind};
use cubecl::std::tensor::{TensorHandle, is_contiguous};

/// Launches whose results are read together.
const LAUNCHES: usize = 32;

/// Bytes of tensors that wait for a launch at most: each keeps its memory until then.
const WAITING_BYTES: usize = 1 << 26;

/// Digests of one device: tensors that wait for a launch, and launches that wait to be read.
#[derive(Default)]
pub(super) struct Digests {
    client: Option<Client>,
    /// Tensors that are read in vectors, and others: a launch reads all of its tensors alike.
    waiting: [Waiting; 2],
    launched: Vec<Launched>,
    /// Digests asked for since the last take.
    asked: usize,
}

/// Tensors that wait for a launch, and the numbers of their digests.
#[derive(Default)]
struct Waiting {
    tensors: Vec<TensorHandle>,
    numbers: Vec<usize>,
    bytes: usize,
}

impl Digests {
    /// Asks for the digest of a tensor: its number among those of the next [`take`](Self::take). `None` for a tensor of more
    /// than [`MAX_BYTES`], which has none.
    pub(super) fn ask(&mut self, handle: &CubeFusionHandle, shape: &Shape) -> Option<usize> {
        let most = most_tensors(self.client.get_or_insert_with(|| handle.device.client()));
        let tensor = plain(handle.clone(), shape);
        let bytes = tensor.shape().iter().product::<usize>() * tensor.dtype.size();
        if bytes > MAX_BYTES {
            return None;
        }
        let kind = usize::from(width(bytes) == 1);
        let waiting = &mut self.waiting[kind];
        // A reshaped tensor, say. Nothing writes into what waits: it is in use.
        if let Some(same) = waiting.tensors.iter().position(|other| has_same_elements(&tensor, other)) {
            return Some(waiting.numbers[same]);
        }
        let number = self.asked;
        self.asked += 1;
        waiting.bytes += bytes;
        waiting.tensors.push(tensor);
        waiting.numbers.push(number);
        if waiting.tensors.len() == most || waiting.bytes >= WAITING_BYTES {
            self.launch_waiting(kind);
        }
        Some(number)
    }

    /// Whether so many digests wait that they should be read.
    pub(super) fn are_many(&self) -> bool {
        self.launched.len() >= LAUNCHES
    }

    /// All digests asked for so far, to be read by another thread, each on the stream that has launched it.
    pub(super) fn take(&mut self) -> Pending {
        self.launch();
        Pending {
            client: self.client.clone(),
            launched: core::mem::take(&mut self.launched),
            digests: core::mem::take(&mut self.asked),
        }
    }

    /// Launches what waits, before an operation that may write where it should not.
    pub(super) fn launch(&mut self) {
        (0..self.waiting.len()).for_each(|kind| self.launch_waiting(kind));
    }

    fn launch_waiting(&mut self, kind: usize) {
        let Waiting { tensors, numbers, .. } = core::mem::take(&mut self.waiting[kind]);
        if let Some(client) = self.client.as_ref().filter(|_| !tensors.is_empty()) {
            // The stream that launches is another one than that which has asked, if a group of another thread fills the launch.
            memory::wait_for_owners(client, tensors.iter().map(|tensor| &tensor.handle));
            let partials = launch(client, tensors, None).unwrap_or_else(|error| panic!("recording: {error}"));
            self.launched.push(Launched { partials, numbers });
        }
    }
}

/// Whether two tensors have the same elements in row-major order because they are the same memory.
fn has_same_elements(one: &TensorHandle, other: &TensorHandle) -> bool {
    let place = |tensor: &TensorHandle| (tensor.handle.service, tensor.handle.offset_start, tensor.handle.offset_end);
    let bytes = |tensor: &TensorHandle| tensor.shape().iter().product::<usize>() * tensor.dtype.size();
    core::ptr::eq(one.handle.memory.descriptor(), other.handle.memory.descriptor())
        && place(one) == place(other)
        && bytes(one) == bytes(other)
        && [one, other].into_iter().all(|tensor| is_contiguous(tensor.shape(), tensor.strides()))
}

/// The tensor as the digest takes it: that of a quantized tensor is of its bytes, scales included.
fn plain(handle: CubeFusionHandle, shape: &Shape) -> TensorHandle {
    if let DType::QFloat(_) = handle.dtype {
        let words = handle.handle.size_in_used() as usize / size_of::<u32>();
        let word = ElemType::UInt(UIntKind::U32);
        return TensorHandle::new_contiguous(vec![words], handle.handle, word);
    }
    untile(CubeBackend::float_tensor(burn_ir::TensorHandle { handle, shape: shape.clone() })).into()
}
