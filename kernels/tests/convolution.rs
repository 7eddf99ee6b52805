//! Convolution kernels against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, multiply_add_of};
use burn_deterministic_kernels::convolution::*;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::order::BLOCK;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

/// A convolution's operands on the host, its device, and its geometry.
struct Case<const N: usize> {
    client: Client,
    fma: MultiplyAdd,
    params: ConvolutionParams<N>,
    geometry: Geometry,
    input_shape: Vec<usize>,
    weight_shape: Vec<usize>,
    output_shape: Vec<usize>,
    input: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    gradient: Vec<f32>,
}

impl<const N: usize> Case<N> {
    fn new(input: &[usize], weight: &[usize], params: ConvolutionParams<N>) -> Self {
        let client = client();
        let geometry = Geometry::new("test", input, weight, &params).expect("operands that fit together");
        let output_shape = geometry.output_shape(N);
        let values = |seed, shape: &[usize]| random_values(seed, shape.iter().product());
        Self {
            fma: multiply_add_of(&client),
            client,
            params,
            geometry,
            input: values(1, input),
            weight: values(2, weight),
            bias: values(3, &weight[..1]),
            gradient: values(4, &output_shape),
            input_shape: input.to_vec(),
            weight_shape: weight.to_vec(),
            output_shape,
        }
    }

    fn upload(&self, values: &[f32], shape: &[usize]) -> TensorHandle {
        upload(&self.client, values, shape, F32)
    }

    fn device_input(&self) -> TensorHandle {
        self.upload(&self.input, &self.input_shape)
    }

    fn device_weight(&self) -> TensorHandle {
        self.upload(&self.weight, &self.weight_shape)
    }

    fn device_bias(&self) -> TensorHandle {
        self.upload(&self.bias, &self.weight_shape[..1])
    }

    fn device_gradient(&self) -> TensorHandle {
        self.upload(&self.gradient, &self.output_shape)
    }

    fn problem(&self, pass: Pass) -> Problem {
        Problem { kernel: "test", pass, rank: N, geometry: self.geometry }
    }

    /// What the reference computes, and the operands of the same pass on the device.
    fn pass(&self, pass: Pass) -> (Vec<f32>, Operands) {
        match pass {
            Pass::ToOutput => {
                let bias = Some(self.device_bias());
                (self.forward(), Operands { source: self.device_input(), other: self.device_weight(), bias })
            }
            Pass::ToInput => {
                let (source, other) = (self.device_gradient(), self.device_weight());
                (self.input_gradient(), Operands { source, other, bias: None })
            }
            Pass::ToWeight => {
                let (source, other) = (self.device_input(), self.device_gradient());
                (self.weight_gradient(), Operands { source, other, bias: None })
            }
        }
    }

    fn forward(&self) -> Vec<f32> {
        reference::forward(&self.geometry, self.fma, &self.input, &self.weight, Some(&self.bias))
    }

    fn input_gradient(&self) -> Vec<f32> {
        reference::input_gradient(&self.geometry, self.fma, &self.gradient, &self.weight, None)
    }

    fn weight_gradient(&self) -> Vec<f32> {
        reference::weight_gradient(&self.geometry, self.fma, &self.input, &self.gradient)
    }

    /// The three operations on the device, for operands laid out by the caller.
    fn device(&self, input: TensorHandle, weight: TensorHandle, gradient: TensorHandle) -> [Vec<f32>; 3] {
        let (client, params) = (&self.client, &self.params);
        let bias = Some(self.device_bias());
        let y = forward(client, input.clone(), weight.clone(), bias, params).expect("a forward pass");
        let dx =
            input_gradient(client, gradient.clone(), weight, &self.input_shape, params).expect("an input gradient");
        let dw = weight_gradient(client, input, gradient, &self.weight_shape, params).expect("a weight gradient");
        assert_eq!(y.shape()[..], self.output_shape);
        assert_eq!(dx.shape()[..], self.input_shape);
        assert_eq!(dw.shape()[..], self.weight_shape);
        [y, dx, dw].map(|tensor| download(client, tensor))
    }

    #[track_caller]
    fn check(&self) {
        println!("{:?}", self.geometry);
        let [y, dx, dw] = self.device(self.device_input(), self.device_weight(), self.device_gradient());
        assert_bits(&y, &self.forward());
        assert_bits(&dx, &self.input_gradient());
        assert_bits(&dw, &self.weight_gradient());
    }
}

/// The same step on every axis.
fn uniform<const N: usize>(
    stride: usize,
    padding: (usize, usize),
    dilation: usize,
    groups: usize,
) -> ConvolutionParams<N> {
    ConvolutionParams { stride: [stride; N], padding: [padding; N], dilation: [dilation; N], groups }
}

#[test]
fn one_axis_matches_reference() {
    for (stride, padding, dilation) in [
        (1, (0, 0), 1),
        (1, (1, 1), 1),
        (2, (1, 1), 1),
        (3, (0, 2), 2),
        (2, (3, 0), 3),
        (1, (4, 4), 2),
        (4, (5, 1), 2),
        (6, (2, 9), 4),
        (5, (7, 7), 3),
    ] {
        for (groups, inputs, outputs) in [(1, 1, 1), (1, 3, 5), (2, 2, 4), (5, 1, 1)] {
            for (batch, length, taps) in [(1, 7, 1), (3, 17, 3), (5, 9, 4), (2, 31, 7)] {
                let params = uniform::<1>(stride, padding, dilation, groups);
                if length + padding.0 + padding.1 > dilation * (taps - 1) {
                    Case::new(&[batch, groups * inputs, length], &[groups * outputs, inputs, taps], params).check();
                }
            }
        }
    }
}

#[test]
fn two_axes_match_reference() {
    let unlike = ConvolutionParams { stride: [2, 3], padding: [(0, 1), (2, 1)], dilation: [3, 1], groups: 2 };
    Case::new(&[4, 6, 9, 8], &[10, 3, 3, 2], unlike).check();
    Case::new(&[2, 3, 8, 8], &[9, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[5, 4, 7, 6], &[8, 4, 3, 3], uniform::<2>(2, (1, 1), 1, 1)).check();
    Case::new(&[5, 8, 7, 6], &[8, 1, 3, 3], uniform::<2>(1, (1, 1), 2, 8)).check();
    Case::new(&[3, 4, 5, 5], &[12, 1, 5, 5], uniform::<2>(1, (2, 2), 1, 4)).check();
    Case::new(&[3, 7, 6, 1], &[16, 7, 1, 1], uniform::<2>(1, (0, 0), 1, 1)).check();
    Case::new(&[3, 2, 2, 2], &[3, 2, 2, 2], uniform::<2>(5, (3, 3), 1, 1)).check();
}

#[test]
fn three_axes_match_reference() {
    let unlike =
        ConvolutionParams { stride: [1, 2, 3], padding: [(1, 0), (0, 2), (1, 1)], dilation: [2, 1, 1], groups: 3 };
    Case::new(&[3, 6, 4, 5, 7], &[9, 2, 2, 3, 2], unlike).check();
    Case::new(&[2, 3, 4, 4, 4], &[5, 3, 3, 3, 3], uniform::<3>(1, (1, 1), 1, 1)).check();
    Case::new(&[1, 4, 5, 3, 4], &[4, 1, 2, 2, 2], uniform::<3>(2, (1, 1), 1, 4)).check();
}

#[test]
fn empty_operands_give_empty_results_and_empty_sums() {
    Case::new(&[0, 3, 5, 5], &[4, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 0, 5, 5], &[4, 0, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 3, 5, 5], &[0, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 3, 0, 5], &[4, 3, 3, 3], uniform::<2>(1, (2, 1), 1, 1)).check();
}

/// One chain without blocks.
fn unblocked(fma: MultiplyAdd, terms: impl Iterator<Item = (f32, f32)>) -> f32 {
    terms.fold(0.0, |acc, (a, b)| fma.apply(a, b, acc))
}

#[test]
fn long_sums_are_blocked() {
    let blocks = |case: &Case<2>, pass| case.problem(pass).blocks();
    // A weight gradient of 90,000 terms: blocks end inside rows.
    let case = Case::new(&[100, 1, 32, 32], &[1, 1, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    assert_eq!(blocks(&case, Pass::ToWeight), 88);
    case.check();
    // The hazard: one chain over all the terms gives other bits.
    let wrong = (0..9).map(|tap| {
        let place = |t: usize| (t / 900 * 32 + t / 30 % 30 + tap / 3) * 32 + t % 30 + tap % 3;
        unblocked(case.fma, (0..90_000).map(|t| (case.input[place(t)], case.gradient[t])))
    });
    assert!(wrong.zip(case.weight_gradient()).any(|(a, b)| a.to_bits() != b.to_bits()));

    // Passes between activations: blocks end inside taps and at their ends, in each phase of a stride at other taps.
    for (stride, inputs, outputs) in [(1, 130, 120), (1, 1024, 256), (2, 520, 700), (1, 300, 2050)] {
        let case = Case::new(&[2, inputs, 4, 3], &[outputs, inputs, 3, 3], uniform::<2>(stride, (1, 1), 1, 1));
        assert!(blocks(&case, Pass::ToOutput) > 1 && blocks(&case, Pass::ToInput) > 1);
        case.check();
    }
    let case = Case::new(&[1, 130, 3, 3], &[1, 130, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    assert_eq!(blocks(&case, Pass::ToOutput), 2);
    let terms = (0..9 * 130).map(|p| p % 130 * 9 + p / 130).map(|at| (case.input[at], case.weight[at]));
    assert_ne!((unblocked(case.fma, terms) + case.bias[0]).to_bits(), case.forward()[0].to_bits());
    // 1024 terms are one block, another term opens the next.
    for channels in [BLOCK - 1, BLOCK, BLOCK + 1] {
        let case = Case::new(&[2, channels, 3, 3], &[2, channels, 1, 1], uniform::<2>(1, (0, 0), 1, 1));
        assert_eq!(blocks(&case, Pass::ToOutput), 1 + usize::from(channels > BLOCK));
        case.check();
    }
}

/// A software driver ends a shader's loops after 65535 iterations: chains go on in the next launch, or in another block.
#[test]
fn chains_longer_than_a_launch() {
    // Taps times channels, in the forward pass and in the input gradient.
    Case::new(&[3, 8192, 4, 3], &[1, 8192, 3, 3], uniform::<2>(1, (1, 0), 1, 1)).check();
    Case::new(&[3, 1, 4, 3], &[8192, 1, 3, 3], uniform::<2>(1, (1, 0), 1, 1)).check();
    // Channels alone, and taps alone: of these only the last ones meet the input.
    Case::new(&[1, 70_001, 2], &[2, 70_001, 2], uniform::<1>(1, (0, 1), 1, 1)).check();
    Case::new(&[2, 1, 5], &[1, 1, 70_001], uniform::<1>(1, (70_000, 0), 1, 1)).check();
    Case::new(&[2, 1, 5], &[1, 1, 70_001], uniform::<1>(3, (140_000, 0), 2, 1)).check();
    // Blocks of rows of one position, and of rows of nearly a block.
    for shape in [[4_200_000, 1, 1], [257, 1, 16_382]] {
        Case::new(&shape, &[1, 1, 1], uniform::<1>(1, (0, 0), 1, 1)).check();
    }
}

#[test]
fn half_types_keep_long_chains_in_full() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    // 1 + 2^-11 * 2 rounds up to the next f16 only as one sum.
    let channels = 70_001;
    let mut weight = vec![f16::ZERO; channels];
    (weight[0], weight[channels - 2], weight[channels - 1]) =
        (f16::ONE, f16::from_f32(2f32.powi(-11)), f16::from_f32(2f32.powi(-11)));
    let input = upload(&client, &vec![f16::ONE; channels], &[1, channels, 1], dtype);
    let weight = upload(&client, &weight, &[1, channels, 1], dtype);
    let bias = upload(&client, &[f16::from_f32(0.5)], &[1], dtype);
    let y = forward(&client, input, weight, Some(bias), &uniform::<1>(1, (0, 0), 1, 1)).expect("a forward pass");
    assert_eq!(download::<f16>(&client, y), [f16::from_f32(1.5 + 2f32.powi(-10))]);
}

#[test]
fn more_cubes_than_one_axis_of_a_grid_holds() {
    // One unit a position in cubes of 64: 65,535 cubes cover 4,194,240 positions.
    Case::new(&[1, 1, 4_194_304], &[1, 1, 1], uniform::<1>(1, (0, 0), 1, 1)).check();
}

#[test]
fn transposed_convolutions_match_reference() {
    let steps = [
        TransposedParams { stride: [1, 1], padding: [0, 0], padding_out: [0, 0], dilation: [1, 1], groups: 1 },
        TransposedParams { stride: [2, 3], padding: [1, 0], padding_out: [1, 2], dilation: [1, 2], groups: 1 },
        TransposedParams { stride: [3, 2], padding: [0, 2], padding_out: [0, 1], dilation: [2, 1], groups: 2 },
    ];
    let client = client();
    let fma = multiply_add_of(&client);
    for params in steps {
        let (input_shape, weight_shape) = ([3, 4, 5, 4], [4, 3, 3, 2]);
        let g = Geometry::transposed("test", &input_shape, &weight_shape, &params).unwrap();
        let output_shape = g.input_shape(2);
        let burns = |n: usize| {
            let reach = params.dilation[n] * (weight_shape[n + 2] - 1) + 1;
            (input_shape[n + 2] - 1) * params.stride[n] + reach + params.padding_out[n] - 2 * params.padding[n]
        };
        assert_eq!(output_shape, [3, 3 * params.groups, burns(0), burns(1)]);
        let (x, w) = (random_values(1, 240), random_values(2, 72));
        let bias = random_values(3, output_shape[1]);
        let dy = random_values(4, output_shape.iter().product());
        let up = |values: &[f32], shape: &[usize]| upload(&client, values, shape, F32);

        let device_bias = Some(up(&bias, &output_shape[1..2]));
        let y = transposed_forward(&client, up(&x, &input_shape), up(&w, &weight_shape), device_bias, &params).unwrap();
        assert_eq!(y.shape()[..], output_shape);
        assert_bits(&download(&client, y), &reference::input_gradient(&g, fma, &x, &w, Some(&bias)));

        let (device_dy, device_w) = (up(&dy, &output_shape), up(&w, &weight_shape));
        let dx = transposed_input_gradient(&client, device_dy.clone(), device_w, &input_shape, &params).unwrap();
        assert_eq!(dx.shape()[..], input_shape);
        assert_bits(&download(&client, dx), &reference::forward(&g, fma, &dy, &w, None));

        let problem = Problem::transposed("test", Pass::ToInput, &input_shape, &weight_shape, &params).unwrap();
        for plan in Plan::candidates(&problem) {
            let (source, other) = (up(&x, &input_shape), up(&w, &weight_shape));
            let operands = Operands { source, other, bias: Some(up(&bias, &output_shape[1..2])) };
            let y = pass_planned(&client, &problem, operands, plan).unwrap();
            assert_bits(&download(&client, y), &reference::input_gradient(&g, fma, &x, &w, Some(&bias)));
        }

        let device_x = up(&x, &input_shape);
        let dw = transposed_weight_gradient(&client, device_x, device_dy, &weight_shape, &params).unwrap();
        assert_bits(&download(&client, dw), &reference::weight_gradient(&g, fma, &dy, &x));
    }
}

/// `values` of `shape` in memory of another order and with gaps: axes stored in reverse, twice the elements each.
fn scattered(client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
    let mut strides = vec![0; shape.len()];
    let mut extent = 2;
    for (stride, size) in strides.iter_mut().zip(shape) {
        *stride = extent;
        extent *= size + 1;
    }
    let mut memory = vec![f32::NAN; extent];
    for (n, &value) in values.iter().enumerate() {
        let (mut rest, mut at) = (n, 0);
        for (size, stride) in shape.iter().zip(&strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        memory[at] = value;
    }
    TensorHandle::new(client.create_from_slice(bytemuck::cast_slice(&memory)), shape.to_vec(), strides, F32)
}

#[test]
fn layout_and_repetition_do_not_change_bits() {
    let params = ConvolutionParams { stride: [2, 1], padding: [(1, 1), (0, 2)], dilation: [1, 2], groups: 2 };
    let case = Case::new(&[6, 10, 9, 8], &[18, 5, 3, 3], params);
    let want = [case.forward(), case.input_gradient(), case.weight_gradient()];
    let client = &case.client;
    let input = scattered(client, &case.input, &case.input_shape);
    let weight = scattered(client, &case.weight, &case.weight_shape);
    let gradient = scattered(client, &case.gradient, &case.output_shape);
    for _ in 0..10 {
        let got = case.device(input.clone(), weight.clone(), gradient.clone());
        (0..3).for_each(|n| assert_bits(&got[n], &want[n]));
    }
}

/// Along one axis and three, with strides, with chains of several blocks, and with chains longer than a launch.
#[test]
fn every_plan_gives_the_bits_of_the_reference() {
    fn check<const N: usize>(case: Case<N>) {
        println!("{:?}", case.geometry);
        for pass in [Pass::ToOutput, Pass::ToInput, Pass::ToWeight] {
            let problem = case.problem(pass);
            let (want, _) = case.pass(pass);
            let plans = Plan::candidates(&problem);
            for machine in [Machine::Software, Machine::Gpu] {
                assert!(plans.contains(&plan::plan(&problem, machine)));
            }
            for plan in plans {
                let (_, operands) = case.pass(pass);
                let got = pass_planned(&case.client, &problem, operands, plan).expect("a plan that applies");
                assert_bits(&download(&case.client, got), &want);
            }
        }
    }
    let blocked = Case::new(&[9, 9, 601], &[9, 9, 3], uniform::<1>(1, (1, 1), 1, 1));
    assert_eq!(blocked.problem(Pass::ToWeight).blocks(), 6);
    check(blocked);
    check(Case::new(&[3, 5, 700], &[6, 5, 4], uniform::<1>(2, (3, 1), 3, 1)));
    check(Case::new(&[5, 6, 5, 4, 6], &[10, 3, 2, 3, 2], uniform::<3>(2, (1, 0), 1, 2)));
    check(Case::new(&[5, 70_001, 2], &[5, 70_001, 2], uniform::<1>(1, (0, 1), 1, 1)));
}

#[test]
fn a_plan_that_does_not_apply_is_refused() {
    let case = Case::new(&[3, 2, 601], &[3, 2, 3], uniform::<1>(1, (1, 1), 1, 1));
    let tile = Tile { rows: 8, columns: 8 };
    let activations = |rows, columns| Plan::Activations { tile: Tile { rows, columns } };
    for (pass, plan) in [
        (Pass::ToOutput, Plan::Weight { tile, span: 1 }),
        (Pass::ToInput, activations(0, 8)),
        (Pass::ToInput, activations(3, 8)),
        (Pass::ToWeight, activations(8, 8)),
        (Pass::ToWeight, Plan::Weight { tile, span: 0 }),
        (Pass::ToWeight, Plan::Weight { tile, span: 3 }),
    ] {
        let problem = case.problem(pass);
        let refused = pass_planned(&case.client, &problem, case.pass(pass).1, plan).unwrap_err().to_string();
        assert_eq!(refused, format!("test: {plan:?} does not apply to {problem:?}"));
    }
}

/// Forward passes and input gradients of a sample are the same alone and at any place of any batch.
#[test]
fn a_sample_does_not_depend_on_its_batch() {
    for (stride, inputs, outputs, groups) in [(1, 3, 9, 1), (2, 130, 12, 1), (1, 1, 1, 6)] {
        let params = uniform::<2>(stride, (1, 1), 1, groups);
        let case = Case::new(&[64, groups * inputs, 6, 5], &[groups * outputs, inputs, 3, 3], params);
        let client = &case.client;
        let part = |values: &[f32], shape: &[usize], first: usize, batch: usize| {
            let sample = shape[1..].iter().product::<usize>();
            let shape: Vec<usize> = [batch].into_iter().chain(shape[1..].iter().copied()).collect();
            upload(client, &values[first * sample..(first + batch) * sample], &shape, F32)
        };
        let whole = [case.forward(), case.input_gradient()];
        for (first, batch) in [(0, 64), (0, 1), (63, 1), (5, 2), (7, 3), (1, 4), (9, 5), (13, 7), (8, 8), (31, 33)] {
            let input = part(&case.input, &case.input_shape, first, batch);
            let gradient = part(&case.gradient, &case.output_shape, first, batch);
            let shape = input.shape().to_vec();
            let y = forward(client, input, case.device_weight(), Some(case.device_bias()), &params).unwrap();
            let dx = input_gradient(client, gradient, case.device_weight(), &shape, &params).unwrap();
            for (got, want) in [y, dx].into_iter().zip(&whole) {
                let got: Vec<f32> = download(client, got);
                let sample = want.len() / 64;
                assert_bits(&got, &want[first * sample..(first + batch) * sample]);
            }
        }
    }
}

#[test]
fn broadcast_operands_give_the_bits_of_a_copy() {
    let case = Case::new(&[4, 3, 6, 6], &[5, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let gradient = TensorHandle::new(
        case.client.create_from_slice(bytemuck::cast_slice(&[0.3f32])),
        case.output_shape.clone(),
        vec![0; 4],
        F32,
    );
    let copy = vec![0.3; case.gradient.len()];
    let [_, dx, dw] = case.device(case.device_input(), case.device_weight(), gradient);
    assert_bits(&dx, &reference::input_gradient(&case.geometry, case.fma, &copy, &case.weight, None));
    assert_bits(&dw, &reference::weight_gradient(&case.geometry, case.fma, &case.input, &copy));
}

#[test]
fn padding_reads_zero() {
    let mut case = Case::new(&[1, 1, 3], &[1, 1, 3], uniform::<1>(1, (1, 1), 1, 1));
    case.weight = vec![f32::INFINITY, 1.0, 1.0];
    case.input = vec![1.0, 2.0, 3.0];
    case.gradient = vec![1.0, 2.0, f32::INFINITY];
    case.bias = vec![0.0];
    let [y, dx, dw] = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    // The first position meets the infinite weight outside the input: 0 * infinity.
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [f32::INFINITY; 2]);
    // Position i meets weight k at o = i + 1 - k: the last one meets weight 0 at o = 3, outside the output.
    assert_eq!(dx[..2], [f32::INFINITY; 2]);
    assert!(dx[2].is_nan());
    // The infinite gradient meets tap 2 outside the input.
    assert_eq!(dw[..2], [f32::INFINITY; 2]);
    assert!(dw[2].is_nan());
}

#[test]
fn taps_out_of_phase_are_no_terms() {
    let mut case = Case::new(&[1, 1, 6], &[1, 1, 2], uniform::<1>(2, (0, 0), 1, 1));
    case.weight = vec![1.0, f32::INFINITY];
    case.gradient = vec![1.0, 2.0, 3.0];
    let [_, dx, _] = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    assert_bits(&dx, &[1.0, f32::INFINITY, 2.0, f32::INFINITY, 3.0, f32::INFINITY]);
}

/// Positions in no phase, beyond the last window, and with an input without positions.
#[test]
fn empty_chains_are_positive_zero() {
    let case = Case::new(&[1, 1, 8], &[1, 1, 2], uniform::<1>(4, (0, 0), 2, 1));
    let dx = case.device(case.device_input(), case.device_weight(), case.device_gradient())[1].clone();
    assert_bits(&[dx[1], dx[3], dx[5]], &[0.0; 3]);
    let mut case = Case::new(&[1, 1, 0], &[1, 1, 2], uniform::<1>(1, (1, 1), 1, 1));
    case.weight = vec![1.0, f32::NAN];
    case.bias = vec![0.0];
    assert!(case.device(case.device_input(), case.device_weight(), case.device_gradient())[0][0].is_nan());
}

/// Where a fused multiply-add rounds a negative number to zero the accumulator is -0, which a term with padding turns to
/// +0 if its product is +0.
#[test]
fn signs_of_zero_follow_the_reference() {
    let mut case = Case::new(&[1, 1, 1], &[2, 1, 2], uniform::<1>(1, (0, 1), 1, 1));
    case.input = vec![1e-30];
    case.weight = vec![-1e-30, 1.0, -1e-30, -1.0];
    let bare = |fma| reference::forward(&case.geometry, fma, &case.input, &case.weight, None);
    assert_bits(&bare(MultiplyAdd::Fused), &[0.0, -0.0]);
    assert_bits(&bare(MultiplyAdd::Unfused), &[0.0, 0.0]);
    let y = forward(&case.client, case.device_input(), case.device_weight(), None, &case.params).unwrap();
    assert_bits(&download(&case.client, y), &bare(case.fma));
}

#[test]
fn order_shows_in_the_bits() {
    // Channels outside, taps inside: the other natural order of the same products.
    let case = Case::new(&[1, 8, 3, 3], &[1, 8, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    let channels_first = (0..72).fold(0.0, |acc, n| case.fma.apply(case.input[n], case.weight[n], acc));
    assert_ne!((channels_first + case.bias[0]).to_bits(), case.forward()[0].to_bits());
}

/// The largest error against `exact`, in units of `f32::EPSILON` times the sum of the terms' magnitudes.
fn error(got: &[f32], exact: &[f64], magnitude: &[f64]) -> f64 {
    let one = |n: usize| (f64::from(got[n]) - exact[n]).abs() / magnitude[n].max(f64::MIN_POSITIVE);
    (0..got.len()).map(one).fold(0.0, f64::max) / f64::from(f32::EPSILON)
}

#[test]
fn gradients_are_those_of_the_forward_pass() {
    // Independent of the reference: sum of forward(x, w) * dy is bilinear, so its derivatives are sums of products that
    // a plain loop over (batch, output channel, position, tap, input channel) scatters in float64.
    let params = ConvolutionParams { stride: [2, 1], padding: [(1, 0), (1, 2)], dilation: [1, 2], groups: 2 };
    let case = Case::new(&[8, 6, 9, 10], &[8, 3, 3, 3], params);
    let (xs, os) = (&case.input_shape, &case.output_shape);
    let (mut y, mut dx, mut dw) =
        (vec![[0f64; 2]; case.gradient.len()], vec![[0f64; 2]; case.input.len()], vec![[0f64; 2]; case.weight.len()]);
    let add = |sum: &mut [f64; 2], a: f32, b: f32| {
        let product = f64::from(a) * f64::from(b);
        *sum = [sum[0] + product, sum[1] + product.abs()];
    };
    for (n, sum) in y.iter_mut().enumerate() {
        let (b, co, oh, ow) = (n / os[3] / os[2] / os[1], n / os[3] / os[2] % os[1], n / os[3] % os[2], n % os[3]);
        for k in 0..27 {
            let (ci, kh, kw) = (k / 9, k / 3 % 3, k % 3);
            let (ih, iw) = ((oh * 2 + kh) as i64 - 1, (ow + 2 * kw) as i64 - 1);
            if !(0..xs[2] as i64).contains(&ih) || !(0..xs[3] as i64).contains(&iw) {
                continue;
            }
            let i = ((b * 6 + co / 4 * 3 + ci) * xs[2] + ih as usize) * xs[3] + iw as usize;
            let w = co * 27 + k;
            add(sum, case.input[i], case.weight[w]);
            add(&mut dx[i], case.gradient[n], case.weight[w]);
            add(&mut dw[w], case.gradient[n], case.input[i]);
        }
        add(sum, case.bias[co], 1.0);
    }
    let got = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    for (name, got, want, terms) in [("y", &got[0], &y, 28), ("dx", &got[1], &dx, 36), ("dw", &got[2], &dw, 400)] {
        let (exact, magnitude): (Vec<f64>, Vec<f64>) = want.iter().map(|&[sum, size]| (sum, size)).unzip();
        let error = error(got, &exact, &magnitude);
        // Every operation of a chain of n multiply-adds errs by at most half an epsilon of the magnitudes so far, twice
        // that where a multiply-add rounds twice: n epsilons in all.
        assert!(error <= f64::from(terms), "{name}: {error} epsilons");
    }
}

#[test]
fn half_precision_is_rounded_once() {
    let case = Case::new(&[3, 5, 6, 6], &[6, 5, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let f16 = ElemType::Float(FloatKind::F16);
    if !case.client.properties().supports_type(f16) {
        return skip("the device has no f16");
    }
    let round = |values: &[f32]| -> Vec<half::f16> { values.iter().map(|&v| half::f16::from_f32(v)).collect() };
    let wide = |values: &[half::f16]| -> Vec<f32> { values.iter().map(|v| v.to_f32()).collect() };
    let (x, w, dy) = (round(&case.input), round(&case.weight), round(&case.gradient));
    let up = |values: &[half::f16], shape: &[usize]| {
        let handle = case.client.create_from_slice(bytemuck::cast_slice(values));
        TensorHandle::new_contiguous(shape.to_vec(), handle, f16)
    };
    let (input, weight, gradient) =
        (up(&x, &case.input_shape), up(&w, &case.weight_shape), up(&dy, &case.output_shape));
    let down = |tensor: TensorHandle| -> Vec<f32> {
        let bits: Vec<u16> = download(&case.client, tensor);
        bits.into_iter().map(|b| half::f16::from_bits(b).to_f32()).collect()
    };
    let y = forward(&case.client, input.clone(), weight.clone(), None, &case.params).unwrap();
    let want = reference::forward(&case.geometry, case.fma, &wide(&x), &wide(&w), None);
    assert_bits(&down(y), &wide(&round(&want)));
    let dw = weight_gradient(&case.client, input, gradient, &case.weight_shape, &case.params).unwrap();
    let want = reference::weight_gradient(&case.geometry, case.fma, &wide(&x), &wide(&dy));
    assert_bits(&down(dw), &wide(&round(&want)));
}

#[test]
fn double_precision_accumulates_in_itself() {
    let case = Case::new(&[3, 5, 6, 6], &[6, 5, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let f64s = ElemType::Float(FloatKind::F64);
    if !case.client.properties().supports_type(f64s) {
        return skip("the device has no f64");
    }
    let up = |values: &[f32], shape: &[usize]| {
        let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
        upload(&case.client, &values, shape, f64s)
    };
    let (input, weight) = (up(&case.input, &case.input_shape), up(&case.weight, &case.weight_shape));
    let y: Vec<f64> = download(&case.client, forward(&case.client, input, weight, None, &case.params).unwrap());
    let single = reference::forward(&case.geometry, case.fma, &case.input, &case.weight, None);
    let near = y.iter().zip(&single).all(|(double, &single)| (double - f64::from(single)).abs() < 1e-4);
    assert!(near && y.iter().zip(&single).any(|(double, &single)| *double != f64::from(single)));
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let client = client();
    let tensor = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
    let refusal = |result: Result<TensorHandle, KernelError>| result.map(|_| ()).unwrap_err().to_string();
    let params = uniform::<2>(1, (0, 0), 1, 1);
    let got = forward(&client, tensor(&[1, 3, 4, 4]), tensor(&[2, 4, 3, 3]), None, &params);
    assert_eq!(refusal(got), "convolution::forward: input [1, 3, 4, 4], want 4 channels and 2 spatial axes");
    let got = forward(&client, tensor(&[1, 3, 2, 4]), tensor(&[2, 3, 3, 3]), None, &params);
    assert_eq!(
        refusal(got),
        "convolution::forward: spatial axis 0: a kernel that reaches over 3 positions does not fit 2"
    );
    let got = forward(&client, tensor(&[1, 3, 4, 4]), tensor(&[2, 3, 3, 3]), Some(tensor(&[3])), &params);
    assert_eq!(refusal(got), "convolution::forward: bias [3], want [2]");
    let got = input_gradient(&client, tensor(&[1, 2, 4, 4]), tensor(&[2, 3, 3, 3]), &[1, 3, 4, 4], &params);
    assert_eq!(refusal(got), "convolution::input_gradient: output gradient [1, 2, 4, 4], want [1, 2, 2, 2]");
    let integers = upload(&client, &[0i32; 16], &[1, 1, 4, 4], I32);
    let kernel = upload(&client, &[0i32; 1], &[1, 1, 1, 1], I32);
    let got = forward(&client, integers, kernel, None, &params);
    assert_eq!(refusal(got), "convolution::forward: no fixed-order kernel for i32; convert to f32, f64, f16 or bf16");
    let far = vec![1usize << 33, 16, 4, 1];
    let far = TensorHandle::new(client.create_from_slice(&[0; 64]), vec![2, 1, 4, 4], far, F32);
    let got = forward(&client, far, tensor(&[1, 1, 3, 3]), None, &params);
    assert_eq!(
        refusal(got),
        "convolution::forward: an operand [2, 1, 4, 4] with strides [8589934592, 16, 4, 1] reaches over 2^32 elements"
    );
    let strided = uniform::<2>(0, (0, 0), 1, 1);
    let got = forward(&client, tensor(&[1, 3, 4, 4]), tensor(&[2, 3, 3, 3]), None, &strided);
    assert_eq!(refusal(got), "convolution::forward: spatial axis 0: stride 0 and dilation 1 must not be zero");
}
