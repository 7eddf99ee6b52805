//! The gradient of the CTC loss.

use super::indices::flagged;
use super::{Output, operand, run};
use burn_backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::ctc;
use burn_deterministic_kernels::index_check::check;

/// The operands of a gradient, with what the loss's recurrences have left.
pub(in crate::backend) struct Operands {
    /// The scores.
    pub log_probs: CubeTensor,
    /// The labels.
    pub targets: CubeTensor,
    /// The steps of each input.
    pub input_lengths: CubeTensor,
    /// The gradient of each loss.
    pub grad_loss: CubeTensor,
    /// The recurrence from the first step.
    pub alpha: CubeTensor,
    /// The recurrence from the last step.
    pub beta: CubeTensor,
    /// The losses.
    pub loss: CubeTensor,
}

/// Whether the kernel takes targets of this length.
pub(in crate::backend) fn takes(targets: &CubeTensor) -> bool {
    2 * targets.shape()[1] < ctc::MOST_LABELS
}

/// The gradient by the scores.
pub(in crate::backend) fn gradient(of: Operands, blank: usize, plain: impl FnOnce() -> CubeTensor) -> CubeTensor {
    const OPERATION: &str = "ctc_loss_backward";
    let operands = [&of.log_probs, &of.targets, &of.input_lengths, &of.grad_loss];
    run(
        OPERATION,
        &operands,
        Output::like(&of.log_probs, of.log_probs.shape()),
        |client| {
            let targets = operand(&of.targets);
            let kernel_operands = ctc::Operands {
                scores: operand(&of.log_probs),
                targets: targets.clone(),
                lengths: operand(&of.input_lengths),
                gradient: operand(&of.grad_loss),
                alpha: operand(&of.alpha),
                beta: operand(&of.beta),
                loss: operand(&of.loss),
            };
            let result = ctc::gradient(client, kernel_operands, blank)?;
            let classes = [of.log_probs.shape()[2]];
            flagged(OPERATION, &operands, &of.targets, &classes, |flag| check(client, targets, &classes, flag))?;
            Ok(result)
        },
        plain,
    )
}
