//! Sampling by weight, with replacement.

use crate::random::RandomStream;
use rand_core::Rng;

/// Bits of a float's significand: what is drawn is a multiple of 2^-53.
const BITS: u32 = 53;

/// The weights of a dataset's samples, and how many samples an epoch draws.
#[derive(Debug)]
pub(super) struct Weights {
    /// The sum of the weights up to each sample, added in the dataset's order.
    cumulative: Vec<f64>,
    samples: usize,
    digest: [u8; 32],
}

impl Weights {
    /// # Panics
    ///
    /// When a weight is negative, infinite or NaN, when their sum is zero or infinite, or when `samples` is 0.
    pub(super) fn new(weights: impl IntoIterator<Item = f64>, samples: usize) -> Self {
        assert!(samples > 0, "`weighted` draws 0 samples in an epoch; let it draw 1 or more");
        let mut hasher = blake3::Hasher::new();
        let (mut cumulative, mut sum) = (Vec::new(), 0.0);
        for (sample, weight) in weights.into_iter().enumerate() {
            assert!(
                weight >= 0.0 && weight.is_finite(),
                "the weight of sample {sample} is {weight}; weights are finite and not negative"
            );
            hasher.update(&weight.to_bits().to_le_bytes());
            sum += weight;
            cumulative.push(sum);
        }
        assert!(
            sum > 0.0 && sum.is_finite(),
            "the sum of the {} weights is {sum}; it must be positive and finite",
            cumulative.len()
        );
        Self { cumulative, samples, digest: *hasher.finalize().as_bytes() }
    }

    /// The samples that have a weight.
    pub(super) fn len(&self) -> usize {
        self.cumulative.len()
    }

    /// The samples that an epoch draws.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Of the weights' bits.
    pub(super) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The samples that an epoch draws, as [`weighted`](super::DataLoaderBuilder::weighted) states, with its stream.
    pub(super) fn draw(&self, stream: &RandomStream) -> Vec<usize> {
        let mut rng = stream.rng();
        let total = self.cumulative[self.len() - 1];
        let draw = |_| {
            let u = (rng.next_u64() >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64;
            // The product with a subnormal total may round up to it, where no sample is.
            let reached = (u * total).min(total.next_down());
            self.cumulative.partition_point(|&sum| sum <= reached)
        };
        (0..self.samples).map(draw).collect()
    }
}
