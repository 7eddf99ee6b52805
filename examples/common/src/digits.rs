//! 1,797 handwritten digits, 8x8 pixels each, from the UCI repository (see data/README.md).

use anyhow::{Context, Result, ensure};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::prelude::*;
use flate2::read::GzDecoder;

/// Height and width of an image.
pub const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
/// The largest value of a pixel in the file.
const WHITE: f32 = 16.0;

/// An image and its label.
#[derive(Clone, Copy, Debug)]
pub struct Digit {
    /// Row by row, in 0..=1.
    pub image: [f32; PIXELS],
    /// In 0..10.
    pub label: i32,
}

/// Images and their labels, in the order of the file.
#[derive(Clone, Default)]
pub struct Digits(Vec<Digit>);

impl Digits {
    /// The training images and the test images, which are every fifth: the file goes through its writers in order, so
    /// both parts have all of them.
    ///
    /// # Errors
    ///
    /// When the file in this repository is not what it was.
    pub fn load() -> Result<(Self, Self)> {
        let compressed = include_bytes!("../../../data/digits.csv.gz");
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).from_reader(GzDecoder::new(compressed.as_slice()));
        let mut parts = [Self::default(), Self::default()];
        for (row, record) in reader.deserialize::<Vec<i32>>().enumerate() {
            let record = record.with_context(|| format!("row {row} of data/digits.csv.gz"))?;
            ensure!(record.len() == PIXELS + 1, "row {row} has {} columns, not {}", record.len(), PIXELS + 1);
            let image = std::array::from_fn(|pixel| record[pixel] as f32 / WHITE);
            parts[usize::from(row % 5 == 4)].0.push(Digit { image, label: record[PIXELS] });
        }
        let [train, test] = parts;
        Ok((train, test))
    }

    /// The images whose label is in `labels`.
    pub fn with_labels(&self, labels: std::ops::Range<i32>) -> Self {
        Self(self.0.iter().filter(|digit| labels.contains(&digit.label)).copied().collect())
    }

    /// All of them, on `device`.
    pub fn all(&self, device: &Device) -> Batch {
        DigitBatcher.batch(self.0.clone(), device)
    }

    /// The fraction that `classify`, from images `[n, 1, 8, 8]` on `device` to labels `[n]`, names rightly.
    pub fn accuracy(&self, device: &Device, classify: impl FnOnce(Tensor<4>) -> Tensor<1, Int>) -> f32 {
        let Batch { images, labels } = self.all(device);
        classify(images).equal(labels).float().mean().into_scalar::<f32>()
    }
}

impl Dataset<Digit> for Digits {
    fn get(&self, index: usize) -> Result<Digit, DatasetError> {
        Ok(self.0[index])
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Images and their labels, on a device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// `[n, 1, 8, 8]`, in 0..=1.
    pub images: Tensor<4>,
    /// `[n]`, in 0..10.
    pub labels: Tensor<1, Int>,
}

/// Puts digits on a device.
#[derive(Clone, Copy, Debug)]
pub struct DigitBatcher;

impl Batcher<Digit, Batch> for DigitBatcher {
    fn batch(&self, digits: Vec<Digit>, device: &Device) -> Batch {
        let images = digits.iter().flat_map(|digit| digit.image).collect::<Vec<f32>>();
        let labels = digits.iter().map(|digit| digit.label).collect::<Vec<i32>>();
        Batch {
            images: Tensor::from_data(TensorData::new(images, [digits.len(), 1, SIDE, SIDE]), device),
            labels: Tensor::from_data(TensorData::new(labels, [digits.len()]), device),
        }
    }
}
