//! Scatter kernels against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::gather;
use burn_deterministic_kernels::scatter::{self, Indexed, Plan, Problem, Update, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::{bf16, f16};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const U32: ElemType = ElemType::UInt(UIntKind::U32);
const I64: ElemType = ElemType::Int(IntKind::I64);
const NUMERIC: [Update; 5] = [Update::Assign, Update::Add, Update::Mul, Update::Min, Update::Max];

/// Indices of which about one in sixteen is outside `0..rows`, on either side.
pub fn random_indices(seed: u64, len: usize, rows: usize) -> Vec<i32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let outside = |draw: u32| if draw & 1 == 0 { -1 - (draw >> 20) as i32 } else { rows as i32 + (draw >> 20) as i32 };
    (0..len)
        .map(|_| match (rng.random::<u32>(), rng.random::<u32>()) {
            (which, draw) if which % 16 == 0 => outside(draw),
            (_, draw) => (draw as usize % rows.max(1)) as i32,
        })
        .collect()
}

pub fn wide(indices: &[i32]) -> Vec<i64> {
    indices.iter().map(|&index| i64::from(index)).collect()
}

/// The update's operation on `f32`, as the contract states it.
pub fn combine(update: Update) -> impl Fn(f32, f32) -> f32 {
    move |left, right| match update {
        Update::Assign => right,
        Update::Add => left + right,
        Update::Mul => left * right,
        Update::Min if right.is_nan() || (right < left && !left.is_nan()) => right,
        Update::Max if right.is_nan() || (right > left && !left.is_nan()) => right,
        Update::Min | Update::Max => left,
        Update::Or => f32::from(left != 0.0 || right != 0.0),
    }
}

/// An update of f32 along the middle axis of `shape`, with an index for each value or for each position.
fn problem([outer, rows, inner]: [usize; 3], positions: usize, indexed: Indexed, update: Update) -> Problem {
    Problem { outer, rows, positions, inner, indexed, update, dtype: F32 }
}

fn check_scatter(client: &Client, shape @ [outer, rows, inner]: [usize; 3], positions: usize, update: Update) {
    let (into, from) = (outer * rows * inner, outer * positions * inner);
    let (tensor, mut values) = (random_values(1, into), random_values(2, from));
    if update == Update::Mul {
        // Close to 1: long products of others become subnormal, which some devices flush.
        values.iter_mut().for_each(|value| *value = 0.9375 + *value / 16.0);
    }
    let indices = random_indices(3, from, rows);
    let want = reference::scatter(shape, &tensor, &wide(&indices), &values, combine(update));
    let plans = Plan::candidates(&problem(shape, positions, Indexed::Value, update));
    assert!(plans.len() > 1, "{shape:?}: {plans:?}");
    for plan in plans {
        let got = scatter::scatter_planned(
            client,
            1,
            upload(client, &tensor, &shape, F32),
            upload(client, &indices, &[outer, positions, inner], I32),
            upload(client, &values, &[outer, positions, inner], F32),
            update,
            plan,
        );
        println!("scatter {update:?} of {positions} into {shape:?} by {plan:?}");
        assert_bits(&download(client, got.unwrap()), &want);
    }
}

/// Rows along the middle axis of `shape`, updated at `indices` by every plan, against the reference.
fn check_rows(client: &Client, shape @ [outer, rows, inner]: [usize; 3], indices: &[i32], update: Update) {
    let positions = indices.len();
    let tensor = random_values(4, outer * rows * inner);
    let mut values = random_values(5, outer * positions * inner);
    if update == Update::Mul {
        values.iter_mut().for_each(|value| *value = 0.9375 + *value / 16.0);
    }
    let want = reference::select_assign(shape, &tensor, &wide(indices), &values, combine(update));
    for plan in Plan::candidates(&problem(shape, positions, Indexed::Position, update)) {
        println!("select_assign {update:?} of {positions} into {shape:?} by {plan:?}");
        let got = scatter::select_assign_planned(
            client,
            1,
            upload(client, &tensor, &shape, F32),
            upload(client, indices, &[positions], I32),
            upload(client, &values, &[outer, positions, inner], F32),
            update,
            plan,
        );
        assert_bits(&download(client, got.unwrap()), &want);
    }
}

#[test]
fn scatter_add_matches_reference() {
    let client = client();
    for rows in [1, 2, 17, 64] {
        for positions in [1, 2, 15, 16, 17, 1023, 1024, 1025, 2048, 2049, 4097] {
            check_scatter(&client, [1, rows, 1], positions, Update::Add);
        }
    }
    for shape in [[3, 5, 7], [1, 10, 33], [128, 10, 1], [2, 1, 64], [5, 64, 1], [130, 12, 1]] {
        for positions in [1, 7, 100] {
            check_scatter(&client, shape, positions, Update::Add);
        }
    }
    // Several blocks of several columns.
    for shape in [[1, 256, 1], [1, 257, 1], [3, 10, 1], [1, 7, 5], [2, 3, 4]] {
        check_scatter(&client, shape, 5000, Update::Add);
    }
    // Many rows, and more cubes along an axis than one grid has: a cube has 256 rows of one line.
    check_scatter(&client, [1, 70_001, 1], 30_011, Update::Add);
    check_scatter(&client, [66_000, 129, 1], 1, Update::Add);
}

/// Lines with indices of their own, which their columns share.
#[test]
fn lines_match_reference() {
    let client = client();
    for (shape @ [lines, rows, inner], positions) in [([3, 40, 4], 5000), ([2, 7, 5], 2100), ([5, 300, 1], 1500)] {
        let (tensor, values) = (random_values(4, lines * rows * inner), random_values(5, lines * positions * inner));
        let indices = random_indices(6, lines * positions, rows);
        let per_value: Vec<i32> = indices.iter().flat_map(|&index| vec![index; inner]).collect();
        let want = reference::scatter(shape, &tensor, &wide(&per_value), &values, |a, b| a + b);
        for plan in Plan::candidates(&problem(shape, positions, Indexed::Line, Update::Add)) {
            let got = scatter::update_lines_planned(
                &client,
                upload(&client, &tensor, &shape, F32),
                upload(&client, &indices, &[lines, positions], I32),
                upload(&client, &values, &[lines, positions, inner], F32),
                Update::Add,
                plan,
            );
            println!("lines {shape:?} of {positions} by {plan:?}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}

/// Rows of eight elements whose distances are and are not multiples of four, and rows that are one row: plans that read four
/// elements at a time give the bits of those that read one.
#[test]
fn rows_apart_match_reference() {
    let client = client();
    let (rows, positions, inner) = (30, 2100, 8);
    let indices = random_indices(6, positions, rows);
    for distance in [8, 12, 13, 0] {
        let apart = |seed: u64, length: usize| {
            let memory = random_values(seed, (length - 1) * distance + inner);
            let values = (0..length * inner).map(|at| memory[at / inner * distance + at % inner]).collect::<Vec<f32>>();
            let handle = upload(&client, &memory, &[memory.len()], F32).handle;
            (values, TensorHandle::new(handle, vec![length, inner], vec![distance, 1], F32))
        };
        let ((tensor, tensor_view), (values, values_view)) = (apart(4, rows), apart(5, positions));
        let want = reference::select_assign([1, rows, inner], &tensor, &wide(&indices), &values, |a, b| a + b);
        for plan in Plan::candidates(&problem([1, rows, inner], positions, Indexed::Position, Update::Add)) {
            println!("rows {distance} apart by {plan:?}");
            let index = upload(&client, &indices, &[positions], I32);
            let (tensor, values) = (tensor_view.clone(), values_view.clone());
            let got = scatter::select_assign_planned(&client, 0, tensor, index, values, Update::Add, plan);
            assert_bits(&download(&client, got.unwrap()), &want);
        }
        let want: Vec<f32> = (0..positions * inner)
            .map(|at| {
                usize::try_from(indices[at / inner])
                    .ok()
                    .filter(|&row| row < rows)
                    .map_or(0.0, |row| tensor[row * inner + at % inner])
            })
            .collect();
        let index = upload(&client, &indices, &[positions], I32);
        assert_bits(&download(&client, gather::select(&client, 0, tensor_view, index).unwrap()), &want);
    }
}

/// Subnormal numbers, which a device may flush where it computes: whatever it makes of them, every plan makes the same.
#[test]
fn subnormal_numbers_are_the_same_by_every_plan() {
    let client = client();
    let (rows, positions) = (10, 5000);
    let mut values = vec![-0.0f32; positions];
    // A subnormal value alone, among others of -0, as the last of a block, and several.
    for (position, value) in [(7, -1e-41), (1023, 2e-41), (1024, 3e-41), (2050, 1e-41), (2060, 1e-40), (4999, -3e-42)] {
        values[position] = value;
    }
    let indices: Vec<i32> = (0..positions as i32).map(|p| if p == 7 { 9 } else { p % 5 }).collect();
    let tensor = [1e-40f32, -1e-41, -0.0, 0.0, 1.0, 1e-40, -1e-41, -0.0, 0.0, 1e-40];
    let results =
        Plan::candidates(&problem([1, rows, 1], positions, Indexed::Position, Update::Add)).into_iter().map(|plan| {
            let (tensor, values) =
                (upload(&client, &tensor, &[rows], F32), upload(&client, &values, &[positions], F32));
            let index = upload(&client, &indices, &[positions], I32);
            let got = scatter::select_assign_planned(&client, 0, tensor, index, values, Update::Add, plan);
            (plan, download::<f32>(&client, got.unwrap()))
        });
    let results: Vec<_> = results.collect();
    for (plan, got) in &results {
        println!("{plan:?} and {:?}", results[0].0);
        assert_bits(got, &results[0].1);
    }
}

#[test]
fn every_update_matches_reference() {
    let client = client();
    for update in NUMERIC {
        check_scatter(&client, [3, 5, 2], 70, update);
        check_scatter(&client, [1, 2, 1], 200, update);
        check_scatter(&client, [1, 2, 3], 2100, update);
        check_rows(&client, [2, 30, 4], &random_indices(7, 2100, 30), update);
    }
}

#[test]
fn select_assign_matches_reference() {
    let client = client();
    // Rows of 4, 8 and 64 are read in fours.
    let cases = [
        ([1, 10, 64], 100),
        ([3, 7, 5], 64),
        ([2, 100, 33], 4099),
        ([1, 3, 2], 9000),
        ([3, 300, 8], 9000),
        ([1, 1000, 3], 100),
        ([4, 1000, 1], 7),
        ([2, 60_000, 1], 14_000),
        ([2, 60_000, 4], 14_000),
    ];
    for (shape @ [_, rows, _], positions) in cases {
        // All in the first hundred rows, so that the rows of the largest case have many sources.
        check_rows(&client, shape, &random_indices(6, positions, rows.min(100)), Update::Add);
    }
}

/// Rows whose sources are of one block, just fill it, or are one more, among sources of others; runs as long as the
/// shortest that has a total of its own, and one shorter; one row with nearly all sources.
#[test]
fn rows_of_whole_blocks_match_reference() {
    let client = client();
    for (shape, lengths) in [
        ([1, 40, 1], &[0, 1, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025, 2048, 2049][..]),
        ([1, 40, 4], &[1023, 1024, 1025, 15, 16, 17][..]),
        ([2, 40, 3], &[1024, 1, 1025, 2049][..]),
        ([1, 300_000, 1], &[69_000, 1000][..]),
    ] {
        let follow: Vec<i32> = lengths.iter().enumerate().flat_map(|(row, &n)| vec![row as i32; n]).collect();
        let positions = follow.len();
        assert!(!positions.is_multiple_of(7919));
        // A stride without a factor in common visits each once.
        let mixed: Vec<i32> = (0..positions).map(|at| follow[at * 7919 % positions]).collect();
        for indices in [follow, mixed] {
            check_rows(&client, shape, &indices, Update::Add);
        }
    }
}

/// More sources than the windows of 16 hold in one launch's bound, so that shorter runs have totals.
#[test]
fn one_row_of_many_sources_matches_reference() {
    let client = client();
    let positions = (1 << 21) + 77;
    let rows = 300;
    // One in seven is for another row: runs of one row are cut everywhere.
    let indices: Vec<i32> = (0..positions).map(|p| if p % 7 == 0 { (p / 7 % rows) as i32 } else { 299 }).collect();
    check_rows(&client, [1, rows, 1], &indices, Update::Add);
}

/// The bits of a row that no source names, or that only -0 is added to, are kept.
#[test]
fn sums_into_few_rows_keep_what_they_do_not_change() {
    let client = client();
    let sources = 5000;
    let signalling = f32::from_bits(0xff81_2345);
    let tensor = [-0.0, 0.0, signalling, signalling, 1.0, -0.0, 2.0];
    // Rows 0 to 2 have no source, 3 and 4 sources of -0, 5 one of +0, 6 one of NaN.
    let (indices, mut values): (Vec<i32>, _) = ((0..sources).map(|s| 3 + s % 2).collect(), vec![-0.0f32; 5000]);
    let mut indices = indices;
    (indices[600], values[600]) = (5, 0.0);
    (indices[4999], values[4999]) = (6, f32::NAN);
    for plan in Plan::candidates(&problem([1, 7, 1], 5000, Indexed::Value, Update::Add)) {
        let got = scatter::scatter_planned(
            &client,
            0,
            upload(&client, &tensor, &[7], F32),
            upload(&client, &indices, &[5000], I32),
            upload(&client, &values, &[5000], F32),
            Update::Add,
            plan,
        );
        let got: Vec<f32> = download(&client, got.unwrap());
        println!("{plan:?}");
        assert_bits(&got[..6], &[-0.0, 0.0, signalling, signalling, 1.0, 0.0]);
        assert!(got[6].is_nan());
    }
}

#[test]
fn scatter_nd_and_gather_nd_match_reference() {
    let client = client();
    let shape = [4, 5, 6];
    let tensor = random_values(9, 120);
    for (parts, tuples) in [(1, 3), (2, 50), (3, 700), (2, 5000)] {
        let width: usize = shape[parts..].iter().product();
        let values = random_values(10, tuples * width);
        let indices = random_indices(11, tuples * parts, 4);
        let keys = reference::tuple_rows(&shape[..parts], &wide(&indices));
        let index = || upload(&client, &indices, &[tuples, parts], I32);
        let values_shape: Vec<usize> = [tuples].iter().chain(&shape[parts..]).copied().collect();

        let rows = shape[..parts].iter().product();
        let add = |a, b| a + b;
        let want = reference::scatter_nd(&shape[..parts], width, &tensor, &wide(&indices), &values, add);
        for plan in Plan::candidates(&problem([1, rows, width], tuples, Indexed::Position, Update::Add)) {
            let values = upload(&client, &values, &values_shape, F32);
            let tensor = upload(&client, &tensor, &shape, F32);
            let got = scatter::scatter_nd_planned(&client, tensor, index(), values, Update::Add, plan);
            println!("{tuples} tuples of {parts} by {plan:?}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }

        let row = |key: &Option<usize>| match key {
            Some(row) => tensor[row * width..(row + 1) * width].to_vec(),
            None => vec![0.0; width],
        };
        let want: Vec<f32> = keys.iter().flat_map(row).collect();
        let got = gather::gather_nd(&client, upload(&client, &tensor, &shape, F32), index()).unwrap();
        assert_eq!(got.shape().to_vec(), values_shape);
        assert_bits(&download(&client, got), &want);
    }
}

#[test]
fn min_and_max_define_nan_and_signed_zero() {
    let client = client();
    let specials = [0.0, -0.0, f32::NAN, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY];
    // Every ordered pair of values onto every starting value.
    let mut tensor = Vec::new();
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for &start in &specials {
        for &first in &specials {
            for &second in &specials {
                indices.extend([tensor.len() as i32; 2]);
                values.extend([first, second]);
                tensor.push(start);
            }
        }
    }
    for update in [Update::Min, Update::Max] {
        let want = reference::scatter([1, tensor.len(), 1], &tensor, &wide(&indices), &values, combine(update));
        let left_fold: Vec<f32> = (0..tensor.len())
            .map(|at| values[2 * at..2 * at + 2].iter().fold(tensor[at], |left, &right| combine(update)(left, right)))
            .collect();
        assert_bits(&want, &left_fold);
        let got = scatter::scatter(
            &client,
            0,
            upload(&client, &tensor, &[tensor.len()], F32),
            upload(&client, &indices, &[indices.len()], I32),
            upload(&client, &values, &[values.len()], F32),
            update,
        );
        assert_bits(&download(&client, got.unwrap()), &want);
    }
}

/// Runs one case in another type by all plans.
fn check_type<T, I>(
    client: &Client,
    dtypes: (ElemType, ElemType),
    of: impl Fn(f32) -> T,
    index_of: impl Fn(i32) -> I,
    update: Update,
    expect: impl Fn(&[T], &[i64], &[T]) -> Vec<T>,
) where
    T: bytemuck::Pod + PartialEq + std::fmt::Debug,
    I: bytemuck::Pod,
{
    check_type_of(client, 400, dtypes, of, index_of, update, expect);
}

/// [`check_type`] of that many sources.
fn check_type_of<T, I>(
    client: &Client,
    sources: usize,
    (dtype, index_dtype): (ElemType, ElemType),
    of: impl Fn(f32) -> T,
    index_of: impl Fn(i32) -> I,
    update: Update,
    expect: impl Fn(&[T], &[i64], &[T]) -> Vec<T>,
) where
    T: bytemuck::Pod + PartialEq + std::fmt::Debug,
    I: bytemuck::Pod,
{
    let rows = 6;
    let tensor: Vec<T> = random_values(14, rows).into_iter().map(&of).collect();
    let values: Vec<T> = random_values(15, sources).into_iter().map(&of).collect();
    let indices = random_indices(16, sources, rows);
    let device_indices: Vec<I> = indices.iter().map(|&index| index_of(index)).collect();
    let want = expect(&tensor, &wide(&indices), &values);
    let of_type = Problem { dtype, ..problem([1, rows, 1], sources, Indexed::Position, update) };
    for plan in Plan::candidates(&of_type) {
        let got = scatter::select_assign_planned(
            client,
            0,
            upload(client, &tensor, &[rows], dtype),
            upload(client, &device_indices, &[sources], index_dtype),
            upload(client, &values, &[sources], dtype),
            update,
            plan,
        );
        match got {
            Err(KernelError::Dtype { dtype, .. }) => skip(format_args!("the device has no {dtype}")),
            got => assert_eq!(download::<T>(client, got.unwrap()), want, "{dtype} by {index_dtype}, {plan:?}"),
        }
    }
}

fn by_scatter<T: Copy>(combine: impl Fn(T, T) -> T) -> impl Fn(&[T], &[i64], &[T]) -> Vec<T> {
    move |tensor, indices, values| reference::scatter([1, tensor.len(), 1], tensor, indices, values, &combine)
}

#[test]
fn other_types_match_reference() {
    let client = client();
    let narrow = |index: i32| index;
    let float = ElemType::Float;
    let through_f32 = |tensor: &[f32], indices: &[i64], values: &[f32]| {
        reference::scatter([1, tensor.len(), 1], tensor, indices, values, |a, b| a + b)
    };
    let halves = |x: &[f16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    check_type(&client, (float(FloatKind::F16), I32), f16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&halves(t), i, &halves(v)).into_iter().map(f16::from_f32).collect()
    });
    let brains = |x: &[bf16]| x.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    check_type(&client, (float(FloatKind::BF16), I32), bf16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&brains(t), i, &brains(v)).into_iter().map(bf16::from_f32).collect()
    });
    check_type_of(&client, 5000, (float(FloatKind::F16), I32), f16::from_f32, narrow, Update::Add, |t, i, v| {
        through_f32(&halves(t), i, &halves(v)).into_iter().map(f16::from_f32).collect()
    });
    check_type_of(&client, 5000, (F32, I64), |x| x, i64::from, Update::Add, through_f32);
    check_type(&client, (float(FloatKind::F64), I32), f64::from, narrow, Update::Add, by_scatter(|a, b| a + b));
    // Whole numbers, of which a sum is exact in every order, over the whole range: an f64 total is not taken for -0.
    let tiny = |x: f32| f64::from((x * 1024.0) as i32) * f64::MIN_POSITIVE;
    check_type_of(&client, 5000, (float(FloatKind::F64), I32), tiny, narrow, Update::Add, by_scatter(|a, b| a + b));
    check_type(&client, (F32, I64), |x| x, i64::from, Update::Add, by_scatter(|a, b| a + b));
    // An index that only fits 64 bits must not be taken for its low half.
    let high = |index: i32| i64::from(index) + if index % 2 == 0 { 1 << 32 } else { 0 };
    check_type(
        &client,
        (F32, I64),
        |x| x,
        high,
        Update::Add,
        |t, i, v| {
            let seen: Vec<i64> = i.iter().map(|&index| if index % 2 == 0 { -1 } else { index }).collect();
            by_scatter(|a: f32, b| a + b)(t, &seen, v)
        },
    );
    check_type(&client, (F32, U32), |x| x, |index| index as u32, Update::Add, by_scatter(|a, b| a + b));
    let whole = |x: f32| (x * 1e9) as i32;
    check_type(&client, (I32, I32), whole, narrow, Update::Add, by_scatter(i32::wrapping_add));
    check_type(&client, (I32, I32), whole, narrow, Update::Mul, by_scatter(i32::wrapping_mul));
    check_type(&client, (I32, I32), whole, narrow, Update::Min, by_scatter(i32::min));
    check_type(&client, (I64, I32), |x| i64::from(whole(x)) << 20, narrow, Update::Max, by_scatter(i64::max));
    let bit = |x: f32| u32::from(x > 1.5);
    check_type(&client, (U32, I32), bit, narrow, Update::Or, by_scatter(|a, b| a | b));
    let byte = |x: f32| u8::from(x > 1.5);
    check_type(&client, (ElemType::UInt(UIntKind::U8), I32), byte, narrow, Update::Or, by_scatter(|a, b| a | b));
}

#[test]
fn strides_do_not_change_bits() {
    let client = client();
    // One block and several.
    for sources in [150, 5000] {
        let (rows, inner) = (6, 4);
        let (tensor, values) = (random_values(17, rows * inner), random_values(18, sources * inner));
        let line = random_indices(19, sources, rows);
        let repeated: Vec<i32> = line.iter().flat_map(|&index| [index; 4]).collect();
        let update = |plan, tensor, indices, values| {
            let got = scatter::scatter_planned(&client, 0, tensor, indices, values, Update::Add, plan);
            download::<f32>(&client, got.unwrap())
        };
        let transpose = |data: &[f32], rows: usize| -> TensorHandle {
            let swapped: Vec<f32> = (0..data.len()).map(|e| data[e % rows * inner + e / rows]).collect();
            let handle = upload(&client, &swapped, &[inner, rows], F32).handle;
            TensorHandle::new(handle, vec![rows, inner], vec![1, rows], F32)
        };
        let every_third = |data: &[f32], rows: usize| -> TensorHandle {
            let spread: Vec<f32> = data.iter().flat_map(|&x| [x, f32::NAN, f32::NAN]).collect();
            let handle = upload(&client, &spread, &[spread.len()], F32).handle;
            TensorHandle::new(handle, vec![rows, inner], vec![3 * inner, 3], F32)
        };
        for plan in Plan::candidates(&problem([1, rows, inner], sources, Indexed::Value, Update::Add)) {
            let index = || upload(&client, &repeated, &[sources, inner], I32);
            let plain = |data: &[f32], rows| upload(&client, data, &[rows, inner], F32);
            let want = update(plan, plain(&tensor, rows), index(), plain(&values, sources));
            let broadcast = TensorHandle::new(
                upload(&client, &line, &[sources], I32).handle,
                vec![sources, inner],
                vec![1usize, 0],
                I32,
            );
            assert_bits(&update(plan, transpose(&tensor, rows), broadcast, transpose(&values, sources)), &want);
            assert_bits(&update(plan, every_third(&tensor, rows), index(), every_third(&values, sources)), &want);
        }
    }
}

#[test]
fn empty_operands_are_copies() {
    let client = client();
    let tensor = random_values(20, 6);
    let empty = |shape: &[usize], dtype| TensorHandle::new_contiguous(shape.to_vec(), client.empty(4), dtype);
    let whole = || upload(&client, &tensor, &[2, 3], F32);
    let got = scatter::scatter(&client, 1, whole(), empty(&[2, 0], I32), empty(&[2, 0], F32), Update::Add);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let got = scatter::select_assign(&client, 0, whole(), empty(&[0], I32), empty(&[0, 3], F32), Update::Add);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let got = scatter::scatter_nd(&client, whole(), empty(&[0, 1], I32), empty(&[0, 3], F32), Update::Add);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let index = || upload(&client, &[0, 1], &[2, 1], I32);
    let got = scatter::scatter(&client, 1, empty(&[2, 0], F32), index(), whole_column(&client), Update::Add);
    assert_eq!(got.unwrap().shape().to_vec(), [2, 0]);
    // Every index is outside an axis of length zero.
    let got = gather::gather(&client, 1, empty(&[2, 0], F32), index());
    assert_bits(&download(&client, got.unwrap()), &[0.0, 0.0]);
    let got = gather::select(&client, 0, whole(), empty(&[0], I32)).unwrap();
    assert_eq!(got.shape().to_vec(), [0, 3]);
}

fn whole_column(client: &Client) -> TensorHandle {
    upload(client, &[1.0f32, 2.0], &[2, 1], F32)
}

#[test]
fn repeats_give_one_result_where_order_matters() {
    let client = client();
    let sources = 1 << 16;
    // Privatised, and sorted.
    for rows in [64, 1000] {
        let (tensor, values) = (random_values(21, rows), random_values(22, sources));
        let indices = random_indices(23, sources, rows);
        let add =
            |indices: &[i64], values: &[f32]| reference::scatter([1, rows, 1], &tensor, indices, values, |a, b| a + b);
        let want = add(&wide(&indices), &values);
        let (mut late_first, mut turned) = (values.clone(), wide(&indices));
        late_first.reverse();
        turned.reverse();
        let other = add(&turned, &late_first);
        assert!(want.iter().zip(&other).any(|(a, b)| a.to_bits() != b.to_bits()), "the order shows on this input");

        let tensor = upload(&client, &tensor, &[rows], F32);
        let index = upload(&client, &indices, &[sources], I32);
        let values = upload(&client, &values, &[sources], F32);
        for _ in 0..10 {
            let got = scatter::scatter(&client, 0, tensor.clone(), index.clone(), values.clone(), Update::Add);
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}

/// A software driver ends a shader's loops after 65535 iterations: the last source must count all the same.
#[test]
fn the_last_of_many_sources_of_one_row_counts() {
    let client = client();
    let sources = 100_000;
    let mut values = vec![1.0f32; sources];
    values[sources - 1] = 1e6;
    for (update, want) in [(Update::Add, 1_099_999.0), (Update::Assign, 1e6), (Update::Max, 1e6)] {
        let tensor = upload(&client, &[0.0f32], &[1], F32);
        let values = upload(&client, &values, &[sources], F32);
        let indices = upload(&client, &vec![0i32; sources], &[sources], I32);
        let tuples = upload(&client, &vec![0i32; sources], &[sources, 1], I32);
        for got in [
            scatter::scatter(&client, 0, tensor.clone(), indices.clone(), values.clone(), update),
            scatter::select_assign(&client, 0, tensor.clone(), indices, values.clone(), update),
            scatter::scatter_nd(&client, tensor, tuples, values, update),
        ] {
            assert_eq!(download::<f32>(&client, got.unwrap()), [want], "{update:?}");
        }
    }
}

#[test]
fn sums_are_close_to_exact() {
    let client = client();
    let (rows, sources) = (5, 40_000);
    let values = random_values(24, sources);
    let indices = random_indices(25, sources, rows);
    let got = scatter::scatter(
        &client,
        0,
        upload(&client, &vec![0f32; rows], &[rows], F32),
        upload(&client, &indices, &[sources], I32),
        upload(&client, &values, &[sources], F32),
        Update::Add,
    );
    let got: Vec<f32> = download(&client, got.unwrap());
    for (row, &sum) in got.iter().enumerate() {
        let mine = || (0..sources).filter(|&s| indices[s] == row as i32).map(|s| f64::from(values[s]));
        let (exact, magnitude) = (mine().sum::<f64>(), mine().map(f64::abs).sum::<f64>());
        // A value passes at most 1023 additions in its block, 39 in the chain of 40 blocks, and the one to the tensor;
        // each rounds by at most half an ulp.
        let bound = (1023.0 + 39.0 + 1.0) * f64::from(f32::EPSILON) / 2.0 * magnitude;
        let error = (f64::from(sum) - exact).abs();
        assert!(error <= bound, "row {row}: {sum} is {error:e} from {exact}, allowed {bound:e}");
    }
}

#[test]
fn refusals_say_what_does_not_fit() {
    let client = client();
    let floats = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
    let index = |shape: &[usize]| upload(&client, &vec![0i32; shape.iter().product()], shape, I32);
    let text = |result: Result<TensorHandle, KernelError>| result.unwrap_err().to_string();
    let add = Update::Add;
    let got = text(scatter::scatter(&client, 0, floats(&[3, 2]), index(&[5, 2]), floats(&[4, 2]), add));
    assert_eq!(got, "scatter::scatter: indices [5, 2] and values [4, 2] differ in shape");
    let got = text(scatter::scatter(&client, 0, floats(&[3, 2]), index(&[4, 1]), floats(&[4, 1]), add));
    assert_eq!(got, "scatter::scatter: values [4, 1] into tensor [3, 2] along axis 0, want equal other axes");
    let got = text(scatter::select_assign(&client, 0, floats(&[3]), index(&[5]), floats(&[4]), add));
    assert!(got.contains("indices [5] do not number the rows of values [4]"), "{got}");
    let got = text(scatter::scatter_nd(&client, floats(&[3]), index(&[5, 2]), floats(&[5]), add));
    assert!(got.contains("want a last axis of 1 to 1 index parts"), "{got}");
    let got = text(scatter::scatter(&client, 0, floats(&[3]), floats(&[4]), floats(&[4]), add));
    assert!(got.contains("index and count with i32, i64 or u32"), "{got}");
}
