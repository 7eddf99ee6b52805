//! Padding, empty operands, signs of zero, and refusals.

use super::*;

#[test]
fn empty_operands_give_empty_results_and_empty_sums() {
    Case::new(&[0, 3, 5, 5], &[4, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 0, 5, 5], &[4, 0, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 3, 5, 5], &[0, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[2, 3, 0, 5], &[4, 3, 3, 3], uniform::<2>(1, (2, 1), 1, 1)).check();
}

#[test]
fn broadcast_operands_give_the_bits_of_a_copy() {
    let case = Case::new(&[4, 3, 6, 6], &[5, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let gradient = TensorHandle::new(
        case.client.create_from_slice(bytemuck::cast_slice(&[0.3f32])),
        case.output_shape.clone(),
        vec![0; 4],
        F32,
    );
    let copy = vec![0.3; case.gradient.len()];
    let [_, dx, dw] = case.device(case.device_input(), case.device_weight(), gradient);
    assert_bits(&dx, &reference::input_gradient(&case.geometry, case.fma, &copy, &case.weight, None));
    assert_bits(&dw, &reference::weight_gradient(&case.geometry, case.fma, &case.input, &copy));
}

#[test]
fn padding_reads_zero() {
    let mut case = Case::new(&[1, 1, 3], &[1, 1, 3], uniform::<1>(1, (1, 1), 1, 1));
    case.weight = vec![f32::INFINITY, 1.0, 1.0];
    case.input = vec![1.0, 2.0, 3.0];
    case.gradient = vec![1.0, 2.0, f32::INFINITY];
    case.bias = vec![0.0];
    let [y, dx, dw] = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    // The first position meets the infinite weight outside the input: 0 * infinity.
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [f32::INFINITY; 2]);
    // Position i meets weight k at o = i + 1 - k: the last one meets weight 0 at o = 3, outside the output.
    assert_eq!(dx[..2], [f32::INFINITY; 2]);
    assert!(dx[2].is_nan());
    // The infinite gradient meets tap 2 outside the input.
    assert_eq!(dw[..2], [f32::INFINITY; 2]);
    assert!(dw[2].is_nan());
}

/// Positions in no phase, beyond the last window, and with an input without positions.
#[test]
fn empty_chains_are_positive_zero() {
    let case = Case::new(&[1, 1, 8], &[1, 1, 2], uniform::<1>(4, (0, 0), 2, 1));
    let dx = case.device(case.device_input(), case.device_weight(), case.device_gradient())[1].clone();
    assert_bits(&[dx[1], dx[3], dx[5]], &[0.0; 3]);
    let mut case = Case::new(&[1, 1, 0], &[1, 1, 2], uniform::<1>(1, (1, 1), 1, 1));
    case.weight = vec![1.0, f32::NAN];
    case.bias = vec![0.0];
    assert!(case.device(case.device_input(), case.device_weight(), case.device_gradient())[0][0].is_nan());
}

/// Where a fused multiply-add rounds a negative number to zero the accumulator is -0, which a term with padding turns to
/// +0 if its product is +0.
#[test]
fn signs_of_zero_follow_the_reference() {
    let mut case = Case::new(&[1, 1, 1], &[2, 1, 2], uniform::<1>(1, (0, 1), 1, 1));
    case.input = vec![1e-30];
    case.weight = vec![-1e-30, 1.0, -1e-30, -1.0];
    let bare = |fma| reference::forward(&case.geometry, fma, &case.input, &case.weight, None);
    assert_bits(&bare(MultiplyAdd::Fused), &[0.0, -0.0]);
    assert_bits(&bare(MultiplyAdd::Unfused), &[0.0, 0.0]);
    let y =
        forward(&case.client, Products::Native, case.device_input(), case.device_weight(), None, &case.params).unwrap();
    assert_bits(&download(&case.client, y), &bare(case.fma));
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let client = client();
    let tensor = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
    let refusal = |result: Result<TensorHandle, KernelError>| result.map(|_| ()).unwrap_err().to_string();
    let params = uniform::<2>(1, (0, 0), 1, 1);
    let got = forward(&client, Products::Native, tensor(&[1, 3, 4, 4]), tensor(&[2, 4, 3, 3]), None, &params);
    assert_eq!(refusal(got), "convolution::forward: input [1, 3, 4, 4], want 4 channels and 2 spatial axes");
    let got = forward(&client, Products::Native, tensor(&[1, 3, 2, 4]), tensor(&[2, 3, 3, 3]), None, &params);
    assert_eq!(
        refusal(got),
        "convolution::forward: spatial axis 0: a kernel that reaches over 3 positions does not fit 2"
    );
    let got =
        forward(&client, Products::Native, tensor(&[1, 3, 4, 4]), tensor(&[2, 3, 3, 3]), Some(tensor(&[3])), &params);
    assert_eq!(refusal(got), "convolution::forward: bias [3], want [2]");
    let got =
        input_gradient(&client, Products::Native, tensor(&[1, 2, 4, 4]), tensor(&[2, 3, 3, 3]), &[1, 3, 4, 4], &params);
    assert_eq!(refusal(got), "convolution::input_gradient: output gradient [1, 2, 4, 4], want [1, 2, 2, 2]");
    let integers = upload(&client, &[0i32; 16], &[1, 1, 4, 4], I32);
    let kernel = upload(&client, &[0i32; 1], &[1, 1, 1, 1], I32);
    let got = forward(&client, Products::Native, integers, kernel, None, &params);
    assert_eq!(refusal(got), "convolution::forward: no fixed-order kernel for i32; convert to f32, f64, f16 or bf16");
    let far = vec![1usize << 33, 16, 4, 1];
    let far = TensorHandle::new(client.create_from_slice(&[0; 64]), vec![2, 1, 4, 4], far, F32);
    let got = forward(&client, Products::Native, far, tensor(&[1, 1, 3, 3]), None, &params);
    assert_eq!(
        refusal(got),
        "convolution::forward: an operand [2, 1, 4, 4] with strides [8589934592, 16, 4, 1] reaches over 2^32 elements"
    );
    let strided = uniform::<2>(0, (0, 0), 1, 1);
    let got = forward(&client, Products::Native, tensor(&[1, 3, 4, 4]), tensor(&[2, 3, 3, 3]), None, &strided);
    assert_eq!(refusal(got), "convolution::forward: spatial axis 0: stride 0 and dilation 1 must not be zero");
}
