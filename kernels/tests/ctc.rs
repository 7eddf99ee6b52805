//! The gradient of the CTC loss against its reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::ctc::reference::Dense;
use burn_deterministic_kernels::ctc::{MOST_LABELS, Operands, gradient, reference};
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

    fn random_values(self, seed: u64, count: usize) -> Vec<f32> {
        random_values(seed, count).into_iter().map(|value| self.round(value)).collect()
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

/// The operands of a problem of `shape`: steps, batch, classes and the length of the targets.
struct Problem {
    shape: [usize; 4],
    blank: usize,
    targets: Vec<i32>,
    lengths: Vec<i32>,
    loss: Vec<f32>,
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
        let lengths = (0..batch).map(|entry| steps.saturating_sub(entry) as i32).collect();
        Self { shape, blank, targets, lengths, loss: dtype.random_values(2, batch), dtype }
    }

    #[track_caller]
    fn check(&self) {
        let Self { shape, blank, targets, lengths, loss, dtype } = self;
        println!("{shape:?}, blank {blank}, {dtype:?}");
        let client = client();
        let &[steps, batch, classes, length] = shape;
        let (wide, labels) = (steps * batch * classes, 2 * length + 1);
        let [scores, grads] = [(3, wide), (4, batch)].map(|(seed, count)| dtype.random_values(seed, count));
        let [alpha, beta] = [5, 6].map(|seed| dtype.random_values(seed, steps * batch * labels));
        let (gradient, alpha, beta) = (&grads, &alpha, &beta);
        let dense =
            Dense { shape: *shape, blank: *blank, scores: &scores, targets, lengths, gradient, alpha, beta, loss };
        let want = reference::gradient(&dense, |value| dtype.round(value));

        let up = |values: &[f32], shape: &[usize]| dtype.upload(&client, values, shape);
        let operands = |scores: TensorHandle| Operands {
            scores,
            targets: upload(&client, targets, &[batch, length], I32),
            lengths: upload(&client, lengths, &[batch], I32),
            gradient: up(gradient, &[batch]),
            alpha: up(alpha, &[steps, batch, labels]),
            beta: up(beta, &[steps, batch, labels]),
            loss: up(loss, &[batch]),
        };
        let got =
            burn_deterministic_kernels::ctc::gradient(&client, operands(up(&scores, &[steps, batch, classes])), *blank)
                .expect("runs");
        assert_eq!(got.shape()[..], [steps, batch, classes]);
        assert_bits(&dtype.download(&client, got), &want);
        // Class after class.
        let turned: Vec<f32> = (0..wide).map(|n| scores[n % (steps * batch) * classes + n / (steps * batch)]).collect();
        let turned = up(&turned, &[classes, steps, batch]);
        let strides = vec![batch, 1, steps * batch];
        let turned = TensorHandle::new(turned.handle, vec![steps, batch, classes], strides, turned.dtype);
        let got = burn_deterministic_kernels::ctc::gradient(&client, operands(turned), *blank).expect("runs");
        assert_bits(&dtype.download(&client, got), &want);
    }
}

#[test]
fn shapes_match_the_reference() {
    for (shape, blank) in [
        ([1, 1, 1, 0], 0),
        ([7, 3, 5, 2], 0),
        ([6, 2, 4, 3], 3),
        ([33, 2, 65, 31], 1),
        ([5, 2, 3, 64], 0),
        ([4, 1, 2, 130], 1),
        ([300, 1, 3, 1], 0),
        ([2, 3, 300, 5], 299),
    ] {
        Problem::new(shape, blank).check();
    }
}

/// Each operation rounded to the type, but for the sums: those of a class's labels are f32s, also of several blocks.
#[test]
fn half_types_match_the_reference() {
    for half in HALVES {
        if !client().properties().supports_type(half.dtype) {
            skip(format!("the device has no {}", half.dtype));
            continue;
        }
        for (shape, blank) in [([7, 3, 5, 2], 0), ([33, 2, 65, 31], 1), ([5, 2, 3, 64], 0), ([3, 2, 2, 1100], 1)] {
            Problem::of(Type::Half(half), shape, blank).check();
        }
        let mut unreachable = Problem::of(Type::Half(half), [5, 4, 3, 2], 0);
        unreachable.lengths = vec![0, -3, 7, 2];
        unreachable.loss[3] = f32::INFINITY;
        unreachable.check();
    }
}

#[test]
fn the_longest_targets() {
    // Several blocks of the same label but for the other class.
    let mut problem = Problem::new([2, 1, 2, MOST_LABELS / 2 - 1], 0);
    problem.targets.fill(0);
    problem.targets[100] = 1;
    problem.check();
}

#[test]
fn what_does_not_count_is_zero() {
    let mut problem = Problem::new([5, 4, 3, 2], 0);
    problem.lengths = vec![0, -3, 7, 2];
    problem.loss[3] = f32::INFINITY;
    problem.check();
}

#[test]
fn labels_that_are_no_class_count_for_nothing() {
    let mut problem = Problem::new([5, 2, 3, 4], 2);
    problem.targets = vec![0, 3, -1, 3, i32::MAX, i32::MIN, 1, 1];
    problem.check();
}

#[test]
fn more_steps_than_one_axis_of_a_grid_holds() {
    Problem::new([70_001, 1, 2, 1], 0).check();
}

#[test]
fn nothing_and_refusals() {
    let client = client();
    let operands = |[steps, batch, classes, length]: [usize; 4], labels: usize| Operands {
        scores: upload(&client, &vec![0.0f32; steps * batch * classes], &[steps, batch, classes], F32),
        targets: upload(&client, &vec![0i32; batch * length], &[batch, length], I32),
        lengths: upload(&client, &vec![0i32; batch], &[batch], I32),
        gradient: upload(&client, &vec![0.0f32; batch], &[batch], F32),
        alpha: upload(&client, &vec![0.0f32; steps * batch * labels], &[steps, batch, labels], F32),
        beta: upload(&client, &vec![0.0f32; steps * batch * labels], &[steps, batch, labels], F32),
        loss: upload(&client, &vec![0.0f32; batch], &[batch], F32),
    };
    assert_eq!(gradient(&client, operands([0, 2, 3, 1], 3), 0).expect("runs").shape()[..], [0, 2, 3]);
    assert_eq!(gradient(&client, operands([2, 0, 3, 1], 3), 0).expect("runs").shape()[..], [2, 0, 3]);
    let refused = |shape, labels, blank| gradient(&client, operands(shape, labels), blank).unwrap_err();
    assert!(matches!(refused([2, 1, 3, 1], 3, 3), KernelError::Argument { .. }));
    assert!(matches!(refused([2, 1, 3, 1], 2, 0), KernelError::Shape { .. }));
    let long = MOST_LABELS / 2;
    assert!(matches!(refused([1, 1, 3, long], 2 * long + 1, 0), KernelError::Shape { .. }));
}
