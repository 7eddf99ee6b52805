//! The operations that may be further from the exact result than their kind, on which driver, and why.

use super::Driver;

/// More than an operation's kind is allowed.
pub struct Entry {
    /// Its name, without what follows a comma.
    pub operation: &'static str,
    /// ULP on lavapipe and on SwiftShader; nothing where it needs no entry. Functions are this crate's: where nothing else is in
    /// an operation, SwiftShader's column is lavapipe's, and was not measured.
    ulps: [Option<f64>; 2],
    /// The reason.
    pub why: &'static str,
}

impl Entry {
    pub const fn new(operation: &'static str, ulps: [Option<f64>; 2], why: &'static str) -> Self {
        Self { operation, ulps, why }
    }

    /// Whether it is about `operation`, or about one kind of it among others.
    pub fn covers(&self, operation: &str) -> bool {
        let rest = operation.strip_prefix(self.operation);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
    }

    /// What it allows on `driver`.
    pub fn allowed(&self, driver: Driver) -> Option<f64> {
        let [lavapipe, swiftshader] = self.ulps;
        match driver {
            Driver::Lavapipe => lavapipe,
            Driver::SwiftShader => swiftshader,
            Driver::Other => lavapipe.into_iter().chain(swiftshader).reduce(f64::max),
        }
    }
}

const ROUNDINGS: &str = "several roundings one after the other";
const NEAR_ONE: &str = "where one element has nearly the whole share, the logarithm is that of a sum near one";
const FORMULA: &str = "Burn's formula is the derivative of the approximation by `tanh`, which is right to three digits";
const PLACES: &str = "the places between elements are rounded, and reflected ones again";
const SUMS: &str = "Burn composes it of differences of logarithms";
const LOGARITHMS: &str = "a probability is the exponential of a difference of sums of logarithms, each rounded";

/// Functions of one element or two.
pub const FUNCTIONS: &[Entry] = &[
    Entry::new("gelu", [Some(1.3), Some(1.3)], ROUNDINGS),
    Entry::new("gelu_approximate", [Some(2.0), Some(2.0)], ROUNDINGS),
    Entry::new("hard_swish", [Some(1.3), Some(1.3)], ROUNDINGS),
    Entry::new("hypot", [Some(2.7), Some(2.7)], ROUNDINGS),
    Entry::new("log_sigmoid", [Some(1.8), Some(1.8)], ROUNDINGS),
    Entry::new("mish", [Some(1.6), Some(1.6)], ROUNDINGS),
    Entry::new("sigmoid", [Some(2.4), Some(2.4)], ROUNDINGS),
    Entry::new("silu", [Some(2.0), Some(2.0)], ROUNDINGS),
    Entry::new("softsign", [Some(1.7), Some(1.7)], ROUNDINGS),
];

/// Reductions, scans and products of many shapes.
pub const REDUCTIONS: &[Entry] = &[
    Entry::new("log_softmax", [Some(18.0), Some(18.0)], NEAR_ONE),
    Entry::new("softmax", [Some(3.8), Some(3.8)], ROUNDINGS),
];

/// Functions and reductions in f16.
pub const F16: &[Entry] = &[Entry::new("log_softmax", [Some(1.6), None], ROUNDINGS)];

/// Functions and reductions in bf16, which no driver of the table has: measured on an H100 and on the CUDA emulator.
pub const BF16: &[Entry] =
    &[Entry::new("log_softmax", [Some(1.3), None], ROUNDINGS), Entry::new("softmax", [Some(1.3), None], ROUNDINGS)];

/// `grid_sample_2d` by every filter.
pub const GRIDS: &[Entry] = &[Entry::new("grid_sample_2d, Lanczos3", [Some(21.0), Some(21.0)], PLACES)];

/// Everything else, and all gradients.
pub const OPERATIONS: &[Entry] = &[
    Entry::new("gradient of attention", [Some(15.0), Some(15.0)], ROUNDINGS),
    Entry::new("gradient of ctc_loss", [Some(105.0), Some(105.0)], LOGARITHMS),
    Entry::new("gradient of deform_conv2d", [Some(21.0), Some(21.0)], PLACES),
    Entry::new("gradient of gelu", [Some(85000.0), Some(85000.0)], FORMULA),
    Entry::new("gradient of grid_sample_2d", [Some(58.0), Some(58.0)], PLACES),
    Entry::new("gradient of kldiv", [Some(30.0), Some(30.0)], SUMS),
];
