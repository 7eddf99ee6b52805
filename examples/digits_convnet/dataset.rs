//! 1,797 handwritten digits, 8x8 pixels each, from the UCI repository (see data/README.md).

use anyhow::{Context, Result, ensure};
use burn::prelude::*;
use flate2::read::GzDecoder;
use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Height and width of an image.
pub const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
/// The largest value of a pixel in the file.
const WHITE: f32 = 16.0;

/// Images and their labels, in the order of the file.
pub struct Digits {
    images: Vec<[f32; PIXELS]>,
    labels: Vec<i32>,
}

/// Images `[n, 1, 8, 8]` in 0..=1 and labels `[n]` in 0..10.
pub struct Batch {
    pub images: Tensor<4>,
    pub labels: Tensor<1, Int>,
}

impl Digits {
    /// The training images and the test images, which are every fifth: the file goes through its writers in order, so
    /// both parts have all of them.
    pub fn load() -> Result<(Self, Self)> {
        let compressed = include_bytes!("../../data/digits.csv.gz");
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).from_reader(GzDecoder::new(compressed.as_slice()));
        let [mut train, mut test] = [(); 2].map(|()| Self { images: Vec::new(), labels: Vec::new() });
        for (row, record) in reader.deserialize::<Vec<i32>>().enumerate() {
            let record = record.with_context(|| format!("row {row} of data/digits.csv.gz"))?;
            ensure!(record.len() == PIXELS + 1, "row {row} has {} columns, not {}", record.len(), PIXELS + 1);
            let part = if row % 5 == 4 { &mut test } else { &mut train };
            let mut image = [0.0; PIXELS];
            for (pixel, value) in image.iter_mut().zip(&record) {
                *pixel = *value as f32 / WHITE;
            }
            part.images.push(image);
            part.labels.push(record[PIXELS]);
        }
        Ok((train, test))
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The samples at `indices`, on `device`.
    pub fn batch(&self, indices: &[usize], device: &Device) -> Batch {
        let images = indices.iter().flat_map(|&index| self.images[index]).collect::<Vec<f32>>();
        let labels = indices.iter().map(|&index| self.labels[index]).collect::<Vec<i32>>();
        Batch {
            images: Tensor::from_data(TensorData::new(images, [indices.len(), 1, SIDE, SIDE]), device),
            labels: Tensor::from_data(TensorData::new(labels, [indices.len()]), device),
        }
    }

    /// The order of the samples in `epoch`: a pure function of the seed and the epoch.
    pub fn shuffled(&self, seed: u64, epoch: usize) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(epoch as u64);
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.shuffle(&mut rng);
        order
    }
}
