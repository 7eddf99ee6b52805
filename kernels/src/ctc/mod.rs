//! The connectionist temporal classification (CTC) loss, and its gradient with respect to the scores (A. Graves et al.,
//! "Connectionist Temporal Classification", 2006, equations 6 to 10 and 16).
//!
//! # Order contract
//!
//! Let `l[0], .., l[2S]` be the labels of a target with a blank before, between and after them, `x[t][c]` the score of
//! class `c` at step `t` of `T`, the logarithm of its probability. The forward variables `a` and the backward variables
//! `b` are logarithms, and both include the score of their own step:
//!
//! ```text
//! a[0][0] = x[0][l[0]], a[0][1] = x[0][l[1]], a[0][s] = -inf
//! a[t][s] = x[t][l[s]] + both(both(a[t-1][s], a[t-1][s-1]), a[t-1][s-2])
//! b[t][s] = the same with t counted from the last step, s from the last label
//! loss    = -both(a[T-1][2S], a[T-1][2S-1])
//! both(m, n) = m + log1p(exp(n - m))         of two -inf one, else with n the smaller one; m if n is -inf
//! ```
//!
//! without what does not exist, and without `a[t-1][s-2]` where `l[s]` is the blank or `l[s-2]`. The loss of an input
//! without a step is 0 if the target has no label, else infinite. Let `g` be the gradient of a loss `nll`. At step `t` the
//! gradient with respect to the score `x[c]` of class `c` is
//!
//! ```text
//! p     = exp(x[c]) * g                                   the probability of c, times g
//! v[s]  = -exp(((a[s] + b[s]) - x[l[s]]) + nll) * g       for each s with l[s] = c, ascending
//! total = blocked order of v[s] by position s             those with l[s] = c, and a[s] + b[s] not -inf; see `order`
//! p + total                                               or p, bit for bit, if there is none
//! ```
//!
//! and zero at steps beyond the input's length and where the loss is infinite. Each operation is rounded on its own. Half
//! types are computed in f32, the variables and the loss of a gradient too, and rounded once. The exponential function
//! and the logarithm are those of [`function`](crate::function), for f64 the device's.
//!
//! A label that is no class has the score -inf. A length above what there is counts as that, a negative one as 0.
//!
//! # Cost
//!
//! [`variables()`] is a launch for each direction, with a cube for a sequence, whose units have the labels: a barrier a step.
//! [`gradient`] has three launches. The first chains the equal labels of each target (head and next), which do not depend on
//! the step; in the last a unit has a label and a step, and those of a class's first label follow its chain.

mod kernel;
mod recurrence;
pub mod reference;

use crate::KernelError;
use crate::buffer::{unwritten, words, words_arg};
use crate::device::{require_shared_memory, require_units};
use crate::dtype::float_accumulator;
use crate::error::require_shapes;
use crate::grid::{MAX_ITERATIONS, UNITS, axis_grids, cubes, grid};
use crate::index::require_indices;
use crate::view::{AxisView, checked_elements, require_shape};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use recurrence::Form;

/// Most labels of a target, with the blanks around them: each is compared with all others.
pub const MOST_LABELS: usize = 8192;

/// Sequences with their targets.
#[derive(Clone, Debug)]
pub struct Operands {
    /// The scores, logarithms of probabilities: `[steps, batch, classes]`.
    pub scores: TensorHandle,
    /// The labels: `[batch, length]`.
    pub targets: TensorHandle,
    /// The steps of each input: `[batch]`.
    pub input_lengths: TensorHandle,
    /// The labels of each target that count: `[batch]`.
    pub target_lengths: TensorHandle,
}

/// The variables of sequences, in f32 for half types.
#[derive(Clone, Debug)]
pub struct Variables {
    /// The forward variables in logarithms: `[steps, batch, 2 length + 1]`. Those of steps beyond the input's length are not
    /// written.
    pub alpha: TensorHandle,
    /// The backward variables in logarithms, in the same shape.
    pub beta: TensorHandle,
    /// The losses: `[batch]`.
    pub loss: TensorHandle,
}

/// The losses, `[batch]`, where class `blank` is the blank.
///
/// # Errors
///
/// Refuses shapes that do not fit together or that 32-bit indices do not reach, more than [`MOST_LABELS`] labels and
/// blanks or more than the device's shared memory holds, a blank that is no class, and element types the device does not
/// compute.
pub fn loss(client: &Client, operands: Operands, blank: usize) -> Result<TensorHandle, KernelError> {
    let problem = Problem::new(client, "ctc::loss", operands, blank)?;
    let loss = unwritten(client, vec![problem.batch], problem.dtypes[0]);
    problem.recur(client, false, false, &loss)?;
    Ok(loss)
}

/// The forward and backward variables, where class `blank` is the blank.
///
/// # Errors
///
/// As [`loss`].
pub fn variables(client: &Client, operands: Operands, blank: usize) -> Result<Variables, KernelError> {
    let problem = Problem::new(client, "ctc::variables", operands, blank)?;
    let loss = unwritten(client, vec![problem.batch], problem.dtypes[1]);
    let alpha = problem.recur(client, false, true, &loss)?;
    // No launch from the last step writes the losses.
    let unwritten_loss = unwritten(client, vec![1], problem.dtypes[1]);
    let beta = problem.recur(client, true, true, &unwritten_loss)?;
    Ok(Variables { alpha, beta, loss })
}

/// The gradient by the scores, `[steps, batch, classes]`, from that of each loss, `gradient[batch]`, where class `blank` is
/// the blank.
///
/// # Errors
///
/// As [`loss`].
pub fn gradient(
    client: &Client,
    operands: Operands,
    variables: Variables,
    gradient: TensorHandle,
    blank: usize,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "ctc::gradient";
    let problem = Problem::new(client, KERNEL, operands, blank)?;
    let Problem { steps, batch, classes, labels, dtypes, .. } = problem;
    let Variables { alpha, beta, loss } = variables;
    for (name, operand) in [("loss", &loss), ("gradient of the loss", &gradient)] {
        require_shape(KERNEL, name, operand.shape(), &[batch])?;
    }
    for (name, operand) in [("alpha", &alpha), ("beta", &beta)] {
        require_shape(KERNEL, name, operand.shape(), &[steps, batch, labels])?;
    }
    let mixed =
        [(&alpha, 1), (&beta, 1), (&loss, 1), (&gradient, 0)].into_iter().find(|(of, n)| of.dtype != dtypes[*n]);
    require_shapes(KERNEL, mixed.is_none(), || {
        format!("variables and losses of {}, a gradient of {}, want {dtypes:?}", loss.dtype, gradient.dtype)
    })?;
    let linked = checked_elements(KERNEL, &[batch, kernel::words_a_target(labels as u32) as usize])?;
    let output = unwritten(client, vec![steps, batch, classes], dtypes[0]);
    if steps * batch == 0 {
        return Ok(output);
    }
    let Problem { scores, targets, input_lengths, .. } = &problem;
    let view = |tensor: TensorHandle| view(client, KERNEL, tensor);
    let (gradient, alpha, beta, loss) = (view(gradient)?, view(alpha)?, view(beta)?, view(loss)?);
    let links = words(client, linked);
    let (count, dim) = grid(batch * labels);
    // SAFETY: units stop at the number of labels; a target has its words in `links`, and the views cover the targets,
    // the lengths and the losses.
    unsafe {
        kernel::link_labels::launch_unchecked(
            client,
            count,
            dim,
            targets.buffer(),
            input_lengths.buffer(),
            loss.buffer(),
            words_arg(&links, linked),
            problem.extent(),
            targets.strides(),
            input_lengths.strides(),
            loss.strides(),
            blank as u32,
            [targets.dtype, input_lengths.dtype, dtypes[1]],
        );
    }
    for (count, dim, unit) in axis_grids(steps, batch, classes) {
        // SAFETY: units stop at the extent of the output; the views cover what their strides reach within it.
        unsafe {
            kernel::probabilities::launch_unchecked(
                client,
                count,
                dim,
                scores.buffer(),
                gradient.buffer(),
                words_arg(&links, linked),
                output.clone().into_arg().into_buffer_arg(),
                problem.extent(),
                unit,
                scores.strides(),
                gradient.strides(),
                dtypes,
            );
        }
    }
    for (count, dim, unit) in axis_grids(batch, labels, steps) {
        // SAFETY: units stop at the number of labels and steps. Links name labels of the same target, and classes that
        // exist; of the units of a target and step those of first labels have a class each, which no other unit writes.
        unsafe {
            kernel::subtract_posteriors::launch_unchecked(
                client,
                count,
                dim,
                scores.buffer(),
                alpha.buffer(),
                beta.buffer(),
                loss.buffer(),
                gradient.buffer(),
                words_arg(&links, linked),
                output.clone().into_arg().into_buffer_arg(),
                problem.extent(),
                unit,
                scores.strides(),
                alpha.strides(),
                beta.strides(),
                loss.strides(),
                gradient.strides(),
                dtypes,
            );
        }
    }
    Ok(output)
}

/// Operands that fit together.
struct Problem {
    kernel: &'static str,
    steps: usize,
    batch: usize,
    classes: usize,
    /// Those of a target with the blanks around them.
    labels: usize,
    blank: usize,
    /// Those of the scores and of what is computed.
    dtypes: [ElemType; 2],
    scores: AxisView,
    targets: AxisView,
    input_lengths: AxisView,
    target_lengths: AxisView,
}

impl Problem {
    fn new(client: &Client, kernel: &'static str, operands: Operands, blank: usize) -> Result<Self, KernelError> {
        let Operands { scores, targets, input_lengths, target_lengths } = operands;
        let (&[steps, batch, classes], &[_, length]) = (&scores.shape()[..], &targets.shape()[..]) else {
            let reason =
                format!("scores {:?} and targets {:?}, want three axes and two", scores.shape(), targets.shape());
            return Err(KernelError::Shape { kernel, reason });
        };
        let labels = 2 * length + 1;
        require_shape(kernel, "targets", targets.shape(), &[batch, length])?;
        for (name, operand) in [("input lengths", &input_lengths), ("target lengths", &target_lengths)] {
            require_shape(kernel, name, operand.shape(), &[batch])?;
            require_indices(client, kernel, operand)?;
        }
        require_indices(client, kernel, &targets)?;
        require_shapes(kernel, labels <= MOST_LABELS, || {
            format!("{labels} labels and blanks, want at most {MOST_LABELS}")
        })?;
        if blank >= classes {
            let reason = format!("the blank is class {blank} of {classes}");
            return Err(KernelError::Argument { kernel, reason });
        }
        let accumulator = float_accumulator(client, kernel, &[&scores])?;
        let dtypes = [scores.dtype, accumulator];
        require_units(client, kernel, UNITS)?;
        checked_elements(kernel, scores.shape())?;
        checked_elements(kernel, &[steps, batch, labels])?;
        let view = |tensor: TensorHandle| view(client, kernel, tensor);
        Ok(Self {
            kernel,
            steps,
            batch,
            classes,
            labels,
            blank,
            dtypes,
            scores: view(scores)?,
            targets: view(targets)?,
            input_lengths: view(input_lengths)?,
            target_lengths: view(target_lengths)?,
        })
    }

    fn extent(&self) -> kernel::ExtentLaunch {
        let Self { steps, batch, classes, labels, .. } = *self;
        kernel::ExtentLaunch::new(steps as u32, batch as u32, classes as u32, labels as u32)
    }

    /// The variables from the first step on, or `backward` from the last one, of each step if it `keeps` them. Those from the
    /// first step write the `loss`.
    fn recur(
        &self,
        client: &Client,
        backward: bool,
        keeps: bool,
        loss: &TensorHandle,
    ) -> Result<TensorHandle, KernelError> {
        let Self { steps, batch, labels, dtypes, .. } = *self;
        // Few sizes, since each is a kernel.
        let pitch = labels.next_power_of_two().max(32);
        require_shared_memory(client, self.kernel, 2 * pitch * dtypes[1].size())?;
        let units = pitch.min(UNITS as usize);
        let of_a_launch = MAX_ITERATIONS / (labels.div_ceil(units) + 2);
        // A launch of no step writes the losses of inputs without one.
        let steps = steps.max(1);
        let shape = match (keeps, steps > of_a_launch) {
            (true, _) => vec![self.steps, batch, labels],
            (false, true) => vec![batch, labels],
            (false, false) => vec![1],
        };
        let rows = unwritten(client, shape, dtypes[1]);
        if batch == 0 {
            return Ok(rows);
        }
        let Self { scores, targets, input_lengths, target_lengths, .. } = self;
        for from in (0..steps).step_by(of_a_launch) {
            let to = (from + of_a_launch).min(steps);
            let (first, last, single) = (from == 0, to == steps, pitch == units);
            let form = Form { backward, keeps, first, last, pitch: pitch as u32, single };
            // SAFETY: a cube has a sequence of the batch, and its units write that sequence's variables, loss and half of
            // shared memory, of as many labels as these have. They read what exists: lengths are at most those of the
            // operands, and a class is one of the scores.
            unsafe {
                recurrence::variables::launch_unchecked(
                    client,
                    cubes(batch),
                    CubeDim::new_1d(units as u32),
                    scores.buffer(),
                    targets.buffer(),
                    input_lengths.buffer(),
                    target_lengths.buffer(),
                    rows.clone().into_arg().into_buffer_arg(),
                    loss.clone().into_arg().into_buffer_arg(),
                    self.extent(),
                    self.blank as u32,
                    from as u32,
                    to as u32,
                    scores.strides(),
                    targets.strides(),
                    input_lengths.strides(),
                    target_lengths.strides(),
                    form,
                    [dtypes[0], dtypes[1], loss.dtype, targets.dtype, input_lengths.dtype, target_lengths.dtype],
                );
            }
        }
        Ok(rows)
    }
}

/// The view of an operand with the batch in the middle, of three axes, or first.
fn view(client: &Client, kernel: &'static str, tensor: TensorHandle) -> Result<AxisView, KernelError> {
    let axes = if tensor.shape().len() == 3 { 1..2 } else { 0..1 };
    AxisView::new(client, kernel, tensor, axes)
}
