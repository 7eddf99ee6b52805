//! Workers of the data loader that panic where nothing of the user's is expected to: the trainer is told, and soon.

use crate::data::loader::{Collect, WORKERS, failing, numbers};
use crate::data::stream::is_set;
use crate::process::Program;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{Dataset, DatasetError};
use burn::prelude::*;
use burn_deterministic::data::{DataLoaderBuilder, LoadError, Pipeline};
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Longer than any of these passes takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `body` gives, which must not wait for ever.
fn within_patience<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(body()));
    receiver.recv_timeout(PATIENCE).expect("a pass that ends, and a thread that does not panic")
}

/// Panics when it is dropped, if it is told to.
#[derive(Debug)]
struct Bomb {
    number: usize,
    armed: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.armed, "bomb {} went off", self.number);
    }
}

/// One bomb is armed, as two that go off one upon the other end the process.
fn bombs(length: usize, armed: usize) -> Pipeline<Bomb> {
    numbers(length).map(move |number| Bomb { number, armed: number == armed })
}

/// The numbers of bombs, disarmed.
struct Disarm;

impl Batcher<Bomb, Vec<usize>> for Disarm {
    fn batch(&self, mut items: Vec<Bomb>, _device: &Device) -> Vec<usize> {
        items.iter_mut().for_each(|bomb| bomb.armed = false);
        items.iter().map(|bomb| bomb.number).collect()
    }
}

/// Samples before a resumed batch are made, because a filter decides where it starts, and dropped. Nobody could wait for
/// the end of this pass.
#[test]
fn a_worker_that_dies_is_an_error() {
    for workers in [1, 2, 8] {
        let error = within_patience(move || {
            let samples = bombs(1 << 40, 2).filter(|_| true);
            let loader =
                DataLoaderBuilder::new("train", Disarm).batch_size(4).num_workers(workers).build_pipeline(samples);
            loader.start_at(2, 1);
            failing(&loader).1
        });
        let LoadError::WorkerPanic { epoch: 2, worker, panic } = &error else { panic!("{error}") };
        assert!(*worker < workers && panic == "bomb 2 went off", "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("worker {worker} panicked in epoch 2")) && text.contains(panic), "{text}");
    }
}

/// Another worker may have made the last batch by then.
#[test]
fn a_worker_that_dies_at_the_end_is_an_error() {
    let loader = |workers| {
        let samples = bombs(5, 2).filter(|_| true);
        let loader = DataLoaderBuilder::new("train", Disarm).batch_size(4).num_workers(workers).build_pipeline(samples);
        loader.start_at(0, 1);
        loader
    };
    for workers in [1, 2, 8].repeat(20) {
        let (loaded, error) = within_patience(move || failing(&loader(workers)));
        assert!(loaded.is_empty() || loaded == [[4]]);
        assert!(matches!(error, LoadError::WorkerPanic { epoch: 0, .. }), "{error}");
    }
    let here = catch_unwind(|| loader(0).batches().next());
    let panic = here.expect_err("a panic of this thread");
    assert_eq!(panic.downcast_ref::<String>().expect("its text"), "bomb 2 went off");
}

/// One worker dies while the other reads items 4 and 5 of a stream, and stops between them: no failure of its own. Both
/// have ended when the program asks.
#[test]
fn what_a_worker_leaves_half_read_is_no_failure() {
    let error = within_patience(|| {
        let is_read = Arc::new(AtomicBool::new(false));
        let reads = is_read.clone();
        let items = Pipeline::shards([()], move |()| {
            let reads = reads.clone();
            Ok((0..).map(move |item| {
                if item == 4 {
                    reads.store(true, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(200));
                }
                Ok::<usize, Infallible>(item)
            }))
        });
        let reads = is_read.clone();
        let samples = items.map(|number| Bomb { number, armed: number == 1 });
        let samples = samples.filter(move |bomb| bomb.number != 3 || is_set(&reads));
        let loader = DataLoaderBuilder::new("train", Disarm).batch_size(2).num_workers(2).build_pipeline(samples);
        loader.start_at(0, 1);
        let mut batches = loader.batches();
        assert!(is_set(&is_read));
        thread::sleep(Duration::from_millis(500));
        batches.next().expect("an error").expect_err("a worker has died")
    });
    let LoadError::WorkerPanic { panic, .. } = &error else { panic!("{error}") };
    assert_eq!(panic, "bomb 1 went off");
}

/// Without workers it is a panic of this thread, which may catch it and go on.
#[test]
fn a_sample_that_panics_when_dropped_takes_no_batch_with_it() {
    for (length, expected) in
        [(5, vec![vec![4]]), (8, vec![vec![4, 5, 6, 7]]), (10, vec![vec![4, 5, 6, 7], vec![8, 9]])]
    {
        let samples = bombs(length, 2).filter(|_| true);
        let loader = DataLoaderBuilder::new("train", Disarm).batch_size(4).build_pipeline(samples);
        loader.start_at(0, 1);
        let mut batches = loader.batches();
        let panic = catch_unwind(AssertUnwindSafe(|| batches.next())).expect_err("a panic of this thread");
        assert_eq!(panic.downcast_ref::<String>().expect("its text"), "bomb 2 went off");
        assert_eq!(batches.map(|batch| batch.expect("made")).collect::<Vec<_>>(), expected);
    }
}

/// In a process whose threads ask for more memory than there is.
pub fn no_room_for_a_worker() {
    let loader = DataLoaderBuilder::new("train", Collect).num_workers(2).build_pipeline(numbers(5));
    let (loaded, error) = failing(&loader);
    assert!(loaded.is_empty());
    let LoadError::Worker { worker: 0, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains("ask for fewer with `num_workers`"), "{error}");
}

#[test]
fn a_worker_that_cannot_be_started_is_an_error() {
    Program::new("no_room_for_a_worker").env("RUST_MIN_STACK", (1u64 << 60).to_string()).run();
}

/// The samples that were made before the failure are dropped.
#[test]
fn samples_that_panic_when_dropped_hide_no_failure() {
    for workers in WORKERS {
        for filters in [false, true] {
            let (loaded, error) = within_patience(move || {
                let samples = bombs(100, 68).map(|bomb| {
                    assert!(bomb.number != 70, "seventy again");
                    bomb
                });
                let samples = if filters { samples.filter(|_| true) } else { samples };
                let loader =
                    DataLoaderBuilder::new("train", Disarm).batch_size(4).num_workers(workers).build_pipeline(samples);
                failing(&loader)
            });
            assert_eq!(loaded.concat(), (0..68).collect::<Vec<usize>>());
            let text = error.to_string();
            assert!(matches!(error, LoadError::Sample { sample: 70, .. }) && text.contains("seventy again"), "{text}");
        }
    }
}

/// A filter drops what it leaves out.
#[test]
fn a_panic_in_a_filter_that_drops_names_the_sample() {
    for workers in WORKERS {
        let (loaded, error) = within_patience(move || {
            let samples = bombs(100, 70).filter(|bomb| bomb.number != 70);
            failing(&DataLoaderBuilder::new("train", Disarm).batch_size(4).num_workers(workers).build_pipeline(samples))
        });
        assert_eq!(loaded.concat(), (0..68).collect::<Vec<usize>>());
        let LoadError::Sample { sample: 70, panic, .. } = &error else { panic!("{error}") };
        assert_eq!(panic, "bomb 70 went off");
    }
}

#[test]
fn a_payload_that_panics_when_dropped_is_an_error() {
    struct Throw;
    impl Batcher<Bomb, Vec<usize>> for Throw {
        fn batch(&self, items: Vec<Bomb>, device: &Device) -> Vec<usize> {
            if items[0].number == 8 {
                panic_any(Bomb { number: 8, armed: true });
            }
            Disarm.batch(items, device)
        }
    }
    for workers in WORKERS {
        let [sample, batch] = within_patience(move || {
            let samples = numbers(100).map(|number| match number {
                9 => panic_any(Bomb { number, armed: true }),
                number => Bomb { number, armed: false },
            });
            let builder = || DataLoaderBuilder::new("train", Throw).batch_size(4).num_workers(workers);
            let of_sample = builder().build_pipeline(samples);
            let of_batch = builder().build_pipeline(bombs(100, 100));
            [failing(&of_sample), failing(&of_batch)]
        });
        let numbers = (0..8).collect::<Vec<usize>>();
        assert_eq!((sample.0.concat(), batch.0.concat()), (numbers.clone(), numbers));
        assert!(matches!(sample.1, LoadError::Sample { sample: 9, .. }), "{}", sample.1);
        assert!(matches!(batch.1, LoadError::Batcher { batch: 2, .. }), "{}", batch.1);
    }
}

#[test]
fn an_error_of_a_dataset_that_cannot_be_shown_is_an_error() {
    #[derive(Debug)]
    struct Shy;
    impl fmt::Display for Shy {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("no text for you")
        }
    }
    impl std::error::Error for Shy {}
    struct Failing;
    impl Dataset<Bomb> for Failing {
        fn get(&self, index: usize) -> Result<Bomb, DatasetError> {
            match index {
                13 => Err(DatasetError::new(Shy)),
                number => Ok(Bomb { number, armed: false }),
            }
        }
        fn len(&self) -> usize {
            20
        }
    }
    for workers in WORKERS {
        let (loaded, error) = within_patience(move || {
            failing(&DataLoaderBuilder::new("train", Disarm).batch_size(4).num_workers(workers).build(Failing))
        });
        assert_eq!(loaded.concat(), (0..12).collect::<Vec<usize>>());
        let LoadError::Sample { sample: 13, stage, panic, .. } = &error else { panic!("{error}") };
        assert_eq!((stage.as_str(), panic.as_str()), ("the dataset", "no text for you"));
    }
}
