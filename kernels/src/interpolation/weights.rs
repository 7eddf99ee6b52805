//! The weights with which the outputs of a resized axis read its inputs: a sparse matrix of `n` inputs and `m` outputs, by output
//! for [`resize`](super::resize), by input for its gradient.
//!
//! Output `o` has the input coordinate `x`, an exact fraction:
//!
//! | filter | `x` |
//! |---|---|
//! | nearest | `o * n / m` |
//! | nearest exact | `(2 o + 1) * n / (2 m)` |
//! | others, corners aligned | `o * (n - 1) / max(m - 1, 1)` |
//! | others | `((2 o + 1) * n - m) / (2 m)` |
//!
//! The nearest filters read `floor(x)`. The others read a window of 2, 4 or 6 inputs around `x`, with weights by
//! distance: the triangle, the cubic with `a = -0.75` (R. G. Keys, "Cubic convolution interpolation for digital image
//! processing", 1981), the windowed sinc of three lobes (C. E. Duchon, "Lanczos filtering in one and two dimensions",
//! 1979). Taps outside the axis are moved to its ends, and weights of the same input are added; Lanczos leaves them
//! out, and divides by the sum of the weights that are left.
//!
//! Weights are computed in f64 on the host, and rounded once to the type of the chains.

use std::f64::consts::PI;

/// How an image is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The input at or before the coordinate.
    Nearest,
    /// The input whose pixel covers the centre of the output's.
    NearestExact,
    /// Two inputs an axis.
    Linear,
    /// Four inputs an axis.
    Cubic,
    /// Six inputs an axis.
    Lanczos3,
}

impl Filter {
    /// Inputs that an output reads along an axis, at most.
    pub(super) fn taps(self) -> usize {
        let (before, after) = self.reach();
        (before + 1 + after) as usize
    }

    /// Taps before and after the input at or before the coordinate.
    fn reach(self) -> (i64, i64) {
        match self {
            Self::Nearest | Self::NearestExact => (0, 0),
            Self::Linear => (0, 1),
            Self::Cubic => (1, 2),
            Self::Lanczos3 => (2, 3),
        }
    }

    /// The weight at a distance.
    fn weight(self, distance: f64) -> f64 {
        const A: f64 = -0.75;
        let x = distance.abs();
        match self {
            Self::Nearest | Self::NearestExact => 1.0,
            Self::Linear => 1.0 - x,
            Self::Cubic if x <= 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
            Self::Cubic => ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A,
            Self::Lanczos3 if x == 0.0 => 1.0,
            Self::Lanczos3 => {
                // sin(3 u) = sin(u) * (3 - 4 sin(u)^2), with u = pi x / 3.
                let (sine, u) = (sine_of_turn(x / 3.0), PI * x / 3.0);
                let square = sine * sine;
                square * (3.0 - 4.0 * square) / (3.0 * (u * u))
            }
        }
    }
}

/// `sin(pi t)` for `t` in 0..=1, by its series: the same on every host.
fn sine_of_turn(t: f64) -> f64 {
    let u = PI * t.min(1.0 - t).max(0.0);
    // 1/21! is below what a sum near 1 keeps.
    (1..=10).rev().fold(1.0, |series, n| 1.0 - u * u / f64::from(2 * n * (2 * n + 1)) * series) * u
}

/// The weights by input, in compressed rows (CSR): the outputs that read an input are consecutive.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisWeights {
    /// `[n + 1]`: the weights of input `i` are at `offsets[i] .. offsets[i + 1]`.
    pub offsets: Vec<u32>,
    /// `[n]`: the first output that reads input `i`.
    pub first: Vec<u32>,
    /// `[offsets[n]]`: the weights, by input and then by output.
    pub weights: Vec<f64>,
}

impl AxisWeights {
    /// The table of an axis resized from `input` to `output`.
    pub fn new(input: usize, output: usize, filter: Filter, align_corners: bool) -> Self {
        let mut of_inputs: Vec<(u32, Vec<f64>)> = vec![(0, Vec::new()); input];
        for o in 0..output {
            for (i, weight) in window(input, output, filter, align_corners, o) {
                let (first, weights) = &mut of_inputs[i];
                if weights.is_empty() {
                    *first = o as u32;
                }
                weights.push(weight);
            }
        }
        let mut offsets = vec![0];
        for (_, weights) in &of_inputs {
            offsets.push(offsets[offsets.len() - 1] + weights.len() as u32);
        }
        Self {
            offsets,
            first: of_inputs.iter().map(|(first, _)| *first).collect(),
            weights: of_inputs.into_iter().flat_map(|(_, weights)| weights).collect(),
        }
    }

    /// The most outputs that read one input.
    pub fn longest(&self) -> usize {
        self.offsets.windows(2).map(|offsets| (offsets[1] - offsets[0]) as usize).max().unwrap_or(0)
    }
}

/// The weights by output: the inputs that one reads are consecutive.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    /// `[m, 2]`: the first input that output `o` reads, and how many.
    pub inputs: Vec<[u32; 2]>,
    /// `[m, taps]`: their weights, ascending, and zeros after the last one.
    pub weights: Vec<f64>,
}

impl Windows {
    /// The table of an axis resized from `input` to `output`.
    pub fn new(input: usize, output: usize, filter: Filter, align_corners: bool) -> Self {
        let (mut inputs, mut weights) = (Vec::new(), Vec::new());
        for o in 0..output {
            let taps = window(input, output, filter, align_corners, o);
            inputs.push([taps[0].0 as u32, taps.len() as u32]);
            let padding = filter.taps() - taps.len();
            weights.extend(taps.into_iter().map(|(_, weight)| weight).chain(vec![0.0; padding]));
        }
        Self { inputs, weights }
    }
}

/// The inputs that output `o` reads, ascending, each once.
fn window(input: usize, output: usize, filter: Filter, align_corners: bool, o: usize) -> Vec<(usize, f64)> {
    let (n, m, o) = (input as i64, output as i64, o as i64);
    let (numerator, divisor) = match filter {
        Filter::Nearest => (o * n, m),
        Filter::NearestExact => ((2 * o + 1) * n, 2 * m),
        _ if align_corners => (o * (n - 1), (m - 1).max(1)),
        _ => ((2 * o + 1) * n - m, 2 * m),
    };
    let base = numerator.div_euclid(divisor);
    let part = numerator.rem_euclid(divisor) as f64 / divisor as f64;
    let (before, after) = filter.reach();
    let mut taps: Vec<(usize, f64)> = Vec::new();
    for tap in -before..=after {
        let (at, weight) = (base + tap, filter.weight(part - tap as f64));
        if filter == Filter::Lanczos3 && !(0..n).contains(&at) {
            continue;
        }
        let at = at.clamp(0, n - 1) as usize;
        match taps.last_mut() {
            Some((last, sum)) if *last == at => *sum += weight,
            _ => taps.push((at, weight)),
        }
    }
    if filter == Filter::Lanczos3 {
        let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
        taps.iter_mut().for_each(|(_, weight)| *weight /= sum);
    }
    taps
}

#[cfg(test)]
mod tests {
    use super::{AxisWeights, Filter, sine_of_turn, window};
    use std::f64::consts::PI;

    const ALL: [Filter; 5] = [Filter::Nearest, Filter::NearestExact, Filter::Linear, Filter::Cubic, Filter::Lanczos3];

    #[test]
    fn the_series_is_the_sine() {
        for n in 0..=1000 {
            let t = f64::from(n) / 1000.0;
            assert!((sine_of_turn(t) - (PI * t).sin()).abs() < 4e-16, "{t}");
        }
    }

    #[test]
    fn a_table_is_the_transposed_windows() {
        for (input, output) in [(1, 1), (1, 7), (7, 1), (2, 5), (5, 2), (16, 33), (33, 16), (9, 9), (4, 0)] {
            for (filter, align) in ALL.into_iter().flat_map(|filter| [(filter, false), (filter, true)]) {
                let table = AxisWeights::new(input, output, filter, align);
                let mut entries = 0;
                for o in 0..output {
                    let taps = window(input, output, filter, align, o);
                    let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
                    assert!((sum - 1.0).abs() < 1e-12, "{filter:?} {input} {output} {o}: {sum}");
                    for (i, weight) in taps {
                        let (start, end) = (table.offsets[i] as usize, table.offsets[i + 1] as usize);
                        let of_input = &table.weights[start..end];
                        assert_eq!(
                            of_input[o - table.first[i] as usize],
                            weight,
                            "{filter:?} {input} {output} {o} {i}"
                        );
                        entries += 1;
                    }
                }
                assert_eq!(entries, table.weights.len());
            }
        }
    }

    #[test]
    fn nearest_reads_the_pixel_below() {
        let reads = |filter, input, output| -> Vec<usize> {
            (0..output).map(|o| window(input, output, filter, false, o)[0].0).collect()
        };
        assert_eq!(reads(Filter::Nearest, 3, 7), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(reads(Filter::NearestExact, 3, 7), [0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(reads(Filter::Nearest, 7, 3), [0, 2, 4]);
        assert_eq!(reads(Filter::NearestExact, 7, 3), [1, 3, 5]);
    }
}
