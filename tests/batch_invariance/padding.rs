//! Sequences that are padded at their end: the results before it keep their bits, whatever the padding is.

use super::weights;
use crate::bits::floats;
use crate::deterministic_device;
use crate::programs::gru;
use burn::nn::LstmConfig;
use burn::nn::gru::GruConfig;
use burn::prelude::*;
use burn::tensor::activation::softmax;
use burn::tensor::module::{attention, conv1d, layer_norm, linear};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions};

/// Sequences.
const SAMPLES: usize = 3;
/// Numbers of an element.
const WIDTH: usize = 16;

/// A length without padding, and lengths with it: to the next one, to a power of two, and to many blocks of any order.
struct Lengths(usize, &'static [usize]);

const LENGTHS: Lengths = Lengths(300, &[301, 512, 5000, 70_000]);
/// For what costs the square of the length.
const SHORTER: Lengths = Lengths(300, &[301, 512, 1100]);
/// For what is a few operations an element.
const SHORTEST: Lengths = Lengths(12, &[13, 40]);

/// Sequences `[SAMPLES, length + padded, WIDTH]`, the padding being `padding`, or numbers where there is none.
fn sequences(length: usize, padded: usize, padding: Option<f32>, device: &Device) -> Tensor<3> {
    let values = floats([SAMPLES * length * WIDTH]).try_to_vec::<f32>().expect("f32");
    let numbers = floats([padded * WIDTH]).try_to_vec::<f32>().expect("f32");
    let pad = numbers.into_iter().map(|number| padding.unwrap_or(number));
    let all: Vec<f32> =
        values.chunks(length * WIDTH).flat_map(|sequence| sequence.iter().copied().chain(pad.clone())).collect();
    Tensor::from_data(TensorData::new(all, [SAMPLES, length + padded, WIDTH]), device)
}

/// Requires that the results of a sequence's elements are those that it has without padding.
fn check(name: &str, lengths: Lengths, paddings: &[Option<f32>], run: impl Fn(Tensor<3>) -> Tensor<3>) {
    let device = deterministic_device();
    let Lengths(unpadded, lengths) = lengths;
    let bits = |sequences| {
        let results = run(sequences).slice_dim(1, 0..unpadded);
        results.into_data().iter::<f32>().map(f32::to_bits).collect::<Vec<_>>()
    };
    let want = bits(sequences(unpadded, 0, None, &device));
    for &length in lengths {
        for &padding in paddings {
            let got = bits(sequences(unpadded, length - unpadded, padding, &device));
            let differing = got.iter().zip(&want).filter(|(got, want)| got != want).count();
            let count = want.len();
            assert!(
                differing == 0,
                "{name}, padded to {length} with {padding:?}: {differing} of {count} results differ"
            );
        }
    }
}

/// What an operation never reads may be anything.
const ANYTHING: [Option<f32>; 3] = [None, Some(0.0), Some(f32::NAN)];

/// What is multiplied by a weight of zero has to be finite.
const FINITE: [Option<f32>; 2] = [None, Some(0.0)];

#[test]
fn cumulative_sums() {
    check("cumsum", LENGTHS, &ANYTHING, |x| x.cumsum(1));
    check("cumsum of the last axis", LENGTHS, &ANYTHING, |x| x.swap_dims(1, 2).cumsum(2).swap_dims(1, 2));
}

#[test]
fn cumulative_products() {
    check("cumprod", LENGTHS, &ANYTHING, |x| (x * 0.1 + 1.0).cumprod(1));
}

#[test]
fn cumulative_extremes() {
    check("cummax", LENGTHS, &ANYTHING, |x| x.cummax(1));
    check("cummin", LENGTHS, &ANYTHING, |x| x.cummin(1));
}

/// Keys of padding have a weight of zero.
#[test]
fn attention_with_padded_keys_masked() {
    let Lengths(unpadded, _) = SHORTER;
    check("attention", SHORTER, &FINITE, |x| {
        let length = x.dims()[1];
        let heads = x.reshape([SAMPLES, length, 2, 8]).swap_dims(1, 2);
        let key = Tensor::<1, Int>::arange(0..length as i64, &heads.device()).reshape([1, 1, 1, length]);
        let mask = key.greater_equal_elem(unpadded as i32).expand([SAMPLES, 2, unpadded, length]);
        let query = heads.clone().slice_dim(2, 0..unpadded);
        let context = attention(query, heads.clone(), heads, Some(mask), None, Default::default());
        context.swap_dims(1, 2).reshape([SAMPLES, unpadded, WIDTH])
    });
}

#[test]
fn causal_attention() {
    let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
    check("causal attention", SHORTER, &FINITE, |x| {
        let length = x.dims()[1];
        let heads = x.reshape([SAMPLES, length, 2, 8]).swap_dims(1, 2);
        let context = attention(heads.clone(), heads.clone(), heads, None, None, causal);
        context.swap_dims(1, 2).reshape([SAMPLES, length, WIDTH])
    });
}

#[test]
fn softmax_with_padding_masked() {
    check("softmax", LENGTHS, &[Some(f32::NEG_INFINITY)], |x| softmax(x, 1));
}

#[test]
fn recurrent_layers() {
    let device = deterministic_device();
    burn_deterministic::set_random_seed(812);
    let lstm = LstmConfig::new(WIDTH, 8, true).init(&device);
    let gru = GruConfig::new(WIDTH, 8, true).init(&device);
    check("LSTM", SHORTEST, &ANYTHING, |x| lstm.forward(x, None).0);
    check("GRU", SHORTEST, &ANYTHING, |x| gru.forward(x, None));
}

/// Any token may follow.
#[test]
fn a_model_with_tied_weights() {
    burn_deterministic::set_random_seed(812);
    let model = gru::Continuation::new(&deterministic_device());
    check("GRU with tied weights", SHORTEST, &FINITE, |x| {
        let tokens = (x.slice_dim(2, 0..1).squeeze_dim::<2>(2).abs() * 1000.0).int();
        model.forward(tokens.remainder_scalar(gru::VOCABULARY as i32))
    });
}

#[test]
fn causal_convolutions() {
    check("conv1d", LENGTHS, &ANYTHING, |x| {
        let length = x.dims()[1];
        let weight = weights([6, WIDTH, 3], &x.device());
        let result = conv1d(x.swap_dims(1, 2), weight, None, ConvOptions::new([1], [2], [1], 1));
        result.slice_dim(2, 0..length).swap_dims(1, 2)
    });
}

#[test]
fn layers_of_each_element() {
    let weight = |shape: [usize; 2]| weights(shape, &deterministic_device());
    check("linear", LENGTHS, &ANYTHING, |x| linear(x, weight([WIDTH, 20]), None));
    check("layer_norm", LENGTHS, &ANYTHING, |x| layer_norm(x, weight([1, WIDTH]).reshape([WIDTH]), None, 1e-5));
    check("sum_dim", LENGTHS, &ANYTHING, |x| x.sum_dim(2));
}
