//! The chain over parts that were computed side by side: the last step of the blocked order.

use crate::KernelError;
use crate::device::require_units;
use crate::grid::{UNITS, grid};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Chains `parts[count, elements]`, ascending: into part 0, or if it is the `last` chain, plus the `bias` of an element's channel,
/// into `output[elements]`, with one rounding. Elements are `[.., channels, positions]`.
#[cube(launch_unchecked)]
fn chain_parts<A: Numeric, O: Numeric>(
    parts: &mut [A],
    bias: ComptimeOption<&[O]>,
    output: &mut [O],
    elements: u32,
    count: u32,
    channels: u32,
    positions: u32,
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
        #[comptime]
        let value = match bias {
            ComptimeOption::Some(bias) => total + A::cast_from(bias[(unit / positions % channels) as usize]),
            ComptimeOption::None => total,
        };
        output[unit as usize] = O::cast_from(value);
    } else {
        parts[unit as usize] = total;
    }
    keep_subnormals();
}

/// A value for each channel of a result whose elements are `[.., channels, positions]`.
pub(crate) struct Bias {
    pub(crate) values: TensorHandle,
    pub(crate) positions: usize,
}

/// Chains the first `count` of some parts, as many elements each as `output` has: into part 0, or if they are the `last` ones
/// into `output`, with a bias if there is one.
pub(crate) fn chain(
    client: &Client,
    kernel: &'static str,
    parts: TensorHandle,
    count: usize,
    bias: Option<Bias>,
    output: &TensorHandle,
    last: bool,
) -> Result<(), KernelError> {
    require_units(client, kernel, UNITS)?;
    let elements = output.shape().iter().product::<usize>();
    let (cubes, dim) = grid(elements);
    let dtypes = [parts.dtype, output.dtype];
    let [channels, positions] = bias.as_ref().map_or([1, 1], |bias| [bias.values.shape()[0], bias.positions]);
    // SAFETY: a unit below `elements` reads one element of each part and of the bias, which has one for each channel, and
    // writes one of the first part or of the output, which have as many.
    unsafe {
        chain_parts::launch_unchecked(
            client,
            cubes,
            dim,
            parts.into_arg().into_buffer_arg(),
            bias.map(|bias| bias.values.into_arg().into_buffer_arg()).into(),
            output.clone().into_arg().into_buffer_arg(),
            elements as u32,
            count as u32,
            channels as u32,
            positions as u32,
            last,
            dtypes,
        );
    }
    Ok(())
}
