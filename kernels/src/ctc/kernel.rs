//! The device side.

use crate::arithmetic::{multiply_rounded, negative_infinity};
use crate::function::exponential::exp_of;
use crate::grid::UnitPlace;
use crate::index::row_of;
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// The extents of `scores[steps, batch, classes]`, and the labels of a target with their blanks.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Extent {
    pub(super) steps: u32,
    pub(super) batch: u32,
    pub(super) classes: u32,
    pub(super) labels: u32,
}

/// The words of a target in `links[batch, 1 + 2 labels]`: the number of steps with a gradient; for each label its class
/// if it is the first of its class, else the number of classes; for each label the next one of its class, or the number
/// of labels.
#[cube]
pub(super) fn words_a_target(labels: u32) -> u32 {
    labels * 2 + 1
}

/// The class of a label, or the number of classes if it is none.
#[cube]
pub(super) fn class_of<I: Int>(
    targets: &[I],
    strides: &Strides,
    target: u32,
    label: u32,
    blank: u32,
    classes: u32,
) -> u32 {
    let mut class = blank;
    if label % 2 == 1 {
        class = row_of::<I>(targets[strides.offset(0, target, label / 2)], classes);
    }
    class
}

/// How many steps or labels of `most` count. Of a length above it these do, of a negative one none.
#[cube]
pub(super) fn counted<J: Int>(length: J, most: u32) -> u32 {
    select(length < J::from_int(0), 0u32, row_of::<J>(length, most))
}

/// One unit a label: writes its words of `links`. Operands are `targets[batch, length]`, `lengths[batch]`,
/// `loss[batch]`.
#[cube(launch_unchecked)]
pub(super) fn link_labels<I: Int, J: Int, A: Float>(
    targets: &[I],
    lengths: &[J],
    loss: &[A],
    links: &mut [u32],
    extent: Extent,
    target_strides: Strides,
    length_strides: Strides,
    loss_strides: Strides,
    blank: u32,
    #[define(I, J, A)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    let labels = extent.labels;
    if unit >= extent.batch * labels {
        terminate!();
    }
    let target = unit / labels;
    let label = unit - target * labels;
    let class = class_of::<I>(targets, &target_strides, target, label, blank, extent.classes);
    let mut head = class;
    let mut next = labels;
    // Downwards, so that the nearest one is the last.
    for nth in 0..labels {
        let other = labels - 1 - nth;
        let same = class_of::<I>(targets, &target_strides, target, other, blank, extent.classes) == class;
        head = select(same && other < label, extent.classes, head);
        next = select(same && other > label, other, next);
    }
    let first = target * words_a_target(labels);
    links[(first + 1 + label) as usize] = head;
    links[(first + 1 + labels + label) as usize] = next;
    if label == 0 {
        let length = lengths[length_strides.offset(0, target, 0)];
        let counted = counted::<J>(length, extent.steps);
        let reachable = !bool::cast_from(loss[loss_strides.offset(0, target, 0)].is_inf());
        links[first as usize] = select(reachable, counted, 0u32);
    }
    keep_subnormals();
}

/// `exp(score) * gradient`, rounded.
#[cube]
fn probability<F: Float, A: Float>(score: F, gradient: F) -> A {
    multiply_rounded::<A>(exp_of::<A>(A::cast_from(score)), A::cast_from(gradient))
}

/// One unit an element of `output[steps, batch, classes]`: `exp(score) * gradient`, or zero at a step without a gradient.
#[cube(launch_unchecked)]
pub(super) fn probabilities<F: Float, A: Float>(
    scores: &[F],
    gradient: &[F],
    links: &[u32],
    output: &mut [F],
    extent: Extent,
    unit: UnitPlace,
    score_strides: Strides,
    gradient_strides: Strides,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (step, entry, class) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let counted = step < links[(entry * words_a_target(extent.labels)) as usize];
    let score = scores[score_strides.offset(step, entry, class)];
    let probability = probability::<F, A>(score, gradient[gradient_strides.offset(0, entry, 0)]);
    output[unit.index()] = select(counted, F::cast_from(probability), F::new(0.0));
    keep_subnormals();
}

/// One unit a label and step: that of the first label of a class adds the terms of all labels of the class to the
/// probability of the class, in `output[steps, batch, classes]`. `alpha` and `beta` are `[steps, batch, labels]`, `loss`
/// and `gradient` `[batch]`.
#[cube(launch_unchecked)]
pub(super) fn subtract_posteriors<F: Float, A: Float>(
    scores: &[F],
    alpha: &[A],
    beta: &[A],
    loss: &[A],
    gradient: &[F],
    links: &[u32],
    output: &mut [F],
    extent: Extent,
    unit: UnitPlace,
    score_strides: Strides,
    alpha_strides: Strides,
    beta_strides: Strides,
    loss_strides: Strides,
    gradient_strides: Strides,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (entry, label, step) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let first = entry * words_a_target(extent.labels);
    let class = links[(first + 1 + label) as usize];
    if class >= extent.classes || step >= links[first as usize] {
        terminate!();
    }
    let score = scores[score_strides.offset(step, entry, class)];
    let gradient = gradient[gradient_strides.offset(0, entry, 0)];
    let loss = loss[loss_strides.offset(0, entry, 0)];
    let negative = -A::cast_from(gradient);
    let unreached = A::cast_from(negative_infinity());
    // The reduction of the current block of labels, and of the blocks before it.
    let mut block = label / BLOCK_TERMS;
    let mut partial = A::new(0.0);
    let mut total = A::new(0.0);
    let mut has_partial = false;
    let mut has_total = false;
    let mut at = label;
    while at < extent.labels {
        let both = alpha[alpha_strides.offset(step, entry, at)] + beta[beta_strides.offset(step, entry, at)];
        // Not `!=`, which of a NaN is false on some devices.
        let is_unreached = both == unreached;
        if !is_unreached {
            let value = multiply_rounded::<A>(exp_of::<A>((both - A::cast_from(score)) + loss), negative);
            if has_partial && at / BLOCK_TERMS == block {
                partial += value;
            } else {
                if has_partial {
                    total = select(has_total, total + partial, partial);
                    has_total = true;
                }
                partial = value;
                block = at / BLOCK_TERMS;
                has_partial = true;
            }
        }
        at = links[(first + 1 + extent.labels + at) as usize];
    }
    if has_partial {
        let sum = select(has_total, total + partial, partial);
        let element = ((step * extent.batch + entry) * extent.classes + class) as usize;
        output[element] = F::cast_from(probability::<F, A>(score, gradient) + sum);
    }
    keep_subnormals();
}
