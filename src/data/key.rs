//! Keys of random numbers, each derived from another and a name or an index.

use burn_deterministic_kernels::random::{BLOCK_WORDS, Source, Stream, reference};
use rand_core::TryRng;
use std::convert::Infallible;

/// A key. Forking leaves it as it is.
#[derive(Clone, Copy)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn from_seed(seed: u64) -> Self {
        Self(blake3::derive_key("burn-deterministic 1 data loader", &seed.to_le_bytes()))
    }

    pub(super) fn fork(self, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[0]).update(name.as_bytes());
        Self(hasher.finalize().into())
    }

    pub(super) fn fork_index(self, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[1]).update(&index.to_le_bytes());
        Self(hasher.finalize().into())
    }

    pub(super) fn rng(self) -> SampleRng {
        let source = Source { key: self.0.into(), stream: Stream(0), block: 0 };
        SampleRng { source, words: [0; BLOCK_WORDS], taken: BLOCK_WORDS }
    }
}

/// The random numbers of one sample: ChaCha8.
pub struct SampleRng {
    /// The block that comes next.
    source: Source,
    words: [u32; BLOCK_WORDS],
    taken: usize,
}

impl SampleRng {
    fn word(&mut self) -> u32 {
        if self.taken == BLOCK_WORDS {
            self.words = reference::block(self.source, 0);
            self.source.block += 1;
            self.taken = 0;
        }
        self.taken += 1;
        self.words[self.taken - 1]
    }
}

impl TryRng for SampleRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = self.word();
        Ok(u64::from(low) | u64::from(self.word()) << 32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
