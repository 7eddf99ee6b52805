//! Where the words of a draw come from.

/// Words in a ChaCha block.
pub const BLOCK_WORDS: usize = 16;

/// A 256-bit key, as the eight little-endian words of ChaCha's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub [u32; 8]);

impl From<[u8; 32]> for Key {
    /// The key that `rand_chacha` makes of the same seed.
    fn from(seed: [u8; 32]) -> Self {
        Self(std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|byte| seed[4 * i + byte]))))
    }
}

/// A stream number: streams of one key are independent sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub u64);

/// Where the words of a draw come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The key.
    pub key: Key,
    /// The stream.
    pub stream: Stream,
    /// The block that holds the first element's first word. The counter wraps at `2^64`.
    pub block: u64,
}
