//! Copies to the host and to another device.

use crate::context::in_method;
use burn_backend::{ExecutionError, TensorData, read_sync};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use cubecl_environment::stream::{Stream, StreamId};

/// A tensor on another device, by way of the host.
///
/// CubeCL's copy from device to device reads on the stream of the calling thread, as [`on`] must not, or by NCCL, which waits neither
/// for what reads the memory that it writes, nor lets memory that it reads wait for it.
///
/// # Panics
///
/// When the tensor cannot be read.
pub(super) fn to_device<F>(
    tensor: CubeTensor,
    device: &CubeDevice,
    into_data: impl FnOnce(CubeTensor) -> F,
    from_data: impl FnOnce(TensorData, &CubeDevice) -> CubeTensor,
) -> CubeTensor
where
    F: Future<Output = Result<TensorData, ExecutionError>> + Send,
{
    if tensor.device == *device {
        return tensor;
    }
    let data = read_sync(self::into_data(tensor, into_data));
    let data = data.unwrap_or_else(|error| panic!("reading a tensor for another device: {error}"));
    in_method(|| from_data(data, device))
}

/// `copy` of a tensor to the host, on the stream that has its memory.
pub(super) fn into_data<F: Future + Send>(
    tensor: CubeTensor,
    copy: impl FnOnce(CubeTensor) -> F,
) -> impl Future<Output = F::Output> + Send {
    on(tensor.handle.stream, copy(tensor))
}

/// `copy` to the host on a stream.
///
/// On the stream of the calling thread it would wait for the other one at whatever moment of its work. If that is between the
/// reservation of memory and the launch that writes it, CubeCL then assumes that the calling thread's stream has waited for that
/// memory, and a later kernel reads what was there before.
pub(super) fn on<F: Future + Send>(stream: StreamId, copy: F) -> impl Future<Output = F::Output> + Send {
    Stream::from_id(stream).attach(copy)
}
