//! The forward and backward variables, step by step: one cube a sequence, its units over the labels.

use super::kernel::{Extent, class_of, counted};
use crate::arithmetic::{negative_infinity, negative_zero};
use crate::function::exponential::{exp_of, log1p_of};
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// Which variables a launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    /// Those from the last step and label to the first ones.
    pub(super) backward: bool,
    /// Whether the variables of all steps are written, or for the next launch those of the last one.
    pub(super) keeps: bool,
    /// Whether these are the first steps.
    pub(super) first: bool,
    /// Whether these are the last steps.
    pub(super) last: bool,
    /// Variables of a step in shared memory, at least as many as labels.
    pub(super) pitch: u32,
    /// Whether a unit has one label at most: it looks at the target once.
    pub(super) single: bool,
}

/// A label of a target with its blanks.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Label {
    /// Its position.
    position: u32,
    /// Its class, or the number of classes if it is none or does not count.
    class: u32,
    /// Whether a path may come to it from the second label before it.
    skips: bool,
}

/// The label at a place of the recurrence: from the last one that counts, if it is `backward`.
#[cube]
fn label_at<I: Int>(
    targets: &[I],
    strides: &Strides,
    extent: &Extent,
    entry: u32,
    at: u32,
    last: u32,
    blank: u32,
    #[comptime] backward: bool,
) -> Label {
    let mut position = at;
    let mut second = at - 2;
    if comptime!(backward) {
        position = select(at <= last, last - at, at);
        second = position + 2;
    }
    let mut class = extent.classes;
    let mut skips = false;
    if at <= last {
        class = class_of::<I>(targets, strides, entry, position, blank, extent.classes);
        if at >= 2 && class != blank {
            skips = class_of::<I>(targets, strides, entry, second, blank, extent.classes) != class;
        }
    }
    Label { position, class, skips }
}

/// `log(exp(a) + exp(b))`.
#[cube]
fn log_sum<A: Float>(a: A, b: A) -> A {
    let above = b > a;
    let more = select(above, b, a);
    let less = select(above, a, b);
    let sum = more + log1p_of::<A>(exp_of::<A>(less - more));
    // Of two that are -inf the difference is a NaN.
    select(less == A::cast_from(negative_infinity()), more, sum)
}

/// The place in `rows` of the variable of a label after a step, or of a step's where they all are kept.
#[cube]
fn place(extent: &Extent, entry: u32, time: u32, position: u32, #[comptime] form: Form) -> usize {
    let row = if comptime!(form.keeps) { time * extent.batch + entry } else { entry };
    (row * extent.labels + position) as usize
}

/// The variables after the steps `from..to`, counted from the end where it is `backward`, and the losses of sequences that end
/// there.
///
/// Operands are `scores[steps, batch, classes]`, `targets[batch, length]`, `input_lengths[batch]`,
/// `target_lengths[batch]`, `rows[steps, batch, labels]` or `rows[batch, labels]`, `loss[batch]`. A step's variables are
/// in shared memory, in one half those of even steps and in the other those of odd ones: a barrier between steps is
/// enough.
#[allow(clippy::collapsible_if, reason = "the outer condition is decided when the kernel is compiled")]
#[cube(launch_unchecked)]
pub(super) fn variables<F: Float, A: Float, L: Float, I: Int, J: Int, K: Int>(
    scores: &[F],
    targets: &[I],
    input_lengths: &[J],
    target_lengths: &[K],
    rows: &mut [A],
    loss: &mut [L],
    extent: Extent,
    blank: u32,
    from: u32,
    to: u32,
    score_strides: Strides,
    target_strides: Strides,
    input_length_strides: Strides,
    target_length_strides: Strides,
    #[comptime] form: Form,
    #[define(F, A, L, I, J, K)] _dtypes: [ElemType; 6],
) {
    let entry = CUBE_POS as u32;
    if entry >= extent.batch {
        terminate!();
    }
    let steps = counted::<J>(input_lengths[input_length_strides.offset(0, entry, 0)], extent.steps);
    let most = (extent.labels - 1) / 2;
    let last = 2 * counted::<K>(target_lengths[target_length_strides.offset(0, entry, 0)], most);
    let pitch = comptime!(form.pitch);
    let unreached = A::cast_from(negative_infinity());
    let mut state = Shared::<[A]>::new_slice(comptime!(2 * form.pitch as usize));
    if comptime!(!form.first) {
        if steps >= from {
            let before = (from - 1) % 2 * pitch;
            let time = if comptime!(form.backward) { steps - from } else { from - 1 };
            let mut at = UNIT_POS_X;
            while at < extent.labels {
                let mut position = at;
                if comptime!(form.backward) {
                    position = select(at <= last, last - at, at);
                }
                state[(before + at) as usize] = rows[place(&extent, entry, time, position, form)];
                at += CUBE_DIM_X;
            }
        }
        sync_cube();
    }
    let own =
        label_at::<I>(targets, &target_strides, &extent, entry, UNIT_POS_X, last, blank, comptime!(form.backward));
    for step in from..to {
        if step < steps {
            let now = step % 2 * pitch;
            let before = pitch - now;
            let time = if comptime!(form.backward) { steps - 1 - step } else { step };
            let mut at = UNIT_POS_X;
            while at < extent.labels {
                let label = if comptime!(form.single) {
                    own
                } else {
                    label_at::<I>(targets, &target_strides, &extent, entry, at, last, blank, comptime!(form.backward))
                };
                let mut value = unreached;
                if label.class < extent.classes {
                    let score = A::cast_from(scores[score_strides.offset(time, entry, label.class)]);
                    if step == 0 {
                        value = select(at < 2, score, unreached);
                    } else {
                        let mut sum = state[(before + at) as usize];
                        if at >= 1 {
                            sum = log_sum::<A>(sum, state[(before + at - 1) as usize]);
                        }
                        if label.skips {
                            sum = log_sum::<A>(sum, state[(before + at - 2) as usize]);
                        }
                        value = score + sum;
                    }
                }
                state[(now + at) as usize] = value;
                if comptime!(form.keeps) {
                    rows[place(&extent, entry, time, label.position, form)] = value;
                }
                at += CUBE_DIM_X;
            }
        }
        sync_cube();
    }
    if comptime!(!form.keeps && !form.last) {
        if steps >= to {
            let row = (to - 1) % 2 * pitch;
            let mut at = UNIT_POS_X;
            while at < extent.labels {
                rows[place(&extent, entry, to - 1, at, form)] = state[(row + at) as usize];
                at += CUBE_DIM_X;
            }
        }
    }
    if comptime!(!form.backward) {
        // An input of no step ends in the first launch.
        let end = max(steps, 1u32);
        if UNIT_POS_X == 0 && end > from && end <= to {
            let mut sum = unreached;
            if steps > 0 {
                let row = (steps - 1) % 2 * pitch;
                sum = state[(row + last) as usize];
                if last > 0 {
                    sum = log_sum::<A>(sum, state[(row + last - 1) as usize]);
                }
            } else if last == 0 {
                sum = negative_zero::<A>();
            }
            loss[entry as usize] = L::cast_from(-sum);
        }
    }
    keep_subnormals();
}
