//! The launches of a deformable convolution and of its gradients: columns, products, contributions to the image.

use super::kernel::{self, SizesLaunch};
use super::operands::{Gradients, Operands};
use super::shape::Geometry;
use crate::arithmetic::Products;
use crate::buffer::{dense, unwritten};
use crate::coarsening::{self, Plan, Problem};
use crate::device::Machine;
use crate::dtype::{U32, float_accumulator};
use crate::grid::{UNITS, grid};
use crate::planned::require_plan;
use crate::scatter::{self, Addressing, Update};
use crate::view::transposed;
use crate::{KernelError, device, matmul, reduce};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// One deformable convolution on one device.
pub(super) struct Pass<'a> {
    client: &'a Client,
    products: Products,
    geometry: Geometry,
    dtype: ElemType,
    accumulator: ElemType,
    /// The channels of a unit that samples the image.
    plan: Plan,
}

impl<'a> Pass<'a> {
    /// Checks the operands' types, and the plan.
    pub fn new(
        client: &'a Client,
        kernel: &'static str,
        products: Products,
        geometry: Geometry,
        operands: &Operands,
        other: Option<&TensorHandle>,
        plan: Option<Plan>,
    ) -> Result<Self, KernelError> {
        let Operands { input, offset, weight, mask } = operands;
        let all: Vec<&TensorHandle> = [input, offset, weight].into_iter().chain(mask).chain(other).collect();
        let accumulator = float_accumulator(client, kernel, &all)?;
        device::require_units(client, kernel, UNITS)?;
        let problem = Problem {
            elements: geometry.batch * geometry.channels * geometry.kernel_size() * geometry.area(),
            shared: geometry.group_channels(),
            iterations: 1,
        };
        let plan = plan.unwrap_or_else(|| coarsening::plan(&problem, Machine::of(client)));
        if problem.elements > 0 {
            require_plan(kernel, &plan, plan.refuses(&problem))?;
        }
        Ok(Self { client, products, geometry, dtype: input.dtype, accumulator, plan })
    }

    /// The convolution, plus `bias`.
    pub fn forward(&self, operands: &Operands, bias: Option<TensorHandle>) -> Result<TensorHandle, KernelError> {
        let shape = self.geometry.output_shape().to_vec();
        let product =
            matmul::matmul(self.client, self.products, self.weight(&operands.weight), self.columns(operands), None)?;
        let product = with_shape(product, shape.clone());
        let Some(bias) = bias else { return Ok(product) };
        let output = unwritten(self.client, shape.clone(), self.dtype);
        let units: usize = shape.iter().product();
        if units > 0 {
            let (count, dim) = grid(units);
            // SAFETY: a unit below `units` reads and writes its element of tensors of as many, and one of the bias.
            unsafe {
                kernel::add_bias::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    product.into_arg().into_buffer_arg(),
                    bias.into_arg(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.geometry.outputs as u32,
                    self.geometry.area() as u32,
                    units as u32,
                    [self.dtype, self.accumulator],
                );
            }
        }
        Ok(output)
    }

    /// The gradients.
    pub fn backward(&self, operands: &Operands, gradient: TensorHandle) -> Result<Gradients, KernelError> {
        let Geometry { batch, outputs, channels, params, taps, .. } = self.geometry;
        let groups = params.weight_groups;
        let gradient = dense(self.client, gradient);
        let gradient = with_shape(gradient, vec![batch, groups, outputs / groups, self.geometry.area()]);

        let products =
            matmul::matmul(self.client, self.products, gradient.clone(), transposed(self.columns(operands)), None)?;
        let weight = reduce::sum(self.client, products, &[0])?;
        let weight = with_shape(weight, vec![outputs, channels / groups, taps[0], taps[1]]);

        let columns =
            matmul::matmul(self.client, self.products, transposed(self.weight(&operands.weight)), gradient, None)?;
        let (offset, mask) = self.place_gradients(operands, &columns);
        Ok(Gradients {
            input: self.input_gradient(operands, &columns)?,
            offset,
            weight,
            mask: operands.mask.is_some().then_some(mask),
        })
    }

    /// `[batch, weight groups, channels of a group * taps, positions]`.
    fn columns(&self, operands: &Operands) -> TensorHandle {
        let Geometry { batch, channels, params, .. } = self.geometry;
        let groups = params.weight_groups;
        let rows = channels / groups * self.geometry.kernel_size();
        let output = unwritten(self.client, vec![batch, groups, rows, self.geometry.area()], self.dtype);
        let elements = batch * groups * rows * self.geometry.area();
        if elements > 0 {
            let span = self.plan.span;
            let units = batch * self.geometry.samples() * self.geometry.group_channels().div_ceil(span);
            let (count, dim) = grid(units);
            // SAFETY: a unit below `units` owns an element of the output in each of its channels; it reads offsets and
            // masks of the checked shapes, and elements of the image only at rows and columns inside it.
            unsafe {
                kernel::columns::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    operands.input.clone().into_arg(),
                    operands.offset.clone().into_arg(),
                    operands.mask.clone().map(TensorHandle::into_arg).into(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.sizes(),
                    units as u32,
                    span as u32,
                    [self.dtype, self.accumulator],
                );
            }
        }
        output
    }

    /// The gradients of the offsets, and those of the masks, of ones where there is no mask.
    fn place_gradients(&self, operands: &Operands, columns: &TensorHandle) -> (TensorHandle, TensorHandle) {
        let Geometry { batch, params, positions: [rows, across], .. } = self.geometry;
        let places = params.offset_groups * self.geometry.kernel_size();
        let offset = unwritten(self.client, vec![batch, places * 2, rows, across], self.dtype);
        let mask = unwritten(self.client, vec![batch, places, rows, across], self.dtype);
        let units = batch * self.geometry.samples();
        if units > 0 {
            let (count, dim) = grid(units);
            // SAFETY: a unit below `units` owns two elements of the offsets' gradient and one of the masks'; it reads
            // a gradient for each channel of its group, and of the image only rows and columns inside it.
            unsafe {
                kernel::place_gradients::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    operands.input.clone().into_arg(),
                    operands.offset.clone().into_arg(),
                    operands.mask.clone().map(TensorHandle::into_arg).into(),
                    columns.clone().into_arg().into_buffer_arg(),
                    offset.clone().into_arg().into_buffer_arg(),
                    mask.clone().into_arg().into_buffer_arg(),
                    self.sizes(),
                    units as u32,
                    [self.dtype, self.accumulator],
                );
            }
        }
        (offset, mask)
    }

    /// The gradient of the image: the updates by the first corner of all points, then by the second, and so on.
    fn input_gradient(&self, operands: &Operands, columns: &TensorHandle) -> Result<TensorHandle, KernelError> {
        let Geometry { batch, channels, image: [height, width], params, .. } = self.geometry;
        let output = unwritten(self.client, vec![batch, channels, height, width], self.dtype);
        let units = batch * channels * height * width;
        if units == 0 {
            return Ok(output);
        }
        let (positions, group_channels) = (height * width, self.geometry.group_channels());
        let batches = batch * params.offset_groups;
        let zero = self.client.create_from_slice(&vec![0; self.accumulator.size()]);
        let mut sum =
            TensorHandle::new(zero, vec![batches, positions, group_channels], vec![0, 0, 0], self.accumulator);
        for (below, beside) in [(false, false), (false, true), (true, false), (true, true)] {
            let (indices, values) = self.contributions(operands, columns, below, beside);
            let corner = scatter::Operands { tensor: sum, indices, values };
            sum = scatter::update(self.client, Addressing::Batches, corner, Update::Add, None)?;
        }
        let (count, dim) = grid(units);
        // SAFETY: a unit below `units` reads one element of the sums and writes one of the output, which has as many.
        unsafe {
            kernel::channels_first::launch_unchecked(
                self.client,
                count,
                dim,
                sum.into_arg().into_buffer_arg(),
                output.clone().into_arg().into_buffer_arg(),
                group_channels as u32,
                positions as u32,
                units as u32,
                [self.accumulator, self.dtype],
            );
        }
        Ok(output)
    }

    /// The terms of one corner of every point in the image's gradient: the pixels
    /// `[batch * offset groups, taps * positions]`, and the terms `[.., channels of a group]`.
    fn contributions(
        &self,
        operands: &Operands,
        columns: &TensorHandle,
        below: bool,
        beside: bool,
    ) -> (TensorHandle, TensorHandle) {
        let Geometry { batch, params, .. } = self.geometry;
        let batches = batch * params.offset_groups;
        let sources = batch * self.geometry.samples();
        let group_channels = self.geometry.group_channels();
        let shape = vec![batches, sources / batches.max(1), group_channels];
        let keys = unwritten(self.client, shape[..2].to_vec(), U32);
        let values = unwritten(self.client, shape, self.accumulator);
        if sources * group_channels > 0 {
            let few = kernel::CONTRIBUTION_SOURCES as usize;
            let (count, dim) = grid(sources.next_multiple_of(few) * group_channels);
            // SAFETY: a unit whose source is below `sources` owns an element of the values, and one in as many channels one
            // of the keys; it reads one element each of the checked offsets, masks and column gradients.
            unsafe {
                kernel::contributions::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    operands.offset.clone().into_arg(),
                    operands.mask.clone().map(TensorHandle::into_arg).into(),
                    columns.clone().into_arg().into_buffer_arg(),
                    keys.clone().into_arg().into_buffer_arg(),
                    values.clone().into_arg().into_buffer_arg(),
                    self.sizes(),
                    sources as u32,
                    below,
                    beside,
                    [self.dtype, self.accumulator],
                );
            }
        }
        (keys, values)
    }

    /// `[1, weight groups, outputs of a group, channels of a group * taps]`.
    fn weight(&self, weight: &TensorHandle) -> TensorHandle {
        let Geometry { outputs, channels, params, .. } = self.geometry;
        let groups = params.weight_groups;
        let rows = channels / groups * self.geometry.kernel_size();
        with_shape(dense(self.client, weight.clone()), vec![1, groups, outputs / groups, rows])
    }

    fn sizes(&self) -> SizesLaunch {
        let Geometry { image, taps, positions, params, .. } = self.geometry;
        SizesLaunch::new(
            image[0] as u32,
            image[1] as u32,
            taps[1] as u32,
            self.geometry.kernel_size() as u32,
            positions[1] as u32,
            self.geometry.area() as u32,
            params.stride[0] as u32,
            params.stride[1] as u32,
            params.padding[0] as u32,
            params.padding[1] as u32,
            params.dilation[0] as u32,
            params.dilation[1] as u32,
            self.geometry.group_channels() as u32,
            params.offset_groups as u32,
        )
    }
}

/// A dense tensor's memory under another shape.
fn with_shape(tensor: TensorHandle, shape: Vec<usize>) -> TensorHandle {
    TensorHandle::new_contiguous(shape, tensor.handle, tensor.dtype)
}
