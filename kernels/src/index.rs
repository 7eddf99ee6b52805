//! Indices: which row an index names, and which slice a tuple of indices names.
//!
//! An index outside its axis, a negative one among them, names nothing.

use crate::KernelError;
use crate::buffer::{words, words_arg};
use crate::dtype::supported;
use crate::grid::grid;
use crate::view::AxisView;
use cubecl::ir::{IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// The type of a tensor of indices, or of counts: i32, i64 or u32.
pub(crate) fn index_type(
    client: &Client,
    kernel: &'static str,
    indices: &TensorHandle,
) -> Result<ElemType, KernelError> {
    const REMEDY: &str = "index and count with i32, i64 or u32, whichever the device has";
    let dtype = indices.dtype;
    match dtype {
        ElemType::Int(IntKind::I32 | IntKind::I64) | ElemType::UInt(UIntKind::U32) => {
            supported(client, kernel, dtype, REMEDY).map(|()| dtype)
        }
        _ => Err(KernelError::Dtype { kernel, dtype, remedy: REMEDY }),
    }
}

/// The row an index names, or `rows` if it names none.
#[cube]
pub(crate) fn row_of<I: Int>(index: I, rows: u32) -> u32 {
    let row = u32::cast_from(index);
    // The cast may drop bits: an index is a row only if it survives the way back.
    let (positive, survives, fits) = (index >= I::from_int(0), I::cast_from(row) == index, row < rows);
    // Of values, not of calls, which would be branches: some compilers take minutes for a kernel that looks at many.
    select(positive && survives && fits, row, rows)
}

/// The number of axes of `indices[.., k]` before its tuples, if these name slices of `tensor`: `1 <= k <= rank`.
pub(crate) fn tuple_axes(kernel: &'static str, tensor: &[usize], indices: &[usize]) -> Result<usize, KernelError> {
    match indices.split_last() {
        Some((&parts, batch)) if (1..=tensor.len()).contains(&parts) => Ok(batch.len()),
        _ => {
            let reason = format!(
                "indices {indices:?} into tensor {tensor:?}, want a last axis of 1 to {} index parts",
                tensor.len()
            );
            Err(KernelError::Shape { kernel, reason })
        }
    }
}

/// The row-major rows that the tuples of `indices[.., k]` name in a tensor whose first `k` axes have these `sizes`, one
/// u32 a tuple: the product of the sizes for a tuple that names none.
pub(crate) fn tuple_rows(
    client: &Client,
    kernel: &'static str,
    indices: TensorHandle,
    sizes: &[usize],
    dtype: ElemType,
) -> Result<Handle, KernelError> {
    let batch = indices.shape().len() - 1;
    let tuples: usize = indices.shape()[..batch].iter().product();
    let indices = AxisView::new(client, kernel, indices, 0..batch)?;
    let [_, tuple_stride, part_stride] = indices.strides;
    let mut size_args = SequenceArg::new();
    for &size in sizes {
        size_args.push(size as u32);
    }
    let rows = words(client, tuples);
    let (count, dim) = grid(tuples);
    // SAFETY: units stop at the number of tuples, which is the length of `rows`; the view covers every index.
    unsafe {
        tuple_rows_kernel::launch_unchecked(
            client,
            count,
            dim,
            indices.buffer(),
            words_arg(&rows, tuples),
            tuples as u32,
            tuple_stride,
            part_stride,
            size_args,
            dtype,
        );
    }
    Ok(rows)
}

/// One unit a tuple: index `j` of tuple `t` is `indices[t * tuple_stride + j * part_stride]`.
#[cube(launch_unchecked)]
fn tuple_rows_kernel<I: Int>(
    indices: &[I],
    rows: &mut [u32],
    tuples: u32,
    tuple_stride: u32,
    part_stride: u32,
    sizes: Sequence<u32>,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= tuples {
        terminate!();
    }
    let mut row = 0u32;
    let mut count = 1u32;
    let mut inside = true;
    #[unroll]
    for part in 0..sizes.len() {
        let size = sizes[part];
        let offset = unit * tuple_stride + comptime!(part as u32) * part_stride;
        let at = row_of::<I>(indices[offset as usize], size);
        inside = inside && at < size;
        row = row * size + at;
        count *= size;
    }
    rows[unit as usize] = select(inside, row, count);
}
