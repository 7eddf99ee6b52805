//! Every stage of a loader: the same batches with any number of workers, and from any position.

use crate::data::loader::{Collect, Numbers, WORKERS, at, dawdle, failing, numbers, pass};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::transform::{SamplerDataset, SamplerDatasetOptions};
use burn::prelude::*;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, Interleaved, LoadError, PadTo, Pipeline, pad_sequences};
use rand::{Rng, RngExt};
use std::convert::Infallible;
use std::sync::Arc;

/// A number of the dataset, and one that was drawn for it.
pub type Sample = (usize, u64);
pub type Loader = Arc<DataLoader<Sample, Vec<Sample>>>;

/// What a stage is of, by its name.
pub const STAGES: [&str; 18] = [
    "drop_last",
    "drop_last_filter",
    "fixed_epoch",
    "fixed_epoch_stream",
    "interleaved",
    "take_skip_repeat",
    "repeat_filter",
    "zip",
    "shuffle_window",
    "shuffle_window_filter",
    "weighted",
    "weighted_filter",
    "padded",
    "stream",
    "stream_drop_last",
    "stream_drop_last_filter",
    "stream_shuffle_window",
    "stream_filter",
];

/// A loader with the stage of that name, whose samples take up to `longest` microseconds each.
pub fn loader(stage: &str, workers: usize, longest: u64) -> Loader {
    let builder = || DataLoaderBuilder::new("train", Collect).batch_size(8).num_workers(workers);
    let drawn = move |samples: Pipeline<usize>| {
        samples.augment(4, move |number, rng| {
            dawdle(longest);
            (number, rng.next_u64())
        })
    };
    // 12 of 103 are left out, and 91 are no multiple of the batch size.
    let keep = |&(number, _): &Sample| number % 9 != 3;
    match stage {
        "drop_last" => builder().shuffle(9).drop_last(true).build_pipeline(drawn(numbers(103))),
        "drop_last_filter" => builder().shuffle(9).drop_last(true).build_pipeline(drawn(numbers(103)).filter(keep)),
        "fixed_epoch" => builder().shuffle(9).fixed_epoch().build_pipeline(drawn(numbers(103))),
        "fixed_epoch_stream" => builder().shuffle_window(9, 20).fixed_epoch().build_pipeline(drawn(shards())),
        "interleaved" => {
            let datasets = [Numbers(40), Numbers(0), Numbers(1), Numbers(62)];
            let samples = Pipeline::new(Interleaved::new(datasets)).map(|number| number);
            builder().shuffle(9).build_pipeline(drawn(samples))
        }
        "take_skip_repeat" => {
            let samples = drawn(numbers(103)).skip(5).take(31).repeat(3);
            builder().shuffle(9).build_pipeline(samples)
        }
        "repeat_filter" => builder().build_pipeline(drawn(numbers(31).repeat(3)).filter(keep)),
        "zip" => {
            let samples = drawn(numbers(103)).zip(drawn(numbers(206).skip(103)));
            builder().shuffle(9).build_pipeline(samples.map(|(one, other)| (one.0 + other.0, one.1 ^ (other.1 << 1))))
        }
        "shuffle_window" => builder().shuffle_window(9, 20).build_pipeline(drawn(numbers(103))),
        "shuffle_window_filter" => builder().shuffle_window(9, 20).build_pipeline(drawn(numbers(103)).filter(keep)),
        "weighted" => {
            let weights = (0..103).map(|number| f64::from(number % 5));
            builder().weighted(9, weights, 99).build_pipeline(drawn(numbers(103)))
        }
        "weighted_filter" => {
            let weights = (0..103).map(|number| f64::from(number % 5));
            builder().weighted(9, weights, 99).build_pipeline(drawn(numbers(103)).filter(keep))
        }
        "padded" => {
            let builder = DataLoaderBuilder::new("train", Pads).shuffle(9).batch_size(8).num_workers(workers);
            builder.build_pipeline(drawn(numbers(103)))
        }
        "stream" => builder().build_pipeline(drawn(shards())),
        "stream_drop_last" => builder().drop_last(true).build_pipeline(drawn(shards())),
        "stream_drop_last_filter" => {
            builder().drop_last(true).build_pipeline(drawn(shards()).filter(|&(number, _)| number % 9 > 1))
        }
        "stream_shuffle_window" => builder().shuffle_window(9, 20).build_pipeline(drawn(shards())),
        "stream_filter" => builder().shuffle_window(9, 20).build_pipeline(drawn(shards()).filter(keep)),
        unknown => panic!("no stage {unknown}"),
    }
}

/// Sequences of the drawn numbers, padded.
struct Pads;

impl Batcher<Sample, Vec<Sample>> for Pads {
    fn batch(&self, items: Vec<Sample>, _device: &Device) -> Vec<Sample> {
        let sequences: Vec<Vec<u64>> = items.iter().map(|&(number, drawn)| vec![drawn; number % 6 + 1]).collect();
        let padded = pad_sequences(&sequences, 0, PadTo::MultipleOf(4));
        padded
            .values()
            .chunks(padded.length())
            .zip(padded.lengths())
            .map(|(row, &own)| (own, row[0] ^ row[3]))
            .collect()
    }
}

/// The numbers below 103, in shards of unequal lengths.
pub fn shards() -> Pipeline<usize> {
    let shards = [0..40, 40..40, 40..41, 41..95, 95..103];
    Pipeline::shards(shards, |shard| Ok(shard.clone().map(Ok::<usize, Infallible>)))
}

#[test]
fn every_stage_loads_the_same_with_any_number_of_workers() {
    for stage in STAGES {
        let load = |workers, longest| {
            let loader = loader(stage, workers, longest);
            [pass(&loader), pass(&loader), pass(&loader)]
        };
        let alone = load(0, 0);
        assert!(alone[0].len() > 5, "{stage}: batches to compare");
        for workers in WORKERS {
            for _ in 0..3 {
                assert_eq!(load(workers, 200), alone, "{stage}, {workers} workers");
            }
        }
    }
}

#[test]
fn every_stage_resumes_at_any_batch() {
    for stage in STAGES {
        let whole = loader(stage, 0, 0);
        let epochs = [pass(&whole), pass(&whole)];
        let fixed = stage.starts_with("fixed_epoch");
        assert_eq!(epochs[0] == epochs[1], fixed, "{stage}");
        for workers in WORKERS {
            // A fixed epoch that is started at another is fixed there.
            for (epoch, batches) in epochs.iter().enumerate().take(if fixed { 1 } else { 2 }) {
                for batch in 0..batches.len() {
                    let resumed = loader(stage, workers, 0);
                    whole.start_at(epoch, batch);
                    resumed.resume_at(&whole.position()).expect("a loader that is built alike");
                    assert_eq!(pass(&resumed), batches[batch..], "{stage}, {workers} workers, batch {batch}");
                    let next = if fixed { epoch } else { epoch + 1 };
                    assert_eq!(at(&resumed), (next, 0));
                    if epoch == 0 {
                        assert_eq!(pass(&resumed), epochs[1], "{stage}: the next pass is whole");
                    }
                }
                for batch in [batches.len(), batches.len() + 1, usize::MAX / 16, usize::MAX / 8, usize::MAX] {
                    let resumed = loader(stage, workers, 0);
                    resumed.start_at(epoch, batch);
                    let (loaded, error) = failing(&resumed);
                    assert!(loaded.is_empty());
                    assert_eq!(error, LoadError::Position { epoch, batch, batches: batches.len() }, "{stage}");
                }
            }
        }
    }
}

/// burn-train takes in its last accumulated gradients when the progress is complete.
#[test]
fn every_stage_tells_its_last_batch() {
    for stage in STAGES {
        for workers in WORKERS {
            let loader = loader(stage, workers, 0);
            let count = pass(&loader).len();
            let mut batches = loader.batches();
            for batch in 1..=count {
                assert!(!batches.progress().is_completed(), "{stage}, before batch {batch}");
                assert!(batches.next().is_some_and(|batch| batch.is_ok()));
            }
            assert!(batches.progress().is_completed(), "{stage}");
            assert!(batches.next().is_none() && batches.progress().is_completed());
        }
    }
}

/// Two loaders whose stages differ have other positions.
#[test]
fn no_stage_takes_the_position_of_another() {
    for stage in STAGES {
        let position = loader(stage, 0, 0).position();
        for other in STAGES {
            let resumed = loader(other, 2, 0).resume_at(&position);
            assert_eq!(resumed.is_ok(), stage == other, "the position of {stage} for {other}");
        }
    }
}

/// The hazard of a sampler that is consumed: Burn's draws in the order in which samples are asked for.
#[test]
fn burns_sampler_draws_other_samples_with_other_workers() {
    let load = |workers| {
        let dataset = SamplerDataset::new(
            crate::data::loader::Numbers(200),
            SamplerDatasetOptions::default().with_replacement().with_fixed_size(200).with_seed(9),
        );
        let samples = Pipeline::new(dataset).map(|number: usize| {
            dawdle(rand::rng().random_range(1..200));
            number
        });
        pass(&DataLoaderBuilder::new("train", Collect).batch_size(4).num_workers(workers).build_pipeline(samples))
    };
    assert_eq!(load(0), load(0));
    assert_ne!(load(0), load(8));
}
