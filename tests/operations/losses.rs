//! Losses.

use super::{Operation, at, flat};
use burn::nn::loss::*;
use burn::prelude::*;
use burn::tensor::activation::{log_sigmoid, log_softmax, softmax};
use burn::tensor::module::ctc_loss;

/// A loss at several points, whose gradients an operand adds up.
fn several(x: &[Tensor<1>], loss: impl Fn(&[Tensor<1>]) -> Tensor<1>) -> Tensor<1> {
    let losses = [1.0, -0.75, 0.5, 1.25].map(|factor| loss(&x.iter().map(|x| x.clone() * factor).collect::<Vec<_>>()));
    Tensor::cat(losses.into(), 0)
}

pub fn losses() -> Vec<Operation> {
    let pair = |x: &[Tensor<1>]| [x[0].clone().reshape([8, 6]), x[1].clone().reshape([8, 6])];
    vec![
        Operation::new("mse", &[48, 48], move |x| {
            several(x, |x| {
                let [x, y] = pair(x);
                MseLoss::new().forward(x, y, Reduction::Mean)
            })
        }),
        Operation::new("huber", &[48, 48], move |x| {
            several(x, |x| {
                let [x, y] = pair(x);
                HuberLossConfig::new(0.75).init().forward(x, y, Reduction::Sum)
            })
        }),
        Operation::new("smooth_l1", &[48, 48], move |x| {
            several(x, |x| {
                let [x, y] = pair(x);
                SmoothL1LossConfig::new().with_beta(0.75).init().forward_with_reduction(x, y, Reduction::Mean)
            })
        }),
        Operation::new("kldiv", &[48, 48], move |x| {
            several(x, |x| {
                let [x, y] = pair(x);
                KLDivLossConfig::new().init().forward(log_softmax(x, 1), softmax(y, 1), Reduction::BatchMean)
            })
        }),
        Operation::new("poisson_nll", &[48, 48], move |x| {
            several(x, |x| {
                let [x, y] = pair(x);
                PoissonNllLossConfig::new().init().forward(x, y.abs(), Reduction::Mean)
            })
        }),
        Operation::new("cross_entropy", &[8 * 6], |x| {
            several(x, |x| {
                let device = x[0].device();
                let targets = at([8], 6, &x[0]);
                CrossEntropyLossConfig::new().init(&device).forward(x[0].clone().reshape([8, 6]), targets)
            })
        }),
        Operation::new("smoothed cross_entropy", &[8 * 6], |x| {
            several(x, |x| {
                let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).init(&x[0].device());
                loss.forward(x[0].clone().reshape([8, 6]), at([8], 6, &x[0]))
            })
        })
        .reference(|x| {
            several(x, |x| {
                let logs = log_softmax(x[0].clone().reshape([8, 6]), 1);
                let chosen = logs.clone().gather(1, at([8], 6, &x[0]).unsqueeze_dim(1));
                chosen.mean() * -0.9 - logs.mean() * 0.1
            })
        }),
        Operation::new("binary_cross_entropy", &[8 * 6], |x| {
            several(x, |x| {
                let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&x[0].device());
                loss.forward(x[0].clone().reshape([8, 6]), at([8, 6], 2, &x[0]))
            })
        })
        .reference(|x| {
            several(x, |x| {
                let x_or_minus = x[0].clone().mask_where(at([48], 2, &x[0]).equal_elem(0), -x[0].clone());
                -log_sigmoid(x_or_minus).mean()
            })
        }),
        Operation::new("ctc_loss", &[12 * 3 * 5], |x| {
            several(x, |x| {
                let device = x[0].device();
                let ints = |values: Vec<i32>| {
                    let length = values.len();
                    Tensor::<1, Int>::from_data(TensorData::new(values, [length]), &device)
                };
                let log_probs = log_softmax(x[0].clone().reshape([12, 3, 5]), 2);
                let targets = ints(vec![1, 2, 2, 4, 3, 1, 1, 1, 4, 3, 0, 0]).reshape([3, 4]);
                flat(ctc_loss(log_probs, targets, ints(vec![12, 10, 11]), ints(vec![4, 4, 2]), 0))
            })
        }),
    ]
}
