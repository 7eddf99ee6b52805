//! The orders of a loader: shuffled windows, weighted samples, and which of them are refused.

use crate::data::loader::{Collect, Numbers, WORKERS, numbers, pass};
use crate::data::stages::shards;
use crate::random::seeds::internal;
use burn::data::dataloader::DataLoader as _;
use burn_deterministic::RandomStream;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use rand::Rng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn builder() -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new("train", Collect).batch_size(7)
}

/// Fisher and Yates's shuffle, from the last place on.
fn shuffled(stream: &RandomStream, length: usize) -> Vec<usize> {
    let mut rng = stream.rng();
    let mut order: Vec<usize> = (0..length).collect();
    for last in (1..length).rev() {
        order.swap(last, ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize);
    }
    order
}

/// The documented order, computed once more.
fn windows(stream: &RandomStream, epoch: u64, first: usize, window: usize, length: usize) -> Vec<usize> {
    let stream = internal(stream, "shuffle_window").fork_index(epoch).fork_index(first as u64);
    let of_window = |number: usize| {
        let start = number * window;
        let order = shuffled(&stream.fork_index(number as u64), window.min(length - start));
        order.into_iter().map(move |sample| first + start + sample)
    };
    (0..length.div_ceil(window)).flat_map(of_window).collect()
}

#[test]
fn windows_are_shuffled_as_they_say() {
    let stream = RandomStream::from_seed(7).fork("of my data");
    for (length, window) in [(0, 3), (1, 1), (10, 1), (10, 3), (10, 10), (10, 11), (103, 20), (100, usize::MAX)] {
        for workers in WORKERS {
            let loader = builder().shuffle_window(stream.clone(), window).num_workers(workers).build(Numbers(length));
            for epoch in 0..2 {
                assert_eq!(pass(&loader).concat(), windows(&stream, epoch, 0, window.min(1000), length));
            }
        }
    }
    let slice = builder().shuffle_window(stream.clone(), 20).build(Numbers(103)).slice(30, 90);
    let order: Vec<usize> = slice.iter().flat_map(|batch| batch.expect("numbers")).collect();
    assert_eq!(order, windows(&stream, 0, 30, 20, 60));
}

/// A stream of one shard has the order of a dataset with the same items; of several, the shards are shuffled too.
#[test]
fn windows_of_a_stream_are_those_of_a_dataset() {
    let stream = RandomStream::from_seed(7);
    let one = || Pipeline::shards([103], |&length| Ok((0..length).map(Ok::<usize, String>)));
    for window in [1, 20, 103, 500] {
        for workers in WORKERS {
            let builder = || builder().shuffle_window(stream.clone(), window).num_workers(workers);
            let drawn = |samples: Pipeline<usize>| samples.augment(2, |number, rng| number ^ rng.next_u64() as usize);
            let expected = builder().build_pipeline(drawn(numbers(103)));
            let loader = builder().build_pipeline(drawn(one()));
            assert_eq!([pass(&loader), pass(&loader)], [pass(&expected), pass(&expected)]);

            let loader = builder().build_pipeline(shards());
            for epoch in 0..2 {
                let parts = [0..40, 40..40, 40..41, 41..95, 95..103];
                let order = shuffled(&internal(&stream, "shards").fork_index(epoch), parts.len());
                let read: Vec<usize> = order.into_iter().flat_map(|shard| parts[shard].clone()).collect();
                let expected = windows(&stream, epoch, 0, window, 103).into_iter().map(|sample| read[sample]);
                assert_eq!(pass(&loader).concat(), expected.collect::<Vec<usize>>());
            }
        }
    }
}

/// The documented draws, computed once more, with a search that is not binary.
#[test]
fn weighted_samples_are_drawn_as_they_say() {
    let stream = RandomStream::from_seed(7).fork("of my data");
    for weights in [
        vec![1.0],
        vec![0.0, 3.0, 0.0, 0.1, 0.7, 0.0],
        (0..100).map(|number| f64::from(number).sqrt()).collect(),
        vec![f64::MIN_POSITIVE / 8.0, f64::from_bits(1), 0.0],
        vec![0.0, 1e300, 1e300],
    ] {
        let total = weights.iter().sum::<f64>();
        for workers in WORKERS {
            let loader = builder().weighted(stream.clone(), weights.iter().copied(), 500).num_workers(workers);
            let loader = loader.build(Numbers(weights.len()));
            assert_eq!(loader.num_items(), 500);
            for epoch in 0..2 {
                let mut rng = internal(&stream, "weighted").fork_index(epoch).rng();
                let expected = (0..500).map(|_| {
                    let reached = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
                    let mut sum = 0.0;
                    let sample = weights.iter().position(|weight| {
                        sum += weight;
                        sum > reached
                    });
                    sample.expect("less than the total")
                });
                let drawn = pass(&loader).concat();
                assert_eq!(drawn, expected.collect::<Vec<usize>>(), "{weights:?}");
                assert!(drawn.iter().all(|&sample| weights[sample] > 0.0));
            }
        }
    }
}

/// What the seed 812 gives: the order of a window of eight samples, that of eight shards, and eight draws by weight.
const WINDOW: [usize; 8] = [5, 3, 2, 0, 4, 6, 7, 1];
const SHARDS: [usize; 8] = [4, 3, 6, 1, 0, 5, 2, 7];
const WEIGHTS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 8.0];
const DRAWS: [usize; 8] = [5, 5, 7, 7, 5, 1, 6, 5];

/// A resumed training depends on these. They were computed with another implementation of BLAKE3 and ChaCha.
#[test]
fn the_first_window_shards_and_draws_stay() {
    let builder = || DataLoaderBuilder::new("train", Collect).batch_size(8);
    assert_eq!(pass(&builder().shuffle_window(812, 8).build(Numbers(8))).concat(), WINDOW);
    assert_eq!(pass(&builder().weighted(812, WEIGHTS, 8).build(Numbers(8))).concat(), DRAWS);
    let shards = Pipeline::shards(0..8, |&shard| Ok(std::iter::once(Ok::<usize, String>(shard))));
    assert_eq!(pass(&builder().shuffle_window(812, 1).build_pipeline(shards)).concat(), SHARDS);
}

/// Each sample comes as often as its weight says, and each draw has random numbers of its own.
#[test]
fn weights_are_probabilities() {
    let weights = [1.0, 0.0, 2.0, 5.0, 2.0];
    let samples = numbers(5).augment(1, |number, rng| (number, rng.next_u64()));
    let loader = DataLoaderBuilder::new("train", Collect).batch_size(1000).weighted(3, weights, 40_000);
    let drawn = pass(&loader.build_pipeline(samples)).concat();
    let mut counts = BTreeMap::new();
    for (number, _) in &drawn {
        *counts.entry(*number).or_insert(0) += 1;
    }
    let expected = |number: usize| 4000.0 * weights[number];
    let chi_square: f64 =
        counts.iter().map(|(&number, &count)| (f64::from(count) - expected(number)).powi(2) / expected(number)).sum();
    assert_eq!(counts.len(), 4);
    // The 0.999 quantile with 3 degrees of freedom.
    assert!(chi_square < 16.27, "{chi_square}");
    let mut numbers: Vec<u64> = drawn.iter().map(|&(_, number)| number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), drawn.len());
}

/// The text of the panic that `body` has.
pub fn refusal(body: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(body)).expect_err("it is refused");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .expect("text")
}

#[test]
fn what_is_no_order_is_refused() {
    let weighted = |weights: &[f64]| drop(builder().weighted(1, weights.iter().copied(), 5));
    let stream = |builder: DataLoaderBuilder<usize, Vec<usize>>| drop(builder.build_pipeline(shards()));
    for (text, expected) in [
        (refusal(|| weighted(&[1.0, -0.5])), "the weight of sample 1 is -0.5"),
        (refusal(|| weighted(&[f64::NAN])), "the weight of sample 0 is NaN"),
        (refusal(|| weighted(&[f64::INFINITY])), "the weight of sample 0 is inf"),
        (refusal(|| weighted(&[0.0, 0.0])), "the sum of the 2 weights is 0"),
        (refusal(|| weighted(&[])), "the sum of the 0 weights is 0"),
        (refusal(|| weighted(&[f64::MAX, f64::MAX])), "the sum of the 2 weights is inf"),
        (refusal(|| drop(builder().weighted(1, [1.0], 0))), "draws 0 samples"),
        (refusal(|| drop(builder().weighted(1, [1.0; 9], 5).build(Numbers(10)))), "9 weights for 10 samples"),
        (refusal(|| drop(builder().weighted(1, [1.0; 10], 5).build(Numbers(10)).slice(0, 5))), "SingleDevice"),
        (refusal(|| drop(builder().build_pipeline(shards()).slice(0, 5))), "SingleDevice"),
        (refusal(|| drop(builder().shuffle_window(1, 0))), "at least one sample"),
        (
            refusal(|| drop(builder().shuffle(1).weighted(1, [1.0], 5))),
            "`weighted` of a loader that has an order by `shuffle`",
        ),
        (refusal(|| drop(builder().weighted(1, [1.0], 5).shuffle_window(1, 2))), "`shuffle_window` of a loader"),
        (refusal(|| drop(builder().shuffle_window(1, 2).shuffle(1))), "`shuffle` of a loader"),
        (refusal(|| stream(builder().shuffle(1))), "use `shuffle_window`"),
        (refusal(|| stream(builder().weighted(1, [1.0], 1))), "`weighted` of a stream"),
    ] {
        assert!(text.contains(expected), "{text}\nlacks\n{expected}");
    }
}
