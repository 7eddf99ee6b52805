//! Template: one level of the chunked sum.

mod kernel;
pub mod reference;

use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Sums along the middle axis of a contiguous `[outer, n, inner]` view, chunks of 64 ascending.
pub fn sum_level(client: &Client, input: TensorHandle, outer: usize, n: usize, inner: usize) -> TensorHandle {
    let chunks = n.div_ceil(64);
    let out = TensorHandle::new_contiguous(
        vec![outer, chunks, inner],
        client.empty(outer * chunks * inner * input.dtype.size()),
        input.dtype,
    );
    let units = outer * chunks * inner;
    let (count, dim) = crate::launch::grid(units);
    let dtype = input.dtype;
    // SAFETY: the kernel compares its unit index with `units` and reads only `outer * n * inner` elements.
    unsafe {
        kernel::sum_level::launch_unchecked(
            client,
            count,
            dim,
            input.into_arg().into_buffer_arg(),
            out.clone().into_arg().into_buffer_arg(),
            units as u32,
            n as u32,
            inner as u32,
            64,
            dtype,
        );
    }
    out
}
