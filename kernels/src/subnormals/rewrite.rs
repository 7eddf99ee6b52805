//! The rewriting of a kernel's f32 operations by those of [`arithmetic`](super::arithmetic).

use super::arithmetic::*;
use crate::quotient::{corrected_quotient, corrected_root};
use cubecl::ir::dialect::cmp::*;
use cubecl::ir::dialect::general::{CastOp, CopyOp, ReinterpretCastOp};
use cubecl::ir::dialect::math::*;
use cubecl::ir::dialect::vector::{CompositeConstructOp, CompositeExtractOp};
use cubecl::ir::interfaces::TypedExt;
use cubecl::ir::pliron::builtin::attributes::IntegerAttr;
use cubecl::ir::pliron::builtin::ops::ConstantOp;
use cubecl::ir::pliron::graph::walkers::uninterruptible::immutable::walk_op;
use cubecl::ir::prelude::*;
use cubecl::ir::{OpInserter, Scope};
use cubecl::prelude::*;

/// An f32 of a kernel.
type Float = NativeExpand<f32>;

/// What stands for an operation on scalars.
enum Replacement {
    Unary(fn(&Scope, Float) -> Float),
    /// The operation itself, of another operand.
    Between(fn(&Scope, Value) -> Value),
    Binary(fn(&Scope, Float, Float) -> Float),
    Ternary(fn(&Scope, Float, Float, Float) -> Float),
    /// The product of the first two of three operands.
    Product,
    Comparison(fn(&Scope, Float, Float) -> NativeExpand<bool>),
    IsNotZero,
}

/// Replaces the [`affected`] operations of a kernel. One that has no replacement is an error of the kernel.
pub(super) fn rewrite(scope: &Scope, affected: Vec<Ptr<Operation>>) {
    for operation in affected {
        match replacement(scope.ctx(), operation) {
            Some(replacement) => replace(scope, operation, &replacement),
            None => {
                let name = Operation::get_opid(operation, scope.ctx());
                scope.push_error(format!("`{name}` of f32 has no form that keeps subnormal numbers"));
            }
        }
    }
}

/// The operations of a kernel, in its order, to which a device that takes subnormal numbers for zero may give another result:
/// those on f32 that compute.
pub(super) fn affected(scope: &Scope) -> Vec<Ptr<Operation>> {
    let mut found = Vec::new();
    let entry = scope.state().entry_func.get_operation();
    walk_op(scope.ctx(), &mut found, &WALKCONFIG_PREORDER_FORWARD, entry, |context, found, node| {
        if let IRNode::Operation(operation) = node
            && computes(context, operation)
        {
            found.push(operation);
        }
    });
    found
}

/// Dialects whose operations move values, and do not look at them, but for `cube.asm`.
const MOVING: [&str; 12] = [
    "barrier",
    "branch",
    "builtin",
    "cf",
    "composite",
    "cube",
    "memory",
    "scf",
    "spirv",
    "sync",
    "tma",
    "matrix_spirv",
];

/// Whether an operation computes with f32 numbers: it does not only move them, and not only look at their bits.
fn computes(context: &Context, operation: Ptr<Operation>) -> bool {
    let is_f32 = |value: &Value| value.try_get_scalar_ty(context).is_some_and(|scalar| scalar.is_float32(context));
    if !operation.operands(context).iter().any(is_f32) {
        return false;
    }
    if operation.is_op::<CastOp>(context) {
        // Of a subnormal number, an integer is 0, and an f16 a zero with its sign. A device whose casts take one for zero is
        // refused, for a bf16 is not 0.
        return operation.result(context).scalar_ty(context).is_bool(context);
    }
    !moves(context, operation) && !operation.is_op::<IsNanOp>(context) && !operation.is_op::<IsInfOp>(context)
}

fn moves(context: &Context, operation: Ptr<Operation>) -> bool {
    let id = Operation::get_opid(operation, context);
    let name = id.to_string();
    let moving = ["vector.broadcast", "vector.insert_dynamic", "vector.extract_dynamic", "plane.broadcast"];
    let is_moving = MOVING.contains(&&*id.dialect.to_string()) && name != "cube.asm";
    is_moving || moving.contains(&&*name) || name.starts_with("plane.shuffle")
}

fn replacement(context: &Context, operation: Ptr<Operation>) -> Option<Replacement> {
    use Replacement::*;
    macro_rules! of {
        ($($operation:ty => $replacement:expr,)*) => {
            $(if operation.is_op::<$operation>(context) { return Some($replacement); })*
        };
    }
    macro_rules! between {
        ($operation:ident) => {
            Between(|scope, input| {
                let operation = $operation::new(scope.ctx_mut(), input);
                scope.register_with_result(&operation)
            })
        };
    }
    of! {
        FAddOp => Binary(added::expand),
        FSubOp => Binary(subtracted::expand),
        FMulOp => Binary(multiplied::expand),
        FmaOp => match is_negative_zero(context, operation.operand(context, 2)) {
            true => Product,
            false => Ternary(multiplied_and_added::expand),
        },
        FDivOp => Binary(|scope, a, b| corrected_quotient::expand(scope, a, b, 0)),
        SqrtOp => Unary(|scope, a| corrected_root::expand(scope, a, 0)),
        FNegOp => Unary(negated::expand),
        FAbsOp => Unary(magnitude::expand),
        FMinOp => Binary(smaller::expand),
        FMaxOp => Binary(larger::expand),
        FLessThanOp => Comparison(less::expand),
        FLessThanOrEqualOp => Comparison(less_or_equal::expand),
        FGreaterThanOp => Comparison(greater::expand),
        FGreaterThanOrEqualOp => Comparison(greater_or_equal::expand),
        FEqualOp => Comparison(equal::expand),
        FNotEqualOp => Comparison(not_equal::expand),
        FloorOp => between!(FloorOp),
        CeilOp => between!(CeilOp),
        TruncOp => between!(TruncOp),
        RoundOp => between!(RoundOp),
        CastOp => IsNotZero,
    }
    None
}

/// Whether a value is the -0.0 of [`negative_zero`](crate::arithmetic::negative_zero): a product plus it is the product.
fn is_negative_zero(context: &Context, value: Value) -> bool {
    let Some(operation) = value.defining_op() else { return false };
    let is_cast =
        operation.is_op::<CastOp>(context) && operation.operand(context, 0).scalar_ty(context).is_float32(context);
    if is_cast || operation.is_op::<ReinterpretCastOp>(context) || operation.is_op::<CopyOp>(context) {
        return is_negative_zero(context, operation.operand(context, 0));
    }
    let Some(constant) = operation.as_op::<ConstantOp>(context) else { return false };
    let value = constant.get_attr_builtin_constant_value(context).map(|value| value.clone());
    let integer = value.and_then(|value| value.downcast_ref::<IntegerAttr>().map(|integer| integer.value().to_u64()));
    integer == Some(1 << 31)
}

/// Puts the replacement before the operation, which nothing uses then.
fn replace(scope: &Scope, operation: Ptr<Operation>, replacement: &Replacement) {
    let context = scope.ctx_mut();
    let (operands, result) = (operation.operands(context), operation.result(context));
    let mut inserter = OpInserter::new_before_operation(operation);
    let here = Scope::from_context_and_inserter(context, &mut inserter);
    let lanes = result.vector_size(here.ctx());
    let of_lane = |lane: usize| {
        let operand = |index: usize| match lanes {
            1 => operands[index],
            _ => here.register_with_result(&CompositeExtractOp::new(here.ctx_mut(), operands[index], lane)),
        };
        let float = |index: usize| NativeExpand::<f32>::from(operand(index));
        match replacement {
            Replacement::Unary(of) => of(&here, float(0)).read_value(&here),
            Replacement::Between(of) => {
                let between = between_integers::expand(&here, float(0)).read_value(&here);
                of(&here, between)
            }
            Replacement::Binary(of) => of(&here, float(0), float(1)).read_value(&here),
            Replacement::Ternary(of) => of(&here, float(0), float(1), float(2)).read_value(&here),
            Replacement::Product => multiplied::expand(&here, float(0), float(1)).read_value(&here),
            Replacement::Comparison(of) => of(&here, float(0), float(1)).read_value(&here),
            Replacement::IsNotZero => is_not_zero::expand(&here, float(0)).read_value(&here),
        }
    };
    let mut values: Vec<Value> = (0..lanes).map(of_lane).collect();
    let value = match lanes {
        1 => values.remove(0),
        _ => {
            let vector = CompositeConstructOp::new(here.ctx_mut(), result.get_type(here.ctx()), values);
            here.register_with_result(&vector)
        }
    };
    result.replace_all_uses_with(here.ctx(), &value);
}
