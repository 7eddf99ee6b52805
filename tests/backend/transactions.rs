//! Reads of several tensors at once.

use crate::deterministic_device;
use crate::one_kind::devices_of_one_kind;
use burn::prelude::*;
use burn::tensor::{DType, Transaction};

#[test]
fn tensors_of_all_kinds_are_read_in_their_order() {
    let device = deterministic_device();
    for other in devices_of_one_kind(2) {
        let floats = Tensor::<2>::from_data([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]], &device);
        let ints = Tensor::<1, Int>::from_data([7_i32, 8], &other);
        let bools = Tensor::<1, Bool>::from_data([true, false, true], &device);
        let read = Transaction::default()
            .register(floats.clone().transpose())
            .register(ints + 1)
            .register(bools)
            .register(Tensor::<1>::from_data([9.0_f32], &other) * 2.0)
            .register(floats * 3.0)
            .execute();
        let floats = |at: usize| read[at].clone().try_to_vec::<f32>().expect("f32");
        assert_eq!(floats(0), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0], "{other:?}");
        assert_eq!(read[1].iter::<i64>().collect::<Vec<_>>(), [8, 9]);
        assert_eq!(read[2].iter::<bool>().collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(floats(3), [18.0]);
        assert_eq!(floats(4), [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
        assert_eq!(read[4].shape()[..], [2, 3]);
        assert_eq!(read[4].dtype(), DType::F32);
    }
}

#[test]
fn what_operations_have_got_wrong_is_an_error_of_the_read() {
    let device = deterministic_device();
    let values = Tensor::<1>::from_data([1.0_f32, 2.0], &device);
    let outside = values.clone().select(0, Tensor::<1, Int>::from_data([5_i32], &device));
    let error = Transaction::default().register(outside).register(values).try_execute().expect_err("index 5 of 2");
    assert!(format!("{error:?}").contains("index 5"), "{error:?}");
}
