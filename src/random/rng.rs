//! Random numbers on the host.

use core::convert::Infallible;
use core::fmt;
use rand_chacha::ChaCha8Rng;
use rand_core::{SeedableRng, TryRng};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// ChaCha's stream of a host generator; devices of tensor operations have other high words.
const HOST: u64 = 0xFFFF_FFFF << 32;

/// Words in a ChaCha block.
const BLOCK_WORDS: u128 = 16;

/// A generator of a [`RandomStream`](crate::RandomStream), for rand 0.10.
///
/// It gives the words of `rand_chacha::ChaCha8Rng` under the stream's key, with the stream number `0xFFFF_FFFF << 32`.
/// It is a value: a clone goes on from the same place, and so does what was serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct StreamRng(ChaCha8Rng);

impl StreamRng {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(HOST);
        Self(rng)
    }
}

impl TryRng for StreamRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}

impl fmt::Debug for StreamRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRng").field("words", &self.0.get_word_pos()).finish_non_exhaustive()
    }
}

/// What a generator is made of again.
#[derive(Serialize, Deserialize)]
struct State {
    key: [u8; 32],
    /// Whole blocks of 16 words drawn, and words of the next one.
    blocks: u64,
    words: u8,
}

impl Serialize for StreamRng {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let drawn = self.0.get_word_pos();
        let (blocks, words) = ((drawn / BLOCK_WORDS) as u64, (drawn % BLOCK_WORDS) as u8);
        State { key: self.0.get_seed(), blocks, words }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StreamRng {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let State { key, blocks, words } = State::deserialize(deserializer)?;
        let mut rng = Self::new(key);
        rng.0.set_word_pos(BLOCK_WORDS * u128::from(blocks) + u128::from(words));
        Ok(rng)
    }
}
