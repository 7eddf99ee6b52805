//! The same order in plain Rust: the specification.

use super::params::{Filter, PEAK, Padding, SINE, SampleParams};

/// Samples `[batch, channels, height, width]` at `[batch, rows, columns, 2]`, both contiguous, `places` being
/// `rows * columns`.
pub fn sample(
    input: &[f32],
    [batch, channels, height, width]: [usize; 4],
    grid: &[f32],
    places: usize,
    params: SampleParams,
) -> Vec<f32> {
    let mut result = Vec::new();
    for (b, c) in (0..batch).flat_map(|b| (0..channels).map(move |c| (b, c))) {
        let image = &input[(b * channels + c) * height * width..][..height * width];
        for at in 0..places {
            let number = &grid[(b * places + at) * 2..][..2];
            let y = coordinate(number[1], height, params);
            let x = coordinate(number[0], width, params);
            if y.is_nan() || x.is_nan() {
                result.push(y + x);
                continue;
            }
            let (rows, w_y) = taps(y, height, params);
            let (columns, w_x) = taps(x, width, params);
            let pixel = |row: Option<usize>, column: Option<usize>| match (row, column) {
                (Some(row), Some(column)) => image[row * width + column],
                _ => 0.0,
            };
            let value = rows.iter().zip(&w_y).fold(0.0, |acc, (&row, &w)| {
                let line = columns.iter().zip(&w_x).fold(0.0, |line, (&column, &w)| w * pixel(row, column) + line);
                w * line + acc
            });
            result.push(value);
        }
    }
    result
}

fn coordinate(number: f32, length: usize, params: SampleParams) -> f32 {
    let n = length as f32;
    let p = match params.align_corners {
        true => (number + 1.0) * (n - 1.0) * 0.5,
        false => (number + 1.0) * n * 0.5 - 0.5,
    };
    if params.padding != Padding::Reflection {
        return p;
    }
    let (low, span) = if params.align_corners { (0.0, n - 1.0) } else { (-0.5, n) };
    if span <= 0.0 {
        return if p.is_nan() { p } else { low };
    }
    let distance = (p - low).abs();
    let rest = -(distance / (span + span)).floor() * (span + span) + distance;
    (span - (rest - span).abs()) + low
}

/// The pixels read along an axis, and their weights.
fn taps(p: f32, length: usize, params: SampleParams) -> (Vec<Option<usize>>, Vec<f32>) {
    let p = p.max(-8.0).min(length as f32 + 8.0);
    let (base, u) = (p.floor() as i64, p - p.floor());
    let first = match params.filter {
        Filter::Nearest => base + i64::from(u > 0.5 || (u == 0.5 && base % 2 != 0)),
        filter => base - (filter.taps() as i64 / 2 - 1),
    };
    let n = length as i64;
    let place = |at: i64| match params.padding {
        Padding::Zeros => (0..n).contains(&at).then_some(at),
        Padding::Border => Some(at.clamp(0, n - 1)),
        Padding::Reflection if params.align_corners => {
            let period = (2 * (n - 1)).max(1);
            let turn = at.rem_euclid(period);
            Some(turn.min(period - turn).clamp(0, n - 1))
        }
        Padding::Reflection => {
            let turn = at.rem_euclid(2 * n);
            Some(turn.min(2 * n - 1 - turn))
        }
    };
    let pixels = (0..params.filter.taps() as i64).map(|tap| place(first + tap).map(|at| at as usize));
    (pixels.collect(), weights(u, params.filter))
}

fn weights(u: f32, filter: Filter) -> Vec<f32> {
    let rest = 1.0 - u;
    let near = |x: f32| (1.25 * x - 2.25) * (x * x) + 1.0;
    let far = |x: f32| ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0;
    match filter {
        Filter::Nearest => vec![1.0],
        Filter::Linear => vec![rest, u],
        Filter::Cubic => vec![far(1.0 + u), near(u), near(rest), far(2.0 - u)],
        Filter::Lanczos3 => {
            let weights = [2.0 + u, 1.0 + u, u, rest, 2.0 - u, 3.0 - u].map(lobes);
            let sum = weights[1..].iter().fold(weights[0], |sum, weight| sum + weight);
            weights.map(|weight| weight / sum).to_vec()
        }
    }
}

fn lobes(x: f32) -> f32 {
    let turn = x * (1.0 / 3.0);
    if turn < 1e-6 {
        return PEAK;
    }
    let u = turn.min(1.0 - turn).max(0.0);
    let series = SINE[1..].iter().fold(SINE[0], |series, &factor| series * (u * u) + factor);
    let square = (series * u) * (series * u);
    square * (-4.0 * square + 3.0) / (turn * turn)
}

#[cfg(test)]
mod tests {
    use super::{PEAK, lobes};
    use std::f64::consts::PI;

    #[test]
    fn lobes_are_lanczos_function() {
        for n in 0..=3000 {
            let x = f64::from(n) / 1000.0;
            let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
            let error = f64::from(lobes(x as f32)) / f64::from(PEAK) - sinc(x) * sinc(x / 3.0);
            assert!(error.abs() < 3e-7, "{x}: {error}");
        }
    }
}
