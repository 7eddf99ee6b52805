//! Matrix products, linear layers and attention.

use super::{Case, columns, rows, weights};
use burn::prelude::*;
use burn::tensor::module::{attention, linear};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::quantization::QuantScheme;

/// A layer of so many inputs that plain Burn cuts the sum where the batch is small.
pub fn wide_linear() -> Case {
    Case::new("linear of 5000 inputs", "float_matmul", 5000, |x, _| {
        let device = x.device();
        linear(x, weights([5000, 7], &device), Some(weights([7], &device)))
    })
}

pub fn products(_: &Device) -> Vec<Case> {
    vec![
        wide_linear(),
        Case::new("linear of a sequence", "float_matmul", 5 * 40, |x, _| {
            let device = x.device();
            rows(linear(x.reshape([-1, 5, 40]), weights([40, 33], &device), Some(weights([33], &device))))
        }),
        Case::new("linear with quantized weights", "dequantize float_matmul", 64, |x, _| {
            let weight = weights::<2>([64, 32], &x.device()).quantize_dynamic(&QuantScheme::default()).dequantize();
            linear(x, weight, None)
        }),
        Case::new("matmul, a sample a row", "float_matmul", 300, |x, _| {
            let weight = weights([300, 130], &x.device());
            x.matmul(weight)
        }),
        Case::new("matmul, a sample a column", "float_matmul", 300, |x, _| {
            weights([41, 300], &x.device()).matmul(columns(x)).transpose()
        }),
        Case::new("matmul of each sample", "float_matmul", 7 * 33 + 33 * 9, |x, _| {
            let left = x.clone().slice_dim(1, 0..7 * 33).reshape([-1, 7, 33]);
            rows(left.matmul(x.slice_dim(1, 7 * 33..7 * 33 + 33 * 9).reshape([-1, 33, 9])))
        }),
        Case::new("matmul of each sample and one matrix", "float_matmul", 35 * 70, |x, _| {
            let weight = weights([1, 70, 65], &x.device());
            rows(x.reshape([-1, 35, 70]).matmul(weight))
        }),
        Case::new("matmul of a long row", "float_matmul", 2 * 3000, |x, _| {
            let [a, b] = [0, 3000].map(|start| x.clone().slice_dim(1, start..start + 3000));
            rows(a.reshape([-1, 1, 3000]).matmul(b.reshape([-1, 3000, 1])))
        }),
    ]
}

/// Heads, queries, keys, elements of a query, elements of a value.
#[derive(Clone, Copy)]
struct Extents([usize; 5]);

impl Extents {
    fn length(self) -> usize {
        let Self([heads, queries, keys, width, columns]) = self;
        heads * (queries * width + keys * (width + columns))
    }

    fn operands(self, x: Tensor<2>) -> [Tensor<4>; 3] {
        let Self([heads, queries, keys, width, columns]) = self;
        let mut start = 0;
        [[queries, width], [keys, width], [keys, columns]].map(|[count, width]| {
            let part = x.clone().slice_dim(1, start..start + heads * count * width);
            start += heads * count * width;
            part.reshape([-1, heads as i32, count as i32, width as i32])
        })
    }
}

pub fn attentions(_: &Device) -> Vec<Case> {
    let small = Extents([2, 7, 7, 8, 5]);
    let large = Extents([2, 33, 130, 16, 24]);
    let case = |name: &str, extents: Extents, options: AttentionModuleOptions| {
        Case::new(format!("attention, {name}"), "attention", extents.length(), move |x, _| {
            let [query, key, value] = extents.operands(x);
            rows(attention(query, key, value, None, None, options))
        })
    };
    let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
    let capped = AttentionModuleOptions { softcap: Some(1.3), scale: Some(0.8), ..Default::default() };
    vec![
        case("small", small, AttentionModuleOptions::default()),
        case("large", large, AttentionModuleOptions::default()),
        case("causal", Extents([2, 33, 33, 16, 16]), causal),
        case("capped", small, capped),
        case("one query", Extents([4, 1, 70, 16, 16]), AttentionModuleOptions::default()),
        // Inner products of more than one block.
        case("wide", Extents([1, 3, 5, 1030, 4]), causal),
        Case::new("attention, each sample with its own number of keys", "attention", small.length(), move |x, at| {
            let (device, samples) = (x.device(), x.dims()[0]);
            let keys = Tensor::<1, Int>::arange(0..7, &device).reshape([1, 1, 1, 7]).expand([samples, 2, 7, 7]);
            let count = at.slice_dim(1, 0..1).reshape([-1, 1, 1, 1]).expand([samples, 2, 7, 7]);
            let [query, key, value] = small.operands(x);
            rows(attention(query, key, value, Some(keys.greater(count)), None, Default::default()))
        }),
        Case::new("attention with a bias", "attention", small.length(), move |x, _| {
            let samples = x.dims()[0];
            let bias = weights([1, 2, 7, 7], &x.device()).expand([samples, 2, 7, 7]);
            let [query, key, value] = small.operands(x);
            rows(attention(query, key, value, None, Some(bias), Default::default()))
        }),
    ]
}
