//! Grid sampling against its reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::coarsening;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::grid_sample::*;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::std::tensor::TensorHandle;
use half::f16;

const FILTERS: [Filter; 4] = [Filter::Nearest, Filter::Linear, Filter::Cubic, Filter::Lanczos3];

/// Every way to sample.
fn all() -> impl Iterator<Item = SampleParams> {
    let paddings = [Padding::Zeros, Padding::Border, Padding::Reflection];
    FILTERS.into_iter().flat_map(move |filter| {
        paddings
            .into_iter()
            .flat_map(move |padding| [false, true].map(|align_corners| SampleParams { filter, padding, align_corners }))
    })
}

/// NaN is the device's own.
#[track_caller]
fn assert_bits_or_nan(got: &[f32], want: &[f32]) {
    let canonical = |values: &[f32]| values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect::<Vec<_>>();
    assert_bits(&canonical(got), &canonical(want));
}

#[track_caller]
fn check(shape: [usize; 4], grid: &[f32], [rows, columns]: [usize; 2], params: SampleParams) {
    println!("{shape:?} at {rows} x {columns}, {params:?}");
    let client = client();
    if params.filter == Filter::Lanczos3 && !divides_like_the_host(&client) {
        return skip("the device's quotients are not correctly rounded");
    }
    let [batch, channels, ..] = shape;
    let values = random_values(1, shape.iter().product());
    let want = reference::sample(&values, shape, grid, rows * columns, params);
    let input = upload(&client, &values, &shape, F32);
    let places = upload(&client, grid, &[batch, rows, columns, 2], F32);
    let problem = coarsening::Problem { elements: want.len(), shared: channels, iterations: 1 };
    let plans = coarsening::Plan::candidates(&problem);
    assert!([Machine::Gpu, Machine::Software].iter().all(|&m| plans.contains(&coarsening::plan(&problem, m))));
    for plan in plans.into_iter().map(Some).chain([None]) {
        let got = sample(&client, input.clone(), places.clone(), params, plan).expect("samples");
        assert_eq!(got.shape()[..], [batch, channels, rows, columns]);
        assert_bits_or_nan(&download(&client, got), &want);
    }
    // The grid's two numbers an image apart instead of next to each other.
    let area = rows * columns;
    let apart: Vec<f32> =
        (0..grid.len()).map(|n| grid[(n / (2 * area)) * 2 * area + n % area * 2 + n / area % 2]).collect();
    let places = upload(&client, &apart, &[batch, 2, rows, columns], F32);
    let strides = vec![2 * area, columns, 1, area];
    let places = TensorHandle::new(places.handle, vec![batch, rows, columns, 2], strides, F32);
    let got = sample(&client, input.clone(), places, params, None).expect("samples");
    assert_bits_or_nan(&download(&client, got), &want);
    // Column after column.
    let turned: Vec<f32> = (0..grid.len())
        .map(|n| {
            let (place, number) = (n / 2 % area, n % 2);
            grid[n / (2 * area) * 2 * area + (place % rows * columns + place / rows) * 2 + number]
        })
        .collect();
    let places = upload(&client, &turned, &[batch, columns, rows, 2], F32);
    let strides = vec![2 * area, 2, 2 * rows, 1];
    let places = TensorHandle::new(places.handle, vec![batch, rows, columns, 2], strides, F32);
    let got = sample(&client, input, places, params, None).expect("samples");
    assert_bits_or_nan(&download(&client, got), &want);
}

#[test]
fn every_way_matches_reference() {
    for params in all() {
        for shape in [[2, 3, 5, 4], [1, 2, 1, 1], [1, 1, 2, 3]] {
            // Places up to twice outside the image.
            check(shape, &random_values(2, shape[0] * 6 * 7 * 2), [6, 7], params);
        }
    }
}

#[test]
fn units_of_several_channels_leave_out_those_that_do_not_exist() {
    for params in all() {
        check([2, 7, 5, 4], &random_values(5, 2 * 61 * 67 * 2), [61, 67], params);
    }
}

#[test]
fn places_on_and_between_pixels() {
    // Halves and whole pixels of four, far outside, and what is no place at all.
    let mut numbers: Vec<f32> = (-24..=24).map(|n| n as f32 / 8.0).collect();
    numbers.extend([1e10, -1e10, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -0.0, 1e-40]);
    let grid: Vec<f32> = numbers.iter().flat_map(|&y| numbers.iter().flat_map(move |&x| [x, y])).collect();
    for params in all() {
        check([1, 1, 4, 4], &grid, [numbers.len(), numbers.len()], params);
    }
}

#[test]
fn half_types_round_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    let halves = |seed, length| random_values(seed, length).into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let widened = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    let (values, grid) = (halves(1, 60), halves(2, 84));
    for params in all() {
        let input = upload(&client, &values, &[1, 3, 5, 4], dtype);
        let places = upload(&client, &grid, &[1, 6, 7, 2], dtype);
        let got = sample(&client, input, places, params, None).expect("samples");
        let want = reference::sample(&widened(&values), [1, 3, 5, 4], &widened(&grid), 42, params);
        assert_eq!(
            download::<f16>(&client, got),
            want.into_iter().map(f16::from_f32).collect::<Vec<_>>(),
            "{params:?}"
        );
    }
}

#[test]
fn identity() {
    let client = client();
    let values = random_values(3, 20);
    let grid: Vec<f32> = (0..20).flat_map(|n| [(n % 5) as f32 / 2.0 - 1.0, (n / 5) as f32 / 1.5 - 1.0]).collect();
    for params in all().filter(|params| params.align_corners) {
        let input = upload(&client, &values, &[1, 1, 4, 5], F32);
        let places = upload(&client, &grid, &[1, 4, 5, 2], F32);
        let got = download::<f32>(&client, sample(&client, input, places, params, None).expect("samples"));
        let close = |(got, want): (&f32, &f32)| (got - want).abs() < 1e-5;
        assert!(got.iter().zip(&values).all(close), "{params:?}: {got:?}, want {values:?}");
    }
}

#[test]
fn empty_operands() {
    let params = SampleParams { filter: Filter::Linear, padding: Padding::Zeros, align_corners: false };
    check([0, 3, 4, 4], &[], [2, 2], params);
    check([2, 3, 4, 4], &[], [0, 2], params);
}

#[test]
fn more_samples_than_one_axis_of_a_grid_holds() {
    let params = SampleParams { filter: Filter::Nearest, padding: Padding::Border, align_corners: false };
    let client = client();
    let channels = 16_777_217;
    let values = random_values(4, channels);
    let input = upload(&client, &values, &[1, channels, 1, 1], F32);
    let places = upload(&client, &[0.0f32, 0.0], &[1, 1, 1, 2], F32);
    let got = sample(&client, input, places, params, None).expect("samples");
    assert_bits(&download(&client, got), &values);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let params = SampleParams { filter: Filter::Linear, padding: Padding::Zeros, align_corners: false };
    let client = client();
    let up = |shape: &[usize]| upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
    for (input, grid) in [([2, 1, 4, 4], [1, 3, 3, 2]), ([1, 1, 4, 4], [1, 3, 3, 3]), ([1, 1, 0, 4], [1, 3, 3, 2])] {
        let refused = sample(&client, up(&input), up(&grid), params, None);
        assert!(matches!(refused, Err(KernelError::Shape { kernel: "grid_sample::sample", .. })), "{input:?} {grid:?}");
    }
}
