//! The data loader: the same batches for any number of workers and any timing.

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader as BurnDataLoader, DataLoaderBuilder as BurnBuilder};
use burn::data::dataset::{Dataset, DatasetError, InMemDataset};
use burn::prelude::*;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, Interleaved, LoadError, Pipeline, Position};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Numbers of workers that must all load the same.
pub const WORKERS: [usize; 4] = [0, 1, 2, 8];

/// The samples as they are, for tests that need no device.
#[derive(Clone)]
pub struct Collect;

impl<I> Batcher<I, Vec<I>> for Collect {
    fn batch(&self, items: Vec<I>, _device: &Device) -> Vec<I> {
        items
    }
}

/// The numbers below a length.
pub struct Numbers(pub usize);

impl Dataset<usize> for Numbers {
    fn get(&self, index: usize) -> Result<usize, DatasetError> {
        assert!(index < self.0, "no number {index}");
        Ok(index)
    }

    fn len(&self) -> usize {
        self.0
    }
}

pub fn numbers(length: usize) -> Pipeline<usize> {
    Pipeline::new(Numbers(length))
}

/// Waits for up to `longest` microseconds, which no seed decides.
pub fn dawdle(longest: u64) {
    thread::sleep(Duration::from_micros(rand::rng().random_range(0..=longest)));
}

/// The batches of a pass, which must have no error.
pub fn pass<I: Send + 'static, O: Send + 'static>(loader: &DataLoader<I, O>) -> Vec<O> {
    loader.batches().map(|batch| batch.expect("nothing fails here")).collect()
}

/// The epoch and the batch that a loader has come to.
pub fn at<I: 'static, O>(loader: &DataLoader<I, O>) -> (usize, usize) {
    let Position { epoch, batch, .. } = loader.position();
    (epoch, batch)
}

/// The batches of a pass up to an error, after which there must be nothing.
pub fn failing<I: Send + 'static, O: Send + 'static>(loader: &DataLoader<I, O>) -> (Vec<O>, LoadError) {
    let mut batches = loader.batches();
    let mut loaded = Vec::new();
    loop {
        match batches.next().expect("the error comes before the end") {
            Ok(batch) => loaded.push(batch),
            Err(error) => {
                assert!(batches.next().is_none() && batches.next().is_none(), "a batch after {error}");
                return (loaded, error);
            }
        }
    }
}

/// Samples that are mapped, augmented twice with one seed and filtered, and take their time.
pub fn eventful(length: usize, longest: u64) -> Pipeline<(usize, u64, u64)> {
    numbers(length)
        .map(|number| (number, 3 * number as u64))
        .augment(812, |(number, value), rng| (number, value, rng.next_u64()))
        .filter(move |(number, ..)| {
            dawdle(longest);
            number % 7 != 3 && number % 97 < 60
        })
        .augment(812, |(number, value, first), rng| (number, value ^ first, rng.random::<u64>()))
}

#[test]
fn any_number_of_workers_loads_the_same() {
    for (length, batch_size, prefetch) in
        [(0, 3, 1), (1, 3, 0), (97, 1, 2), (128, 8, 0), (257, 10, 1), (255, 64, 3), (300, 100, 2), (129, 130, 2)]
    {
        let load = |workers| {
            let loader = DataLoaderBuilder::new("train", Collect)
                .shuffle(5)
                .batch_size(batch_size)
                .num_workers(workers)
                .prefetch(prefetch)
                .build_pipeline(eventful(length, if workers == 0 { 0 } else { 100 }));
            [pass(&loader), pass(&loader)]
        };
        let alone = load(0);
        for workers in WORKERS {
            assert_eq!(load(workers), alone, "{workers} workers, {length} samples in batches of {batch_size}");
        }
    }
}

/// Without it the test above could pass for want of anything to go wrong.
#[test]
fn burns_loader_loads_other_batches_with_other_workers() {
    let load = |workers| {
        let loader = BurnBuilder::new(Collect).shuffle(5).batch_size(10).num_workers(workers).build(Numbers(257));
        loader.iter().map(|batch| batch.expect("numbers")).collect::<Vec<Vec<usize>>>()
    };
    assert_ne!(load(0), load(1));
    assert_ne!(load(1), load(2));
}

/// One sample is slow, and all others have been made when it is.
#[test]
fn a_slow_worker_reorders_nothing() {
    for slow in [0, 31, 40] {
        let samples = numbers(64).map(move |number| {
            if number == slow {
                thread::sleep(Duration::from_millis(100));
            }
            number
        });
        let loader =
            DataLoaderBuilder::new("train", Collect).batch_size(4).num_workers(8).prefetch(20).build_pipeline(samples);
        assert_eq!(pass(&loader).concat(), (0..64).collect::<Vec<usize>>());
    }
}

#[test]
fn a_filter_leaves_full_batches_in_order() {
    for length in [0, 1, 2, 63, 64, 65, 300] {
        for (batch_size, keep) in [(1, 3), (5, 2), (64, 2), (65, 3), (400, 2), (4, 1), (7, 1000)] {
            let expected: Vec<usize> = (0..length).filter(|number| number % keep == 0).collect();
            let expected: Vec<Vec<usize>> = expected.chunks(batch_size).map(<[usize]>::to_vec).collect();
            for workers in [0, 2] {
                let samples = numbers(length).filter(move |number| number % keep == 0);
                let builder = DataLoaderBuilder::new("train", Collect).batch_size(batch_size).num_workers(workers);
                assert_eq!(pass(&builder.build_pipeline(samples)), expected);
            }
        }
    }
}

#[test]
fn each_epoch_has_an_order_and_random_numbers_of_its_own() {
    let samples = || numbers(100).augment(1, |number, rng| (number, rng.next_u32()));
    let loader = DataLoaderBuilder::new("train", Collect).shuffle(2).batch_size(100).build_pipeline(samples());
    let epochs = [(); 3].map(|()| pass(&loader).concat());
    for (epoch, other) in [(0, 1), (0, 2), (1, 2)] {
        let numbers = |epoch: usize| epochs[epoch].iter().map(|&(number, _)| number).collect::<Vec<_>>();
        assert_ne!(numbers(epoch), numbers(other));
        let sorted = |epoch: usize| {
            let mut samples = epochs[epoch].clone();
            samples.sort();
            samples
        };
        assert!(sorted(epoch).iter().map(|&(number, _)| number).eq(0..100), "every sample once");
        let equal = sorted(epoch).iter().zip(sorted(other)).filter(|(one, other)| **one == *other).count();
        assert_eq!(equal, 0, "no sample draws the same in two epochs");
    }
    // The numbers are the sample's, wherever the shuffle has put it.
    let unshuffled = DataLoaderBuilder::new("train", Collect).batch_size(7).num_workers(2).build_pipeline(samples());
    let mut first = epochs[0].clone();
    first.sort();
    assert_eq!(pass(&unshuffled).concat(), first);
}

/// 4! orders: each turns up as often as it should.
#[test]
fn shuffles_are_uniform() {
    let loader = DataLoaderBuilder::new("train", Collect).shuffle(3).batch_size(4).build(Numbers(4));
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..4800 {
        *counts.entry(pass(&loader).concat()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 24);
    let chi_square: f64 = counts.values().map(|&count| f64::from(count - 200).powi(2) / 200.0).sum();
    // The 0.999 quantile with 23 degrees of freedom.
    assert!(chi_square < 49.73, "{chi_square}");
}

#[test]
fn a_panic_or_an_error_names_the_sample() {
    struct Flaky;
    impl Dataset<usize> for Flaky {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            match index {
                70 => Err(DatasetError::new(std::io::Error::other("the disk is gone"))),
                _ => Ok(index),
            }
        }
        fn len(&self) -> usize {
            100
        }
    }
    let culprit = |number: &usize| assert!(*number != 70, "seventy again");
    let cases: [(Pipeline<usize>, &[&str]); 5] = [
        (Pipeline::new(Flaky), &["the dataset", "sample 70 ", "epoch 1", "the disk is gone"]),
        (
            numbers(100).map(move |number| (culprit(&number), number).1),
            &["`map` (function 0", "sample 70 ", "epoch 1", "seventy again"],
        ),
        (
            numbers(100).map(|number| number).augment(1, move |number, _| (culprit(&number), number).1),
            &["`augment` (function 1", "sample 70 ", "epoch 1", "seventy again"],
        ),
        (
            numbers(100).filter(move |number| (culprit(number), true).1),
            &["`filter` (function 0", "sample 70 ", "epoch 1", "seventy again"],
        ),
        (
            Interleaved::new([Numbers(100)]).into_broken(),
            &["the dataset panicked", "sample 70 ", "epoch 1", "no number"],
        ),
    ];
    for (samples, expected) in cases {
        for workers in WORKERS {
            let builder = DataLoaderBuilder::new("train", Collect).batch_size(3).num_workers(workers);
            let loader = builder.build_pipeline(samples.clone());
            loader.start_at(1, 2);
            let (loaded, error) = failing(&loader);
            // Batch 23 would have had it.
            assert_eq!(loaded.concat(), (6..69).collect::<Vec<usize>>());
            assert_eq!(at(&loader), (1, 23));
            let text = error.to_string();
            assert!(expected.iter().all(|part| text.contains(part)), "{text}");

            loader.start_at(1, 23);
            let same = loader.iter().next().expect("the error").expect_err("as before");
            assert_eq!(same.to_string(), text, "through Burn's trait");
        }
    }
}

trait IntoBroken {
    fn into_broken(self) -> Pipeline<usize>;
}

impl IntoBroken for Interleaved<Numbers> {
    /// A dataset that panics at 70.
    fn into_broken(self) -> Pipeline<usize> {
        struct Broken(Interleaved<Numbers>);
        impl Dataset<usize> for Broken {
            fn get(&self, index: usize) -> Result<usize, DatasetError> {
                self.0.get(index)?;
                Numbers(70).get(index)
            }
            fn len(&self) -> usize {
                Dataset::<usize>::len(&self.0)
            }
        }
        Pipeline::new(Broken(self))
    }
}

#[test]
fn a_panic_of_the_batcher_names_the_batch() {
    struct Picky;
    impl Batcher<usize, usize> for Picky {
        fn batch(&self, items: Vec<usize>, _device: &Device) -> usize {
            assert!(!items.contains(&8), "eight is not to my taste");
            items.len()
        }
    }
    for workers in WORKERS {
        let samples = numbers(20).filter(|number| number % 2 == 0);
        let loader = DataLoaderBuilder::new("train", Picky).batch_size(3).num_workers(workers).build_pipeline(samples);
        let (loaded, error) = failing(&loader);
        assert_eq!(loaded, [3]);
        let LoadError::Batcher { epoch: 0, batch: 1, samples, panic } = &error else { panic!("{error}") };
        assert_eq!((samples.as_slice(), panic.as_str()), ([6, 8, 10].as_slice(), "eight is not to my taste"));
        assert_eq!(at(&loader), (0, 1));
    }
}

/// burn-train takes in its last accumulated gradients when the progress is complete.
#[test]
fn progress_is_complete_at_the_last_batch_only() {
    for workers in [0, 2] {
        // Samples 90 and later are left out, so the last batch ends long before the dataset.
        for (samples, batches, total) in
            [(numbers(100), 10, 100), (numbers(95), 10, 95), (numbers(100).filter(|number| *number < 90), 9, 100)]
        {
            let builder = DataLoaderBuilder::new("train", Collect).batch_size(10).num_workers(workers);
            let loader: Arc<dyn BurnDataLoader<Vec<usize>>> = builder.build_pipeline(samples);
            assert_eq!(loader.num_items(), total);
            let mut iterator = loader.iter();
            for batch in 0..batches {
                assert!(!iterator.progress().is_completed(), "before batch {batch}");
                assert!(iterator.next().is_some_and(|batch| batch.is_ok()));
                let progress = iterator.progress();
                assert_eq!(progress.items_total, total);
                if batch + 1 < batches {
                    assert_eq!(progress.items_processed, 10 * (batch + 1));
                }
            }
            assert!(iterator.progress().is_completed());
            assert!(iterator.next().is_none() && iterator.progress().is_completed());
        }
    }
}

#[test]
fn nothing_in_gives_nothing_out() {
    for workers in WORKERS {
        let builder = || DataLoaderBuilder::new("train", Collect).shuffle(1).batch_size(4).num_workers(workers);
        assert_eq!(pass(&builder().build(Numbers(0))), Vec::<Vec<usize>>::new());
        assert_eq!(pass(&builder().build_pipeline(numbers(9).filter(|_| false))), Vec::<Vec<usize>>::new());
        let loader = builder().build(Numbers(3));
        assert_eq!(pass(&loader)[0].len(), 3);
    }
}

/// Work is bounded, and ends with the pass.
#[test]
fn workers_stay_close_ahead_and_end_with_the_pass() {
    let (made, at_work) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counters = (made.clone(), at_work.clone());
    let samples = numbers(10_000).map(move |number| {
        counters.1.fetch_add(1, Ordering::SeqCst);
        dawdle(200);
        counters.0.fetch_add(1, Ordering::SeqCst);
        counters.1.fetch_sub(1, Ordering::SeqCst);
        number
    });
    for (workers, prefetch) in [(1, 0), (2, 1), (4, 6)] {
        made.store(0, Ordering::SeqCst);
        let builder = DataLoaderBuilder::new("train", Collect).batch_size(5).num_workers(workers).prefetch(prefetch);
        let loader = builder.build_pipeline(samples.clone());
        let mut batches = loader.batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        let most = 5 * (1 + workers + prefetch);
        while made.load(Ordering::SeqCst) < most {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(made.load(Ordering::SeqCst), most, "{workers} workers, {prefetch} batches ahead");
        // Room for one more batch, which is being made when the pass is dropped.
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        drop(batches);
        assert_eq!(at_work.load(Ordering::SeqCst), 0, "no worker outlives the pass");
        let left = made.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(made.load(Ordering::SeqCst), left);
    }
}

#[test]
fn workers_make_whole_batches() {
    struct Whose;
    impl Batcher<ThreadId, (ThreadId, Vec<ThreadId>)> for Whose {
        fn batch(&self, items: Vec<ThreadId>, _device: &Device) -> (ThreadId, Vec<ThreadId>) {
            (thread::current().id(), items)
        }
    }
    let here = thread::current().id();
    for workers in WORKERS {
        for (filters, batch_size) in [(false, 7), (false, 100), (true, 7), (true, 100)] {
            let samples = numbers(230).map(|_| thread::current().id());
            let samples = if filters { samples.filter(|_| true) } else { samples };
            let builder = DataLoaderBuilder::new("train", Whose).batch_size(batch_size).num_workers(workers);
            for (batcher, mappers) in pass(&builder.build_pipeline(samples)) {
                assert_eq!(batcher == here, workers == 0);
                assert!(mappers.iter().all(|&mapper| (mapper == here) == (workers == 0)));
                assert!(filters || mappers.iter().all(|&mapper| mapper == batcher), "a batch is one worker's");
            }
        }
    }
}

/// A batcher that is at work when the pass is dropped ends with it.
#[test]
fn no_batcher_outlives_its_pass() {
    struct Counting(Arc<AtomicUsize>);
    impl Batcher<usize, usize> for Counting {
        fn batch(&self, items: Vec<usize>, _device: &Device) -> usize {
            self.0.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(3));
            self.0.fetch_sub(1, Ordering::SeqCst);
            items.len()
        }
    }
    for filters in [false, true] {
        let at_work = Arc::new(AtomicUsize::new(0));
        let samples = if filters { numbers(1000).filter(|_| true) } else { numbers(1000) };
        let builder = DataLoaderBuilder::new("train", Counting(at_work.clone())).batch_size(3).num_workers(3);
        let mut batches = builder.build_pipeline(samples).batches();
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        drop(batches);
        assert_eq!(at_work.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn slices_are_parts_of_the_dataset() {
    let loader = DataLoaderBuilder::new("train", Collect)
        .shuffle(6)
        .batch_size(4)
        .num_workers(2)
        .build_pipeline(numbers(50).augment(1, |number, rng| (number, rng.next_u64())));
    let mut all = pass(&loader).concat();
    all.sort();
    loader.start_at(0, 0);
    let mut parts = Vec::new();
    for (start, end) in [(0, 20), (20, 50)] {
        let slice = loader.slice(start, end).to_device(&Device::default());
        assert_eq!(slice.num_items(), end - start);
        let load = |slice: &dyn BurnDataLoader<Vec<(usize, u64)>>| {
            slice.iter().flat_map(|batch| batch.expect("numbers")).collect::<Vec<_>>()
        };
        let (first, second) = (load(&*slice), load(&*slice));
        let order = |samples: &[(usize, u64)]| samples.iter().map(|&(number, _)| number).collect::<Vec<_>>();
        assert_ne!(order(&first), order(&second), "each epoch has an order of its own");
        assert!(order(&first).iter().all(|number| (start..end).contains(number)));
        let inner = slice.slice(3, 7);
        let mut inner = order(&load(&*inner));
        inner.sort();
        assert_eq!(inner, (start + 3..start + 7).collect::<Vec<_>>());
        parts.extend(first);
    }
    parts.sort();
    assert_eq!(parts, all, "a sample's random numbers are the same in a slice");
    assert_eq!(at(&loader), (0, 0), "a slice is a loader of its own");
}

#[test]
fn two_slices_cannot_be_read_at_once() {
    let loader = DataLoaderBuilder::new("train", Collect).batch_size(4).build_pipeline(numbers(50).map(|n| (n, 0)));
    let [first, second] = [(0, 20), (20, 50)].map(|(start, end)| loader.slice(start, end));
    let mut read = first.iter();
    read.next().expect("a batch").expect("numbers");
    assert!(first.iter().all(|batch| batch.is_ok()), "one slice may have two passes");
    let error = second.iter().next().expect("an error").expect_err("the first slice is being read").to_string();
    for part in ["0..20 and 20..50", "`train`", "OptimMainDevice", "Shards::new"] {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
    drop(read);
    assert!(second.iter().all(|batch| batch.is_ok()), "one after the other");
}

/// What is refused is no pass: the next one is of the same epoch.
#[test]
fn a_refused_pass_uses_up_no_epoch() {
    crate::deterministic_device();
    let build = || DataLoaderBuilder::new("train", Collect).shuffle(6).batch_size(4).build(Numbers(50));
    let load = |slice: &dyn BurnDataLoader<Vec<usize>>| {
        slice.iter().flat_map(|batch| batch.expect("numbers")).collect::<Vec<usize>>()
    };
    let loader = build();
    let [first, second] = [(0, 20), (20, 50)].map(|(start, end)| loader.slice(start, end));
    let mut read = first.iter();
    read.next().expect("a batch").expect("numbers");
    for _ in 0..2 {
        let mut refused = second.iter();
        assert!(refused.next().expect("an error").is_err() && !refused.progress().is_completed());
    }
    drop(read);
    assert_eq!(load(&*second), load(&*build().slice(20, 50)));

    loader.start_at(2, 3);
    let elsewhere = loader.to_device(&Device::flex());
    let error = elsewhere.iter().next().expect("an error").expect_err("flex is not covered").to_string();
    assert!(error.contains("does not run on the deterministic backend"), "{error}");
    assert_eq!(at(&loader), (2, 3));
    let expected = build();
    expected.start_at(2, 3);
    assert_eq!(pass(&loader), pass(&expected));
}

#[test]
fn a_view_on_another_device_is_the_same_loader() {
    struct Where;
    impl Batcher<usize, Device> for Where {
        fn batch(&self, _items: Vec<usize>, device: &Device) -> Device {
            device.clone()
        }
    }
    let loader = DataLoaderBuilder::new("train", Where).batch_size(4).build(Numbers(10));
    let view = loader.to_device(&Device::default().autodiff());
    assert!(view.iter().all(|device| device.expect("a device").is_autodiff()));
    assert_eq!(at(&loader), (1, 0));
    assert!(!pass(&loader).iter().any(Device::is_autodiff));
}

#[test]
fn interleaving_takes_turns() {
    let expected = |lengths: &[usize]| {
        let mut items = Vec::new();
        for round in 0..lengths.iter().copied().max().unwrap_or(0) {
            items
                .extend((0..lengths.len()).filter(|&dataset| round < lengths[dataset]).map(|dataset| (dataset, round)));
        }
        items
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let random = (0..50).map(|_| (0..rng.random_range(0..6)).map(|_| rng.random_range(0..9)).collect::<Vec<usize>>());
    for lengths in [vec![3, 1, 2], vec![0], vec![5], vec![0, 4, 0], vec![2, 2]].into_iter().chain(random) {
        let dataset = |(dataset, &length): (usize, &usize)| {
            InMemDataset::new((0..length).map(|item| (dataset, item)).collect::<Vec<_>>())
        };
        let interleaved = Interleaved::new(lengths.iter().enumerate().map(dataset));
        let expected = expected(&lengths);
        assert_eq!(interleaved.len(), expected.len());
        let loader = DataLoaderBuilder::new("train", Collect).batch_size(4).num_workers(2).build(interleaved);
        assert_eq!(pass(&loader).concat(), expected, "{lengths:?}");
    }
}

#[test]
#[should_panic(expected = "a batch has at least one sample")]
fn a_batch_of_nothing_is_refused() {
    DataLoaderBuilder::<usize, Vec<usize>>::new("train", Collect).batch_size(0);
}
