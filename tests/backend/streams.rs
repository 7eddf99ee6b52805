//! What reads of the host do to the streams of threads.

use crate::{cube_device, deterministic_device};
use burn::tensor::{Slice, TensorData};
use burn_backend::ops::{FloatTensorOps, TransactionOps, TransactionPrimitive};
use burn_backend::{DType, read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic::Deterministic;
use burn_fusion::custom::StreamId;
use std::task::{Context, Waker};

type Ours = Deterministic<CubeBackend>;

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
        let device = cube_device();
        let (owner, reader) = (StreamId::allocate(), StreamId::allocate());
        let ones = |count: usize| Ours::float_from_data(TensorData::from(&vec![1f32; count][..]), &device);
        let (other, values) = owner.executes(|| (ones(4), ones(64)));
        let client = device.client();
        let memory = owner.executes(|| client.empty(64 * size_of::<f32>()));
        let reserved = CubeTensor::new_contiguous(client, device.clone(), [64].into(), memory, DType::F32);
        let place = reserved.handle.memory.descriptor().id;
        reader.executes(|| read(other));
        let written = owner.executes(|| Ours::float_slice_assign(reserved, &[Slice::full()], values));
        assert_eq!(written.handle.memory.descriptor().id, place, "it is written in place");
        let sums = reader.executes(|| Ours::float_add_scalar(written, 1.0.into()));
        let sums = reader.executes(|| read_sync(Ours::float_into_data(sums)).expect("the device reads"));
        assert_eq!(sums, TensorData::from([2f32; 64]));
    }
}
