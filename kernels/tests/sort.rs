//! Sort kernels against the standard library's stable sort.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::radix_sort;
use burn_deterministic_kernels::sort::reference::{self, float_order};
use burn_deterministic_kernels::sort::{
    Direction, Plan, Problem, Sorting, plan, plan::Selection, plan::Selector, sort,
};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Ordering;

const F16: ElemType = ElemType::Float(FloatKind::F16);
const F64: ElemType = ElemType::Float(FloatKind::F64);
const I8: ElemType = ElemType::Int(IntKind::I8);
const I16: ElemType = ElemType::Int(IntKind::I16);
const I64: ElemType = ElemType::Int(IntKind::I64);
const U16: ElemType = ElemType::UInt(UIntKind::U16);
const U32: ElemType = ElemType::UInt(UIntKind::U32);
const U64: ElemType = ElemType::UInt(UIntKind::U64);
const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

/// Around powers of two, primes, and beyond 65,535.
const LENGTHS: [usize; 18] = [1, 2, 3, 31, 63, 64, 65, 97, 255, 256, 257, 511, 512, 513, 2049, 10_007, 65_537, 70_000];

/// All elements along axis 1 in order, and their indices.
fn all(direction: Direction) -> Sorting {
    Sorting { axis: 1, direction, kept: None, values: true, index: Some(I32) }
}

/// The `k` largest elements along axis 1, and their indices.
fn largest_of(k: usize) -> Sorting {
    Sorting { kept: Some(k), ..all(Direction::Descending) }
}

/// The order of f32.
fn f32_order() -> impl Fn(&f32, &f32) -> Ordering + Copy {
    float_order(f32::is_nan, f32::total_cmp)
}

/// Values of which many are equal, among them every special one.
fn special_values(seed: u64, len: usize) -> Vec<f32> {
    const SPECIAL: [u32; 12] = [
        0x0000_0000,
        0x8000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0000,
        0x7fc1_2345,
        0xffff_ffff,
        0x0000_0001,
        0x8000_0001,
        0x7fff_ffff,
        0x3f80_0000,
    ];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len)
        .map(|_| match (rng.next_u32() % 4, rng.next_u32()) {
            (0, draw) => f32::from_bits(SPECIAL[draw as usize % SPECIAL.len()]),
            (1, draw) => (draw % 16) as f32 - 8.0,
            (2, draw) => (draw as i32) as f32 * 1e-7,
            (_, draw) => f32::from_bits(draw),
        })
        .collect()
}

/// The first `kept` of every line of `[outer, length, inner]` in order, and their indices.
fn expected<T: Copy>(
    values: &[T],
    [outer, length, inner]: [usize; 3],
    kept: usize,
    direction: Direction,
    compare: impl Fn(&T, &T) -> Ordering + Copy,
) -> (Vec<T>, Vec<i32>) {
    let mut want: Vec<Option<(T, i32)>> = vec![None; outer * kept * inner];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let line: Vec<T> = (0..length).map(|at| values[(o * length + at) * inner + i]).collect();
        for (rank, at) in reference::argsort(&line, direction, compare).into_iter().take(kept).enumerate() {
            want[(o * kept + rank) * inner + i] = Some((line[at], at as i32));
        }
    }
    want.into_iter().map(|pair| pair.expect("every rank is taken")).unzip()
}

fn digit_bits(plan: &radix_sort::Plan) -> u32 {
    match plan {
        radix_sort::Plan::Rank => 0,
        radix_sort::Plan::Chunks(chunks) => chunks.digit_bits,
        radix_sort::Plan::Tiles(tiles) => tiles.digit_bits,
    }
}

/// The plans that apply to the first `kept` of each line; not those that take minutes on a software driver.
fn plans([outer, length, inner]: [usize; 3], kept: usize, bits: u32, two_words: bool) -> Vec<Plan> {
    let elements = outer * length * inner;
    let problem = Problem { outer, length, inner, kept, bits, two_words };
    let is_fast = |plan: &Plan| match plan {
        Plan::Rank => length <= 3000,
        Plan::Radix(by_bit) if digit_bits(by_bit) == 1 => elements <= 3000,
        Plan::Radix(_) | Plan::Select(_) => true,
    };
    Plan::candidates(&problem).into_iter().filter(is_fast).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn check(client: &Client, shape: [usize; 3]) {
    let elements = shape.iter().product();
    let values = special_values(elements as u64, elements);
    for direction in DIRECTIONS {
        let (want, at) = expected(&values, shape, shape[1], direction, f32_order());
        for plan in plans(shape, shape[1], 32, false) {
            println!("{direction:?} {shape:?} by {plan:?}");
            let input = upload(client, &values, &shape, F32);
            let (sorted, indices) = sort(client, input, all(direction), Some(plan)).unwrap();
            assert_eq!((sorted.shape().to_vec(), indices.shape().to_vec()), (shape.to_vec(), shape.to_vec()));
            assert!(download::<u32>(client, sorted) == bits(&want), "values");
            assert!(download::<i32>(client, indices) == at, "indices");
        }
    }
}

#[test]
fn the_inputs_have_equal_elements_that_an_unstable_sort_may_exchange() {
    let values = special_values(70_000, 70_000);
    let mut unstable: Vec<usize> = (0..values.len()).collect();
    unstable.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    assert_ne!(unstable, reference::argsort(&values, Direction::Ascending, f32_order()));
    // Nor is the descending order the ascending one backwards.
    let mut backwards = reference::argsort(&values, Direction::Ascending, f32_order());
    backwards.reverse();
    assert_ne!(backwards, reference::argsort(&values, Direction::Descending, f32_order()));
}

#[test]
fn lines_of_every_length_match_the_reference_under_every_plan() {
    let client = client();
    for length in LENGTHS {
        check(&client, [1, length, 1]);
    }
}

#[test]
fn many_lines_match_the_reference() {
    let client = client();
    for shape in [[5, 131, 1], [3, 70, 5], [1, 200, 67], [2, 1, 9], [70_000, 3, 1], [1, 3, 70_000], [300, 129, 2]] {
        check(&client, shape);
    }
}

#[test]
fn equal_elements_keep_their_order() {
    let client = client();
    let values = vec![-0.0f32; 5000];
    let plans = plans([2, 2500, 1], 2500, 32, false);
    for (direction, plan) in DIRECTIONS.into_iter().flat_map(|d| plans.iter().map(move |&p| (d, p))) {
        let input = upload(&client, &values, &[2, 2500], F32);
        let (sorted, indices) = sort(&client, input, all(direction), Some(plan)).unwrap();
        assert_bits(&download(&client, sorted), &values);
        assert_eq!(download::<i32>(&client, indices), (0..2500).collect::<Vec<_>>().repeat(2));
    }
}

#[test]
fn the_largest_match_the_reference() {
    let client = client();
    for (shape, k) in [
        ([1, 70_000, 1], 1),
        ([1, 70_000, 1], 10),
        ([1, 70_000, 1], 32),
        ([1, 70_000, 1], 33),
        ([1, 70_000, 1], 70_000),
        ([40, 300, 3], 7),
        ([6, 1, 1], 1),
        ([1000, 64, 1], 3),
        ([9, 2100, 1], 2099),
        ([3, 17, 2], 0),
    ] {
        let elements = shape.iter().product();
        let values = special_values(3, elements);
        let (want, at) = expected(&values, shape, k, Direction::Descending, f32_order());
        for plan in plans(shape, k, 32, false) {
            println!("top {k} of {shape:?} by {plan:?}");
            let input = upload(&client, &values, &shape, F32);
            let (largest, indices) = sort(&client, input, largest_of(k), Some(plan)).unwrap();
            assert_eq!(largest.shape().to_vec(), [shape[0], k, shape[2]]);
            if k > 0 {
                assert!(download::<u32>(&client, largest) == bits(&want), "values");
                assert!(download::<i32>(&client, indices) == at, "indices");
            }
        }
        if k > 0 {
            let input = || upload(&client, &values, &shape, F32);
            let (largest, _) = sort(&client, input(), Sorting { index: None, ..largest_of(k) }, None).unwrap();
            assert!(download::<u32>(&client, largest) == bits(&want));
            let (_, indices) = sort(&client, input(), Sorting { values: false, ..largest_of(k) }, None).unwrap();
            assert!(download::<i32>(&client, indices) == at);
        }
    }
}

#[test]
fn elements_that_nothing_comes_after_fill_their_slots() {
    let client = client();
    let by_units = Selection { slots: 4, chunk: 32, selector: Selector::Unit };
    let by_cubes = Selection { slots: 4, chunk: 64, selector: Selector::Cube };
    for (length, selection) in
        [33, 64, 200].map(|length| (length, by_units)).into_iter().chain([64, 65, 200].map(|length| (length, by_cubes)))
    {
        let mut zeros = vec![0u32; 2 * length];
        zeros[length + length / 2] = 7;
        let selection = Plan::Select(selection);
        let input = upload(&client, &zeros, &[2, length], U32);
        let (largest, indices) = sort(&client, input, largest_of(4), Some(selection)).unwrap();
        assert_eq!(download::<u32>(&client, largest), [0, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(download::<i32>(&client, indices), [0, 1, 2, 3, length as i32 / 2, 0, 1, 2]);
    }
}

#[test]
fn values_alone_and_indices_alone() {
    let client = client();
    for shape in [[2, 50, 3], [2, 5000, 1]] {
        let values = special_values(6, shape.iter().product());
        for direction in DIRECTIONS {
            let (want, at) = expected(&values, shape, shape[1], direction, f32_order());
            let input = || upload(&client, &values, &shape, F32);
            let (sorted, _) = sort(&client, input(), Sorting { index: None, ..all(direction) }, None).unwrap();
            assert!(download::<u32>(&client, sorted) == bits(&want));
            let (_, indices) =
                sort(&client, input(), Sorting { values: false, index: Some(U32), ..all(direction) }, None).unwrap();
            assert!(download::<i32>(&client, indices) == at);
        }
    }
}

#[test]
fn layouts_do_not_reach_a_result() {
    let client = client();
    for (rows, columns) in [(37, 50), (70, 500)] {
        let values = special_values(8, rows * columns);
        // Stored column by column, each two elements apart, between others.
        let mut memory = vec![f32::NAN; rows * columns * 2];
        for (at, &value) in values.iter().enumerate() {
            memory[2 * ((at % columns) * rows + at / columns)] = value;
        }
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        for (axis, shape) in [(0, [1, rows, columns]), (1, [rows, columns, 1])] {
            let (want, _) = expected(&values, shape, shape[1], Direction::Ascending, f32_order());
            let input = TensorHandle::new(handle.clone(), vec![rows, columns], vec![2, 2 * rows], F32);
            let (sorted, _) = sort(&client, input, Sorting { axis, ..all(Direction::Ascending) }, None).unwrap();
            assert!(download::<u32>(&client, sorted) == bits(&want));
        }
        let row = upload(&client, &values[..columns], &[columns], F32);
        let broadcast = TensorHandle::new(row.handle, vec![rows, columns], vec![0, 1], F32);
        let copied = values[..columns].repeat(rows);
        let (want, _) = expected(&copied, [rows, columns, 1], columns, Direction::Descending, f32_order());
        let (sorted, _) = sort(&client, broadcast, all(Direction::Descending), None).unwrap();
        assert!(download::<u32>(&client, sorted) == bits(&want));
    }
}

/// One type, all plans, both directions.
fn check_type<T: bytemuck::Pod + PartialEq + std::fmt::Debug>(
    dtype: ElemType,
    word_bits: u32,
    compare: impl Fn(&T, &T) -> Ordering + Copy,
    value: impl Fn(u64) -> T,
) {
    let client = client();
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let shape = [3, 200, 4];
    let values: Vec<T> = (0..2400).map(|_| value(rng.next_u64())).collect();
    let plans = plans(shape, 200, word_bits, dtype.size() == 8);
    for (direction, plan) in DIRECTIONS.into_iter().flat_map(|d| plans.iter().map(move |&p| (d, p))) {
        println!("{dtype} {direction:?} by {plan:?}");
        let (want, at) = expected(&values, shape, 200, direction, compare);
        let input = upload(&client, &values, &shape, dtype);
        let (sorted, indices) = sort(&client, input, all(direction), Some(plan)).unwrap();
        let sorted = download::<T>(&client, sorted);
        assert!(bytemuck::cast_slice::<T, u8>(&sorted) == bytemuck::cast_slice::<T, u8>(&want), "values");
        assert_eq!(download::<i32>(&client, indices), at);
    }
    let (want, at) = expected(&values, shape, 6, Direction::Descending, compare);
    let by_units = Selection { slots: 8, chunk: 20, selector: Selector::Unit };
    let lines = [12, 200, 1];
    let (of_lines, at_of_lines) = expected(&values, lines, 6, Direction::Descending, compare);
    let by_cubes = Selection { slots: 8, chunk: 68, selector: Selector::Cube };
    for (shape, want, at, selection) in [(shape, want, at, by_units), (lines, of_lines, at_of_lines, by_cubes)] {
        let input = upload(&client, &values, &shape, dtype);
        let (largest, indices) = sort(&client, input, largest_of(6), Some(Plan::Select(selection))).unwrap();
        let largest = download::<T>(&client, largest);
        assert!(bytemuck::cast_slice::<T, u8>(&largest) == bytemuck::cast_slice::<T, u8>(&want), "largest");
        assert_eq!(download::<i32>(&client, indices), at);
    }
}

/// A third of the draws are small, so that there are equal ones and ones that differ in one word only.
fn spread(draw: u64) -> u64 {
    match draw % 3 {
        0 => (draw >> 8) % 50,
        1 => ((draw >> 8) % 50) << 32,
        _ => draw,
    }
}

#[test]
fn other_types() {
    check_type::<i32>(I32, 32, i32::cmp, |draw| spread(draw) as i32);
    check_type::<u32>(U32, 32, u32::cmp, |draw| spread(draw) as u32);
    check_type::<i64>(I64, 32, i64::cmp, |draw| (spread(draw) as i64).wrapping_mul(if draw & 8 == 0 { 1 } else { -1 }));
    check_type::<u64>(U64, 32, u64::cmp, spread);
    check_type::<f64>(F64, 32, float_order(f64::is_nan, f64::total_cmp), |draw| f64::from_bits(spread(draw)));
    check_type::<i8>(I8, 8, i8::cmp, |draw| draw as i8);
    check_type::<i16>(I16, 16, i16::cmp, |draw| draw as i16);
    check_type::<u16>(U16, 16, u16::cmp, |draw| draw as u16);
    check_type::<f16>(F16, 19, float_order(f16::is_nan, f16::total_cmp), |draw| f16::from_bits(draw as u16));
}

#[test]
fn empty_tensors_and_refusals() {
    let client = client();
    let up = Sorting { axis: 0, ..all(Direction::Ascending) };
    let indices_as = |index: ElemType| Sorting { values: false, index: Some(index), ..up };
    for shape in [vec![0], vec![0, 5], vec![5, 0]] {
        let input = upload::<f32>(&client, &[], &shape, F32);
        let (sorted, indices) = sort(&client, input, Sorting { axis: shape.len() - 1, ..up }, None).unwrap();
        assert_eq!((sorted.shape().to_vec(), indices.shape().to_vec()), (shape.clone(), shape));
    }
    let one = || upload(&client, &[1f32], &[1], F32);
    let refused = sort(&client, one(), Sorting { axis: 1, ..up }, None).unwrap_err();
    assert!(matches!(&refused, KernelError::Shape { .. }), "{refused}");
    let refused = sort(&client, one(), Sorting { kept: Some(2), ..up }, None).unwrap_err().to_string();
    assert!(refused.contains("the first 2 in order") && refused.contains("at most 1"), "{refused}");
    assert!(matches!(sort(&client, one(), indices_as(F32), None), Err(KernelError::Dtype { .. })));
    let long = || upload(&client, &vec![1f32; 70_000], &[70_000], F32);
    let refused = sort(&client, long(), up, Some(Plan::Rank));
    assert!(matches!(refused, Err(KernelError::Plan { .. })));
    let few = Plan::Select(Selection { slots: 4, chunk: 64, selector: Selector::Unit });
    let refused = sort(&client, long(), Sorting { kept: Some(5), ..up }, Some(few));
    assert!(matches!(refused, Err(KernelError::Plan { .. })));
    if client.properties().supports_type(I16) {
        let refused = sort(&client, long(), indices_as(I16), None);
        assert!(matches!(refused, Err(KernelError::Index { counts: 32_768, length: 70_000, .. })));
    } else {
        skip("the device has no i16");
    }
    let unknown = TensorHandle::new_contiguous(vec![1], client.empty(4), ElemType::Bool);
    assert!(matches!(sort(&client, unknown, up, None), Err(KernelError::Dtype { .. })));
}

#[test]
fn planned_sorts_are_taken() {
    for (outer, bits) in (0..31).map(|bits| (1usize << bits, bits)).flat_map(|(n, b)| [(1, b), (n, 31 - b)]) {
        for length in [1usize << bits, (1 << bits) - 1] {
            for (bits, two_words) in [(8, false), (16, false), (19, false), (32, false), (32, true)] {
                // Without an element to keep nothing is launched.
                for kept in [1, 5, 32, 33, length].into_iter().filter(|kept| (1..=length).contains(kept)) {
                    let problem = Problem { outer, length, inner: 1, kept, bits, two_words };
                    for machine in [Machine::Gpu, Machine::Software] {
                        let plan = plan::plan(&problem, machine);
                        assert_eq!(plan.refuses(&problem), None, "{problem:?}");
                        assert!(Plan::candidates(&problem).contains(&plan), "{plan:?} for {problem:?}");
                        // `cargo xtask inspect` relies on it.
                        let by_chunks = matches!(plan, Plan::Radix(radix_sort::Plan::Chunks(_)));
                        assert!(machine == Machine::Software || !by_chunks, "chunks are for software drivers");
                    }
                }
            }
        }
    }
}

#[test]
fn a_selection_that_does_not_apply_is_refused() {
    let problem = Problem { outer: 1, length: 1 << 12, inner: 1, kept: 5, bits: 32, two_words: false };
    let refused = |slots, chunk, selector, problem: &Problem| {
        Plan::Select(Selection { slots, chunk, selector }).refuses(problem).is_some()
    };
    for (slots, chunk) in [(5, 10), (64, 2 * 64), (5, (1 << 14))] {
        assert!(!refused(slots, chunk, Selector::Unit, &problem), "{slots} slots, chunks of {chunk}");
    }
    for (slots, chunk) in [(8, 64), (32, 64), (8, 1 << 20)] {
        assert!(!refused(slots, chunk, Selector::Cube, &problem), "{slots} slots, chunks of {chunk}");
    }
    for selector in [Selector::Unit, Selector::Cube] {
        for (slots, chunk) in [
            (4, 64),
            (5, 9),
            (64 + 1, 1 << 12),
            (5, (1 << 20) + 1),
            (5, 1 << 32),
            (1 << 63, 1 << 12),
            (usize::MAX, usize::MAX),
        ] {
            assert!(refused(slots, chunk, selector, &problem), "{selector:?}, {slots} slots, chunks of {chunk}");
        }
    }
    assert!(refused(5, (1 << 14) + 1, Selector::Unit, &problem));
    // Slots that are no power of two, more than a unit has registers for, chunks and lines with no element for some of the
    // units, and lines beside others.
    for (slots, chunk) in [(6, 64), (64, 128), (8, 63)] {
        assert!(refused(slots, chunk, Selector::Cube, &problem), "{slots} slots, chunks of {chunk}");
    }
    assert!(refused(8, 64, Selector::Cube, &Problem { length: 63, ..problem }));
    assert!(refused(8, 64, Selector::Cube, &Problem { inner: 2, ..problem }));
}

/// Units of a cube have every 64th vector of a line, so that equal elements meet in another order than that of their indices.
#[test]
fn equal_elements_keep_their_order_in_a_selection() {
    let client = client();
    for (length, kept, direction) in [(300, 3, Direction::Ascending), (5000, 8, Direction::Descending)] {
        let values: Vec<f32> = (0..2 * length).map(|at| if at % 64 == 63 { 1.0 } else { 0.0 }).collect();
        let shape = [2, length, 1];
        let (want, at) = expected(&values, shape, kept, direction, f32_order());
        let by_cubes = |plan: &Plan| matches!(plan, Plan::Select(Selection { selector: Selector::Cube, .. }));
        let plans: Vec<_> = plans(shape, kept, 32, false).into_iter().filter(by_cubes).collect();
        assert!(plans.len() > 1, "{plans:?}");
        for plan in plans {
            println!("{direction:?} {kept} of {shape:?} by {plan:?}");
            let input = upload(&client, &values, &shape, F32);
            let (first, indices) =
                sort(&client, input, Sorting { kept: Some(kept), ..all(direction) }, Some(plan)).unwrap();
            assert_bits(&download(&client, first), &want);
            assert_eq!(download::<i32>(&client, indices), at);
        }
    }
}

#[test]
fn few_long_lines_are_selected_from_by_cubes_on_a_gpu() {
    let planned = |outer, length, inner, kept, machine| {
        let problem = Problem { outer, length, inner, kept, bits: 32, two_words: false };
        match plan::plan(&problem, machine) {
            Plan::Select(selection) => Some(selection.selector),
            _ => None,
        }
    };
    for (outer, length, kept) in [(1024, 1000, 5), (1, 1 << 20, 32), (4096, 50_257, 5), (1, 128, 1), (8192, 128, 8)] {
        assert_eq!(planned(outer, length, 1, kept, Machine::Gpu), Some(Selector::Cube), "{kept} of {outer} x {length}");
        assert_eq!(planned(outer, length, 1, kept, Machine::Software), Some(Selector::Unit));
        assert_eq!(planned(outer, length, 2, kept, Machine::Gpu), Some(Selector::Unit));
    }
    assert_eq!(planned(1024, 127, 1, 5, Machine::Gpu), Some(Selector::Unit));
    assert_eq!(planned(1 << 20, 128, 1, 5, Machine::Gpu), Some(Selector::Unit));
}
