//! Functions of two integers, for every operand: of a division by zero, of the least integer by -1, and of a shift by as
//! many bits as the type has, each language and device makes something else.

use super::program::IntBinary;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

/// A function of integers of `bits` bits, held in registers of `U`, which is unsigned, and read as `I`, which has as many
/// bits and a sign where they have one. Results wrap: sums and products are unsigned, because a signed one that does not
/// fit is undefined in C.
#[cube]
pub(super) fn binary<I: Int, U: Int>(a: U, b: U, #[comptime] function: IntBinary, #[comptime] bits: u32) -> U {
    match function {
        IntBinary::Add => a + b,
        IntBinary::Subtract => a - b,
        IntBinary::Multiply => a * b,
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        IntBinary::Divide => divide::<I, U>(a, b),
        IntBinary::Remainder => remainder::<I, U>(a, b),
        IntBinary::ShiftLeft => {
            let inside = b < U::from_int(comptime!(bits as i64));
            select(inside, a << select(inside, b, U::from_int(0)), U::from_int(0))
        }
        IntBinary::ShiftRight => {
            let last = U::from_int(comptime!(bits as i64 - 1));
            let shifted = U::reinterpret(I::reinterpret(a) >> I::reinterpret(select(b < last, b, last)));
            let elem = elem_type_of::<I>();
            if comptime!(is_signed(elem)) { shifted } else { select(b > last, U::from_int(0), shifted) }
        }
        IntBinary::Power => power::<I, U>(a, b),
    }
}

fn is_signed(elem: ElemType) -> bool {
    matches!(elem, ElemType::Int(_))
}

/// Whether an integer has a sign and is negative.
#[cube]
fn is_negative<I: Int, U: Int>(x: U) -> bool {
    I::reinterpret(x) < I::from_int(0)
}

/// Whether an integer has a sign and is -1.
#[cube]
fn is_minus_one<I: Int, U: Int>(x: U) -> bool {
    is_negative::<I, U>(x) && x + U::from_int(1) == U::from_int(0)
}

/// `b`, or 1 where a division by it is not defined: by 0, and of the least integer by -1.
#[cube]
fn divisor<I: Int, U: Int>(b: U) -> I {
    let undefined = b == U::from_int(0) || is_minus_one::<I, U>(b);
    I::reinterpret(select(undefined, U::from_int(1), b))
}

#[cube]
fn divide<I: Int, U: Int>(a: U, b: U) -> U {
    let zero = U::from_int(0);
    let quotient = U::reinterpret(I::reinterpret(a) / divisor::<I, U>(b));
    select(b == zero, zero, select(is_minus_one::<I, U>(b), zero - a, quotient))
}

#[cube]
fn remainder<I: Int, U: Int>(a: U, b: U) -> U {
    // What is left of a division by 1 is 0, as of one by 0 and by -1.
    let rest = U::reinterpret(I::reinterpret(a) % divisor::<I, U>(b));
    let down = rest != U::from_int(0) && is_negative::<I, U>(rest ^ b);
    select(down, rest + b, rest)
}

#[allow(clippy::assign_op_pattern, reason = "in kernels a shift has no assignment")]
#[cube]
fn power<I: Int, U: Int>(a: U, b: U) -> U {
    let zero = U::from_int(0);
    let one = U::from_int(1);
    let inverse = is_negative::<I, U>(b);
    let mut rest = select(inverse, zero, b);
    let mut factor = a;
    let mut product = one;
    while rest != zero {
        product = select(rest & one == one, product * factor, product);
        factor = factor * factor;
        rest = rest >> one;
    }
    // 1 divided by a power of 1 and of -1 is that power, of 0 is 0 by the rule above, and of all else is cut to 0.
    let alternating = is_minus_one::<I, U>(a);
    let of_units = select(alternating && b & one == zero, one, a);
    select(inverse, select(a == one || alternating, of_units, zero), product)
}
