//! Batchers that work on the device, or at a pace of their own, in any number of workers: the same batches, and every
//! error told.

use crate::data::loader::{WORKERS, dawdle, failing, numbers, pass};
use crate::process::Program;
use crate::random::seeds::internal;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, LoadError, Pipeline};
use burn_deterministic::{Determinism, RandomStream, enable_op_determinism, set_random_seed};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const FEATURES: usize = 5;

/// As many rows as its length, each of a few numbers of its own.
struct Rows(usize);

impl Dataset<[f32; FEATURES]> for Rows {
    fn get(&self, index: usize) -> Result<[f32; FEATURES], DatasetError> {
        Ok(std::array::from_fn(|column| ((index * FEATURES + column) as f32).sin()))
    }

    fn len(&self) -> usize {
        self.0
    }
}

fn rows(items: Vec<[f32; FEATURES]>, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(items.concat(), [items.len(), FEATURES]), device)
}

/// Scales by what it keeps on the device, adds noise, takes what a table says, and divides by sums; at a time of its own.
struct Busy {
    scale: Tensor<2>,
    table: Vec<i32>,
}

impl Busy {
    fn new(device: &Device) -> Self {
        let scale = Tensor::<2>::from_data([[0.5, 1.5, 2.5, 3.5, 4.5]], device);
        Self { scale: scale * 0.3, table: vec![4, 0, 2, 2] }
    }
}

impl Batcher<[f32; FEATURES], (Tensor<2>, Tensor<2>)> for Busy {
    fn batch(&self, items: Vec<[f32; FEATURES]>, device: &Device) -> (Tensor<2>, Tensor<2>) {
        thread::sleep(Duration::from_micros(rand::random_range(0..1500)));
        let noise = Tensor::random([items.len(), FEATURES], Distribution::Normal(0.0, 0.1), device);
        let x = rows(items, device) * self.scale.clone() + noise;
        let table = Tensor::<1, Int>::from_data(self.table.as_slice(), device);
        let y = x.clone().select(1, table) / (x.clone().powi_scalar(2).sum_dim(1) + 1.0);
        (x + Tensor::<2>::random([1, 1], Distribution::Default, device), y)
    }
}

fn loader(device: &Device, workers: usize) -> DataLoaderBuilder<[f32; FEATURES], (Tensor<2>, Tensor<2>)> {
    DataLoaderBuilder::new("train", Busy::new(device))
        .shuffle(3)
        .batch_size(32)
        .num_workers(workers)
        .set_device(device.clone())
}

/// The bits of a pass, read late: other batches have been made meanwhile.
fn bits<I: Send + 'static>(loader: &DataLoader<I, (Tensor<2>, Tensor<2>)>) -> Vec<[Vec<u32>; 2]> {
    let batches: Vec<_> = loader.batches().map(|batch| batch.expect("nothing panics here")).collect();
    let read = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().map(f32::to_bits).collect();
    batches.into_iter().map(|(x, y)| [read(x), read(y)]).collect()
}

#[test]
fn any_number_of_workers_makes_the_same_on_the_device() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    for filters in [false, true] {
        let load = |workers: usize| {
            let samples = Pipeline::new(Rows(300));
            let samples = if filters { samples.filter(|row| row[1] < 0.5) } else { samples };
            let loader = loader(&device, workers).build_pipeline(samples);
            let epochs = [bits(&loader), bits(&loader)];
            loader.start_at(1, 2);
            assert!(bits(&loader) == epochs[1][2..], "resumed, {workers} workers");
            epochs
        };
        let alone = load(0);
        assert!(alone[0] != alone[1], "an epoch is not the one before");
        for workers in WORKERS {
            // What the program draws meanwhile makes no difference.
            let _ = Tensor::<1>::random([workers + 1], Distribution::Default, &device).into_data();
            assert!(load(workers) == alone, "{workers} workers");
        }
    }
}

struct Noise;

impl Batcher<[f32; FEATURES], Tensor<1>> for Noise {
    fn batch(&self, items: Vec<[f32; FEATURES]>, device: &Device) -> Tensor<1> {
        Tensor::random([items.len()], Distribution::Default, device)
    }
}

/// What the batchers of loaders draw that have other names, in one thread.
#[test]
fn batchers_of_two_loaders_draw_other_numbers() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let drawn = |name: &str| -> Vec<TensorData> {
        let builder = DataLoaderBuilder::new(name, Noise).batch_size(40).set_device(device.clone());
        builder.build(Rows(90)).batches().map(|batch| batch.expect("noise").into_data()).collect()
    };
    let (train, valid) = (drawn("train"), drawn("valid"));
    assert!(train.iter().zip(&valid).all(|(train, valid)| train != valid));
    assert_eq!(drawn("train"), train);
}

/// The documented numbers, computed once more.
#[test]
fn batchers_draw_what_they_say() {
    let device = crate::deterministic_device();
    let stream = RandomStream::from_seed(5).fork("noise");
    let drawn = |loader: &DataLoader<_, Tensor<1>>| -> Vec<TensorData> {
        loader.batches().map(|batch| batch.expect("noise").into_data()).collect()
    };
    for workers in WORKERS {
        let builder =
            || DataLoaderBuilder::new("train", Noise).batch_size(40).num_workers(workers).set_device(device.clone());
        let named = builder().random(stream.clone()).build(Rows(90));
        let entered = builder().build(Rows(90));
        for epoch in 0..2 {
            let expected: Vec<TensorData> = [40, 40, 10]
                .into_iter()
                .enumerate()
                .map(|(batch, length)| {
                    let stream = internal(&stream, "batch").fork("train").fork_index(epoch).fork_index(0);
                    let _draws = stream.fork_index(batch as u64).enter();
                    Tensor::<1>::random([length], Distribution::Default, &device).into_data()
                })
                .collect();
            assert_eq!(drawn(&named), expected);
            let _draws = stream.enter();
            assert_eq!(drawn(&entered), expected, "of the thread that asks");
        }
    }
}

/// What a function sets in a worker ends with it, though a later worker has its stream of Burn's.
#[test]
fn a_worker_draws_from_nothing_of_an_earlier_one() {
    struct Noisy;
    impl Batcher<Option<Tensor<1>>, Vec<Option<Tensor<1>>>> for Noisy {
        fn batch(&self, items: Vec<Option<Tensor<1>>>, _device: &Device) -> Vec<Option<Tensor<1>>> {
            items
        }
    }
    let device = crate::deterministic_device();
    let draw = |seeds: bool| {
        let device = device.clone();
        let samples = Pipeline::new(Rows(1)).map(move |_| {
            if seeds {
                set_random_seed(6);
            }
            Some(Tensor::<1>::random([3], Distribution::Default, &device))
        });
        let loader = DataLoaderBuilder::new("train", Noisy).num_workers(1).build_pipeline(samples);
        let mut batch = loader.batches().next().expect("one").expect("made");
        batch[0].take().expect("a tensor").try_into_data()
    };
    for _ in 0..10 {
        draw(true).expect("a seed");
        let text = draw(false).expect_err("no seed").to_string();
        assert!(text.contains("no seed is set in its thread"), "{text}");
    }
    // A thread that takes a seed drops the states of streams whose workers have ended: never one that a later worker has.
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                set_random_seed(1);
            }
        });
        let seeded = std::panic::catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..300 {
                draw(true).expect("a seed");
            }
        }));
        done.store(true, Ordering::Relaxed);
        seeded.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

pub fn unseeded_batches() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    for workers in WORKERS {
        for batch in loader(&device, workers).build(Rows(100)).batches() {
            let (x, _) = batch.expect("made");
            let text = x.try_into_data().expect_err("no seed").to_string();
            assert!(text.contains("no seed is set in its thread"), "{text}");
        }
    }
}

#[test]
fn a_batcher_that_draws_without_a_seed_is_told_so() {
    Program::new("unseeded_batches").run();
}

/// The batch that has the wrong index carries the error, and no other.
pub fn batches_tell_of_indices() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    struct Selects;
    impl Batcher<usize, Tensor<2>> for Selects {
        fn batch(&self, items: Vec<usize>, device: &Device) -> Tensor<2> {
            let indices: Vec<i32> = items.iter().map(|&item| item as i32).collect();
            let table = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device);
            table.select(0, Tensor::<1, Int>::from_data(indices.as_slice(), device)) * 2.0
        }
    }
    struct Indices;
    impl Dataset<usize> for Indices {
        fn get(&self, index: usize) -> Result<usize, DatasetError> {
            Ok(if index == 21 { 3 } else { index % 3 })
        }
        fn len(&self) -> usize {
            40
        }
    }
    for workers in [1, 2, 8] {
        let builder = DataLoaderBuilder::new("train", Selects).batch_size(4).num_workers(workers);
        let loader = builder.set_device(device.clone()).build(Indices);
        let check = |number: usize, batch: Result<Tensor<2>, LoadError>| {
            let read = batch.expect("made").try_into_data();
            assert_eq!(read.is_err(), number == 5, "{workers} workers, batch {number}");
            if let Err(error) = read {
                let text = error.to_string();
                assert!(text.contains("`float_select`") && text.contains("index 3, at [1]"), "{text}");
            }
        };
        loader.batches().enumerate().for_each(|(number, batch)| check(number, batch));
        // All have been made when the last is read first.
        let batches: Vec<_> = loader.batches().enumerate().collect();
        batches.into_iter().rev().for_each(|(number, batch)| check(number, batch));
    }
}

#[test]
fn a_batch_tells_of_an_index_out_of_range() {
    Program::new("batches_tell_of_indices").run();
}

/// Fails at batches with a number of `bad`, after a wait that no seed decides.
struct Fickle {
    bad: &'static [usize],
    longest: u64,
}

impl Batcher<usize, Vec<usize>> for Fickle {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Vec<usize> {
        dawdle(self.longest);
        if let Some(bad) = self.bad.iter().find(|bad| items.contains(bad)) {
            panic!("not {bad}");
        }
        items
    }
}

#[test]
fn a_slow_batcher_reorders_nothing() {
    for (workers, filters) in [(1, false), (2, true), (2, false), (8, true), (8, false)] {
        let samples = if filters { numbers(400).filter(|number| number % 2 == 0) } else { numbers(400) };
        let batcher = Fickle { bad: &[], longest: 2000 };
        let builder = DataLoaderBuilder::new("train", batcher).batch_size(9).num_workers(workers);
        let expected: Vec<usize> = (0..400).step_by(1 + usize::from(filters)).collect();
        assert_eq!(pass(&builder.build_pipeline(samples)).concat(), expected);
    }
}

/// Later batches fail before the first bad one does.
#[test]
fn the_first_failure_in_order_is_told() {
    for workers in WORKERS {
        for filters in [false, true] {
            let samples = numbers(300).map(|number| {
                assert!(number < 100, "a hundred is too much");
                number
            });
            let samples = if filters { samples.filter(|_| true) } else { samples };
            let batcher = Fickle { bad: &[41, 52, 63], longest: 1000 };
            let builder = DataLoaderBuilder::new("train", batcher).batch_size(10).num_workers(workers).prefetch(30);
            let (loaded, error) = failing(&builder.build_pipeline(samples));
            assert_eq!(loaded.concat(), (0..40).collect::<Vec<usize>>());
            let LoadError::Batcher { epoch: 0, batch: 4, samples, panic } = &error else { panic!("{error}") };
            assert_eq!((samples.as_slice(), panic.as_str()), ((40..50).collect::<Vec<_>>().as_slice(), "not 41"));
        }
    }
}
