//! Batches of sequences that are padded to one length.

use crate::data::loader::{WORKERS, numbers, pass};
use crate::data::sampling::refusal;
use burn::data::dataloader::batcher::Batcher;
use burn::prelude::*;
use burn_deterministic::data::{DataLoaderBuilder, PadTo, pad_sequences};

#[test]
fn sequences_are_padded_behind_their_end() {
    let sequences = [vec![1, 2, 3], vec![], vec![4], vec![5, 6, 7, 8, 9]];
    for (to, length) in [
        (PadTo::Longest, 5),
        (PadTo::MultipleOf(1), 5),
        (PadTo::MultipleOf(4), 8),
        (PadTo::MultipleOf(5), 5),
        (PadTo::Length(5), 5),
        (PadTo::Length(7), 7),
    ] {
        let padded = pad_sequences(&sequences, -1, to);
        assert_eq!((padded.length(), padded.lengths()), (length, [3, 0, 1, 5].as_slice()), "{to:?}");
        let expected: Vec<i32> =
            sequences.iter().flat_map(|row| (0..length).map(|at| row.get(at).copied().unwrap_or(-1))).collect();
        assert_eq!(padded.values(), expected);
        assert_eq!(padded.data(), TensorData::new(expected, [4, length]));
        let mask = padded.mask(&Device::default()).into_data();
        let expected: Vec<bool> = sequences.iter().flat_map(|row| (0..length).map(|at| at >= row.len())).collect();
        assert_eq!(mask.iter::<bool>().collect::<Vec<bool>>(), expected);
        assert_eq!(mask.shape().to_vec(), [4, length]);
    }
    // Elements of any type, as rows of features.
    let padded = pad_sequences(&[vec![[1.0, 2.0]], vec![]], [0.5, 0.5], PadTo::Length(2));
    assert_eq!(padded.values(), [[1.0, 2.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]);
}

#[test]
fn sequences_that_cannot_be_padded_are_refused() {
    let pad = |sequences: &[Vec<i32>], to| drop(pad_sequences(sequences, 0, to));
    for (text, expected) in [
        (
            refusal(|| pad(&[vec![1], vec![1, 2, 3]], PadTo::Length(2))),
            "sequence 1 of the batch has 3 elements, to be padded to 2",
        ),
        (refusal(|| pad(&[vec![], vec![]], PadTo::Longest)), "none of 2 sequences has an element"),
        (refusal(|| pad(&[], PadTo::MultipleOf(3))), "none of 0 sequences has an element"),
        (refusal(|| pad(&[vec![1]], PadTo::MultipleOf(0))), "MultipleOf(0)"),
        (refusal(|| pad(&[vec![]], PadTo::Length(0))), "none of 1 sequences has an element"),
    ] {
        assert!(text.contains(expected), "{text}\nlacks\n{expected}");
    }
}

/// Sequences to the number that each adds up to on the device, its padding masked.
struct Sums(PadTo);

impl Batcher<usize, (usize, Vec<u32>)> for Sums {
    fn batch(&self, items: Vec<usize>, device: &Device) -> (usize, Vec<u32>) {
        let sequence =
            |&number: &usize| (0..number % 50 + 1).map(|at| ((number * 31 + at) as f32).sin()).collect::<Vec<f32>>();
        let padded = pad_sequences(&items.iter().map(sequence).collect::<Vec<_>>(), 1e9, self.0);
        let values = Tensor::<2>::from_data(padded.data(), device).mask_fill(padded.mask(device), 0.0);
        let sums = values.sum_dim(1).into_data().iter::<f32>().map(f32::to_bits).collect();
        (padded.length(), sums)
    }
}

/// With any number of workers, and, as the order of a sum does not depend on what follows, with any padding.
#[test]
fn padded_batches_are_the_same_with_any_number_of_workers() {
    let device = crate::deterministic_device();
    let load = |to, workers| {
        let builder = DataLoaderBuilder::new("train", Sums(to)).shuffle(5).batch_size(9).num_workers(workers);
        let batches = pass(&builder.set_device(device.clone()).build_pipeline(numbers(100)));
        batches.into_iter().unzip::<usize, Vec<u32>, Vec<_>, Vec<_>>()
    };
    let (lengths, sums) = load(PadTo::Longest, 0);
    for to in [PadTo::Longest, PadTo::MultipleOf(16), PadTo::Length(64)] {
        for workers in WORKERS {
            let padded = load(to, workers);
            assert_eq!(padded.1, sums, "{to:?}, {workers} workers");
            assert_eq!(padded.0 == lengths, to == PadTo::Longest);
        }
    }
}
