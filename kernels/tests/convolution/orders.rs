//! Sums in the order of the contract, whatever the layout, the batch and the repetition.

use super::*;

#[test]
fn one_axis_matches_reference() {
    for (stride, padding, dilation) in [
        (1, (0, 0), 1),
        (1, (1, 1), 1),
        (2, (1, 1), 1),
        (3, (0, 2), 2),
        (2, (3, 0), 3),
        (1, (4, 4), 2),
        (4, (5, 1), 2),
        (6, (2, 9), 4),
        (5, (7, 7), 3),
    ] {
        for (groups, inputs, outputs) in [(1, 1, 1), (1, 3, 5), (2, 2, 4), (5, 1, 1)] {
            for (batch, length, taps) in [(1, 7, 1), (3, 17, 3), (5, 9, 4), (2, 31, 7)] {
                let params = uniform::<1>(stride, padding, dilation, groups);
                if length + padding.0 + padding.1 > dilation * (taps - 1) {
                    Case::new(&[batch, groups * inputs, length], &[groups * outputs, inputs, taps], params).check();
                }
            }
        }
    }
}

#[test]
fn two_axes_match_reference() {
    let unlike = ConvolutionParams { stride: [2, 3], padding: [(0, 1), (2, 1)], dilation: [3, 1], groups: 2 };
    Case::new(&[4, 6, 9, 8], &[10, 3, 3, 2], unlike).check();
    Case::new(&[2, 3, 8, 8], &[9, 3, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).check();
    Case::new(&[5, 4, 7, 6], &[8, 4, 3, 3], uniform::<2>(2, (1, 1), 1, 1)).check();
    Case::new(&[5, 8, 7, 6], &[8, 1, 3, 3], uniform::<2>(1, (1, 1), 2, 8)).check();
    Case::new(&[3, 4, 5, 5], &[12, 1, 5, 5], uniform::<2>(1, (2, 2), 1, 4)).check();
    Case::new(&[3, 7, 6, 1], &[16, 7, 1, 1], uniform::<2>(1, (0, 0), 1, 1)).check();
    Case::new(&[3, 2, 2, 2], &[3, 2, 2, 2], uniform::<2>(5, (3, 3), 1, 1)).check();
}

#[test]
fn three_axes_match_reference() {
    let unlike =
        ConvolutionParams { stride: [1, 2, 3], padding: [(1, 0), (0, 2), (1, 1)], dilation: [2, 1, 1], groups: 3 };
    Case::new(&[3, 6, 4, 5, 7], &[9, 2, 2, 3, 2], unlike).check();
    Case::new(&[2, 3, 4, 4, 4], &[5, 3, 3, 3, 3], uniform::<3>(1, (1, 1), 1, 1)).check();
    Case::new(&[1, 4, 5, 3, 4], &[4, 1, 2, 2, 2], uniform::<3>(2, (1, 1), 1, 4)).check();
}

/// One chain without blocks.
fn unblocked(fma: MultiplyAdd, terms: impl Iterator<Item = (f32, f32)>) -> f32 {
    terms.fold(0.0, |acc, (a, b)| fma.apply(a, b, acc))
}

#[test]
fn long_sums_are_blocked() {
    let blocks = |case: &Case<2>, pass| case.problem(pass).blocks();
    // A weight gradient of 90,000 terms: blocks end inside rows.
    let case = Case::new(&[100, 1, 32, 32], &[1, 1, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    assert_eq!(blocks(&case, Pass::ToWeight), 88);
    case.check();
    // The hazard: one chain over all the terms gives other bits.
    let wrong = (0..9).map(|tap| {
        let place = |t: usize| (t / 900 * 32 + t / 30 % 30 + tap / 3) * 32 + t % 30 + tap % 3;
        unblocked(case.fma, (0..90_000).map(|t| (case.input[place(t)], case.gradient[t])))
    });
    assert!(wrong.zip(case.weight_gradient()).any(|(a, b)| a.to_bits() != b.to_bits()));

    // Passes between activations: blocks end inside taps and at their ends, in each phase of a stride at other taps.
    for (stride, inputs, outputs) in [(1, 130, 120), (1, 1024, 256), (2, 520, 700), (1, 300, 2050)] {
        let case = Case::new(&[2, inputs, 4, 3], &[outputs, inputs, 3, 3], uniform::<2>(stride, (1, 1), 1, 1));
        assert!(blocks(&case, Pass::ToOutput) > 1 && blocks(&case, Pass::ToInput) > 1);
        case.check();
    }
    let case = Case::new(&[1, 130, 3, 3], &[1, 130, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    assert_eq!(blocks(&case, Pass::ToOutput), 2);
    let terms = (0..9 * 130).map(|p| p % 130 * 9 + p / 130).map(|at| (case.input[at], case.weight[at]));
    assert_ne!((unblocked(case.fma, terms) + case.bias[0]).to_bits(), case.forward()[0].to_bits());
    // 1024 terms are one block, another term opens the next.
    for channels in [BLOCK - 1, BLOCK, BLOCK + 1] {
        let case = Case::new(&[2, channels, 3, 3], &[2, channels, 1, 1], uniform::<2>(1, (0, 0), 1, 1));
        assert_eq!(blocks(&case, Pass::ToOutput), 1 + usize::from(channels > BLOCK));
        case.check();
    }
}

#[test]
fn transposed_convolutions_match_reference() {
    let steps = [
        TransposedParams { stride: [1, 1], padding: [0, 0], padding_out: [0, 0], dilation: [1, 1], groups: 1 },
        TransposedParams { stride: [2, 3], padding: [1, 0], padding_out: [1, 2], dilation: [1, 2], groups: 1 },
        TransposedParams { stride: [3, 2], padding: [0, 2], padding_out: [0, 1], dilation: [2, 1], groups: 2 },
    ];
    let client = client();
    let fma = multiply_add_of(&client);
    for params in steps {
        let (input_shape, weight_shape) = ([3, 4, 5, 4], [4, 3, 3, 2]);
        let g = Geometry::transposed("test", &input_shape, &weight_shape, &params).unwrap();
        let output_shape = g.input_shape(2);
        let burns = |n: usize| {
            let reach = params.dilation[n] * (weight_shape[n + 2] - 1) + 1;
            (input_shape[n + 2] - 1) * params.stride[n] + reach + params.padding_out[n] - 2 * params.padding[n]
        };
        assert_eq!(output_shape, [3, 3 * params.groups, burns(0), burns(1)]);
        let (x, w) = (random_values(1, 240), random_values(2, 72));
        let bias = random_values(3, output_shape[1]);
        let dy = random_values(4, output_shape.iter().product());
        let up = |values: &[f32], shape: &[usize]| upload(&client, values, shape, F32);

        let device_bias = Some(up(&bias, &output_shape[1..2]));
        let y = transposed_forward(
            &client,
            Products::Native,
            up(&x, &input_shape),
            up(&w, &weight_shape),
            device_bias,
            &params,
        )
        .unwrap();
        assert_eq!(y.shape()[..], output_shape);
        assert_bits(&download(&client, y), &reference::input_gradient(&g, fma, &x, &w, Some(&bias)));

        let problem = |pass: Pass| Problem { pass, rank: params.stride.len(), geometry: g, products: Products::Native };
        let operands = Operands { source: up(&dy, &output_shape), other: up(&w, &weight_shape), bias: None };
        let dx = run_pass(&client, "test", &problem(Pass::ToOutput), operands, None).unwrap();
        assert_eq!(dx.shape()[..], input_shape);
        assert_bits(&download(&client, dx), &reference::forward(&g, fma, &dy, &w, None));

        for plan in Plan::candidates(&problem(Pass::ToInput)) {
            let (source, other) = (up(&x, &input_shape), up(&w, &weight_shape));
            let operands = Operands { source, other, bias: Some(up(&bias, &output_shape[1..2])) };
            let y = run_pass(&client, "test", &problem(Pass::ToInput), operands, Some(plan)).unwrap();
            assert_bits(&download(&client, y), &reference::input_gradient(&g, fma, &x, &w, Some(&bias)));
        }

        let (device_x, device_dy) = (up(&x, &input_shape), up(&dy, &output_shape));
        let dw =
            transposed_weight_gradient(&client, Products::Native, device_x, device_dy, &weight_shape, &params).unwrap();
        assert_eq!(dw.shape()[..], weight_shape);
        assert_bits(&download(&client, dw), &reference::weight_gradient(&g, fma, &dy, &x));
    }
}

#[test]
fn layout_and_repetition_do_not_change_bits() {
    let params = ConvolutionParams { stride: [2, 1], padding: [(1, 1), (0, 2)], dilation: [1, 2], groups: 2 };
    let case = Case::new(&[6, 10, 9, 8], &[18, 5, 3, 3], params);
    let want = [case.forward(), case.input_gradient(), case.weight_gradient()];
    let client = &case.client;
    let input = scattered(2, client, &case.input, &case.input_shape);
    let weight = scattered(2, client, &case.weight, &case.weight_shape);
    let gradient = scattered(2, client, &case.gradient, &case.output_shape);
    for _ in 0..10 {
        let got = case.device(input.clone(), weight.clone(), gradient.clone());
        (0..3).for_each(|n| assert_bits(&got[n], &want[n]));
    }
}

/// Forward passes and input gradients of a sample are the same alone and at any place of any batch.
#[test]
fn a_sample_does_not_depend_on_its_batch() {
    for (stride, inputs, outputs, groups) in [(1, 3, 9, 1), (2, 130, 12, 1), (1, 1, 1, 6)] {
        let params = uniform::<2>(stride, (1, 1), 1, groups);
        let case = Case::new(&[64, groups * inputs, 6, 5], &[groups * outputs, inputs, 3, 3], params);
        let client = &case.client;
        let part = |values: &[f32], shape: &[usize], first: usize, batch: usize| {
            let sample = shape[1..].iter().product::<usize>();
            let shape: Vec<usize> = [batch].into_iter().chain(shape[1..].iter().copied()).collect();
            upload(client, &values[first * sample..(first + batch) * sample], &shape, F32)
        };
        let whole = [case.forward(), case.input_gradient()];
        for (first, batch) in [(0, 64), (0, 1), (63, 1), (5, 2), (7, 3), (1, 4), (9, 5), (13, 7), (8, 8), (31, 33)] {
            let input = part(&case.input, &case.input_shape, first, batch);
            let gradient = part(&case.gradient, &case.output_shape, first, batch);
            let shape = input.shape().to_vec();
            let y = forward(client, Products::Native, input, case.device_weight(), Some(case.device_bias()), &params)
                .unwrap();
            let dx = input_gradient(client, Products::Native, gradient, case.device_weight(), &shape, &params).unwrap();
            for (got, want) in [y, dx].into_iter().zip(&whole) {
                let got: Vec<f32> = download(client, got);
                let sample = want.len() / 64;
                assert_bits(&got, &want[first * sample..(first + batch) * sample]);
            }
        }
    }
}

#[test]
fn taps_out_of_phase_are_no_terms() {
    let mut case = Case::new(&[1, 1, 6], &[1, 1, 2], uniform::<1>(2, (0, 0), 1, 1));
    case.weight = vec![1.0, f32::INFINITY];
    case.gradient = vec![1.0, 2.0, 3.0];
    let [_, dx, _] = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    assert_bits(&dx, &[1.0, f32::INFINITY, 2.0, f32::INFINITY, 3.0, f32::INFINITY]);
}

#[test]
fn order_shows_in_the_bits() {
    // Channels outside, taps inside: the other natural order of the same products.
    let case = Case::new(&[1, 8, 3, 3], &[1, 8, 3, 3], uniform::<2>(1, (0, 0), 1, 1));
    let channels_first = (0..72).fold(0.0, |acc, n| case.fma.apply(case.input[n], case.weight[n], acc));
    assert_ne!((channels_first + case.bias[0]).to_bits(), case.forward()[0].to_bits());
}

/// The largest error against `exact`, in units of `f32::EPSILON` times the sum of the terms' magnitudes.
fn error(got: &[f32], exact: &[f64], magnitude: &[f64]) -> f64 {
    let one = |n: usize| (f64::from(got[n]) - exact[n]).abs() / magnitude[n].max(f64::MIN_POSITIVE);
    (0..got.len()).map(one).fold(0.0, f64::max) / f64::from(f32::EPSILON)
}

#[test]
fn gradients_are_those_of_the_forward_pass() {
    // Independent of the reference: sum of forward(x, w) * dy is bilinear, so its derivatives are sums of products that
    // a plain loop over (batch, output channel, position, tap, input channel) scatters in float64.
    let params = ConvolutionParams { stride: [2, 1], padding: [(1, 0), (1, 2)], dilation: [1, 2], groups: 2 };
    let case = Case::new(&[8, 6, 9, 10], &[8, 3, 3, 3], params);
    let (xs, os) = (&case.input_shape, &case.output_shape);
    let (mut y, mut dx, mut dw) =
        (vec![[0f64; 2]; case.gradient.len()], vec![[0f64; 2]; case.input.len()], vec![[0f64; 2]; case.weight.len()]);
    let add = |sum: &mut [f64; 2], a: f32, b: f32| {
        let product = f64::from(a) * f64::from(b);
        *sum = [sum[0] + product, sum[1] + product.abs()];
    };
    for (n, sum) in y.iter_mut().enumerate() {
        let (b, co, oh, ow) = (n / os[3] / os[2] / os[1], n / os[3] / os[2] % os[1], n / os[3] % os[2], n % os[3]);
        for k in 0..27 {
            let (ci, kh, kw) = (k / 9, k / 3 % 3, k % 3);
            let (ih, iw) = ((oh * 2 + kh) as i64 - 1, (ow + 2 * kw) as i64 - 1);
            if !(0..xs[2] as i64).contains(&ih) || !(0..xs[3] as i64).contains(&iw) {
                continue;
            }
            let i = ((b * 6 + co / 4 * 3 + ci) * xs[2] + ih as usize) * xs[3] + iw as usize;
            let w = co * 27 + k;
            add(sum, case.input[i], case.weight[w]);
            add(&mut dx[i], case.gradient[n], case.weight[w]);
            add(&mut dw[w], case.gradient[n], case.input[i]);
        }
        add(sum, case.bias[co], 1.0);
    }
    let got = case.device(case.device_input(), case.device_weight(), case.device_gradient());
    for (name, got, want, terms) in [("y", &got[0], &y, 28), ("dx", &got[1], &dx, 36), ("dw", &got[2], &dw, 400)] {
        let (exact, magnitude): (Vec<f64>, Vec<f64>) = want.iter().map(|&[sum, size]| (sum, size)).unzip();
        let error = error(got, &exact, &magnitude);
        // Every operation of a chain of n multiply-adds errs by at most half an epsilon of the magnitudes so far, twice
        // that where a multiply-add rounds twice: n epsilons in all.
        assert!(error <= f64::from(terms), "{name}: {error} epsilons");
    }
}
