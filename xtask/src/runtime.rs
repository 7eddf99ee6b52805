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
    /// CUDA on the processor: the package cuda-emulator
    Emulator,
}

/// The workspace's Cargo features for kernels that CubeCL's LLVM compiles.
pub const LLVM_FEATURES: &str = "cuda";

/// Whether the CUDA emulator runs on this system.
pub const HAS_EMULATOR: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// What is compiled for a runtime.
struct Row {
    /// The workspace's Cargo features.
    features: &'static str,
    /// Burn's name for it in `BURN_DEVICE`.
    burn_device: &'static str,
    /// Whether CubeCL's LLVM is left out: kernels for CUDA are compiled by NVRTC.
    without_llvm: bool,
}

impl Runtime {
    fn row(self) -> Row {
        let row = |features, burn_device| Row { features, burn_device, without_llvm: false };
        // One build for software drivers, for NVIDIA GPUs and for the emulator.
        let shared = |burn_device| Row { features: "wgpu,cuda-nvrtc", burn_device, without_llvm: true };
        match self {
            Self::Cuda if HAS_EMULATOR => shared("cuda"),
            // The linker of other systems than Linux does not do without LLVM; see `build.rs`.
            Self::Cuda => Row { without_llvm: cfg!(target_os = "linux"), ..row("cuda-nvrtc", "cuda") },
            Self::Vulkan => row("vulkan", "vulkan"),
            Self::Wgpu if HAS_EMULATOR => shared("wgpu"),
            Self::Wgpu => row("wgpu", "wgpu"),
            Self::Rocm => row("rocm", "rocm"),
            Self::Metal => row("metal", "metal"),
            Self::Emulator => shared("cuda"),
        }
    }

    /// The Cargo features.
    pub fn features(self) -> &'static str {
        self.row().features
    }

    /// The value of `BURN_DEVICE` that makes it Burn's default, where several are compiled in.
    pub fn burn_device(self) -> &'static str {
        self.row().burn_device
    }

    /// Whether it is compiled without CubeCL's LLVM.
    pub fn is_without_llvm(self) -> bool {
        self.row().without_llvm
    }
}
