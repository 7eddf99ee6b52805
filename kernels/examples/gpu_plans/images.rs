//! What reads images at places: sampling, resizing, deformable convolution, pools; and the CTC loss.

use crate::case::{Case, F32, FLOATS, I32, indices, tensor};
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::deform_convolution::{self, DeformParams};
use burn_deterministic_kernels::grid_sample::{self, Padding, SampleParams, sample};
use burn_deterministic_kernels::interpolation::{input_gradient, resize, weights::Filter};
use burn_deterministic_kernels::pool::{self, Window};
use burn_deterministic_kernels::{KernelError, ctc};
use cubecl::ir::ElemType;
use cubecl::prelude::*;

const POOLS: [&str; 7] = [
    "average",
    "average gradient",
    "adaptive average",
    "adaptive average gradient",
    "maximum",
    "maximum, with indices",
    "maximum gradient, by indices",
];

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = FLOATS.into_iter().map(|dtype| sampled(grid_sample::Filter::Linear, dtype)).collect();
    for filter in [grid_sample::Filter::Nearest, grid_sample::Filter::Cubic, grid_sample::Filter::Lanczos3] {
        cases.push(sampled(filter, F32));
    }
    for filter in [Filter::Nearest, Filter::Linear, Filter::Cubic] {
        cases.extend(FLOATS.map(|dtype| resized(filter, dtype)));
        cases.extend(FLOATS.map(|dtype| resize_gradient(filter, dtype)));
    }
    cases.push(resized(Filter::Lanczos3, F32));
    cases.extend(FLOATS.into_iter().flat_map(|dtype| [deformed("forward", dtype), deformed("backward", dtype)]));
    for pass in POOLS {
        cases.extend(FLOATS.map(|dtype| pooled(pass, dtype)));
    }
    cases.extend(FLOATS.into_iter().flat_map(pooled_in_planes));
    for pass in ["loss", "variables", "gradient"] {
        cases.extend(FLOATS.map(|dtype| loss(pass, dtype)));
    }
    cases
}

fn sampled(filter: grid_sample::Filter, dtype: ElemType) -> Case {
    let (image, places) = ([32, 64, 56, 56], [32, 56, 56, 2]);
    let (pixels, numbers): (usize, usize) = (image.iter().product(), places.iter().product());
    let label = format!("sample, {}", format!("{filter:?}").to_lowercase());
    let params = SampleParams { filter, padding: Padding::Zeros, align_corners: false };
    let case = Case::new("grid_sample", label, dtype, format!("{image:?} at {places:?}"));
    case.elements(2 * pixels + numbers)
        .runs(move |client| sample(client, tensor(client, &image, dtype), tensor(client, &places, dtype), params, None))
}

fn resized(filter: Filter, dtype: ElemType) -> Case {
    let (image, larger) = ([32, 64, 28, 28], [32, 64, 56, 56]);
    let label = format!("resize, {}", format!("{filter:?}").to_lowercase());
    let size = |shape: [usize; 4]| shape.iter().product::<usize>();
    let case = Case::new("interpolation", label, dtype, format!("{image:?} to {larger:?}"));
    case.elements(size(image) + size(larger))
        .runs(move |client| resize(client, tensor(client, &image, dtype), [56, 56], filter, false, None))
}

fn resize_gradient(filter: Filter, dtype: ElemType) -> Case {
    let (image, larger) = ([32, 64, 28, 28], [32, 64, 56, 56]);
    let label = format!("input gradient, {}", format!("{filter:?}").to_lowercase());
    let size = |shape: [usize; 4]| shape.iter().product::<usize>();
    let case = Case::new("interpolation", label, dtype, format!("{image:?} from {larger:?}"));
    case.elements(size(image) + size(larger))
        .runs(move |client| input_gradient(client, tensor(client, &larger, dtype), &image, filter, false, None))
}

fn deformed(pass: &'static str, dtype: ElemType) -> Case {
    let (image, weight) = ([32, 64, 56, 56], [64, 64, 3, 3]);
    let (offset, mask) = ([32, 18, 56, 56], [32, 9, 56, 56]);
    let params = DeformParams { stride: [1; 2], padding: [1; 2], dilation: [1; 2], weight_groups: 1, offset_groups: 1 };
    let size = |shape: [usize; 4]| shape.iter().product::<usize>();
    let products = 2 * size(image) * 64 * 9;
    let case = Case::new("deform_convolution", pass, dtype, format!("{image:?} * {weight:?}"));
    let case = case.elements(2 * size(image) + size(weight) + size(offset) + size(mask));
    let case = if pass == "forward" { case.flops(products) } else { case.flops(2 * products) };
    case.runs(move |client| -> Result<(), KernelError> {
        let operands = deform_convolution::Operands {
            input: tensor(client, &image, dtype),
            offset: tensor(client, &offset, dtype),
            weight: tensor(client, &weight, dtype),
            mask: Some(tensor(client, &mask, dtype)),
        };
        match pass {
            "forward" => {
                let bias = Some(tensor(client, &[64], dtype));
                deform_convolution::forward(client, Products::Native, &operands, bias, &params, None).map(|_| ())
            }
            _ => deform_convolution::backward(
                client,
                Products::Native,
                &operands,
                tensor(client, &image, dtype),
                &params,
            )
            .map(|_| ()),
        }
    })
}

/// Pools of a convolutional network, two to one along each axis; adaptive ones to 7 x 7.
fn pooled(pass: &'static str, dtype: ElemType) -> Case {
    let (image, half, seventh) = ([32, 64, 56, 56], [32, 64, 28, 28], [32, 64, 7, 7]);
    let window = Window { kernel_size: [2; 2], stride: [2; 2], padding: [0; 2], dilation: [1; 2] };
    let size = |shape: [usize; 4]| shape.iter().product::<usize>();
    let output = if pass.starts_with("adaptive") { seventh } else { half };
    let case = Case::new("pool", pass, dtype, format!("{image:?} to {output:?}"));
    let case = case.elements(size(image) + size(output));
    let case = if pass.contains("index") { case.indices(size(output)) } else { case };
    case.runs(move |client: &Client| -> Result<(), KernelError> {
        let of = |shape: [usize; 4]| tensor(client, &shape, dtype);
        let windows = [half[2], half[3]];
        let pixels = [image[2], image[3]];
        match pass {
            "average" => pool::average(client, of(image), windows, &window, true).map(|_| ()),
            "average gradient" => pool::average_gradient(client, of(half), pixels, &window, true).map(|_| ()),
            "adaptive average" => pool::adaptive_average(client, of(image), [7, 7]).map(|_| ()),
            "adaptive average gradient" => pool::adaptive_average_gradient(client, of(seventh), pixels).map(|_| ()),
            "maximum" => pool::maximum(client, of(image), windows, &window).map(|_| ()),
            "maximum, with indices" => pool::maximum_with_indices(client, of(image), windows, &window, I32).map(|_| ()),
            _ => {
                let indices = indices(client, &half, pixels[0] * pixels[1]);
                pool::maximum_gradient(client, of(half), indices, pixels, &window).map(|_| ())
            }
        }
    })
}

/// An adaptive average of volumes, and its gradient.
fn pooled_in_planes(dtype: ElemType) -> Vec<Case> {
    let (volume, output) = ([4, 32, 16, 16, 16], [4, 32, 4, 4, 4]);
    let size = |shape: [usize; 5]| shape.iter().product::<usize>();
    let case = |pass| {
        let case = Case::new("pool", pass, dtype, format!("{volume:?} to {output:?}"));
        case.elements(size(volume) + size(output))
    };
    vec![
        case("adaptive average in planes")
            .runs(move |client| pool::adaptive_average(client, tensor(client, &volume, dtype), [4; 3])),
        case("adaptive average gradient in planes")
            .runs(move |client| pool::adaptive_average_gradient(client, tensor(client, &output, dtype), [16; 3])),
    ]
}

fn loss(pass: &'static str, dtype: ElemType) -> Case {
    let (steps, batch, classes, length) = (256, 64, 64, 32);
    let (wide, labels) = ([steps, batch, classes], [steps, batch, 2 * length + 1]);
    let size = |shape: [usize; 3]| shape.iter().product::<usize>();
    let case =
        Case::new("ctc", pass, dtype, format!("{steps} steps, batch {batch}, {classes} classes, targets of {length}"));
    let elements = match pass {
        "loss" => size(wide),
        "variables" => size(wide) + 2 * size(labels),
        _ => 2 * size(wide) + 2 * size(labels),
    };
    case.elements(elements).indices(batch * (length + 2)).runs(move |client: &Client| -> Result<(), KernelError> {
        let operands = ctc::Operands {
            scores: tensor(client, &wide, dtype),
            targets: indices(client, &[batch, length], classes),
            input_lengths: indices(client, &[batch], steps + 1),
            target_lengths: indices(client, &[batch], length + 1),
        };
        match pass {
            "loss" => ctc::loss(client, operands, 0).map(|_| ()),
            "variables" => ctc::variables(client, operands, 0).map(|_| ()),
            _ => {
                let variables = ctc::Variables {
                    alpha: tensor(client, &labels, F32),
                    beta: tensor(client, &labels, F32),
                    loss: tensor(client, &[batch], F32),
                };
                ctc::gradient(client, operands, variables, tensor(client, &[batch], dtype), 0).map(|_| ())
            }
        }
    })
}
