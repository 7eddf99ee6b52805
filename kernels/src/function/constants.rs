//! The constants of the functions and of their references.

/// The sign bit.
pub(crate) const SIGN: u32 = 0x8000_0000;
/// All other bits.
pub(crate) const MAGNITUDE: u32 = 0x7fff_ffff;
/// The bits of 1.
pub(crate) const ONE: u32 = 0x3f80_0000;
/// The bits of infinity.
pub(crate) const INFINITY: u32 = 0x7f80_0000;
/// The bits of the NaN that functions give.
pub(crate) const NAN: u32 = 0x7fc0_0000;
/// The smallest normal number, 2^-126.
pub(crate) const NORMAL: u32 = 0x0080_0000;
/// 1.5 * 2^23. The lowest bits of the sum of this and a small number are that number's nearest integer, in two's
/// complement; they are taken from the bits of the sum, so nothing can be folded.
pub(crate) const SHIFT: f32 = 12582912.0;

/// Of [`exponential`](super::exponential).
pub(super) mod exponential {
    pub(crate) const LOG2_E: f32 = core::f32::consts::LOG2_E;
    /// ln 2 = LN2_HIGH + LN2_LOW, times 2^-23; 15 bits, so that a product with an integer of 8 bits is exact.
    pub(crate) const LN2_HIGH: f32 = 8.262941e-8;
    pub(crate) const LN2_LOW: f32 = 1.703032e-13;
    /// (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2; 0.04 ULP of e^r.
    pub(crate) const EXP: [f32; 5] = [0.4999999, 0.16666521, 0.041668892, 0.008368678, 0.0013789317];
    /// (log(1 + f) - f) / f^2 on -1/4 <= f < 1/2; 0.06 ULP of the logarithm.
    pub(crate) const LOG: [f32; 9] =
        [-0.5, 0.33333442, -0.2500009, 0.19991212, -0.16648008, 0.144752, -0.13149959, 0.10452363, -0.04505052];
    /// (tanh(x) / x - 1) / x^2 in x^2, |x| < 0.625; 0.06 ULP.
    pub(crate) const TANH: [f32; 5] = [-0.3333329, 0.13331592, -0.053750705, 0.020673448, -0.0057429173];
    /// (sinh(r) / r - 1) / r^2 in r^2, |r| < 0.52.
    pub(crate) const SINH: [f32; 3] = [0.16666667, 0.0083331615, 0.00019971724];
    /// (cosh(r) - 1) / r^2 in r^2, |r| < 0.52.
    pub(crate) const COSH: [f32; 3] = [0.50000006, 0.04166497, 0.0014009936];
    /// (asinh(x) / x - 1) / x^2 in x^2, |x| < 1/2.
    pub(crate) const ASINH: [f32; 5] = [-0.16666645, 0.074986935, -0.044388052, 0.02817976, -0.0132466545];
    /// (atanh(x) / x - 1) / x^2 in x^2, |x| < 1/2.
    pub(crate) const ATANH: [f32; 6] = [0.33333304, 0.20002271, 0.14227188, 0.117880724, 0.052692473, 0.17481214];
    /// (acosh(1 + t) / sqrt(2 t) - 1) / t, t < 1/2.
    pub(crate) const ACOSH: [f32; 5] = [-0.083333224, 0.018746736, -0.0055485247, 0.0017612896, -0.0004140099];
    /// H of log2(1 + f) = f (log2(e) - f H), a polynomial in t = f + 0.296875 with terms of alternating signs; units of
    /// 2^-32, from degree 4 on of 2^-31. 2^-35.7 of log2.
    pub(crate) const POW_LOG: [u32; 12] = [
        0xe7ed_2c81,
        0xcee0_4055,
        0xd4eb_4d28,
        0xeca3_1659,
        0x89b4_8b61,
        0xa3d0_423e,
        0xbf7f_58e2,
        0xcd27_f0ac,
        0xb6c5_6cfa,
        0x7895_52b3,
        0x328b_9d93,
        0x09e5_47df,
    ];
    /// (2^z - 1) / z on 0 <= z < 1, units of 2^-32; 2^-33.9.
    pub(crate) const POW_EXP: [u32; 7] =
        [0xb172_180d, 0x3d7f_79e4, 0x0e35_9661, 0x0276_0cf7, 0x0057_fd80, 0x0009_6301, 0x0001_6a35];
}

/// Of [`trigonometric`](super::trigonometric).
pub(super) mod trigonometric {
    /// 2^-13: below it sin x, tan x, asin x and atan x round to x.
    pub(crate) const SMALL: u32 = 0x3900_0000;
    /// 2/pi.
    pub(crate) const TWO_OVER_PI: f32 = 0.63661975;
    /// pi/2 in four parts: 13, 12 and 9 bits, so that their products by an integer up to 2048 are exact, and the rest.
    pub(crate) const HALF_PI_1: f32 = 1.5705566;
    pub(crate) const HALF_PI_2: f32 = 0.00023967028;
    pub(crate) const HALF_PI_3: f32 = 1.5890691e-8;
    pub(crate) const HALF_PI_4: f32 = 2.563344e-12;
    pub(crate) const SINE_0: f32 = -0.16666655;
    pub(crate) const SINE_1: f32 = 0.008332188;
    pub(crate) const SINE_2: f32 = -0.00019518095;
    pub(crate) const COSINE_0: f32 = 0.041666646;
    pub(crate) const COSINE_1: f32 = -0.0013887301;
    pub(crate) const COSINE_2: f32 = 2.443067e-5;
    /// (tan(a) / a - 1) / a^2 in a^2, |a| < 0.3935.
    pub(crate) const TANGENT: [f32; 4] = [0.33333293, 0.133359, 0.053472236, 0.025572546];
    /// pi/8, about.
    pub(crate) const EIGHTH_PI: u32 = 0x3ec9_0fdb;
    /// pi/4, pi/2 and pi as a multiple of 2^-14 and the rest.
    pub(crate) const QUARTER_PI_HEAD: f32 = 0.7853699;
    pub(crate) const QUARTER_PI_REST: f32 = 2.8290351e-5;
    pub(crate) const HALF_PI_HEAD: f32 = 1.5707397;
    pub(crate) const HALF_PI_REST: f32 = 5.6580702e-5;
    pub(crate) const PI_HEAD: f32 = 3.1415405;
    pub(crate) const PI_REST: f32 = 5.2126245e-5;
    /// 2/sqrt(pi) - 1.
    pub(crate) const TWO_OVER_ROOT_PI_LESS_1: f32 = 0.12837917;
    /// 3216: below it x * 2/pi rounds to an integer below 2048.
    pub(crate) const LARGE: u32 = 0x4549_0000;
    /// erf x / x - 1 in x^2, x < 3/4.
    pub(crate) const ERF_LOW: [f32; 8] =
        [0.12837917, -0.37612638, 0.11283789, -0.026866091, 0.005223601, -0.0008534875, 0.00011768476, -1.1660029e-5];
    /// A number whose erf is nearly an f32, and that f32.
    pub(crate) const ERF_CENTRE: f32 = 1.0512499;
    pub(crate) const ERF_OF_CENTRE: f32 = 0.8629038;
    /// (erf(c + y) - erf c) / y, c the number above, 3/4 <= c + y < 11/8.
    pub(crate) const ERF_MIDDLE: [f32; 8] =
        [0.3736843, -0.39283553, 0.1507501, 0.051706888, -0.066948675, 0.009667896, 0.012768571, -0.0052970964];
    /// The fourth root of 1 - erf x in x - 11/8, to 3.92.
    pub(crate) const ERF_HIGH: [f32; 8] =
        [0.47713926, -0.392078, 0.055849273, 0.03882817, -0.010978835, -0.0029278363, 0.001651437, -0.00020799607];
    /// (atan(t) / t - 1) / t^2 in t^2, t < 35/64.
    pub(crate) const ATAN_LOW: [f32; 6] = [-0.33333316, 0.19998877, -0.1426059, 0.10847979, -0.076448835, 0.034147892];
    /// A number c for which c - atan c is nearly a multiple of 2^-24, and that multiple.
    pub(crate) const ATAN_CENTRE: f32 = 0.77147496;
    pub(crate) const ATAN_LESS: f32 = 0.11437094;
    /// (atan(c + y) - atan c) / y - 1, c the number above, 35/64 <= c + y <= 1.
    pub(crate) const ATAN_HIGH: [f32; 6] = [-0.37310895, -0.30318433, 0.06449973, 0.04829378, -0.06125121, 0.027704459];
    /// 2^-47.
    pub(crate) const UNIT: f32 = f32::from_bits(80 << 23);
    /// (asin(t) / t - 1) / t^2 in t^2, t <= 1/2.
    pub(crate) const ASIN: [f32; 5] = [0.16666752, 0.074953064, 0.045469772, 0.02418077, 0.04216643];
}
