//! One function of two integers of any type, in a kernel of its own: a [`Program`](super::Program) has those of i32.

use super::integer;
use super::kernel::{Axis, AxisLaunch, offset};
use super::program::IntBinary;
use crate::buffer::unwritten;
use crate::dtype::{U32, supported};
use crate::subnormals::keep_subnormals;
use crate::view::{broadcast_strides, checked_elements, join, require_reach};
use crate::{KernelError, device, grid};
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

const KERNEL: &str = "elementwise::of_integers";

/// Two operands over the same axes.
#[derive(CubeType, CubeLaunch)]
pub struct Operands<S: Int> {
    operands: Sequence<Box<[S]>>,
    /// One for each axis.
    strides: Sequence<u32>,
    axes: Sequence<Axis>,
}

/// One unit computes an element.
#[cube(launch_unchecked)]
fn integers<S: Int, I: Int, U: Int>(
    inputs: &Operands<S>,
    output: &mut [S],
    elements: u32,
    #[comptime] function: IntBinary,
    #[comptime] bits: u32,
    #[define(S, I, U)] _dtypes: [ElemType; 3],
) {
    let at = ABSOLUTE_POS as u32;
    if at >= elements {
        terminate!();
    }
    let a = inputs.operands[0][offset(&inputs.strides, &inputs.axes, at, 0u32, 0usize)];
    let b = inputs.operands[1][offset(&inputs.strides, &inputs.axes, at, 0u32, 1usize)];
    let (a, b) = (U::reinterpret(I::cast_from(a)), U::reinterpret(I::cast_from(b)));
    output[at as usize] = S::cast_from(I::reinterpret(integer::binary::<I, U>(a, b, function, bits)));
    keep_subnormals();
}

/// The types in which integers are computed: 32 bits at least, the second without a sign.
fn registers(dtype: ElemType) -> [ElemType; 2] {
    let long = ElemType::UInt(UIntKind::U64);
    match dtype {
        ElemType::Int(IntKind::I64) => [dtype, long],
        ElemType::UInt(UIntKind::U64) => [long, long],
        ElemType::Int(_) => [ElemType::Int(IntKind::I32), U32],
        _ => [U32, U32],
    }
}

/// `function` of the elements of two tensors of one type of integers, which broadcast to `shape`.
///
/// # Errors
///
/// [`KernelError::Shape`] when an operand does not broadcast to `shape`, has another type or is out of the reach of 32-bit
/// indices; [`KernelError::Dtype`] for another type than integers that the device has.
pub fn of_integers(
    client: &Client,
    function: IntBinary,
    lhs: TensorHandle,
    rhs: TensorHandle,
    shape: &[usize],
) -> Result<TensorHandle, KernelError> {
    let dtype = lhs.dtype;
    supported(client, KERNEL, dtype, "convert to i32")?;
    if !matches!(dtype, ElemType::Int(_) | ElemType::UInt(_)) {
        return Err(KernelError::Dtype { kernel: KERNEL, dtype, remedy: "convert to i32" });
    }
    if rhs.dtype != dtype {
        let reason = format!("operands of {dtype} and of {}, want one element type", rhs.dtype);
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let elements = checked_elements(KERNEL, shape)?;
    let output = unwritten(client, shape.to_vec(), dtype);
    require_reach(KERNEL, [&lhs, &rhs])?;
    let strides = |operand: &TensorHandle| {
        broadcast_strides(operand.shape(), operand.strides(), shape).ok_or_else(|| KernelError::Shape {
            kernel: KERNEL,
            reason: format!("an operand of shape {:?} does not broadcast to {shape:?}", &operand.shape()[..]),
        })
    };
    let (a, b) = (strides(&lhs)?, strides(&rhs)?);
    if elements == 0 {
        return Ok(output);
    }
    device::require_units(client, KERNEL, grid::UNITS)?;
    let joined = join(0..shape.len(), shape, &[&a, &b]);
    // At least one axis.
    let axes = if joined.is_empty() { vec![(1, 0)] } else { joined };
    let mut sizes = SequenceArg::new();
    axes.iter().for_each(|axis| sizes.push(AxisLaunch::of(axis.0 as u32)));
    let (mut operands, mut along_axes) = (SequenceArg::new(), SequenceArg::new());
    for (tensor, strides) in [(lhs, a), (rhs, b)] {
        axes.iter().for_each(|axis| along_axes.push(strides.get(axis.1).copied().unwrap_or(0) as u32));
        operands.push(tensor.into_arg().into_buffer_arg());
    }
    let (count, dim) = grid::grid(elements);
    let [signed, unsigned] = registers(dtype);
    // SAFETY: units beyond `elements` stop; offsets of operands come from strides checked against the shape, and the output
    // holds as many elements.
    unsafe {
        integers::launch_unchecked(
            client,
            count,
            dim,
            OperandsLaunch::new(operands, along_axes, sizes),
            output.clone().into_arg().into_buffer_arg(),
            elements as u32,
            function,
            8 * dtype.size() as u32,
            [dtype, signed, unsigned],
        );
    }
    Ok(output)
}
