//! The operations that may be further from the exact result than their kind, on which driver, and why.

use super::Driver;

/// More than an operation's kind is allowed.
pub struct Entry {
    /// Its name, without what follows a comma.
    pub operation: &'static str,
    /// ULP on lavapipe and on SwiftShader; nothing where it needs no entry.
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

const POWERS: &str = "the drivers' powers and logarithms: WGSL allows an exponential 3 ULP and more";
const ARCS: &str = "WGSL allows an arctangent 4096 ULP, and what is made of it as many";
const SINES: &str = "WGSL allows a sine or cosine an error of 2^-11, whatever its size";
const TANH: &str =
    "near zero a difference from one; WGSL lets it be a quotient of powers, which is NaN where they overflow";
const ERF: &str = "Burn's polynomial, which is right to 1.5e-7 whatever the size of the result";
const ROUNDINGS: &str = "several roundings one after the other";
const NEGATIVE: &str =
    "`log(x + sqrt(x * x + 1))`, of which a large negative `x` leaves nothing, and one near zero few digits";
const MULTIPLE: &str = "next to a multiple of the divisor a rounding leads to the other end of the range";
const NEAR_ONE: &str = "where one element has nearly the whole share, the logarithm is that of a sum near one";
const FORMULA: &str = "Burn's formula is the derivative of the approximation by `tanh`, which is right to three digits";
const PLACES: &str = "the places between elements are rounded, and reflected ones again";
const SUMS: &str = "Burn composes it of differences of logarithms";

/// Functions of one element or two.
pub const FUNCTIONS: &[Entry] = &[
    Entry::new("acos", [Some(1600.0), Some(1500.0)], ARCS),
    Entry::new("acosh", [Some(2.2), Some(2.6)], POWERS),
    Entry::new("asin", [Some(4200.0), None], ARCS),
    Entry::new("asinh", [Some(2.5), Some(9.6e7)], NEGATIVE),
    Entry::new("atan", [Some(400.0), Some(2.2)], ARCS),
    Entry::new("atan2", [Some(200.0), Some(2.3)], ARCS),
    Entry::new("atanh", [None, Some(1.2)], ROUNDINGS),
    Entry::new("celu", [Some(1.8), Some(1.8)], POWERS),
    Entry::new("cos", [None, Some(1900.0)], SINES),
    Entry::new("cos beyond pi", [None, Some(1900.0)], SINES),
    Entry::new("cosh", [Some(3.6), Some(3.2)], POWERS),
    Entry::new("elu", [Some(1.7), Some(1.6)], POWERS),
    Entry::new("erf", [Some(4.7), Some(5.2)], ERF),
    Entry::new("exp", [Some(4.0), Some(4.0)], POWERS),
    Entry::new("gelu", [Some(4.5), Some(4.4)], ERF),
    Entry::new("gelu_approximate", [Some(2.0), Some(f64::INFINITY)], TANH),
    Entry::new("hard_swish", [Some(1.3), Some(1.3)], ROUNDINGS),
    Entry::new("hypot", [Some(2.7), Some(2.7)], ROUNDINGS),
    Entry::new("log", [Some(2.5), Some(2.4)], POWERS),
    Entry::new("log1p", [Some(2.0), Some(2.1)], POWERS),
    Entry::new("log_sigmoid", [Some(1.8), Some(2.1)], POWERS),
    Entry::new("mish", [Some(3.1), Some(f64::INFINITY)], TANH),
    Entry::new("powf", [Some(3.7), Some(3.3)], POWERS),
    Entry::new("powf_scalar", [Some(3.6), Some(3.7)], POWERS),
    Entry::new("powf_scalar of -1.5", [Some(3.4), Some(3.7)], POWERS),
    Entry::new("powf_scalar of 0.5", [Some(3.8), Some(4.2)], POWERS),
    Entry::new("powi_scalar of 3", [Some(2.5), Some(3.5)], POWERS),
    Entry::new("powi_scalar of 7", [Some(2.3), Some(2.8)], POWERS),
    Entry::new("remainder", [Some(19.0), Some(19.0)], MULTIPLE),
    Entry::new("sigmoid", [Some(6.2), Some(5.6)], POWERS),
    Entry::new("silu", [Some(3.8), Some(3.6)], POWERS),
    Entry::new("sin", [None, Some(1900.0)], SINES),
    Entry::new("sin beyond pi", [None, Some(1900.0)], SINES),
    Entry::new("sinh", [Some(3.0), Some(3.0)], POWERS),
    Entry::new("softplus", [Some(3.0), Some(3.0)], POWERS),
    Entry::new("softsign", [Some(1.7), Some(1.7)], ROUNDINGS),
    Entry::new("tan", [Some(1.9), Some(270.0)], SINES),
    Entry::new("tanh", [Some(1.4), Some(f64::INFINITY)], TANH),
    Entry::new("tanhshrink", [Some(1.4), Some(f64::INFINITY)], TANH),
];

/// Reductions, scans and products of many shapes.
pub const REDUCTIONS: &[Entry] = &[
    Entry::new("log_softmax", [Some(18.0), Some(18.0)], NEAR_ONE),
    Entry::new("softmax", [Some(3.8), Some(3.8)], POWERS),
];

/// Functions and reductions in f16.
pub const F16: &[Entry] = &[
    Entry::new("acosh", [Some(2.1), None], ROUNDINGS),
    Entry::new("atan", [Some(2.9), None], ARCS),
    Entry::new("erf", [Some(3.4), None], ERF),
    Entry::new("gelu", [Some(4.1), None], ERF),
    Entry::new("log_softmax", [Some(1.6), None], ROUNDINGS),
    Entry::new("mish", [Some(2.2), None], ROUNDINGS),
    Entry::new("softmax", [Some(1.5), None], ROUNDINGS),
];

/// Functions and reductions in bf16, which no driver of the table has: measured on an H100 and on the CUDA emulator.
pub const BF16: &[Entry] =
    &[Entry::new("log_softmax", [Some(1.3), None], ROUNDINGS), Entry::new("softmax", [Some(1.3), None], ROUNDINGS)];

/// `grid_sample_2d` by every filter.
pub const GRIDS: &[Entry] = &[Entry::new("grid_sample_2d, Lanczos3", [Some(21.0), Some(21.0)], PLACES)];

/// Everything else, and all gradients.
pub const OPERATIONS: &[Entry] = &[
    Entry::new("acos", [Some(1600.0), Some(690.0)], ARCS),
    Entry::new("asin", [Some(4200.0), None], ARCS),
    Entry::new("asinh", [Some(13.0), Some(12.0)], NEGATIVE),
    Entry::new("atan", [Some(290.0), None], ARCS),
    Entry::new("atan2", [Some(52.0), None], ARCS),
    Entry::new("gradient of attention", [Some(15.0), Some(11.0)], POWERS),
    Entry::new("cos", [None, Some(3700.0)], SINES),
    Entry::new("gradient of cos", [None, Some(3300.0)], SINES),
    Entry::new("gradient of ctc_loss", [Some(150.0), Some(98.0)], SUMS),
    Entry::new("gradient of deform_conv2d", [Some(21.0), Some(21.0)], PLACES),
    Entry::new("erf", [Some(230.0), Some(230.0)], ERF),
    Entry::new("gelu", [None, Some(11.0)], ERF),
    Entry::new("gradient of gelu", [Some(85000.0), Some(85000.0)], FORMULA),
    Entry::new("gradient of gelu_approximate", [Some(16.0), Some(16.0)], TANH),
    Entry::new("gradient of grid_sample_2d", [Some(58.0), Some(58.0)], PLACES),
    Entry::new("interpolate, Bicubic", [Some(51.0), Some(51.0)], PLACES),
    Entry::new("interpolate, Lanczos3", [Some(18.0), Some(34000.0)], SINES),
    Entry::new("gradient of kldiv", [Some(18.0), Some(18.0)], SUMS),
    Entry::new("gradient of mish", [Some(15.0), Some(28.0)], TANH),
    Entry::new("gradient of sin", [None, Some(3100.0)], SINES),
    Entry::new("sin", [None, Some(3600.0)], SINES),
    Entry::new("gradient of tan", [None, Some(210.0)], SINES),
    Entry::new("tan", [None, Some(1400.0)], SINES),
    Entry::new("gradient of tanh", [Some(16.0), Some(16.0)], TANH),
    Entry::new("tanh", [Some(30.0), Some(43.0)], TANH),
    Entry::new("tanhshrink", [Some(10.0), Some(11.0)], TANH),
];
