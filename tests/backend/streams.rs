//! What reads of the host do to the streams of threads.

use crate::{cube_device, deterministic_device};
use burn::prelude::Tensor;
use burn::tensor::quantization::QuantScheme;
use burn::tensor::{Slice, TensorData};
use burn_backend::ops::{FloatTensorOps, TransactionOps, TransactionPrimitive};
use burn_backend::{DType, TensorMetadata, read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic::Deterministic;
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::custom::StreamId;
use burn_fusion::{Fusion, FusionTensor, NoOp};
use burn_ir::{InitOperationIr, OperationIr};
use std::task::{Context, Waker};

type Ours = Deterministic<CubeBackend>;

/// Burn's backend with a stream of operations, which computes by `Ours`, and reads by `CubeBackend`.
type Streamed = Fusion<CubeBackend>;

/// Another thread's kernel would write, and be given to the device, before the read is.
#[test]
fn a_tensor_that_is_being_read_is_not_written_in_place() {
    deterministic_device();
    let kept = Ours::float_from_data(TensorData::from([1f32; 64]), &cube_device());
    let mut read = Box::pin(Ours::float_into_data(kept.clone()));
    // CUDA's is ready at once.
    if read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        assert!(!kept.handle.can_mut(), "the read has a handle");
        assert_eq!(read_sync(read).expect("the device reads"), TensorData::from([1f32; 64]));
    }
}

/// A tensor of `stream` that has memory there, which nothing has written yet.
fn reserved(stream: StreamId) -> CubeTensor {
    let client = cube_device().client();
    let memory = stream.executes(|| client.empty(64 * size_of::<f32>()));
    CubeTensor::new_contiguous(client, cube_device(), [64].into(), memory, DType::F32)
}

/// Launches a kernel that writes ones into the memory, on its stream.
fn launch_ones(reserved: CubeTensor) -> CubeTensor {
    let (stream, place) = (reserved.handle.stream, reserved.handle.memory.descriptor().id);
    let ones = stream.executes(|| CubeBackend::float_from_data(TensorData::from([1f32; 64]), &cube_device()));
    let written = stream.executes(|| Ours::float_slice_assign(reserved, &[Slice::full()], ones));
    assert_eq!(written.handle.memory.descriptor().id, place, "it is written in place");
    written
}

/// A thread reads a tensor of another one that has reserved memory and not yet launched the kernel that writes it: later the first thread's
/// kernel waits for that one. On CUDA with late streams it does not, where the read is on the stream of the thread that reads; with wgpu a kernel
/// waits for whatever stream has its operands.
#[test]
fn a_read_between_reservation_and_launch_does_not_pass_for_a_wait_for_the_launch() {
    deterministic_device();
    let read_one = |tensor| drop(read_sync(Ours::float_into_data(tensor)).expect("the device reads"));
    let read_all = |tensor| {
        let transaction = TransactionPrimitive::new(vec![tensor], vec![], vec![], vec![]);
        drop(read_sync(Ours::tr_execute(transaction)).expect("the device reads"));
    };
    for read in [&read_one as &dyn Fn(CubeTensor), &read_all] {
        let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
        let other = owner.executes(|| Ours::float_from_data(TensorData::from([1f32; 4]), &cube_device()));
        let reserved = reserved(owner);
        reader.executes(|| read(other));
        let written = launch_ones(reserved);
        let sums = reader.executes(|| Ours::float_add_scalar(written, 1.0.into()));
        let sums = reader.executes(|| read_sync(Ours::float_into_data(sums)).expect("the device reads"));
        assert_eq!(sums, TensorData::from([2f32; 64]));
    }
}

/// The tensor, for operations of Burn's stream.
fn streamed(tensor: CubeTensor) -> FusionTensor<FusionCubeRuntime> {
    let client = GlobalFusionClient::<FusionCubeRuntime>::load(&tensor.device);
    let (shape, dtype) = (tensor.shape(), tensor.dtype);
    let init = InitOperationIr::create(shape, dtype, || client.register_tensor_handle(tensor.into()));
    client.register(StreamId::current(), OperationIr::Init(init), NoOp::<CubeBackend>::new()).remove(0)
}

/// As above, where Burn itself reads a tensor that an operation has made: the read is on the stream that has the memory, and the next read
/// of the thread waits for that one.
#[test]
fn burns_read_of_a_result_does_not_pass_for_a_wait() {
    deterministic_device();
    let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
    let device = cube_device();
    let result = owner.executes(|| {
        let ones = Streamed::float_from_data(TensorData::from([1f32; 4]), &device);
        Streamed::float_add_scalar(ones, 1.0.into())
    });
    // Read here, it is computed.
    let read = |tensor| read_sync(Streamed::float_into_data(tensor)).expect("the device reads");
    assert_eq!(owner.executes(|| read(result.clone())), TensorData::from([2f32; 4]));
    let reserved = reserved(owner);
    assert_eq!(reader.executes(|| read(result)), TensorData::from([2f32; 4]));
    let written = launch_ones(reserved);
    let ones = reader.executes(|| read_sync(CubeBackend::float_into_data(written)).expect("the device reads"));
    assert_eq!(ones, TensorData::from([1f32; 64]));
}

/// As above, where Burn reads what was uploaded, which no operation has made: the next kernel of the thread waits for the memory's stream.
#[test]
fn burns_read_of_an_upload_does_not_pass_for_a_wait() {
    deterministic_device();
    let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
    let uploaded = owner.executes(|| CubeBackend::float_from_data(TensorData::from([1f32; 4]), &cube_device()));
    let reserved = reserved(owner);
    let read = reader.executes(|| read_sync(CubeBackend::float_into_data(uploaded)).expect("the device reads"));
    assert_eq!(read, TensorData::from([1f32; 4]));
    let written = launch_ones(reserved);
    let sums = reader.executes(|| {
        let sums = Streamed::float_add_scalar(streamed(written), 1.0.into());
        read_sync(Streamed::float_into_data(sums)).expect("the device reads")
    });
    assert_eq!(sums, TensorData::from([2f32; 64]));
}

/// Burn reads a transaction on the stream of its first tensor: it waits for what was reserved since it has waited, as a kernel does. So what
/// is assigned to a tensor that it has read is in other memory.
#[test]
fn burns_transaction_reads_what_was_assigned_in_between() {
    deterministic_device();
    let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
    let client = GlobalFusionClient::<FusionCubeRuntime>::load(&cube_device());
    // Runs what the thread has issued, and does not wait for the device.
    let run = |tensor| owner.executes(|| client.sync(|| tensor));
    let ones = |count: usize| Streamed::float_from_data(TensorData::from(&vec![1f32; count][..]), &cube_device());
    let upload = reader.executes(|| ones(4));
    let read = |tensor| {
        let tensors = TransactionPrimitive::<Streamed>::new(vec![upload.clone(), tensor], vec![], vec![], vec![]);
        let mut data = reader.executes(|| read_sync(Streamed::tr_execute(tensors)).expect("the device reads"));
        data.read_floats.remove(1)
    };
    let twos = run(owner.executes(|| Streamed::float_add_scalar(ones(64), 1.0.into())));
    assert_eq!(read(twos.clone()), TensorData::from([2f32; 64]));
    let assigned = run(owner.executes(|| Streamed::float_slice_assign(twos, &[Slice::full()], ones(64))));
    assert_eq!(read(assigned), TensorData::from([1f32; 64]));
}

/// Of quantized tensors Burn's copies reserve memory on the current stream, and launch on that of the tensor's client.
#[test]
fn a_quantized_tensor_of_another_thread_is_read_when_it_is_written() {
    let device = deterministic_device();
    let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
    let values = TensorData::new((0..64u8).map(f32::from).collect::<Vec<_>>(), [4, 16]);
    let quantize = || Tensor::<2>::from_data(values.clone(), &device).quantize_dynamic(&QuantScheme::default());
    let turned = owner.executes(|| quantize().swap_dims(0, 1).reshape([8, 8]).into_data());
    let quantized = owner.executes(quantize);
    assert_eq!(reader.executes(|| quantized.clone().swap_dims(0, 1).reshape([8, 8]).into_data()), turned);
    let dense = owner.executes(|| quantized.clone().into_data());
    assert_eq!(reader.executes(|| quantized.into_data()), dense);
}

/// Another thread may read by Burn, of which nothing here knows, what an operation has made, and what was uploaded. Every other element of a
/// slice is assigned by Burn's kernel, the others by one of ours.
#[test]
fn what_is_assigned_to_is_not_written_in_place() {
    deterministic_device();
    let client = GlobalFusionClient::<FusionCubeRuntime>::load(&cube_device());
    let memory = |tensor| client.resolve_tensor_float::<CubeBackend>(tensor).handle.memory.descriptor().id;
    let upload = CubeBackend::float_from_data(TensorData::from([1f32; 64]), &cube_device());
    let mut last = upload.handle.memory.descriptor().id;
    let mut tensor = streamed(upload);
    for slice in [Slice::new(0, Some(32), 2), Slice::new(32, Some(64), 2), Slice::from(32..48)] {
        let zeros = Streamed::float_from_data(TensorData::from([0f32; 16]), &cube_device());
        tensor = Streamed::float_slice_assign(tensor, &[slice], zeros);
        let next = memory(tensor.clone());
        assert_ne!(next, last, "{slice:?}");
        last = next;
        // Then nothing else has a handle of it.
        client.sync(|| read_sync(cube_device().client().sync())).expect("the device works");
    }
    let values = read_sync(Streamed::float_into_data(tensor)).expect("the device reads");
    let values = values.iter::<f32>().collect::<Vec<_>>();
    assert_eq!(values, [[0f32, 1.0].repeat(16), vec![0.0; 16], [0.0, 1.0].repeat(8)].concat());
}
