//! FFTs of real signals along one axis.

use super::host::{Host, floats, rounded};
use burn_backend::{DType, TensorMetadata};
use burn_deterministic_kernels::fourier::reference;

impl Host {
    /// The real and imaginary parts of bins `0..=n/2` of signals along `axis`.
    pub fn spectrum(&self, axis: usize, n: usize) -> [Self; 2] {
        self.require_f32();
        [0, 1].map(|part| {
            self.lines(axis, n / 2 + 1, DType::F32, |line| {
                let values = &reference::forward(&floats(DType::F32, line), n)[part];
                values.iter().map(|&value| rounded(value, DType::F32)).collect()
            })
        })
    }

    /// The signals of `n` values along `axis` that have this real part of a spectrum, and this imaginary part.
    pub fn of_spectrum(&self, imaginary: &Self, axis: usize, n: usize) -> Self {
        self.require_f32();
        let bins = self.shape()[axis];
        let parts = Self::cat(&[self.clone(), imaginary.clone()], axis);
        parts.lines(axis, n, DType::F32, |line| {
            let line = floats(DType::F32, line);
            let (real, imaginary) = line.split_at(bins);
            reference::inverse(real, imaginary, n).into_iter().map(|value| rounded(value, DType::F32)).collect()
        })
    }
}
