//! What reads images at places: sampling, resizing, deformable convolution; and the gradient of the CTC loss.

use crate::case::{Case, F32, FLOATS, indices, tensor};
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::deform_convolution::{self, DeformParams};
use burn_deterministic_kernels::grid_sample::{self, Padding, SampleParams, sample};
use burn_deterministic_kernels::interpolation::{input_gradient, resize, weights::Filter};
use burn_deterministic_kernels::{KernelError, ctc};
use cubecl::ir::ElemType;
use cubecl::prelude::*;

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
    cases.extend(FLOATS.map(loss));
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

fn loss(dtype: ElemType) -> Case {
    let (steps, batch, classes, length) = (256, 64, 64, 32);
    let (wide, labels) = ([steps, batch, classes], [steps, batch, 2 * length + 1]);
    let size = |shape: [usize; 3]| shape.iter().product::<usize>();
    let case = Case::new(
        "ctc",
        "gradient",
        dtype,
        format!("{steps} steps, batch {batch}, {classes} classes, targets of {length}"),
    );
    case.elements(2 * size(wide) + 2 * size(labels)).indices(batch * (length + 1)).runs(move |client: &Client| {
        let operands = ctc::Operands {
            scores: tensor(client, &wide, dtype),
            targets: indices(client, &[batch, length], classes),
            lengths: indices(client, &[batch], length + 1),
            gradient: tensor(client, &[batch], dtype),
            alpha: tensor(client, &labels, dtype),
            beta: tensor(client, &labels, dtype),
            loss: tensor(client, &[batch], dtype),
        };
        ctc::gradient(client, operands, 0)
    })
}
