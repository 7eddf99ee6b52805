//! Random tensors have the distributions they are asked for: 10^6 draws each, through the tensor API.
//!
//! Seeds are fixed, so a test passes always or never. Critical values are those of the 0.1 % level.

use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{RandomStream, set_random_seed};

const DRAWS: usize = 1_000_000;

/// `K(x) = 0.999` of the Kolmogorov distribution: `sqrt(ln(2 / 0.001) / 2)`.
const KOLMOGOROV: f64 = 1.9495;

/// The 99.9 % quantile of the standard normal distribution.
const NORMAL: f64 = 3.0902;

/// The 99.9 % quantile of chi-square: E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", 1931.
fn chi_square_quantile(degrees: f64) -> f64 {
    let variance = 2.0 / (9.0 * degrees);
    degrees * (1.0 - variance + NORMAL * variance.sqrt()).powi(3)
}

fn floats(seed: u64, distribution: Distribution) -> Vec<f64> {
    let device = crate::deterministic_device();
    set_random_seed(seed);
    Tensor::<2>::random([1000, DRAWS / 1000], distribution, &device).into_data().iter::<f64>().collect()
}

fn integers(seed: u64, distribution: Distribution) -> Vec<i64> {
    let device = crate::deterministic_device();
    set_random_seed(seed);
    Tensor::<1, Int>::random([DRAWS], distribution, &device).into_data().iter::<i64>().collect()
}

/// Kolmogorov and Smirnov's test of `values` against a distribution function.
fn assert_distributed(what: &str, mut values: Vec<f64>, cumulative: impl Fn(f64) -> f64) {
    assert_eq!(values.len(), DRAWS);
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().fold(0f64, |distance, (i, &value)| {
        let p = cumulative(value);
        distance.max((p - i as f64 / n).abs()).max((p - (i + 1) as f64 / n).abs())
    });
    assert!(distance * n.sqrt() < KOLMOGOROV, "{what}: the distance is {distance}");
}

/// Pearson's test of counts against probabilities.
fn assert_counts(what: &str, counts: &[u64], probability: impl Fn(usize) -> f64) {
    let n = counts.iter().sum::<u64>() as f64;
    let statistic: f64 = counts
        .iter()
        .enumerate()
        .map(|(cell, &count)| {
            let expected = n * probability(cell);
            (count as f64 - expected).powi(2) / expected
        })
        .sum();
    let critical = chi_square_quantile((counts.len() - 1) as f64);
    assert!(statistic < critical, "{what}: chi-square is {statistic}, critical {critical}");
}

/// The standard normal distribution function: G. Marsaglia, "Evaluating the Normal Distribution", 2004.
fn normal_cumulative(x: f64) -> f64 {
    let (mut sum, mut previous, mut term, mut odd) = (x, 0.0, x, 1.0);
    while sum != previous {
        previous = sum;
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x - 0.918_938_533_204_672_7).exp()
}

fn count(values: &[i64], low: i64, cells: usize) -> Vec<u64> {
    let mut counts = vec![0; cells];
    values.iter().for_each(|value| counts[usize::try_from(value - low).expect("not below the range")] += 1);
    counts
}

#[test]
fn the_tests_themselves_can_fail() {
    for (x, p) in [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (-2.5, 0.006_209_665_325_776_1)] {
        assert!((normal_cumulative(x) - p).abs() < 1e-14, "{x}");
    }
    for (degrees, quantile) in [(1.0, 10.83), (12.0, 32.91), (255.0, 330.52), (999.0, 1143.9)] {
        // One degree of freedom errs most, to the lenient side.
        assert!((0.999..1.04).contains(&(chi_square_quantile(degrees) / quantile)), "{degrees}");
    }
    let fails = |body: fn()| std::panic::catch_unwind(body).is_err();
    let uniform = |seed| floats(seed, Distribution::Default);
    let shifted = uniform(1).into_iter().map(|u| u * 0.997).collect::<Vec<_>>();
    assert!(std::panic::catch_unwind(|| assert_distributed("shifted", shifted, |u| u)).is_err());
    assert!(fails(|| assert_counts("biased", &[501_800, 498_200], |_| 0.5)));
}

#[test]
fn uniform() {
    assert_distributed("[0, 1)", floats(1, Distribution::Default), |u| u);
    let values = floats(2, Distribution::Uniform(-3.0, 5.5));
    assert!(values.iter().all(|value| (-3.0..5.5).contains(value)));
    assert_distributed("[-3, 5.5)", values, |u| (u + 3.0) / 8.5);
}

#[test]
fn normal() {
    assert_distributed("N(0, 1)", floats(3, Distribution::Normal(0.0, 1.0)), normal_cumulative);
    let cumulative = |x| normal_cumulative((x + 4.0) / 2.5);
    assert_distributed("N(-4, 2.5)", floats(4, Distribution::Normal(-4.0, 2.5)), cumulative);
}

/// Beyond four standard deviations, where Kolmogorov and Smirnov's test sees nothing.
#[test]
fn the_tails_of_the_normal_distribution() {
    let values = floats(5, Distribution::Normal(0.0, 1.0));
    let bounds = [-4.0, -3.5, -3.0, -2.5, 2.5, 3.0, 3.5, 4.0];
    let mut counts = [0; 9];
    values.iter().for_each(|value| counts[bounds.partition_point(|bound| bound <= value)] += 1);
    let cumulative = |cell: usize| bounds.get(cell).map_or(1.0, |&bound| normal_cumulative(bound));
    let below = |cell: usize| cell.checked_sub(1).map_or(0.0, cumulative);
    assert_counts("the tails of N(0, 1)", &counts, |cell| cumulative(cell) - below(cell));
}

/// Normal numbers are made two at a time, from one radius and one angle.
#[test]
fn the_two_numbers_of_a_pair_are_independent() {
    let values = floats(16, Distribution::Normal(0.0, 1.0));
    let n = (DRAWS / 2) as f64;
    let pairs = || values.chunks_exact(2).map(|pair| (pair[0], pair[1]));

    let cell = |value| ((normal_cumulative(value) * 16.0) as usize).min(15);
    let mut counts = [0; 256];
    pairs().for_each(|(x, y)| counts[16 * cell(x) + cell(y)] += 1);
    assert_counts("pairs in cells", &counts, |_| 1.0 / 256.0);

    // The angle, and far out, where the numbers of a pair would share a large radius.
    let mut octants = [0; 8];
    pairs().for_each(|(x, y)| {
        octants[usize::from(x > 0.0) + 2 * usize::from(y > 0.0) + 4 * usize::from(x.abs() > y.abs())] += 1;
    });
    assert_counts("octants", &octants, |_| 1.0 / 8.0);
    let outside = 2.0 * normal_cumulative(-2.0);
    let both = pairs().filter(|(x, y)| x.abs() > 2.0 && y.abs() > 2.0).count() as u64;
    let rest = (DRAWS / 2) as u64 - both;
    let probability = outside * outside;
    assert_counts("both far out", &[both, rest], |cell| [probability, 1.0 - probability][cell]);

    // E x y = 0 with variance 1, E (x^2 - 1)(y^2 - 1) = 0 with variance 4.
    let product: f64 = pairs().map(|(x, y)| x * y).sum();
    let squares: f64 = pairs().map(|(x, y)| (x * x - 1.0) * (y * y - 1.0)).sum();
    for (what, deviation) in [("numbers", product / n.sqrt()), ("squares", squares / (4.0 * n).sqrt())] {
        assert!(deviation.abs() < NORMAL, "{what}: {deviation} standard deviations");
    }
}

#[test]
fn the_moments_of_the_normal_distribution() {
    let values = floats(17, Distribution::Normal(0.0, 1.0));
    // E z^k, and the variance of z^k: E z^2k - (E z^k)^2, where E z^2k is (2k - 1)!!.
    for (power, moment, variance) in
        [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (5, 0.0, 945.0), (6, 15.0, 10_170.0)]
    {
        let mean = values.iter().map(|value| value.powi(power)).sum::<f64>() / DRAWS as f64;
        let deviation = (mean - moment) / f64::sqrt(variance / DRAWS as f64);
        assert!(deviation.abs() < NORMAL, "moment {power}: {mean}, {deviation} standard deviations");
    }
}

#[test]
fn bernoulli() {
    for (seed, probability) in [(6, 0.5), (7, 0.3), (8, 0.001)] {
        let ones = |values: &[f64]| {
            assert!(values.iter().all(|value| [0.0, 1.0].contains(value)));
            values.iter().sum::<f64>() as u64
        };
        let of_floats = ones(&floats(seed, Distribution::Bernoulli(probability)));
        let integers = integers(seed, Distribution::Bernoulli(probability));
        let of_integers = ones(&integers.into_iter().map(|value| value as f64).collect::<Vec<_>>());
        for ones in [of_floats, of_integers] {
            let probabilities = [1.0 - probability, probability];
            assert_counts("Bernoulli", &[DRAWS as u64 - ones, ones], |cell| probabilities[cell]);
        }
    }
}

#[test]
fn integers_of_a_range() {
    let ranges =
        [(9, 0, 255), (10, 0, 1000), (11, -7, 6), (12, -1000, -871), (13, 0, 2), (14, -1, 65_535), (18, -1, 65_536)];
    for (seed, low, high) in ranges {
        let distribution = match high {
            255 => Distribution::Default,
            _ => Distribution::Uniform(low as f64, high as f64),
        };
        let counts = count(&integers(seed, distribution), low, (high - low) as usize);
        let cells = counts.len() as f64;
        assert_counts(&format!("integers of [{low}, {high})"), &counts, |_| 1.0 / cells);
    }
}

/// Neighbours in a tensor, the same element of two operations, and of two sibling streams.
#[test]
fn draws_do_not_know_of_each_other() {
    let device = crate::deterministic_device();
    let root = RandomStream::from_seed(15);
    let draw = || Tensor::<1>::random([DRAWS], Distribution::Default, &device).into_data();
    let values = |data: TensorData| data.iter::<f64>().collect::<Vec<_>>();
    let (first, second) = {
        let _draws = root.fork_index(0).enter();
        (values(draw()), values(draw()))
    };
    let sibling = {
        let _draws = root.fork_index(1).enter();
        values(draw())
    };
    let neighbour: Vec<f64> = first.iter().skip(1).chain(&first[..1]).copied().collect();
    for (what, other) in [("neighbours", neighbour), ("operations", second), ("siblings", sibling)] {
        let cell = |value: &f64| (value * 16.0) as usize;
        let mut counts = [0; 256];
        first.iter().zip(&other).for_each(|(a, b)| counts[16 * cell(a) + cell(b)] += 1);
        assert_counts(what, &counts, |_| 1.0 / 256.0);
        let covariance: f64 = first.iter().zip(&other).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum();
        let correlation = covariance * 12.0 / DRAWS as f64;
        assert!(correlation.abs() * (DRAWS as f64).sqrt() < NORMAL, "{what}: the correlation is {correlation}");
    }
}
