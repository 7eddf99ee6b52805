//! 1,797 handwritten digits, 8x8 pixels each, from the UCI repository (see data/README.md).

use anyhow::{Context, Result, ensure};
use burn::prelude::*;
use flate2::read::GzDecoder;

/// Height and width of an image.
pub const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
/// The largest value of a pixel in the file.
const WHITE: f32 = 16.0;

/// Images and their labels, in the order of the file.
#[derive(Clone, Default)]
pub struct Digits {
    images: Vec<[f32; PIXELS]>,
    labels: Vec<i32>,
}

/// Images and their labels, on a device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// `[n, 1, 8, 8]`, in 0..=1.
    pub images: Tensor<4>,
    /// `[n]`, in 0..10.
    pub labels: Tensor<1, Int>,
}

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
            let mut image = [0.0; PIXELS];
            for (pixel, value) in image.iter_mut().zip(&record) {
                *pixel = *value as f32 / WHITE;
            }
            let part = &mut parts[usize::from(row % 5 == 4)];
            part.images.push(image);
            part.labels.push(record[PIXELS]);
        }
        let [train, test] = parts;
        Ok((train, test))
    }

    /// How many images there are.
    #[expect(clippy::len_without_is_empty, reason = "neither part is empty")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The images whose label is in `labels`.
    pub fn with_labels(&self, labels: std::ops::Range<i32>) -> Self {
        let kept = (0..self.len()).filter(|&index| labels.contains(&self.labels[index]));
        let (images, labels) = kept.map(|index| (self.images[index], self.labels[index])).unzip();
        Self { images, labels }
    }

    /// The samples at `indices`, on `device`.
    pub fn batch(&self, indices: &[usize], device: &Device) -> Batch {
        self.batch_with(indices, device, |_, image| *image)
    }

    /// All samples, on `device`.
    pub fn all(&self, device: &Device) -> Batch {
        self.batch(&(0..self.len()).collect::<Vec<_>>(), device)
    }

    /// The samples at `indices`, on `device`, after `change` of an index and its image.
    pub fn batch_with(
        &self,
        indices: &[usize],
        device: &Device,
        change: impl Fn(usize, &[f32; PIXELS]) -> [f32; PIXELS],
    ) -> Batch {
        let images = indices.iter().flat_map(|&index| change(index, &self.images[index])).collect::<Vec<f32>>();
        let labels = indices.iter().map(|&index| self.labels[index]).collect::<Vec<i32>>();
        Batch {
            images: Tensor::from_data(TensorData::new(images, [indices.len(), 1, SIDE, SIDE]), device),
            labels: Tensor::from_data(TensorData::new(labels, [indices.len()]), device),
        }
    }
}
