//! Convolutions, transposed convolutions and their gradients.

use crate::case::{Case, FLOATS, tensor};
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::convolution::{
    Arithmetic, ConvolutionParams, TransposedParams, forward, input_gradient, transposed_forward, weight_gradient,
};
use burn_deterministic_kernels::matmul::tensor_cores::{Sums, assume_sums};
use cubecl::ir::ElemType;
use cubecl::prelude::Client;

/// A layer over square images.
#[derive(Clone, Copy)]
struct Layer {
    label: &'static str,
    batch: usize,
    inputs: usize,
    outputs: usize,
    /// Pixels along an edge.
    image: usize,
    /// Taps along an edge; padding keeps the image where the stride is 1.
    taps: usize,
    stride: usize,
    groups: usize,
}

const LAYERS: [Layer; 8] = [
    Layer { label: "resnet block", batch: 32, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 1 },
    Layer { label: "resnet stem", batch: 32, inputs: 3, outputs: 64, image: 224, taps: 7, stride: 2, groups: 1 },
    Layer { label: "1 x 1", batch: 32, inputs: 256, outputs: 64, image: 56, taps: 1, stride: 1, groups: 1 },
    Layer { label: "depthwise", batch: 32, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 64 },
    Layer { label: "mnist", batch: 128, inputs: 1, outputs: 32, image: 28, taps: 3, stride: 1, groups: 1 },
    Layer { label: "an image", batch: 1, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 1 },
    Layer { label: "wide", batch: 32, inputs: 512, outputs: 512, image: 7, taps: 3, stride: 1, groups: 1 },
    Layer { label: "small images", batch: 32, inputs: 32, outputs: 32, image: 8, taps: 3, stride: 1, groups: 1 },
];

/// Layers of which every pass, or all but the gradient of an image, has the order of tensor cores.
const ON_TENSOR_CORES: [Layer; 4] = [
    Layer { label: "resnet block, on tensor cores", ..LAYERS[0] },
    Layer { label: "resnet stem, on tensor cores", ..LAYERS[1] },
    Layer { label: "wide, on tensor cores", ..LAYERS[6] },
    Layer { label: "resnet stage, on tensor cores", outputs: 128, stride: 2, ..LAYERS[0] },
];

impl Layer {
    fn params(&self) -> ConvolutionParams<2> {
        let side = self.taps / 2;
        let Self { stride, groups, .. } = *self;
        ConvolutionParams { stride: [stride; 2], padding: [(side, side); 2], dilation: [1; 2], groups }
    }

    fn positions(&self) -> usize {
        (self.image + 2 * (self.taps / 2) - self.taps) / self.stride + 1
    }

    fn input(&self) -> [usize; 4] {
        [self.batch, self.inputs, self.image, self.image]
    }

    fn output(&self) -> [usize; 4] {
        [self.batch, self.outputs, self.positions(), self.positions()]
    }

    fn weight(&self) -> [usize; 4] {
        [self.outputs, self.inputs / self.groups, self.taps, self.taps]
    }

    fn case(&self, pass: &str, dtype: ElemType) -> Case {
        let (input, output, weight) = (self.input(), self.output(), self.weight());
        let size = |shape: [usize; 4]| shape.iter().product::<usize>();
        let multiply_adds = size(output) * weight[1..].iter().product::<usize>();
        let shape = format!("{input:?} * {weight:?}, stride {}", self.stride);
        let case = Case::new("convolution", format!("{}, {pass}", self.label), dtype, shape);
        case.flops(2 * multiply_adds).elements(size(input) + size(output) + size(weight))
    }
}

pub fn cases() -> Vec<Case> {
    let chains = FLOATS.into_iter().flat_map(|dtype| LAYERS.into_iter().flat_map(move |layer| of(layer, dtype, false)));
    let on_tensor_cores =
        FLOATS.into_iter().flat_map(|dtype| ON_TENSOR_CORES.into_iter().flat_map(move |layer| of(layer, dtype, true)));
    chains.chain(on_tensor_cores).collect()
}

fn of(layer: Layer, dtype: ElemType, tensor_cores: bool) -> Vec<Case> {
    let (input, output, weight) = (layer.input(), layer.output(), layer.weight());
    let params = layer.params();
    let arithmetic = move |client: &Client| -> Arithmetic<'static> {
        if tensor_cores {
            assume_sums(client, dtype, Sums::Hopper);
            Arithmetic { tensor_cores: &|| Ok(true), products: Products::Native }
        } else {
            Products::Native.into()
        }
    };
    let mut cases = vec![
        layer.case("forward", dtype).runs(move |client| {
            let bias = Some(tensor(client, &[layer.outputs], dtype));
            let (input, weight) = (tensor(client, &input, dtype), tensor(client, &weight, dtype));
            forward(client, arithmetic(client), input, weight, bias, &params)
        }),
        layer.case("weight gradient", dtype).runs(move |client| {
            let gradient = tensor(client, &output, dtype);
            weight_gradient(client, arithmetic(client), tensor(client, &input, dtype), gradient, &weight, &params)
        }),
    ];
    // The gradient of an image has the order of chains.
    if !tensor_cores || layer.inputs >= 16 {
        cases.push(layer.case("input gradient", dtype).runs(move |client| {
            let gradient = tensor(client, &output, dtype);
            input_gradient(client, arithmetic(client), gradient, tensor(client, &weight, dtype), &input, &params)
        }));
    }
    if layer.label == "resnet block" {
        let params =
            TransposedParams { stride: [2; 2], padding: [1; 2], padding_out: [1; 2], dilation: [1; 2], groups: 1 };
        cases.push(layer.case("transposed", dtype).runs(move |client| {
            let (input, weight) = (tensor(client, &input, dtype), tensor(client, &weight, dtype));
            transposed_forward(client, Products::Native, input, weight, None, &params)
        }));
    }
    cases
}
