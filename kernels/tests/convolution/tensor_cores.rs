//! Convolutions on tensor cores against their references.

use super::*;
use crate::known_answer::with_planted;
use crate::tensor_cores::{Type, types};
use burn_deterministic_kernels::convolution::reference::Order;
use burn_deterministic_kernels::convolution::tensor_cores::plan::{self, Plan};
use burn_deterministic_kernels::convolution::tensor_cores::{applies, run_pass};
use burn_deterministic_kernels::matmul::tensor_cores::Sums;
use burn_deterministic_kernels::matmul::tensor_cores::plan::Tile;

const PASSES: [Pass; 3] = [Pass::ToOutput, Pass::ToInput, Pass::ToWeight];

impl<const N: usize> Case<N> {
    /// The same case of numbers of a type.
    fn of(mut self, of: Type) -> Self {
        for values in [&mut self.input, &mut self.weight, &mut self.bias, &mut self.gradient] {
            *values = of.rounded(values);
        }
        self
    }

    /// What the reference of tensor cores computes, and the operands of the same pass on the device.
    fn on_tensor_cores(&self, pass: Pass, of: Type, sums: Sums) -> (Vec<f32>, Operands) {
        let order = Order::TensorCores(of.dtype(), sums);
        let (g, bias) = (&self.geometry, Some(&self.bias[..]));
        let up = |values: &[f32], shape: &[usize]| of.upload(&self.client, values, shape);
        let (input, weight) = (up(&self.input, &self.input_shape), up(&self.weight, &self.weight_shape));
        let gradient = up(&self.gradient, &self.output_shape);
        let (want, operands) = match pass {
            Pass::ToOutput => {
                let bias_of = Some(up(&self.bias, &self.weight_shape[..1]));
                let want = reference::forward(g, order, &self.input, &self.weight, bias);
                (want, Operands { source: input, other: weight, bias: bias_of })
            }
            Pass::ToInput => {
                let want = reference::input_gradient(g, order, &self.gradient, &self.weight, None);
                (want, Operands { source: gradient, other: weight, bias: None })
            }
            Pass::ToWeight => {
                let want = reference::weight_gradient(g, order, &self.input, &self.gradient);
                (want, Operands { source: input, other: gradient, bias: None })
            }
        };
        (of.rounded(&want), operands)
    }
}

/// Two lists of numbers are equal in all bits, but for those of a NaN.
#[track_caller]
fn assert_numbers(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let differs = |at: &usize| got[*at].to_bits() != want[*at].to_bits() && !(got[*at].is_nan() && want[*at].is_nan());
    let all: Vec<_> = (0..want.len()).filter(differs).collect();
    if let Some(&at) = all.first() {
        panic!("{what}: {} of {} differ, first {at}: got {:e}, want {:e}", all.len(), want.len(), got[at], want[at]);
    }
}

/// Every pass of a case that has this order, in every type, by every plan. Returns which passes have it.
#[track_caller]
fn check<const N: usize>(case: impl Fn() -> Case<N>) -> Vec<Pass> {
    let client = client();
    for (of, sums) in types(&client) {
        let case = case().of(of);
        for pass in PASSES {
            let problem = case.problem(pass);
            if !applies(&problem, of.dtype()) {
                continue;
            }
            let plans = Plan::candidates(&problem, of.dtype());
            assert!(plans.contains(&plan::plan(&problem, of.dtype())), "{problem:?}");
            let (want, _) = case.on_tensor_cores(pass, of, sums);
            for plan in plans {
                let (_, operands) = case.on_tensor_cores(pass, of, sums);
                let got = run_pass(&client, "test", &problem, operands, Some(plan)).expect("a plan that applies");
                let what = format!("{of:?} {plan:?} {problem:?}");
                assert_numbers(&of.download(&client, got), &want, &what);
            }
        }
    }
    let case = case();
    PASSES.into_iter().filter(|&pass| applies(&case.problem(pass), F32)).collect()
}

#[test]
fn equals_reference_with_padding() {
    let case = || Case::new(&[2, 18, 7, 6], &[20, 18, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    assert_eq!(check(case), PASSES);
    // Columns in fours, and channels in whole vectors.
    assert_eq!(check(|| Case::new(&[3, 16, 6, 6], &[16, 16, 3, 3], uniform::<2>(1, (1, 1), 1, 1))), PASSES);
    // Padding beyond the input, and none at one side.
    assert_eq!(check(|| Case::new(&[2, 16, 2, 3], &[17, 16, 2, 3], uniform::<2>(1, (0, 4), 2, 1))), PASSES);
}

#[test]
fn equals_reference_in_groups() {
    let case = || Case::new(&[2, 34, 5, 4], &[36, 17, 3, 2], uniform::<2>(1, (1, 0), 1, 2));
    assert_eq!(check(case), PASSES);
}

/// Phases of one size and of several, with taps and without; strides beyond the input and the taps.
#[test]
fn equals_reference_with_a_stride() {
    for (stride, padding, dilation, taps) in [
        (2, (1, 1), 1, [3, 3]),
        (2, (0, 0), 1, [1, 1]),
        (3, (2, 1), 2, [2, 3]),
        (2, (1, 2), 2, [3, 2]),
        (4, (3, 3), 6, [2, 2]),
    ] {
        let params = uniform::<2>(stride, padding, dilation, 1);
        assert_eq!(check(|| Case::new(&[4, 17, 8, 7], &[16, 17, taps[0], taps[1]], params)), PASSES);
    }
    // 25 phases.
    let params = uniform::<2>(5, (1, 1), 1, 1);
    let passes = check(|| Case::new(&[1, 16, 9, 9], &[16, 16, 3, 3], params));
    assert_eq!(passes, [Pass::ToOutput]);
    let case = Case::new(&[5, 16, 9, 9], &[16, 16, 3, 3], params);
    assert!(applies(&case.problem(Pass::ToWeight), F32) && !applies(&case.problem(Pass::ToInput), F32));
}

#[test]
fn equals_reference_along_one_axis_and_three() {
    let case = || Case::new(&[3, 19, 21], &[33, 19, 5], uniform::<1>(1, (2, 2), 1, 1));
    assert_eq!(check(case), PASSES);
    let case = || Case::new(&[2, 16, 3, 4, 5], &[16, 16, 2, 3, 2], uniform::<3>(2, (1, 1), 1, 1));
    assert_eq!(check(case), PASSES);
}

/// Few input channels: a gradient of the input would compute too few.
#[test]
fn equals_reference_of_few_input_channels() {
    for channels in [1, 3] {
        let case = || Case::new(&[2, channels, 12, 12], &[24, channels, 5, 5], uniform::<2>(2, (2, 2), 1, 1));
        assert_eq!(check(case), [Pass::ToOutput, Pass::ToWeight]);
    }
}

/// The most blocks that are computed side by side.
fn widest<const N: usize>(case: &Case<N>, pass: Pass) -> usize {
    let plans = Plan::candidates(&case.problem(pass), F32);
    plans.iter().map(|plan| plan.span).max().expect("a plan")
}

/// Several blocks: of a forward pass, also in groups and in rounds of two, of an input gradient in one product and in phases, and of a weight
/// gradient.
#[test]
fn equals_reference_in_blocks() {
    let params = |stride, groups| uniform::<2>(stride, (1, 1), 1, groups);
    let case = || Case::new(&[1, 500, 3, 4], &[16, 500, 3, 3], params(1, 1));
    assert_eq!(widest(&case(), Pass::ToOutput), 5);
    assert_eq!(check(case), [Pass::ToOutput, Pass::ToInput]);
    let case = || Case::new(&[2, 240, 3, 4], &[36, 120, 3, 3], params(1, 2));
    assert_eq!(widest(&case(), Pass::ToOutput), 2);
    assert_eq!(check(case), PASSES);
    let case = || Case::new(&[1, 16, 3, 4], &[300, 16, 3, 3], params(1, 1));
    assert_eq!(widest(&case(), Pass::ToInput), 3);
    assert_eq!(check(case), [Pass::ToOutput, Pass::ToInput]);
    // Phases of one and of two blocks.
    let case = || Case::new(&[1, 16, 5, 4], &[300, 16, 3, 3], params(2, 1));
    assert_eq!(widest(&case(), Pass::ToInput), 1);
    assert_eq!(check(case), [Pass::ToOutput, Pass::ToInput]);
    let case = || Case::new(&[3, 16, 31, 30], &[16, 16, 2, 2], uniform::<2>(1, (1, 0), 1, 1));
    assert_eq!(widest(&case(), Pass::ToWeight), 3);
    assert_eq!(check(case), PASSES);
}

/// More rows than a tile has.
#[test]
fn equals_reference_of_many_channels() {
    assert_eq!(check(|| Case::new(&[2, 16, 5, 5], &[130, 16, 3, 3], uniform::<2>(1, (1, 1), 1, 1))), PASSES);
}

/// Sources without positions, and phases none of which has a tap.
#[test]
fn equals_reference_of_empty_chains() {
    let case = || Case::new(&[2, 16, 0, 5], &[16, 16, 3, 3], uniform::<2>(1, (2, 1), 1, 1));
    assert_eq!(check(case), [Pass::ToOutput, Pass::ToInput]);
    assert_eq!(
        check(|| Case::new(&[1, 16, 1], &[16, 16, 1], uniform::<1>(2, (1, 1), 1, 1))),
        [Pass::ToOutput, Pass::ToInput]
    );
}

/// A transposed convolution with a bias, of one block and of two: an element without a tap is the bias. Positions that its padding cuts are not computed.
#[test]
fn equals_reference_transposed() {
    let client = client();
    for (of, sums) in types(&client) {
        for (stride, padding, taps, channels) in [(2, 0, 3, 17), (2, 1, 1, 17), (1, 3, 3, 17), (2, 0, 1, 1040)] {
            let params = TransposedParams {
                stride: [stride; 2],
                padding: [padding; 2],
                padding_out: [stride - 1; 2],
                dilation: [1; 2],
                groups: 1,
            };
            let (input_shape, weight_shape) = ([2, channels, 6, 5], [channels, 20, taps, taps]);
            let values = |seed, shape: &[usize]| of.rounded(&random_values(seed, shape.iter().product()));
            let (input, weight, bias) = (values(1, &input_shape), values(2, &weight_shape), values(3, &[20]));
            let geometry = Geometry::transposed("test", &input_shape, &weight_shape, &params).expect("they fit");
            let order = Order::TensorCores(of.dtype(), sums);
            let up = |values: &[f32], shape: &[usize]| of.upload(&client, values, shape);
            let arithmetic = Arithmetic { tensor_cores: &|| Ok(true), products: Products::Native };
            let (x, w, b) = (up(&input, &input_shape), up(&weight, &weight_shape), up(&bias, &[20]));
            let out = transposed_forward(&client, arithmetic, x.clone(), w, Some(b), &params).expect("a pass");
            let want = reference::input_gradient(&geometry, order, &input, &weight, Some(&bias));
            let gradient = values(4, out.shape());
            let dy = up(&gradient, out.shape());
            assert_numbers(&of.download(&client, out), &of.rounded(&want), &format!("{of:?} {params:?}"));
            let dw = transposed_weight_gradient(&client, arithmetic, x, dy, &weight_shape, &params).expect("a pass");
            let want = reference::weight_gradient(&geometry, order, &gradient, &input);
            assert_numbers(&of.download(&client, dw), &of.rounded(&want), &format!("{of:?} {params:?}"));
        }
    }
}

/// Operands of any strides, and samples without the others: the same bits.
#[test]
fn layouts_and_batches_change_no_bits() {
    let client = client();
    for (of, sums) in types(&client) {
        let case = Case::new(&[3, 16, 5, 6], &[18, 16, 3, 3], uniform::<2>(1, (1, 1), 1, 1)).of(of);
        let by_last = |tensor: TensorHandle, values: &[f32]| {
            let shape = tensor.shape().to_vec();
            let [_, c, h, w] = [shape[0], shape[1], shape[2], shape[3]];
            // Stored [b, h, w, c].
            let from = |at: usize| ((at / c / w / h * c + at % c) * h + at / c / w % h) * w + at / c % w;
            let stored: Vec<f32> = (0..values.len()).map(|at| values[from(at)]).collect();
            let tensor = of.upload(&client, &stored, &shape);
            TensorHandle::new(tensor.handle, shape, vec![h * w * c, 1, w * c, c], of.dtype())
        };
        for pass in PASSES {
            let problem = case.problem(pass);
            let (want, operands) = case.on_tensor_cores(pass, of, sums);
            let (source, other) = match pass {
                Pass::ToOutput => (&case.input, &case.weight),
                Pass::ToInput => (&case.gradient, &case.weight),
                Pass::ToWeight => (&case.input, &case.gradient),
            };
            let operands = Operands {
                source: by_last(operands.source, source),
                other: by_last(operands.other, other),
                bias: operands.bias,
            };
            let got = run_pass(&client, "test", &problem, operands, None).expect("a pass");
            assert_numbers(&of.download(&client, got), &want, &format!("{of:?} {pass:?}"));
        }
        let (want, operands) = case.on_tensor_cores(Pass::ToOutput, of, sums);
        let one = Case::new(&[1, 16, 5, 6], &[18, 16, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
        let sample = of.upload(&client, &case.input[480..960], &one.input_shape);
        let operands = Operands { source: sample, ..operands };
        let got = run_pass(&client, "test", &one.problem(Pass::ToOutput), operands, None).expect("a pass");
        assert_numbers(&of.download(&client, got), &want[18 * 30..2 * 18 * 30], &format!("{of:?}: a sample"));
    }
}

/// An infinite weight that meets the padding gives NaN, as in chains.
#[test]
fn padding_reads_zero_on_tensor_cores() {
    for (of, sums) in types(&client()) {
        let mut case = Case::new(&[1, 16, 17], &[16, 16, 3], uniform::<1>(1, (1, 1), 1, 1)).of(of);
        case.weight[0] = f32::INFINITY;
        case.gradient[16] = f32::NEG_INFINITY;
        for pass in PASSES {
            let problem = case.problem(pass);
            let (want, operands) = case.on_tensor_cores(pass, of, sums);
            assert!(want.iter().any(|value| value.is_nan()) && want.iter().any(|value| value.is_finite()), "{pass:?}");
            let got = run_pass(&case.client, "test", &problem, operands, None).expect("a pass");
            assert_numbers(&of.download(&case.client, got), &want, &format!("{of:?} {pass:?}"));
        }
    }
}

/// Which order a pass has depends on its shape: the public functions take the one that applies.
#[test]
fn the_shape_has_the_order() {
    let client = client();
    let arithmetic = Arithmetic { tensor_cores: &|| Ok(true), products: Products::Native };
    for (of, sums) in types(&client) {
        for (outputs, is_applied) in [(16, true), (15, false)] {
            let mut case = Case::new(&[2, 16, 20], &[outputs, 16, 3], uniform::<1>(1, (1, 1), 1, 1)).of(of);
            // Channels that take away what others add: what is left is the roundings.
            for values in case.input.chunks_mut(8 * 20).skip(1).step_by(2) {
                values.fill(0.0);
            }
            for sample in case.input.chunks_mut(16 * 20) {
                let (first, second) = sample.split_at_mut(8 * 20);
                second.copy_from_slice(first);
            }
            for weights in case.weight.chunks_mut(16 * 3) {
                let (first, second) = weights.split_at_mut(8 * 3);
                second.iter_mut().zip(first).for_each(|(second, first)| *second = -*first);
            }
            case.bias.fill(0.0);
            let problem = case.problem(Pass::ToOutput);
            assert_eq!(applies(&problem, of.dtype()), is_applied, "{outputs} outputs");
            let (want, Operands { source, other, bias }) = case.on_tensor_cores(Pass::ToOutput, of, sums);
            let chains = reference::forward(&case.geometry, case.fma, &case.input, &case.weight, Some(&case.bias));
            let chains = of.rounded(&chains);
            assert_ne!(want, chains, "{of:?}");
            let out = forward(&client, arithmetic, source, other, bias, &case.params).expect("a pass");
            assert_numbers(&of.download(&client, out), if is_applied { &want } else { &chains }, &format!("{of:?}"));
        }
    }
}

/// The batch has no part in it, though the copy of many samples has more elements than 32-bit indices reach: plans copy fewer at a time.
#[test]
fn the_batch_has_no_part_in_the_order() {
    let half = HALVES[0].dtype;
    for batch in [1, 4] {
        let params = ConvolutionParams { stride: [4; 2], padding: [(0, 0); 2], dilation: [1; 2], groups: 1 };
        let geometry = Geometry::new("test", &[batch, 1, 8192, 8192], &[16, 1, 4, 4], &params).expect("they fit");
        let problem = Problem { pass: Pass::ToOutput, rank: 2, geometry, products: Products::Native };
        assert!(applies(&problem, half) && !applies(&problem, I32));
        let plan = plan::plan(&problem, half);
        assert_eq!((plan.samples, plan.refuses(&problem, half)), (batch.min(3), None));
        let all = Plan { samples: batch, ..plan };
        assert_eq!(all.refuses(&problem, half).is_some(), batch == 4);
        // A weight gradient sums over the batch.
        assert_eq!(applies(&Problem { pass: Pass::ToWeight, ..problem }, half), batch == 1);
    }
}

#[test]
fn what_does_not_apply_is_refused() {
    let client = client();
    let case = Case::new(&[2, 16, 20], &[18, 16, 3], uniform::<1>(1, (1, 1), 1, 1));
    for (of, sums) in types(&client) {
        let problem = case.problem(Pass::ToOutput);
        let run = |problem: &Problem, operands, plan| run_pass(&client, "test", problem, operands, plan).map(|_| ());
        let operands = || case.on_tensor_cores(Pass::ToOutput, of, sums).1;
        let other = Tile { warps: [1, 1], fragments: [1, 1] };
        let chosen = Plan { tile: None, span: 1, samples: 2 };
        for (plan, wanted) in [
            (Plan { span: 2, ..chosen }, "a span of 1 to 1 blocks"),
            (Plan { tile: Some(other), ..chosen }, "a known tile"),
            (Plan { samples: 3, ..chosen }, "1 to 2 samples"),
        ] {
            let refused = run(&problem, operands(), Some(plan)).unwrap_err();
            assert!(matches!(refused, KernelError::Plan { .. }) && refused.to_string().contains(wanted), "{refused}");
        }
        let phases = Case::new(&[1, 16, 5, 4], &[300, 16, 3, 3], uniform::<2>(2, (1, 1), 1, 1));
        let (_, operands_of) = phases.on_tensor_cores(Pass::ToInput, of, sums);
        let plan = Plan { tile: None, span: 2, samples: 1 };
        let refused = run(&phases.problem(Pass::ToInput), operands_of, Some(plan)).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { .. }) && refused.to_string().contains("phases"), "{refused}");
        // Axes that the operands do not have.
        let mut other = problem;
        other.geometry.axes[1].output = 5;
        let refused = run(&other, operands(), None).unwrap_err();
        assert!(refused.to_string().contains("other than 1 spatial axes"), "{refused}");
        let few = Case::new(&[2, 16, 20], &[15, 16, 3], uniform::<1>(1, (1, 1), 1, 1));
        let refused = run(&few.problem(Pass::ToOutput), few.on_tensor_cores(Pass::ToOutput, of, sums).1, None);
        assert!(refused.unwrap_err().to_string().contains("order of chains"));
        let refused = run(&case.problem(Pass::ToInput), operands(), None).unwrap_err();
        assert!(refused.to_string().contains("output gradient"), "{refused}");
        let empty = Case::new(&[0, 16, 20], &[16, 16, 3], uniform::<1>(1, (1, 1), 1, 1));
        let out = run_pass(
            &client,
            "test",
            &empty.problem(Pass::ToOutput),
            empty.on_tensor_cores(Pass::ToOutput, of, sums).1,
            None,
        );
        assert_eq!(out.expect("no sample").shape()[..], [0, 16, 20]);
    }
    // A device without these sums.
    let integers = || upload(&client, &[0i32; 640], &[2, 16, 20], I32);
    let operands = Operands { source: integers(), other: integers(), bias: None };
    let refused = run_pass(&client, "test", &case.problem(Pass::ToOutput), operands, None).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("tensor cores"), "{refused}");
}

/// Ampere's sums.
#[test]
fn equals_reference_with_other_sums() {
    if let Some(said) = with_planted("ampere", &["convolution::tensor_cores::equals_reference_in_groups"]) {
        assert!(said.contains("1 passed"), "{said}");
    }
}
