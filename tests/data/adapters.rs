//! What rearranges a pipeline's samples: `take`, `skip`, `repeat` and `zip`.

use crate::data::loader::{Collect, WORKERS, failing, numbers, pass};
use crate::data::sampling::refusal;
use crate::data::stages::shards;
use crate::random::seeds::internal;
use burn::data::dataloader::DataLoader as _;
use burn_deterministic::RandomStream;
use burn_deterministic::data::{DataLoaderBuilder, LoadError, Pipeline};
use rand::Rng;

/// The samples of a pipeline, in its order.
fn samples<I: Send + 'static>(pipeline: Pipeline<I>) -> Vec<I> {
    let loader = DataLoaderBuilder::new("train", Collect).batch_size(3).num_workers(2).build_pipeline(pipeline);
    let items = loader.num_items();
    let samples = pass(&loader).concat_all();
    assert_eq!(samples.len(), items);
    samples
}

trait ConcatAll<I> {
    fn concat_all(self) -> Vec<I>;
}

impl<I> ConcatAll<I> for Vec<Vec<I>> {
    fn concat_all(self) -> Vec<I> {
        self.into_iter().flatten().collect()
    }
}

/// As those of an iterator, which knows them by their place.
#[test]
fn samples_are_rearranged_as_an_iterators_items() {
    for length in [0, 1, 2, 7, 30] {
        for n in [0, 1, 6, 7, 8, usize::MAX] {
            assert_eq!(samples(numbers(length).take(n)), (0..length).take(n).collect::<Vec<_>>());
            assert_eq!(samples(numbers(length).skip(n)), (0..length).skip(n).collect::<Vec<_>>());
            let both = samples(numbers(length).map(|number| 2 * number).skip(n).take(3).repeat(2));
            let expected: Vec<usize> = (0..length).map(|number| 2 * number).skip(n).take(3).collect();
            assert_eq!(both, expected.repeat(2));
        }
        for times in [0, 1, 3] {
            assert_eq!(samples(numbers(length).repeat(times)), (0..length).collect::<Vec<_>>().repeat(times));
        }
        let pairs = samples(numbers(length).zip(numbers(2 * length).skip(length).map(|number| number as f32)));
        assert_eq!(pairs, (0..length).zip((length..2 * length).map(|number| number as f32)).collect::<Vec<_>>());
    }
}

/// Wherever a repetition stands, each has numbers of its own: those of the index in the whole pipeline.
#[test]
fn a_repeated_sample_draws_other_numbers() {
    let stream = RandomStream::from_seed(4);
    let number = |function, sample| {
        let stream = internal(&stream, "augment").fork_index(function).fork("train").fork_index(0);
        stream.fork_index(sample).rng().next_u64()
    };
    let draws = |samples: Pipeline<usize>| samples.augment(stream.clone(), |_, rng| rng.next_u64());
    assert_eq!(
        samples(draws(numbers(5)).skip(2).repeat(2)),
        (0..6).map(|sample| number(0, sample)).collect::<Vec<_>>()
    );
    assert_eq!(
        samples(draws(numbers(5).skip(2).repeat(2))),
        (0..6).map(|sample| number(2, sample)).collect::<Vec<_>>()
    );
}

/// Functions of one place and one seed draw alike in both, and a function after them as none of theirs.
#[test]
fn zipped_pipelines_draw_alike() {
    let draws = |samples: Pipeline<usize>| samples.augment(4, |_, rng| rng.next_u64());
    let pairs = samples(draws(numbers(20)).zip(draws(numbers(20))));
    assert!(pairs.iter().all(|(one, other)| one == other));
    let long = draws(numbers(20)).augment(4, |first, rng| [first, rng.next_u64()]);
    let long = long.augment(4, |[first, second], rng| [first, second, rng.next_u64()]);
    let after = draws(numbers(20)).zip(long).augment(4, |(one, three), rng| (one, three, rng.next_u64()));
    for (one, [first, second, third], after) in samples(after) {
        assert_eq!(one, first);
        assert!(![first, second, third].contains(&after) && first != second && second != third);
    }
}

#[test]
fn a_failure_names_the_side_of_a_zip() {
    let culprit = |number: usize| {
        assert!(number != 7, "seven again");
        number
    };
    for (samples, expected) in [
        (numbers(9).map(culprit).zip(numbers(9)), "`map` (function 0 of the pipeline)"),
        (numbers(9).zip(numbers(9).map(|number| number).map(culprit)), "`map` (function 1 of the zipped pipeline)"),
        (
            numbers(9).zip(numbers(9)).map(move |(one, other)| (culprit(one), other)),
            "`map` (function 1 of the pipeline)",
        ),
    ] {
        for workers in WORKERS {
            let builder = DataLoaderBuilder::new("train", Collect).batch_size(2).num_workers(workers);
            let (loaded, error) = failing(&builder.build_pipeline(samples.clone()));
            assert_eq!(loaded.len(), 3);
            let LoadError::Sample { sample: 7, stage, .. } = &error else { panic!("{error}") };
            assert_eq!(stage, expected);
        }
    }
}

#[test]
fn samples_without_an_index_are_not_rearranged() {
    let filtered = || numbers(9).filter(|_| true);
    for (text, expected) in [
        (refusal(|| drop(filtered().take(3))), "`take` of a pipeline with a `filter`"),
        (refusal(|| drop(filtered().skip(3))), "`skip` of a pipeline with a `filter`"),
        (refusal(|| drop(filtered().repeat(3))), "`repeat` of a pipeline with a `filter`"),
        (refusal(|| drop(filtered().zip(numbers(9)))), "`zip` of a pipeline with a `filter`"),
        (refusal(|| drop(numbers(9).zip(filtered()))), "`zip` of a pipeline with a `filter`"),
        (refusal(|| drop(shards().take(3))), "`take` of a stream"),
        (refusal(|| drop(numbers(103).zip(shards()))), "`zip` of a stream"),
        (refusal(|| drop(numbers(5).zip(numbers(4)))), "`zip` of 5 samples with 4"),
        (refusal(|| drop(numbers(5).repeat(usize::MAX))), "more than can be counted"),
    ] {
        assert!(text.contains(expected), "{text}\nlacks\n{expected}");
    }
}
