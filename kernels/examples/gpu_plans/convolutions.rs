//! Convolutions, transposed convolutions and their gradients.

use crate::case::{Case, FLOATS, tensor};
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::convolution::{
    ConvolutionParams, TransposedParams, forward, input_gradient, transposed_forward, weight_gradient,
};
use cubecl::ir::ElemType;

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

const LAYERS: [Layer; 7] = [
    Layer { label: "resnet block", batch: 32, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 1 },
    Layer { label: "resnet stem", batch: 32, inputs: 3, outputs: 64, image: 224, taps: 7, stride: 2, groups: 1 },
    Layer { label: "1 x 1", batch: 32, inputs: 256, outputs: 64, image: 56, taps: 1, stride: 1, groups: 1 },
    Layer { label: "depthwise", batch: 32, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 64 },
    Layer { label: "mnist", batch: 128, inputs: 1, outputs: 32, image: 28, taps: 3, stride: 1, groups: 1 },
    Layer { label: "an image", batch: 1, inputs: 64, outputs: 64, image: 56, taps: 3, stride: 1, groups: 1 },
    Layer { label: "wide", batch: 32, inputs: 512, outputs: 512, image: 7, taps: 3, stride: 1, groups: 1 },
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
    FLOATS.into_iter().flat_map(|dtype| LAYERS.into_iter().flat_map(move |layer| of(layer, dtype))).collect()
}

fn of(layer: Layer, dtype: ElemType) -> Vec<Case> {
    let (input, output, weight) = (layer.input(), layer.output(), layer.weight());
    let params = layer.params();
    let mut cases = vec![
        layer.case("forward", dtype).runs(move |client| {
            let bias = Some(tensor(client, &[layer.outputs], dtype));
            forward(
                client,
                Products::Native,
                tensor(client, &input, dtype),
                tensor(client, &weight, dtype),
                bias,
                &params,
            )
        }),
        layer.case("input gradient", dtype).runs(move |client| {
            let gradient = tensor(client, &output, dtype);
            input_gradient(client, Products::Native, gradient, tensor(client, &weight, dtype), &input, &params)
        }),
        layer.case("weight gradient", dtype).runs(move |client| {
            let gradient = tensor(client, &output, dtype);
            weight_gradient(client, Products::Native, tensor(client, &input, dtype), gradient, &weight, &params)
        }),
    ];
    if layer.label == "resnet block" {
        let params =
            TransposedParams { stride: [2; 2], padding: [1; 2], padding_out: [1; 2], dilation: [1; 2], groups: 1 };
        cases.push(layer.case("transposed", dtype).runs(move |client| {
            transposed_forward(
                client,
                Products::Native,
                tensor(client, &input, dtype),
                tensor(client, &weight, dtype),
                None,
                &params,
            )
        }));
    }
    cases
}
