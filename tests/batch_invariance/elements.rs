//! Element-wise operations, alone and in runs that are fused.

use super::{Case, rows, weights};
use burn::prelude::*;
use burn::tensor::activation::*;

/// Elements of an operand: no whole number of vectors.
const LENGTH: usize = 67;

/// An operation on the two halves of a sample.
fn pair(operations: &'static str, run: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2> + 'static) -> Case {
    Case::new(operations, operations, 2 * LENGTH, move |x, _| {
        run(x.clone().slice_dim(1, 0..LENGTH), x.slice_dim(1, LENGTH..2 * LENGTH))
    })
}

fn function(operations: &'static str, run: fn(Tensor<2>) -> Tensor<2>) -> Case {
    Case::new(operations, operations, LENGTH, move |x, _| run(x))
}

/// An operation that Burn's stream composes of others: [`methods`](super::methods) has the method itself.
fn composed(name: &'static str, run: fn(Tensor<2>) -> Tensor<2>) -> Case {
    Case::new(name, "", LENGTH, move |x, _| run(x))
}

pub fn pairs(_: &Device) -> Vec<Case> {
    vec![
        pair("float_add", |x, y| x + y),
        pair("float_sub", |x, y| x - y),
        pair("float_mul", |x, y| x * y),
        pair("float_div", |x, y| x / y),
        pair("float_remainder", |x, y| x.remainder(y.abs() + 0.5)),
        pair("float_powf", |x, y| (x.abs() + 0.25).powf(y)),
        pair("float_hypot", |x, y| x.hypot(y)),
        pair("float_atan2", |x, y| x.atan2(y)),
        pair("float_cross", |x, y| {
            rows(x.slice_dim(1, 0..66).reshape([-1, 3, 22]).cross(y.slice_dim(1, 0..66).reshape([-1, 3, 22]), 1))
        }),
        pair("float_mask_where", |x, y| x.mask_where(y.clone().greater_elem(0.5), y)),
        pair("float_mask_fill", |x, y| x.mask_fill(y.greater_elem(0.5), 0.25)),
        pair("float_equal", |x, y| x.round().equal(y.round()).float()),
        pair("float_greater", |x, y| x.greater(y).float()),
        pair("float_greater_equal", |x, y| x.round().greater_equal(y.round()).float()),
        pair("float_lower", |x, y| x.lower(y).float()),
        pair("float_lower_equal", |x, y| x.round().lower_equal(y.round()).float()),
        Case::new("a run of operations", "", 2 * LENGTH, |x, _| {
            let (y, row) = (x.clone().exp(), weights([1, 2 * LENGTH], &x.device()));
            ((x.clone() * y.clone() + row) / 3.0).tanh() * y - x.sqrt().abs()
        }),
        Case::new("a run of operations and a sum", "", 5000, |x, _| {
            let row = weights([1, 5000], &x.device());
            ((x.clone() * row + x) * 0.7).sum_dim(1)
        }),
    ]
}

pub fn functions(_: &Device) -> Vec<Case> {
    vec![
        function("float_add_scalar", |x| x + 1.7),
        function("float_sub_scalar", |x| x - 1.7),
        function("float_mul_scalar", |x| x * 1.7),
        function("float_div_scalar", |x| x / 1.7),
        function("float_remainder_scalar", |x| x.remainder_scalar(0.7)),
        composed("neg", |x| -x),
        function("float_recip", |x| x.recip()),
        function("float_abs", |x| x.abs()),
        composed("sign", |x| x.sign()),
        function("float_clamp", |x| x.clamp(-0.5, 0.75)),
        composed("clamp_min", |x| x.clamp_min(-0.5)),
        composed("clamp_max", |x| x.clamp_max(0.5)),
        function("float_equal_elem", |x| x.round().equal_elem(1.0).float()),
        composed("not_equal_elem", |x| x.round().not_equal_elem(1.0).float()),
        function("float_greater_elem", |x| x.greater_elem(0.3).float()),
        function("float_greater_equal_elem", |x| x.greater_equal_elem(0.3).float()),
        function("float_lower_elem", |x| x.lower_elem(0.3).float()),
        function("float_lower_equal_elem", |x| x.lower_equal_elem(0.3).float()),
        function("float_is_nan", |x| x.sqrt().is_nan().float()),
        function("float_is_inf", |x| x.round().recip().is_inf().float()),
        function("float_round", |x| (x * 3.0).round()),
        function("float_floor", |x| (x * 3.0).floor()),
        function("float_ceil", |x| (x * 3.0).ceil()),
        function("float_trunc", |x| (x * 3.0).trunc()),
        function("float_into_int", |x| (x * 9.0).int().float()),
        function("float_exp", |x| x.exp()),
        function("float_log", |x| (x.abs() + 0.25).log()),
        function("float_log1p", |x| x.abs().log1p()),
        composed("powi_scalar", |x| x.powi_scalar(3)),
        function("float_powf_scalar", |x| (x.abs() + 0.25).powf_scalar(1.7)),
        function("float_sqrt", |x| (x.abs() + 0.25).sqrt()),
        function("float_sin", |x| x.sin()),
        function("float_cos", |x| x.cos()),
        function("float_tan", |x| (x * 0.5).tan()),
        function("float_sinh", |x| x.sinh()),
        function("float_cosh", |x| x.cosh()),
        function("float_tanh", |x| x.tanh()),
        function("float_asin", |x| (x * 0.45).asin()),
        function("float_acos", |x| (x * 0.45).acos()),
        function("float_atan", |x| x.atan()),
        function("float_asinh", |x| x.asinh()),
        function("float_acosh", |x| (x.abs() + 1.25).acosh()),
        function("float_atanh", |x| (x * 0.45).atanh()),
        function("float_erf", |x| x.erf()),
    ]
}

pub fn activations(_: &Device) -> Vec<Case> {
    vec![
        composed("relu", relu),
        composed("leaky_relu", |x| leaky_relu(x, 0.1)),
        composed("gelu", gelu),
        composed("sigmoid", sigmoid),
        composed("hard_sigmoid", |x| hard_sigmoid(x, 0.2, 0.5)),
        composed("log_sigmoid", log_sigmoid),
        Case::new("prelu", "", 4 * 9, |x, _| {
            let slopes = weights([4], &x.device());
            rows(prelu(x.reshape([-1, 4, 9]), slopes))
        }),
        composed("gelu_approximate", gelu_approximate),
        composed("softplus", |x| softplus(x, 1.5)),
        composed("silu", silu),
        composed("mish", mish),
        composed("hard_swish", hard_swish),
        composed("elu", |x| elu(x, 0.7)),
        composed("selu", selu),
        composed("softsign", softsign),
        composed("glu", |x| glu(x.slice_dim(1, 0..66), 1)),
    ]
}

/// Integers and booleans, which are exact in any order.
pub fn integers(_: &Device) -> Vec<Case> {
    let case = |name: &'static str, run: fn(Tensor<2, Int>) -> Tensor<2, Int>| {
        Case::new(name, "", 1, move |_, at| run(at).float())
    };
    vec![
        case("int arithmetic", |at| (at.clone() * 7 + at.clone()).bitwise_xor(at)),
        case("int sum_dim", |at| at.reshape([-1, 8, 8]).sum_dim(1).reshape([-1, 8])),
        case("int cumsum", |at| at.cumsum(1)),
        case("int sort", |at| at.sort(1)),
        case("int max_dim", |at| at.reshape([-1, 8, 8]).max_dim(2).reshape([-1, 8])),
        case("bool any_dim", |at| at.equal_elem(3).reshape([-1, 8, 8]).any_dim(2).reshape([-1, 8]).int()),
        case("bool all_dim", |at| at.greater_elem(1).reshape([-1, 16, 4]).all_dim(2).reshape([-1, 16]).int()),
    ]
}
