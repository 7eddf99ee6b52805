//! Reductions of an axis, and scans along it.

use super::{Operation, flat};
use burn::tensor::activation::*;

pub fn reductions() -> Vec<Operation> {
    vec![
        Operation::new("sum", &[333], |x| x[0].clone().sum()),
        Operation::new("sum_dim", &[7 * 40], |x| flat(x[0].clone().reshape([7, 40]).sum_dim(1))),
        Operation::new("sum_dims", &[4 * 5 * 6], |x| flat(x[0].clone().reshape([4, 5, 6]).sum_dims(&[0, 2]))),
        Operation::new("mean", &[333], |x| x[0].clone().mean()),
        Operation::new("mean_dim", &[7 * 40], |x| flat(x[0].clone().reshape([7, 40]).mean_dim(0))),
        Operation::new("prod", &[30], |x| x[0].clone().prod()),
        Operation::new("prod_dim", &[7 * 12], |x| flat(x[0].clone().reshape([7, 12]).prod_dim(1))),
        Operation::new("var", &[7 * 40], |x| flat(x[0].clone().reshape([7, 40]).var(1))),
        Operation::new("var_bias", &[7 * 40], |x| flat(x[0].clone().reshape([7, 40]).var_bias(0))),
        Operation::new("cov", &[7 * 9], |x| flat(x[0].clone().reshape([7, 9]).cov(1, 1))),
        Operation::new("euclidean norm", &[7 * 40], |x| flat(x[0].clone().reshape([7, 40]).square().sum_dim(1).sqrt())),
    ]
}

pub fn scans() -> Vec<Operation> {
    vec![
        Operation::new("cumsum", &[3 * 90], |x| flat(x[0].clone().reshape([3, 90]).cumsum(1))),
        Operation::new("cumprod", &[12 * 5], |x| flat(x[0].clone().reshape([12, 5]).cumprod(0))),
    ]
}

pub fn softmaxes() -> Vec<Operation> {
    vec![
        Operation::new("softmax", &[5 * 24], |x| flat(softmax(x[0].clone().reshape([5, 24]), 1))),
        Operation::new("softmax of columns", &[24 * 5], |x| flat(softmax(x[0].clone().reshape([24, 5]), 0))),
        Operation::new("softmin", &[5 * 24], |x| flat(softmin(x[0].clone().reshape([5, 24]), 1))),
        Operation::new("log_softmax", &[5 * 24], |x| flat(log_softmax(x[0].clone().reshape([5, 24]), 1))),
        Operation::new("quiet_softmax", &[5 * 24], |x| flat(quiet_softmax(x[0].clone().reshape([5, 24]), 1))),
    ]
}
