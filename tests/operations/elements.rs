//! Element-wise operations: their gradients, and the sums in those of broadcast operands.

use super::{Operation, flat};
use burn::prelude::*;
use burn::tensor::activation::*;

macro_rules! pairs {
    ($($name:literal: $function:expr;)*) => {
        vec![$(
            Operation::new(concat!($name, ", broadcast"), &[9 * 5, 5], |x| {
                let function: fn(Tensor<2>, Tensor<2>) -> Tensor<2> = $function;
                flat(function(x[0].clone().reshape([9, 5]), x[1].clone().reshape([1, 5])))
            }),
            Operation::new(concat!($name, ", broadcast both ways"), &[9, 5], |x| {
                let function: fn(Tensor<2>, Tensor<2>) -> Tensor<2> = $function;
                flat(function(x[0].clone().reshape([9, 1]), x[1].clone().reshape([1, 5])))
            }),
        )*]
    };
}

pub fn broadcast() -> Vec<Operation> {
    pairs! {
        "add": |x, y| x + y;
        "sub": |x, y| x - y;
        "mul": |x, y| x * y;
        "div": |x, y| x / (y.abs() + 0.5);
        "powf": |x, y| (x.abs() + 0.5).powf(y);
        "hypot": |x, y| x.hypot(y);
        "atan2": |x, y| x.atan2(y);
        "remainder": |x, y| x.remainder(y.abs() + 0.5);
    }
}

macro_rules! functions {
    ($($name:literal: $function:expr;)*) => {
        vec![$(
            Operation::new($name, &[64], |x| {
                let function: fn(Tensor<1>) -> Tensor<1> = $function;
                function(x[0].clone())
            }),
        )*]
    };
}

pub fn activations() -> Vec<Operation> {
    let mut operations = functions! {
        "exp": |x| x.exp();
        "log": |x| (x.abs() + 0.25).log();
        "log1p": |x| x.abs().log1p();
        "sqrt": |x| (x.abs() + 0.25).sqrt();
        "recip": |x| (x.abs() + 0.25).recip();
        "square": |x| x.square();
        "powf_scalar": |x| (x.abs() + 0.25).powf_scalar(1.7);
        "powi_scalar": |x| x.powi_scalar(3);
        "abs": |x| x.abs();
        "sin": |x| x.sin();
        "cos": |x| x.cos();
        "tan": |x| (x * 0.5).tan();
        "sinh": |x| x.sinh();
        "cosh": |x| x.cosh();
        "tanh": |x| x.tanh();
        "asin": |x| (x * 0.45).asin();
        "acos": |x| (x * 0.45).acos();
        "atan": |x| x.atan();
        "asinh": |x| x.asinh();
        "acosh": |x| (x.abs() + 1.25).acosh();
        "atanh": |x| (x * 0.45).atanh();
        "erf": |x| x.erf();
        "clamp": |x| x.clamp(-0.5, 0.75);
        "relu": relu;
        "relu6": |x| relu6(x * 5.0);
        "leaky_relu": |x| leaky_relu(x, 0.1);
        "gelu": gelu;
        "gelu_approximate": gelu_approximate;
        "sigmoid": sigmoid;
        "log_sigmoid": log_sigmoid;
        "hard_sigmoid": |x| hard_sigmoid(x, 0.2, 0.5);
        "softplus": |x| softplus(x, 1.5);
        "silu": silu;
        "hard_swish": hard_swish;
        "mish": mish;
        "elu": |x| elu(x, 0.7);
        "celu": |x| celu(x, 0.7);
        "selu": selu;
        "softsign": softsign;
        "tanhshrink": tanhshrink;
        "soft_shrink": |x| soft_shrink(x, 0.5);
    };
    operations
        .push(Operation::new("prelu", &[2 * 4 * 9, 4], |x| flat(prelu(x[0].clone().reshape([2, 4, 9]), x[1].clone()))));
    operations.push(Operation::new("glu", &[6 * 8], |x| flat(glu(x[0].clone().reshape([6, 8]), 1))));
    operations
}
