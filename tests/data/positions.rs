//! Positions of the data loader: a pass goes on where another left off, and no loader from the position of another.

use crate::data::loader::{Collect, Numbers, at, eventful, failing, numbers, pass};
use burn_deterministic::RandomStream;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, LoadError, Pipeline, Position};
use rand::Rng;
use std::sync::Arc;

#[test]
fn a_pass_resumes_at_any_batch() {
    let plain = || numbers(103).augment(4, |number, rng| (number, 0, rng.next_u64()));
    for (samples, workers) in [(plain(), 0), (plain(), 3), (eventful(103, 0), 0), (eventful(103, 50), 3)] {
        let builder = || DataLoaderBuilder::new("train", Collect).shuffle(9).batch_size(8).num_workers(workers);
        let loader = builder().build_pipeline(samples.clone());
        let epochs = [pass(&loader), pass(&loader)];
        for (epoch, batches) in epochs.iter().enumerate() {
            for batch in 0..batches.len() {
                let resumed = builder().build_pipeline(samples.clone());
                loader.start_at(epoch, batch);
                resumed.resume_at(&loader.position()).expect("a loader that is built alike");
                assert_eq!(at(&resumed), (epoch, batch));
                assert_eq!(pass(&resumed), batches[batch..]);
                assert_eq!(at(&resumed), (epoch + 1, 0));
                if epoch == 0 {
                    assert_eq!(pass(&resumed), epochs[1], "the next epoch is whole");
                }
            }
            for batch in [batches.len(), batches.len() + 1, usize::MAX / 2] {
                loader.start_at(epoch, batch);
                let (loaded, error) = failing(&loader);
                assert!(loaded.is_empty());
                assert_eq!(error, LoadError::Position { epoch, batch, batches: batches.len() });
            }
        }
    }
}

#[test]
fn a_position_is_the_next_batch() {
    let loader = DataLoaderBuilder::new("train", Collect).shuffle(9).batch_size(8).num_workers(2).build(Numbers(20));
    assert_eq!(at(&loader), (0, 0));
    let mut batches = loader.batches();
    for batch in 0..2 {
        assert_eq!(at(&loader), (0, batch));
        assert_eq!(batches.next().expect("a batch").expect("of numbers").len(), 8);
    }
    drop(batches);
    // The program stops here, and another one goes on.
    let json = serde_json::to_string(&loader.position()).expect("a position is plain data");
    let position: Position = serde_json::from_str(&json).expect("what was written");
    assert_eq!((position.epoch, position.batch), (0, 2));
    let other = DataLoaderBuilder::new("train", Collect).shuffle(9).batch_size(8).build(Numbers(20));
    let whole = pass(&other);
    other.resume_at(&position).expect("a loader that is built alike");
    assert_eq!(pass(&other), whole[2..]);

    // A pass that is left half way is over: the next one is the next epoch.
    assert_eq!(pass(&loader), pass(&other));
    // And one that another has overtaken does not count.
    let mut old = loader.batches();
    let mut new = loader.batches();
    assert!(new.next().is_some() && old.next().is_some() && old.next().is_some());
    assert_eq!(at(&loader), (3, 1));
}

type Loader = Arc<DataLoader<usize, Vec<usize>>>;

fn builder() -> DataLoaderBuilder<usize, Vec<usize>> {
    DataLoaderBuilder::new("train", Collect).shuffle(9).random(4).batch_size(8)
}

fn samples() -> Pipeline<usize> {
    numbers(100).map(|number| number).augment(2, |number, _| number)
}

fn key(seed: u64) -> String {
    RandomStream::from_seed(seed).key().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_position_of_another_loader_is_refused() {
    let loader = builder().build_pipeline(samples());
    loader.start_at(3, 5);
    let position = loader.position();
    let changed = "its pipeline was [`map`, `augment` with the key ";
    let others: [(Loader, &[&str]); 12] = [
        (
            DataLoaderBuilder::new("valid", Collect).shuffle(9).random(4).batch_size(8).build_pipeline(samples()),
            &["its name was `train`, and is `valid`"],
        ),
        (builder().batch_size(4).build_pipeline(samples()), &["its batch size was 8, and is 4"]),
        (
            builder().shuffle(8).build_pipeline(samples()),
            &[&format!("its order was `shuffle` with the key {}, and is `shuffle` with the key {}", key(9), key(8))],
        ),
        (
            DataLoaderBuilder::new("train", Collect).random(4).batch_size(8).build_pipeline(samples()),
            &[&format!("its order was `shuffle` with the key {}, and is the dataset's", key(9))],
        ),
        (
            builder().random(5).build_pipeline(samples()),
            &[&format!("the stream of its `random` was the key {}, and is the key {}", key(4), key(5))],
        ),
        (
            builder().build_pipeline(numbers(99).map(|number| number).augment(2, |number, _| number)),
            &["the range of its samples was 0..100, and is 0..99"],
        ),
        (builder().build_pipeline(samples().filter(|_| true)), &[changed, "`filter`]"]),
        (builder().build_pipeline(samples().map(|number| number)), &[changed, "`map`]"]),
        (
            builder().build_pipeline(numbers(100).map(|number| number).augment(3, |number, _| number)),
            &[changed, &key(2), &key(3)],
        ),
        (
            builder().build_pipeline(numbers(100).augment(2, |number, _| number).map(|number| number)),
            &[changed, "and is [`augment` with the key "],
        ),
        (builder().build(Numbers(100)), &[changed, "and is []"]),
        (
            builder().batch_size(16).build_pipeline(numbers(50)),
            &["its batch size was 8, and is 16", "the range of its samples was 0..100, and is 0..50", changed],
        ),
    ];
    for (other, expected) in others {
        other.start_at(1, 2);
        let error = other.resume_at(&position).expect_err("another loader");
        let text = error.to_string();
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        assert!(text.contains("`burn_deterministic::data::DataLoader::start_at`"), "{text}");
        let LoadError::OtherLoader { differences } = &error else { panic!("{error:?}") };
        let properties = expected.iter().filter(|part| part.starts_with("its ") || part.starts_with("the ")).count();
        assert_eq!(differences.len(), properties, "{text}");
        assert_eq!(at(&other), (1, 2), "the refusal changes nothing");
    }
    // What does not decide the batches may change.
    let alike = builder().num_workers(2).prefetch(7).build_pipeline(samples());
    alike.resume_at(&position).expect("a loader that is built alike");
    assert_eq!((alike.position(), pass(&alike)), (position, pass(&loader)));
}

#[test]
fn a_position_without_its_loader_is_refused() {
    assert!(serde_json::from_str::<Position>(r#"{"epoch":0,"batch":2}"#).is_err());
    let mut position = serde_json::to_value(builder().build(Numbers(9)).position()).expect("plain data");
    position["loader"].as_object_mut().expect("fields").remove("batch_size").expect("the batch size");
    assert!(serde_json::from_value::<Position>(position).is_err());
}
