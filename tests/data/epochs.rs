//! Where an epoch ends, and which comes next: `drop_last` and `fixed_epoch`.

use crate::data::loader::{Collect, Numbers, WORKERS, at, failing, numbers, pass};
use crate::data::stages::shards;
use burn::data::dataloader::batcher::Batcher;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::data::{DataLoaderBuilder, LoadError, Pipeline};
use burn_deterministic::set_random_seed;
use std::convert::Infallible;

#[test]
fn what_is_left_of_an_epoch_is_in_no_batch() {
    for (length, batch_size) in
        [(0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (64, 8), (65, 8), (127, 1), (200, 150), (9, 100)]
    {
        let expected: Vec<Vec<usize>> =
            (0..length).collect::<Vec<_>>().chunks_exact(batch_size).map(<[usize]>::to_vec).collect();
        for workers in WORKERS {
            let stream = Pipeline::shards([length], |&length| Ok((0..length).map(Ok::<usize, Infallible>)));
            let every_third = numbers(3 * length).filter(|number| number % 3 == 0).map(|number| number / 3);
            for samples in [numbers(length), numbers(length).filter(|_| true), every_third, stream] {
                let builder = DataLoaderBuilder::new("train", Collect).batch_size(batch_size).num_workers(workers);
                let loader = builder.drop_last(true).build_pipeline(samples);
                assert_eq!(pass(&loader), expected, "{length} in batches of {batch_size}, {workers} workers");
                assert_eq!(at(&loader), if expected.is_empty() { (0, 0) } else { (1, 0) });
                loader.start_at(4, expected.len() + 2);
                let error = LoadError::Position { epoch: 4, batch: expected.len() + 2, batches: expected.len() };
                assert_eq!(failing(&loader), (Vec::new(), error));
            }
        }
    }
}

/// A sample that fails behind the last full batch is made where a filter has to look for the end, and nowhere else.
#[test]
fn a_failure_behind_the_last_full_batch() {
    let culprit = |number: usize| {
        assert!(number != 9, "nine is not to my taste");
        number
    };
    for workers in WORKERS {
        let builder = || DataLoaderBuilder::new("train", Collect).batch_size(4).num_workers(workers).drop_last(true);
        assert_eq!(pass(&builder().build_pipeline(numbers(10).map(culprit))).concat(), (0..8).collect::<Vec<_>>());
        let (loaded, error) = failing(&builder().build_pipeline(numbers(10).map(culprit).filter(|_| true)));
        assert_eq!(loaded.concat(), (0..8).collect::<Vec<_>>());
        assert!(matches!(error, LoadError::Sample { sample: 9, .. }), "{error}");
    }
}

struct Noise;

impl Batcher<usize, (Vec<usize>, TensorData)> for Noise {
    fn batch(&self, items: Vec<usize>, device: &Device) -> (Vec<usize>, TensorData) {
        let noise = Tensor::<1>::random([items.len()], Distribution::Default, device).into_data();
        (items, noise)
    }
}

/// The order, what augmentations draw and what the batcher draws.
#[test]
fn each_pass_of_a_fixed_epoch_is_the_same() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    for workers in WORKERS {
        let samples = || numbers(50).augment(3, |number, rng| number + 50 * (rand::Rng::next_u32(rng) as usize % 9));
        let builder = || {
            DataLoaderBuilder::new("valid", Noise)
                .shuffle(5)
                .batch_size(8)
                .num_workers(workers)
                .set_device(device.clone())
        };
        let epochs = builder().build_pipeline(samples());
        let epochs = [pass(&epochs), pass(&epochs)];
        assert_ne!(epochs[0], epochs[1]);
        let fixed = builder().fixed_epoch().build_pipeline(samples());
        for _ in 0..3 {
            assert_eq!(pass(&fixed), epochs[0]);
            assert_eq!(at(&fixed), (0, 0));
        }
        let mut batches = fixed.batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        assert_eq!(at(&fixed), (0, 1));
        drop(batches);
        assert_eq!(pass(&fixed), epochs[0], "a pass that was left half way is over");
        fixed.start_at(1, 2);
        assert_eq!(pass(&fixed), epochs[1][2..]);
        assert_eq!(pass(&fixed), epochs[1], "the epoch that `start_at` says");
    }
}

#[test]
fn a_slice_of_a_fixed_epoch_is_fixed() {
    use burn::data::dataloader::DataLoader as _;
    let loader = DataLoaderBuilder::new("valid", Collect).shuffle(5).batch_size(8).fixed_epoch().build(Numbers(50));
    let slice = loader.slice(10, 40);
    let load = || slice.iter().flat_map(|batch| batch.expect("numbers")).collect::<Vec<usize>>();
    assert_eq!(load(), load());
}

/// Nobody knows the length of a stream before its end.
#[test]
fn the_progress_of_a_stream_has_one_item_more() {
    use burn::data::dataloader::DataLoader as _;
    let loader = DataLoaderBuilder::new("train", Collect).batch_size(50).build_pipeline(shards());
    assert_eq!(loader.num_items(), 0);
    let mut batches = loader.batches();
    let mut progress = vec![];
    while batches.next().is_some_and(|batch| batch.is_ok()) {
        progress.push((batches.progress().items_processed, batches.progress().items_total));
    }
    assert_eq!(progress, [(50, 51), (100, 101), (103, 103)]);
}
