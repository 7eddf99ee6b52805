//! Streams: read once and in order, by whichever worker needs an item, with every failure where it belongs.

use crate::data::loader::{Collect, WORKERS, at, dawdle, failing, pass};
use crate::data::stages::shards;
use crate::process::Folder;
use burn::data::dataset::{Dataset, DatasetError};
use burn_deterministic::data::{DataLoaderBuilder, LoadError, Pipeline};
use std::convert::Infallible;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

fn builder(workers: usize) -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new("train", Collect).batch_size(7).num_workers(workers)
}

/// The hazard: an iterator that workers share gives each item to whoever comes.
#[test]
fn a_shared_iterator_loads_other_batches_with_other_workers() {
    struct Shared(Mutex<std::ops::Range<usize>>);
    impl Dataset<usize> for Shared {
        fn get(&self, _index: usize) -> Result<usize, DatasetError> {
            dawdle(200);
            Ok(self.0.lock().expect("no panic").next().expect("as many as are asked for"))
        }
        fn len(&self) -> usize {
            300
        }
    }
    let load = |workers| pass(&builder(workers).build(Shared(Mutex::new(0..300))));
    assert_eq!(load(0), load(1));
    assert_ne!(load(0), load(8));
}

#[test]
fn lines_of_files_come_in_order() {
    let folder = Folder::new();
    let files: Vec<_> = (0..4).map(|file| folder.path().join(format!("{file}.txt"))).collect();
    for (file, path) in files.iter().enumerate() {
        let lines: String = (0..50 * (file % 3)).map(|line| format!("{}\n", 1000 * file + line)).collect();
        fs::write(path, lines).expect("a disk with room");
    }
    let open = |path: &std::path::PathBuf| Ok(BufReader::new(File::open(path)?).lines());
    let expected: Vec<String> = (1000..1050).chain(2000..2100).map(|line| line.to_string()).collect();
    for workers in WORKERS {
        let builder = || DataLoaderBuilder::new("train", Collect).batch_size(7).num_workers(workers);
        let loader = builder().build_pipeline(Pipeline::shards(files.clone(), open));
        for _ in 0..2 {
            assert_eq!(pass(&loader).concat(), expected);
        }
        let mut missing = files.clone();
        missing.insert(2, folder.path().join("missing"));
        let (loaded, error) = failing(&builder().build_pipeline(Pipeline::shards(missing, open)));
        assert_eq!(loaded.concat(), expected[..49]);
        let text = error.to_string();
        assert!(text.contains("shard 2 cannot be opened: ") && text.contains("sample 50 in epoch 0"), "{text}");
    }
}

#[test]
fn a_stream_of_nothing_has_no_batches() {
    for workers in WORKERS {
        for shards in [vec![], vec![0], vec![0, 0, 0]] {
            let items = |&length: &usize| Ok((0..length).map(Ok::<usize, Infallible>));
            for samples in
                [Pipeline::shards(shards.clone(), items), Pipeline::shards(shards.clone(), items).filter(|_| true)]
            {
                assert_eq!(pass(&builder(workers).build_pipeline(samples.clone())), Vec::<Vec<usize>>::new());
                let loader = builder(workers).shuffle_window(1, 5).build_pipeline(samples);
                assert_eq!(pass(&loader), Vec::<Vec<usize>>::new());
            }
        }
        assert_eq!(pass(&builder(workers).build_pipeline(shards().filter(|_| false))), Vec::<Vec<usize>>::new());
    }
}

/// An error whose text panics, if it is told to.
#[derive(Debug)]
struct Fault(bool);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.0, "no text for you");
        f.write_str("the disk is gone")
    }
}

/// The batches before it are handed out; of a window that is shuffled, none can be made.
#[test]
fn a_failure_of_reading_is_where_it_belongs() {
    type Items = Box<dyn Iterator<Item = Result<usize, Fault>> + Send>;
    type Open = fn(usize) -> Items;
    let cases: [(Open, &str); 3] = [
        (
            |shard| {
                Box::new(
                    (100 * shard..100 * (shard + 1)).map(|item| if item == 137 { Err(Fault(false)) } else { Ok(item) }),
                )
            },
            "item 37 of shard 1: the disk is gone",
        ),
        (
            |shard| {
                Box::new(
                    (100 * shard..100 * (shard + 1)).map(|item| if item == 137 { Err(Fault(true)) } else { Ok(item) }),
                )
            },
            "reading panicked: no text for you",
        ),
        (
            |shard| {
                Box::new((100 * shard..100 * (shard + 1)).map(|item| {
                    assert!(item != 137, "a torn page");
                    Ok(item)
                }))
            },
            "reading panicked: a torn page",
        ),
    ];
    for (open, expected) in cases {
        for workers in WORKERS.repeat(3) {
            let stream = || {
                Pipeline::shards(0..4, move |&shard| Ok(open(shard))).map(|item| {
                    dawdle(50);
                    item
                })
            };
            for (filters, window) in [(false, None), (true, None), (false, Some(60)), (true, Some(60))] {
                let samples = if filters { stream().filter(|_| true) } else { stream() };
                let builder = builder(workers);
                // Where shards are shuffled, the second may come at any time: read one.
                let samples = match window {
                    None => samples,
                    Some(_) => Pipeline::shards([()], move |()| Ok(open(0).chain(open(1)))).map(|item| item),
                };
                let builder = match window {
                    None => builder,
                    Some(window) => builder.shuffle_window(3, window),
                };
                let loader = builder.build_pipeline(samples);
                let (loaded, error) = failing(&loader);
                let text = error.to_string();
                match window {
                    // Batches 0 to 18 are samples 0 to 132.
                    None => {
                        assert_eq!(loaded.concat(), (0..133).collect::<Vec<usize>>());
                        assert!(text.contains(expected), "{text}");
                    }
                    // Of 120 samples in whole windows.
                    Some(_) => {
                        let mut loaded = loaded.concat();
                        loaded.sort_unstable();
                        assert_eq!(loaded.len(), 119);
                        assert!(loaded.last() < Some(&120));
                    }
                }
                let LoadError::Dataset { epoch: 0, sample: 137, .. } = &error else { panic!("{error}") };
                assert_eq!(at(&loader), (0, if window.is_some() { 17 } else { 19 }));
            }
        }
    }
}

/// Batches of 65 are made of parts of 33 items: what was read of the part before the panic completes a batch.
#[test]
fn a_panic_of_reading_takes_no_complete_batch_with_it() {
    for panics_at in [0, 1, 64, 65, 66, 129, 130, 131, 132, 140, 199] {
        for workers in WORKERS {
            let samples = Pipeline::shards([()], move |()| {
                Ok((0..200).map(move |item| {
                    assert!(item != panics_at, "a torn page");
                    Ok::<usize, Infallible>(item)
                }))
            });
            let builder = DataLoaderBuilder::new("train", Collect).batch_size(65).num_workers(workers);
            let (loaded, error) = failing(&builder.build_pipeline(samples));
            assert_eq!(loaded.concat(), (0..panics_at / 65 * 65).collect::<Vec<usize>>(), "{workers} workers");
            let LoadError::Dataset { sample, reason, .. } = &error else { panic!("{error}") };
            assert_eq!((*sample, reason.as_str()), (panics_at, "reading panicked: a torn page"));
        }
    }
}

/// Whether a flag is set before patience is at its end.
pub fn is_set(flag: &AtomicBool) -> bool {
    (0..5000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        flag.load(Ordering::SeqCst)
    })
}

/// One worker reads item 8, and goes on when the other has made item 7, of the part before.
#[test]
fn a_worker_takes_what_was_read_while_another_reads() {
    let [is_read, is_made, was_made] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let flags = (is_read.clone(), is_made.clone(), was_made.clone());
    let samples = Pipeline::shards([()], move |()| {
        let (is_read, is_made, was_made) = flags.clone();
        Ok((0..12).map(move |item| {
            if item == 8 {
                is_read.store(true, Ordering::SeqCst);
                was_made.store(is_set(&is_made), Ordering::SeqCst);
            }
            Ok::<usize, Infallible>(item)
        }))
    });
    let samples = samples.map(move |item| {
        match item {
            4 => assert!(is_set(&is_read), "nobody reads on"),
            7 => is_made.store(true, Ordering::SeqCst),
            _ => {}
        }
        item
    });
    let loader = DataLoaderBuilder::new("train", Collect).batch_size(4).num_workers(2).build_pipeline(samples);
    assert_eq!(pass(&loader).concat(), (0..12).collect::<Vec<usize>>());
    assert!(was_made.load(Ordering::SeqCst), "the worker of item 7 waited for who read item 8");
}

/// What a pass has read, and holds at a time.
#[derive(Default)]
struct Counts {
    reading: AtomicUsize,
    read: AtomicUsize,
    held: AtomicUsize,
    most: AtomicUsize,
    mapped: AtomicUsize,
}

struct Held(Arc<Counts>, usize);

impl Held {
    fn new(counts: &Arc<Counts>, number: usize) -> Self {
        assert_eq!(counts.reading.fetch_add(1, Ordering::SeqCst), 0, "one worker reads at a time");
        dawdle(20);
        counts.reading.fetch_sub(1, Ordering::SeqCst);
        counts.read.fetch_add(1, Ordering::SeqCst);
        counts.most.fetch_max(counts.held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        Self(counts.clone(), number)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Without an end: nobody could read it all.
fn endless(counts: &Arc<Counts>) -> Pipeline<usize> {
    let counts = counts.clone();
    let mapped = counts.clone();
    let items = Pipeline::shards([()], move |()| {
        let counts = counts.clone();
        Ok((0..).map(move |number| Ok::<Held, Infallible>(Held::new(&counts, number))))
    });
    items.map(move |held| {
        mapped.mapped.fetch_add(1, Ordering::SeqCst);
        held.1
    })
}

#[test]
fn a_stream_need_not_fit_in_memory() {
    for workers in WORKERS {
        for window in [None, Some(10), Some(100)] {
            let counts = Arc::new(Counts::default());
            let builder = builder(workers).prefetch(2);
            let builder = match window {
                None => builder,
                Some(window) => builder.shuffle_window(3, window),
            };
            let loader = builder.build_pipeline(endless(&counts));
            let mut batches = loader.batches();
            for _ in 0..40 {
                assert!(batches.next().is_some_and(|batch| batch.is_ok()));
            }
            drop(batches);
            // A window of which not all is taken, the one that is read next, and what the workers are at.
            let window = window.unwrap_or(7);
            let most = 2 * window + (workers + 2) * (window + 7);
            let [held, read] = [&counts.most, &counts.read].map(|count| count.load(Ordering::SeqCst));
            assert!(held <= most, "{held} items held, {workers} workers, windows of {window}");
            assert!(read <= 41 * 7 + most, "{read} items read");
            assert_eq!(counts.held.load(Ordering::SeqCst), 0, "nothing is kept behind the pass");
        }
    }
}

/// Functions run on samples that are in a batch.
#[test]
fn what_is_before_a_position_is_read_and_dropped() {
    for workers in WORKERS {
        for window in [1, 10, 100, 1000] {
            let counts = Arc::new(Counts::default());
            let samples = endless(&counts);
            let loader = builder(workers).prefetch(0).shuffle_window(3, window).build_pipeline(samples);
            let mut batches = loader.batches();
            let whole: Vec<_> = (0..45).map(|_| batches.next().expect("no end").expect("no failure")).collect();
            drop(batches);
            counts.mapped.store(0, Ordering::SeqCst);
            loader.start_at(0, 40);
            let mut batches = loader.batches();
            for expected in &whole[40..] {
                assert_eq!(&batches.next().expect("no end").expect("no failure"), expected);
            }
            drop(batches);
            let mapped = counts.mapped.load(Ordering::SeqCst);
            assert!((35..35 + 7 * (workers + 3)).contains(&mapped), "{mapped} samples mapped");
        }
    }
}

/// A pass that is dropped while a window is read does not wait for its end.
#[test]
fn a_pass_ends_amid_a_window() {
    let counts = Arc::new(Counts::default());
    for workers in [1, 2, 8] {
        let loader = builder(workers).shuffle_window(3, usize::MAX).build_pipeline(endless(&counts));
        drop(loader.batches());
    }
    assert_eq!(counts.held.load(Ordering::SeqCst), 0);
}
