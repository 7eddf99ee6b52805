//! Convolutions, normalisations, attention, matrix products.

use super::{Operation, at, flat};
use burn::prelude::*;
use burn::tensor::module::*;
use burn::tensor::ops::*;

pub fn convolutions() -> Vec<Operation> {
    vec![
        Operation::new("conv1d", &[2 * 4 * 11, 6 * 2 * 3, 6], |x| {
            let options = ConvOptions::new([2], [1], [2], 2);
            flat(conv1d(x[0].clone().reshape([2, 4, 11]), x[1].clone().reshape([6, 2, 3]), Some(x[2].clone()), options))
        }),
        Operation::new("conv2d", &[2 * 4 * 7 * 8, 6 * 2 * 3 * 2, 6], |x| {
            let options = ConvOptions::new([2, 1], [1, 0], [1, 2], 2);
            let (input, weight) = (x[0].clone().reshape([2, 4, 7, 8]), x[1].clone().reshape([6, 2, 3, 2]));
            flat(conv2d(input, weight, Some(x[2].clone()), options))
        }),
        Operation::new("conv3d", &[2 * 2 * 4 * 5 * 4, 4 * 2 * 8, 4], |x| {
            let options = ConvOptions::new([1, 2, 1], [1, 0, 1], [1, 1, 2], 1);
            let (input, weight) = (x[0].clone().reshape([2, 2, 4, 5, 4]), x[1].clone().reshape([4, 2, 2, 2, 2]));
            flat(conv3d(input, weight, Some(x[2].clone()), options))
        }),
    ]
}

pub fn transposed_convolutions() -> Vec<Operation> {
    vec![
        Operation::new("conv_transpose1d", &[2 * 4 * 6, 4 * 3 * 3, 6], |x| {
            let options = ConvTransposeOptions::new([2], [1], [1], [2], 2);
            let (input, weight) = (x[0].clone().reshape([2, 4, 6]), x[1].clone().reshape([4, 3, 3]));
            flat(conv_transpose1d(input, weight, Some(x[2].clone()), options))
        }),
        Operation::new("conv_transpose2d", &[2 * 4 * 4 * 5, 4 * 3 * 3 * 2, 6], |x| {
            let options = ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 2], 2);
            let (input, weight) = (x[0].clone().reshape([2, 4, 4, 5]), x[1].clone().reshape([4, 3, 3, 2]));
            flat(conv_transpose2d(input, weight, Some(x[2].clone()), options))
        }),
        Operation::new("conv_transpose3d", &[2 * 3 * 3 * 2 * 4, 3 * 2 * 8, 2], |x| {
            let options = ConvTransposeOptions::new([1, 2, 2], [0, 1, 0], [0, 1, 0], [1, 1, 2], 1);
            let (input, weight) = (x[0].clone().reshape([2, 3, 3, 2, 4]), x[1].clone().reshape([3, 2, 2, 2, 2]));
            flat(conv_transpose3d(input, weight, Some(x[2].clone()), options))
        }),
    ]
}

pub fn deformable_convolutions() -> Vec<Operation> {
    let mut operations: Vec<_> = [(1, 1), (2, 1), (1, 2), (2, 4)].map(deformable_convolution).into();
    operations.push(Operation::new("deform_conv2d, without mask and bias", &[2 * 6 * 5, 18 * 6 * 5, 3 * 2 * 9], |x| {
        let options = DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1);
        let (input, offset) = (x[0].clone().reshape([1, 2, 6, 5]), x[1].clone().reshape([1, 18, 6, 5]));
        flat(deform_conv2d(input, offset, x[2].clone().reshape([3, 2, 3, 3]), None, None, options))
    }));
    operations
}

fn deformable_convolution((weight_groups, offset_groups): (usize, usize)) -> Operation {
    let places = offset_groups * 6 * 4 * 4;
    let weights = 4 / weight_groups * 6 * 4;
    let name = format!("deform_conv2d, {weight_groups} and {offset_groups} groups");
    Operation::new(name, &[2 * 4 * 7 * 6, 2 * places * 2, weights, 2 * places, 4], move |x| {
        flat(deform_conv2d(
            x[0].clone().reshape([2, 4, 7, 6]),
            x[1].clone().reshape([2, offset_groups * 12, 4, 4]),
            x[2].clone().reshape([4, 4 / weight_groups, 3, 2]),
            Some(x[3].clone().reshape([2, offset_groups * 6, 4, 4])),
            Some(x[4].clone()),
            DeformConvOptions::new([2, 1], [1, 0], [1, 2], weight_groups, offset_groups),
        ))
    })
}

pub fn normalisations() -> Vec<Operation> {
    vec![
        Operation::new("layer_norm", &[4 * 5 * 12, 12, 12], |x| {
            flat(layer_norm(x[0].clone().reshape([4, 5, 12]), x[1].clone(), Some(x[2].clone()), 1e-5))
        }),
        Operation::new("batch_norm_train", &[6 * 5 * 7, 5, 5], |x| {
            flat(batch_norm_train(x[0].clone().reshape([6, 5, 7]), x[1].clone(), x[2].clone(), 1e-5).output)
        }),
        Operation::new("batch_norm", &[6 * 5 * 7, 5, 5, 5, 5], |x| {
            let variance = x[4].clone().abs() + 0.5;
            flat(batch_norm(x[0].clone().reshape([6, 5, 7]), x[1].clone(), x[2].clone(), x[3].clone(), variance, 1e-5))
        }),
        Operation::new("group_norm", &[2 * 6 * 9], |x| {
            let groups = x[0].clone().reshape([2, 3, 18]);
            let (variance, mean) = groups.clone().var_mean_bias(2);
            flat((groups - mean) / (variance + 1e-5).sqrt())
        }),
        Operation::new("rms_norm", &[9 * 20, 20], |x| {
            let rows = x[0].clone().reshape([9, 20]);
            let root = (rows.clone().square().mean_dim(1) + 1e-5).sqrt();
            flat(rows / root * x[1].clone().unsqueeze::<2>())
        }),
    ]
}

pub fn attentions() -> Vec<Operation> {
    [false, true].map(attention_of).into()
}

fn attention_of(causal: bool) -> Operation {
    let name = if causal { "attention, causal" } else { "attention" };
    Operation::new(name, &[2 * 3 * 7 * 8, 2 * 3 * 7 * 8, 2 * 3 * 7 * 5, 2 * 3 * 7 * 7], move |x| {
        let options = AttentionModuleOptions { is_causal: causal, softcap: Some(3.0), ..Default::default() };
        let mask = at([2, 3, 7, 7], 3, &x[0]).equal_elem(2);
        // No query is left without a key.
        let eye = Tensor::<2, Int>::eye(7, &x[0].device()).equal_elem(1).bool_not().unsqueeze::<4>();
        flat(attention(
            x[0].clone().reshape([2, 3, 7, 8]),
            x[1].clone().reshape([2, 3, 7, 8]),
            x[2].clone().reshape([2, 3, 7, 5]),
            Some(mask.bool_and(eye.expand([2, 3, 7, 7]))),
            Some(x[3].clone().reshape([2, 3, 7, 7])),
            options,
        ))
    })
}

pub fn products() -> Vec<Operation> {
    vec![
        Operation::new("cross", &[5 * 3 * 4, 5 * 3 * 4], |x| {
            flat(x[0].clone().reshape([5, 3, 4]).cross(x[1].clone().reshape([5, 3, 4]), 1))
        }),
        Operation::new("linear", &[5 * 6 * 9, 9 * 7, 7], |x| {
            flat(linear(x[0].clone().reshape([5, 6, 9]), x[1].clone().reshape([9, 7]), Some(x[2].clone())))
        }),
        Operation::new("matmul", &[13 * 31, 31 * 17], |x| {
            flat(x[0].clone().reshape([13, 31]).matmul(x[1].clone().reshape([31, 17])))
        }),
        Operation::new("matmul, broadcast", &[3 * 5 * 8, 2 * 8 * 6], |x| {
            flat(x[0].clone().reshape([1, 3, 5, 8]).matmul(x[1].clone().reshape([2, 1, 8, 6])))
        }),
        Operation::new("matmul of a vector", &[300, 300 * 2], |x| {
            flat(x[0].clone().reshape([1, 300]).matmul(x[1].clone().reshape([300, 2])))
        }),
    ]
}
