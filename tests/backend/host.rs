//! What Burn composes, or runs on the host, before its operations reach the stream; and quantized tensors.

use crate::bits::{assert_same, floats};
use burn::prelude::*;
use burn::tensor::Transaction;
use burn::tensor::quantization::QuantScheme;

fn ints(tensor: Tensor<1, Int>) -> Vec<i64> {
    tensor.into_data().iter::<i64>().collect()
}

#[test]
fn a_transaction_reads_what_is_pending() {
    let device = crate::deterministic_device();
    let floating = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
    let integer = Tensor::<1, Int>::from_data([1, 2, 3], &device);
    let data = Transaction::default()
        .register(floating.clone().matmul(floating.clone()))
        .register(integer * 2)
        .register(floating.clone().greater_elem(2.0))
        .register(floating.select(0, Tensor::from_data([1], &device)))
        .execute();
    assert_eq!(data[0].try_to_vec::<f32>().expect("f32"), [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(data[1].iter::<i64>().collect::<Vec<_>>(), [2, 4, 6]);
    assert_eq!(data[2].iter::<bool>().collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(data[3].try_to_vec::<f32>().expect("f32"), [3.0, 4.0]);
}

#[test]
fn positions_are_in_row_major_order() {
    let device = crate::deterministic_device();
    let x = Tensor::<2>::from_data([[3.0, -1.0], [0.0, 2.0]], &device);
    let mask = x.clone().greater_elem(1.0);
    assert_eq!(mask.clone().argwhere().into_data().iter::<i64>().collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(mask.clone().nonzero().into_iter().map(ints).collect::<Vec<_>>(), [[0, 1], [0, 1]]);
    assert_eq!(x.mask_select(mask).into_data().try_to_vec::<f32>().expect("f32"), [3.0, 2.0]);
    let one_hot: Tensor<2, Int> = Tensor::<1, Int>::from_data([2, 0], &device).one_hot(3);
    assert_eq!(one_hot.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 0, 1, 1, 0, 0]);
}

#[test]
fn quantized_tensors_run_on_the_route() {
    let device = crate::deterministic_device();
    let x = || Tensor::<2>::from_data(floats([16, 32]), &device);
    let quantized = || x().quantize_dynamic(&QuantScheme::default());
    let restored = quantized().dequantize();
    let largest = x().abs().max().into_scalar::<f32>();
    let error = (restored.clone() - x()).abs().max().into_scalar::<f32>();
    assert!(error > 0.0 && error <= largest / 127.0, "{error} of {largest}");
    assert_same("again", &restored.clone().into_data(), &quantized().dequantize().into_data());
    let turned = quantized().transpose().dequantize();
    assert_same("transposed", &turned.into_data(), &restored.clone().transpose().into_data());
    let reshaped = quantized().reshape([32, 16]).dequantize();
    assert_same("reshaped", &reshaped.into_data(), &restored.clone().reshape([32, 16]).into_data());
    let product = quantized().matmul(quantized().transpose()).dequantize();
    let again = quantized().matmul(quantized().transpose()).dequantize();
    assert_same("product", &product.into_data(), &again.into_data());
    let flipped = quantized().flip([0]).dequantize();
    assert_same("flipped", &flipped.clone().into_data(), &quantized().flip([0]).dequantize().into_data());
    let error = (flipped.flip([0]) - restored).abs().max().into_scalar::<f32>();
    assert!(error <= largest / 127.0, "{error} of {largest}");
}
