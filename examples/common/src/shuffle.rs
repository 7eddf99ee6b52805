//! Random numbers of the host, as a function of a seed and a position.

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// A generator of its own for each `position`, an epoch or a step, of a training.
pub fn generator(seed: u64, position: usize) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(position as u64);
    generator
}

/// The order of `samples` samples in `epoch`: a pure function of the seed and the epoch.
pub fn shuffled(samples: usize, seed: u64, epoch: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples).collect();
    order.shuffle(&mut generator(seed, epoch));
    order
}
