//! Deformable convolution kernels against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, Products};
use burn_deterministic_kernels::coarsening::Plan;
use burn_deterministic_kernels::deform_convolution::*;
use burn_deterministic_kernels::matmul::reference::matmul;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

/// The operands of a deformable convolution on the host, and its device.
struct Case {
    client: Client,
    fma: MultiplyAdd,
    geometry: Geometry,
    shapes: [Vec<usize>; 4],
    input: Vec<f32>,
    offset: Vec<f32>,
    weight: Vec<f32>,
    mask: Option<Vec<f32>>,
    bias: Vec<f32>,
    gradient: Vec<f32>,
}

impl Case {
    /// Offsets reach over a pixel or two in each direction.
    fn new([batch, channels, outputs]: [usize; 3], image: [usize; 2], taps: [usize; 2], params: DeformParams) -> Self {
        let client = client();
        let positions: [usize; 2] = std::array::from_fn(|axis| {
            let reach = params.dilation[axis] * (taps[axis] - 1) + 1;
            (image[axis] + 2 * params.padding[axis] - reach) / params.stride[axis] + 1
        });
        let places = params.offset_groups * taps[0] * taps[1];
        let input = vec![batch, channels, image[0], image[1]];
        let offset = vec![batch, places * 2, positions[0], positions[1]];
        let weight = vec![outputs, channels / params.weight_groups, taps[0], taps[1]];
        let mask = vec![batch, places, positions[0], positions[1]];
        let geometry = Geometry::of_shapes("test", &input, &offset, &weight, Some(&mask), &params)
            .expect("operands that fit together");
        let values = |seed, shape: &[usize]| random_values(seed, shape.iter().product());
        Self {
            fma: multiply_add_of(&client),
            client,
            geometry,
            input: values(1, &input),
            offset: values(2, &offset),
            weight: values(3, &weight),
            mask: Some(values(4, &mask)),
            bias: values(5, &[outputs]),
            gradient: values(6, &geometry.output_shape()),
            shapes: [input, offset, weight, mask],
        }
    }

    fn operands(&self) -> Operands {
        let up = |values: &[f32], shape: &[usize]| upload(&self.client, values, shape, F32);
        let [input, offset, weight, mask] = &self.shapes;
        Operands {
            input: up(&self.input, input),
            offset: up(&self.offset, offset),
            weight: up(&self.weight, weight),
            mask: self.mask.as_ref().map(|values| up(values, mask)),
        }
    }

    fn device_gradient(&self) -> TensorHandle {
        upload(&self.client, &self.gradient, &self.geometry.output_shape(), F32)
    }

    fn host(&self) -> reference::Operands<'_> {
        let mask = self.mask.as_deref();
        reference::Operands { input: &self.input, offset: &self.offset, weight: &self.weight, mask }
    }

    #[track_caller]
    fn check(&self) {
        println!("{:?}", self.geometry);
        self.check_on(&self.operands(), self.device_gradient());
    }

    /// Compares what the device makes of operands, laid out by the caller, with the references.
    #[track_caller]
    fn check_on(&self, operands: &Operands, gradient: TensorHandle) {
        let Self { client, geometry, fma, .. } = self;
        let params = &geometry.params;
        let bias = upload(client, &self.bias, &[self.bias.len()], F32);
        let y = forward(client, Products::Native, operands, Some(bias), params, None).expect("a forward pass");
        assert_eq!(y.shape()[..], geometry.output_shape());
        assert_bits(&download(client, y), &reference::forward(geometry, *fma, &self.host(), Some(&self.bias)));
        let want = reference::forward(geometry, *fma, &self.host(), None);
        for plan in [None, Some(Plan { span: 1 }), Some(Plan { span: 2 }), Some(Plan { span: 1000 })] {
            let unbiased = forward(client, Products::Native, operands, None, params, plan).expect("a forward pass");
            assert_bits(&download(client, unbiased), &want);
        }

        let got = backward(client, Products::Native, operands, gradient, params).expect("a backward pass");
        let want = reference::backward(geometry, *fma, &self.host(), &self.gradient);
        for (got, shape) in [&got.input, &got.offset, &got.weight].into_iter().zip(&self.shapes) {
            assert_eq!(got.shape()[..], shape[..]);
        }
        assert_bits(&download(client, got.weight), &want.weight);
        assert_bits(&download(client, got.offset), &want.offset);
        assert_bits(&download(client, got.input), &want.input);
        assert_eq!(got.mask.is_some(), self.mask.is_some());
        if let Some(mask) = got.mask {
            assert_bits(&download(client, mask), &want.mask);
        }
    }
}

fn params(weight_groups: usize, offset_groups: usize) -> DeformParams {
    DeformParams { stride: [1, 1], padding: [1, 1], dilation: [1, 1], weight_groups, offset_groups }
}

#[test]
fn groups_steps_and_paddings_match_reference() {
    for (weight_groups, offset_groups) in [(1, 1), (2, 1), (1, 2), (2, 4), (4, 2)] {
        Case::new([2, 8, 4], [5, 6], [3, 2], params(weight_groups, offset_groups)).check();
    }
    let unlike = DeformParams { stride: [2, 1], padding: [0, 3], dilation: [1, 2], weight_groups: 1, offset_groups: 3 };
    Case::new([3, 3, 5], [7, 4], [2, 3], unlike).check();
    Case::new([1, 1, 1], [1, 1], [1, 1], DeformParams { padding: [0, 0], ..params(1, 1) }).check();
}

#[test]
fn without_a_mask() {
    let mut case = Case::new([2, 4, 3], [6, 5], [3, 3], params(1, 2));
    case.mask = None;
    case.check();
}

#[test]
fn places_at_the_edges_of_the_image() {
    let mut case = Case::new([1, 2, 3], [4, 4], [3, 3], params(1, 1));
    // On pixels, so also exactly on the rows and columns next to the image.
    case.offset.iter_mut().for_each(|offset| *offset = offset.trunc());
    case.check();
    let far = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e38, -1e10, 1e-40, -0.0, 0.5, -1.0];
    case.offset.iter_mut().enumerate().for_each(|(n, offset)| *offset = far[n % far.len()]);
    case.check();
}

#[test]
fn empty_operands_give_empty_results_and_empty_sums() {
    Case::new([0, 2, 3], [4, 4], [3, 3], params(1, 1)).check();
    Case::new([2, 0, 3], [4, 4], [3, 3], params(1, 1)).check();
    Case::new([2, 2, 0], [4, 4], [3, 3], params(1, 1)).check();
    Case::new([2, 2, 3], [0, 4], [2, 2], params(1, 1)).check();
}

#[test]
fn many_places_on_one_pixel() {
    // 9 * 40 * 40 places an image on four pixels: rows of the scatter of several levels, which is where order shows.
    let mut case = Case::new([1, 2, 1], [40, 40], [3, 3], params(1, 1));
    let (taps, area) = (9, 1600);
    for (n, offset) in case.offset.iter_mut().enumerate() {
        let (channel, at) = (n / area, n % area);
        let (tap, axis) = (channel / 2 % taps, channel % 2);
        let place = if axis == 0 { at / 40 + tap / 3 } else { at % 40 + tap % 3 };
        *offset = 20.25 - place as f32;
    }
    case.check();
    // The hazard: every place adds the same part of its gradient, so the gradients of the positions in the other order
    // are the same terms in another order.
    case.mask = None;
    let sum = |gradient: &[f32]| reference::backward(&case.geometry, case.fma, &case.host(), gradient).input;
    let reversed: Vec<f32> = case.gradient.iter().rev().copied().collect();
    let differ = sum(&case.gradient).iter().zip(&sum(&reversed)).any(|(a, b)| a.to_bits() != b.to_bits());
    assert!(differ, "the order of a sum does not show on these operands");
}

#[test]
fn half_types_round_columns_and_results_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    let halves = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let rounded = |values: &[f32]| halves(values).into_iter().map(f16::to_f32).collect::<Vec<_>>();
    let mut case = Case::new([2, 3, 4], [5, 6], [3, 2], params(1, 1));
    case.mask = None;
    for values in [&mut case.input, &mut case.offset, &mut case.weight] {
        *values = rounded(values);
    }
    let [input, offset, weight, _] = &case.shapes;
    let up = |values: &[f32], shape: &[usize]| upload(&client, &halves(values), shape, dtype);
    let operands = Operands {
        input: up(&case.input, input),
        offset: up(&case.offset, offset),
        weight: up(&case.weight, weight),
        mask: None,
    };
    let columns = rounded(&reference::columns(&case.geometry, &case.host()));
    let [_, outputs, rows, across] = case.geometry.output_shape();
    let extents = [outputs, 3 * 6, rows * across];
    let products = columns.chunks(extents[1] * extents[2]);
    let want: Vec<f32> = products.flat_map(|part| matmul(&case.weight, part, extents, case.fma)).collect();
    let y = forward(&client, Products::Native, &operands, None, &case.geometry.params, None).expect("a forward pass");
    assert_eq!(download::<f16>(&client, y), halves(&want));
}

#[test]
fn layout_does_not_matter() {
    let case = Case::new([2, 4, 4], [5, 4], [2, 2], params(2, 2));
    let lay = |values: &[f32], shape: &[usize]| scattered(1, &case.client, values, shape);
    let [input, offset, weight, mask] = &case.shapes;
    let operands = Operands {
        input: lay(&case.input, input),
        offset: lay(&case.offset, offset),
        weight: lay(&case.weight, weight),
        mask: case.mask.as_ref().map(|values| lay(values, mask)),
    };
    case.check_on(&operands, lay(&case.gradient, &case.geometry.output_shape()));
}

#[test]
fn more_columns_than_one_axis_of_a_grid_holds() {
    // 65,535 cubes of 256 units cover 16,776,960 elements.
    let mut case = Case::new([1, 17, 1], [1000, 1000], [1, 1], DeformParams { padding: [0, 0], ..params(1, 1) });
    case.offset.fill(0.5);
    case.mask = None;
    let y = forward(&case.client, Products::Native, &case.operands(), None, &case.geometry.params, None)
        .expect("a forward pass");
    assert_bits(&download(&case.client, y), &reference::forward(&case.geometry, case.fma, &case.host(), None));
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let client = client();
    let up = |shape: &[usize]| upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
    let refused = |input: &[usize], offset: &[usize], weight: &[usize], params: DeformParams| {
        let operands = Operands { input: up(input), offset: up(offset), weight: up(weight), mask: None };
        match forward(&client, Products::Native, &operands, None, &params, None) {
            Err(KernelError::Shape { kernel: "deform_convolution::forward", reason }) => reason,
            other => panic!("{:?}", other.map(|y| y.shape().to_vec())),
        }
    };
    let (x, o, w) = ([1, 2, 4, 4], [1, 18, 4, 4], [3, 2, 3, 3]);
    assert!(refused(&x, &[1, 18, 3, 4], &w, params(1, 1)).contains("offset [1, 18, 3, 4], want [1, 18, 4, 4]"));
    assert!(refused(&x, &o, &[3, 1, 3, 3], params(1, 1)).contains("do not split"));
    assert!(refused(&x, &o, &w, params(1, 3)).contains("do not split"));
    assert!(refused(&x, &o, &[3, 2, 9, 3], params(1, 1)).contains("taps over 9 positions of an axis of 6"));
    assert!(refused(&x, &o, &w, DeformParams { stride: [0, 1], ..params(1, 1) }).contains("must not be zero"));
}
