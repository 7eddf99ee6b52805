//! Device memory for kernels to write.

use crate::copy;
use cubecl::prelude::*;
use cubecl::server::{Handle, MemoryLayout, MemoryLayoutDescriptor, MemoryLayoutStrategy};
use cubecl::std::tensor::TensorHandle;
use cubecl::zspace::Shape;

/// A dense tensor for a kernel to write; one element of memory where it has none, since a kernel binds no empty buffer.
pub(crate) fn unwritten(client: &Client, shape: Vec<usize>, dtype: ElemType) -> TensorHandle {
    let elements: usize = shape.iter().product();
    TensorHandle::new_contiguous(shape, client.empty(elements.max(1) * dtype.size()), dtype)
}

/// Bytes up to which the results of a kernel are in one reservation, which lives as long as one of them.
pub(crate) const SHARED: usize = 1 << 16;

/// Dense tensors of `shape`, one of each dtype, for a kernel to write. Small ones are reserved at once: each reservation is a
/// request to the thread that launches, and a search for room.
pub(crate) fn unwritten_all(client: &Client, shape: &[usize], dtypes: &[ElemType]) -> Vec<TensorHandle> {
    let elements = shape.iter().product::<usize>().max(1);
    if elements.saturating_mul(dtypes.iter().map(ElemType::size).sum()) > SHARED {
        return dtypes.iter().map(|&dtype| unwritten(client, shape.to_vec(), dtype)).collect();
    }
    let of_bytes = |dtype: &ElemType| {
        let bytes = Shape::from(vec![elements * dtype.size()]);
        MemoryLayoutDescriptor::new(MemoryLayoutStrategy::Contiguous, bytes, 1)
    };
    let layouts = client.empty_tensors(dtypes.iter().map(of_bytes).collect());
    let tensor =
        |(layout, &dtype): (MemoryLayout, _)| TensorHandle::new_contiguous(shape.to_vec(), layout.memory, dtype);
    layouts.into_iter().zip(dtypes).map(tensor).collect()
}

/// A new dense tensor of the same elements.
pub(crate) fn copy(client: &Client, tensor: TensorHandle) -> TensorHandle {
    match tensor.shape().iter().product::<usize>() {
        0 => unwritten(client, tensor.shape().to_vec(), tensor.dtype),
        _ => copy::dense(client, tensor),
    }
}

/// The tensor itself if its elements are dense and in order, else a copy in which they are.
pub(crate) fn dense(client: &Client, tensor: TensorHandle) -> TensorHandle {
    let dense = TensorHandle::new_contiguous(tensor.shape().clone(), tensor.handle.clone(), tensor.dtype);
    match dense.strides() == tensor.strides() || tensor.shape().contains(&0) {
        true => dense,
        false => copy::dense(client, tensor),
    }
}

/// A buffer of `length` 32-bit words.
pub(crate) fn words(client: &Client, length: usize) -> Handle {
    client.empty(length.max(1) * size_of::<u32>())
}

/// The argument for a buffer made by [`words`].
pub(crate) fn words_arg(buffer: &Handle, length: usize) -> BufferArg {
    // SAFETY: callers pass the length the buffer was made with.
    unsafe { BufferArg::from_raw_parts(buffer.clone(), length) }
}
