//! Which shapes fit together.

use super::operands::Operands;
use crate::KernelError;
use crate::grid::MAX_ITERATIONS;
use crate::view::{addressable, require_shape};

/// How taps step over an image, rows before columns, and which channels share weights and offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeformParams {
    /// From one output position to the next.
    pub stride: [usize; 2],
    /// Positions outside the image, on each side.
    pub padding: [usize; 2],
    /// From one tap to the next.
    pub dilation: [usize; 2],
    /// Groups of channels that do not mix.
    pub weight_groups: usize,
    /// Groups of channels that sample at the same places.
    pub offset_groups: usize,
}

/// The checked sizes of a deformable convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Rows and columns of an image.
    pub image: [usize; 2],
    /// Channels of the output.
    pub outputs: usize,
    /// Taps down and across.
    pub taps: [usize; 2],
    /// Rows and columns of the output.
    pub positions: [usize; 2],
    /// The steps and groups.
    pub params: DeformParams,
}

impl Geometry {
    /// The sizes of `operands`, or why they do not fit together.
    ///
    /// # Errors
    ///
    /// [`KernelError::Shape`].
    pub fn new(kernel: &'static str, operands: &Operands, params: &DeformParams) -> Result<Self, KernelError> {
        let mask = operands.mask.as_ref().map(|mask| &mask.shape()[..]);
        Self::of_shapes(kernel, operands.input.shape(), operands.offset.shape(), operands.weight.shape(), mask, params)
    }

    /// [`new`](Self::new), from shapes.
    ///
    /// # Errors
    ///
    /// [`KernelError::Shape`].
    pub fn of_shapes(
        kernel: &'static str,
        input: &[usize],
        offset: &[usize],
        weight: &[usize],
        mask: Option<&[usize]>,
        params: &DeformParams,
    ) -> Result<Self, KernelError> {
        let refuse = |reason: String| Err(KernelError::Shape { kernel, reason });
        let (&[batch, channels, height, width], &[outputs, group_channels, down, across]) = (input, weight) else {
            return refuse(format!("input {input:?} and weight {weight:?}, want four axes each"));
        };
        let DeformParams { stride, padding, dilation, weight_groups, offset_groups } = *params;
        if [weight_groups, offset_groups, down, across].contains(&0) || [stride, dilation].concat().contains(&0) {
            return refuse(format!("weight {weight:?} with {params:?}: taps, steps and groups must not be zero"));
        }
        let splits = outputs.is_multiple_of(weight_groups)
            && channels.is_multiple_of(offset_groups)
            && group_channels.checked_mul(weight_groups) == Some(channels);
        if !splits {
            return refuse(format!(
                "input {input:?} and weight {weight:?} do not split into {weight_groups} weight groups and \
                 {offset_groups} offset groups"
            ));
        }
        let (image, taps) = ([height, width], [down, across]);
        let mut positions = [0; 2];
        for axis in 0..2 {
            let reach = dilation[axis].saturating_mul(taps[axis] - 1).saturating_add(1);
            let padded = image[axis].saturating_add(padding[axis].saturating_mul(2));
            if reach > padded || padded > i32::MAX as usize / 2 {
                return refuse(format!("taps over {reach} positions of an axis of {padded}, padding included"));
            }
            positions[axis] = (padded - reach) / stride[axis] + 1;
        }
        let [rows, columns] = positions;
        let places = offset_groups * down * across;
        require_shape(kernel, "offset", offset, &[batch, places * 2, rows, columns])?;
        if let Some(mask) = mask {
            require_shape(kernel, "mask", mask, &[batch, places, rows, columns])?;
        }
        if channels / offset_groups > MAX_ITERATIONS {
            return refuse(format!(
                "{channels} channels in {offset_groups} offset groups, want {MAX_ITERATIONS} a group"
            ));
        }
        let geometry = Self { batch, channels, image, outputs, taps, positions, params: *params };
        let sampled = [batch, channels.max(offset_groups * 2), down * across, rows, columns];
        let (input, output) = ([batch, channels.max(1), height, width], geometry.output_shape());
        addressable(kernel, &[&sampled, &input, &output])?;
        Ok(geometry)
    }

    /// `[batch, output channels, rows, columns]`.
    pub fn output_shape(&self) -> [usize; 4] {
        [self.batch, self.outputs, self.positions[0], self.positions[1]]
    }

    /// Taps, all of them.
    pub(super) fn kernel_size(&self) -> usize {
        self.taps[0] * self.taps[1]
    }

    /// Output positions of an image.
    pub(super) fn area(&self) -> usize {
        self.positions[0] * self.positions[1]
    }

    /// Places that an image is sampled at, for one channel of each offset group.
    pub(super) fn samples(&self) -> usize {
        self.params.offset_groups * self.kernel_size() * self.area()
    }

    /// Channels that sample at the same places.
    pub(super) fn group_channels(&self) -> usize {
        self.channels / self.params.offset_groups
    }
}
