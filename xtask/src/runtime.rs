//! What a program can be built for: one table.

use clap::ValueEnum;

/// A runtime of Burn's, with what it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Runtime {
    /// An NVIDIA GPU by CUDA
    Cuda,
    /// Vulkan, given SPIR-V
    Vulkan,
    /// Vulkan, Metal or DirectX, whichever there is, given WGSL; the one for software drivers
    Wgpu,
    /// An AMD GPU by ROCm
    Rocm,
    /// An Apple GPU by Metal
    Metal,
}

impl Runtime {
    /// The workspace's Cargo feature, and Burn's name for it in `BURN_DEVICE`.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Cuda => ("cuda", "cuda"),
            Self::Vulkan => ("vulkan", "vulkan"),
            Self::Wgpu => ("wgpu", "wgpu"),
            Self::Rocm => ("rocm", "rocm"),
            Self::Metal => ("metal", "metal"),
        }
    }

    /// The Cargo feature.
    pub fn feature(self) -> &'static str {
        self.row().0
    }

    /// The value of `BURN_DEVICE` that makes it Burn's default, where several are compiled in.
    pub fn burn_device(self) -> &'static str {
        self.row().1
    }
}
