//! Sequences of unequal lengths, padded to one.

use burn_core::prelude::{Bool, Device, Tensor, TensorData};
use burn_core::tensor::Element;

/// The length that [`pad_sequences`] pads a batch's sequences to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadTo {
    /// That of the longest in the batch.
    Longest,
    /// The smallest multiple of this many elements that the longest in the batch fits in.
    MultipleOf(usize),
    /// This many elements, in every batch.
    Length(usize),
}

/// The sequences of a batch, padded to one length; [`pad_sequences`] makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Padded<T> {
    values: Vec<T>,
    lengths: Vec<usize>,
    length: usize,
}

/// Pads sequences with `value` behind their end, as tf.data's `padded_batch` does, PyTorch's `pad_sequence` and Keras's
/// `pad_sequences(padding="post")`. It is for a batcher:
///
/// ```
/// use burn::data::dataloader::batcher::Batcher;
/// use burn::prelude::*;
/// use burn_deterministic::data::{PadTo, pad_sequences};
///
/// struct Sentences;
///
/// impl Batcher<Vec<i32>, (Tensor<2, Int>, Tensor<2, Bool>)> for Sentences {
///     fn batch(&self, words: Vec<Vec<i32>>, device: &Device) -> (Tensor<2, Int>, Tensor<2, Bool>) {
///         let padded = pad_sequences(&words, 0, PadTo::MultipleOf(32));
///         (Tensor::from_data(padded.data(), device), padded.mask(device))
///     }
/// }
/// ```
///
/// With [`PadTo::Longest`] and [`PadTo::MultipleOf`] the shape of a batch depends on which sequences are in it. A
/// sample's forward result has the same bits in every shape where operations are batch-invariant (`docs/guarantee.md`)
/// and padding is masked; a mean over all places, and so the gradients of a batch, have not. Burn plans each new shape
/// anew: [`PadTo::Length`] has one, and `MultipleOf` few.
///
/// # Panics
///
/// When a sequence is longer than [`PadTo::Length`], when there is no element and no length is given, and for a
/// multiple of 0. In a batcher that is [`LoadError::Batcher`](super::LoadError::Batcher).
pub fn pad_sequences<T: Clone>(sequences: &[impl AsRef<[T]>], value: T, to: PadTo) -> Padded<T> {
    let lengths: Vec<usize> = sequences.iter().map(|sequence| sequence.as_ref().len()).collect();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let length = match to {
        PadTo::Length(length) => length,
        PadTo::Longest => longest,
        PadTo::MultipleOf(of) => {
            assert!(of > 0, "`PadTo::MultipleOf(0)`: give 1 element or more");
            longest.next_multiple_of(of)
        }
    };
    assert!(
        length > 0,
        "none of {} sequences has an element, to be padded by `{to:?}`: leave them out with a `filter`, or give a \
         `PadTo::Length`",
        sequences.len()
    );
    let mut values = Vec::with_capacity(sequences.len() * length);
    for (number, sequence) in sequences.iter().enumerate() {
        let sequence = sequence.as_ref();
        assert!(
            sequence.len() <= length,
            "sequence {number} of the batch has {} elements, to be padded to {length}: cut it with a `map`, or leave it \
             out with a `filter`",
            sequence.len()
        );
        values.extend_from_slice(sequence);
        values.resize((number + 1) * length, value.clone());
    }
    Padded { values, lengths, length }
}

impl<T> Padded<T> {
    /// The elements `[n, length]` of `n` sequences, one sequence after another.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The length that all have.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The length that each had, in elements.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// `[n, length]`, true where a sequence is padded: what Burn's attention takes as `mask_pad`. Keras's masks are the
    /// opposite.
    pub fn mask(&self, device: &Device) -> Tensor<2, Bool> {
        let mask: Vec<bool> =
            self.lengths.iter().flat_map(|&own| (0..self.length).map(move |place| place >= own)).collect();
        Tensor::from_data(TensorData::new(mask, [self.lengths.len(), self.length]), device)
    }
}

impl<T: Element> Padded<T> {
    /// `[n, length]`, for `Tensor::from_data`.
    pub fn data(&self) -> TensorData {
        TensorData::new(self.values.clone(), [self.lengths.len(), self.length])
    }
}
