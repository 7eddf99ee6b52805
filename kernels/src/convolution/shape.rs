//! Parameters, and what they mean for the operands' shapes.

use crate::KernelError;
use crate::error::require_shapes;
use crate::view::{addressable, with_layout};
use cubecl::std::tensor::TensorHandle;

/// How a convolution over `N` spatial axes steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvolutionParams<const N: usize> {
    /// Input positions between neighbouring output positions.
    pub stride: [usize; N],
    /// Zeros before the first and after the last input position.
    pub padding: [(usize, usize); N],
    /// Input positions between neighbouring taps.
    pub dilation: [usize; N],
    /// Groups of channels that do not meet.
    pub groups: usize,
}

/// How a transposed convolution over `N` spatial axes steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransposedParams<const N: usize> {
    /// Output positions between neighbouring input positions.
    pub stride: [usize; N],
    /// Output positions cut at both ends.
    pub padding: [usize; N],
    /// Output positions added at the end.
    pub padding_out: [usize; N],
    /// Output positions between neighbouring taps.
    pub dilation: [usize; N],
    /// Groups of channels that do not meet.
    pub groups: usize,
}

/// One spatial axis of a convolution: output position `o` meets input position `o * stride + tap * dilation - padding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Input positions.
    pub input: usize,
    /// Output positions.
    pub output: usize,
    /// Positions of the kernel.
    pub taps: usize,
    /// Input positions between neighbouring output positions.
    pub stride: usize,
    /// Zeros before the first input position.
    pub padding: usize,
    /// Input positions between neighbouring taps.
    pub dilation: usize,
}

impl Axis {
    /// An axis a lower-dimensional convolution does not have.
    pub(super) const ABSENT: Self = Self { input: 1, output: 1, taps: 1, stride: 1, padding: 0, dilation: 1 };

    /// The input position that output position `output` meets at `tap`, or nothing outside the input.
    pub fn input_of(&self, output: usize, tap: usize) -> Option<usize> {
        (output * self.stride + tap * self.dilation).checked_sub(self.padding).filter(|&i| i < self.input)
    }

    /// Whether input position `input` lies a whole number of strides from `tap`: whether it would meet some output
    /// position there, if the output had no ends.
    pub fn in_phase(&self, input: usize, tap: usize) -> bool {
        (input + self.padding) % self.stride == tap * self.dilation % self.stride
    }

    /// The output position that input position `input` meets at a `tap` in phase, or nothing outside the output.
    pub fn output_of(&self, input: usize, tap: usize) -> Option<usize> {
        let distance = (input + self.padding).checked_sub(tap * self.dilation)?;
        Some(distance / self.stride).filter(|&o| o < self.output)
    }

    /// Whether every tap of every output position meets an input position.
    pub(super) fn inputs_inside(&self) -> bool {
        self.padding == 0 && (self.output - 1) * self.stride + (self.taps - 1) * self.dilation < self.input
    }

    /// Input positions that a pass by phase computes: each phase has as many as the largest one.
    pub(super) fn phased_inputs(&self) -> usize {
        self.input.next_multiple_of(self.stride.min(self.input).max(1))
    }

    /// Whether every tap in phase with a [computed](Self::phased_inputs) input position meets an output position there.
    pub(super) fn outputs_inside(&self) -> bool {
        let last = (self.phased_inputs() + self.padding).saturating_sub(1) / self.stride;
        self.padding >= (self.taps - 1) * self.dilation && last < self.output
    }

    /// The greatest common divisor of stride and dilation.
    pub(super) fn common(&self) -> usize {
        let (mut a, mut b) = (self.stride, self.dilation);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    }

    /// Taps in phase with one input position lie this far apart.
    pub(super) fn tap_step(&self) -> usize {
        self.stride / self.common()
    }

    /// The inverse of `dilation / common` modulo `tap_step`, by Euclid's extended algorithm.
    pub(super) fn inverse(&self) -> usize {
        let modulus = self.tap_step() as i64;
        let (mut a, mut b) = (modulus, (self.dilation / self.common()) as i64 % modulus);
        let (mut x, mut y) = (0, 1);
        while b > 1 {
            (a, b, x, y) = (b, a % b, y, x - a / b * y);
        }
        y.rem_euclid(modulus) as usize
    }
}

/// The logical shape of a convolution, lifted to three spatial axes.
///
/// A transposed convolution is described by the convolution whose input gradient it is: its own input is the `output`
/// side, its own output the `input` side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Batch entries.
    pub batch: usize,
    /// Groups of channels.
    pub groups: usize,
    /// Input channels of one group.
    pub inputs: usize,
    /// Output channels of one group.
    pub outputs: usize,
    /// Depth, height and width.
    pub axes: [Axis; 3],
}

impl Geometry {
    /// The convolution of `input` with `weight` (both `[.., .., spatial..]`), with as many output positions as fit.
    pub fn new<const N: usize>(
        kernel: &'static str,
        input: &[usize],
        weight: &[usize],
        params: &ConvolutionParams<N>,
    ) -> Result<Self, KernelError> {
        let refuse = |reason: String| KernelError::Shape { kernel, reason };
        let (groups, outputs) = split_weight(kernel, weight, params.groups, N)?;
        check_data(kernel, "input", input, N, groups * weight[1])?;
        let mut axes = [Axis::ABSENT; 3];
        for n in 0..N {
            let (before, after) = params.padding[n];
            let (stride, dilation) = steps(kernel, n, params.stride[n], params.dilation[n])?;
            let (size, taps) = (input[n + 2], weight[n + 2]);
            let reach = dilation * (taps - 1) + 1;
            let padded = size + before + after;
            let room = padded.checked_sub(reach).ok_or_else(|| {
                refuse(format!("spatial axis {n}: a kernel that reaches over {reach} positions does not fit {padded}"))
            })?;
            let output = room / stride + 1;
            axes[3 - N + n] = Axis { input: size, output, taps, stride, padding: before, dilation };
        }
        Self { batch: input[0], groups, inputs: weight[1], outputs, axes }.addressable(kernel)
    }

    /// The convolution whose input gradient is the transposed convolution of `input` with `weight`.
    pub fn transposed<const N: usize>(
        kernel: &'static str,
        input: &[usize],
        weight: &[usize],
        params: &TransposedParams<N>,
    ) -> Result<Self, KernelError> {
        let refuse = |reason: String| KernelError::Shape { kernel, reason };
        let (groups, outputs) = split_weight(kernel, weight, params.groups, N)?;
        check_data(kernel, "input", input, N, weight[0])?;
        let mut axes = [Axis::ABSENT; 3];
        for n in 0..N {
            let (stride, dilation) = steps(kernel, n, params.stride[n], params.dilation[n])?;
            let (output, taps, padding) = (input[n + 2], weight[n + 2], params.padding[n]);
            let last =
                output.checked_sub(1).ok_or_else(|| refuse(format!("spatial axis {n} of the input is empty")))?;
            let reach = last * stride + dilation * (taps - 1) + 1 + params.padding_out[n];
            let size = reach.checked_sub(2 * padding).ok_or_else(|| {
                refuse(format!("spatial axis {n}: twice the padding {padding} cuts more than the {reach} positions"))
            })?;
            axes[3 - N + n] = Axis { input: size, output, taps, stride, padding, dilation };
        }
        Self { batch: input[0], groups, inputs: weight[1], outputs, axes }.addressable(kernel)
    }

    /// Elements of the weight.
    pub fn weights(&self) -> usize {
        self.groups * self.outputs * self.inputs * self.taps()
    }

    /// Taps of a weight.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.taps).product()
    }

    /// Terms in the sum of one weight's gradient: batch entries times output positions.
    pub fn terms(&self) -> usize {
        self.batch * self.axes.iter().map(|axis| axis.output).product::<usize>()
    }

    /// `[batch, input channels, spatial..]` over the last `n` spatial axes.
    pub fn input_shape(&self, n: usize) -> Vec<usize> {
        let spatial = self.axes[3 - n..].iter().map(|axis| axis.input);
        [self.batch, self.groups * self.inputs].into_iter().chain(spatial).collect()
    }

    /// `[batch, output channels, spatial..]` over the last `n` spatial axes.
    pub fn output_shape(&self, n: usize) -> Vec<usize> {
        let spatial = self.axes[3 - n..].iter().map(|axis| axis.output);
        [self.batch, self.groups * self.outputs].into_iter().chain(spatial).collect()
    }

    /// `[output channels, input channels of a group, taps..]` over the last `n` spatial axes.
    pub fn weight_shape(&self, n: usize) -> Vec<usize> {
        let taps = self.axes[3 - n..].iter().map(|axis| axis.taps);
        [self.groups * self.outputs, self.inputs].into_iter().chain(taps).collect()
    }

    /// Refuses what 32-bit indices cannot address.
    fn addressable(self, kernel: &'static str) -> Result<Self, KernelError> {
        addressable(kernel, &[&self.input_shape(3), &self.output_shape(3), &self.weight_shape(3)])?;
        let fits = self.axes.iter().all(|axis| {
            let ends = [axis.input + 2 * axis.padding, axis.taps * axis.dilation, axis.output * axis.stride];
            ends.iter().sum::<usize>() + axis.stride < u32::MAX as usize / 2
                && axis.inverse() * axis.tap_step() <= u32::MAX as usize
        });
        require_shapes(kernel, fits, || format!("more than 2^31 positions in {self:?}"))?;
        Ok(self)
    }
}

/// Groups, and the first axis of `weight` split by them.
fn split_weight(
    kernel: &'static str,
    weight: &[usize],
    groups: usize,
    n: usize,
) -> Result<(usize, usize), KernelError> {
    let refuse = |reason: String| Err(KernelError::Shape { kernel, reason });
    if weight.len() != n + 2 {
        return refuse(format!("weight {weight:?} has {} axes, want {}", weight.len(), n + 2));
    }
    if groups == 0 || !weight[0].is_multiple_of(groups) {
        return refuse(format!("weight {weight:?}: axis 0 does not split into {groups} groups"));
    }
    match weight[2..].contains(&0) {
        true => refuse(format!("weight {weight:?} has no taps")),
        false => Ok((groups, weight[0] / groups)),
    }
}

/// Refuses activations of another rank or number of channels.
fn check_data(kernel: &'static str, name: &str, shape: &[usize], n: usize, channels: usize) -> Result<(), KernelError> {
    require_shapes(kernel, shape.len() == n + 2 && shape[1] == channels, || {
        format!("{name} {shape:?}, want {channels} channels and {n} spatial axes")
    })
}

/// Refuses a step of zero.
fn steps(kernel: &'static str, axis: usize, stride: usize, dilation: usize) -> Result<(usize, usize), KernelError> {
    match stride > 0 && dilation > 0 {
        true => Ok((stride, dilation)),
        false => {
            let reason = format!("spatial axis {axis}: stride {stride} and dilation {dilation} must not be zero");
            Err(KernelError::Shape { kernel, reason })
        }
    }
}

/// Activations `[batch, channels, spatial..]` as `[batch, groups, channels of a group, d, h, w]`.
pub(super) fn view_data(data: TensorHandle, groups: usize) -> TensorHandle {
    let (shape, strides) = (data.shape(), data.strides());
    let channels = shape[1] / groups;
    let mut view = vec![(shape[0], strides[0]), (groups, strides[1] * channels), (channels, strides[1])];
    push_spatial(&mut view, &data);
    with_axes(data, &view)
}

/// A weight `[first, second, taps..]` as `[groups, first of a group, second, d, h, w]`; the two swapped if `transposed`.
pub(super) fn view_weight(weight: TensorHandle, groups: usize, transposed: bool) -> TensorHandle {
    let (shape, strides) = (weight.shape(), weight.strides());
    let first = shape[0] / groups;
    let mut view = vec![(groups, strides[0] * first), (first, strides[0]), (shape[1], strides[1])];
    if transposed {
        view.swap(1, 2);
    }
    push_spatial(&mut view, &weight);
    with_axes(weight, &view)
}

/// Appends the spatial axes of `tensor`, lifted to three.
fn push_spatial(view: &mut Vec<(usize, usize)>, tensor: &TensorHandle) {
    let axes = tensor.shape().iter().copied().zip(tensor.strides().iter().copied()).skip(2);
    view.extend(std::iter::repeat_n((1, 0), 5 - tensor.shape().len()));
    view.extend(axes);
}

/// The same memory under other axes, each a size and a stride.
fn with_axes(tensor: TensorHandle, axes: &[(usize, usize)]) -> TensorHandle {
    let (shape, strides): (Vec<usize>, Vec<usize>) = axes.iter().copied().unzip();
    with_layout(tensor, shape, strides)
}

#[cfg(test)]
mod tests {
    use super::Axis;

    /// What is inside is read without a question, also by units past the last position, whose results are not stored.
    #[test]
    fn what_is_inside_is_read_inside() {
        let sizes = |most: usize| 1..=most;
        for (input, taps) in sizes(9).flat_map(|input| sizes(4).map(move |taps| (input, taps))) {
            for (stride, padding) in sizes(4).flat_map(|stride| (0..4).map(move |padding| (stride, padding))) {
                for (dilation, output) in sizes(3).flat_map(|dilation| sizes(12).map(move |output| (dilation, output)))
                {
                    let axis = Axis { input, output, taps, stride, padding, dilation };
                    let in_phase = |i: usize| (0..taps).filter(move |&tap| axis.in_phase(i, tap));
                    let reads = |i: usize| in_phase(i).all(|tap| axis.output_of(i, tap).is_some());
                    assert!(!axis.outputs_inside() || (0..axis.phased_inputs()).all(reads), "{axis:?}");
                    let reads = |o: usize| (0..taps).all(|tap| axis.input_of(o, tap).is_some());
                    assert_eq!(axis.inputs_inside(), (0..output).all(reads), "{axis:?}");
                }
            }
        }
        // Taps that meet no output are cut by the padding: without a stride, and with one.
        let axis = Axis { input: 4, output: 6, taps: 3, stride: 1, padding: 2, dilation: 1 };
        assert!(axis.outputs_inside());
        assert!(Axis { input: 6, output: 4, taps: 2, stride: 2, padding: 1, dilation: 1 }.outputs_inside());
        // A position past the last one of its phase met output 2 of 2.
        let axis = Axis { input: 3, output: 2, taps: 2, stride: 2, padding: 1, dilation: 1 };
        assert!(!axis.outputs_inside());
    }

    #[test]
    fn the_inverse_finds_the_first_tap_in_phase() {
        for (stride, dilation) in (1..13).flat_map(|stride| (1..13).map(move |dilation| (stride, dilation))) {
            let axis = Axis { input: 40, output: 40, taps: 40, stride, padding: 0, dilation };
            let (common, step) = (axis.common(), axis.tap_step());
            for input in 0..40 {
                let first = (input % common == 0).then(|| input / common % step * axis.inverse() % step);
                assert_eq!((0..40).find(|&tap| axis.in_phase(input, tap)), first, "{input} of {axis:?}");
            }
        }
    }
}
