//! The CTC loss and its gradient.

use super::indices::flagged;
use super::{Output, operand, run};
use burn_backend::{Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::ctc;
use burn_deterministic_kernels::index_check::check;

/// The losses of a batch.
pub(in crate::backend) fn loss(
    operation: &'static str,
    log_probs: CubeTensor,
    targets: CubeTensor,
    input_lengths: CubeTensor,
    target_lengths: CubeTensor,
    blank: usize,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, CubeTensor, usize) -> CubeTensor,
) -> CubeTensor {
    let operands = [&log_probs, &targets, &input_lengths, &target_lengths];
    let [_, batch, classes] = log_probs.shape().dims();
    run(
        operation,
        &operands,
        Output::like(&log_probs, Shape::new([batch])),
        |client| {
            let losses = ctc::loss(client, sequences(operands), blank)?;
            let sizes = [classes];
            flagged(operation, &operands, &targets, &sizes, |flag| check(client, operand(&targets), &sizes, flag))?;
            Ok(losses)
        },
        || plain(log_probs.clone(), targets.clone(), input_lengths.clone(), target_lengths.clone(), blank),
    )
}

/// The gradient by the scores.
#[allow(clippy::too_many_arguments)]
pub(in crate::backend) fn gradient(
    operation: &'static str,
    log_probs: CubeTensor,
    targets: CubeTensor,
    input_lengths: CubeTensor,
    target_lengths: CubeTensor,
    grad_loss: CubeTensor,
    blank: usize,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, CubeTensor, CubeTensor, usize) -> CubeTensor,
) -> CubeTensor {
    let operands = [&log_probs, &targets, &input_lengths, &target_lengths];
    let classes = log_probs.shape()[2];
    run(
        operation,
        &[&log_probs, &targets, &input_lengths, &target_lengths, &grad_loss],
        Output::like(&log_probs, log_probs.shape()),
        |client| {
            let variables = ctc::variables(client, sequences(operands), blank)?;
            let result = ctc::gradient(client, sequences(operands), variables, operand(&grad_loss), blank)?;
            let sizes = [classes];
            flagged(operation, &operands, &targets, &sizes, |flag| check(client, operand(&targets), &sizes, flag))?;
            Ok(result)
        },
        || {
            plain(
                log_probs.clone(),
                targets.clone(),
                input_lengths.clone(),
                target_lengths.clone(),
                grad_loss.clone(),
                blank,
            )
        },
    )
}

fn sequences([scores, targets, input_lengths, target_lengths]: [&CubeTensor; 4]) -> ctc::Operands {
    ctc::Operands {
        scores: operand(scores),
        targets: operand(targets),
        input_lengths: operand(input_lengths),
        target_lengths: operand(target_lengths),
    }
}
