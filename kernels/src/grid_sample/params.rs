//! How to sample, and the constants of the filters.

/// The series of `sin(pi u)` in `u * u`, highest power first.
pub(super) const SINE: [f32; 7] =
    [4.6630282e-4, -7.370_431e-3, 8.214_589e-2, -5.992_645e-1, 2.550_164, -5.167_712_8, std::f32::consts::PI];

/// What Lanczos' function, in the units of the kernel, is at zero: `pi * pi * 3`.
pub(super) const PEAK: f32 = 29.608_813;

/// The pixels around a point whose weighted sum is its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest one.
    Nearest,
    /// Two an axis.
    Linear,
    /// Four an axis.
    Cubic,
    /// Six an axis.
    Lanczos3,
}

impl Filter {
    /// Pixels an axis.
    pub(crate) const fn taps(self) -> usize {
        match self {
            Self::Nearest => 1,
            Self::Linear => 2,
            Self::Cubic => 4,
            Self::Lanczos3 => 6,
        }
    }
}

/// What is read outside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zero.
    Zeros,
    /// The nearest pixel of the image.
    Border,
    /// The image, mirrored.
    Reflection,
}

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleParams {
    /// Which pixels.
    pub filter: Filter,
    /// What is outside.
    pub padding: Padding,
    /// Whether -1 and 1 are the centres of the outer pixels, not their outer edges.
    pub align_corners: bool,
}
