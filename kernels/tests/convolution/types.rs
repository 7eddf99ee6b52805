//! Half types and doubles.

use super::*;

#[test]
fn half_types_keep_long_chains_in_full() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    // 1 + 2^-11 * 2 rounds up to the next f16 only as one sum.
    let channels = 70_001;
    let mut weight = vec![f16::ZERO; channels];
    (weight[0], weight[channels - 2], weight[channels - 1]) =
        (f16::ONE, f16::from_f32(2f32.powi(-11)), f16::from_f32(2f32.powi(-11)));
    let input = upload(&client, &vec![f16::ONE; channels], &[1, channels, 1], dtype);
    let weight = upload(&client, &weight, &[1, channels, 1], dtype);
    let bias = upload(&client, &[f16::from_f32(0.5)], &[1], dtype);
    let y = forward(&client, input, weight, Some(bias), &uniform::<1>(1, (0, 0), 1, 1)).expect("a forward pass");
    assert_eq!(download::<f16>(&client, y), [f16::from_f32(1.5 + 2f32.powi(-10))]);
}

#[test]
fn half_precision_is_rounded_once() {
    let case = Case::new(&[3, 5, 6, 6], &[6, 5, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let f16 = ElemType::Float(FloatKind::F16);
    if !case.client.properties().supports_type(f16) {
        return skip("the device has no f16");
    }
    let round = |values: &[f32]| -> Vec<half::f16> { values.iter().map(|&v| half::f16::from_f32(v)).collect() };
    let wide = |values: &[half::f16]| -> Vec<f32> { values.iter().map(|v| v.to_f32()).collect() };
    let (x, w, dy) = (round(&case.input), round(&case.weight), round(&case.gradient));
    let up = |values: &[half::f16], shape: &[usize]| {
        let handle = case.client.create_from_slice(bytemuck::cast_slice(values));
        TensorHandle::new_contiguous(shape.to_vec(), handle, f16)
    };
    let (input, weight, gradient) =
        (up(&x, &case.input_shape), up(&w, &case.weight_shape), up(&dy, &case.output_shape));
    let down = |tensor: TensorHandle| -> Vec<f32> {
        let bits: Vec<u16> = download(&case.client, tensor);
        bits.into_iter().map(|b| half::f16::from_bits(b).to_f32()).collect()
    };
    let y = forward(&case.client, input.clone(), weight.clone(), None, &case.params).unwrap();
    let want = reference::forward(&case.geometry, case.fma, &wide(&x), &wide(&w), None);
    assert_bits(&down(y), &wide(&round(&want)));
    let dw = weight_gradient(&case.client, input, gradient, &case.weight_shape, &case.params).unwrap();
    let want = reference::weight_gradient(&case.geometry, case.fma, &wide(&x), &wide(&dy));
    assert_bits(&down(dw), &wide(&round(&want)));
}

#[test]
fn double_precision_accumulates_in_itself() {
    let case = Case::new(&[3, 5, 6, 6], &[6, 5, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let f64s = ElemType::Float(FloatKind::F64);
    if !case.client.properties().supports_type(f64s) {
        return skip("the device has no f64");
    }
    let up = |values: &[f32], shape: &[usize]| {
        let values: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
        upload(&case.client, &values, shape, f64s)
    };
    let (input, weight) = (up(&case.input, &case.input_shape), up(&case.weight, &case.weight_shape));
    let y: Vec<f64> = download(&case.client, forward(&case.client, input, weight, None, &case.params).unwrap());
    let single = reference::forward(&case.geometry, case.fma, &case.input, &case.weight, None);
    let near = y.iter().zip(&single).all(|(double, &single)| (double - f64::from(single)).abs() < 1e-4);
    assert!(near && y.iter().zip(&single).any(|(double, &single)| *double != f64::from(single)));
}
