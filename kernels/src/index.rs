//! Indices: which row an index names, and which slice a tuple of indices names.
//!
//! An index outside its axis, a negative one among them, names nothing.

use crate::KernelError;
use crate::buffer::unwritten;
use crate::dtype::{U32, supported};
use crate::grid::grid;
use crate::subnormals::keep_subnormals;
use crate::view::AxisView;
use cubecl::ir::{IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Refuses indices, or counts, of another type than i32, i64 or u32.
pub(crate) fn require_indices(
    client: &Client,
    kernel: &'static str,
    indices: &TensorHandle,
) -> Result<(), KernelError> {
    const REMEDY: &str = "index and count with i32, i64 or u32, whichever the device has";
    let dtype = indices.dtype;
    match dtype {
        ElemType::Int(IntKind::I32 | IntKind::I64) | ElemType::UInt(UIntKind::U32) => {
            supported(client, kernel, dtype, REMEDY)
        }
        _ => Err(KernelError::Dtype { kernel, dtype, remedy: REMEDY }),
    }
}

/// Refuses types for a result's indices that the device does not have or that cannot count an axis of `length`.
pub(crate) fn require_counts(
    client: &Client,
    kernel: &'static str,
    index: ElemType,
    length: usize,
) -> Result<(), KernelError> {
    let remedy = "ask for indices of an integer type that the device has";
    let counts = match index {
        ElemType::Int(IntKind::I8) => 1 << 7,
        ElemType::Int(IntKind::I16) => 1 << 15,
        ElemType::UInt(UIntKind::U8) => 1 << 8,
        ElemType::UInt(UIntKind::U16) => 1 << 16,
        ElemType::Int(IntKind::I32) => 1 << 31,
        ElemType::Int(_) | ElemType::UInt(_) => usize::MAX,
        _ => return Err(KernelError::Dtype { kernel, dtype: index, remedy }),
    };
    supported(client, kernel, index, remedy)?;
    match length <= counts {
        true => Ok(()),
        false => Err(KernelError::Index { kernel, dtype: index, counts, length }),
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

/// The row-major rows that the tuples of `indices[.., k]` name in a tensor whose first `k` axes have these `sizes`, one for
/// each tuple: the product of the sizes for a tuple that names none.
pub(crate) fn tuple_rows(
    client: &Client,
    kernel: &'static str,
    indices: TensorHandle,
    sizes: &[usize],
) -> Result<TensorHandle, KernelError> {
    let tuples = Tuples::new(client, kernel, indices, sizes)?;
    let rows = unwritten(client, vec![tuples.count], U32);
    if tuples.count > 0 {
        let (count, dim) = grid(tuples.count);
        // SAFETY: units stop at the number of tuples, which is the length of `rows`; the view covers every index.
        unsafe {
            tuple_rows_kernel::launch_unchecked(
                client,
                count,
                dim,
                tuples.view.buffer(),
                rows.clone().into_arg().into_buffer_arg(),
                tuples.count as u32,
                tuples.stride,
                tuples.part_stride,
                tuples.sizes(),
                tuples.view.dtype,
            );
        }
    }
    Ok(rows)
}

/// Tuples of indices, of which part `j` counts along an axis of size `sizes[j]`: `indices[.., k]`, or with one size also
/// `indices[..]`. Part `j` of tuple `t` is at `t * stride + j * part_stride`.
pub(crate) struct Tuples {
    pub(crate) view: AxisView,
    pub(crate) count: usize,
    pub(crate) stride: u32,
    pub(crate) part_stride: u32,
    sizes: Vec<u32>,
}

impl Tuples {
    pub(crate) fn new(
        client: &Client,
        kernel: &'static str,
        indices: TensorHandle,
        sizes: &[usize],
    ) -> Result<Self, KernelError> {
        require_indices(client, kernel, &indices)?;
        let axes = indices.shape().len() - usize::from(sizes.len() > 1);
        let count = indices.shape().iter().product::<usize>() / sizes.len();
        let view = AxisView::new(client, kernel, indices, 0..axes)?;
        let [_, stride, part_stride] = view.strides;
        let sizes = sizes.iter().map(|&size| size as u32).collect();
        Ok(Self { view, count, stride, part_stride, sizes })
    }

    /// The argument for the sizes.
    pub(crate) fn sizes(&self) -> SequenceArg<u32> {
        let mut argument = SequenceArg::new();
        self.sizes.iter().for_each(|&size| argument.push(size));
        argument
    }
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
    let (row, count, inside) = row_of_tuple::<I>(indices, unit * tuple_stride, part_stride, &sizes);
    rows[unit as usize] = select(inside, row, count);
    keep_subnormals();
}

/// The row-major row that the tuple from `indices[first]` on names in axes of these `sizes`, the number of rows, and whether
/// there is such a row.
#[cube]
pub(crate) fn row_of_tuple<I: Int>(
    indices: &[I],
    first: u32,
    part_stride: u32,
    sizes: &Sequence<u32>,
) -> (u32, u32, bool) {
    let mut row = 0u32;
    let mut count = 1u32;
    let mut inside = true;
    #[unroll]
    for part in 0..sizes.len() {
        let size = sizes[part];
        let at = row_of::<I>(indices[(first + comptime!(part as u32) * part_stride) as usize], size);
        inside = inside && at < size;
        row = row * size + at;
        count *= size;
    }
    (row, count, inside)
}
