//! Random tensors.

use super::{Output, run};
use crate::backend::refused::{poison, refused};
use crate::random::next_stream;
use burn_backend::{DType, Distribution, Shape, cubecl::dtype_to_elem_type};
use burn_cubecl::{CubeDevice, tensor::CubeTensor};
use burn_deterministic_kernels::random::{self, Source, Stream};

/// The kernels' name of a distribution of floats.
pub(crate) fn floats(distribution: Distribution) -> random::Distribution {
    match distribution {
        Distribution::Default => random::Distribution::Uniform { low: 0.0, high: 1.0 },
        Distribution::Uniform(low, high) => random::Distribution::Uniform { low, high },
        Distribution::Bernoulli(probability) => random::Distribution::Bernoulli { probability },
        Distribution::Normal(mean, std) => random::Distribution::Normal { mean, std },
    }
}

/// The kernels' name of a distribution of integers, which take the whole numbers a uniform range holds; `None` for a
/// normal distribution, which has no integer form.
pub(crate) fn integers(distribution: Distribution) -> Option<random::Distribution> {
    match distribution {
        Distribution::Default => Some(random::Distribution::Integers { low: 0, high: 255 }),
        Distribution::Uniform(low, high) => {
            Some(random::Distribution::Integers { low: low.ceil() as i64, high: high.ceil() as i64 })
        }
        Distribution::Bernoulli(probability) => Some(random::Distribution::Bernoulli { probability }),
        Distribution::Normal(..) => None,
    }
}

/// Draws a tensor from the next stream of the thread that issued the operation; refuses where it has no seed.
pub(in crate::backend) fn draw(
    operation: &'static str,
    distribution: random::Distribution,
    device: &CubeDevice,
    shape: Shape,
    dtype: DType,
    plain: impl FnOnce() -> CubeTensor,
) -> CubeTensor {
    let (key, stream) = match next_stream(operation, &shape, dtype, device) {
        Ok(stream) => stream,
        Err(error) => return refused(error, plain, |error| poison(error, device, shape, dtype)),
    };
    let source = Source { key: key.into(), stream: Stream(stream), block: 0 };
    let dimensions = shape.to_vec();
    run(
        operation,
        &[],
        Output { device: device.clone(), shape, dtype },
        |client| random::draw(client, &dimensions, dtype_to_elem_type(dtype), source, distribution),
        plain,
    )
}
