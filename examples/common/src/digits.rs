//! Handwritten digits: 1,797 from the UCI repository, 8x8 pixels each (see data/README.md), or MNIST.

use crate::{Confusion, DigitSet};
use anyhow::{Context, Result, ensure};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::prelude::*;
use flate2::read::GzDecoder;
use std::ops::Range;

/// Height and width of an image in data/digits.csv.gz.
const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
/// The largest value of a pixel in that file.
const WHITE: f32 = 16.0;

/// An image and its label.
#[derive(Clone, Debug)]
pub struct Digit {
    /// Row by row, in 0..=1.
    pub image: Vec<f32>,
    /// The index of its class: the digit itself, but for [`Digits::with_labels`].
    pub label: i32,
}

/// Images of one size and their labels, in the order of their file.
#[derive(Clone)]
pub struct Digits {
    digits: Vec<Digit>,
    side: usize,
    /// The digits that there are.
    classes: Range<i32>,
}

impl Digits {
    /// The training images and the test images.
    ///
    /// # Errors
    ///
    /// When the file in this repository is not what it was; for MNIST when it cannot be downloaded, or this was built
    /// without it.
    pub fn load(set: DigitSet) -> Result<(Self, Self)> {
        match set {
            // The file goes through its writers in order, so both parts have all of them.
            DigitSet::Digits => Ok(Self { digits: uci()?, side: SIDE, classes: 0..10 }.split(5)),
            DigitSet::Mnist => crate::mnist::load(),
        }
    }

    /// Images of `side` rows and columns.
    #[cfg(feature = "mnist")]
    pub(crate) fn new(digits: Vec<Digit>, side: usize) -> Self {
        Self { digits, side, classes: 0..10 }
    }

    /// Height and width of an image.
    pub fn side(&self) -> usize {
        self.side
    }

    /// All but every `nth`, and every `nth`.
    pub fn split(self, nth: usize) -> (Self, Self) {
        let (rest, nths): (Vec<_>, Vec<_>) =
            self.digits.iter().cloned().enumerate().partition(|(index, _)| index % nth != nth - 1);
        let part = |digits: Vec<(usize, Digit)>| self.of(digits.into_iter().map(|(_, digit)| digit).collect());
        (part(rest), part(nths))
    }

    fn of(&self, digits: Vec<Digit>) -> Self {
        Self { digits, side: self.side, classes: self.classes.clone() }
    }

    /// The images of the digits `classes`, whose labels count from the first of these.
    pub fn with_labels(&self, classes: Range<i32>) -> Self {
        let digits = self.digits.iter().filter(|digit| classes.contains(&digit.label)).cloned();
        let digits = digits.map(|digit| Digit { label: digit.label - classes.start, ..digit }).collect();
        Self { digits, side: self.side, classes }
    }

    /// All of them, on `device`.
    pub fn all(&self, device: &Device) -> Batch {
        DigitBatcher.batch(self.digits.clone(), device)
    }

    /// The loss and the accuracy of `forward`, which makes logits `[n, classes]` of all images `[n, 1, side, side]`, on
    /// `device` without gradients.
    ///
    /// # Errors
    ///
    /// When a result cannot be read.
    pub fn test(
        &self,
        device: &Device,
        forward: impl FnOnce(Tensor<4>) -> Tensor<2>,
    ) -> Result<[(&'static str, f32); 2]> {
        let Batch { images, labels } = self.all(&device.clone().without_autodiff());
        let logits = forward(images);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits.clone(), labels.clone());
        let confusion = self.count(labels, logits)?;
        Ok([("test loss", loss.try_into_scalar::<f32>()?), ("test accuracy", confusion.accuracy())])
    }

    /// Which digits `forward` takes for which; it is as that of [`test`](Self::test).
    ///
    /// # Errors
    ///
    /// When a result cannot be read.
    pub fn confusion(&self, device: &Device, forward: impl FnOnce(Tensor<4>) -> Tensor<2>) -> Result<Confusion> {
        let Batch { images, labels } = self.all(&device.clone().without_autodiff());
        self.count(labels, forward(images))
    }

    fn count(&self, labels: Tensor<1, Int>, logits: Tensor<2>) -> Result<Confusion> {
        let classes = self.classes.clone().map(|digit| digit.to_string()).collect();
        Confusion::new(classes, labels, logits.argmax(1).squeeze_dim(1))
    }
}

fn uci() -> Result<Vec<Digit>> {
    let compressed = include_bytes!("../../../data/digits.csv.gz");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(GzDecoder::new(compressed.as_slice()));
    let rows = reader.deserialize::<Vec<i32>>().enumerate();
    rows.map(|(row, record)| {
        let record = record.with_context(|| format!("row {row} of data/digits.csv.gz"))?;
        ensure!(record.len() == PIXELS + 1, "row {row} has {} columns, not {}", record.len(), PIXELS + 1);
        let image = record[..PIXELS].iter().map(|&pixel| pixel as f32 / WHITE).collect();
        Ok(Digit { image, label: record[PIXELS] })
    })
    .collect()
}

impl Dataset<Digit> for Digits {
    fn get(&self, index: usize) -> Result<Digit, DatasetError> {
        Ok(self.digits[index].clone())
    }

    fn len(&self) -> usize {
        self.digits.len()
    }
}

/// Images and their labels, on a device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// `[n, 1, side, side]`, in 0..=1.
    pub images: Tensor<4>,
    /// `[n]`, the indices of classes.
    pub labels: Tensor<1, Int>,
}

impl Batch {
    /// `n`.
    pub fn samples(&self) -> usize {
        self.labels.dims()[0]
    }
}

/// Puts digits on a device.
#[derive(Clone, Copy, Debug)]
pub struct DigitBatcher;

impl Batcher<Digit, Batch> for DigitBatcher {
    fn batch(&self, digits: Vec<Digit>, device: &Device) -> Batch {
        let [count, side] = [digits.len(), digits[0].image.len().isqrt()];
        let images = digits.iter().flat_map(|digit| &digit.image).copied().collect::<Vec<f32>>();
        let labels = digits.iter().map(|digit| digit.label).collect::<Vec<i32>>();
        Batch {
            images: Tensor::from_data(TensorData::new(images, [count, 1, side, side]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}
