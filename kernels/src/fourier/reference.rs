//! The same order in plain Rust: the specification.

use super::twiddles::twiddles;

/// The real and imaginary parts of the first `n / 2 + 1` values of a signal's spectrum.
pub fn forward(signal: &[f32], n: usize) -> [Vec<f32>; 2] {
    let real = (0..n).map(|k| signal.get(k).copied().unwrap_or(0.0)).collect();
    let [mut real, mut imaginary] = transform([real, vec![0.0; n]], -1.0);
    real.truncate(n / 2 + 1);
    imaginary.truncate(n / 2 + 1);
    [real, imaginary]
}

/// The `n` values of the signal that has a spectrum.
pub fn inverse(real: &[f32], imaginary: &[f32], n: usize) -> Vec<f32> {
    let value = |part: &[f32], k: usize, sign: f32| match k <= n / 2 {
        true => part.get(k).copied().unwrap_or(0.0),
        false => part.get(n - k).map_or(0.0, |value| value * sign),
    };
    let real = (0..n).map(|k| value(real, k, 1.0)).collect();
    let imaginary = (0..n).map(|k| value(imaginary, k, -1.0)).collect();
    let [real, _] = transform([real, imaginary], 1.0);
    real.iter().map(|value| value * (1.0 / n as f32)).collect()
}

fn transform([mut real, mut imaginary]: [Vec<f32>; 2], sign: f32) -> [Vec<f32>; 2] {
    let n = real.len();
    let table = twiddles(n);
    let mut m = 1;
    while m < n {
        let (mut to_real, mut to_imaginary) = (vec![0.0; n], vec![0.0; n]);
        for (q, j) in (0..n / (2 * m)).flat_map(|q| (0..m).map(move |j| (q, j))) {
            let (a, b) = (q * m + j, (q + n / (2 * m)) * m + j);
            let turn = 2 * j * (n / (2 * m));
            let (cosine, sine) = (table[turn] as f32, sign * table[turn + 1] as f32);
            let t_re = -sine * imaginary[b] + cosine * real[b];
            let t_im = sine * real[b] + cosine * imaginary[b];
            let to = q * 2 * m + j;
            (to_real[to], to_real[to + m]) = (real[a] + t_re, real[a] - t_re);
            (to_imaginary[to], to_imaginary[to + m]) = (imaginary[a] + t_im, imaginary[a] - t_im);
        }
        (real, imaginary) = (to_real, to_imaginary);
        m *= 2;
    }
    [real, imaginary]
}
