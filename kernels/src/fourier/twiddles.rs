//! The table of roots of unity, the same for kernels and reference.

use std::f64::consts::PI;

/// The cosines and sines of `2 pi j / n` for `j` below `n / 2`, in turn.
pub fn twiddles(n: usize) -> Vec<f64> {
    let angle = |j: usize| 2.0 * PI * j as f64 / n as f64;
    // The quarter turn is exact, which a rounded pi is not.
    let pair = |j: usize| if 4 * j == n { [0.0, 1.0] } else { [angle(j).cos(), angle(j).sin()] };
    (0..n / 2).flat_map(pair).collect()
}
