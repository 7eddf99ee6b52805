//! Attention: the bits of its steps one by one, with gradients and without, whatever the layout, and the exact result
//! but for roundings.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device;
use crate::operations::doubles;
use burn::prelude::*;
use burn::tensor::FloatDType;
use burn::tensor::module::{attention, attention_fallback};
use burn::tensor::ops::AttentionModuleOptions;

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

    fn run_in_steps(self, options: AttentionModuleOptions) -> Tensor<4> {
        attention_fallback(self.query, self.key, self.value, self.mask, self.bias, options)
    }

    fn map(self, change: impl Fn(Tensor<4>) -> Tensor<4>) -> Self {
        Self { query: change(self.query), key: change(self.key), value: change(self.value), ..self }
    }
}

/// Every option, at extents of every plan and of none.
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
        // Too wide for the kernel.
        case([1, 1, 3, 5, 1030, 4], true, false, causal),
    ]
}

#[test]
fn one_kernel_has_the_bits_of_its_steps() {
    for case in cases() {
        let operands = case.operands(&deterministic_device());
        let steps = operands.clone().run_in_steps(case.options).into_data();
        assert_same(&format!("{case:?}"), &steps, &operands.run(case.options).into_data());
    }
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
