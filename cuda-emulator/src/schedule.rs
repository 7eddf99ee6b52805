//! The order of blocks, and of a block's threads between two barriers.
//!
//! Without a seed both are ascending, x first. With a seed, launch n of the process has a generator of its own (SplitMix64
//! of seed and n). Blocks run one after the other, from a random one in steps of a random width that has no divisor in common
//! with their number. Threads are shuffled (Fisher and Yates) anew for each block and after each barrier.

/// The order of one launch.
pub struct Schedule {
    generator: Option<u64>,
}

impl Schedule {
    pub fn new(seed: Option<u64>, launch: u64) -> Self {
        Self { generator: seed.map(|seed| seed.wrapping_add(launch.wrapping_mul(0xD1B5_4A32_D192_ED03))) }
    }

    /// Where the blocks begin, and the step from one to the next, modulo `blocks`.
    pub fn blocks(&mut self, blocks: u64) -> (u64, u64) {
        let Some(generator) = &mut self.generator else { return (0, 1) };
        let first = next(generator) % blocks;
        loop {
            let step = next(generator) % blocks.max(2);
            if divisor(step, blocks) == 1 {
                return (first, step);
            }
        }
    }

    /// Brings the threads into the order of the next interval between barriers.
    pub fn threads(&mut self, order: &mut [u32]) {
        let Some(generator) = &mut self.generator else { return };
        for last in (1..order.len()).rev() {
            order.swap(last, (next(generator) % (last as u64 + 1)) as usize);
        }
    }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;

    #[test]
    fn every_block_and_thread_runs_once() {
        for blocks in 1..40 {
            let mut schedule = Schedule::new(Some(7), blocks);
            let (first, step) = schedule.blocks(blocks);
            let mut seen: Vec<u64> = (0..blocks).map(|k| (first + k * step) % blocks).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..blocks).collect::<Vec<_>>());
            let mut order: Vec<u32> = (0..blocks as u32).collect();
            schedule.threads(&mut order);
            order.sort_unstable();
            assert_eq!(order, (0..blocks as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seeds_and_launches_differ_and_repeat() {
        let order = |seed, launch| {
            let mut order: Vec<u32> = (0..64).collect();
            Schedule::new(seed, launch).threads(&mut order);
            order
        };
        assert_eq!(order(None, 3), (0..64).collect::<Vec<_>>());
        assert_eq!(order(Some(1), 3), order(Some(1), 3));
        assert_ne!(order(Some(1), 3), order(Some(2), 3));
        assert_ne!(order(Some(1), 3), order(Some(1), 4));
    }
}
