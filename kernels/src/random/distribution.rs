//! What the words of a draw become.

/// What the words become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// The words themselves, as u32.
    Bits,
    /// Uniform in `[low, high)`: f32, f16 or bf16.
    Uniform {
        /// The smallest value.
        low: f64,
        /// The bound no value reaches.
        high: f64,
    },
    /// Normal: f32, f16 or bf16.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation, zero or more.
        std: f64,
    },
    /// One with the given probability, else zero: any numeric type.
    Bernoulli {
        /// The probability of one, in `[0, 1]`.
        probability: f64,
    },
    /// Uniform in `[low, high)`: any integer type.
    Integers {
        /// The smallest value.
        low: i64,
        /// The bound no value reaches.
        high: i64,
    },
}

impl Distribution {
    /// The operation's name in an error.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bits => "random::bits",
            Self::Uniform { .. } => "random::uniform",
            Self::Normal { .. } => "random::normal",
            Self::Bernoulli { .. } => "random::bernoulli",
            Self::Integers { .. } => "random::integers",
        }
    }
}
