//! Plans of scatter kernels: which problem gets which, that each gives the same bits where its limits are, and what it refuses.

use crate::harness::*;
use crate::scatter::{combine, random_indices, select_add, wide};
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::scatter::plan::{Bins, Problem, Radix, plan, plan_scatter};
use burn_deterministic_kernels::scatter::{self, Plan, Update, reference};
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::Client;
use cubecl::std::tensor::TensorHandle;
use half::f16;

const I64: ElemType = ElemType::Int(IntKind::I64);
const F16: ElemType = ElemType::Float(FloatKind::F16);

/// Single elements updated by `plan`.
fn update_points(
    client: &Client,
    plan: Plan,
    tensor: &[f32],
    indices: &[i32],
    values: &[f32],
    update: Update,
) -> Vec<f32> {
    let (tensor, values) = (upload(client, tensor, &[tensor.len()], F32), upload(client, values, &[values.len()], F32));
    let indices = upload(client, indices, &[indices.len()], I32);
    download(client, scatter::scatter_planned(client, plan, 0, tensor, indices, values, update).unwrap())
}

#[test]
fn one_row_of_many_takes_all_levels() {
    let client = client();
    // By source, as few rows of many are touched, and by row, on three levels of chunks.
    for (rows, sources) in [(300_000, 70_000), (257, 266_000)] {
        let (tensor, values) = (random_values(7, rows), random_values(8, sources));
        let row = |s: usize| if s.is_multiple_of(97) { s % rows } else { rows - 1 };
        let indices: Vec<i32> = (0..sources).map(|s| row(s) as i32).collect();
        let want = reference::scatter([1, rows, 1], &tensor, &wide(&indices), &values, |a, b| a + b);
        let bins = |run| Plan::Bins(Bins { bin_bits: 6, run });
        for plan in [Plan::Radix(Radix::new(rows, sources)), bins(2064), bins(30_000)] {
            println!("{sources} into {rows} by {plan:?}");
            let got = update_points(&client, plan, &tensor, &indices, &values, Update::Add);
            assert_bits(&got, &want);
        }
    }
}

/// Rows of exactly as many sources as fill chunks, and chunks of chunks, and of one more, in sources of one bin in turn.
#[test]
fn rows_of_whole_chunks_match_reference() {
    let client = client();
    let lengths = [0, 1, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 4160, 4161, 8192, 8193];
    let mut indices: Vec<i32> =
        lengths.iter().enumerate().flat_map(|(row, &length)| vec![row as i32; length]).collect();
    let sources = indices.len();
    // A stride without a factor in common visits each once.
    indices = (0..sources).map(|at| indices[at * 7919 % sources]).collect();
    assert!(!sources.is_multiple_of(7919));
    let (tensor, values) = (random_values(7, lengths.len()), random_values(8, sources));
    for update in [Update::Add, Update::Assign, Update::Max] {
        // Few rows: sums of floats have another order.
        let rows = if update == Update::Add { 257 } else { lengths.len() };
        let tensor: Vec<f32> = tensor.iter().copied().chain(random_values(9, rows - lengths.len())).collect();
        let want = reference::scatter([1, rows, 1], &tensor, &wide(&indices), &values, combine(update));
        let bins = [(0, 4096), (3, 101), (10, 20_000)].map(|(bin_bits, run)| Plan::Bins(Bins { bin_bits, run }));
        for plan in bins.into_iter().chain([Plan::Lists]) {
            println!("{update:?} by {plan:?}");
            let got = update_points(&client, plan, &tensor, &indices, &values, update);
            assert_bits(&got, &want);
        }
    }
}

/// As many values for one bin as one launch would take if no chunk were full: each that begins one ends an iteration early, so
/// that the unit goes on in another launch. With two bins, the other is done in the first.
#[test]
fn bins_go_on_in_another_launch() {
    let client = client();
    let (rows, sources) = (470, 233 * 4100);
    let (tensor, values) = (random_values(26, rows), random_values(27, sources));
    for (bin_bits, step) in [(0, 1), (1, 2)] {
        // Each row has one of the first values; all others are for 233 rows, with two bins for those of the first.
        let row = |source: usize| if source < 470 { source } else { source % 233 * step };
        let indices: Vec<i32> = (0..sources).map(|source| row(source) as i32).collect();
        let want = reference::scatter([1, rows, 1], &tensor, &wide(&indices), &values, |a, b| a + b);
        let got =
            update_points(&client, Plan::Bins(Bins { bin_bits, run: 16_000 }), &tensor, &indices, &values, Update::Add);
        assert_bits(&got, &want);
    }
}

/// Indices that lie apart, as keys of every way by key.
#[test]
fn keys_of_views_match_reference() {
    let client = client();
    let (rows, sources, distance) = (3000, 1700, 3);
    let apart = random_indices(40, sources * distance, rows + 9);
    let indices: Vec<i32> = apart.iter().copied().step_by(distance).collect();
    let (tensor, values) = (random_values(41, rows), random_values(42, sources));
    let want = reference::scatter([1, rows, 1], &tensor, &wide(&indices), &values, |a, b| a + b);
    let bins = Plan::Bins(Bins { bin_bits: 4, run: 112 });
    for plan in [Plan::Lists, bins, Plan::Rank, Plan::Radix(Radix::new(rows, sources))] {
        let whole = upload(&client, &apart, &[sources * distance], I32);
        let got = scatter::scatter_planned(
            &client,
            plan,
            0,
            upload(&client, &tensor, &[rows], F32),
            TensorHandle::new(whole.handle, vec![sources], vec![distance], whole.dtype),
            upload(&client, &values, &[sources], F32),
            Update::Add,
        );
        println!("{plan:?}");
        assert_bits(&download(&client, got.unwrap()), &want);
    }
}

/// Rows of four elements, one of them with more values than two levels of chunks hold, and lines that are as long.
#[test]
fn rows_and_lines_take_all_levels() {
    let client = client();
    for (shape @ [outer, rows, inner], sources) in [([1, 300, 4], 70_000), ([2, 300, 3], 9000), ([1, 300, 1], 20_000)] {
        let (tensor, values) = (random_values(7, outer * rows * inner), random_values(8, outer * sources * inner));
        let row = |s: usize| if s.is_multiple_of(97) { s % rows } else { rows - 1 };
        let indices: Vec<i32> = (0..sources).map(|s| row(s) as i32).collect();
        let want = reference::select_assign(shape, &tensor, &wide(&indices), &values, |a, b| a + b);
        for plan in [Plan::Lists, Plan::Lines] {
            if plan == Plan::Lines && sources > 50_000 {
                continue;
            }
            let got = select_add(&client, plan, shape, &tensor, &indices, &values);
            println!("{sources} into {shape:?} by {plan:?}");
            assert_bits(&got, &want);
        }
    }
}

/// Lines that lie apart: in fours where the distance is one of fours.
#[test]
fn lines_of_views_match_reference() {
    let client = client();
    let (outer, rows, sources) = (130, 12, 20);
    for distance in [20, 21, 24] {
        let (tensor, values) = (random_values(28, outer * distance), random_values(29, outer * distance));
        let indices = random_indices(30, outer * distance, rows);
        let dense = |length: usize| (0..outer).flat_map(move |line| (0..length).map(move |at| line * distance + at));
        let view = |handle: TensorHandle, length: usize| {
            TensorHandle::new(handle.handle, vec![outer, length], vec![distance, 1usize], handle.dtype)
        };
        let want = reference::scatter(
            [outer, rows, 1],
            &dense(rows).map(|at| tensor[at]).collect::<Vec<_>>(),
            &dense(sources).map(|at| i64::from(indices[at])).collect::<Vec<_>>(),
            &dense(sources).map(|at| values[at]).collect::<Vec<_>>(),
            |a, b| a + b,
        );
        let whole = [outer * distance];
        let got = scatter::scatter_planned(
            &client,
            Plan::Lines,
            1,
            view(upload(&client, &tensor, &whole, F32), rows),
            view(upload(&client, &indices, &whole, I32), sources),
            view(upload(&client, &values, &whole, F32), sources),
            Update::Add,
        );
        assert_bits(&download(&client, got.unwrap()), &want);
    }
}

/// Lists of rows of several elements: rows of as many sources as fill chunks, all in one block, at its ends and in the last
/// one, which is not whole, and sources that name none; of rows in vectors and not, along an inner and an outer axis.
#[test]
fn lists_match_reference() {
    let client = client();
    let few = [1, 63, 64, 65, 129, 4095, 4096, 4097];
    for (shape @ [outer, rows, inner], lengths) in [
        ([1, 1030, 16], &few[..]),
        ([2, 1030, 8], &few[..]),
        ([1, 300, 6], &few[..]),
        ([3, 65, 1], &few[..]),
        // One source more than one iteration takes each.
        ([1, 257, 4], &[4096, 4097, 8193, 8615][..]),
        ([2, 1030, 3], &[4096, 4097, 8193, 8615][..]),
        // Few rows of many, which are updated by source.
        ([1, 70_000, 8], &few[..]),
        ([2, 70_000, 3], &few[..]),
        ([1, 120_000, 2], &[4096, 4097, 8193, 8615][..]),
    ] {
        let named = [0, 31, 32, 63, 64, rows - 1, rows - 2, 33];
        let mut indices: Vec<i32> = vec![-1, rows as i32, i32::MAX, i32::MIN];
        indices.extend(named.iter().zip(lengths).flat_map(|(&row, &length)| vec![row as i32; length]));
        let sources = indices.len();
        indices = (0..sources).map(|at| indices[at * 7919 % sources]).collect();
        assert!(!sources.is_multiple_of(7919));
        let tensor = random_values(36, outer * rows * inner);
        // Close to 1: long products of others become subnormal, which some devices flush.
        let values: Vec<f32> = random_values(37, outer * sources * inner).iter().map(|x| 0.9375 + x / 16.0).collect();
        for update in [Update::Add, Update::Assign, Update::Mul, Update::Min, Update::Max] {
            if update == Update::Add && rows <= 256 {
                continue;
            }
            let want = reference::select_assign(shape, &tensor, &wide(&indices), &values, combine(update));
            let got = scatter::select_assign_planned(
                &client,
                Plan::Lists,
                1,
                upload(&client, &tensor, &shape, F32),
                upload(&client, &indices, &[sources], I32),
                upload(&client, &values, &[outer, sources, inner], F32),
                update,
            );
            println!("{update:?} of {sources} into {shape:?}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}

/// All sources for one row, in several launches.
#[test]
fn lists_of_most_sources_match_reference() {
    let client = client();
    let (shape @ [_, rows, inner], sources) = ([1, 1024, 4], 200_000);
    let (tensor, values) = (random_values(38, rows * inner), random_values(39, sources * inner));
    let indices: Vec<i32> = (0..sources).map(|s| if s % 4096 == 1 { (s / 4096) as i32 } else { 777 }).collect();
    let want = reference::select_assign(shape, &tensor, &wide(&indices), &values, |a, b| a + b);
    assert_bits(&select_add(&client, Plan::Lists, shape, &tensor, &indices, &values), &want);
}

/// Rows of several elements go by lists in every type, by row and, where they are many, by source; and values that lie apart.
#[test]
fn rows_of_other_types_match_reference() {
    rows_of_other_types(50);
    rows_of_other_types(3000);
}

fn rows_of_other_types(rows: usize) {
    let client = client();
    let (inner, sources) = (3, 700);
    let indices = random_indices(31, sources, rows);
    let index = || upload(&client, &indices, &[sources], I32);
    let whole = |seed, length| random_values(seed, length).into_iter().map(|x| (x * 1e9) as i64).collect::<Vec<i64>>();
    let (tensor, values) = (whole(32, rows * inner), whole(33, sources * inner));
    let want = reference::select_assign([1, rows, inner], &tensor, &wide(&indices), &values, i64::wrapping_mul);
    let (t, v) = (upload(&client, &tensor, &[rows, inner], I64), upload(&client, &values, &[sources, inner], I64));
    match scatter::select_assign_planned(&client, Plan::Lists, 0, t, index(), v, Update::Mul) {
        Err(KernelError::Dtype { dtype, .. }) => skip(format_args!("the device has no {dtype}")),
        got => assert_eq!(download::<i64>(&client, got.unwrap()), want),
    }
    let half = |seed, length| random_values(seed, length).into_iter().map(f16::from_f32).collect::<Vec<f16>>();
    let (tensor, values) = (half(34, rows * inner), half(35, sources * inner));
    let widened = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
    let shape = [1, rows, inner];
    let want = reference::select_assign(shape, &widened(&tensor), &wide(&indices), &widened(&values), |a, b| a + b);
    let want: Vec<f16> = want.into_iter().map(f16::from_f32).collect();
    let (t, v) = (upload(&client, &tensor, &[rows, inner], F16), upload(&client, &values, &[sources, inner], F16));
    match scatter::select_assign_planned(&client, Plan::Lists, 0, t, index(), v, Update::Add) {
        Err(KernelError::Dtype { dtype, .. }) => skip(format_args!("the device has no {dtype}")),
        got => assert_eq!(download::<f16>(&client, got.unwrap()), want),
    }
    let (tensor, values) = (random_values(36, rows * inner), random_values(37, sources * inner));
    let want = reference::select_assign(shape, &tensor, &wide(&indices), &values, |a, b| a + b);
    // The values of one source are a column of the buffer, and so are the elements of one row.
    let turned = |values: &[f32], length: usize| {
        let turned: Vec<f32> = (0..inner * length).map(|at| values[at % length * inner + at / length]).collect();
        let handle = upload(&client, &turned, &[inner, length], F32);
        TensorHandle::new(handle.handle, vec![length, inner], vec![1, length], F32)
    };
    let (t, v) = (turned(&tensor, rows), turned(&values, sources));
    let got = scatter::select_assign_planned(&client, Plan::Lists, 0, t, index(), v, Update::Add);
    assert_bits(&download(&client, got.unwrap()), &want);
}

#[test]
fn refusals_say_what_a_plan_takes() {
    let client = client();
    let floats = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
    let index = |shape: &[usize]| upload(&client, &vec![0i32; shape.iter().product()], shape, I32);
    let text = |result: Result<TensorHandle, KernelError>| result.unwrap_err().to_string();
    let most = Update::Max;
    let walk = scatter::scatter_planned(&client, Plan::Walk, 0, floats(&[3]), index(&[4097]), floats(&[4097]), most);
    assert_eq!(text(walk), "scatter::scatter: a walk of 4097 sources loops 4097 times, want at most 4096");
    let many = [60_001];
    let rank = scatter::scatter_planned(&client, Plan::Rank, 0, floats(&[3]), index(&many), floats(&many), most);
    assert_eq!(text(rank), "scatter::scatter: a rank of 60001 sources loops 60001 times, want at most 60000");
    let many_rows = [200_001];
    let by = |plan| {
        let (index, values) = (index(&many_rows), floats(&[200_001, 2]));
        text(scatter::select_assign_planned(&client, plan, 0, floats(&[3, 2]), index, values, most))
    };
    assert!(by(Plan::Lists).contains("want at most 200000 sources and 491520000 rows"));
    assert!(by(Plan::Bins(Bins { bin_bits: 2, run: 64 })).contains("want single elements with totals of 32 bits"));
    for bins in [Bins { bin_bits: 2, run: 0 }, Bins { bin_bits: 11, run: 64 }] {
        let plan = Plan::Bins(bins);
        let refused = scatter::scatter_planned(&client, plan, 0, floats(&[3]), index(&many), floats(&many), most);
        assert!(text(refused).contains("want runs of at least 1 source and bins of at most 10 bits"));
    }
    let rows = floats(&[300_000]);
    let bins = Plan::Bins(Bins { bin_bits: 0, run: 64 });
    let long = scatter::scatter_planned(&client, bins, 0, rows, index(&[9]), floats(&[9]), most);
    assert!(text(long).contains("want bins of at most 240000 rows"));
    // Passes that leave bits of the rows out, or are none, and runs of none.
    for (passes, digit_bits, run) in [(1, 1, 64), (0, 4, 64), (2, 0, 64), (1, 11, 64), (1, 4, 0)] {
        let plan = Plan::Radix(Radix { passes, digit_bits, run });
        let refused = scatter::scatter_planned(&client, plan, 0, floats(&[3]), index(&[9]), floats(&[9]), most);
        assert!(text(refused).contains("and passes by 1 to 10 of 2 bits"), "{plan:?}");
    }
    let line = scatter::scatter_planned(&client, Plan::Lines, 0, floats(&[3]), index(&many), floats(&many), most);
    assert_eq!(text(line), "scatter::scatter: a line of 60001 sources loops 60010 times, want at most 60000");
    let run = Plan::Bins(Bins { bin_bits: 2, run: 60_000 });
    let long = scatter::scatter_planned(&client, run, 0, floats(&[3]), index(&many), floats(&many), most);
    assert!(text(long).contains("want at most 60000"));
    let run = Plan::Radix(Radix { passes: 1, digit_bits: 4, run: 60_000 });
    let long = scatter::scatter_planned(&client, run, 0, floats(&[3]), index(&many), floats(&many), most);
    assert_eq!(text(long), "scatter::scatter: a radix sort of 60001 sources loops 60016 times, want at most 60000");
}

#[test]
fn plans_are_pinned() {
    for machine in [Machine::Gpu, Machine::Software] {
        let class_gather = Problem { outer: 128, rows: 10, sources: 1, inner: 1 };
        assert_eq!(plan_scatter(&class_gather, F32, machine), Plan::Walk);
        let histogram = Problem { outer: 1, rows: 64, sources: 1 << 20, inner: 1 };
        let sorted = Plan::Radix(Radix { passes: 1, digit_bits: 7, run: 512 });
        assert_eq!(plan_scatter(&histogram, F32, machine), sorted);
    }
    let embedding = Problem { outer: 1, rows: 1000, sources: 1 << 14, inner: 64 };
    assert_eq!(plan(&embedding, F32, Machine::Gpu), Plan::Radix(Radix { passes: 2, digit_bits: 5, run: 128 }));
    assert_eq!(plan(&embedding, F32, Machine::Software), Plan::Lists);
    let tokens = Problem { outer: 1, rows: 30_000, sources: 2048, inner: 256 };
    assert_eq!(plan(&tokens, F32, Machine::Gpu), Plan::Rank);
    assert_eq!(plan(&tokens, F32, Machine::Software), Plan::Lists);
    // One launch for a million steps, or for fewer where launches are cheap and cores are few.
    let short = Problem { outer: 1, rows: 1000, sources: 131, inner: 1 };
    assert_eq!(plan(&short, F32, Machine::Software), Plan::Walk);
    assert_eq!(plan(&Problem { sources: 132, ..short }, F32, Machine::Software), Plan::Lists);
    assert_eq!(plan(&Problem { sources: 1000, ..short }, F32, Machine::Gpu), Plan::Walk);
    // The gradient of one element a line, and of few rows of a table; one line too short to be copied.
    let loss = Problem { outer: 1024, rows: 1000, sources: 1, inner: 1 };
    assert_eq!(plan_scatter(&loss, F32, Machine::Software), Plan::Touched);
    assert_eq!(plan_scatter(&loss, F32, Machine::Gpu), Plan::Walk);
    assert_eq!(plan_scatter(&Problem { outer: 65, ..loss }, F32, Machine::Software), Plan::Walk);
    let lookup = Problem { outer: 1, rows: 10_000, sources: 32, inner: 64 };
    assert_eq!(plan(&lookup, I64, Machine::Software), Plan::Touched);
    assert_eq!(plan(&Problem { sources: 33, ..lookup }, I64, Machine::Software), Plan::Lists);
    // Many words, or rows of a table, and lines: of gather's gradient, of few sources, few of them.
    let words = Problem { outer: 1, rows: 10_000, sources: 1 << 13, inner: 64 };
    assert_eq!(plan(&words, F32, Machine::Software), Plan::Lists);
    assert_eq!(plan(&words, I64, Machine::Software), Plan::Lists);
    // Few rows of many words, of which one unit would link all.
    assert!(matches!(plan(&Problem { rows: 255, ..words }, F32, Machine::Software), Plan::Radix(_)));
    assert_eq!(plan(&words, F32, Machine::Gpu), Plan::Radix(Radix { passes: 4, digit_bits: 4, run: 64 }));
    let many = Problem { sources: 1 << 20, ..words };
    assert!(matches!(plan(&many, F32, Machine::Software), Plan::Radix(_)));
    let lines = Problem { outer: 1024, rows: 1000, sources: 1000, inner: 1 };
    assert_eq!(plan_scatter(&lines, F32, Machine::Software), Plan::Lines);
    assert_eq!(plan_scatter(&Problem { sources: 63, ..lines }, F32, Machine::Software), Plan::Lines);
    assert_eq!(plan_scatter(&Problem { sources: 62, ..lines }, F32, Machine::Software), Plan::Lists);
    assert_eq!(plan_scatter(&Problem { sources: 16, ..lines }, F32, Machine::Software), Plan::Touched);
    assert!(matches!(plan_scatter(&Problem { outer: 100, ..lines }, F32, Machine::Software), Plan::Bins(_)));
    assert!(matches!(plan_scatter(&lines, F32, Machine::Gpu), Plan::Radix(_)));
    assert!(matches!(plan_scatter(&lines, I64, Machine::Software), Plan::Radix(_)));
    let points = Problem { outer: 1, rows: 1 << 18, sources: 1 << 20, inner: 1 };
    let bins = Plan::Bins(Bins { bin_bits: 6, run: 8208 });
    assert_eq!(plan_scatter(&points, F32, Machine::Software), bins);
    let scattered = Problem { sources: 1 << 14, ..points };
    assert_eq!(plan_scatter(&scattered, F32, Machine::Software), Plan::Lists);
    let sorted = Plan::Radix(Radix { passes: 2, digit_bits: 10, run: 4096 });
    assert_eq!(plan_scatter(&points, F32, Machine::Gpu), sorted);
    assert_eq!(plan_scatter(&points, I64, Machine::Software), sorted);
}
