//! Reductions against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::order::COLUMNS_BLOCK as BLOCK;
use burn_deterministic_kernels::reduce::extreme::{self, Extreme};
use burn_deterministic_kernels::reduce::plan::{Cube, Kind, Pass, Plan, Problem, View, plan};
use burn_deterministic_kernels::reduce::{self, Operation, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::Client;
use cubecl::std::tensor::TensorHandle;
use std::fmt::Debug;

const F16: ElemType = ElemType::Float(FloatKind::F16);
const F64: ElemType = ElemType::Float(FloatKind::F64);
const I64: ElemType = ElemType::Int(IntKind::I64);
const U8: ElemType = ElemType::UInt(UIntKind::U8);
const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Around every size at which the order changes shape.
const LENGTHS: [usize; 20] =
    [1, 2, 3, 63, 64, 65, 97, 127, 128, 129, 1000, 4032, 4095, 4096, 4097, 4160, 4161, 10_007, 65_537, 300_000];

/// The values of each output of `values` in the shape `shape`, in the order of the contract.
fn outputs_of<T: Copy>(values: &[T], shape: &[usize], axes: &[usize]) -> Vec<Vec<T>> {
    let outputs = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).product::<usize>();
    let mut found = vec![Vec::new(); outputs];
    for (place, &value) in values.iter().enumerate() {
        let (mut rest, mut output, mut scale) = (place, 0, 1);
        for axis in (0..shape.len()).rev() {
            let index = rest % shape[axis];
            rest /= shape[axis];
            if !axes.contains(&axis) {
                output += index * scale;
                scale *= shape[axis];
            }
        }
        found[output].push(value);
    }
    found
}

/// Every plan for the reduction of a dense tensor of `shape` over `axes`, those of both machines among them.
#[track_caller]
fn plans(shape: &[usize], axes: &[usize], kind: Kind) -> Vec<Plan> {
    let strides: Vec<usize> = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
    let problem = Problem::new(shape, &strides, axes, kind);
    let plans = Plan::candidates(&problem);
    for machine in [Machine::Gpu, Machine::Software] {
        assert!(plans.contains(&plan(&problem, machine)), "{problem:?} on {machine:?}");
    }
    plans
}

/// Those of the plans for a fold that read in fours.
#[track_caller]
fn plans_in_fours(shape: &[usize], axes: &[usize]) -> Vec<Plan> {
    let mut plans = plans(shape, axes, Kind::Fold);
    plans.retain(|plan| !matches!(plan.first, Pass::Single(_)));
    assert!(!plans.is_empty(), "{shape:?} over {axes:?} is not in fours");
    plans
}

/// A tensor with the same elements whose last axis lies outermost, with two foreign elements after each of its own.
fn scattered(client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
    let last = *shape.last().expect("an axis");
    let rows = values.len() / last;
    let mut memory = vec![f32::NAN; values.len() * 3];
    for (place, &value) in values.iter().enumerate() {
        memory[3 * ((place % last) * rows + place / last)] = value;
    }
    let mut strides = vec![3; shape.len()];
    for axis in (0..shape.len() - 1).rev().skip(1) {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    strides[shape.len() - 1] = 3 * rows;
    TensorHandle::new(client.create_from_slice(bytemuck::cast_slice(&memory)), shape.to_vec(), strides, F32)
}

/// `values` with zeros of both signs, and with a NaN in one element of seven where `with_nan`.
fn with_specials(mut values: Vec<f32>, with_nan: bool) -> Vec<f32> {
    for (i, value) in values.iter_mut().enumerate() {
        match i % 7 {
            1 => *value = -0.0,
            2 => *value = 0.0,
            3 if with_nan && i % 5 == 0 => *value = f32::from_bits(0xffc1_2345),
            _ => {}
        }
    }
    values
}

#[track_caller]
fn assert_equal<T: PartialEq + Debug>(got: &[T], want: &[T]) {
    assert_eq!(got.len(), want.len(), "length");
    if let Some(i) = (0..got.len()).find(|&i| got[i] != want[i]) {
        panic!("element {i} of {}: got {:?}, want {:?}", got.len(), got[i], want[i]);
    }
}

#[test]
fn sums_match_the_reference_under_every_plan() {
    let client = client();
    for n in LENGTHS {
        let values = random_values(n as u64, n);
        let want = [reference::sum(&values)];
        for plan in plans(&[n], &[0], Kind::Fold) {
            let input = upload(&client, &values, &[n], F32);
            let got = reduce::fold_planned(&client, Operation::Sum, input, &[0], plan).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}

#[test]
fn products_and_means_match_the_reference_under_every_plan() {
    let client = client();
    type Reference = fn(&[f32]) -> f32;
    let operations: [(Operation, Reference); 2] =
        [(Operation::Prod, reference::prod), (Operation::Mean, reference::mean)];
    for (shape, axis) in [([130, 3], 0), ([3, 4101], 1), ([4101, 2], 0), ([3, 4160], 1)] {
        // Close to 1, so that no product leaves f32.
        let values = random_values(13, shape[0] * shape[1]).into_iter().map(|x| 1.0 + x / 64.0).collect::<Vec<_>>();
        for (operation, reference) in operations {
            let want: Vec<f32> = outputs_of(&values, &shape, &[axis]).iter().map(|x| reference(x)).collect();
            for plan in plans(&shape, &[axis], Kind::Fold) {
                let input = upload(&client, &values, &shape, F32);
                let got = reduce::fold_planned(&client, operation, input, &[axis], plan).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

#[test]
fn integers_match_the_reference_under_every_plan() {
    let client = client();
    let values: Vec<i32> = (0..3 * 4160).map(|i: i32| i.wrapping_mul(0x9e37_79b9u32 as i32) >> (i % 31)).collect();
    type Reference = fn(&[i32]) -> i32;
    let operations: [(Operation, Reference); 5] = [
        (Operation::Sum, |row| row.iter().fold(0, |a: i32, &x| a.wrapping_add(x))),
        (Operation::Prod, |row| row.iter().fold(1, |a: i32, &x| a.wrapping_mul(x))),
        (Operation::Max, |row| *row.iter().max().unwrap()),
        (Operation::Any, |row| i32::from(row.iter().any(|&x| x != 0))),
        (Operation::All, |row| i32::from(row.iter().all(|&x| x != 0))),
    ];
    for (operation, reference) in operations {
        let want: Vec<i32> = values.chunks(4160).map(reference).collect();
        let transposed: Vec<i32> = (0..values.len()).map(|i| values[i % 3 * 4160 + i / 3]).collect();
        for (values, shape, axis) in [(&values, [3, 4160], 1), (&transposed, [4160, 3], 0)] {
            for plan in plans(&shape, &[axis], Kind::Fold) {
                let input = upload(&client, values, &shape, I32);
                let got = reduce::fold_planned(&client, operation, input, &[axis], plan).unwrap();
                assert_equal(&download::<i32>(&client, got), &want);
            }
        }
    }
}

#[test]
fn another_order_gives_other_bits() {
    let differs = |n: usize| {
        let values = random_values(n as u64, n);
        let chain = values.iter().fold(0.0, |a, &x| a + x);
        let blocks: f32 = values.chunks(64).map(|c| c.iter().sum::<f32>()).sum();
        let sum = reference::sum(&values);
        sum.to_bits() != chain.to_bits() && sum.to_bits() != blocks.to_bits()
    };
    assert!(differs(4096) && differs(300_000), "the inputs of the other tests do not show a wrong order");
}

#[test]
fn one_element_is_itself() {
    let client = client();
    let input = upload(&client, &[-0.0f32, 1e-40, f32::INFINITY], &[3, 1], F32);
    let got = reduce::sum(&client, input, &[1]).unwrap();
    assert_bits(&download(&client, got), &[-0.0, 1e-40, f32::INFINITY]);
}

#[test]
fn every_set_of_axes_and_layout_matches_the_reference() {
    let client = client();
    for shape in [vec![5, 3], vec![1, 130], vec![67, 4], vec![3, 1, 5], vec![9, 70, 13], vec![4, 3, 7, 9]] {
        let values = random_values(shape.len() as u64, shape.iter().product());
        for set in 0u32..1 << shape.len() {
            let axes: Vec<usize> = (0..shape.len()).filter(|i| set >> i & 1 == 1).collect();
            let want: Vec<f32> = outputs_of(&values, &shape, &axes).iter().map(|x| reference::sum(x)).collect();
            let result: Vec<usize> =
                shape.iter().enumerate().map(|(i, &size)| if axes.contains(&i) { 1 } else { size }).collect();
            for input in [upload(&client, &values, &shape, F32), scattered(&client, &values, &shape)] {
                let got = reduce::sum(&client, input, &axes).unwrap();
                assert_eq!(got.shape().to_vec(), result);
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

#[test]
fn every_plan_gives_the_same_bits_for_many_outputs() {
    let client = client();
    for (shape, axes) in [
        (vec![200, 33], vec![0]),
        (vec![33, 200], vec![1]),
        (vec![7, 5, 31, 29], vec![0, 2, 3]),
        (vec![4100, 3], vec![0]),
    ] {
        let values = random_values(9, shape.iter().product());
        let want: Vec<f32> = outputs_of(&values, &shape, &axes).iter().map(|x| reference::sum(x)).collect();
        for plan in plans(&shape, &axes, Kind::Fold) {
            let input = upload(&client, &values, &shape, F32);
            let got = reduce::fold_planned(&client, Operation::Sum, input, &axes, plan).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}

#[test]
fn broadcast_input_is_read_through_its_strides() {
    let client = client();
    let values = random_values(3, 70);
    let handle = client.create_from_slice(bytemuck::cast_slice(&values));
    let input = TensorHandle::new(handle, vec![100usize, 70], vec![0usize, 1], F32);
    let got = reduce::sum(&client, input.clone(), &[0]).unwrap();
    let want: Vec<f32> = values.iter().map(|&x| reference::sum(&[x; 100])).collect();
    assert_bits(&download(&client, got), &want);
    let got = reduce::sum(&client, input, &[0, 1]).unwrap();
    assert_bits(&download(&client, got), &[reference::sum(&values.repeat(100))]);
}

#[test]
fn more_rows_than_a_grid_axis_has_cubes() {
    let client = client();
    let rows = 65_536 * 9 + 3;
    let values = random_values(4, rows * 2);
    let want: Vec<f32> = values.chunks(2).map(reference::sum).collect();
    let input = upload(&client, &values, &[rows, 2], F32);
    let plan = Plan { first: Pass::Single(Cube::NARROW), fuses: false, totals: None };
    let got = reduce::fold_planned(&client, Operation::Sum, input, &[1], plan).unwrap();
    assert_bits(&download(&client, got), &want);
}

#[test]
fn products_and_means_match_the_reference() {
    let client = client();
    for n in [1, 64, 65, 4097] {
        let values: Vec<f32> = random_values(n as u64, n).iter().map(|x| 1.0 + x / 64.0).collect();
        let got = reduce::prod(&client, upload(&client, &values, &[n], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[reference::prod(&values)]);
        let got = reduce::mean(&client, upload(&client, &values, &[n], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[reference::mean(&values)]);
    }
}

#[test]
fn half_floats_are_summed_in_f32_and_rounded_once() {
    let client = client();
    if !client.properties().supports_type(F16) {
        return skip("the device has no f16");
    }
    for n in [1, 65, 5000] {
        let values: Vec<half::f16> = random_values(n as u64, n).into_iter().map(half::f16::from_f32).collect();
        let wide: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[n], F16), &[0]).unwrap();
        let want = half::f16::from_f32(reference::sum(&wide));
        assert_equal(&download::<u16>(&client, got), &[want.to_bits()]);
        let got = reduce::max(&client, upload(&client, &values, &[n], F16), &[0]).unwrap();
        let want = half::f16::from_f32(reference::max(&wide).unwrap());
        assert_equal(&download::<u16>(&client, got), &[want.to_bits()]);
    }
}

#[test]
fn doubles_are_their_own_accumulator() {
    let client = client();
    if !client.properties().supports_type(F64) {
        return skip("the device has no f64");
    }
    let values: Vec<f64> = random_values(5, 5000).into_iter().map(|x| f64::from(x) * 1.1).collect();
    let got = reduce::sum(&client, upload(&client, &values, &[5000], F64), &[0]).unwrap();
    let want = reference::fold(&values, |a, b| a + b).unwrap();
    assert_equal(&download::<u64>(&client, got), &[want.to_bits()]);
    let got = reduce::min(&client, upload(&client, &values, &[5000], F64), &[0]).unwrap();
    let want = values.iter().copied().min_by(f64::total_cmp).unwrap();
    assert_equal(&download::<u64>(&client, got), &[want.to_bits()]);
}

#[test]
fn integers_wrap_and_divide() {
    let client = client();
    let values: Vec<i32> = random_values(6, 5000).iter().map(|x| x.to_bits() as i32).collect();
    let input = upload(&client, &values, &[5000], I32);
    let sum = values.iter().fold(0i32, |a, &x| a.wrapping_add(x));
    let prod = values.iter().fold(1i32, |a, &x| a.wrapping_mul(x | 1));
    let odd: Vec<i32> = values.iter().map(|x| x | 1).collect();
    let max_abs = *values.iter().map(|x| x.wrapping_abs()).max().as_ref().unwrap();
    let of = |tensor| download::<i32>(&client, tensor)[0];
    assert_eq!(of(reduce::sum(&client, input.clone(), &[0]).unwrap()), sum);
    assert_eq!(of(reduce::prod(&client, upload(&client, &odd, &[5000], I32), &[0]).unwrap()), prod);
    assert_eq!(of(reduce::mean(&client, input.clone(), &[0]).unwrap()), sum / 5000);
    assert_eq!(of(reduce::max(&client, input.clone(), &[0]).unwrap()), *values.iter().max().unwrap());
    assert_eq!(of(reduce::min(&client, input.clone(), &[0]).unwrap()), *values.iter().min().unwrap());
    assert_eq!(of(reduce::max_abs(&client, input, &[0]).unwrap()), max_abs);
    let negative = upload(&client, &[-7i32, 0], &[2], I32);
    assert_eq!(of(reduce::mean(&client, negative, &[0]).unwrap()), -3);
}

#[test]
fn other_integer_types_where_the_device_has_them() {
    let client = client();
    if client.properties().supports_type(I64) {
        let values: Vec<i64> = (0..5000).map(|i: i64| (i - 2500) * 0x1234_5678_9abc).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[5000], I64), &[0]).unwrap();
        assert_equal(&download::<i64>(&client, got), &[values.iter().sum()]);
    } else {
        skip("the device has no i64");
    }
    if client.properties().supports_type(U8) {
        let values: Vec<u8> = (0..5000).map(|i| (i * 7) as u8).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[5000], U8), &[0]).unwrap();
        assert_equal(&download::<u8>(&client, got), &[values.iter().fold(0, |a, &x| a.wrapping_add(x))]);
    } else {
        skip("the device has no u8");
    }
}

#[test]
fn extremes_match_the_reference_under_every_plan() {
    let client = client();
    type Reference = fn(&[f32]) -> Option<f32>;
    let operations: [(Operation, Reference); 3] =
        [(Operation::Max, reference::max), (Operation::Min, reference::min), (Operation::MaxAbs, reference::max_abs)];
    for (n, with_nan) in [(1, false), (65, false), (130, true), (4100, false), (4100, true)] {
        let values = with_specials(random_values(n as u64, n * 3), with_nan);
        for (operation, reference) in operations {
            let want: Vec<f32> = outputs_of(&values, &[n, 3], &[0]).iter().map(|x| reference(x).unwrap()).collect();
            for plan in plans(&[n, 3], &[0], Kind::Fold) {
                let input = upload(&client, &values, &[n, 3], F32);
                let got = reduce::fold_planned(&client, operation, input, &[0], plan).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

type Reference = fn(&[f32]) -> f32;

/// What is folded in fours.
const FOLDS_IN_FOURS: [(Operation, Reference); 6] = [
    (Operation::Sum, reference::sum),
    (Operation::Prod, reference::prod),
    (Operation::Mean, reference::mean),
    (Operation::Max, |x| reference::max(x).unwrap()),
    (Operation::Min, |x| reference::min(x).unwrap()),
    (Operation::MaxAbs, |x| reference::max_abs(x).unwrap()),
];

#[test]
fn dense_rows_read_in_fours_match_the_reference() {
    let client = client();
    // A row of a block, one and a bit, whole blocks, and a last block of one row and a bit; 17 rows are three cubes.
    for shape in [[17, 64], [3, 68], [2, 124], [5, 1000], [3, 4096], [2, 4160], [1, 8192 + 68]] {
        let values: Vec<f32> = random_values(11, shape[0] * shape[1]).iter().map(|x| 1.0 + x / 64.0).collect();
        for (operation, reference) in FOLDS_IN_FOURS {
            let want: Vec<f32> = values.chunks(shape[1]).map(reference).collect();
            for plan in plans_in_fours(&shape, &[1]) {
                let input = upload(&client, &values, &shape, F32);
                let got = reduce::fold_planned(&client, operation, input, &[1], plan).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
        let whole: Vec<i32> = values.iter().map(|x| (x * 1e9) as i32).collect();
        let want: Vec<i32> =
            whole.chunks(shape[1]).map(|row| row.iter().fold(0i32, |a, &b| a.wrapping_add(b))).collect();
        for plan in plans_in_fours(&shape, &[1]) {
            let input = upload(&client, &whole, &shape, I32);
            let got = reduce::fold_planned(&client, Operation::Sum, input, &[1], plan).unwrap();
            assert_equal(&download::<i32>(&client, got), &want);
        }
    }
    // Rows that begin past a multiple of four, and every second element: read one by one.
    for (size, strides) in [(1001, [1001, 1]), (1000, [1002, 1]), (500, [1000, 2])] {
        let memory = random_values(12, 2 * strides[0]);
        let row = |r: usize| (0..size).map(|i| memory[r * strides[0] + i * strides[1]]).collect::<Vec<_>>();
        let want = [reference::sum(&row(0)), reference::sum(&row(1))];
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![2usize, size], strides.to_vec(), F32);
        let plan = Plan { first: Pass::FourElements { width: 8 }, fuses: false, totals: None };
        let refused = reduce::fold_planned(&client, Operation::Sum, input.clone(), &[1], plan).unwrap_err();
        assert!(refused.to_string().ends_with("want elements in fours"), "{refused}");
        let got = reduce::sum(&client, input, &[1]).unwrap();
        assert_bits(&download(&client, got), &want);
    }
}

/// A plan that does not apply is an error with what it wants, and never another plan in its place.
#[test]
fn a_plan_that_does_not_apply_is_an_error() {
    let client = client();
    let rows = upload(&client, &[1f32; 3 * 68], &[3, 68], F32);
    let whole = Plan { first: Pass::Single(Cube::WIDE), fuses: false, totals: None };
    let text = |plan: Plan| {
        let refused = reduce::fold_planned(&client, Operation::Sum, rows.clone(), &[1], plan).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { kernel: "reduce::sum", .. }), "{refused}");
        refused.to_string()
    };
    assert!(
        text(Plan { totals: Some(Cube::WIDE), ..whole })
            .ends_with("want cubes for totals where an output has several blocks")
    );
    assert!(text(Plan { fuses: true, ..whole }).ends_with("want results of a program"));
    assert!(text(Plan { first: Pass::FourOutputs { width: 8 }, ..whole }).ends_with("want outputs in fours"));
    assert!(text(Plan { first: Pass::FourElements { width: 0 }, ..whole }).ends_with("want cubes with units"));
    let columns = Problem::new(&[68, 4], &[4, 1], &[0], Kind::Search);
    let search = Plan { first: Pass::FourOutputs { width: 8 }, ..whole };
    assert!(search.refuses(&columns).unwrap().ends_with("want elements in memory to fold"));
    assert_eq!(search.refuses(&Problem { kind: Kind::Fold, ..columns }), None);
    let long = Problem::new(&[4097], &[1], &[0], Kind::Fold);
    assert!(whole.refuses(&long).is_some(), "two blocks have totals");
    let refused = extreme::index_of_planned(&client, Extreme::Max, rows.clone(), 1, I32, Plan { fuses: true, ..whole });
    assert!(matches!(refused, Err(KernelError::Plan { kernel: "reduce::argmax", .. })));
}

#[test]
fn outputs_side_by_side_read_in_fours_match_the_reference() {
    let client = client();
    // A row of a block and its neighbours, whole blocks and theirs, and more units than a cube has.
    let two = [[1, 4], [3, 8], [63, 4], [64, 8], [65, 12], [200, 36], [4096, 4], [4097, 8], [4161, 4], [10_007, 8]];
    let shapes = two.map(|shape| (shape.to_vec(), 0)).into_iter().chain([(vec![3, 70, 8], 1), (vec![5, 4100, 4], 1)]);
    for (shape, axis) in shapes {
        let elements = shape.iter().product();
        let values: Vec<f32> = random_values(13, elements).iter().map(|x| 1.0 + x / 64.0).collect();
        let outputs = outputs_of(&values, &shape, &[axis]);
        for (operation, reference) in FOLDS_IN_FOURS {
            let want: Vec<f32> = outputs.iter().map(|x| reference(x)).collect();
            let input = upload(&client, &values, &shape, F32);
            for plan in plans_in_fours(&shape, &[axis]) {
                let got = reduce::fold_planned(&client, operation, input.clone(), &[axis], plan).unwrap();
                assert_bits(&download(&client, got), &want);
            }
            let got = reduce::fold(&client, operation, input, &[axis]).unwrap();
            assert_bits(&download(&client, got), &want);
        }
        let whole: Vec<i32> = values.iter().map(|x| (x * 1e9) as i32).collect();
        let sum = |row: &Vec<i32>| row.iter().fold(0i32, |a, &b| a.wrapping_add(b));
        let want: Vec<i32> = outputs_of(&whole, &shape, &[axis]).iter().map(sum).collect();
        for plan in plans_in_fours(&shape, &[axis]) {
            let input = upload(&client, &whole, &shape, I32);
            let got = reduce::fold_planned(&client, Operation::Sum, input, &[axis], plan).unwrap();
            assert_equal(&download::<i32>(&client, got), &want);
        }
    }
    // Parts of longer rows, of which only the first are in fours.
    for row in [24, 22] {
        let memory = random_values(14, 100 * row);
        let values: Vec<f32> = memory.chunks(row).flat_map(|row| &row[..16]).copied().collect();
        let want: Vec<f32> = outputs_of(&values, &[100, 16], &[0]).iter().map(|x| reference::sum(x)).collect();
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![100usize, 16], vec![row, 1], F32);
        assert_bits(&download(&client, reduce::sum(&client, input, &[0]).unwrap()), &want);
    }
}

#[test]
fn zeros_are_ordered_by_sign_whatever_their_order() {
    let client = client();
    for values in [[-0.0f32, 0.0], [0.0, -0.0]] {
        let got = reduce::max(&client, upload(&client, &values, &[2], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[0.0]);
        let got = reduce::min(&client, upload(&client, &values, &[2], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[-0.0]);
    }
}

#[test]
fn indices_match_the_reference_under_every_plan() {
    let client = client();
    // The last three can be read in fours: a row or so of a block, one block, and two with a short one behind.
    let shapes: [(&[usize], usize); 9] = [
        (&[2], 0),
        (&[1000, 3], 0),
        (&[5, 1], 1),
        (&[4, 130], 1),
        (&[3, 64, 9], 1),
        (&[70_001], 0),
        (&[17, 68], 1),
        (&[2, 3, 4096], 2),
        (&[2, 8192 + 72], 1),
    ];
    for (shape, axis) in shapes {
        for (ties, with_nan) in [(false, false), (true, false), (true, true)] {
            let mut values = with_specials(random_values(axis as u64, shape.iter().product()), with_nan);
            if ties {
                values.iter_mut().for_each(|x| *x = x.clamp(-0.01, 0.01));
            }
            for (end, reference) in
                [(Extreme::Max, reference::argmax as fn(&[f32]) -> Option<usize>), (Extreme::Min, reference::argmin)]
            {
                let rows = outputs_of(&values, shape, &[axis]);
                let want: Vec<i32> = rows.iter().map(|x| reference(x).unwrap() as i32).collect();
                let want_values: Vec<f32> = rows.iter().zip(&want).map(|(row, &i)| row[i as usize]).collect();
                for plan in plans(shape, &[axis], Kind::Search) {
                    let input = upload(&client, &values, shape, F32);
                    let got = extreme::index_of_planned(&client, end, input.clone(), axis, I32, plan).unwrap();
                    assert_equal(&download::<i32>(&client, got), &want);
                    let (found, got) = extreme::with_index_planned(&client, end, input, axis, I32, plan).unwrap();
                    assert_equal(&download::<i32>(&client, got), &want);
                    assert_bits(&download(&client, found), &want_values);
                }
            }
        }
    }
}

/// llvmpipe ends the loops of a shader after 65535 iterations: the last element must be seen all the same.
#[test]
fn an_extreme_at_the_end_of_a_long_axis_is_found() {
    let client = client();
    let mut values = vec![0.0f32; 200_000];
    values[199_999] = 1.0;
    for plan in plans(&[200_000], &[0], Kind::Search) {
        let input = upload(&client, &values, &[200_000], F32);
        let got = extreme::index_of_planned(&client, Extreme::Max, input, 0, I32, plan).unwrap();
        assert_equal(&download::<i32>(&client, got), &[199_999]);
    }
}

#[test]
fn indices_come_in_the_type_asked_for() {
    let client = client();
    let input = upload(&client, &[3i32, 9, 9, -4], &[2, 2], I32);
    let got = extreme::argmax(&client, input.clone(), 1, U32).unwrap();
    assert_equal(&download::<u32>(&client, got), &[1, 0]);
    let (values, got) = extreme::min_with_indices(&client, input.clone(), 0, I32).unwrap();
    assert_equal(&download::<i32>(&client, got), &[0, 1]);
    assert_equal(&download::<i32>(&client, values), &[3, -4]);
    if client.properties().supports_type(I64) {
        let got = extreme::argmin(&client, input.clone(), 1, I64).unwrap();
        assert_equal(&download::<i64>(&client, got), &[0, 1]);
    } else {
        skip("the device has no i64");
    }
    assert!(matches!(extreme::argmax(&client, input, 1, F32), Err(KernelError::Dtype { dtype: F32, .. })));
}

#[test]
fn any_and_all_take_what_is_not_zero_for_true() {
    let client = client();
    let mut values = vec![0u32; 3 * 5000];
    values[7_000] = 0x8000_0000;
    values[10_000..].fill(3);
    let input = upload(&client, &values, &[3, 5000], U32);
    let got = reduce::any(&client, input.clone(), &[1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0, 1, 1]);
    let got = reduce::all(&client, input.clone(), &[1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0, 0, 1]);
    let got = reduce::all(&client, input, &[0, 1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0]);
}

#[test]
fn empty_reductions_give_the_identity_or_are_refused() {
    let client = client();
    let none = |shape: &[usize]| upload::<f32>(&client, &[], shape, F32);
    let of = |tensor| download::<f32>(&client, tensor);
    assert_bits(&of(reduce::sum(&client, none(&[2, 0]), &[1]).unwrap()), &[0.0, 0.0]);
    assert_bits(&of(reduce::prod(&client, none(&[0]), &[0]).unwrap()), &[1.0]);
    assert!(of(reduce::mean(&client, none(&[0]), &[0]).unwrap())[0].is_nan());
    assert_eq!(reduce::sum(&client, none(&[0, 3]), &[1]).unwrap().shape().to_vec(), [0, 1]);
    for refused in [reduce::max(&client, none(&[0, 3]), &[0]), reduce::max(&client, none(&[0, 0]), &[0])] {
        assert!(matches!(refused, Err(KernelError::Shape { kernel: "reduce::max", .. })));
    }
    assert!(extreme::argmax(&client, none(&[3, 0]), 1, I32).is_err());
    assert_eq!(extreme::argmax(&client, none(&[0, 3]), 1, I32).unwrap().shape().to_vec(), [0, 1]);
}

#[test]
fn an_axis_that_does_not_exist_is_refused() {
    let client = client();
    let input = upload(&client, &[1.0f32], &[1, 1], F32);
    let refused = reduce::sum(&client, input.clone(), &[2]).unwrap_err();
    assert_eq!(refused.to_string(), "reduce::sum: axis 2 of a tensor of shape [1, 1], want less than 2");
    assert!(extreme::argmin(&client, input, 2, I32).is_err());
}

#[test]
fn a_type_without_a_version_is_refused() {
    let client = client();
    let input = upload(&client, &[1.0f32], &[1], F32);
    let refused = reduce::any(&client, input.clone(), &[0]).unwrap_err();
    assert!(matches!(refused, KernelError::Dtype { kernel: "reduce::any", dtype: F32, .. }));
    let bools = TensorHandle::new(input.handle, vec![1usize], vec![1usize], ElemType::Bool);
    assert!(matches!(reduce::sum(&client, bools, &[0]), Err(KernelError::Dtype { kernel: "reduce::sum", .. })));
}

#[test]
fn ten_runs_give_one_result() {
    let client = client();
    let values = random_values(8, 1 << 20);
    let input = upload(&client, &values, &[1 << 20], F32);
    let runs: Vec<u32> =
        (0..10).map(|_| download::<u32>(&client, reduce::sum(&client, input.clone(), &[0]).unwrap())[0]).collect();
    assert_eq!(runs, vec![reference::sum(&values).to_bits(); 10]);
}

/// Every element is in at most 63 additions of its column, 63 of its block, and as many again per further pass: with
/// p passes |error| <= 126 p u sum|x| / (1 - 126 p u), u = 2^-24.
#[test]
fn error_is_within_the_bound_of_the_order() {
    for n in LENGTHS {
        let values = random_values(n as u64 + 100, n);
        let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
        let magnitude: f64 = values.iter().map(|&x| f64::from(x.abs())).sum();
        let additions = 126.0 * (1..).find(|&p| (BLOCK as usize).pow(p) >= n).map_or(1.0, f64::from);
        let bound = additions * 2f64.powi(-24) / (1.0 - additions * 2f64.powi(-24)) * magnitude;
        let error = (f64::from(reference::sum(&values)) - exact).abs();
        assert!(error <= bound, "n = {n}: error {error:e}, bound {bound:e}");
    }
}

#[test]
fn axes_join_where_their_strides_do() {
    let batch_norm = View::of(&[64, 32, 28, 28], &[25_088, 784, 28, 1], &[true, false, true, true]).unwrap();
    assert_eq!((batch_norm.outputs, batch_norm.axis, batch_norm.axis_inner), (32, 50_176, 784));
    assert_eq!((batch_norm.axis_outer_stride, batch_norm.axis_stride, batch_norm.inner_stride), (25_088, 1, 784));
    let everything = View::of(&[2, 1, 3], &[3, 7, 1], &[true; 3]).unwrap();
    assert_eq!((everything.outputs, everything.axis, everything.axis_inner), (1, 6, 6));
    let alternating = [true, false, true, false, true];
    assert_eq!(View::of(&[2, 2, 2, 2, 2], &[16, 8, 4, 2, 1], &alternating), None);
}

#[test]
fn plans_are_pinned() {
    use Machine::{Gpu, Software};
    let problem = |view: View| Problem { view, kind: Kind::Fold };
    let first = |view: View, machine: Machine| plan(&problem(view), machine).first;
    let fours = Pass::FourElements { width: 8 };
    let rows = View::rows(4096, 128);
    let columns = View { inner_stride: 1, axis_stride: 4096, ..rows };
    assert_eq!(first(rows, Gpu), Pass::Single(Cube::UNIT_A_COLUMN));
    assert_eq!(first(columns, Gpu), Pass::Single(Cube::EIGHT_UNITS));
    assert_eq!(first(View::rows(1, 1 << 24), Gpu), Pass::Single(Cube::UNIT_A_COLUMN));
    assert_eq!(plan(&problem(View::rows(1, 1 << 24)), Gpu).totals, Some(Cube::UNIT_A_COLUMN));
    assert_eq!(first(rows, Software), fours);
    assert_eq!(first(columns, Software), Pass::FourOutputs { width: 8 });
    assert_eq!(first(View { axis_stride: 4097, ..columns }, Software), Pass::Single(Cube::WIDE));
    assert_eq!(plan(&problem(rows), Software).totals, None);
    // A search compares four elements of an output at a time, and never four outputs.
    let search = |view| plan(&Problem { view, kind: Kind::Search }, Software).first;
    assert_eq!((search(rows), search(columns)), (fours, Pass::Single(Cube::WIDE)));
    // Where a fold of four elements is not possible, a software driver writes a program's results before.
    let program = |view, machine| plan(&Problem { view, kind: Kind::FoldProgram }, machine);
    assert!(program(rows, Software).fuses && program(columns, Gpu).fuses && !program(columns, Software).fuses);
    assert_eq!(program(columns, Software).first, Pass::FourOutputs { width: 8 });

    assert!(columns.has_outputs_in_fours() && !rows.has_outputs_in_fours());
    let others = [
        View { inner: 2, outer_stride: 4096 * 128, ..columns },
        View { outer_stride: 2, ..columns },
        View { inner_stride: 2, ..columns },
        View { axis_inner: 64, axis_outer_stride: 1 << 20, ..columns },
    ];
    assert!(others.iter().all(|view| !view.has_outputs_in_fours()));
    for (axis, in_fours) in [(60, false), (64, true), (66, false), (4096, true), (4100, false), (4160, true)] {
        assert_eq!(View::rows(7, axis).has_elements_in_fours(), in_fours, "{axis}");
    }
}

/// Whatever is planned applies.
#[test]
fn planned_reductions_are_taken() {
    for axis in [1, 2, 63, 64, 68, 4096, 4097, 8192, 70_001] {
        for outputs in [1, 3, 4, 4096] {
            for (shape, strides, axes) in [
                ([outputs, axis], [axis, 1], [1]),
                ([axis, outputs], [outputs, 1], [0]),
                ([outputs, axis], [0, 3], [1]),
            ] {
                for kind in [Kind::Fold, Kind::FoldProgram, Kind::Search] {
                    let problem = Problem::new(&shape, &strides, &axes, kind);
                    for machine in [Machine::Gpu, Machine::Software] {
                        let plan = plan(&problem, machine);
                        assert_eq!(plan.refuses(&problem), None);
                        assert!(Plan::candidates(&problem).contains(&plan), "{plan:?}");
                    }
                }
            }
        }
    }
    // Axes that do not join are copied, and a program's results written before.
    let alternating = Problem::new(&[2; 5], &[16, 8, 4, 2, 1], &[0, 2, 4], Kind::FoldProgram);
    assert_eq!(alternating, Problem { view: View::rows(4, 8), kind: Kind::Fold });
}
