//! The two GPUs that kernels are compiled for, how many blocks they hold, and the least time a computation takes there.
//!
//! Limits are those of the CUDA C++ Programming Guide (technical specifications per compute capability), peaks those of
//! NVIDIA's data sheets.

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// Its name.
    pub name: &'static str,
    /// Its architecture: `sm_80`.
    pub architecture: &'static str,
    /// The architecture that CubeCL asks NVRTC for, which adds an `a` from sm_90 on.
    pub target: &'static str,
    /// Bytes of shared memory of a multiprocessor.
    pub shared: u32,
    /// Operations on f32 a second, a multiply-add being two, in 10^12; no tensor core takes part.
    pub teraflops: f64,
    /// The same of tensor cores, on f16 and bf16, without sparsity. TF32 has half of them.
    pub half_teraflops: f64,
    /// Bytes a second of device memory, in 10^9.
    pub gigabytes: f64,
}

/// NVIDIA A100 SXM (80 GB).
pub const A100: Device = Device {
    name: "A100 SXM",
    architecture: "sm_80",
    target: "sm_80",
    shared: 164 << 10,
    teraflops: 19.5,
    half_teraflops: 312.0,
    gigabytes: 2039.0,
};

/// NVIDIA H100 SXM.
pub const H100: Device = Device {
    name: "H100 SXM",
    architecture: "sm_90",
    target: "sm_90a",
    shared: 228 << 10,
    teraflops: 66.9,
    half_teraflops: 989.4,
    gigabytes: 3350.0,
};

/// Both.
pub const DEVICES: [Device; 2] = [A100, H100];

/// Threads of a warp.
const WARP: u32 = 32;

/// Warps that a multiprocessor holds.
const WARPS: u32 = 64;

/// Blocks that a multiprocessor holds.
const BLOCKS: u32 = 32;

/// Registers of each of a multiprocessor's four parts; a warp lies in one.
const REGISTERS: u32 = 16_384;

/// Registers are handed to warps in pieces of so many.
const REGISTER_PIECE: u32 = 256;

/// Shared memory is handed to blocks in pieces of so many bytes.
const SHARED_PIECE: u32 = 128;

/// Bytes of shared memory that the system takes of each block.
const SHARED_RESERVED: u32 = 1024;

/// How many blocks of a kernel a multiprocessor holds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u32,
    /// Their warps, of 64.
    pub warps: u32,
    /// What allows no more.
    pub limit: &'static str,
}

impl Occupancy {
    /// Warps held, in hundredths of those that could be.
    pub fn percent(&self) -> u32 {
        100 * self.warps / WARPS
    }
}

impl Device {
    /// The blocks held of a kernel with `threads` a block, `registers` a thread and `shared` bytes a block.
    pub fn occupancy(&self, threads: u32, registers: u32, shared: u32) -> Occupancy {
        let warps_of_block = threads.max(1).div_ceil(WARP);
        let warps_of_part = REGISTERS / (registers.max(1) * WARP).next_multiple_of(REGISTER_PIECE);
        let shared_of_block = (shared + SHARED_RESERVED).next_multiple_of(SHARED_PIECE);
        let limits = [
            (4 * warps_of_part / warps_of_block, "registers"),
            (self.shared / shared_of_block, "shared memory"),
            (WARPS / warps_of_block, "threads"),
            (BLOCKS, "blocks"),
        ];
        let (blocks, limit) = limits.into_iter().min_by_key(|limit| limit.0).expect("four limits");
        Occupancy { blocks, warps: blocks * warps_of_block, limit }
    }

    /// The roofline bound of a computation at a peak of so many 10^12 operations a second: seconds below which it cannot be, and what it
    /// then waits for.
    pub fn bound(&self, flops: f64, teraflops: f64, bytes: f64) -> (f64, &'static str) {
        let (arithmetic, memory) = (flops / (teraflops * 1e12), bytes / (self.gigabytes * 1e9));
        if arithmetic > memory { (arithmetic, "arithmetic") } else { (memory, "memory") }
    }
}

#[cfg(test)]
mod tests {
    use super::{A100, H100, Occupancy};

    /// Values of NVIDIA's occupancy calculator.
    #[test]
    fn blocks_are_limited_by_what_runs_out_first() {
        assert_eq!(A100.occupancy(256, 254, 17_408), Occupancy { blocks: 1, warps: 8, limit: "registers" });
        assert_eq!(A100.occupancy(256, 128, 0), Occupancy { blocks: 2, warps: 16, limit: "registers" });
        assert_eq!(A100.occupancy(256, 32, 0), Occupancy { blocks: 8, warps: 64, limit: "registers" });
        assert_eq!(A100.occupancy(64, 16, 0), Occupancy { blocks: 32, warps: 64, limit: "threads" });
        assert_eq!(A100.occupancy(32, 16, 0), Occupancy { blocks: 32, warps: 32, limit: "blocks" });
        assert_eq!(A100.occupancy(256, 32, 48 << 10), Occupancy { blocks: 3, warps: 24, limit: "shared memory" });
        assert_eq!(H100.occupancy(256, 32, 48 << 10), Occupancy { blocks: 4, warps: 32, limit: "shared memory" });
        assert_eq!(H100.occupancy(256, 33, 0), Occupancy { blocks: 6, warps: 48, limit: "registers" });
        assert_eq!(H100.occupancy(256, 33, 0).percent(), 75);
    }

    #[test]
    fn the_bound_is_the_slower_of_arithmetic_and_memory() {
        let (seconds, by) = A100.bound(2.0 * 4096f64.powi(3), A100.teraflops, 3.0 * 4.0 * 4096f64.powi(2));
        assert!((seconds - 7.048e-3).abs() < 1e-5 && by == "arithmetic", "{seconds}");
        let (seconds, by) = H100.bound(1e9, H100.teraflops, 12e9);
        assert!((seconds - 3.582e-3).abs() < 1e-5 && by == "memory", "{seconds}");
    }
}
