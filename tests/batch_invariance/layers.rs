//! Convolutions, normalisations, recurrent layers, and networks of them.

use super::{Case, rows, weights};
use crate::programs::{gru, text_convnet};
use burn::nn::attention::{MhaInput, MultiHeadAttentionConfig};
use burn::nn::gru::GruConfig;
use burn::nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::{
    BatchNormConfig, GroupNormConfig, InstanceNormConfig, LayerNormConfig, LinearConfig, LstmConfig, RmsNormConfig,
};
use burn::prelude::*;
use burn::tensor::activation::relu;
use burn::tensor::module::*;
use burn::tensor::ops::*;

pub fn convolutions(_: &Device) -> Vec<Case> {
    vec![
        Case::new("conv1d", "conv1d", 4 * 50, |x, _| {
            let (weight, bias) = (weights([6, 2, 3], &x.device()), weights([6], &x.device()));
            rows(conv1d(x.reshape([-1, 4, 50]), weight, Some(bias), ConvOptions::new([2], [1], [2], 2)))
        }),
        Case::new("conv2d", "conv2d", 4 * 7 * 8, |x, _| {
            let (weight, bias) = (weights([6, 2, 3, 2], &x.device()), weights([6], &x.device()));
            let options = ConvOptions::new([2, 1], [1, 0], [1, 2], 2);
            rows(conv2d(x.reshape([-1, 4, 7, 8]), weight, Some(bias), options))
        }),
        Case::new("conv2d of many channels", "conv2d", 64 * 6 * 6, |x, _| {
            let weight = weights([40, 64, 3, 3], &x.device());
            rows(conv2d(x.reshape([-1, 64, 6, 6]), weight, None, ConvOptions::new([1, 1], [1, 1], [1, 1], 1)))
        }),
        Case::new("conv2d of one tap", "conv2d", 32 * 5 * 5, |x, _| {
            let weight = weights([48, 32, 1, 1], &x.device());
            rows(conv2d(x.reshape([-1, 32, 5, 5]), weight, None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1)))
        }),
        Case::new("conv3d", "conv3d", 2 * 4 * 5 * 4, |x, _| {
            let (weight, bias) = (weights([4, 2, 2, 2, 2], &x.device()), weights([4], &x.device()));
            let options = ConvOptions::new([1, 2, 1], [1, 0, 1], [1, 1, 2], 1);
            rows(conv3d(x.reshape([-1, 2, 4, 5, 4]), weight, Some(bias), options))
        }),
        Case::new("deform_conv2d", "deform_conv2d", 168 + 192 + 96, |x, _| {
            let (weight, bias) = (weights([4, 2, 3, 2], &x.device()), weights([4], &x.device()));
            let image = x.clone().slice_dim(1, 0..168).reshape([-1, 4, 7, 6]);
            let offsets = x.clone().slice_dim(1, 168..360).reshape([-1, 12, 4, 4]);
            let mask = x.slice_dim(1, 360..456).reshape([-1, 6, 4, 4]);
            let options = DeformConvOptions::new([2, 1], [1, 0], [1, 2], 2, 1);
            rows(deform_conv2d(image, offsets, weight, Some(mask), Some(bias), options))
        }),
    ]
}

/// A transposed convolution whose order on plain Burn depends on the batch.
pub fn conv_transpose2d_of_channels() -> Case {
    Case::new("conv_transpose2d of many channels", "conv_transpose2d", 32 * 7 * 7, |x, _| {
        let weight = weights([32, 16, 4, 4], &x.device());
        let options = ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1);
        rows(conv_transpose2d(x.reshape([-1, 32, 7, 7]), weight, None, options))
    })
}

pub fn transposed_convolutions(_: &Device) -> Vec<Case> {
    vec![
        conv_transpose2d_of_channels(),
        Case::new("conv_transpose1d", "conv_transpose1d", 4 * 6, |x, _| {
            let (weight, bias) = (weights([4, 3, 3], &x.device()), weights([6], &x.device()));
            let options = ConvTransposeOptions::new([2], [1], [1], [2], 2);
            rows(conv_transpose1d(x.reshape([-1, 4, 6]), weight, Some(bias), options))
        }),
        Case::new("conv_transpose2d", "conv_transpose2d", 4 * 4 * 5, |x, _| {
            let (weight, bias) = (weights([4, 3, 3, 2], &x.device()), weights([6], &x.device()));
            let options = ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 2], 2);
            rows(conv_transpose2d(x.reshape([-1, 4, 4, 5]), weight, Some(bias), options))
        }),
        Case::new("conv_transpose3d", "conv_transpose3d", 3 * 3 * 2 * 4, |x, _| {
            let (weight, bias) = (weights([3, 2, 2, 2, 2], &x.device()), weights([2], &x.device()));
            let options = ConvTransposeOptions::new([1, 2, 2], [0, 1, 0], [0, 1, 0], [1, 1, 2], 1);
            rows(conv_transpose3d(x.reshape([-1, 3, 3, 2, 4]), weight, Some(bias), options))
        }),
        Case::new("fold4d", "conv_transpose2d", 12 * 30, |x, _| {
            let options = UnfoldOptions::new([1, 1], [0, 0], [1, 1]);
            rows(fold4d(x.reshape([-1, 12, 30]), [6, 7], [2, 2], options))
        }),
    ]
}

/// A normalisation over channels and places of a group.
pub fn group_norm(device: &Device) -> Case {
    let norm = GroupNormConfig::new(4, 16).init(device);
    Case::new("group norm", "", 16 * 20 * 20, move |x, _| rows(norm.forward::<4>(x.reshape([-1, 16, 20, 20]))))
}

pub fn normalisations(device: &Device) -> Vec<Case> {
    let layer = LayerNormConfig::new(130).init(device);
    let root = RmsNormConfig::new(130).init(device);
    let instance = InstanceNormConfig::new(6).init(device);
    let batch = BatchNormConfig::new(6).init(device);
    vec![
        group_norm(device),
        Case::new("layer_norm", "", 5 * 130, |x, _| {
            let (gamma, beta) = (weights([130], &x.device()), weights([130], &x.device()));
            rows(layer_norm(x.reshape([-1, 5, 130]), gamma, Some(beta), 1e-5))
        }),
        Case::new("layer norm", "", 5 * 130, move |x, _| rows(layer.forward::<3>(x.reshape([-1, 5, 130])))),
        Case::new("RMS norm", "", 5 * 130, move |x, _| rows(root.forward::<3>(x.reshape([-1, 5, 130])))),
        Case::new("instance norm", "", 6 * 90, move |x, _| rows(instance.forward::<3>(x.reshape([-1, 6, 90])))),
        Case::new("batch norm in inference", "", 6 * 20, move |x, _| rows(batch.forward::<3>(x.reshape([-1, 6, 20])))),
        Case::new("batch_norm", "", 6 * 20, |x, _| {
            let number = || weights([6], &x.device());
            let (gamma, beta, mean, variance) = (number(), number(), number(), number().abs() + 0.5);
            rows(batch_norm(x.clone().reshape([-1, 6, 20]), gamma, beta, mean, variance, 1e-5))
        }),
    ]
}

pub fn recurrent(device: &Device) -> Vec<Case> {
    let lstm = LstmConfig::new(8, 20, true).init(device);
    let gru = GruConfig::new(8, 20, true).init(device);
    vec![
        Case::new("LSTM", "", 5 * 8, move |x, _| rows(lstm.forward(x.reshape([-1, 5, 8]), None).0)),
        Case::new("GRU", "", 5 * 8, move |x, _| rows(gru.forward(x.reshape([-1, 5, 8]), None))),
    ]
}

pub fn networks(device: &Device) -> Vec<Case> {
    let attention = MultiHeadAttentionConfig::new(32, 4).with_dropout(0.0).init(device);
    let encoder = TransformerEncoderConfig::new(32, 64, 4, 2).with_dropout(0.0).init(device);
    let continuation = gru::Continuation::new(device);
    let letters = text_convnet::TextConvNet::new(device);
    let hidden = LinearConfig::new(200, 130).init(device);
    let head = LinearConfig::new(130, 10).init(device);
    vec![
        Case::new("multi-head attention", "", 9 * 32, move |x, _| {
            rows(attention.forward(MhaInput::self_attn(x.reshape([-1, 9, 32]))).context)
        }),
        Case::new("transformer", "", 9 * 32, move |x, _| {
            rows(encoder.forward(TransformerEncoderInput::new(x.reshape([-1, 9, 32]))))
        }),
        Case::new("GRU with tied weights", "", 1, move |_, at| rows(continuation.forward(at.slice_dim(1, 0..9)))),
        Case::new("convolutional network on embeddings", "", 1, move |_, at| letters.forward(at)),
        Case::new("perceptron", "", 200, move |x, _| head.forward(relu(hidden.forward(x)))),
    ]
}
