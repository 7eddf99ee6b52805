//! The gradient of the connectionist temporal classification (CTC) loss with respect to the scores (A. Graves et al.,
//! "Connectionist Temporal Classification", 2006, equation 16).
//!
//! # Order contract
//!
//! Let `l[0], .., l[2S]` be the labels of a target with a blank before, between and after them, `a` and `b` the forward
//! and backward variables in logarithms, both of which include the score of their own step, `nll` the loss and `g` its
//! gradient. At step `t` the gradient with respect to the score `x[c]` of class `c` is
//!
//! ```text
//! p     = round(exp(x[c]) * g)                                  the probability of c, times g
//! v[s]  = round(-exp(((a[s] + b[s]) - x[l[s]]) + nll) * g)      for each s with l[s] = c, ascending
//! total = blocked order of v[s] by position s                   those with l[s] = c; see `order`
//! p + total                                                     or p, bit for bit, if no label is c
//! ```
//!
//! each operation rounded on its own, and zero at steps beyond the input's length and where the loss is infinite. Half
//! types round each of them to the type, but for the sums, which are of `f32`. The exponential function is that of
//! [`function`](crate::function), for f64 the device's.
//!
//! A label that is no class adds nothing.
//!
//! # Cost
//!
//! Three launches. The first chains the equal labels of each target (head and next), which do not depend on the step;
//! in the last a unit has a label and a step, and those of a class's first label follow its chain.

mod kernel;
pub mod reference;

use crate::KernelError;
use crate::buffer::{unwritten, words, words_arg};
use crate::device::require_units;
use crate::dtype::float_accumulator;
use crate::error::require_shapes;
use crate::grid::{UNITS, axis_grids, grid};
use crate::index::require_indices;
use crate::view::{AxisView, checked_elements, require_shape};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Most labels of a target, with the blanks around them: each is compared with all others.
pub const MOST_LABELS: usize = 4096;

/// The operands of the gradient.
#[derive(Debug)]
pub struct Operands {
    /// The scores, logarithms of probabilities: `[steps, batch, classes]`.
    pub scores: TensorHandle,
    /// The labels: `[batch, length]`.
    pub targets: TensorHandle,
    /// The steps of each input: `[batch]`.
    pub lengths: TensorHandle,
    /// The gradient of each loss: `[batch]`.
    pub gradient: TensorHandle,
    /// The forward variables in logarithms: `[steps, batch, 2 length + 1]`.
    pub alpha: TensorHandle,
    /// The backward variables in logarithms, in the same shape.
    pub beta: TensorHandle,
    /// The losses: `[batch]`.
    pub loss: TensorHandle,
}

/// The gradient by the scores, `[steps, batch, classes]`, where class `blank` is the blank.
///
/// # Errors
///
/// Refuses shapes that do not fit together or that 32-bit indices do not reach, more than [`MOST_LABELS`] labels and
/// blanks, a blank that is no class, and element types the device does not compute.
pub fn gradient(client: &Client, operands: Operands, blank: usize) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "ctc::gradient";
    let Operands { scores, targets, lengths, gradient, alpha, beta, loss } = operands;
    let (&[steps, batch, classes], &[_, length]) = (&scores.shape()[..], &targets.shape()[..]) else {
        let reason = format!("scores {:?} and targets {:?}, want three axes and two", scores.shape(), targets.shape());
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    };
    let labels = 2 * length + 1;
    require_shape(KERNEL, "targets", targets.shape(), &[batch, length])?;
    for (name, operand) in [("input lengths", &lengths), ("loss", &loss), ("gradient of the loss", &gradient)] {
        require_shape(KERNEL, name, operand.shape(), &[batch])?;
    }
    for (name, operand) in [("alpha", &alpha), ("beta", &beta)] {
        require_shape(KERNEL, name, operand.shape(), &[steps, batch, labels])?;
    }
    require_shapes(KERNEL, labels <= MOST_LABELS, || {
        format!("{labels} labels and blanks, want at most {MOST_LABELS}")
    })?;
    if blank >= classes {
        let reason = format!("the blank is class {blank} of {classes}");
        return Err(KernelError::Argument { kernel: KERNEL, reason });
    }
    let accumulator = float_accumulator(client, KERNEL, &[&scores, &gradient, &alpha, &beta, &loss])?;
    let dtypes = [scores.dtype, accumulator];
    require_indices(client, KERNEL, &targets)?;
    require_indices(client, KERNEL, &lengths)?;
    require_units(client, KERNEL, UNITS)?;
    let shape = scores.shape().to_vec();
    let linked = checked_elements(KERNEL, &[batch, kernel::words_a_target(labels as u32) as usize])?;
    checked_elements(KERNEL, &shape)?;
    let output = unwritten(client, shape, scores.dtype);
    if steps * batch == 0 {
        return Ok(output);
    }
    let view = |tensor: TensorHandle| {
        let axes = if tensor.shape().len() == 3 { 1..2 } else { 0..1 };
        AxisView::new(client, KERNEL, tensor, axes)
    };
    let (scores, targets, lengths) = (view(scores)?, view(targets)?, view(lengths)?);
    let (gradient, alpha, beta, loss) = (view(gradient)?, view(alpha)?, view(beta)?, view(loss)?);
    let extent = || kernel::ExtentLaunch::new(steps as u32, batch as u32, classes as u32, labels as u32);
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
            lengths.buffer(),
            loss.buffer(),
            words_arg(&links, linked),
            extent(),
            targets.strides(),
            lengths.strides(),
            loss.strides(),
            blank as u32,
            [targets.dtype, lengths.dtype, dtypes[0]],
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
                extent(),
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
                extent(),
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
