//! From words to values: a distribution's parameters, checked and rounded once, for the kernel and the reference.

use super::distribution::Distribution;
use crate::KernelError;
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use half::{bf16, f16};

/// Which transform a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Bits,
    Uniform,
    Normal,
    Bernoulli,
    Integers,
}

/// A distribution whose parameters are ready for the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Transform {
    Bits,
    Uniform(Uniform),
    Normal {
        mean: f32,
        std: f32,
    },
    Bernoulli {
        /// At most `2^32`.
        threshold: u64,
    },
    Integers {
        low: i64,
        /// `high - low`.
        range: u64,
        /// Words an element takes.
        words: u32,
    },
}

/// `clamp((f32(w >> 8) - bias) * scale * span + origin, min, max)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Uniform {
    pub bias: i32,
    pub scale: f32,
    pub span: f32,
    pub origin: f32,
    pub min: f32,
    pub max: f32,
}

impl Transform {
    pub fn new(distribution: Distribution, dtype: ElemType) -> Result<Self, KernelError> {
        let kernel = distribution.name();
        let refuse = |remedy| Err(KernelError::Dtype { kernel, dtype, remedy });
        let argument = |reason| Err(KernelError::Argument { kernel, reason });
        let is_float = Rounding::of(dtype).is_some();
        match distribution {
            Distribution::Bits if dtype != ElemType::UInt(UIntKind::U32) => refuse("bits are u32"),
            Distribution::Bits => Ok(Self::Bits),
            Distribution::Uniform { low, high } => match Rounding::of(dtype) {
                Some(rounding) => Uniform::new(low, high, rounding).map(Self::Uniform).or_else(argument),
                None => refuse("draw f32, f16 or bf16, and cast"),
            },
            Distribution::Normal { .. } if !is_float => refuse("draw f32, f16 or bf16, and cast"),
            Distribution::Normal { mean, std } => {
                let (mean, std) = (mean as f32, std as f32);
                match mean.is_finite() && std.is_finite() && std >= 0.0 {
                    true => Ok(Self::Normal { mean, std }),
                    false => argument(format!("mean {mean}, std {std}: want finite f32 values, std >= 0")),
                }
            }
            Distribution::Bernoulli { .. } if !is_float && integer_bounds(dtype).is_none() => {
                refuse("draw f32 or u32, and cast")
            }
            Distribution::Bernoulli { probability } => match (0.0..=1.0).contains(&probability) {
                // 2^32 p is exact, at most 2^32, and rounds to nearest, ties away.
                true => Ok(Self::Bernoulli { threshold: (probability * 2f64.powi(32)).round() as u64 }),
                false => argument(format!("probability {probability}: want 0 <= p <= 1")),
            },
            Distribution::Integers { low, high } => match integer_bounds(dtype) {
                None => refuse("draw an integer type, and cast"),
                Some((least, greatest)) => {
                    let fits = low < high && i128::from(low) >= least && i128::from(high) - 1 <= greatest;
                    let range = high.wrapping_sub(low) as u64;
                    match fits {
                        true => Ok(Self::Integers { low, range, words: words_of_range(range) }),
                        false => argument(format!("[{low}, {high}): want low < high within [{least}, {greatest}]")),
                    }
                }
            },
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Bits => Kind::Bits,
            Self::Uniform(_) => Kind::Uniform,
            Self::Normal { .. } => Kind::Normal,
            Self::Bernoulli { .. } => Kind::Bernoulli,
            Self::Integers { .. } => Kind::Integers,
        }
    }

    /// Words an element takes.
    pub fn words(self) -> u32 {
        match self {
            Self::Integers { words, .. } => words,
            Self::Bits | Self::Uniform(_) | Self::Normal { .. } | Self::Bernoulli { .. } => 1,
        }
    }
}

impl Uniform {
    fn new(low: f64, high: f64, rounding: Rounding) -> Result<Self, String> {
        let largest = f64::from(f32::MAX);
        if !(low <= high && low >= -largest && high <= largest) {
            return Err(format!("[{low}, {high}): want finite f32 values, low <= high"));
        }
        let (min, max) = match low == high {
            true => (rounding.nearest(low), rounding.nearest(low)),
            false => (rounding.at_least(low), rounding.below(high)),
        };
        if !(min <= max && min.is_finite() && max.is_finite()) {
            return Err(format!("[{low}, {high}) holds no finite {rounding:?} value"));
        }
        let span = (high - low) as f32;
        Ok(match span.is_finite() {
            true => Self { bias: 0, scale: 2f32.powi(-24), span, origin: low as f32, min, max },
            false => {
                let (span, origin) = ((high / 2.0 - low / 2.0) as f32, (high / 2.0 + low / 2.0) as f32);
                Self { bias: 1 << 23, scale: 2f32.powi(-23), span, origin, min, max }
            }
        })
    }
}

/// Words that a draw from `range` integers takes, so that none is more probable than another by more than 2^-16.
fn words_of_range(range: u64) -> u32 {
    match range {
        ..=0x1_0000 => 1,
        0x1_0001..=0x1_0000_0000 => 2,
        _ => 4,
    }
}

/// The least and the greatest value of an integer type.
fn integer_bounds(dtype: ElemType) -> Option<(i128, i128)> {
    Some(match dtype {
        ElemType::Int(IntKind::I8) => (i8::MIN.into(), i8::MAX.into()),
        ElemType::Int(IntKind::I16) => (i16::MIN.into(), i16::MAX.into()),
        ElemType::Int(IntKind::I32) => (i32::MIN.into(), i32::MAX.into()),
        ElemType::Int(IntKind::I64) => (i64::MIN.into(), i64::MAX.into()),
        ElemType::UInt(UIntKind::U8) => (0, u8::MAX.into()),
        ElemType::UInt(UIntKind::U16) => (0, u16::MAX.into()),
        ElemType::UInt(UIntKind::U32) => (0, u32::MAX.into()),
        ElemType::UInt(UIntKind::U64) => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// A float type that f32 contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    F32,
    F16,
    Bf16,
}

impl Rounding {
    pub fn of(dtype: ElemType) -> Option<Self> {
        match dtype {
            ElemType::Float(FloatKind::F32) => Some(Self::F32),
            ElemType::Float(FloatKind::F16) => Some(Self::F16),
            ElemType::Float(FloatKind::BF16) => Some(Self::Bf16),
            _ => None,
        }
    }

    /// The nearest value of the type, ties to even.
    pub fn nearest(self, value: f64) -> f32 {
        match self {
            Self::F32 => value as f32,
            Self::F16 => f16::from_f32(to_odd(value)).to_f32(),
            Self::Bf16 => bf16::from_f32(to_odd(value)).to_f32(),
        }
    }

    /// The smallest value of the type that is not below `bound`.
    fn at_least(self, bound: f64) -> f32 {
        let nearest = self.nearest(bound);
        if f64::from(nearest) >= bound { nearest } else { -self.next_down(-nearest) }
    }

    /// The largest value of the type below `bound`.
    fn below(self, bound: f64) -> f32 {
        let nearest = self.nearest(bound);
        if f64::from(nearest) < bound { nearest } else { self.next_down(nearest) }
    }

    /// The largest value of the type below one of its values.
    fn next_down(self, value: f32) -> f32 {
        match self {
            Self::F32 => value.next_down(),
            Self::F16 => f16::from_bits(next_down(f16::from_f32(value).to_bits())).to_f32(),
            Self::Bf16 => bf16::from_bits(next_down(bf16::from_f32(value).to_bits())).to_f32(),
        }
    }
}

/// The value rounded to f32, inexact results to the neighbour whose last bit is odd: rounding that to 16 bits gives what
/// rounding the value once gives. `half`'s `from_f64` instead drops the lower 32 bits of the mantissa before it rounds.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let wide = f64::from(nearest);
    if wide == value || nearest.is_nan() || nearest.to_bits() & 1 == 1 {
        nearest
    } else if wide < value {
        nearest.next_up()
    } else {
        nearest.next_down()
    }
}

/// [`f32::next_down`] for the bits of a 16-bit float: one step in sign and magnitude.
fn next_down(bits: u16) -> u16 {
    match bits {
        // The value below either zero is the smallest negative one.
        0 | 0x8000 => 0x8001,
        negative if negative & 0x8000 != 0 => negative + 1,
        positive => positive - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Rounding;

    #[test]
    fn sixteen_bits_are_rounded_once() {
        for (rounding, mantissa) in [(Rounding::F16, 10), (Rounding::Bf16, 7)] {
            let step = 2f64.powi(-mantissa);
            // A tie goes to the even neighbour; what lies above it by the last bit of an f32, or less, goes up.
            for (value, want) in [
                (1.0 + step / 2.0, 1.0),
                (1.0 + step / 2.0 + 2f64.powi(-23), 1.0 + step),
                (1.0 + step / 2.0 + 2f64.powi(-40), 1.0 + step),
                (1.0 + step / 2.0 - 2f64.powi(-40), 1.0),
                (1.0 + step * 1.5, 1.0 + step * 2.0),
                (1.0 + step * 1.5 - 2f64.powi(-40), 1.0 + step),
            ] {
                assert_eq!(f64::from(rounding.nearest(value)), want, "{rounding:?} of {value:e}");
                assert_eq!(f64::from(rounding.nearest(-value)), -want, "{rounding:?} of {:e}", -value);
            }
            assert_eq!(rounding.nearest(f64::MAX), f32::INFINITY);
            assert!(rounding.nearest(f64::NAN).is_nan());
        }
    }
}
