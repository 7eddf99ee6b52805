//! Constants of the inverse normal distribution.
//!
//! With the tail probability `p <= 1/2`, `x = 1 - 2p` and `s = -log2(4 p (1 - p))`, the quantile is `x * Q(s)`: the
//! factor `x` carries the sign change at the centre, and `Q` is so smooth in the logarithm (M. Giles, "Approximating
//! the erfinv function", 2012) that three polynomials of degree 8 serve the whole range of a 32-bit draw, without a
//! square root.
//!
//! The coefficients are minimax fits (Lawson's iteration on 400 Chebyshev nodes, from 40-digit values), rounded to
//! f32.

/// Coefficients of a polynomial of degree 8, lowest first.
pub(super) type Polynomial = [f32; 9];

/// `-log2(1 + f) / f` for `1 + f` in `[sqrt(1/2), sqrt(2))`, to 4e-8.
#[expect(clippy::approx_constant, reason = "a fitted coefficient, next to log2(e) but not it")]
pub(super) const LOGARITHM: Polynomial =
    [-1.442695, 0.7213472, -0.48091027, 0.36071625, -0.28793907, 0.23867576, -0.21521242, 0.20893332, -0.12926322];

/// One range of `s`: `Q(s)` is the polynomial in `s - centre`.
pub(super) struct Segment {
    /// The value of `s` from which the next segment holds.
    pub end: f32,
    /// The point the polynomial is written about.
    pub centre: f32,
    /// The coefficients.
    pub polynomial: Polynomial,
}

/// 99.2 % of the draws, to 2.1e-8.
pub(super) const CENTRE: Segment = Segment {
    end: 6.0,
    centre: 3.0,
    polynomial: [
        1.9757185,
        0.24449979,
        -0.0016057591,
        -0.0007646126,
        7.1349845e-5,
        1.2759413e-6,
        -7.386067e-7,
        2.6978556e-8,
        4.6471276e-9,
    ],
};

/// Past 2.66 standard deviations, to 3.3e-9.
pub(super) const TAIL: Segment = Segment {
    end: 14.0,
    centre: 10.0,
    polynomial: [
        3.4887426,
        0.18432857,
        -0.0040046396,
        0.00012860721,
        -8.086292e-7,
        -4.9741635e-7,
        6.318139e-8,
        -4.282528e-9,
        1.10425e-10,
    ],
};

/// Past 4.17 standard deviations, to 4.2e-9; no 32-bit draw has `s` above 31.
pub(super) const FAR_TAIL: Segment = Segment {
    end: f32::INFINITY,
    centre: 22.5,
    polynomial: [
        5.3576884,
        0.12527138,
        -0.001376692,
        2.9694447e-5,
        -7.8946636e-7,
        2.3225672e-8,
        -7.2065753e-10,
        1.8408722e-11,
        -1.4894939e-13,
    ],
};

/// `sqrt(2) * 2^30`, rounded up: mantissas from here on are halved, so that their logarithm is small.
pub(super) const SQRT_2: u32 = 1_518_500_250;
