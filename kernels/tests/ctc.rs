//! The CTC loss and its gradient against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::ctc::reference::{self, Dense};
use burn_deterministic_kernels::ctc::{MOST_LABELS, Operands, Variables, gradient, loss, variables};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The type of a problem's floats.
#[derive(Clone, Copy, Debug)]
enum Type {
    Single,
    Half(Half),
}

impl Type {
    fn round(self, value: f32) -> f32 {
        match self {
            Self::Single => value,
            Self::Half(half) => half.round(value),
        }
    }

    fn rounded(self, values: &[f32]) -> Vec<f32> {
        values.iter().map(|&value| self.round(value)).collect()
    }

    fn upload(self, client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
        match self {
            Self::Single => upload(client, values, shape, F32),
            Self::Half(half) => half.upload(client, values, shape),
        }
    }

    fn download(self, client: &Client, tensor: TensorHandle) -> Vec<f32> {
        match self {
            Self::Single => download(client, tensor),
            Self::Half(half) => half.download(client, tensor),
        }
    }
}

/// Sequences of `shape`: steps, batch, classes and the length of the targets.
struct Problem {
    shape: [usize; 4],
    blank: usize,
    targets: Vec<i32>,
    input_lengths: Vec<i32>,
    target_lengths: Vec<i32>,
    /// Below zero.
    scores: Vec<f32>,
    dtype: Type,
}

impl Problem {
    fn new(shape: [usize; 4], blank: usize) -> Self {
        Self::of(Type::Single, shape, blank)
    }

    fn of(dtype: Type, shape: [usize; 4], blank: usize) -> Self {
        let [steps, batch, classes, length] = shape;
        let targets = random_values(1, batch * length);
        let targets = targets.into_iter().map(|value| (value.abs() * 1e4) as i32 % classes as i32).collect();
        let input_lengths = (0..batch).map(|entry| steps.saturating_sub(entry) as i32).collect();
        let target_lengths = (0..batch).map(|entry| length.saturating_sub(entry / 2) as i32).collect();
        let scores: Vec<f32> = random_values(3, steps * batch * classes).iter().map(|x| x - 2.0).collect();
        Self { shape, blank, targets, input_lengths, target_lengths, scores: dtype.rounded(&scores), dtype }
    }

    fn dense(&self) -> Dense<'_> {
        let Self { shape, blank, targets, input_lengths, target_lengths, scores, .. } = self;
        Dense { shape: *shape, blank: *blank, scores, targets, input_lengths, target_lengths }
    }

    fn operands(&self, client: &Client, scores: TensorHandle) -> Operands {
        let [_, batch, _, length] = self.shape;
        Operands {
            scores,
            targets: upload(client, &self.targets, &[batch, length], I32),
            input_lengths: upload(client, &self.input_lengths, &[batch], I32),
            target_lengths: upload(client, &self.target_lengths, &[batch], I32),
        }
    }

    /// The operands, and the same with scores class after class in memory.
    fn layouts(&self, client: &Client) -> [Operands; 2] {
        let &[steps, batch, classes, _] = &self.shape;
        let scores = self.dtype.upload(client, &self.scores, &[steps, batch, classes]);
        let lines = steps * batch;
        let turned: Vec<f32> = (0..self.scores.len()).map(|n| self.scores[n % lines * classes + n / lines]).collect();
        let turned = self.dtype.upload(client, &turned, &[classes, steps, batch]);
        let turned = TensorHandle::new(turned.handle, vec![steps, batch, classes], vec![batch, 1, lines], turned.dtype);
        [scores, turned].map(|scores| self.operands(client, scores))
    }

    /// The losses, the variables of the steps that count, and the gradient.
    #[track_caller]
    fn check(&self) {
        println!("{:?}, blank {}, {:?}", self.shape, self.blank, self.dtype);
        let client = client();
        let want = reference::variables(&self.dense());
        for operands in self.layouts(&client) {
            let got = loss(&client, operands.clone(), self.blank).expect("runs");
            assert_bits_or_nan(&self.dtype.download(&client, got), &self.dtype.rounded(&want.loss));
            let got = variables(&client, operands, self.blank).expect("runs");
            assert_bits_or_nan(&download(&client, got.loss), &want.loss);
            for (got, want) in [(got.alpha, &want.alpha), (got.beta, &want.beta)] {
                assert_bits_or_nan(&self.counting(&download(&client, got)), &self.counting(want));
            }
        }
        self.check_gradient(&want);
    }

    /// The variables of steps that count: no others are written.
    fn counting(&self, variables: &[f32]) -> Vec<f32> {
        let [_, batch, _, length] = self.shape;
        let labels = 2 * length + 1;
        let counts = |n: &usize| (n / labels / batch) < self.input_lengths[n / labels % batch].max(0) as usize;
        (0..variables.len()).filter(counts).map(|n| variables[n]).collect()
    }

    /// The gradient of these variables and losses.
    #[track_caller]
    fn check_gradient(&self, of: &reference::Variables) {
        let client = client();
        let [steps, batch, classes, length] = self.shape;
        let of_loss = self.dtype.rounded(&random_values(4, batch));
        let want = self.dtype.rounded(&reference::gradient(&self.dense(), of, &of_loss));
        let up = |values: &[f32], shape: &[usize]| upload(&client, values, shape, F32);
        for operands in self.layouts(&client) {
            let variables = Variables {
                alpha: up(&of.alpha, &[steps, batch, 2 * length + 1]),
                beta: up(&of.beta, &[steps, batch, 2 * length + 1]),
                loss: up(&of.loss, &[batch]),
            };
            let of_loss = self.dtype.upload(&client, &of_loss, &[batch]);
            let got = gradient(&client, operands, variables, of_loss, self.blank).expect("runs");
            assert_eq!(got.shape()[..], [steps, batch, classes]);
            assert_bits_or_nan(&self.dtype.download(&client, got), &want);
        }
    }

    /// Any variables: many more labels are reached than by sequences of so few steps.
    fn check_posteriors(&self) {
        let [steps, batch, _, length] = self.shape;
        let [alpha, beta] = [5, 6].map(|seed| random_values(seed, steps * batch * (2 * length + 1)));
        self.check_gradient(&reference::Variables { alpha, beta, loss: random_values(2, batch) });
    }
}

/// NaN is the device's own.
#[track_caller]
fn assert_bits_or_nan(got: &[f32], want: &[f32]) {
    let canonical = |values: &[f32]| values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }).collect::<Vec<_>>();
    assert_bits(&canonical(got), &canonical(want));
}

#[test]
fn shapes_match_the_reference() {
    for (shape, blank) in [
        ([1, 1, 1, 0], 0),
        ([7, 3, 5, 2], 0),
        ([6, 2, 4, 3], 3),
        ([33, 2, 65, 15], 1),
        ([140, 2, 3, 64], 0),
        ([20, 1, 2, 8], 1),
        ([300, 1, 3, 1], 0),
        ([12, 3, 300, 5], 299),
    ] {
        Problem::new(shape, blank).check();
        Problem::new(shape, blank).check_posteriors();
    }
}

/// A reference that nobody has written twice: the probability of every path that is the target, one by one.
#[test]
fn losses_are_those_of_all_paths() {
    let (steps, classes) = (5, 3);
    for target in [vec![], vec![1], vec![2, 1], vec![1, 1], vec![2, 2, 1]] {
        let mut problem = Problem::new([steps, 1, classes, target.len()], 0);
        problem.targets = target.clone();
        problem.target_lengths = vec![target.len() as i32];
        let mut sum = 0.0;
        for path in 0..classes.pow(steps as u32) {
            let path: Vec<usize> = (0..steps).map(|step| path / classes.pow(step as u32) % classes).collect();
            let mut labels = path.clone();
            labels.dedup();
            if labels.into_iter().filter(|&label| label != 0).map(|label| label as i32).eq(target.iter().copied()) {
                let scores =
                    path.iter().enumerate().map(|(step, class)| f64::from(problem.scores[step * classes + class]));
                sum += scores.sum::<f64>().exp();
            }
        }
        let got = f64::from(reference::variables(&problem.dense()).loss[0]);
        assert!((got + sum.ln()).abs() < 1e-5, "{target:?}: {got}, want {}", -sum.ln());
        problem.check();
    }
}

#[test]
fn half_types_match_the_reference() {
    for half in HALVES {
        if !client().properties().supports_type(half.dtype) {
            skip(format!("the device has no {}", half.dtype));
            continue;
        }
        for (shape, blank) in [([7, 3, 5, 2], 0), ([33, 2, 65, 15], 1), ([140, 2, 3, 64], 0)] {
            Problem::of(Type::Half(half), shape, blank).check();
        }
        Problem::of(Type::Half(half), [3, 2, 2, 1100], 1).check_posteriors();
        let mut unreachable = Problem::of(Type::Half(half), [5, 4, 3, 2], 0);
        unreachable.input_lengths = vec![0, -3, 7, 2];
        unreachable.check();
    }
}

#[test]
fn the_longest_targets() {
    // Several blocks of the same label but for the other class.
    let length = MOST_LABELS / 2 - 1;
    let mut problem = Problem::new([2, 1, 2, length], 0);
    problem.targets.fill(0);
    problem.targets[100] = 1;
    problem.check_posteriors();
    // More labels than a cube has units, all of them reached.
    let mut problem = Problem::new([330, 1, 40, 300], 0);
    problem.targets = (0..300).map(|n| n % 39 + 1).collect();
    problem.check();
    // A device has the variables in shared memory, or says what it lacks.
    let client = client();
    let problem = Problem::new([2, 1, 2, length], 0);
    let shared = client.properties().hardware.max_shared_memory_size;
    match loss(&client, problem.layouts(&client)[0].clone(), 0) {
        Ok(_) => problem.check(),
        Err(error) => assert!(matches!(error, KernelError::Device { needs, has, .. } if needs > has && has == shared)),
    }
}

/// Sequences of no step and longer ones, targets of no label and longer ones, what cannot be reached.
#[test]
fn lengths_at_their_ends() {
    let mut problem = Problem::new([5, 8, 3, 2], 0);
    problem.targets = vec![1, 2, 1, 1, 2, 2, 1, 2, 1, 1, 2, 1, 1, 2, 2, 1];
    problem.input_lengths = vec![0, -3, 7, 2, 0, 1, 2, i32::MAX];
    problem.target_lengths = vec![2, 0, 2, 2, 0, 2, -1, i32::MAX];
    let losses = reference::variables(&problem.dense()).loss;
    assert_eq!(
        losses.iter().map(|loss| loss.is_infinite()).collect::<Vec<_>>(),
        [true, false, false, false, false, true, false, false]
    );
    assert_eq!((losses[1], losses[4]), (0.0, 0.0));
    problem.check();
    // Two equal labels need a blank between them.
    problem.targets[6..8].fill(1);
    assert_eq!(reference::variables(&problem.dense()).loss[3], f32::INFINITY);
    problem.check();
}

/// An impossible class at one step leaves the others' gradients finite.
#[test]
fn scores_of_infinity_and_nan() {
    let mut problem = Problem::new([8, 2, 4, 2], 0);
    problem.targets = vec![1, 2, 3, 1];
    for at in [1, 9, 22, 23, 40] {
        problem.scores[at] = f32::NEG_INFINITY;
    }
    let variables = reference::variables(&problem.dense());
    assert!(variables.loss.iter().all(|loss| loss.is_finite()));
    let gradient = reference::gradient(&problem.dense(), &variables, &[1.0, 1.0]);
    assert!(gradient.iter().all(|gradient| gradient.is_finite()), "{gradient:?}");
    problem.check();
    problem.scores[12] = f32::NAN;
    problem.check();
    problem.scores.fill(f32::NEG_INFINITY);
    problem.check();
}

#[test]
fn labels_that_are_no_class_are_not_reached() {
    let mut problem = Problem::new([9, 2, 3, 4], 2);
    problem.targets = vec![0, 3, -1, 3, i32::MAX, i32::MIN, 1, 1];
    problem.check();
    problem.check_posteriors();
    problem.target_lengths = vec![1, 0];
    problem.check();
}

/// Losses do not depend on the batch, nor on what is behind an input or a target.
#[test]
fn a_sequence_is_computed_alone() {
    let client = client();
    let wide = Problem::new([20, 3, 5, 6], 0);
    let mut alone = Problem::new([13, 1, 5, 4], 0);
    alone.input_lengths = vec![11];
    alone.target_lengths = vec![3];
    let mut wide = Problem { input_lengths: vec![11; 3], target_lengths: vec![3; 3], ..wide };
    alone.targets.copy_from_slice(&wide.targets[6..10]);
    for step in 0..13 {
        alone.scores[step * 5..][..5].copy_from_slice(&wide.scores[(step * 3 + 1) * 5..][..5]);
    }
    wide.targets[9] = 4;
    let losses = |problem: &Problem| -> Vec<f32> {
        download(&client, loss(&client, problem.layouts(&client)[0].clone(), 0).expect("runs"))
    };
    assert_bits(&losses(&alone), &losses(&wide)[1..2]);
}

/// Steps in several launches: more than a loop may have.
#[test]
fn many_steps() {
    let mut problem = Problem::new([70_001, 2, 2, 1], 0);
    problem.input_lengths = vec![70_001, 19_999];
    problem.check();
}

#[test]
fn nothing_and_refusals() {
    let client = client();
    let operands = |[steps, batch, classes, length]: [usize; 4]| Operands {
        scores: upload(&client, &vec![0.0f32; steps * batch * classes], &[steps, batch, classes], F32),
        targets: upload(&client, &vec![0i32; batch * length], &[batch, length], I32),
        input_lengths: upload(&client, &vec![0i32; batch], &[batch], I32),
        target_lengths: upload(&client, &vec![0i32; batch], &[batch], I32),
    };
    let run = |shape: [usize; 4], labels: usize, blank: usize| {
        let [steps, batch, ..] = shape;
        let of_labels = || upload(&client, &vec![0.0f32; steps * batch * labels], &[steps, batch, labels], F32);
        let of_batch = || upload(&client, &vec![0.0f32; batch], &[batch], F32);
        let variables = Variables { alpha: of_labels(), beta: of_labels(), loss: of_batch() };
        gradient(&client, operands(shape), variables, of_batch(), blank)
    };
    assert_eq!(run([0, 2, 3, 1], 3, 0).expect("runs").shape()[..], [0, 2, 3]);
    assert_eq!(run([2, 0, 3, 1], 3, 0).expect("runs").shape()[..], [2, 0, 3]);
    assert_eq!(download::<f32>(&client, loss(&client, operands([0, 2, 3, 1]), 0).expect("runs")), [0.0, 0.0]);
    assert_eq!(loss(&client, operands([2, 0, 3, 1]), 0).expect("runs").shape()[..], [0]);
    let refused = |shape, labels, blank| run(shape, labels, blank).unwrap_err();
    assert!(matches!(loss(&client, operands([2, 1, 3, 1]), 3), Err(KernelError::Argument { .. })));
    assert!(matches!(loss(&client, operands([1, 1, 3, MOST_LABELS / 2]), 0), Err(KernelError::Shape { .. })));
    assert!(matches!(refused([2, 1, 3, 1], 3, 3), KernelError::Argument { .. }));
    assert!(matches!(refused([2, 1, 3, 1], 2, 0), KernelError::Shape { .. }));
    let long = MOST_LABELS / 2;
    assert!(matches!(refused([1, 1, 3, long], 2 * long + 1, 0), KernelError::Shape { .. }));
}
