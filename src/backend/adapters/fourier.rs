//! FFTs of real signals along one axis.

use super::{Output, Outputs, operand, refusal};
use crate::error::Refusal;
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::fourier;

/// Real FFT of `n` values: the real and imaginary parts of bins `0..=n/2`.
pub(crate) fn forward(signal: CubeTensor, axis: usize, n: usize) -> Result<[CubeTensor; 2], Refusal> {
    let client = signal.device.client();
    let mut shape = signal.shape();
    shape[axis] = n / 2 + 1;
    let parts = fourier::forward(&client, operand(&signal), axis, n, None)
        .map_err(|error| refusal("signal::rfft", &[&signal], &signal.device, error))?;
    Ok(parts.map(|part| Output::like(&signal, shape.clone()).of(&client, part)))
}

/// Inverse real FFT: `n` values from the real and imaginary parts of bins `0..=n/2`.
pub(crate) fn inverse(real: CubeTensor, imaginary: CubeTensor, axis: usize, n: usize) -> Result<CubeTensor, Refusal> {
    let client = real.device.client();
    let mut shape = real.shape();
    shape[axis] = n;
    let signal = fourier::inverse(&client, operand(&real), operand(&imaginary), axis, n, None)
        .map_err(|error| refusal("signal::irfft", &[&real, &imaginary], &real.device, error))?;
    Ok(Output::like(&real, shape).of(&client, signal))
}
