//! Operations that share a kernel.

use burn_deterministic_kernels::elementwise::{Binary, Comparison, IntBinary, Logic, Unary};
use burn_deterministic_kernels::reduce::{self, extreme::Extreme};

/// The numbers of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// f32, f16 or bf16.
    Float,
    /// i32.
    Int,
}

/// What a method computes in the fused kernel of `elementwise`. Its second operand may be a scalar. A float is an f32, an f16
/// or a bf16; the result of the half types is rounded to them.
pub(crate) enum Fused {
    /// A function of a float.
    Unary(Unary),
    /// A function of two floats.
    Binary(Binary),
    /// A power of an f32 whose exponent is a number.
    PowerOfNumber,
    /// A float within two others.
    Clamp,
    /// A float of one type as one of another.
    Cast,
    /// A function of two i32.
    Int(IntBinary),
    /// `-x`, of an i32.
    IntNegate,
    /// `!x`, of an i32.
    IntNot,
    /// A comparison of two elements of this kind.
    Compare(Kind, Comparison),
    /// An element of this kind, or another one where a mask is set.
    Mask(Kind),
    /// A function of two bools.
    Logic(Logic),
    /// `!x`, of a bool.
    Not,
    /// A float cut to an i32.
    FloatToInt,
    /// An i32 rounded to an f32, and that to a half type.
    IntToFloat,
    /// A bool as 0 or 1, a float.
    BoolToFloat,
    /// A bool as 0 or 1, an i32.
    BoolToInt,
    /// A number of this kind, for every element.
    Fill(Kind),
    /// A slice along one axis that is assigned.
    SliceAssign,
    /// The element of a [row](burn_deterministic_kernels::rows) at the row's index.
    Gather,
    /// A sum at the index of each row, where nothing else of the row changes.
    Scatter,
    /// The first element of a row at an end, and its index.
    WithIndex(Extreme),
    /// A reduction of f32, which ends the kernel, or one of a [row](burn_deterministic_kernels::rows), of a half type too: it computes
    /// its elements where it reads them.
    Reduction(reduce::Operation),
}

/// What a method computes in the fused kernel, if its f32, f16, bf16, i32 or bool form on Burn's stream runs there together with its
/// neighbours.
pub(crate) fn fused(method: &str) -> Option<Fused> {
    let fused = match method {
        "float_add" | "float_add_scalar" => Fused::Binary(Binary::Add),
        "float_sub" | "float_sub_scalar" => Fused::Binary(Binary::Subtract),
        "float_mul" | "float_mul_scalar" => Fused::Binary(Binary::Multiply),
        "float_div" | "float_div_scalar" => Fused::Binary(Binary::Divide),
        "float_remainder" | "float_remainder_scalar" => Fused::Binary(Binary::Remainder),
        "float_abs" => Fused::Unary(Unary::Absolute),
        "float_neg" => Fused::Unary(Unary::Negate),
        "float_recip" => Fused::Unary(Unary::Reciprocal),
        "float_exp" => Fused::Unary(Unary::Exponential),
        "float_log" => Fused::Unary(Unary::Logarithm),
        "float_sqrt" => Fused::Unary(Unary::SquareRoot),
        "float_log1p" => Fused::Unary(Unary::LogarithmOfOnePlus),
        "float_sinh" => Fused::Unary(Unary::HyperbolicSine),
        "float_cosh" => Fused::Unary(Unary::HyperbolicCosine),
        "float_tanh" => Fused::Unary(Unary::HyperbolicTangent),
        "float_asinh" => Fused::Unary(Unary::HyperbolicArcSine),
        "float_acosh" => Fused::Unary(Unary::HyperbolicArcCosine),
        "float_atanh" => Fused::Unary(Unary::HyperbolicArcTangent),
        "float_tan" => Fused::Unary(Unary::Tangent),
        "float_asin" => Fused::Unary(Unary::ArcSine),
        "float_acos" => Fused::Unary(Unary::ArcCosine),
        "float_atan" => Fused::Unary(Unary::ArcTangent),
        // Burn has made products and quotients of whole exponents from -2 to 2 before they come here.
        "float_powf_scalar" => Fused::PowerOfNumber,
        "float_atan2" => Fused::Binary(Binary::ArcTangent),
        "float_powf" => Fused::Binary(Binary::Power),
        "float_sin" => Fused::Unary(Unary::Sine),
        "float_cos" => Fused::Unary(Unary::Cosine),
        "float_erf" => Fused::Unary(Unary::Erf),
        "float_floor" => Fused::Unary(Unary::Floor),
        "float_ceil" => Fused::Unary(Unary::Ceiling),
        "float_round" => Fused::Unary(Unary::Round),
        "float_trunc" => Fused::Unary(Unary::Truncate),
        "float_cast" => Fused::Cast,
        "float_clamp" => Fused::Clamp,
        "float_equal" | "float_equal_elem" => Fused::Compare(Kind::Float, Comparison::Equal),
        "float_greater" | "float_greater_elem" => Fused::Compare(Kind::Float, Comparison::Greater),
        "float_greater_equal" | "float_greater_equal_elem" => Fused::Compare(Kind::Float, Comparison::GreaterEqual),
        "float_lower" | "float_lower_elem" => Fused::Compare(Kind::Float, Comparison::Less),
        "float_lower_equal" | "float_lower_equal_elem" => Fused::Compare(Kind::Float, Comparison::LessEqual),
        "float_mask_where" | "float_mask_fill" => Fused::Mask(Kind::Float),
        "float_into_int" => Fused::FloatToInt,
        "int_add" | "int_add_scalar" => Fused::Int(IntBinary::Add),
        "int_sub" | "int_sub_scalar" => Fused::Int(IntBinary::Subtract),
        "int_mul" | "int_mul_scalar" => Fused::Int(IntBinary::Multiply),
        "int_div" | "int_div_scalar" => Fused::Int(IntBinary::Divide),
        "int_remainder" | "int_remainder_scalar" => Fused::Int(IntBinary::Remainder),
        "int_powi" | "int_powi_scalar" => Fused::Int(IntBinary::Power),
        "bitwise_left_shift" | "bitwise_left_shift_scalar" => Fused::Int(IntBinary::ShiftLeft),
        "bitwise_right_shift" | "bitwise_right_shift_scalar" => Fused::Int(IntBinary::ShiftRight),
        "bitwise_and" | "bitwise_and_scalar" => Fused::Int(IntBinary::And),
        "bitwise_or" | "bitwise_or_scalar" => Fused::Int(IntBinary::Or),
        "bitwise_xor" | "bitwise_xor_scalar" => Fused::Int(IntBinary::Xor),
        "int_neg" => Fused::IntNegate,
        "bitwise_not" => Fused::IntNot,
        "int_equal" | "int_equal_elem" => Fused::Compare(Kind::Int, Comparison::Equal),
        "int_greater" | "int_greater_elem" => Fused::Compare(Kind::Int, Comparison::Greater),
        "int_greater_equal" | "int_greater_equal_elem" => Fused::Compare(Kind::Int, Comparison::GreaterEqual),
        "int_lower" | "int_lower_elem" => Fused::Compare(Kind::Int, Comparison::Less),
        "int_lower_equal" | "int_lower_equal_elem" => Fused::Compare(Kind::Int, Comparison::LessEqual),
        "int_mask_where" | "int_mask_fill" => Fused::Mask(Kind::Int),
        "int_into_float" => Fused::IntToFloat,
        "bool_and" => Fused::Logic(Logic::And),
        "bool_or" => Fused::Logic(Logic::Or),
        "bool_xor" | "bool_not_equal" => Fused::Logic(Logic::Xor),
        "bool_not" => Fused::Not,
        "bool_into_float" => Fused::BoolToFloat,
        "bool_into_int" => Fused::BoolToInt,
        "float_zeros" | "float_ones" | "float_full" => Fused::Fill(Kind::Float),
        "int_zeros" | "int_ones" | "int_full" => Fused::Fill(Kind::Int),
        "float_slice_assign" => Fused::SliceAssign,
        "float_gather" => Fused::Gather,
        "float_scatter" => Fused::Scatter,
        "float_max_dim_with_indices" => Fused::WithIndex(Extreme::Max),
        "float_min_dim_with_indices" => Fused::WithIndex(Extreme::Min),
        "float_sum" | "float_sum_dim" | "float_sum_dims" => Fused::Reduction(reduce::Operation::Sum),
        "float_prod" | "float_prod_dim" => Fused::Reduction(reduce::Operation::Prod),
        "float_mean" | "float_mean_dim" => Fused::Reduction(reduce::Operation::Mean),
        "float_max_dim" => Fused::Reduction(reduce::Operation::Max),
        "float_min_dim" => Fused::Reduction(reduce::Operation::Min),
        _ => return None,
    };
    Some(fused)
}
