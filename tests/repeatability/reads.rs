//! What a read gives is what the tensor was when it was read.

use crate::process::{Program, report};
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::{FloatDType, IntDType};

const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

/// Reads a tensor, has an operation write over it, and looks at what was read only then.
fn overwritten(device: &Device) -> Vec<(&'static str, TensorData)> {
    let floats = || Tensor::<1>::from_data(VALUES, device) + 0.0;
    let ints = || floats().int().cast(IntDType::I32);
    let mask = || floats().greater_elem(0.0);
    let mut read = Vec::new();
    let mut keep = |name, data, written: TensorData| {
        let _ = written.as_bytes();
        read.push((name, data));
    };
    let x = floats();
    keep("float_mul", x.clone().into_data(), (x * floats()).into_data());
    let x = floats();
    let written = x.clone().into_data();
    keep("float_slice_assign", written, x.slice_assign(0..2, Tensor::from_data([9.0, 9.0], device)).into_data());
    let x = floats();
    keep("float_mask_fill", x.clone().into_data(), x.mask_fill(mask(), 9.0).into_data());
    let x = floats();
    keep("float_sin", x.clone().into_data(), x.sin().into_data());
    let x = ints();
    keep("int_add", x.clone().into_data(), (x + ints()).into_data());
    let x = ints();
    keep("int_mul_scalar", x.clone().into_data(), (x * 3).into_data());
    let half = || floats().cast(FloatDType::F16);
    if device.supports_dtype(burn::tensor::DType::F16) {
        let x = half();
        keep("float_mul in f16", x.clone().into_data(), (x * half()).into_data());
    } else {
        skip("the device has no F16");
    }
    read
}

fn changed(read: Vec<(&'static str, TensorData)>) -> Vec<&'static str> {
    let same = |data: &TensorData| data.iter::<f32>().eq(VALUES);
    read.into_iter().filter(|(_, data)| !same(data)).map(|(name, _)| name).collect()
}

/// Plain Burn copies from the device when the data is first looked at.
pub fn plain_reads() {
    report("changed", changed(overwritten(&Device::default())).len());
}

#[test]
fn a_read_does_not_see_what_is_written_later() {
    match Program::new("plain_reads").run().reported("changed") {
        "0" => skip("plain Burn wrote nothing in place, so that the hazard does not show"),
        count => eprintln!("plain Burn's reads saw {count} later operations"),
    }
    let changed = changed(overwritten(&crate::deterministic_device()));
    assert!(changed.is_empty(), "later operations were seen: {changed:?}");
}
