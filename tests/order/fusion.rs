//! Operations that share a kernel have the bits of a kernel each.

use crate::bits::{assert_same, floats, indices};
use crate::skip::skip;
use burn::prelude::*;
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{BoolDType, DType, FloatDType, IntDType, read_sync};
use burn_cubecl::CubeBackend;
use burn_deterministic::Deterministic;
use proptest::prelude::*;
use proptest::sample;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

type B = Deterministic<CubeBackend>;

/// Values at which operations differ from what algebra says.
fn edges() -> Vec<f32> {
    let large = [f32::MAX, 3.0e9, 2_147_483_520.0, 16_777_217.0, 8_388_609.5, 1e10, 90.0, 30.5, 2.5, 1.5, 1.0];
    let small = [0.7, 0.5, 0.333_333_34, 1e-3, 1.2e-38, 0.0];
    let positive = large.into_iter().chain(small);
    positive.flat_map(|x| [x, -x]).chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).collect()
}

/// Each of `values` with each, in two lists.
fn pairs<T: Copy>(values: &[T]) -> [Vec<T>; 2] {
    let first = values.iter().flat_map(|&x| core::iter::repeat_n(x, values.len())).collect();
    [first, values.repeat(values.len())]
}

fn whole_edges() -> Vec<i32> {
    vec![0, 1, -1, 2, 3, -7, 100, 65_536, 16_777_217, -16_777_219, i32::MAX, i32::MAX - 1, i32::MIN, i32::MIN + 1]
}

fn same<K: burn::tensor::kind::Basic>(what: &str, fused: Tensor<1, K>, alone: TensorData) {
    let fused = fused.into_data();
    // A NaN of arithmetic is the driver's in its sign and payload.
    let (fused, alone) = match alone.dtype() {
        DType::F32 => (one_nan(&fused), one_nan(&alone)),
        _ => (fused, alone),
    };
    assert_same(what, &alone, &fused);
}

fn one_nan(data: &TensorData) -> TensorData {
    let values = data.clone().try_to_vec::<f32>().expect("f32");
    let values = values.into_iter().map(|x| if x.is_nan() { f32::NAN } else { x }).collect::<Vec<_>>();
    TensorData::new(values, data.shape().clone())
}

#[test]
fn float_operations_beside_others_have_the_bits_of_their_own_kernels() {
    let device = crate::deterministic_device();
    let [x, y] = pairs(&edges());
    let data = |values: &[f32]| TensorData::new(values.to_vec(), [values.len()]);
    let (a, b) = (Tensor::<1>::from_data(data(&x), &device), Tensor::<1>::from_data(data(&y), &device));
    let below = |values: &[f32]| B::float_from_data(data(values), &crate::cube_device());
    let (p, q) = (below(&x), below(&y));
    let read = |tensor: FloatTensor<B>| read_sync(B::float_into_data(tensor)).expect("computed");

    // One run: nothing is read between the operations.
    let fused: Vec<(&str, Tensor<1>, FloatTensor<B>)> = vec![
        ("add", a.clone() + b.clone(), B::float_add(p.clone(), q.clone())),
        ("sub", a.clone() - b.clone(), B::float_sub(p.clone(), q.clone())),
        ("mul", a.clone() * b.clone(), B::float_mul(p.clone(), q.clone())),
        ("div", a.clone() / b.clone(), B::float_div(p.clone(), q.clone())),
        ("remainder", a.clone().remainder(b.clone()), B::float_remainder(p.clone(), q.clone())),
        ("remainder_scalar", a.clone().remainder_scalar(-0.7), B::float_remainder_scalar(p.clone(), (-0.7).into())),
        ("mul_scalar", a.clone() * 1.1, B::float_mul_scalar(p.clone(), 1.1.into())),
        ("powf_scalar 0", a.clone().powf_scalar(0), B::float_powf_scalar(p.clone(), 0.into())),
        ("powf_scalar 1", a.clone().powf_scalar(1.0), B::float_powf_scalar(p.clone(), 1.0.into())),
        ("powf_scalar 2", a.clone().powf_scalar(2.0), B::float_powf_scalar(p.clone(), 2.0.into())),
        ("powf_scalar 2 in f32", a.clone().powf_scalar(2.0 + 1e-12), {
            B::float_powf_scalar(p.clone(), (2.0 + 1e-12).into())
        }),
        ("powf_scalar -1", a.clone().powf_scalar(-1), B::float_powf_scalar(p.clone(), (-1).into())),
        ("powf_scalar -2", a.clone().powf_scalar(-2.0), B::float_powf_scalar(p.clone(), (-2.0).into())),
        ("powf_scalar 3", a.clone().powf_scalar(3.0), B::float_powf_scalar(p.clone(), 3.0.into())),
        ("powf_scalar -0.5", a.clone().powf_scalar(-0.5), B::float_powf_scalar(p.clone(), (-0.5).into())),
        ("powi_scalar -2", a.clone().powi_scalar(-2), B::float_powi_scalar(p.clone(), (-2).into())),
        ("abs", a.clone().abs(), B::float_abs(p.clone())),
        ("neg", -a.clone(), B::float_neg(p.clone())),
        ("recip", a.clone().recip(), B::float_recip(p.clone())),
        ("exp", a.clone().exp(), B::float_exp(p.clone())),
        ("log", a.clone().log(), B::float_log(p.clone())),
        ("sqrt", a.clone().sqrt(), B::float_sqrt(p.clone())),
        ("tanh", a.clone().tanh(), B::float_tanh(p.clone())),
        ("sin", a.clone().sin(), B::float_sin(p.clone())),
        ("cos", a.clone().cos(), B::float_cos(p.clone())),
        ("erf", a.clone().erf(), B::float_erf(p.clone())),
        ("floor", a.clone().floor(), B::float_floor(p.clone())),
        ("ceil", a.clone().ceil(), B::float_ceil(p.clone())),
        ("round", a.clone().round(), B::float_round(p.clone())),
        ("trunc", a.clone().trunc(), B::float_trunc(p.clone())),
    ];
    for (what, fused, alone) in fused {
        same(what, fused, read(alone));
    }

    let store: BoolDType = a.clone().equal(b.clone()).dtype().into();
    let read = |tensor: BoolTensor<B>| read_sync(B::bool_into_data(tensor)).expect("computed");
    let fused: Vec<(&str, Tensor<1, Bool>, BoolTensor<B>)> = vec![
        ("equal", a.clone().equal(b.clone()), B::float_equal(p.clone(), q.clone(), store)),
        ("greater", a.clone().greater(b.clone()), B::float_greater(p.clone(), q.clone(), store)),
        ("greater_equal", a.clone().greater_equal(b.clone()), B::float_greater_equal(p.clone(), q.clone(), store)),
        ("lower", a.clone().lower(b.clone()), B::float_lower(p.clone(), q.clone(), store)),
        ("lower_equal_elem", a.clone().lower_equal_elem(0.5), B::float_lower_equal_elem(p.clone(), 0.5.into(), store)),
    ];
    for (what, fused, alone) in fused {
        same(what, fused, read(alone));
    }

    let whole = a.clone().int();
    let read = |tensor: IntTensor<B>| read_sync(B::int_into_data(tensor)).expect("computed");
    same("into_int", whole, read(B::float_into_int(p, IntDType::I32)));
}

#[test]
fn half_operations_beside_others_have_the_bits_of_their_own_kernels() {
    let device = crate::deterministic_device();
    let [x, y] = pairs(&edges());
    let data = |values: &[f32]| TensorData::new(values.to_vec(), [values.len()]);
    for (dtype, half) in [(DType::F16, FloatDType::F16), (DType::BF16, FloatDType::BF16)] {
        if !device.supports_dtype(dtype) {
            skip(format_args!("the device has no {dtype:?}"));
            continue;
        }
        let [a, b] = [&x, &y].map(|values| Tensor::<1>::from_data(data(values), &device).cast(half));
        let below = |values: &[f32]| B::float_cast(B::float_from_data(data(values), &crate::cube_device()), half);
        let (p, q) = (below(&x), below(&y));
        // One run: nothing is read between the operations.
        let sum = a.clone() * b.clone() + a.clone();
        let alone = B::float_add(B::float_mul(p.clone(), q.clone()), p.clone());
        let scaled = sum.clone() * 0.1 - b.clone().recip();
        let scaled_alone = B::float_sub(B::float_mul_scalar(alone.clone(), 0.1.into()), B::float_recip(q.clone()));
        let store: BoolDType = a.clone().equal(b.clone()).dtype().into();
        let chosen = scaled.clone().mask_where(sum.clone().greater(b.clone()), a.clone().remainder(b.clone()));
        let mask = B::float_greater(alone.clone(), q.clone(), store);
        let chosen_alone = B::float_mask_where(scaled_alone.clone(), mask, B::float_remainder(p.clone(), q.clone()));
        let read = |tensor: FloatTensor<B>| read_sync(B::float_into_data(tensor)).expect("computed");
        let whole = a.clone().int();
        let exponential = a.clone().clamp(-3.0, 3.0).exp();
        let exponential_alone = B::float_exp(B::float_clamp(p.clone(), (-3).into(), 3.into()));
        let root = a.clone().abs().sqrt().cast(FloatDType::F32);
        let root_alone = B::float_cast(B::float_sqrt(B::float_abs(p.clone())), FloatDType::F32);
        for (what, fused, alone) in [
            ("a sum of a product", sum, alone),
            ("a difference", scaled, scaled_alone),
            ("a choice", chosen, chosen_alone),
            ("an exponential", exponential, exponential_alone),
            ("a root, widened", root, root_alone),
        ] {
            let fused = fused.into_data();
            let alone = read(alone);
            assert_eq!(fused.dtype(), alone.dtype(), "{what}");
            assert_same(what, &one_nan(&alone.convert::<f32>()), &one_nan(&fused.convert::<f32>()));
        }
        same("into_int", whole, read_sync(B::int_into_data(B::float_into_int(p, IntDType::I32))).expect("computed"));
    }
}

#[test]
fn int_operations_beside_others_have_the_bits_of_their_own_kernels() {
    let device = crate::deterministic_device();
    let [x, y] = pairs(&whole_edges());
    let data = |values: &[i32]| TensorData::new(values.to_vec(), [values.len()]);
    let upload = |values: &[i32]| Tensor::<1, Int>::from_data(data(values), &device);
    let (a, b) = (upload(&x), upload(&y));
    let below = |values: &[i32]| B::int_from_data(data(values), &crate::cube_device());
    let (p, q) = (below(&x), below(&y));
    let read = |tensor: IntTensor<B>| read_sync(B::int_into_data(tensor)).expect("computed");

    let fused: Vec<(&str, Tensor<1, Int>, IntTensor<B>)> = vec![
        ("add", a.clone() + b.clone(), B::int_add(p.clone(), q.clone())),
        ("sub", a.clone() - b.clone(), B::int_sub(p.clone(), q.clone())),
        ("mul", a.clone() * b.clone(), B::int_mul(p.clone(), q.clone())),
        ("add_scalar", a.clone() + i32::MAX, B::int_add_scalar(p.clone(), i32::MAX.into())),
        ("sub_scalar", a.clone() - i32::MIN, B::int_sub_scalar(p.clone(), i32::MIN.into())),
        ("mul_scalar", a.clone() * -3, B::int_mul_scalar(p.clone(), (-3).into())),
        ("neg", -a.clone(), B::int_neg(p.clone())),
        ("div", a.clone() / b.clone(), B::int_div(p.clone(), q.clone())),
        ("div_scalar", a.clone() / 0, B::int_div_scalar(p.clone(), 0.into())),
        ("remainder", a.clone().remainder(b.clone()), B::int_remainder(p.clone(), q.clone())),
        ("powi", a.clone().powi(b.clone()), B::int_powi(p.clone(), q.clone())),
        ("powi_scalar", a.clone().powi_scalar(3), B::int_powi_scalar(p.clone(), 3.into())),
        ("left_shift", a.clone().bitwise_left_shift(b.clone()), B::bitwise_left_shift(p.clone(), q.clone())),
        ("right_shift", a.clone().bitwise_right_shift(b.clone()), B::bitwise_right_shift(p.clone(), q.clone())),
        ("right_shift_scalar", a.clone().bitwise_right_shift_scalar(40), {
            B::bitwise_right_shift_scalar(p.clone(), 40.into())
        }),
        ("and", a.clone().bitwise_and(b.clone()), B::bitwise_and(p.clone(), q.clone())),
        ("or", a.clone().bitwise_or(b.clone()), B::bitwise_or(p.clone(), q.clone())),
        ("xor", a.clone().bitwise_xor(b.clone()), B::bitwise_xor(p.clone(), q.clone())),
        ("and_scalar", a.clone().bitwise_and_scalar(-2), B::bitwise_and_scalar(p.clone(), (-2).into())),
        ("or_scalar", a.clone().bitwise_or_scalar(7), B::bitwise_or_scalar(p.clone(), 7.into())),
        ("xor_scalar", a.clone().bitwise_xor_scalar(-1), B::bitwise_xor_scalar(p.clone(), (-1).into())),
        ("not", a.clone().bitwise_not(), B::bitwise_not(p.clone())),
    ];
    for (what, fused, alone) in fused {
        same(what, fused, read(alone));
    }

    let store: BoolDType = a.clone().equal(b.clone()).dtype().into();
    let read = |tensor: BoolTensor<B>| read_sync(B::bool_into_data(tensor)).expect("computed");
    let (equal, less) = (a.clone().equal(b.clone()), a.clone().lower(b.clone()));
    let (r, s) = (B::int_equal(p.clone(), q.clone(), store), B::int_lower(p.clone(), q.clone(), store));
    let fused: Vec<(&str, Tensor<1, Bool>, BoolTensor<B>)> = vec![
        ("equal", equal.clone(), r.clone()),
        ("lower", less.clone(), s.clone()),
        ("lower_equal", a.clone().lower_equal(b.clone()), B::int_lower_equal(p.clone(), q.clone(), store)),
        // A sum that wraps, compared: compilers that take overflow for impossible would compare something else.
        (
            "greater of a sum",
            (a.clone() + b.clone()).greater(a.clone()),
            B::int_greater(B::int_add(p.clone(), q.clone()), p.clone(), store),
        ),
        (
            "greater_elem of a product",
            (a.clone() * 3 + 7).greater_elem(50),
            B::int_greater_elem(B::int_add_scalar(B::int_mul_scalar(p.clone(), 3.into()), 7.into()), 50.into(), store),
        ),
        ("greater_equal", a.clone().greater_equal(b.clone()), B::int_greater_equal(p.clone(), q.clone(), store)),
        ("equal_elem", a.clone().equal_elem(100), B::int_equal_elem(p.clone(), 100.into(), store)),
        ("and", equal.clone().bool_and(less.clone()), B::bool_and(r.clone(), s.clone())),
        ("or", equal.clone().bool_or(less.clone()), B::bool_or(r.clone(), s.clone())),
        ("xor", equal.clone().bool_xor(less.clone()), B::bool_xor(r.clone(), s.clone())),
        ("not", equal.clone().bool_not(), B::bool_not(r.clone())),
    ];
    for (what, fused, alone) in fused {
        same(what, fused, read(alone));
    }

    let read = |tensor: IntTensor<B>| read_sync(B::int_into_data(tensor)).expect("computed");
    let (masked, filled) = (a.clone().mask_where(less.clone(), b.clone()), a.clone().mask_fill(less.clone(), -5));
    same("mask_where", masked, read(B::int_mask_where(p.clone(), s.clone(), q)));
    same("mask_fill", filled, read(B::int_mask_fill(p.clone(), s.clone(), (-5).into())));
    same("bool into int", less.clone().int(), read(B::bool_into_int(s.clone(), IntDType::I32)));
    let read = |tensor: FloatTensor<B>| read_sync(B::float_into_data(tensor)).expect("computed");
    let (float, indicator) = (a.float(), less.float());
    same("into_float", float, read(B::int_into_float(p, FloatDType::F32)));
    same("bool into float", indicator, read(B::bool_into_float(s, FloatDType::F32)));
}

const OPERATIONS: usize = 30;
const PROGRAMS: u32 = if cfg!(feature = "heavy") { 300 } else { 10 };

/// One step: an operation on the `left`-th and `right`-th tensor of its kind, counted round and round.
#[derive(Clone, Debug)]
struct Step {
    operation: usize,
    left: usize,
    right: usize,
}

/// Runs a program of element-wise operations and reductions, and reads everything it made: at the end, or each result at once,
/// so that nothing shares a kernel.
fn outputs([rows, columns]: [usize; 2], program: &[Step], at_once: bool, device: &Device) -> Vec<TensorData> {
    let float = |shape| Tensor::<2>::from_data(floats(shape), device);
    let int = |shape| Tensor::<2, Int>::from_data(indices(shape, 1000), device) - 500;
    let mut floats = vec![float([rows, columns]), float([1, columns]), float([rows, 1])];
    let mut ints = vec![int([rows, columns]), int([1, columns]), int([rows, 1])];
    let mut bools = vec![floats[0].clone().greater_elem(0.3), floats[2].clone().lower_elem(-0.1)];
    for &Step { operation, left, right } in program {
        let (x, y) = (floats[left % floats.len()].clone(), floats[right % floats.len()].clone());
        let (i, j) = (ints[left % ints.len()].clone(), ints[right % ints.len()].clone());
        let (p, q) = (bools[left % bools.len()].clone(), bools[right % bools.len()].clone());
        let full = |tensor: Tensor<2>| tensor.expand([rows, columns]);
        match operation {
            0 => floats.push(x + y),
            1 => floats.push(x * y),
            2 => floats.push(x.clone() * y.clone() + x),
            3 => floats.push((x - y).tanh()),
            4 => floats.push(x / (y.abs() + 0.5)),
            5 => floats.push(x.abs().sqrt().erf()),
            6 => floats.push((x * 3.7).floor() - y.cos()),
            7 => floats.push(x.mask_where(p.expand([rows, columns]), y)),
            8 => floats.push(full(x).mask_fill(p, 0.25)),
            9 => floats.push(i.float() * 0.01),
            10 => floats.push(p.float() + x),
            11 => ints.push((x.clamp(-1e6, 1e6) * 100.0).int()),
            12 => ints.push(i * j),
            13 => ints.push(i * 77_777 + j),
            14 => ints.push(i.bitwise_xor(j)),
            15 => ints.push(-i.bitwise_and_scalar(255)),
            16 => ints.push(p.int() - i),
            17 => ints.push(i.expand([rows, columns]).mask_fill(p, 3)),
            18 => bools.push(x.greater(y)),
            19 => bools.push(x.lower_equal(y).bool_not()),
            20 => bools.push(i.lower(j)),
            21 => bools.push((i + i32::MAX).greater_elem(7)),
            22 => bools.push(p.bool_xor(q)),
            23 => bools.push(p.bool_and(q)),
            24 => floats.push(full(x * y).sum_dim(1)),
            25 => floats.push((full(x) * 1.1).mean_dim(0)),
            26 => floats.push((full(x).tanh() * y).sum().reshape([1, 1])),
            27 => floats.push((full(x) * 0.9 + y).mean().reshape([1, 1])),
            28 => floats.push((full(x) * 0.01 + 1.0).prod_dim(1)),
            _ => floats.push(full(x).sub(y).square().sum_dim(1)),
        }
        if at_once {
            let newest = match operation {
                11..=17 => ints.last().map(Tensor::to_data),
                18..=23 => bools.last().map(Tensor::to_data),
                _ => floats.last().map(Tensor::to_data),
            };
            newest.expect("just made");
        }
    }
    let all = floats.into_iter().map(Tensor::into_data);
    all.chain(ints.into_iter().map(Tensor::into_data)).chain(bools.into_iter().map(Tensor::into_data)).collect()
}

#[test]
fn programs_have_the_same_bits_however_they_are_cut() {
    let device = crate::deterministic_device();
    let config = Config { cases: PROGRAMS, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let step = (0..OPERATIONS, any::<u16>(), any::<u16>()).prop_map(|(operation, left, right)| Step {
        operation,
        left: left.into(),
        right: right.into(),
    });
    let shape = sample::select(vec![[6, 8], [5, 7], [3, 68], [70, 130], [1, 4100]]);
    let programs = (shape, prop::collection::vec(step, 4..=40));
    let agreed = runner.run(&programs, |(shape, program)| {
        let together = outputs(shape, &program, false, &device);
        let alone = outputs(shape, &program, true, &device);
        for (index, (together, alone)) in together.iter().zip(&alone).enumerate() {
            assert_same(&format!("tensor {index}"), alone, together);
        }
        Ok(())
    });
    if let Err(failure) = agreed {
        panic!("{failure}");
    }
}

/// What runs without an interpreter keeps what lives on, and reads twice what it is given twice.
#[test]
fn operands_that_are_given_twice_or_live_on() {
    let device = crate::deterministic_device();
    let data = floats([5, 5]);
    let x = Tensor::<2>::from_data(data.clone(), &device);
    let y = x.clone() * 1.5;
    let product = y.clone().matmul(y);
    let below = B::float_mul_scalar(B::float_from_data(data.clone(), &crate::cube_device()), 1.5.into());
    let alone = read_sync(B::float_into_data(B::float_matmul(below.clone(), below))).expect("computed");
    assert_same("a product of one tensor", &alone, &product.into_data());

    let values: Vec<f32> = data.iter().collect();
    let mut want = values.clone();
    for row in 0..2 {
        want[row * 5 + 1..row * 5 + 4].copy_from_slice(&values[(row + 3) * 5..(row + 3) * 5 + 3]);
    }
    let assigned = x.clone().slice_assign([0..2, 1..4], x.clone().slice([3..5, 0..3]));
    assert_same("a slice assigned", &TensorData::new(want, [5, 5]), &assigned.into_data());
    assert_same("the tensor that lives on", &data, &x.into_data());
}
