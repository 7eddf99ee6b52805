//! The order contract in plain Rust: f32, and half types as the f32s that they hold.

use crate::function::reference::exponential;
use crate::order::reference::blocked_sparse;

/// The operands of [`gradient`](super::gradient), dense.
#[derive(Clone, Debug)]
pub struct Dense<'a> {
    /// Steps, batch, classes and the length of the targets.
    pub shape: [usize; 4],
    /// The class of the blank.
    pub blank: usize,
    /// The scores.
    pub scores: &'a [f32],
    /// The labels.
    pub targets: &'a [i32],
    /// The steps of each input.
    pub lengths: &'a [i32],
    /// The gradient of each loss.
    pub gradient: &'a [f32],
    /// The forward variables.
    pub alpha: &'a [f32],
    /// The backward variables.
    pub beta: &'a [f32],
    /// The losses.
    pub loss: &'a [f32],
}

/// The gradient by the scores, `round`ing to the type: for f32 the value itself.
pub fn gradient(of: &Dense, round: impl Fn(f32) -> f32) -> Vec<f32> {
    let exp = |x: f32| round(exponential::exp(x));
    let [steps, batch, classes, length] = of.shape;
    let labels = 2 * length + 1;
    let mut result = Vec::with_capacity(steps * batch * classes);
    for (step, entry) in (0..steps).flat_map(|step| (0..batch).map(move |entry| (step, entry))) {
        let (g, loss) = (of.gradient[entry], of.loss[entry]);
        let line = step * batch + entry;
        for class in 0..classes {
            let score = of.scores[line * classes + class];
            let p = round(exp(score) * g);
            let label = |at: usize| match at % 2 {
                0 => of.blank as i32,
                _ => of.targets[entry * length + at / 2],
            };
            let value = |at: usize| {
                let place = line * labels + at;
                let exponent = round(round(round(of.alpha[place] + of.beta[place]) - score) + loss);
                (at, round(-(exp(exponent) * g)))
            };
            let values: Vec<_> = (0..labels).filter(|&at| label(at) == class as i32).map(value).collect();
            let total = blocked_sparse(&values, |left, right| left + right);
            let counts = (step as i64) < i64::from(of.lengths[entry]) && !loss.is_infinite();
            result.push(match counts {
                true => round(total.map_or(p, |total| p + total)),
                false => 0.0,
            });
        }
    }
    result
}
