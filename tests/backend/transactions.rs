//! Reads of several tensors at once.

use crate::deterministic_device;
use crate::one_kind::devices_of_one_kind;
use burn::prelude::*;
use burn::tensor::{DType, Transaction};
use burn_backend::ops::{FloatTensorOps, IntTensorOps, TransactionOps, TransactionPrimitive};
use burn_backend::{Device as _, DeviceId, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_deterministic::Deterministic;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Ours = Deterministic<CubeBackend>;

#[test]
fn tensors_of_all_kinds_are_read_in_their_order() {
    deterministic_device();
    for device in devices_of_one_kind(2) {
        let floats = Tensor::<2>::from_data([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device);
        let read = Transaction::default()
            .register(floats.clone().transpose())
            .register(Tensor::<1, Int>::from_data([7_i32, 8], &device) + 1)
            .register(Tensor::<1, Bool>::from_data([true, false, true], &device))
            .register(Tensor::<1>::from_data([9.0_f32], &device) * 2.0)
            .register(floats * 3.0)
            .execute();
        let floats = |at: usize| read[at].clone().try_to_vec::<f32>().expect("f32");
        assert_eq!(floats(0), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], "{device:?}");
        assert_eq!(read[1].iter::<i64>().collect::<Vec<_>>(), [8, 9]);
        assert_eq!(read[2].iter::<bool>().collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(floats(3), [18.0]);
        assert_eq!(floats(4), [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
        assert_eq!(read[4].shape()[..], [2, 3]);
        assert_eq!(read[4].dtype(), DType::F32);
    }
}

/// Below the tensor API, where Burn's own read takes all tensors for those of the first one's device.
#[test]
fn tensors_of_several_devices_are_read_below_the_tensor_api() {
    deterministic_device();
    let devices: Vec<CubeDevice> = devices_of_one_kind(2).iter().map(cube).collect();
    for floats_on in &devices {
        for ints_on in &devices {
            let floats = Ours::float_from_data(TensorData::from([1.5_f32, -2.0]), floats_on);
            let ints = Ours::int_from_data(TensorData::from([7_i32, 8, 9]), ints_on);
            let both = TransactionPrimitive::new(vec![floats], Vec::new(), vec![ints], Vec::new());
            let read = read_sync(Ours::tr_execute(both)).expect("no device fails");
            assert_eq!(read.read_floats[0].clone().try_to_vec::<f32>().expect("f32"), [1.5, -2.0]);
            assert_eq!(read.read_ints[0].iter::<i64>().collect::<Vec<_>>(), [7, 8, 9]);
        }
    }
    let nothing = TransactionPrimitive::<Ours>::new(Vec::new(), Vec::new(), Vec::new(), Vec::new());
    assert!(read_sync(Ours::tr_execute(nothing)).expect("no device fails").read_floats.is_empty());
}

/// The device of CubeCL's behind Burn's.
fn cube(device: &Device) -> CubeDevice {
    let id = device.as_dispatch().to_id();
    // Above these bits is Burn's number of the backend.
    CubeDevice::from_id(DeviceId { type_id: id.type_id & 0xFF, ..id })
}

#[test]
fn what_operations_have_got_wrong_is_told_by_the_read() {
    let device = deterministic_device();
    let values = Tensor::<1>::from_data([1.0_f32, 2.0], &device);
    let outside = values.clone().select(0, Tensor::<1, Int>::from_data([5_i32], &device));
    let read = || Transaction::default().register(outside).register(values).try_execute();
    // Burn panics where a tensor is not there.
    let told = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => format!("{:?}", read.expect_err("index 5 of 2")),
        Err(panic) => panic.downcast_ref::<String>().expect("a text").clone(),
    };
    assert!(told.contains("got the index 5"), "{told}");
}
