//! Cumulative kernels against their reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::scan::plan::plan;
use burn_deterministic_kernels::scan::{self, Operation, Plan, Problem, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;

const F16: ElemType = ElemType::Float(FloatKind::F16);
const F64: ElemType = ElemType::Float(FloatKind::F64);
const I64: ElemType = ElemType::Int(IntKind::I64);
const U32: ElemType = ElemType::UInt(UIntKind::U32);
const ALL: [Operation; 4] = [Operation::Sum, Operation::Prod, Operation::Min, Operation::Max];

/// Around blocks of 1024, and beyond 65,535.
const LENGTHS: [usize; 14] = [1, 2, 97, 1023, 1024, 1025, 2047, 2048, 2049, 4097, 10_007, 59_998, 65_537, 70_000];

/// The operation on `f32`, as the contract states it.
fn combine(operation: Operation) -> fn(f32, f32) -> f32 {
    match operation {
        Operation::Sum => |a, b| a + b,
        Operation::Prod => |a, b| a * b,
        Operation::Min => reference::smaller,
        Operation::Max => reference::larger,
    }
}

/// Every line of `[outer, length, inner]` by the reference.
fn expected<T: Copy>(values: &[T], [outer, length, inner]: [usize; 3], combine: impl Fn(T, T) -> T + Copy) -> Vec<T> {
    let mut want = values.to_vec();
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let place = |at| (o * length + at) * inner + i;
        let line: Vec<T> = (0..length).map(|at| values[place(at)]).collect();
        for (at, result) in reference::scan(&line, combine).into_iter().enumerate() {
            want[place(at)] = result;
        }
    }
    want
}

/// The plans that apply to `[outer, length, inner]`.
fn plans([outer, length, inner]: [usize; 3]) -> Vec<Plan> {
    Plan::candidates(&Problem { outer, length, inner })
}

/// Values for an operation: of a product close to 1, since devices differ in subnormal numbers.
fn values(operation: Operation, seed: u64, len: usize) -> Vec<f32> {
    let mut values = random_values(seed, len);
    if operation == Operation::Prod {
        values.iter_mut().for_each(|value| *value = 1.0 + *value / 1024.0);
    }
    values
}

fn check(client: &Client, operation: Operation, shape: [usize; 3]) {
    let values = values(operation, shape[1] as u64, shape.iter().product());
    let want = expected(&values, shape, combine(operation));
    for plan in plans(shape) {
        println!("{operation:?} of {shape:?} by {plan:?}");
        let got = scan::scan(client, operation, upload(client, &values, &shape, F32), 1, Some(plan)).unwrap();
        assert_eq!(got.shape().to_vec(), shape);
        assert_bits(&download(client, got), &want);
    }
}

#[test]
fn another_order_gives_other_bits() {
    let values = random_values(3, 4096);
    let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let sums = bits(reference::scan(&values, |a, b| a + b));
    let mut before = 0.0;
    let chain = values.iter().map(|value| {
        before += value;
        before
    });
    let chain = bits(chain.collect());
    assert_eq!(sums[..1024], chain[..1024]);
    assert_ne!(sums, chain, "the inputs of the other tests do not show a wrong order");
}

#[test]
fn lines_of_every_length_match_the_reference_under_every_plan() {
    let client = client();
    for operation in ALL {
        for length in LENGTHS {
            check(&client, operation, [1, length, 1]);
        }
    }
}

/// What follows an element does not change its result.
#[test]
fn padding_does_not_change_a_prefix() {
    let client = client();
    let values = random_values(11, 9000);
    let sums = |values: &[f32]| -> Vec<f32> {
        download(&client, scan::cumsum(&client, upload(&client, values, &[values.len()], F32), 0).unwrap())
    };
    let all = sums(&values);
    for length in [1, 1000, 1024, 1025, 5000, 8999] {
        assert_bits(&sums(&values[..length]), &all[..length]);
    }
}

#[test]
fn many_lines_match_the_reference() {
    let client = client();
    for shape in [
        [5, 131, 1],
        [5, 2100, 1],
        [11, 1025, 1],
        [3, 70, 5],
        [1, 200, 67],
        [2, 1, 9],
        [70_000, 3, 1],
        [1, 3, 70_000],
        [300, 129, 2],
    ] {
        for operation in [Operation::Sum, Operation::Max] {
            check(&client, operation, shape);
        }
    }
}

#[test]
fn sums_of_what_is_not_negative_never_fall() {
    let client = client();
    let values: Vec<f32> = random_values(5, 200_000).into_iter().map(f32::abs).collect();
    let sums: Vec<f32> =
        download(&client, scan::cumsum(&client, upload(&client, &values, &[200_000], F32), 0).unwrap());
    assert!(sums.is_sorted());
    // Block totals scanned by themselves, and not gone on from, would not have this.
    let exact: f64 = values.iter().map(|&value| f64::from(value)).sum();
    assert!((f64::from(sums[199_999]) - exact).abs() < 1e-4 * exact, "{} for {exact}", sums[199_999]);
}

#[test]
fn extremes_stay_with_the_first_of_equals_and_with_nan() {
    let client = client();
    let (nan, other) = (f32::from_bits(0xffc1_2345), f32::from_bits(0x7fc0_0001));
    let line = |special: &[f32]| special.iter().copied().chain(std::iter::repeat_n(1e-40, 150)).collect::<Vec<_>>();
    for special in [
        vec![-0.0, 0.0, -0.0, 1.0, 2.0, 1.0],
        vec![0.0, -0.0, f32::NEG_INFINITY, f32::INFINITY, f32::MAX],
        vec![1.0, nan, 2.0, other, f32::NEG_INFINITY],
        vec![nan, f32::INFINITY],
        vec![1e-40, -1e-40, 2e-40, 0.0, -2e-40],
    ] {
        let mut values = line(&special);
        values[100] = -0.0;
        values[101] = 3.0;
        for operation in [Operation::Min, Operation::Max] {
            let want = expected(&values, [1, values.len(), 1], combine(operation));
            for plan in plans([1, values.len(), 1]) {
                let input = upload(&client, &values, &[values.len()], F32);
                let got: Vec<f32> = download(&client, scan::scan(&client, operation, input, 0, Some(plan)).unwrap());
                assert_bits(&got, &want);
            }
        }
    }
}

#[test]
fn sums_of_special_values() {
    let client = client();
    let one = [-0.0f32, f32::INFINITY, 1e-40];
    let got = scan::cumsum(&client, upload(&client, &one, &[3, 1], F32), 1).unwrap();
    assert_bits(&download(&client, got), &one);
    let values = [-0.0f32, -0.0, 0.0, 1.0, f32::INFINITY, 5.0, f32::NEG_INFINITY, 1.0];
    let got: Vec<f32> = download(&client, scan::cumsum(&client, upload(&client, &values, &[8], F32), 0).unwrap());
    assert_bits(&got[..6], &[-0.0, -0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY]);
    assert!(got[6].is_nan() && got[7].is_nan());
}

#[test]
fn layouts_do_not_reach_a_result() {
    let client = client();
    let (rows, columns) = (37, 130);
    let values = random_values(8, rows * columns);
    for axis in [0, 1] {
        let shape = if axis == 0 { [1, rows, columns] } else { [rows, columns, 1] };
        let want = expected(&values, shape, |a, b| a + b);
        // Stored column by column, each two elements apart, between others.
        let mut memory = vec![f32::NAN; rows * columns * 2];
        for (at, &value) in values.iter().enumerate() {
            memory[2 * ((at % columns) * rows + at / columns)] = value;
        }
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![rows, columns], vec![2, 2 * rows], F32);
        assert_bits(&download(&client, scan::cumsum(&client, input, axis).unwrap()), &want);
    }
    // One row, broadcast.
    let row = upload(&client, &values[..columns], &[columns], F32);
    let broadcast = TensorHandle::new(row.handle, vec![rows, columns], vec![0, 1], F32);
    let want = expected(&values[..columns].repeat(rows), [rows, columns, 1], |a, b| a + b);
    assert_bits(&download(&client, scan::cumsum(&client, broadcast, 1).unwrap()), &want);
    // Axes around the scanned one that do not collapse into one.
    let values = random_values(9, 2 * 3 * 70 * 5);
    let input = upload(&client, &values, &[2, 3, 70, 5], F32);
    let permuted = TensorHandle::new(input.handle, vec![3, 2, 70, 5], vec![350, 1050, 5, 1], F32);
    let moved: Vec<f32> = [0, 3, 1, 4, 2, 5].iter().flat_map(|&at| values[at * 350..(at + 1) * 350].to_vec()).collect();
    let want = expected(&moved, [6, 70, 5], |a, b| a + b);
    assert_bits(&download(&client, scan::cumsum(&client, permuted, 2).unwrap()), &want);
}

#[test]
fn other_types() {
    let client = client();
    // Three blocks of a line: of lines side by side, and of lines one after the other.
    [[3, 2100, 2], [6, 2100, 1]].into_iter().for_each(|shape| other_types_of(&client, shape));
}

fn other_types_of(client: &Client, shape: [usize; 3]) {
    let raw: Vec<i32> = (0..12_600).map(|i: i32| (i.wrapping_mul(0x9e37_79b9u32 as i32)) >> 3).collect();
    for plan in plans(shape) {
        let run = |operation, input| scan::scan(client, operation, input, 1, Some(plan));
        let sum = run(Operation::Sum, upload(client, &raw, &shape, I32)).unwrap();
        assert_eq!(download::<i32>(client, sum), expected(&raw, shape, i32::wrapping_add));
        let product = run(Operation::Prod, upload(client, &raw, &shape, I32)).unwrap();
        assert_eq!(download::<i32>(client, product), expected(&raw, shape, i32::wrapping_mul));
        let least = run(Operation::Min, upload(client, &raw, &shape, I32)).unwrap();
        assert_eq!(download::<i32>(client, least), expected(&raw, shape, i32::min));
        let words: Vec<u32> = raw.iter().map(|&value| value as u32).collect();
        let most = run(Operation::Max, upload(client, &words, &shape, U32)).unwrap();
        assert_eq!(download::<u32>(client, most), expected(&words, shape, u32::max));
        let supports = |dtype: ElemType| client.properties().supports_type(dtype);
        if supports(I64) {
            let wide: Vec<i64> = raw.iter().map(|&value| i64::from(value) << 20).collect();
            let sum = run(Operation::Sum, upload(client, &wide, &shape, I64)).unwrap();
            assert_eq!(download::<i64>(client, sum), expected(&wide, shape, i64::wrapping_add));
            let most = run(Operation::Max, upload(client, &wide, &shape, I64)).unwrap();
            assert_eq!(download::<i64>(client, most), expected(&wide, shape, i64::max));
        } else {
            skip("the device has no i64");
        }
        if supports(F16) {
            let halves: Vec<f16> = random_values(4, 12_600).into_iter().map(f16::from_f32).collect();
            let floats: Vec<f32> = halves.iter().map(|value| value.to_f32()).collect();
            let sum = run(Operation::Sum, upload(client, &halves, &shape, F16)).unwrap();
            let want: Vec<f16> = expected(&floats, shape, |a, b| a + b).into_iter().map(f16::from_f32).collect();
            assert_eq!(download::<f16>(client, sum), want);
            let most = run(Operation::Max, upload(client, &halves, &shape, F16)).unwrap();
            let want: Vec<f16> = expected(&floats, shape, reference::larger).into_iter().map(f16::from_f32).collect();
            assert_eq!(download::<f16>(client, most), want);
        } else {
            skip("the device has no f16");
        }
        if supports(F64) {
            let doubles: Vec<f64> = random_values(4, 12_600).into_iter().map(f64::from).collect();
            let sum = run(Operation::Sum, upload(client, &doubles, &shape, F64)).unwrap();
            assert_eq!(download::<f64>(client, sum), expected(&doubles, shape, |a, b| a + b));
        } else {
            skip("the device has no f64");
        }
    }
}

#[test]
fn empty_tensors_and_refusals() {
    let client = client();
    for shape in [vec![0], vec![0, 5], vec![5, 0]] {
        let got = scan::cumsum(&client, upload::<f32>(&client, &[], &shape, F32), shape.len() - 1).unwrap();
        assert_eq!(got.shape().to_vec(), shape);
    }
    let refused = scan::cumsum(&client, upload(&client, &[1f32], &[1], F32), 1).unwrap_err();
    assert!(matches!(&refused, KernelError::Shape { .. }), "{refused}");
    let unchained = Plan { staged: false, chained: 0 };
    let refused = scan::scan(&client, Operation::Sum, upload(&client, &[1f32], &[1], F32), 0, Some(unchained));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "scan::cumsum: Plan { staged: false, chained: 0 }, want 1 to 59998 chained"
    );
    let unknown = TensorHandle::new_contiguous(vec![1], client.empty(4), ElemType::Bool);
    assert!(matches!(scan::cumsum(&client, unknown, 0), Err(KernelError::Dtype { .. })));
}

/// Most elements of an axis.
const MOST: usize = 1 << 30;

#[test]
fn planned_scans_are_taken() {
    for bits in 0..=30 {
        for length in [1usize << bits, (1 << bits) - 1, MOST.min((1 << bits) + 1)] {
            let problem = Problem { outer: 1, length, inner: 1 };
            for plan in [Machine::Gpu, Machine::Software].map(|machine| plan(&problem, machine)) {
                assert_eq!(plan.refuses(&problem), None);
                assert!(Plan::candidates(&problem).contains(&plan));
            }
        }
    }
    assert_eq!(Plan::candidates(&Problem { outer: 1, length: MOST + 1, inner: 1 }), []);
}

#[test]
fn plans_are_pinned() {
    let chained = |length| plan(&Problem { outer: 1, length, inner: 1 }, Machine::Gpu).chained;
    assert_eq!([1, 1024, 1025, 5000, MOST].map(chained), [1, 1, 2, 5, 59_998]);
    let staged = |length, inner, machine| plan(&Problem { outer: 3, length, inner }, machine).staged;
    assert!(staged(64, 1, Machine::Gpu) && !staged(63, 1, Machine::Gpu), "short lines are near each other");
    assert!(!staged(1024, 2, Machine::Gpu), "neighbours go along columns by themselves");
    assert!(!staged(1024, 1, Machine::Software));
    let staged = Plan { staged: true, chained: 1 };
    let refusal = staged.refuses(&Problem { outer: 1, length: 1024, inner: 2 }).expect("a refusal");
    assert!(refusal.ends_with("want lines whose elements are neighbours"), "{refusal}");
}
