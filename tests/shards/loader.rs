//! The steps of a loader: where they begin, what an error leaves, and which batches a process makes.

use crate::deterministic_device;
use burn::data::dataloader::batcher::Batcher;
use burn::prelude::*;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, Pipeline};
use burn_deterministic::set_random_seed;
use burn_deterministic::shards::{Error, Group, Shards};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Notes the first number of each batch that it makes.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<usize>>>);

impl Batcher<usize, Vec<usize>> for Noting {
    fn batch(&self, numbers: Vec<usize>, _: &Device) -> Vec<usize> {
        self.0.lock().expect("no panic").push(numbers[0]);
        numbers
    }
}

/// Batches of two of 37 numbers: 19 of them, the last one of one number.
fn loader(pipeline: Pipeline<usize>, workers: usize, batcher: &Noting) -> Arc<DataLoader<usize, Vec<usize>>> {
    let builder = DataLoaderBuilder::new("train", batcher.clone()).batch_size(2).num_workers(workers);
    builder.set_device(deterministic_device()).build_pipeline(pipeline)
}

fn numbers() -> Pipeline<usize> {
    Pipeline::new(burn::data::dataset::InMemDataset::new((0..37).collect::<Vec<usize>>()))
}

type Steps = Vec<Result<Vec<Vec<usize>>, Error>>;

fn steps(shards: &Shards, loader: &DataLoader<usize, Vec<usize>>) -> Steps {
    let steps = shards.steps(loader, Vec::len);
    steps
        .map(|step| {
            let parts = step?.into_iter();
            Ok(parts.inspect(|part| assert_eq!(part.samples, part.batch.len())).map(|part| part.batch).collect())
        })
        .collect()
}

#[test]
fn a_pass_that_starts_amid_a_step_is_refused() {
    let shards = Shards::new(4, [deterministic_device()]).expect("a device");
    for workers in [0, 2] {
        let loader = loader(numbers(), workers, &Noting::default());
        assert_eq!(steps(&shards, &loader).into_iter().filter(Result::is_ok).count(), 5);
        loader.start_at(1, 8);
        let two = steps(&shards, &loader);
        assert_eq!(two.len(), 3);
        assert_eq!(two[0].as_ref().expect("a step")[0], [16, 17]);
        loader.start_at(3, 6);
        let refused = steps(&shards, &loader);
        assert_eq!(refused, [Err(Error::Position { epoch: 3, batch: 6, shards: 4 })]);
        let position = loader.position();
        assert_eq!((position.epoch, position.batch), (3, 6), "the loader is where it was");
    }
}

#[test]
fn an_error_amid_a_step_leaves_the_loader_at_the_step() {
    let shards = Shards::new(4, [deterministic_device()]).expect("a device");
    for workers in [0, 2] {
        // Item 13 is of batch 6, the third one of step 1.
        let fails = Arc::new(AtomicBool::new(true));
        let failing = fails.clone();
        let pipeline = numbers().map(move |number: usize| {
            assert!(number != 13 || !failing.load(Ordering::Relaxed), "the disk is gone");
            number
        });
        let loader = loader(pipeline, workers, &Noting::default());
        let first = steps(&shards, &loader);
        assert_eq!(first.len(), 2, "a step, and the error");
        let error = first[1].as_ref().expect_err("the disk").to_string();
        assert!(error.contains("the disk is gone"), "{error}");
        let position = loader.position();
        assert_eq!((position.epoch, position.batch), (0, 4));
        fails.store(false, Ordering::Relaxed);
        let rest = steps(&shards, &loader);
        let all: Vec<usize> =
            [&first[..1], &rest[..]].concat().into_iter().flat_map(|step| step.expect("made").concat()).collect();
        assert_eq!(all, (0..37).collect::<Vec<_>>(), "no batch is lost");
    }
}

#[test]
fn a_process_makes_the_batches_of_its_own_shards() {
    set_random_seed(812);
    let alone = Shards::new(4, [deterministic_device()]).expect("a device");
    let whole: Vec<_> = steps(&alone, &loader(numbers(), 0, &Noting::default()));
    let whole: Vec<Vec<Vec<usize>>> = whole.into_iter().map(|step| step.expect("made")).collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let groups = [
        Group::new(0, 3, "loaders").listener(listener),
        Group::new(1, 3, "loaders").address(&address),
        Group::new(2, 3, "loaders").address(&address),
    ];
    thread::scope(|scope| {
        let processes = groups.map(|group| {
            scope.spawn(|| {
                let shards = Shards::new(4, [deterministic_device()]).expect("a device");
                let shards = shards.in_group(group.wait(Duration::from_secs(20))).expect("a group");
                for workers in [0, 2] {
                    let made = Noting::default();
                    let steps = steps(&shards, &loader(numbers(), workers, &made));
                    assert_eq!(steps.len(), whole.len(), "every process has every step");
                    for (step, all) in steps.iter().zip(&whole) {
                        let own: Vec<_> = shards.own().filter_map(|shard| all.get(shard).cloned()).collect();
                        assert_eq!(step.as_ref().expect("made"), &own);
                    }
                    let mut made = made.0.lock().expect("no panic").clone();
                    made.sort();
                    let own = steps.into_iter().flat_map(|step| step.expect("made").into_iter().map(|batch| batch[0]));
                    assert_eq!(made, own.collect::<Vec<_>>(), "no other batch is made");
                }
                let items = (0..9).map(Ok::<usize, String>);
                let mine: Vec<Vec<usize>> = shards
                    .steps_of(items, |_| 1)
                    .map(|step| step.expect("an item").into_iter().map(|part| part.batch).collect())
                    .collect();
                let of_step = |step: usize| shards.own().map(move |shard| 4 * step + shard).filter(|item| *item < 9);
                assert_eq!(mine, (0..3).map(|step| of_step(step).collect()).collect::<Vec<Vec<_>>>());
            })
        });
        for process in processes {
            process.join().expect("no panic");
        }
    });
}
