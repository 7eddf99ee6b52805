//! Launches.

use super::kernel::{self, SpanLaunch, WalkLaunch};
use super::plan::{self, Plan};
use super::shape::{Axis, Geometry, view_data, view_weight};
use super::weight_kernel::{self, StepLaunch};
use crate::buffer::unwritten;
use crate::grid::MAX_ITERATIONS;
use crate::view::require_shape;
use crate::{KernelError, device};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// One launch over a checked geometry, with the tile chosen by the caller: the order is the same for every [`Plan`].
pub struct Pass<'a> {
    /// Where to launch.
    pub client: &'a Client,
    /// The operation, as errors name it.
    pub kernel: &'static str,
    /// The convolution.
    pub geometry: Geometry,
    /// Spatial axes of the operands, up to 3.
    pub rank: usize,
    /// The tile of results one unit computes.
    pub plan: Plan,
}

impl Pass<'_> {
    /// From the input side to the output side.
    ///
    /// # Errors
    ///
    /// Refuses operands that do not have the geometry's shapes, and element types the device does not compute.
    pub fn to_output(
        &self,
        input: TensorHandle,
        weight: TensorHandle,
        bias: Option<TensorHandle>,
    ) -> Result<TensorHandle, KernelError> {
        require_shape(self.kernel, "input", input.shape(), &self.geometry.input_shape(self.rank))?;
        self.convolve(input, weight, bias, false)
    }

    /// From the output side to the input side.
    ///
    /// # Errors
    ///
    /// As [`to_output`](Self::to_output).
    pub fn to_input(
        &self,
        gradient: TensorHandle,
        weight: TensorHandle,
        bias: Option<TensorHandle>,
    ) -> Result<TensorHandle, KernelError> {
        require_shape(self.kernel, "output side", gradient.shape(), &self.geometry.output_shape(self.rank))?;
        self.convolve(gradient, weight, bias, true)
    }

    /// From both sides to the weight.
    ///
    /// # Errors
    ///
    /// As [`to_output`](Self::to_output).
    pub fn to_weight(&self, input: TensorHandle, gradient: TensorHandle) -> Result<TensorHandle, KernelError> {
        let Geometry { groups, inputs, outputs, axes, .. } = self.geometry;
        require_shape(self.kernel, "input", input.shape(), &self.geometry.input_shape(self.rank))?;
        require_shape(self.kernel, "output side", gradient.shape(), &self.geometry.output_shape(self.rank))?;
        let dtype = input.dtype;
        let sum = crate::dtype::float_accumulator(self.client, self.kernel, &[&input, &gradient])?;
        let taps = axes.map(|axis| axis.taps);
        let shape = [groups * outputs, inputs].into_iter().chain(taps[3 - self.rank..].iter().copied());
        let result = unwritten(self.client, shape.collect(), dtype);
        let (blocks, weights) = (self.geometry.blocks(), self.geometry.weights());
        if weights == 0 {
            return Ok(result);
        }
        if blocks > MAX_ITERATIONS {
            let reason =
                format!("a sum of {blocks} blocks of {} terms, want at most {MAX_ITERATIONS}", self.geometry.block());
            return Err(KernelError::Shape { kernel: self.kernel, reason });
        }
        let single = blocks == 1;
        let parts_dtype = if single { dtype } else { sum };
        let shape = vec![blocks, groups, outputs, inputs, taps[0], taps[1], taps[2]];
        let parts = match single {
            true => TensorHandle::new_contiguous(shape, result.handle.clone(), dtype),
            false => unwritten(self.client, shape, sum),
        };
        let tiles = outputs.div_ceil(self.plan.rows) * inputs.div_ceil(self.plan.columns);
        let (units, count, dim) = self.grid(blocks * groups * tiles * taps.iter().product::<usize>())?;
        let [d, h, w] = self.steps();
        // SAFETY: a unit below `units` owns a tap and a tile of channels; it reads positions the geometry places inside
        // the operands, whose shapes are checked, and writes its own elements of `parts`.
        unsafe {
            weight_kernel::weight_gradient_blocks::launch_unchecked(
                self.client,
                count,
                dim,
                view_data(input, groups).into_arg(),
                view_data(gradient, groups).into_arg(),
                parts.clone().into_arg(),
                d,
                h,
                w,
                units,
                self.geometry.block() as u32,
                self.plan.rows,
                self.plan.columns,
                [dtype, sum, parts_dtype],
            );
        }
        if !single {
            self.add_blocks(parts, blocks, &result)?;
        }
        Ok(result)
    }

    /// Adds blocks of sums to a result, whose element type they are rounded to.
    fn add_blocks(&self, parts: TensorHandle, blocks: usize, result: &TensorHandle) -> Result<(), KernelError> {
        let (units, count, dim) = self.grid(result.shape().iter().product())?;
        let dtypes = [parts.dtype, result.dtype];
        // SAFETY: a unit below `units` reads one element of each block and writes one of as many.
        unsafe {
            weight_kernel::add_blocks::launch_unchecked(
                self.client,
                count,
                dim,
                parts.into_arg().into_buffer_arg(),
                result.clone().into_arg().into_buffer_arg(),
                blocks as u32,
                units,
                dtypes,
            );
        }
        Ok(())
    }

    /// The two directions of a pass between activations.
    fn convolve(
        &self,
        source: TensorHandle,
        weight: TensorHandle,
        bias: Option<TensorHandle>,
        transposed: bool,
    ) -> Result<TensorHandle, KernelError> {
        let Geometry { batch, groups, inputs, outputs, axes } = self.geometry;
        let (channels, source_channels, shape) = match transposed {
            true => (inputs, outputs, self.geometry.input_shape(self.rank)),
            false => (outputs, inputs, self.geometry.output_shape(self.rank)),
        };
        let taps = axes[3 - self.rank..].iter().map(|axis| axis.taps);
        let want: Vec<usize> = [groups * outputs, inputs].into_iter().chain(taps).collect();
        require_shape(self.kernel, "weight", weight.shape(), &want)?;
        if let Some(bias) = &bias {
            require_shape(self.kernel, "bias", bias.shape(), &[groups * channels])?;
        }
        let operands: Vec<&TensorHandle> = [&source, &weight].into_iter().chain(&bias).collect();
        let sum = crate::dtype::float_accumulator(self.client, self.kernel, &operands)?;
        let dtype = source.dtype;
        let positions = shape[2..].iter().product::<usize>();
        let result = unwritten(self.client, shape.clone(), dtype);
        let tiles = groups * channels.div_ceil(self.plan.rows) * batch.div_ceil(self.plan.columns);
        let (units, count, dim) = self.grid(positions * tiles)?;
        if units == 0 {
            return Ok(result);
        }
        let bias = bias.map(|bias| contiguous(self.client, bias));
        let taps = axes.iter().map(|axis| axis.taps).product();
        let spans = plan::spans(taps, source_channels);
        // Between launches a chain is kept in the type it is computed in.
        let chains = match spans.len() == 1 || dtype == sum {
            true => result.clone(),
            false => unwritten(self.client, shape, sum),
        };
        for (n, (taps, channels)) in spans.iter().enumerate() {
            let last = n + 1 == spans.len();
            let bias = bias.clone().filter(|_| last).map(|bias| bias.into_arg().into_buffer_arg());
            let [d, h, w] = self.walks(transposed);
            let (first_channel, channels) = (channels.start as u32, channels.len() as u32);
            // SAFETY: a unit below `units` owns a position and a tile of channels and batch entries; it reads taps the
            // geometry places inside the operands, whose shapes are checked, and reads and writes its own elements of
            // the output.
            unsafe {
                kernel::convolve::launch_unchecked(
                    self.client,
                    count.clone(),
                    dim,
                    view_data(source.clone(), groups).into_arg(),
                    view_weight(weight.clone(), groups, transposed).into_arg(),
                    bias.into(),
                    view_data(chains.clone(), groups).into_arg(),
                    SpanLaunch::new(taps.start as u32, taps.end as u32, first_channel, channels),
                    d,
                    h,
                    w,
                    units,
                    self.plan.rows,
                    self.plan.columns,
                    n > 0,
                    [dtype, sum, chains.dtype],
                );
            }
        }
        if chains.dtype != dtype {
            self.add_blocks(chains, 1, &result)?;
        }
        Ok(result)
    }

    /// The grid of `units` units, if the device takes its cubes.
    fn grid(&self, units: usize) -> Result<(u32, CubeCount, CubeDim), KernelError> {
        device::require_units(self.client, self.kernel, plan::UNITS)?;
        plan::grid(units).ok_or_else(|| KernelError::Shape {
            kernel: self.kernel,
            reason: format!("{units} units of {:?}, want less than 2^31", self.plan),
        })
    }

    /// How taps step along depth, height and width.
    fn steps(&self) -> [StepLaunch; 3] {
        let step = |axis: Axis| StepLaunch::new(axis.stride as u32, axis.padding as u32, axis.dilation as u32);
        self.geometry.axes.map(step)
    }

    /// How taps walk over the source along depth, height and width.
    fn walks(&self, transposed: bool) -> [WalkLaunch; 3] {
        self.geometry.axes.map(|axis| {
            let (stride, padding, dilation) = (axis.stride as i32, axis.padding as i32, axis.dilation as i32);
            match transposed {
                true => WalkLaunch::new(1, padding, stride, -(dilation / stride), -(dilation % stride)),
                false => WalkLaunch::new(stride, -padding, 1, dilation, 0),
            }
        })
    }
}

/// `tensor` itself if its elements are dense and in order, else a copy of which this holds.
fn contiguous(client: &Client, tensor: TensorHandle) -> TensorHandle {
    match tensor.shape()[0] <= 1 || tensor.strides()[0] == 1 {
        true => tensor,
        false => {
            let dtype = tensor.dtype;
            cubecl::std::tensor::into_contiguous(client, tensor.binding(), dtype)
        }
    }
}
