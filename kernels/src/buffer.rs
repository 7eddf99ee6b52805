//! Device memory for kernels to write.

use crate::copy;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// A dense tensor for a kernel to write; one element of memory where it has none, since a kernel binds no empty buffer.
pub(crate) fn unwritten(client: &Client, shape: Vec<usize>, dtype: ElemType) -> TensorHandle {
    let elements: usize = shape.iter().product();
    TensorHandle::new_contiguous(shape, client.empty(elements.max(1) * dtype.size()), dtype)
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
