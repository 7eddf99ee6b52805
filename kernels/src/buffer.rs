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

/// Most bytes of results that are in one reservation, which lives as long as one of them.
pub(crate) const SHARED: usize = 1 << 16;

/// Most times the bytes of a result that one reservation holds for it.
const MOST_TIMES: usize = 8;

/// Bytes that a smaller result takes by itself.
const LEAST: usize = 1 << 9;

/// A dense tensor for a kernel to write.
pub(crate) struct Unwritten<'a> {
    pub shape: &'a [usize],
    pub dtype: ElemType,
    /// Where it is, unless in memory of its own.
    pub memory: Option<Handle>,
}

/// The tensors. Small ones that follow each other are reserved at once: each reservation is a request to the thread that launches,
/// and a search for room.
pub(crate) fn unwritten_each(client: &Client, tensors: Vec<Unwritten<'_>>) -> Vec<TensorHandle> {
    let bytes =
        |tensor: &Unwritten<'_>| tensor.shape.iter().product::<usize>().max(1).saturating_mul(tensor.dtype.size());
    let sizes: Vec<_> = tensors.iter().filter(|tensor| tensor.memory.is_none()).map(bytes).collect();
    let (mut rest, mut reserved) = (&sizes[..], Vec::with_capacity(sizes.len()));
    while !rest.is_empty() {
        let (now, later) = rest.split_at(at_once(rest));
        let layout =
            |&size: &usize| MemoryLayoutDescriptor::new(MemoryLayoutStrategy::Contiguous, Shape::from([size]), 1);
        reserved.extend(client.empty_tensors(now.iter().map(layout).collect()));
        rest = later;
    }
    let mut reserved = reserved.into_iter().map(|layout: MemoryLayout| layout.memory);
    let tensor = |Unwritten { shape, dtype, memory }: Unwritten<'_>| {
        let handle = memory.or_else(|| reserved.next()).expect("memory for each tensor");
        TensorHandle::new_contiguous(shape.to_vec(), handle, dtype)
    };
    tensors.into_iter().map(tensor).collect()
}

/// How many of the first results of these bytes are reserved at once: one at least.
fn at_once(sizes: &[usize]) -> usize {
    let (mut sum, mut least) = (0usize, SHARED);
    let fits = |&size: &&usize| {
        let bytes = (*size).max(LEAST);
        sum = sum.saturating_add(bytes);
        least = least.min(bytes);
        sum <= SHARED.min(MOST_TIMES * least)
    };
    sizes.iter().take_while(fits).count().max(1)
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

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST_TIMES, SHARED, at_once};

    #[test]
    fn small_results_of_like_sizes_are_reserved_at_once() {
        assert_eq!(at_once(&[4; 20]), MOST_TIMES);
        assert_eq!(at_once(&[4096; 4]), 4);
        assert_eq!(at_once(&[SHARED / 2; 3]), 2);
        assert_eq!(at_once(&[SHARED / 2 + 1; 3]), 1);
        assert_eq!(at_once(&[SHARED + 1, 4]), 1, "by itself");
        assert_eq!(at_once(&[4, SHARED]), 1, "a small one holds no large one");
        assert_eq!(at_once(&[SHARED / 2, 4]), 1, "in whatever order");
        assert_eq!(at_once(&[4, 7 * LEAST, 4]), 2, "8 times what the smallest takes");
        assert_eq!(at_once(&[usize::MAX, usize::MAX]), 1);
    }
}
