//! Fourier transforms against their reference, and against the sums that define them.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::fourier::{Plan, forward, inverse, reference, twiddles};
use core::f64::consts::PI;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::std::tensor::TensorHandle;
use half::f16;

/// The lines along `axis`, one after the other.
fn lines(values: &[f32], shape: &[usize], axis: usize) -> Vec<Vec<f32>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let line = |o: usize, i: usize| (0..shape[axis]).map(move |k| values[(o * shape[axis] + k) * inner + i]).collect();
    (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))).map(|(o, i)| line(o, i)).collect()
}

/// The transform there against the reference for each line, and the way back for what it gave.
#[track_caller]
fn check(shape: &[usize], axis: usize, n: usize) {
    for plan in Plan::candidates(n, 4) {
        check_plan(shape, axis, n, plan);
    }
}

#[track_caller]
fn check_plan(shape: &[usize], axis: usize, n: usize, plan: Plan) {
    println!("{shape:?} along {axis}, {n} values, {plan:?}");
    let (client, values) = (client(), random_values(7, shape.iter().product()));
    let signal = upload(&client, &values, shape, F32);
    let parts = forward(&client, signal, axis, n, Some(plan)).expect("a spectrum");
    let mut bins = shape.to_vec();
    bins[axis] = n / 2 + 1;
    assert!(parts.iter().all(|part| part.shape()[..] == bins));
    let [real, imaginary] = parts.clone().map(|part| download::<f32>(&client, part));
    let [real, imaginary] = [real, imaginary].map(|part| lines(&part, &bins, axis));
    for (line, values) in lines(&values, shape, axis).iter().enumerate() {
        let [want_real, want_imaginary] = reference::forward(values, n);
        assert_bits(&real[line], &want_real);
        assert_bits(&imaginary[line], &want_imaginary);
    }
    for length in [n, 2 * n, (n / 2).max(1)] {
        let [real_part, imaginary_part] = parts.clone();
        let applies = plan.refuses(length, 4).is_none();
        let signal = inverse(&client, real_part, imaginary_part, axis, length, applies.then_some(plan));
        let signal = signal.expect("a signal");
        let mut samples = shape.to_vec();
        samples[axis] = length;
        assert_eq!(signal.shape()[..], samples);
        let signal = lines(&download(&client, signal), &samples, axis);
        for (line, signal) in signal.iter().enumerate() {
            assert_bits(signal, &reference::inverse(&real[line], &imaginary[line], length));
        }
    }
}

#[test]
fn transforms_match_reference() {
    for n in [1, 2, 4, 8, 64, 512, 1024, 4096] {
        check(&[n], 0, n);
        check(&[3, n], 1, n);
    }
    // More lines than a cube has, and not a multiple.
    check(&[37, 5, 11], 1, 8);
    check(&[8, 5], 0, 8);
    check(&[2, 16, 3], 1, 16);
    check(&[1, 1, 16, 1, 1], 2, 16);
}

#[test]
fn a_signal_is_cut_or_ends_with_zeros() {
    for (length, n) in [(13, 16), (19, 16), (1, 8), (7, 1), (5, 2)] {
        check(&[2, length, 2], 1, n);
    }
}

#[test]
fn more_lines_than_cubes_along_an_axis() {
    check(&[70_000, 2], 1, 2);
}

#[test]
fn a_long_signal() {
    check(&[1 << 17], 0, 1 << 17);
}

#[test]
fn no_lines_and_no_values() {
    let client = client();
    let [real, imaginary] = forward(&client, upload::<f32>(&client, &[], &[0, 4], F32), 1, 4, None).expect("nothing");
    assert_eq!((&real.shape()[..], &imaginary.shape()[..]), (&[0, 3][..], &[0, 3][..]));
    let [real, _] = forward(&client, upload::<f32>(&client, &[], &[2, 0], F32), 1, 4, None).expect("zeros");
    assert_eq!(download::<f32>(&client, real), [0.0; 6]);
}

#[test]
fn values_that_are_not_ordinary() {
    let client = client();
    for special in [f32::INFINITY, f32::NAN, -0.0, f32::MAX] {
        let values = [1.0, special, -2.0, 0.5];
        let [real, imaginary] = forward(&client, upload(&client, &values, &[4], F32), 0, 4, None).expect("a spectrum");
        let [want_real, want_imaginary] = reference::forward(&values, 4);
        for (part, want) in [(real, want_real), (imaginary, want_imaginary)] {
            for (got, want) in download::<f32>(&client, part).iter().zip(&want) {
                assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{special}: {got}, {want}");
            }
        }
    }
}

#[test]
fn strides_do_not_matter() {
    let client = client();
    let values = random_values(3, 8 * 6);
    let transposed: Vec<f32> = (0..values.len()).map(|n| values[n % 8 * 6 + n / 8]).collect();
    let dense = forward(&client, upload(&client, &transposed, &[6, 8], F32), 1, 8, None).expect("a spectrum");
    let memory = upload(&client, &values, &[8, 6], F32);
    let strided = TensorHandle::new(memory.handle, vec![6, 8], vec![1, 6], F32);
    let strided = forward(&client, strided, 1, 8, None).expect("a spectrum");
    for (dense, strided) in dense.into_iter().zip(strided) {
        assert_bits(&download(&client, strided), &download::<f32>(&client, dense));
    }
}

/// Against the sum that defines it, in f64: about log2(n) roundings.
#[test]
fn it_is_the_fourier_transform() {
    let (client, n) = (client(), 256);
    let values = random_values(5, n);
    let [real, imaginary] = forward(&client, upload(&client, &values, &[n], F32), 0, n, None).expect("a spectrum");
    let [real, imaginary] = [real, imaginary].map(|part| download::<f32>(&client, part));
    for k in 0..=n / 2 {
        let term = |(i, &value): (usize, &f32)| {
            let angle = -2.0 * PI * (i * k % n) as f64 / n as f64;
            (f64::from(value) * angle.cos(), f64::from(value) * angle.sin())
        };
        let (re, im) =
            values.iter().enumerate().map(term).fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
        assert!((f64::from(real[k]) - re).abs() < 1e-4 && (f64::from(imaginary[k]) - im).abs() < 1e-4, "bin {k}");
    }
    assert_eq!(twiddles(8)[4..6], [0.0, 1.0]);
}

#[test]
fn half_types_round_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip("the device has no f16");
    }
    let values: Vec<f16> = random_values(9, 32).into_iter().map(f16::from_f32).collect();
    let exact: Vec<f32> = values.iter().map(|value| value.to_f32()).collect();
    let [real, imaginary] = forward(&client, upload(&client, &values, &[32], dtype), 0, 32, None).expect("a spectrum");
    let want = reference::forward(&exact, 32);
    for (part, want) in [real, imaginary].into_iter().zip(want) {
        let want: Vec<f16> = want.into_iter().map(f16::from_f32).collect();
        assert_eq!(download::<f16>(&client, part), want);
    }
}

#[test]
fn refusals() {
    let client = client();
    let signal = || upload(&client, &[0.0f32; 12], &[2, 6], F32);
    let refused = |error: KernelError| error.to_string();
    let error = refused(forward(&client, signal(), 1, 6, None).expect_err("no power of two"));
    assert!(error.contains("a transform of 6 values, want a power of two"), "{error}");
    assert!(forward(&client, signal(), 1, 0, None).is_err());
    assert!(forward(&client, signal(), 2, 8, None).is_err());
    let error = refused(forward(&client, signal(), 1, 8192, Some(Plan::Lines)).expect_err("more than shared memory"));
    assert!(error.contains("Lines for 8192 values, want 2 to 4096"), "{error}");
    assert!(forward(&client, upload(&client, &[1i32, 2], &[2], I32), 0, 2, None).is_err());
    let error = refused(forward(&client, signal(), 1, 1 << 29, None).expect_err("too much memory"));
    assert!(error.contains("more than 2^31 elements"), "{error}");
    assert!(inverse(&client, signal(), upload(&client, &[0.0f32; 6], &[1, 6], F32), 1, 8, None).is_err());
}
