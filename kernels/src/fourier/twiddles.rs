//! The table of roots of unity, the same for kernels and reference.

use std::f64::consts::PI;

/// The cosines and sines of `2 pi j / n` for `j` below `n / 2`, in turn; `n` is a power of two.
pub fn twiddles(n: usize) -> Vec<f64> {
    (0..n / 2).flat_map(|j| root(j, n)).collect()
}

/// The cosine and the sine of `2 pi j / n`, `j <= n / 2`: those of an eighth of a turn, mirrored.
fn root(j: usize, n: usize) -> [f64; 2] {
    if 4 * j > n {
        let [cosine, sine] = root(n / 2 - j, n);
        [-cosine, sine]
    } else if 8 * j > n {
        let [cosine, sine] = of_an_eighth(n / 4 - j, n);
        [sine, cosine]
    } else {
        of_an_eighth(j, n)
    }
}

/// The cosine and the sine of `2 pi j / n`, `8 j <= n`, by their series: the same on every host, which those of its library
/// are not.
fn of_an_eighth(j: usize, n: usize) -> [f64; 2] {
    let u = 2.0 * PI * j as f64 / n as f64;
    // 1/20! is below what a sum near 1 keeps.
    let series = |first: u32| {
        let factors = (0..10).rev().map(|term| first + 2 * term);
        factors.fold(1.0, |series, k| 1.0 - u * u / f64::from(k * (k + 1)) * series)
    };
    [series(1), series(2) * u]
}

#[cfg(test)]
mod tests {
    use super::{PI, twiddles};

    #[test]
    fn the_series_are_the_cosine_and_the_sine() {
        for n in (0..=16).map(|bits| 1 << bits) {
            let table = twiddles(n);
            assert_eq!(table.len(), n / 2 * 2);
            for (j, pair) in table.chunks(2).enumerate() {
                // The angle, up to pi, is rounded itself, by up to 2.2e-16, and the table's is not.
                let angle = 2.0 * PI * j as f64 / n as f64;
                for (got, want) in [(pair[0], angle.cos()), (pair[1], angle.sin())] {
                    assert!((got - want).abs() < 6e-16, "{j} of {n}: {got} and {want}");
                }
            }
        }
    }

    #[test]
    fn quarters_and_eighths_are_exact() {
        let half = 0.5f64.sqrt();
        assert_eq!(twiddles(2), [1.0, 0.0]);
        assert_eq!(twiddles(4), [1.0, 0.0, 0.0, 1.0]);
        let [cosine, sine] = [twiddles(8)[2], twiddles(8)[3]];
        assert!((cosine - half).abs() < 2e-16 && (sine - half).abs() < 2e-16, "{cosine} {sine}");
    }
}
