//! Copies whose channels are contiguous.

use super::super::kernel::{SPATIAL, Spatial, SpatialLaunch};
use crate::buffer::unwritten;
use crate::subnormals::keep_subnormals;
use crate::{KernelError, device, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Copies `source`, `[outer, groups, channels, d, h, w]`, from its element `first` on, to `[outer, groups, target d, target h, target w,
/// vectors of channels]`. Position 0 of the source is position `lead` of the target. What the source does not have is zero.
///
/// Units that follow each other are neighbours along the positions, as the elements of the source are.
#[cube(launch_unchecked)]
fn pack_channels<E: Float, V: Size>(
    source: &Tensor<E>,
    packed: &mut [Vector<E, V>],
    first: u32,
    lead: Spatial,
    target: Spatial,
    units: u32,
    #[comptime] whole: bool,
    #[define(E)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let width = V::value();
    let (groups, channels) = (source.shape(1) as u32, source.shape(2) as u32);
    let vectors = channels.div_ceil(comptime!(width as u32));
    let positions = target.d * target.h * target.w;
    let (rest, position) = (unit / positions, unit % positions);
    let (outer, vector) = (rest / vectors, rest % vectors);
    let at = target.split(position);
    let from = Spatial { d: at.d - lead.d, h: at.h - lead.h, w: at.w - lead.w };
    let channel = vector * comptime!(width as u32);
    let mut elements = Vector::<E, V>::new(E::new(0.0));
    let lengths = Spatial::shape::<E>(source);
    if from.exists(&lengths, comptime!([false; 3])) {
        let offset = first
            + outer / groups * source.stride(0) as u32
            + outer % groups * source.stride(1) as u32
            + channel * source.stride(2) as u32
            + from.d * source.stride(SPATIAL) as u32
            + from.h * source.stride(SPATIAL + 1) as u32
            + from.w * source.stride(SPATIAL + 2) as u32;
        #[unroll]
        for i in 0..width {
            if comptime!(whole) || channel + comptime!(i as u32) < channels {
                elements.insert(i, source[offset as usize + i * source.stride(2)]);
            }
        }
    }
    packed[((outer * positions + position) * vectors + vector) as usize] = elements;
    keep_subnormals();
}

/// The places of a tensor's positions in a copy, along depth, height and width.
pub(super) struct Positions {
    /// Positions of the copy.
    pub lengths: [usize; 3],
    /// Where in the copy the tensor's first one is.
    pub lead: [usize; 3],
}

/// `source`, `[outer, groups, channels, d, h, w]`, from its element `first` on, as `[outer, groups, positions.., channels]`: channels in
/// vectors of `width`, of which it has at least one element. Positions and channels that the source does not have are zero.
pub(super) fn pack(
    client: &Client,
    kernel: &'static str,
    source: TensorHandle,
    first: usize,
    positions: &Positions,
    width: usize,
) -> Result<TensorHandle, KernelError> {
    device::require_units(client, kernel, grid::UNITS)?;
    let (shape, dtype) = (source.shape().to_vec(), source.dtype);
    let vectors = shape[2].div_ceil(width);
    let lengths = positions.lengths;
    let packed =
        unwritten(client, vec![shape[0], shape[1], lengths[0], lengths[1], lengths[2], vectors * width], dtype);
    let units = packed.shape().iter().product::<usize>() / width;
    let (cubes, dim) = grid::grid(units);
    let spatial = |of: [usize; 3]| {
        let [d, h, w] = of.map(|length| length as u32);
        SpatialLaunch::new(d, h, w)
    };
    // SAFETY: a unit below `units` reads elements of the source at positions and channels that are compared with its lengths, and writes
    // a vector of its own; the copy has whole vectors.
    unsafe {
        pack_channels::launch_unchecked(
            client,
            cubes,
            dim,
            width,
            source.into_arg(),
            packed.clone().into_arg().into_buffer_arg(),
            first as u32,
            spatial(positions.lead),
            spatial(lengths),
            units as u32,
            shape[2].is_multiple_of(width),
            dtype,
        );
    }
    Ok(packed)
}
