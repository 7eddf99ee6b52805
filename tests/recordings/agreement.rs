//! Two runs of one program have one recording.

use super::{compared, read, recorded};
use crate::process::{Folder, Load, Program};
use burn_deterministic_recording::diff::Outcome;
use burn_deterministic_recording::{Ending, Level, Phase, Record, Recording};
use std::collections::BTreeSet;

#[test]
fn every_operation_agrees_in_each_run() {
    for program in ["mlp", "lstm", "skip_gram"] {
        let folder = Folder::new();
        let [alone, loaded] = ["alone", "loaded"].map(|name| folder.path().join(name));
        let first = recorded(Program::new(program), &alone, "operations").run();
        let second = {
            let _load = Load::new();
            recorded(Program::new(program), &loaded, "operations").run()
        };
        second.assert_digest(&first);
        let (first, second) = (read(alone), read(loaded));
        assert_eq!(first.ending, Ending::Complete, "{program}");
        let difference = first.records.iter().zip(&second.records).find(|(one, other)| one != other);
        if let Some((one, other)) = difference {
            panic!("{program}: {}", unlike(&format!("{one:?}"), &format!("{other:?}")));
        }
        assert_eq!(first.records.len(), second.records.len(), "{program}");
    }
}

/// Where two texts differ, with what stands around it.
fn unlike(one: &str, other: &str) -> String {
    let begin = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count().saturating_sub(300);
    let part = |text: &str| text.get(begin..(begin + 700).min(text.len())).unwrap_or(text).to_owned();
    format!("from byte {begin} of {} and {}\n{}\nagainst\n{}", one.len(), other.len(), part(one), part(other))
}

/// Whether Burn copies a tensor before it writes depends on who still holds the buffer, be it a launch that waits.
#[test]
fn copies_are_not_among_the_kernels() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    recorded(Program::new("copied"), &file, "operations").run();
    let kernels = read(file).records.into_iter().find_map(|record| match record {
        Record::Operation(operation) if operation.name == "float_slice_assign" => Some(operation.kernels),
        _ => None,
    });
    let kernels = kernels.expect("a slice is assigned");
    assert!(kernels.len() == 1 && kernels[0].contains("SliceAssign"), "{kernels:?}");
}

#[test]
fn a_recording_changes_no_bit() {
    let plain = Program::new("transformer").run();
    for level in ["weights", "operations", "operations:2-4"] {
        let folder = Folder::new();
        recorded(Program::new("transformer"), &folder.path().join("file"), level).run().assert_digest(&plain);
    }
}

#[test]
fn the_levels_have_the_same_states() {
    let folder = Folder::new();
    let states = ["weights", "operations", "operations:2-4"].map(|level| {
        let file = folder.path().join(level);
        recorded(Program::new("fault"), &file, level).run();
        let recording = read(file);
        let steps: BTreeSet<Option<u64>> = { recording.records.iter() }
            .filter_map(|record| match record {
                Record::Operation(operation) => Some(operation.place.step),
                _ => None,
            })
            .collect();
        match recording.header.level {
            Level::Weights => assert!(steps.is_empty(), "{steps:?}"),
            Level::OperationsOf { .. } => assert_eq!(steps, [2, 3, 4].map(Some).into(), "operations of three steps"),
            _ => assert_eq!(steps.len(), 7, "before, in and after six steps: {steps:?}"),
        }
        recording.records.into_iter().filter(|record| matches!(record, Record::State(_))).collect::<Vec<_>>()
    });
    assert_eq!(states[0].len(), 7, "at first, and after each step");
    assert!(states[0] == states[1] && states[0] == states[2], "{states:#?}");
}

/// Where a sequence of operations is one kernel, what is moved runs behind it.
#[test]
fn results_are_numbered_in_program_order_at_every_level() {
    for program in ["moved_between", "joined"] {
        let folder = Folder::new();
        let states = ["weights", "operations"].map(|level| {
            let file = folder.path().join(level);
            recorded(Program::new(program), &file, level).run();
            let records = read(file).records.into_iter();
            records.filter(|record| matches!(record, Record::State(_))).collect::<Vec<_>>()
        });
        assert_eq!(states[0].len(), 7, "at first, and after each step");
        assert!(states[0] == states[1], "{program}: {states:#?}");
    }
}

/// Where in the program an operation is.
#[test]
fn an_operation_has_its_place() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    recorded(Program::new("fault"), &file, "operations").run();
    let recording = read(file);
    let operations: Vec<_> = { recording.records.iter() }
        .filter_map(|record| match record {
            Record::Operation(operation) if operation.place.step == Some(2) => Some(operation),
            _ => None,
        })
        .collect();
    assert!(operations.iter().all(|operation| operation.place.epoch == Some(0)));
    let products = || operations.iter().filter(|operation| operation.name == "float_matmul");
    let labels: Vec<_> = products().map(|product| product.place.labels.join(" > ")).collect();
    assert_eq!(labels[..3], ["encoder", "decoder", ""], "two layers forward, then backward");
    // Forward in a label's part of the program, backward in the step's.
    let sources: Vec<_> = products().filter_map(|product| product.place.source.as_deref()).collect();
    assert!(sources.len() == products().count() && sources.iter().all(|source| source.contains("programs.rs:")));
    let [encoder, decoder, backward] = sources[..3] else { panic!("{sources:?}") };
    assert!(encoder != decoder && ![encoder, decoder].contains(&backward), "{sources:?}");
    let phases: BTreeSet<_> = products().map(|product| product.place.phase as u8).collect();
    assert_eq!(phases, [Phase::Forward as u8, Phase::Backward as u8].into());
    let weights: Vec<_> = products().filter_map(|product| product.inputs.get(1)?.parameter.as_deref()).collect();
    assert_eq!(weights[..2], ["encoder.weight", "decoder.weight"]);
    let updated = operations.iter().flat_map(|operation| &operation.outputs);
    let updated: BTreeSet<_> = updated.filter_map(|output| output.parameter.as_deref()).collect();
    assert_eq!(updated, ["decoder.bias", "decoder.weight", "encoder.bias", "encoder.weight"].into());
    let last = operations.last().expect("a step has operations");
    assert_eq!(last.place.phase, Phase::Update);
}

/// Recordings of one version can be compared.
#[test]
fn another_digest_is_another_version() {
    let digest = burn_deterministic_kernels::digest::reference::digest(b"burn-deterministic");
    assert_eq!(
        (burn_deterministic_recording::VERSION, digest),
        (2, [0x3fc8_2844, 0xb610_8079, 0x88d9_235a, 0xe34f_9d62]),
        "another digest needs another version"
    );
}

#[test]
fn an_operation_has_its_kernels_and_their_plans() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    recorded(Program::new("fault"), &file, "operations").run();
    let operations = read(file).records.into_iter().filter_map(|record| match record {
        Record::Operation(operation) => Some(operation),
        _ => None,
    });
    let (mut products, mut uploads) = (0, 0);
    for operation in operations {
        match operation.name.as_str() {
            "float_matmul" => {
                products += 1;
                assert!(operation.kernels.iter().any(|kernel| kernel.contains("matmul")), "{operation:?}");
                assert!(operation.plans.iter().any(|plan| plan.starts_with("matmul: ")), "{operation:?}");
            }
            "upload" => {
                uploads += 1;
                assert!(operation.kernels.is_empty() && operation.plans.is_empty(), "{operation:?}");
            }
            _ => {}
        }
    }
    assert!(products > 0 && uploads > 0);
}

/// Steps of a loader's batches, also with workers.
#[test]
fn a_batch_is_a_step() {
    let folder = Folder::new();
    let [none, two] = ["0", "2"].map(|workers| {
        let file = folder.path().join(workers);
        recorded(Program::new("recorded_batches").arguments(&[workers]), &file, "operations").run();
        read(file)
    });
    let places = |recording: &Recording| {
        let states = recording.records.iter().filter_map(|record| match record {
            Record::State(state) => Some((state.place.step, state.place.epoch, state.place.batch)),
            _ => None,
        });
        states.collect::<Vec<_>>()
    };
    let steps = (0..6).map(|step| (Some(step), Some(step / 3), Some(step % 3)));
    let expected: Vec<_> = [(None, None, None)].into_iter().chain(steps).collect();
    assert_eq!(places(&none), expected);
    // A thread that takes a batch of a worker's has other uploads, and the same results.
    let states = |recording: &Recording| {
        let states = recording.records.iter().filter_map(|record| match record {
            Record::State(state) => Some(state.tensors.iter().map(|tensor| tensor.digest).collect::<Vec<_>>()),
            _ => None,
        });
        states.collect::<Vec<_>>()
    };
    assert_eq!(states(&none), states(&two), "with and without workers");
    let again = {
        let _load = Load::new();
        let file = folder.path().join("again");
        recorded(Program::new("recorded_batches").arguments(&["2"]), &file, "operations").run();
        read(file)
    };
    assert_eq!(two.records, again.records, "two workers twice");
}

#[test]
fn nothing_differs_in_clean_runs() {
    for program in ["fault", "observed_fault"] {
        for level in ["weights", "operations"] {
            let comparison = compared([Program::new(program), Program::new(program)], level);
            assert!(matches!(comparison.outcome, Outcome::Same), "{program} {level}: {:?}", comparison.outcome);
        }
    }
}
