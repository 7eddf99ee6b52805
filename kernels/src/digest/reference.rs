//! The digest in plain Rust.

/// Words of a digest.
pub const LANES: usize = 4;

/// Constants: the fractional parts of the square roots of 2, 3, 5 and 7.
pub const K: [u32; LANES] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];

/// The finalizer of MurmurHash3.
pub fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// The terms of word `i` of value `x`.
pub fn terms(i: u32, x: u32) -> [u32; LANES] {
    let m = mix(i ^ K[0]);
    let first = mix(x.wrapping_add(m));
    let term = |lane: u32| first.wrapping_mul(m.rotate_left(8 * lane));
    [first, term(1), term(2), term(3)]
}

/// The digest from the sums of the terms.
pub fn finish(sums: [u32; LANES], bytes: u64) -> [u32; LANES] {
    let folded = bytes as u32 ^ (bytes >> 32) as u32;
    core::array::from_fn(|lane| sums[lane].wrapping_add(mix(folded ^ K[lane])))
}

/// The digest of a tensor whose elements in row-major order are these bytes.
pub fn digest(bytes: &[u8]) -> [u32; LANES] {
    let mut sums = [0u32; LANES];
    for (i, word) in bytes.chunks(4).enumerate() {
        let mut filled = [0; 4];
        filled[..word.len()].copy_from_slice(word);
        let terms = terms(i as u32, u32::from_le_bytes(filled));
        sums = core::array::from_fn(|lane| sums[lane].wrapping_add(terms[lane]));
    }
    finish(sums, bytes.len() as u64)
}
