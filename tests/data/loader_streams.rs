//! What the data loader draws from: streams of its own, and others for each loader.

use crate::data::loader::{Collect, Numbers, numbers, pass};
use crate::random::seeds::internal;
use burn_deterministic::RandomStream;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder};
use rand::Rng;
use std::sync::Arc;

/// The first order of eight samples under the seed 812, and what the second function of a pipeline draws for them in the
/// loader "train" (the high halves).
const ORDER: [usize; 8] = [5, 1, 6, 0, 2, 7, 4, 3];
const NUMBERS: [u32; 8] = [
    800_372_263,
    1_785_984_739,
    2_139_159_624,
    3_797_549_615,
    2_458_297_741,
    2_255_589_634,
    358_908_233,
    3_052_999_667,
];

/// A number of the dataset, and one that was drawn for it.
type Sample = (usize, u64);

/// A loader of eight samples, each a number of the dataset and one that was drawn for it, in a batch.
fn drawn(name: &str, stream: impl Into<RandomStream>) -> Arc<DataLoader<Sample, Vec<Sample>>> {
    let stream = stream.into();
    let samples = numbers(8).map(|number| number).augment(stream.clone(), |number, rng| (number, rng.next_u64()));
    DataLoaderBuilder::new(name, Collect).shuffle(stream).batch_size(8).build_pipeline(samples)
}

/// The order and the numbers that a stream gives to an epoch of `length` samples.
fn expected(shuffle: &RandomStream, augment: &RandomStream, epoch: u64, length: usize) -> Vec<(usize, u64)> {
    let mut rng = shuffle.fork_index(epoch).fork_index(0).rng();
    let mut order: Vec<usize> = (0..length).collect();
    for last in (1..length).rev() {
        order.swap(last, ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize);
    }
    let number = |sample: usize| augment.fork_index(epoch).fork_index(sample as u64).rng().next_u64();
    order.into_iter().map(|sample| (sample, number(sample))).collect()
}

/// The documented order and numbers, computed once more.
#[test]
fn shuffles_and_augmentations_draw_what_they_say() {
    let stream = RandomStream::from_seed(7).fork("of my data");
    let samples = numbers(300)
        .map(|number| number)
        .augment(stream.clone(), |number, rng| (number, rng.next_u64()))
        .filter(|_| true);
    let builder = DataLoaderBuilder::new("Bücher", Collect).shuffle(stream.clone()).batch_size(300);
    let loader = builder.build_pipeline(samples);
    let (shuffle, augment) = (internal(&stream, "shuffle"), internal(&stream, "augment").fork_index(1).fork("Bücher"));
    for epoch in 0..2 {
        assert_eq!(pass(&loader).concat(), expected(&shuffle, &augment, epoch, 300));
    }
}

/// A resumed training depends on these. They were computed with another implementation of BLAKE3 and ChaCha.
#[test]
fn the_first_order_and_numbers_stay() {
    let samples = pass(&drawn("train", 812)).concat();
    let (order, mut numbers): (Vec<usize>, Vec<(usize, u64)>) =
        samples.iter().map(|&sample| (sample.0, sample)).unzip();
    numbers.sort_unstable();
    assert_eq!(order, ORDER);
    assert_eq!(numbers.iter().map(|(_, number)| (number >> 32) as u32).collect::<Vec<u32>>(), NUMBERS);
}

/// A program may call a stream of its own as it likes.
#[test]
fn no_fork_of_a_program_is_one_of_the_loader() {
    let stream = RandomStream::from_seed(812);
    let load = pass(&drawn("train", stream.clone())).concat();
    for name in ["shuffle", "map", "augment"] {
        let forked = stream.fork(name);
        let [plain, placed] = [forked.clone(), forked.fork_index(1)];
        for augment in [plain.fork("train"), placed.fork("train"), plain.clone(), placed] {
            let mine = expected(&forked, &augment, 0, 8);
            assert!(mine.iter().zip(&load).any(|(mine, its)| mine.0 != its.0), "the order of {name:?}");
            assert!(
                mine.iter().all(|(_, number)| load.iter().all(|(_, drawn)| drawn != number)),
                "numbers of {name:?}"
            );
        }
    }
}

/// Training and validation, say. Which of them is made first, and whether there is another, makes no difference.
#[test]
fn loaders_of_one_seed_draw_by_their_names() {
    let numbers_of = |name: &str| {
        let mut samples = pass(&drawn(name, 812)).concat();
        samples.sort_unstable();
        samples
    };
    let train = numbers_of("train");
    for other in ["valid", "", "trai", "trainn", "Train"] {
        let other = numbers_of(other);
        assert!(train.iter().all(|(_, number)| other.iter().all(|(_, drawn)| drawn != number)));
    }
    assert_eq!(numbers_of("train"), train);
}

/// Samples that belong together stay together.
#[test]
fn loaders_of_one_seed_have_one_order() {
    let order = |name: &str, seed: u64| {
        let loader = DataLoaderBuilder::new(name, Collect).shuffle(seed).batch_size(20).build(Numbers(100));
        [pass(&loader), pass(&loader)]
    };
    assert_eq!(order("images", 3), order("labels", 3));
    assert_ne!(order("images", 3), order("images", 4));
}
