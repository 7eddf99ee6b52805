//! Attention: the bits of the order contract in plain Rust, with gradients and without, whatever the layout, and the
//! exact result but for roundings.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device;
use crate::operations::doubles;
use burn::prelude::*;
use burn::tensor::FloatDType;
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn_deterministic::device_arithmetic;
use burn_deterministic_kernels::{matmul, reduce};

/// Extents, which operands there are, and options.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Batches, heads, queries, keys, elements of a query, elements of a value.
    extents: [usize; 6],
    mask: bool,
    bias: bool,
    options: AttentionModuleOptions,
}

/// The operands of a case on one device.
#[derive(Clone)]
struct Operands {
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
}

impl Case {
    fn operands(&self, device: &Device) -> Operands {
        let [batch, heads, queries, keys, width, columns] = self.extents;
        let load = |number: usize, [rows, columns]: [usize; 2]| {
            let all = Tensor::<5>::from_data(floats([4, batch, heads, rows, columns]), device);
            all.slice_dim(0, number..number + 1).reshape([batch, heads, rows, columns])
        };
        let hidden = Tensor::<4, Int>::from_data(indices([batch, heads, queries, keys], 3), device);
        Operands {
            query: load(0, [queries, width]),
            key: load(1, [keys, width]),
            value: load(2, [keys, columns]),
            mask: self.mask.then(|| hidden.equal_elem(1)),
            bias: self.bias.then(|| load(3, [queries, keys])),
        }
    }
}

impl Operands {
    fn run(self, options: AttentionModuleOptions) -> Tensor<4> {
        attention(self.query, self.key, self.value, self.mask, self.bias, options)
    }

    /// The order contract of `attention` in plain Rust, but for what each device computes in its own way: exponentials,
    /// hyperbolic tangents and divisions.
    fn reference(self, options: AttentionModuleOptions) -> Vec<f32> {
        let ([.., rows, width], [.., keys, columns]) = (self.query.dims(), self.value.dims());
        let arithmetic = device_arithmetic(&Device::default()).expect("the device computes as the kernels rely on");
        let multiply_add = arithmetic.multiply_add;
        let products = |lhs: &[f32], rhs: &[f32], [m, k, n]: [usize; 3]| -> Vec<f32> {
            let heads = lhs.chunks(m * k).zip(rhs.chunks(k * n));
            heads.flat_map(|(lhs, rhs)| matmul::reference::matmul(lhs, rhs, [m, k, n], multiply_add)).collect()
        };
        let scale = options.scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt()) as f32;
        let transposed = host(self.key.swap_dims(2, 3));
        let mut scores = products(&host(self.query), &transposed, [rows, width, keys]);
        scores.iter_mut().for_each(|score| *score *= scale);
        if let Some(softcap) = options.softcap {
            scores = host((load(scores) / softcap).tanh() * softcap);
        }
        let mask = self.mask.map(|mask| mask.into_data().iter::<bool>().collect::<Vec<_>>());
        let bias = self.bias.map(host);
        for (at, score) in scores.iter_mut().enumerate() {
            let (row, key) = (at / keys % rows, at % keys);
            if mask.as_ref().is_some_and(|mask| mask[at]) || options.is_causal && key + rows > row + keys {
                *score = f32::NEG_INFINITY;
            }
            if let Some(bias) = &bias {
                *score += bias[at];
            }
        }
        for line in scores.chunks_mut(keys) {
            let largest = line.iter().copied().fold(f32::MIN, f32::max);
            line.iter_mut().for_each(|score| *score -= largest);
        }
        let exps = host(load(scores).exp());
        let sums = exps.chunks(keys).flat_map(|line| {
            let sum = reduce::reference::sum(line);
            vec![if sum < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { sum }; keys]
        });
        let sums = load(sums.collect());
        products(&host(load(exps) / sums), &host(self.value), [rows, keys, columns])
    }

    fn map(self, change: impl Fn(Tensor<4>) -> Tensor<4>) -> Self {
        Self { query: change(self.query), key: change(self.key), value: change(self.value), ..self }
    }
}

fn load(values: Vec<f32>) -> Tensor<1> {
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), &deterministic_device())
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Every option, with lines of one block of an order and of several.
fn cases() -> Vec<Case> {
    let scaled = AttentionModuleOptions { scale: Some(0.8), softcap: Some(1.3), is_causal: false };
    let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
    let all = AttentionModuleOptions { is_causal: true, ..scaled };
    let case = |extents, mask, bias, options| Case { extents, mask, bias, options };
    vec![
        case([2, 4, 32, 32, 16, 16], false, false, AttentionModuleOptions::default()),
        case([2, 4, 130, 65, 16, 24], false, false, causal),
        case([1, 2, 5, 70, 7, 9], true, true, scaled),
        case([2, 3, 1, 33, 8, 4], true, false, AttentionModuleOptions::default()),
        case([1, 2, 12, 9, 8, 8], false, true, all),
        case([1, 1, 3, 5, 1030, 4], true, false, causal),
        case([1, 1, 3, 1030, 4, 4], false, true, AttentionModuleOptions::default()),
        case([1, 1, 2, 4100, 4, 3], true, false, causal),
    ]
}

/// Requires the bits of the reference; NaN is the device's own.
fn check(what: &str, operands: Operands, options: AttentionModuleOptions) {
    let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
    let want: Vec<u32> = operands.clone().reference(options).into_iter().map(bits).collect();
    let got: Vec<u32> = host(operands.run(options)).into_iter().map(bits).collect();
    let differing = want.iter().zip(&got).position(|(want, got)| want != got);
    assert!(want.len() == got.len() && differing.is_none(), "{what}: element {differing:?} of {}", want.len());
}

#[test]
fn equals_the_reference() {
    for case in cases() {
        check(&format!("{case:?}"), case.operands(&deterministic_device()), case.options);
    }
}

#[test]
fn equals_the_reference_where_numbers_are_not_finite() {
    let device = deterministic_device();
    let case = Case { extents: [1, 1, 9, 11, 4, 8], mask: true, bias: true, options: cases()[1].options };
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40, f32::MAX, f32::MIN] {
        // Two elements of different rows.
        let with_special = |tensor: Tensor<4>| {
            let (shape, mut values) = (tensor.dims(), host(tensor));
            let last = values.len() - 1;
            (values[2], values[last]) = (special, special);
            Tensor::from_data(TensorData::new(values, shape), &device)
        };
        let operands = case.operands(&device);
        let query = Operands { query: with_special(operands.query.clone()), ..operands.clone() };
        check(&format!("{special} in Q"), query, case.options);
        let key = Operands { key: with_special(operands.key.clone()), ..operands.clone() };
        check(&format!("{special} in K"), key, case.options);
        let value = Operands { value: with_special(operands.value.clone()), ..operands.clone() };
        check(&format!("{special} in V"), value, case.options);
        let bias = Operands { bias: operands.bias.clone().map(with_special), ..operands };
        check(&format!("{special} in the bias"), bias, case.options);
    }
}

/// Another order of the keys has other bits: what the contract prevents.
#[test]
fn order_is_visible_in_the_bits() {
    let case = Case { extents: [1, 1, 8, 300, 8, 8], ..cases()[0] };
    let operands = case.operands(&deterministic_device());
    let reversed =
        Operands { key: operands.key.clone().flip([2]), value: operands.value.clone().flip([2]), ..operands.clone() };
    let [a, b] = [operands, reversed].map(|operands| host(operands.run(case.options)));
    let differing = a.iter().zip(&b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert!(differing > 32, "{differing} of 64 differ");
}

#[test]
fn gradients_change_no_result() {
    let device = deterministic_device().autodiff();
    for case in cases() {
        let without = case.operands(&deterministic_device()).run(case.options).into_data();
        let tracked = case.operands(&device).map(|tensor| tensor.require_grad()).run(case.options);
        assert_same(&format!("{case:?}"), &without, &tracked.into_data());
    }
}

#[test]
fn layout_does_not_reach_a_result() {
    let [batch, heads, rows, columns] = [2, 3, 11, 8];
    for case in cases().into_iter().map(|case| Case { extents: [batch, heads, rows, rows, columns, columns], ..case }) {
        let operands = case.operands(&deterministic_device());
        let want = operands.clone().run(case.options).into_data();
        // Heads side by side in a row, as a linear layer makes them; and what lies between others.
        let beside = |tensor: Tensor<4>| {
            let rows = Tensor::<4>::from_data(tensor.swap_dims(1, 2).into_data(), &deterministic_device());
            rows.swap_dims(1, 2)
        };
        let between = |tensor: Tensor<4>| {
            let three = Tensor::cat(vec![tensor.clone(), tensor.clone(), tensor], 3);
            Tensor::<4>::from_data(three.into_data(), &deterministic_device()).slice_dim(3, columns..2 * columns)
        };
        let turned = |tensor: Tensor<4>| {
            Tensor::<4>::from_data(tensor.swap_dims(2, 3).into_data(), &deterministic_device()).swap_dims(2, 3)
        };
        let layouts: [&dyn Fn(Tensor<4>) -> Tensor<4>; 3] = [&beside, &between, &turned];
        for (number, layout) in layouts.into_iter().enumerate() {
            let got = operands.clone().map(layout).run(case.options).into_data();
            assert_same(&format!("{case:?}, layout {number}"), &want, &got);
        }
    }
}

#[test]
fn queries_that_see_no_key_give_zeros() {
    let case = Case { mask: true, ..cases()[0] };
    let operands = case.operands(&deterministic_device());
    let mask = operands.mask.as_ref().map(|mask| mask.ones_like());
    let hidden = Operands { mask, ..operands }.run(case.options);
    assert_eq!(doubles(hidden).into_iter().filter(|x| *x != 0.0).count(), 0);

    // The last query sees all keys; of more queries than keys the first see none, and the next one sees the first key.
    let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
    let operands = Case { extents: [1, 1, 9, 4, 4, 4], ..cases()[0] }.operands(&deterministic_device());
    let first = host(operands.value.clone().slice_dim(2, 0..1));
    let seen = host(operands.run(causal));
    assert_eq!(seen[..5 * 4], [0.0; 5 * 4]);
    assert_eq!(seen[5 * 4..6 * 4], first);
    assert!(seen[6 * 4..].iter().all(|x| *x != 0.0));
}

/// Each weight is right to a few roundings and the exponential's error, and so is the mean that they make.
#[test]
fn results_are_exact_but_for_roundings() {
    for case in cases() {
        let operands = case.operands(&deterministic_device());
        let exact = case.operands(&Device::flex());
        let double = |tensor: Tensor<4>| tensor.cast(FloatDType::F64);
        let bias = exact.bias.clone().map(double);
        let exact = doubles(Operands { bias, ..exact }.map(double).run(case.options));
        let got = doubles(operands.run(case.options));
        assert_eq!(got.len(), exact.len(), "{case:?}");
        for (place, (got, exact)) in got.into_iter().zip(exact).enumerate() {
            // The values are up to two, so that a mean is made of terms of two in all.
            let ulps = (got - exact).abs() / (2.0 * f64::from(f32::EPSILON));
            assert!(ulps < 8.0, "{case:?}, element {place}: {got} for {exact}, {ulps} ULP of its terms");
        }
    }
}
