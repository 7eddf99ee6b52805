//! One element, none, truth values, and refusals.

use super::*;

#[test]
fn one_element_is_itself() {
    let client = client();
    let input = upload(&client, &[-0.0f32, 1e-40, f32::INFINITY], &[3, 1], F32);
    let got = reduce::sum(&client, input, &[1]).unwrap();
    assert_bits(&download(&client, got), &[-0.0, 1e-40, f32::INFINITY]);
}

#[test]
fn any_and_all_take_what_is_not_zero_for_true() {
    let client = client();
    let mut values = vec![0u32; 3 * 5000];
    values[7_000] = 0x8000_0000;
    values[10_000..].fill(3);
    let input = upload(&client, &values, &[3, 5000], U32);
    let got = reduce::any(&client, input.clone(), &[1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0, 1, 1]);
    let got = reduce::all(&client, input.clone(), &[1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0, 0, 1]);
    let got = reduce::all(&client, input, &[0, 1]).unwrap();
    assert_equal(&download::<u32>(&client, got), &[0]);
}

#[test]
fn empty_reductions_give_the_identity_or_are_refused() {
    let client = client();
    let none = |shape: &[usize]| upload::<f32>(&client, &[], shape, F32);
    let of = |tensor| download::<f32>(&client, tensor);
    assert_bits(&of(reduce::sum(&client, none(&[2, 0]), &[1]).unwrap()), &[0.0, 0.0]);
    assert_bits(&of(reduce::prod(&client, none(&[0]), &[0]).unwrap()), &[1.0]);
    assert!(of(reduce::mean(&client, none(&[0]), &[0]).unwrap())[0].is_nan());
    assert_eq!(reduce::sum(&client, none(&[0, 3]), &[1]).unwrap().shape().to_vec(), [0, 1]);
    for refused in [reduce::max(&client, none(&[0, 3]), &[0]), reduce::max(&client, none(&[0, 0]), &[0])] {
        assert!(matches!(refused, Err(KernelError::Shape { kernel: "reduce::max", .. })));
    }
    let argmax = |shape: &[usize]| search(&client, Extreme::Max, none(shape), 1, I32, false, None);
    assert!(argmax(&[3, 0]).is_err());
    assert_eq!(argmax(&[0, 3]).unwrap().1.shape().to_vec(), [0, 1]);
}

#[test]
fn an_axis_that_does_not_exist_is_refused() {
    let client = client();
    let input = upload(&client, &[1.0f32], &[1, 1], F32);
    let refused = reduce::sum(&client, input.clone(), &[2]).unwrap_err();
    assert_eq!(refused.to_string(), "reduce::sum: axis 2 of a tensor of shape [1, 1], want less than 2");
    assert!(search(&client, Extreme::Min, input, 2, I32, false, None).is_err());
}

#[test]
fn a_type_without_a_version_is_refused() {
    let client = client();
    let input = upload(&client, &[1.0f32], &[1], F32);
    let refused = reduce::any(&client, input.clone(), &[0]).unwrap_err();
    assert!(matches!(refused, KernelError::Dtype { kernel: "reduce::any", dtype: F32, .. }));
    let bools = TensorHandle::new(input.handle, vec![1usize], vec![1usize], ElemType::Bool);
    assert!(matches!(reduce::sum(&client, bools, &[0]), Err(KernelError::Dtype { kernel: "reduce::sum", .. })));
}
