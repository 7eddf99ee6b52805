//! The questions, and the right answers as constants.

/// Largest distance of `a / b` and `sqrt(a)` from the nearest float, in ULP; Vulkan allows 2.5 to a division, and a
/// square root is a reciprocal one and a division.
pub const MAX_ULP: u32 = 5;

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    SquareRoot,
    MultiplyAdd,
    MultiplyRounded,
    RoundedThenAdded,
    Compare,
    /// `a` as an i32, cast to f32.
    FromInteger,
    Minimum,
    Maximum,
    Absolute,
    Negate,
    Floor,
    Ceiling,
    Truncate,
    Round,
    /// A cast of `a` from f32 to the half type.
    Narrow,
    /// A cast of `a` from the half type to f32.
    Widen,
}

/// Operations on f32, in the order of the kernel's answers; behind them it has the quotient and the root of [`corrected`].
///
/// [`corrected`]: crate::quotient
pub(super) const F32_OPERATIONS: [Operation; 18] = [
    Operation::Add,
    Operation::Subtract,
    Operation::Multiply,
    Operation::Divide,
    Operation::SquareRoot,
    Operation::MultiplyAdd,
    Operation::MultiplyRounded,
    Operation::RoundedThenAdded,
    Operation::Compare,
    Operation::FromInteger,
    Operation::Minimum,
    Operation::Maximum,
    Operation::Absolute,
    Operation::Negate,
    Operation::Floor,
    Operation::Ceiling,
    Operation::Truncate,
    Operation::Round,
];

impl Operation {
    /// Whether a kernel can correct its result.
    pub(super) fn divides(self) -> bool {
        matches!(self, Self::Divide | Self::SquareRoot)
    }

    pub(super) fn spelled(self) -> &'static str {
        match self {
            Self::Add => "a + b",
            Self::Subtract => "a - b",
            Self::Multiply => "a * b",
            Self::Divide => "a / b",
            Self::SquareRoot => "sqrt(a)",
            Self::MultiplyAdd => "fma(a, b, c)",
            Self::MultiplyRounded => "multiply_rounded(a, b)",
            Self::RoundedThenAdded => "multiply_rounded(a, b) + c",
            Self::Compare => "a < b, a <= b, a == b, a != b, a > b, a >= b, from the lowest bit on,",
            Self::FromInteger => "a cast of an i32 to f32",
            Self::Minimum => "min(a, b)",
            Self::Maximum => "max(a, b)",
            Self::Absolute => "abs(a)",
            Self::Negate => "-a",
            Self::Floor => "floor(a)",
            Self::Ceiling => "ceil(a)",
            Self::Truncate => "trunc(a)",
            Self::Round => "round(a), ties to even,",
            Self::Narrow => "a cast from f32",
            Self::Widen => "a cast to f32",
        }
    }

    /// The same of an operation that is corrected.
    pub(super) fn corrected(self) -> &'static str {
        match self {
            Self::Divide => "a / b, corrected,",
            Self::SquareRoot => "sqrt(a), corrected,",
            other => other.spelled(),
        }
    }
}

/// The right answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// These bits.
    Bits(u32),
    /// One of the two, by how often the device rounds.
    MultiplyAdd { fused: u32, unfused: u32 },
    /// These bits, or those of zeros where the device takes subnormal numbers for zero.
    Subnormal(u32),
    /// These bits, or another float at most so many ULP from them.
    Nearest { bits: u32, within: u32 },
    /// These bits, or any NaN for a NaN: required where bits are to be equal on every device. Of quotients and roots another
    /// answer says that they are not exact.
    Exact(u32),
    /// `a != b` is true or false, and no other comparison is true.
    Unordered,
}

/// Operands and answer as bits; operands that the operation does not have are 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub operation: Operation,
    pub operands: [u32; 3],
    pub expected: Expected,
}

impl Question {
    pub(super) fn spelled_operands(&self) -> String {
        let [a, b, c] = self.operands;
        match self.operation {
            Operation::SquareRoot
            | Operation::FromInteger
            | Operation::Absolute
            | Operation::Negate
            | Operation::Floor
            | Operation::Ceiling
            | Operation::Truncate
            | Operation::Round
            | Operation::Narrow
            | Operation::Widen => format!("a = {a:#010x}"),
            Operation::MultiplyAdd | Operation::RoundedThenAdded => {
                format!("a = {a:#010x}, b = {b:#010x}, c = {c:#010x}")
            }
            _ => format!("a = {a:#010x}, b = {b:#010x}"),
        }
    }
}

/// Whether two results are the same bits, or both NaN.
pub(super) fn alike(a: u32, b: u32) -> bool {
    a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()
}

/// The sign bit of an operation's result.
pub(super) fn sign(operation: Operation) -> u32 {
    match operation {
        Operation::Narrow => 1 << 15,
        _ => 1 << 31,
    }
}

const fn ask(operation: Operation, operands: [u32; 3], expected: Expected) -> Question {
    Question { operation, operands, expected }
}

const fn bits(operation: Operation, operands: [u32; 3], bits: u32) -> Question {
    ask(operation, operands, Expected::Bits(bits))
}

const fn nearest(operation: Operation, a: u32, b: u32, bits: u32) -> Question {
    ask(operation, [a, b, 0], Expected::Nearest { bits, within: MAX_ULP })
}

const fn exact(operation: Operation, a: u32, b: u32, bits: u32) -> Question {
    ask(operation, [a, b, 0], Expected::Exact(bits))
}

const fn subnormal(operation: Operation, operands: [u32; 3], bits: u32) -> Question {
    ask(operation, operands, Expected::Subnormal(bits))
}

const ONE: u32 = 0x3f80_0000;
const MINUS_ONE: u32 = 0xbf80_0000;
const TWO: u32 = 0x4000_0000;
const THREE: u32 = 0x4040_0000;
const MINUS_ZERO: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const MINUS_INFINITY: u32 = 0xff80_0000;
const LARGEST: u32 = 0x7f7f_ffff;
const NAN: u32 = 0x7fc0_0000;
/// 2^-126, the smallest normal number.
const SMALLEST: u32 = 0x0080_0000;
/// 1 + 2^-12, whose square lies half way between two floats.
const TIE: u32 = 0x3f80_0800;

/// Less, less or equal, equal, not equal, greater, greater or equal.
const LESS: u32 = 0b00_1011;
pub(super) const EQUAL: u32 = 0b10_0110;
const GREATER: u32 = 0b11_1000;
pub(super) const UNORDERED: u32 = 0b00_1000;

/// Questions on f32.
pub(super) const F32: &[Question] = &[
    // 1 + 2^-24, (1 + 2^-23) + 2^-24: ties, down and up; then a little above the first.
    bits(Operation::Add, [ONE, 0x3380_0000, 0], ONE),
    bits(Operation::Add, [0x3f80_0001, 0x3380_0000, 0], 0x3f80_0002),
    bits(Operation::Add, [ONE, 0x3380_0001, 0], 0x3f80_0001),
    bits(Operation::Add, [MINUS_ONE, 0xb380_0000, 0], MINUS_ONE),
    bits(Operation::Add, [0xbf80_0001, 0xb380_0000, 0], 0xbf80_0002),
    bits(Operation::Add, [LARGEST, LARGEST, 0], INFINITY),
    bits(Operation::Add, [MINUS_ZERO, MINUS_ZERO, 0], MINUS_ZERO),
    bits(Operation::Add, [MINUS_ZERO, 0, 0], 0),
    subnormal(Operation::Add, [0x0040_0000, 0x0000_0001, 0], 0x0040_0001),
    // 1 - 2^-25: a tie.
    bits(Operation::Subtract, [ONE, 0x3300_0000, 0], ONE),
    bits(Operation::Subtract, [ONE, 0x3300_0001, 0], 0x3f7f_ffff),
    bits(Operation::Subtract, [ONE, ONE, 0], 0),
    bits(Operation::Subtract, [MINUS_ZERO, 0, 0], MINUS_ZERO),
    // 1.5 * 2^-126 - 2^-126.
    subnormal(Operation::Subtract, [0x00c0_0000, SMALLEST, 0], 0x0040_0000),
    // Ties, down and up.
    bits(Operation::Multiply, [TIE, TIE, 0], 0x3f80_1000),
    bits(Operation::Multiply, [0x3fc0_0000, 0x3f80_0001, 0], 0x3fc0_0002),
    bits(Operation::Multiply, [MINUS_ZERO, ONE, 0], MINUS_ZERO),
    bits(Operation::Multiply, [MINUS_ONE, 0, 0], MINUS_ZERO),
    bits(Operation::Multiply, [MINUS_ONE, MINUS_ZERO, 0], 0),
    subnormal(Operation::Multiply, [SMALLEST, 0x3f00_0000, 0], 0x0040_0000),
    subnormal(Operation::Multiply, [0x0040_0000, TWO, 0], SMALLEST),
    nearest(Operation::Divide, ONE, THREE, 0x3eaa_aaab),
    nearest(Operation::Divide, TWO, THREE, 0x3f2a_aaab),
    nearest(Operation::Divide, ONE, 0x4120_0000, 0x3dcc_cccd),
    nearest(Operation::Divide, 0x40a0_0000, 0x40e0_0000, 0x3f36_db6e),
    nearest(Operation::Divide, LARGEST, 0x3f80_0001, 0x7f7f_fffd),
    nearest(Operation::SquareRoot, TWO, 0, 0x3fb5_04f3),
    nearest(Operation::SquareRoot, THREE, 0, 0x3fdd_b3d7),
    nearest(Operation::SquareRoot, 0x4080_0000, 0, TWO),
    nearest(Operation::SquareRoot, 0x3dcc_cccd, 0, 0x3ea1_e89b),
    // Quotients that a product with the rounded reciprocal misses, and roots that a rounded reciprocal root misses.
    nearest(Operation::Divide, 0x40a3_153e, 0x40c0_6056, 0x3f59_04c4),
    nearest(Operation::Divide, 0x3ecd_4d27, 0x3ffc_0247, 0x3e50_8d82),
    nearest(Operation::Divide, 0x401c_edcd, 0x40eb_6333, 0x3eaa_abc1),
    nearest(Operation::Divide, 0x40c6_4656, 0x3fc3_b4b7, 0x4081_ae1d),
    nearest(Operation::Divide, 0x3ff4_d718, 0x3ffa_c73b, 0x3f79_f036),
    nearest(Operation::Divide, 0x3ff0_3b0e, 0x40f1_74dc, 0x3e7e_b34b),
    nearest(Operation::Divide, 0x3fb6_00f9, 0x3f4d_3412, 0x3fe3_0eb9),
    nearest(Operation::Divide, 0x40c2_5978, 0x40d9_c756, 0x3f64_7579),
    nearest(Operation::Divide, 0x3ee0_d457, 0x40cb_b2df, 0x3d8d_4732),
    nearest(Operation::Divide, 0x4047_a7dd, 0x4098_25a4, 0x3f27_f7f9),
    nearest(Operation::SquareRoot, 0x4069_594b, 0, 0x3ff4_6982),
    nearest(Operation::SquareRoot, 0x405a_2ffb, 0, 0x3fec_56b5),
    nearest(Operation::SquareRoot, 0x403f_b3c7, 0, 0x3fdd_87d1),
    nearest(Operation::SquareRoot, 0x405d_44d4, 0, 0x3fee_0072),
    nearest(Operation::SquareRoot, 0x4061_bbc2, 0, 0x3ff0_640e),
    nearest(Operation::SquareRoot, 0x4049_42e9, 0, 0x3fe2_fc91),
    nearest(Operation::SquareRoot, 0x4067_ef0c, 0, 0x3ff3_ab82),
    nearest(Operation::SquareRoot, 0x4030_7a77, 0, 0x3fd4_8d61),
    nearest(Operation::SquareRoot, 0x406d_bda8, 0, 0x3ff6_b399),
    nearest(Operation::SquareRoot, 0x3f53_ab0c, 0, 0x3f68_c7f7),
    nearest(Operation::SquareRoot, 0x4032_83f5, 0, 0x3fd5_c686),
    nearest(Operation::SquareRoot, 0x4078_a276, 0, 0x3ffc_4a5a),
    // Subnormal results: half the smallest normal number, a third of it, ties, down to 0 and up.
    exact(Operation::Divide, SMALLEST, TWO, 0x0040_0000),
    exact(Operation::Divide, SMALLEST, THREE, 0x002a_aaab),
    exact(Operation::Divide, 0x0000_0001, TWO, 0),
    exact(Operation::Divide, 0x8000_0003, TWO, 0x8000_0002),
    // Subnormal operands.
    exact(Operation::Divide, 0x0000_0001, 0x0000_0003, 0x3eaa_aaab),
    exact(Operation::Divide, 0x0000_0001, SMALLEST, 0x3400_0000),
    exact(Operation::Divide, 0x007f_ffff, 0x0000_0001, 0x4aff_fffe),
    // Divisors whose reciprocals are subnormal, quotients beyond the range.
    exact(Operation::Divide, LARGEST, 0x7f00_0001, 0x3fff_fffd),
    exact(Operation::Divide, ONE, LARGEST, 0x0020_0000),
    exact(Operation::Divide, LARGEST, 0x3f7f_ffff, INFINITY),
    exact(Operation::Divide, LARGEST, 0x8080_0000, MINUS_INFINITY),
    exact(Operation::Divide, ONE, 0, INFINITY),
    exact(Operation::Divide, ONE, MINUS_ZERO, MINUS_INFINITY),
    exact(Operation::Divide, MINUS_ZERO, ONE, MINUS_ZERO),
    exact(Operation::Divide, MINUS_ONE, INFINITY, MINUS_ZERO),
    exact(Operation::Divide, INFINITY, MINUS_ONE, MINUS_INFINITY),
    exact(Operation::Divide, 0, 0, NAN),
    exact(Operation::Divide, INFINITY, INFINITY, NAN),
    exact(Operation::Divide, NAN, ONE, NAN),
    exact(Operation::SquareRoot, 0x0000_0001, 0, 0x1a35_04f3),
    exact(Operation::SquareRoot, 0x007f_ffff, 0, 0x1fff_ffff),
    exact(Operation::SquareRoot, LARGEST, 0, 0x5f7f_ffff),
    exact(Operation::SquareRoot, MINUS_ZERO, 0, MINUS_ZERO),
    exact(Operation::SquareRoot, INFINITY, 0, INFINITY),
    exact(Operation::SquareRoot, MINUS_ONE, 0, NAN),
    exact(Operation::SquareRoot, NAN, 0, NAN),
    bits(Operation::MultiplyAdd, [TWO, THREE, 0x4080_0000], 0x4120_0000),
    bits(Operation::MultiplyAdd, [MINUS_ZERO, ONE, MINUS_ZERO], MINUS_ZERO),
    bits(Operation::MultiplyAdd, [ONE, MINUS_ZERO, 0], 0),
    ask(
        Operation::MultiplyAdd,
        [TIE, TIE, MINUS_ONE],
        Expected::MultiplyAdd { fused: 0x3a00_0400, unfused: 0x3a00_0000 },
    ),
    // (1 + 2^-23) (1 - 2^-23) - 1.
    ask(
        Operation::MultiplyAdd,
        [0x3f80_0001, 0x3f7f_fffe, MINUS_ONE],
        Expected::MultiplyAdd { fused: 0xa880_0000, unfused: 0 },
    ),
    subnormal(Operation::MultiplyAdd, [0x0040_0000, ONE, 0x0000_0001], 0x0040_0001),
    bits(Operation::MultiplyRounded, [TIE, TIE, 0], 0x3f80_1000),
    bits(Operation::MultiplyRounded, [0x3fc0_0000, 0x3f80_0001, 0], 0x3fc0_0002),
    // A constant -0 that a compiler takes for 0 gives 0 here.
    bits(Operation::MultiplyRounded, [MINUS_ZERO, ONE, 0], MINUS_ZERO),
    bits(Operation::MultiplyRounded, [MINUS_ONE, 0, 0], MINUS_ZERO),
    bits(Operation::MultiplyRounded, [ONE, 0, 0], 0),
    // 0x3a000400, where the product is contracted with the sum.
    bits(Operation::RoundedThenAdded, [TIE, TIE, MINUS_ONE], 0x3a00_0000),
    bits(Operation::RoundedThenAdded, [0x3f80_0001, 0x3f7f_fffe, MINUS_ONE], 0),
    bits(Operation::Compare, [ONE, TWO, 0], LESS),
    bits(Operation::Compare, [TWO, ONE, 0], GREATER),
    bits(Operation::Compare, [ONE, ONE, 0], EQUAL),
    bits(Operation::Compare, [MINUS_ZERO, 0, 0], EQUAL),
    subnormal(Operation::Compare, [0x0000_0001, 0x0000_0002, 0], LESS),
    subnormal(Operation::Compare, [0x8000_0001, 0, 0], LESS),
    subnormal(Operation::Compare, [0x007f_ffff, 0x8000_0001, 0], GREATER),
    bits(Operation::Compare, [INFINITY, LARGEST, 0], GREATER),
    bits(Operation::Compare, [MINUS_INFINITY, INFINITY, 0], LESS),
    ask(Operation::Compare, [NAN, NAN, 0], Expected::Unordered),
    ask(Operation::Compare, [ONE, NAN, 0], Expected::Unordered),
    ask(Operation::Compare, [NAN, INFINITY, 0], Expected::Unordered),
    // 2^24 + 1 and 2^24 + 3, ties; their negative; 2^25 + 5 and 2^25 + 7; 2^31 - 1.
    nearest(Operation::FromInteger, 0x0100_0001, 0, 0x4b80_0000),
    nearest(Operation::FromInteger, 0x0100_0003, 0, 0x4b80_0002),
    nearest(Operation::FromInteger, 0xfeff_ffff, 0, 0xcb80_0000),
    nearest(Operation::FromInteger, 0x0200_0005, 0, 0x4c00_0001),
    nearest(Operation::FromInteger, 0x0200_0007, 0, 0x4c00_0002),
    nearest(Operation::FromInteger, 0x7fff_ffff, 0, 0x4f00_0000),
    // What looks at bits, changes one or returns an operand may keep subnormal numbers where sums do not.
    exact(Operation::Minimum, 0x8000_0001, 0, 0x8000_0001),
    exact(Operation::Minimum, 0, 0x8000_0001, 0x8000_0001),
    exact(Operation::Maximum, 0x0000_0001, 0, 0x0000_0001),
    exact(Operation::Maximum, 0, 0x0000_0001, 0x0000_0001),
    bits(Operation::Absolute, [MINUS_ZERO, 0, 0], 0),
    exact(Operation::Absolute, 0x8000_0001, 0, 0x0000_0001),
    bits(Operation::Negate, [0, 0, 0], MINUS_ZERO),
    exact(Operation::Negate, 0x0000_0001, 0, 0x8000_0001),
    bits(Operation::Floor, [0x3fc0_0000, 0, 0], ONE),
    exact(Operation::Floor, 0x8000_0001, 0, MINUS_ONE),
    bits(Operation::Ceiling, [0x3f80_0001, 0, 0], TWO),
    exact(Operation::Ceiling, 0x0000_0001, 0, ONE),
    // -0.5, 0.5, 1.5 and 2.5: signed zeros, and ties.
    exact(Operation::Ceiling, 0xbf00_0000, 0, MINUS_ZERO),
    exact(Operation::Truncate, 0xbf00_0000, 0, MINUS_ZERO),
    exact(Operation::Round, 0xbf00_0000, 0, MINUS_ZERO),
    bits(Operation::Round, [0x3fc0_0000, 0, 0], TWO),
    bits(Operation::Round, [0x4020_0000, 0, 0], TWO),
];

const fn narrow(a: u32, exact: u32) -> Question {
    bits(Operation::Narrow, [a, 0, 0], exact)
}

const fn narrow_rounded(a: u32, bits: u32) -> Question {
    ask(Operation::Narrow, [a, 0, 0], Expected::Nearest { bits, within: 1 })
}

const fn widen(a: u32, exact: u32) -> Question {
    bits(Operation::Widen, [a, 0, 0], exact)
}

/// Questions on f16.
pub(super) const F16: &[Question] = &[
    // 65504, the largest.
    narrow(0x477f_e000, 0x7bff),
    narrow(MINUS_ZERO, 0x8000),
    narrow(MINUS_ONE, 0xbc00),
    narrow(INFINITY, 0x7c00),
    // 1 + 2^-11, 1 + 3 * 2^-11: ties; then a little above the first, and a little below what rounds to infinity.
    narrow_rounded(0x3f80_1000, 0x3c00),
    narrow_rounded(0x3f80_3000, 0x3c02),
    narrow_rounded(0x3f80_1008, 0x3c01),
    narrow_rounded(0x477f_efff, 0x7bff),
    narrow_rounded(0x477f_f000, 0x7c00),
    subnormal(Operation::Narrow, [0x3380_0000, 0, 0], 0x0001),
    widen(0x3c01, 0x3f80_2000),
    widen(0xc000, 0xc000_0000),
    widen(0x8000, MINUS_ZERO),
    widen(0x7c00, INFINITY),
    subnormal(Operation::Widen, [0x0001, 0, 0], 0x3380_0000),
];

/// Questions on bf16.
pub(super) const BF16: &[Question] = &[
    narrow(0x3f81_0000, 0x3f81),
    narrow(MINUS_ZERO, 0x8000),
    narrow(MINUS_ONE, 0xbf80),
    narrow(INFINITY, 0x7f80),
    // 1 + 2^-8, 1 + 3 * 2^-8: ties; then a little above the first.
    narrow_rounded(0x3f80_8000, 0x3f80),
    narrow_rounded(0x3f81_8000, 0x3f82),
    narrow_rounded(0x3f80_8008, 0x3f81),
    subnormal(Operation::Narrow, [0x0001_0000, 0, 0], 0x0001),
    widen(0x3f81, 0x3f81_0000),
    widen(0xc000, 0xc000_0000),
    widen(0x8000, MINUS_ZERO),
    widen(0x7f80, INFINITY),
    subnormal(Operation::Widen, [0x0001, 0, 0], 0x0001_0000),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::MultiplyAdd;
    use half::{bf16, f16};

    fn compared(a: f32, b: f32) -> u32 {
        [a < b, a <= b, a == b, a != b, a > b, a >= b]
            .into_iter()
            .enumerate()
            .fold(0, |word, (bit, is)| word | u32::from(is) << bit)
    }

    /// What the host computes, which rounds as IEEE 754 says.
    fn on_the_host(question: &Question, fma: MultiplyAdd) -> u32 {
        let [a, b, c] = question.operands.map(f32::from_bits);
        let result = match question.operation {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            Operation::Multiply | Operation::MultiplyRounded => a * b,
            Operation::Divide => a / b,
            Operation::SquareRoot => a.sqrt(),
            Operation::MultiplyAdd => fma.apply(a, b, c),
            Operation::RoundedThenAdded => a * b + c,
            Operation::Compare => return compared(a, b),
            Operation::FromInteger => question.operands[0].cast_signed() as f32,
            Operation::Minimum => a.min(b),
            Operation::Maximum => a.max(b),
            Operation::Absolute => a.abs(),
            Operation::Negate => -a,
            Operation::Floor => a.floor(),
            Operation::Ceiling => a.ceil(),
            Operation::Truncate => a.trunc(),
            Operation::Round => a.round_ties_even(),
            Operation::Narrow | Operation::Widen => unreachable!("a question on halves"),
        };
        result.to_bits()
    }

    #[test]
    fn the_constants_are_ieee_754s() {
        for question in F32 {
            for fma in [MultiplyAdd::Fused, MultiplyAdd::Unfused] {
                let expected = match (question.expected, fma) {
                    (Expected::MultiplyAdd { fused, .. }, MultiplyAdd::Fused) => fused,
                    (Expected::MultiplyAdd { unfused, .. }, MultiplyAdd::Unfused) => unfused,
                    (Expected::Bits(bits) | Expected::Subnormal(bits), _)
                    | (Expected::Nearest { bits, .. } | Expected::Exact(bits), _) => bits,
                    (Expected::Unordered, _) => UNORDERED,
                };
                let host = on_the_host(question, fma);
                assert!(alike(host, expected), "{question:x?}: {host:#010x}");
            }
        }
    }

    #[test]
    fn the_constants_of_halves_are_ieee_754s() {
        type Cast = fn(u32) -> u32;
        let f16_casts: (Cast, Cast) =
            (|a| f16::from_f32(f32::from_bits(a)).to_bits().into(), |a| f16::from_bits(a as u16).to_f32().to_bits());
        let bf16_casts: (Cast, Cast) =
            (|a| bf16::from_f32(f32::from_bits(a)).to_bits().into(), |a| bf16::from_bits(a as u16).to_f32().to_bits());
        for (questions, (narrow, widen)) in [(F16, f16_casts), (BF16, bf16_casts)] {
            for question in questions {
                let (Expected::Bits(expected)
                | Expected::Subnormal(expected)
                | Expected::Nearest { bits: expected, .. }) = question.expected
                else {
                    unreachable!("a cast adds nothing")
                };
                let cast = if question.operation == Operation::Narrow { narrow } else { widen };
                let host = cast(question.operands[0]);
                assert_eq!(host, expected, "{question:x?}: {host:#06x}");
            }
        }
    }

    #[test]
    fn every_operation_is_asked_for() {
        for operation in F32_OPERATIONS {
            assert!(F32.iter().any(|question| question.operation == operation), "{operation:?}");
        }
    }
}
