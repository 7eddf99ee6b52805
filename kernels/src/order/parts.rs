//! The chain over parts that were computed side by side: the last step of the blocked order.

use crate::KernelError;
use crate::device::require_units;
use crate::grid::{UNITS, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Chains `parts[count, elements]`, ascending: into part 0, or if it is the `last` chain, into `output[elements]`, with one
/// rounding.
#[cube(launch_unchecked)]
fn chain_parts<A: Numeric, O: Numeric>(
    parts: &mut [A],
    output: &mut [O],
    elements: u32,
    count: u32,
    #[comptime] last: bool,
    #[define(A, O)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= elements {
        terminate!();
    }
    let mut total = parts[unit as usize];
    for part in 1..count {
        total += parts[(part * elements + unit) as usize];
    }
    if comptime!(last) {
        output[unit as usize] = O::cast_from(total);
    } else {
        parts[unit as usize] = total;
    }
}

/// Chains the first `count` of some parts, as many elements each as `output` has: into part 0, or if they are the `last` ones
/// into `output`.
pub(crate) fn chain(
    client: &Client,
    kernel: &'static str,
    parts: TensorHandle,
    count: usize,
    output: &TensorHandle,
    last: bool,
) -> Result<(), KernelError> {
    require_units(client, kernel, UNITS)?;
    let elements = output.shape().iter().product::<usize>();
    let (cubes, dim) = grid(elements);
    let dtypes = [parts.dtype, output.dtype];
    // SAFETY: a unit below `elements` reads one element of each part, and writes one of the first part or of the output,
    // which have as many.
    unsafe {
        chain_parts::launch_unchecked(
            client,
            cubes,
            dim,
            parts.into_arg().into_buffer_arg(),
            output.clone().into_arg().into_buffer_arg(),
            elements as u32,
            count as u32,
            last,
            dtypes,
        );
    }
    Ok(())
}
