//! `grid_sample_2d` by every filter, of which Burn's CPU backend has one only: against the filters' definitions.

use super::{Measured, error};
use crate::bits::floats;
use burn::prelude::*;
use burn::tensor::ops::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;

/// As for other operations: sixteen roundings of what a result is made of.
const BOUND: f64 = 8.0;

const BATCH: usize = 2;
const CHANNELS: usize = 3;
const HEIGHT: usize = 5;
const WIDTH: usize = 4;
const PLACES: [usize; 2] = [30, 40];

/// Where a number of a grid is along an axis of `length` pixels.
fn place(number: f64, length: usize, padding: GridSamplePaddingMode, align: bool) -> f64 {
    let n = length as f64;
    let (p, low, span) = match align {
        true => ((number + 1.0) * (n - 1.0) / 2.0, 0.0, n - 1.0),
        false => ((number + 1.0) * n / 2.0 - 0.5, -0.5, n),
    };
    match padding {
        GridSamplePaddingMode::Reflection => {
            let turn = (p - low).rem_euclid(2.0 * span);
            turn.min(2.0 * span - turn) + low
        }
        _ => p,
    }
}

/// The pixel that an index of an axis stands for, if any.
fn pixel(at: i64, length: usize, padding: GridSamplePaddingMode, align: bool) -> Option<usize> {
    let last = length as i64 - 1;
    let at = match padding {
        GridSamplePaddingMode::Zeros => return (0..=last).contains(&at).then_some(at as usize),
        GridSamplePaddingMode::Border => at.clamp(0, last),
        GridSamplePaddingMode::Reflection if align => {
            let turn = at.rem_euclid(2 * last);
            turn.min(2 * last - turn)
        }
        GridSamplePaddingMode::Reflection => {
            let turn = at.rem_euclid(2 * last + 2);
            turn.min(2 * last + 1 - turn)
        }
    };
    Some(at as usize)
}

/// The weight of a pixel at a distance, before a sum of one is made, and the sum of the absolute terms of its formula.
fn weight(mode: &InterpolateMode, x: f64) -> (f64, f64) {
    let x = x.abs();
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    let of_one_term = |weight: f64| (weight, weight.abs());
    match mode {
        InterpolateMode::Bilinear => of_one_term((1.0 - x).max(0.0)),
        InterpolateMode::Bicubic if x <= 1.0 => ((1.25 * x - 2.25) * x * x + 1.0, (1.25 * x + 2.25) * x * x + 1.0),
        InterpolateMode::Bicubic if x < 2.0 => {
            (((-0.75 * x + 3.75) * x - 6.0) * x + 3.0, ((0.75 * x + 3.75) * x + 6.0) * x + 3.0)
        }
        InterpolateMode::Lanczos3 if x < 3.0 => of_one_term(sinc(x) * sinc(x / 3.0)),
        _ => of_one_term(0.0),
    }
}

/// The indices that a place reads, their weights, and the terms of these.
fn taps(mode: &InterpolateMode, p: f64) -> Vec<(i64, [f64; 2])> {
    if let InterpolateMode::Nearest = mode {
        return vec![(p.round_ties_even() as i64, [1.0; 2])];
    }
    let floor = p.floor() as i64;
    let taps: Vec<_> = (floor - 2..=floor + 3).map(|at| (at, weight(mode, p - at as f64))).collect();
    let sum: f64 = taps.iter().map(|(_, (weight, _))| weight).sum();
    taps.into_iter().map(|(at, (weight, terms))| (at, [weight / sum, terms / sum])).collect()
}

/// A way to sample.
struct Way {
    mode: InterpolateMode,
    padding: GridSamplePaddingMode,
    align: bool,
}

impl Way {
    /// The value at a place of an image, and the sum of the absolute terms it is made of.
    fn value(&self, image: &[f64], [x, y]: [f64; 2]) -> (f64, f64) {
        let (mut value, mut size) = (0.0, 0.0);
        let along = |number, length| taps(&self.mode, place(number, length, self.padding, self.align));
        for (row, down) in along(y, HEIGHT) {
            for (column, across) in along(x, WIDTH) {
                let row = pixel(row, HEIGHT, self.padding, self.align);
                let column = pixel(column, WIDTH, self.padding, self.align);
                if let (Some(row), Some(column)) = (row, column) {
                    let [term, terms] = [0, 1].map(|n| down[n] * across[n] * image[row * WIDTH + column]);
                    value += term;
                    size += terms.abs();
                }
            }
        }
        (value, size)
    }

    /// What an error of each number in its last place makes of the value: a number is added to one first.
    fn terms(&self, image: &[f64], at: [f64; 2]) -> f64 {
        let step = 1e-6;
        let slope = |axis: usize| {
            let moved = |by: f64| {
                let mut at = at;
                at[axis] += by;
                self.value(image, at).0
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        };
        (0..2).map(|axis| slope(axis).abs() * (at[axis].abs() + 1.0)).sum()
    }

    /// Whether another pixel would be the nearest one if the place were rounded.
    fn is_between(&self, [x, y]: [f64; 2]) -> bool {
        let near_half = |p: f64| ((p - p.floor()) - 0.5).abs() < 1e-5;
        matches!(self.mode, InterpolateMode::Nearest)
            && [(x, WIDTH), (y, HEIGHT)].iter().any(|&(g, n)| near_half(place(g, n, self.padding, self.align)))
    }
}

#[test]
fn every_filter_and_padding() {
    let device = crate::deterministic_device();
    let mut measured = Measured::new(super::table::GRIDS);
    let shape = [BATCH, CHANNELS, HEIGHT, WIDTH];
    let values = floats(shape);
    let images: Vec<f64> = values.clone().try_into_vec::<f32>().expect("f32").into_iter().map(f64::from).collect();
    let input = Tensor::<4>::from_data(values, &device);
    let [rows, columns] = PLACES;
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let numbers: Vec<f32> = (0..BATCH * rows * columns * 2).map(|_| rng.random_range(-1.8f32..1.8)).collect();
    let grid = Tensor::<4>::from_data(TensorData::new(numbers.clone(), [BATCH, rows, columns, 2]), &device);
    let modes =
        [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Bicubic, InterpolateMode::Lanczos3];
    let paddings = [GridSamplePaddingMode::Zeros, GridSamplePaddingMode::Border, GridSamplePaddingMode::Reflection];
    for (mode, padding, align) in modes
        .iter()
        .flat_map(|mode| paddings.iter().flat_map(move |padding| [false, true].map(|align| (mode, padding, align))))
    {
        let way = Way { mode: mode.clone(), padding: *padding, align };
        let name = format!("grid_sample_2d, {mode:?}, {padding:?}, {align}");
        let options = GridSampleOptions::new(mode.clone()).with_padding_mode(*padding).with_align_corners(align);
        let results = input.clone().grid_sample_2d(grid.clone(), options).into_data();
        let results = results.try_into_vec::<f32>().expect("f32");
        let area = rows * columns;
        for (n, &got) in results.iter().enumerate() {
            let (plane, place) = (n / area, n / area / CHANNELS * area + n % area);
            let image = &images[plane * HEIGHT * WIDTH..][..HEIGHT * WIDTH];
            let at = [numbers[2 * place], numbers[2 * place + 1]].map(f64::from);
            if way.is_between(at) {
                continue;
            }
            let (wanted, size) = way.value(image, at);
            let bound = if let InterpolateMode::Nearest = mode { f64::MIN_POSITIVE } else { BOUND };
            let ulps = error(got, wanted, size + way.terms(image, at));
            measured.note(&name, bound, ulps, || format!("at {at:?}: {got} for {wanted}"));
        }
    }
    measured.conclude();
}
