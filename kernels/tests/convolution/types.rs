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
    let y = forward(&client, Products::Native, input, weight, Some(bias), &uniform::<1>(1, (0, 0), 1, 1))
        .expect("a forward pass");
    assert_eq!(download::<f16>(&client, y), [f16::from_f32(1.5 + 2f32.powi(-10))]);
}

/// The three passes of a case in a half type, by every plan: sums in f32, rounded once.
#[track_caller]
fn check_half<const N: usize>(mut case: Case<N>, half: Half) {
    println!("{half:?}, {:?}", case.geometry);
    for values in [&mut case.input, &mut case.weight, &mut case.bias, &mut case.gradient] {
        *values = half.rounded(values);
    }
    let up = |values: &[f32], shape: &[usize]| half.upload(&case.client, values, shape);
    for pass in [Pass::ToOutput, Pass::ToInput, Pass::ToWeight] {
        let want = half.rounded(&case.pass(pass).0);
        let problem = case.problem(pass);
        for plan in Plan::candidates(&problem) {
            let (input, weight) = (up(&case.input, &case.input_shape), up(&case.weight, &case.weight_shape));
            let gradient = up(&case.gradient, &case.output_shape);
            let operands = match pass {
                Pass::ToOutput => {
                    let bias = Some(up(&case.bias, &case.weight_shape[..1]));
                    Operands { source: input, other: weight, bias }
                }
                Pass::ToInput => Operands { source: gradient, other: weight, bias: None },
                Pass::ToWeight => Operands { source: input, other: gradient, bias: None },
            };
            println!("{plan:?}");
            let got = run_pass(&case.client, "test", &problem, operands, Some(plan)).expect("a plan that applies");
            assert_bits(&half.download(&case.client, got), &want);
        }
    }
}

/// A case in both half types. A process compiles its kernels one by one: each case has a test of its own.
#[track_caller]
fn check_halves<const N: usize>(case: impl Fn() -> Case<N>) {
    for half in HALVES {
        match client().properties().supports_type(half.dtype) {
            true => check_half(case(), half),
            false => skip(format_args!("the device has no {}", half.dtype)),
        }
    }
}

/// As [`check_halves`], in several blocks of one of the passes.
#[track_caller]
fn check_halves_in_blocks(input: [usize; 4], weight: [usize; 4]) {
    check_halves(|| {
        let case = Case::new(&input, &weight, uniform::<2>(1, (1, 1), 1, 1));
        let blocks = [Pass::ToOutput, Pass::ToInput, Pass::ToWeight].map(|pass| case.problem(pass).blocks());
        assert!(blocks.into_iter().max() > Some(2), "{blocks:?}");
        case
    });
}

#[test]
fn half_types_are_rounded_once() {
    check_halves(|| Case::new(&[3, 5, 6, 6], &[6, 5, 3, 3], uniform::<2>(1, (1, 1), 1, 1)));
}

#[test]
fn half_types_are_rounded_once_in_a_forward_pass_of_blocks() {
    check_halves_in_blocks([1, 400, 4, 3], [3, 400, 3, 3]);
}

#[test]
fn half_types_are_rounded_once_in_an_input_gradient_of_blocks() {
    check_halves_in_blocks([1, 3, 4, 3], [400, 3, 3, 3]);
}

#[test]
fn half_types_are_rounded_once_in_a_weight_gradient_of_blocks() {
    check_halves_in_blocks([3, 2, 31, 30], [3, 2, 3, 3]);
}

/// Phases of an input gradient, each of several blocks.
#[test]
fn half_types_are_rounded_once_with_a_stride() {
    check_halves(|| Case::new(&[2, 3, 9], &[1100, 3, 3], uniform::<1>(2, (1, 1), 1, 1)));
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
    let y: Vec<f64> =
        download(&case.client, forward(&case.client, Products::Native, input, weight, None, &case.params).unwrap());
    let single = reference::forward(&case.geometry, case.fma, &case.input, &case.weight, None);
    let near = y.iter().zip(&single).all(|(double, &single)| (double - f64::from(single)).abs() < 1e-4);
    assert!(near && y.iter().zip(&single).any(|(double, &single)| *double != f64::from(single)));
}
