//! Dense copies of tensors with any strides.

use crate::harness::*;
use burn_deterministic_kernels::copy;
use cubecl::std::tensor::{TensorHandle, into_contiguous};

/// The elements of a view into `memory`.
fn elements(memory: &[f32], shape: &[usize], strides: &[usize]) -> Vec<f32> {
    let places = shape.iter().zip(strides).fold(vec![0], |places: Vec<usize>, (&length, &stride)| {
        places.iter().flat_map(|place| (0..length).map(move |index| place + index * stride)).collect()
    });
    places.into_iter().map(|place| memory[place]).collect()
}

#[test]
fn copies_hold_the_elements_of_views() {
    let client = client();
    let memory: Vec<f32> = (0..512).map(|i| i as f32).collect();
    let held = upload(&client, &memory, &[512], F32).handle;
    let mut is_cubecl_wrong = false;
    for (shape, strides) in [
        (vec![5, 3, 4], vec![14, 4, 1]),
        (vec![1, 6, 2], vec![12, 13, 1]),
        (vec![3, 5, 8], vec![42, 8, 1]),
        (vec![5, 3, 4], vec![16, 4, 1]),
        (vec![5, 3, 4], vec![0, 4, 1]),
        (vec![4, 3, 5], vec![1, 4, 12]),
        (vec![7], vec![3]),
        (vec![1], vec![1]),
    ] {
        let want = elements(&memory, &shape, &strides);
        let view = || TensorHandle::new(held.clone(), shape.clone(), strides.clone(), F32);
        let cubecls: Vec<f32> = download(&client, into_contiguous(&client, view().binding(), F32));
        is_cubecl_wrong |= cubecls != want;
        assert!(cubecls == want || copy::is_misread(&shape, &strides), "{shape:?} {strides:?}");
        assert_bits(&download(&client, copy::dense(&client, view())), &want);
    }
    assert!(is_cubecl_wrong, "CubeCL copies all of them right: `copy` is not needed");
}
