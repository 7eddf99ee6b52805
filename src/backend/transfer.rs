//! Copies to the host and to another device.

use burn_backend::{ExecutionError, TensorData, read_sync};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use cubecl::server::Handle;
use cubecl_environment::stream::{Stream, StreamId};
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// A tensor on another device, by way of the host.
///
/// CubeCL's copy from device to device reads on the stream of the calling thread, as [`on`] must not; or it goes by NCCL, which waits
/// for nothing that uses the memory that it writes, and which nothing waits for that writes the memory that it reads.
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
    F: Future<Output = Result<TensorData, ExecutionError>>,
{
    if tensor.device == *device {
        return tensor;
    }
    let data = read_sync(into_data(tensor));
    from_data(data.unwrap_or_else(|error| panic!("reading a tensor for another device: {error}")), device)
}

/// Has Burn's own copies from this device go by the host too: its tensor API copies without an operation of its stream, and by NCCL where
/// that is installed. Collectives, which are refused, then have nothing to go by. A device that has run no operation is not known here, and
/// what it has received from another one is still copied by NCCL ([guarantee.md](../../docs/guarantee.md#run-to-run)).
///
/// # Panics
///
/// When they cannot.
pub(crate) fn copy_by_host(device: &CubeDevice) {
    let client = device.client();
    #[cfg(feature = "cuda")]
    if let (CubeDevice::Cuda(_), true) = (device, client.has_device_transport()) {
        use burn_backend::DeviceHandle;
        use cubecl::cuda::CudaRuntime;
        use cubecl::server::ServerUtilities;
        use cubecl_runtime::runtime::Runtime;
        use std::sync::atomic::{AtomicBool, Ordering};

        let server = DeviceHandle::<<CudaRuntime as Runtime>::Server>::new(device.to_id());
        let utilities = server.utilities().downcast::<ServerUtilities>().expect("what every server of CubeCL's has");
        let utilities = Arc::as_ptr(&utilities).cast_mut();
        // SAFETY: the pointer is valid as long as `client` has the utilities, and comes from no reference. CubeCL reads the flag without
        // synchronisation where it copies a tensor of the device. The first operation of a device runs this before any copy of what it
        // makes. A copy of what the device has received, by another thread at this moment, is a race that is put up with: it reads one byte.
        unsafe { AtomicBool::from_ptr(&raw mut (*utilities).server_comm_enabled) }.store(false, Ordering::SeqCst);
    }
    assert!(
        !client.has_device_transport(),
        "{device:?}: its copies to other devices have no fixed order with its kernels"
    );
}

/// `copy` of a tensor to the host, on the stream that has its memory.
pub(super) fn into_data<F: Future + Send>(
    tensor: CubeTensor,
    copy: impl FnOnce(CubeTensor) -> F,
) -> impl Future<Output = F::Output> + Send {
    on(tensor.handle.stream, vec![tensor.handle.clone()], copy(tensor))
}

/// `copy` to the host on a stream, of the memory of these handles.
///
/// On the stream of the calling thread it would wait for the other one at whatever moment of its work. If that is between the
/// reservation of memory and the launch that writes it, CubeCL then assumes that the calling thread's stream has waited for that
/// memory, and a later kernel reads what was there before. The handles are held meanwhile: Burn's read gives its own up before it is
/// given to the stream, and then another thread's kernel may write the memory in place, and be given to the stream first.
pub(super) async fn on<F: Future + Send>(stream: StreamId, held: Vec<Handle>, copy: F) -> F::Output {
    let copied = Stream::from_id(stream).attach(copy).await;
    drop(held);
    copied
}
