//! The order contract in plain Rust: f32, and half types as the f32s that they hold, before the rounding.

use crate::function::reference::exponential::{exp, log1p};
use crate::order::reference::blocked_sparse;

/// The [operands](super::Operands), dense.
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
    pub input_lengths: &'a [i32],
    /// The labels of each target that count.
    pub target_lengths: &'a [i32],
}

/// The [variables](super::Variables), dense. Those of steps beyond an input's length are -inf.
#[derive(Clone, Debug)]
pub struct Variables {
    /// The forward variables.
    pub alpha: Vec<f32>,
    /// The backward variables.
    pub beta: Vec<f32>,
    /// The losses.
    pub loss: Vec<f32>,
}

impl Dense<'_> {
    fn labels(&self) -> usize {
        2 * self.shape[3] + 1
    }

    fn steps(&self, entry: usize) -> usize {
        (self.input_lengths[entry].max(0) as usize).min(self.shape[0])
    }

    /// A label of a target with its blanks.
    fn label(&self, entry: usize, at: usize) -> i32 {
        match at % 2 {
            0 => self.blank as i32,
            _ => self.targets[entry * self.shape[3] + at / 2],
        }
    }

    /// Its class, if it is one.
    fn class(&self, entry: usize, at: usize) -> Option<usize> {
        usize::try_from(self.label(entry, at)).ok().filter(|&class| class < self.shape[2])
    }

    /// The place of a step and entry.
    fn line(&self, step: usize, entry: usize) -> usize {
        step * self.shape[1] + entry
    }

    fn score(&self, step: usize, entry: usize, class: usize) -> f32 {
        self.scores[self.line(step, entry) * self.shape[2] + class]
    }
}

/// `log(exp(a) + exp(b))`.
fn both(a: f32, b: f32) -> f32 {
    let (more, less) = if b > a { (b, a) } else { (a, b) };
    if less == f32::NEG_INFINITY { more } else { more + log1p(exp(less - more)) }
}

/// The variables and losses.
pub fn variables(of: &Dense) -> Variables {
    let [steps, batch, ..] = of.shape;
    let unreached = vec![f32::NEG_INFINITY; steps * batch * of.labels()];
    let mut variables = Variables { alpha: unreached.clone(), beta: unreached, loss: Vec::new() };
    for entry in 0..batch {
        let last = 2 * (of.target_lengths[entry].max(0) as usize).min(of.shape[3]);
        let steps = of.steps(entry);
        let forward = recur(of, entry, steps, last, |step, at| (step, at));
        let backward = recur(of, entry, steps, last, |step, at| (steps - 1 - step, last - at));
        for (step, at) in (0..steps).flat_map(|step| (0..=last).map(move |at| (step, at))) {
            let place = of.line(step, entry) * of.labels() + at;
            variables.alpha[place] = forward[step][at];
            variables.beta[place] = backward[steps - 1 - step][last - at];
        }
        variables.loss.push(match forward.last() {
            Some(row) if last > 0 => -both(row[last], row[last - 1]),
            Some(row) => -row[last],
            None if last == 0 => 0.0,
            None => f32::INFINITY,
        });
    }
    variables
}

/// The variables after each step of an entry, as `place` counts the steps and labels.
fn recur(
    of: &Dense,
    entry: usize,
    steps: usize,
    last: usize,
    place: impl Fn(usize, usize) -> (usize, usize),
) -> Vec<Vec<f32>> {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for step in 0..steps {
        let value = |at: usize| {
            let (time, label) = place(step, at);
            let Some(class) = of.class(entry, label) else { return f32::NEG_INFINITY };
            let score = of.score(time, entry, class);
            let Some(before) = rows.last() else { return if at < 2 { score } else { f32::NEG_INFINITY } };
            let mut sum = before[at];
            if at >= 1 {
                sum = both(sum, before[at - 1]);
            }
            if at >= 2 && class != of.blank && Some(class) != of.class(entry, place(step, at - 2).1) {
                sum = both(sum, before[at - 2]);
            }
            score + sum
        };
        let row = (0..=last).map(value).collect();
        rows.push(row);
    }
    rows
}

/// The gradient by the scores from that of each loss.
pub fn gradient(of: &Dense, variables: &Variables, gradient: &[f32]) -> Vec<f32> {
    let [steps, batch, classes, _] = of.shape;
    let labels = of.labels();
    let mut result = Vec::with_capacity(steps * batch * classes);
    for (step, entry) in (0..steps).flat_map(|step| (0..batch).map(move |entry| (step, entry))) {
        let (g, loss) = (gradient[entry], variables.loss[entry]);
        for class in 0..classes {
            let score = of.score(step, entry, class);
            let p = exp(score) * g;
            let value = |at: usize| {
                let place = of.line(step, entry) * labels + at;
                let both = variables.alpha[place] + variables.beta[place];
                (both != f32::NEG_INFINITY).then(|| (at, -(exp((both - score) + loss) * g)))
            };
            let of_class = (0..labels).filter(|&at| of.class(entry, at) == Some(class));
            let values: Vec<_> = of_class.filter_map(value).collect();
            let total = blocked_sparse(&values, |left, right| left + right);
            let counts = step < of.steps(entry) && !loss.is_infinite();
            result.push(if counts { total.map_or(p, |total| p + total) } else { 0.0 });
        }
    }
    result
}
