//! Random tensors: the numbers that the operation on the device has drawn.

use super::host::{Host, of_int, rounded};
use super::limits::not_checked;
use crate::backend::adapters::random as adapters;
use crate::random::next_stream;
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{DType, Distribution, IntDType, Shape};
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::random::{self, Source, Stream, reference};

/// A draw of floats.
pub(super) fn floats(
    operation: &'static str,
    shape: Shape,
    distribution: Distribution,
    device: &CubeDevice,
    dtype: DType,
) -> Host {
    let source = source(operation, &shape, dtype, device);
    let elements = shape.num_elements() as u64;
    let distribution = adapters::floats(distribution);
    let values = reference::floats(source, distribution, dtype_to_elem_type(dtype), 0..elements);
    let values = values.unwrap_or_else(|_| not_checked("a distribution that is refused"));
    Host::new(device, shape, dtype, values.into_iter().map(|value| rounded(value, dtype)).collect())
}

/// A draw of integers.
pub(super) fn integers(shape: Shape, distribution: Distribution, device: &CubeDevice, dtype: IntDType) -> Host {
    const OPERATION: &str = "int_random";
    let Some(distribution) = adapters::integers(distribution) else {
        let drawn = floats(OPERATION, shape, distribution, device, DType::F32);
        return super::Reference::float_into_int(drawn, dtype);
    };
    let (dtype, elements) = (DType::from(dtype), shape.num_elements() as u64);
    let source = source(OPERATION, &shape, dtype, device);
    let values = reference::integers(source, distribution, dtype_to_elem_type(dtype), 0..elements);
    let values = values.unwrap_or_else(|_| not_checked("a distribution that is refused"));
    Host::new(device, shape, dtype, values.into_iter().map(|value| of_int(dtype, value.into())).collect())
}

fn source(operation: &'static str, shape: &Shape, dtype: DType, device: &CubeDevice) -> Source {
    let drawn = next_stream(operation, shape, dtype, device);
    let (key, stream) = drawn.unwrap_or_else(|_| not_checked("a draw without a seed"));
    Source { key: random::Key::from(key), stream: Stream(stream), block: 0 }
}
