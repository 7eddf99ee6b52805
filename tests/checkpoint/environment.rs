//! A checkpoint knows the environment that it was taken in.

use super::reloaded;
use crate::process::{Folder, Program, arguments, report};
use burn::nn::LinearConfig;
use burn::prelude::*;
use burn_deterministic::checkpoint::{Checkpoint, Content, Error};
use burn_deterministic::{Determinism, enable_op_determinism, initialize, set_random_seed};
use std::path::Path;

/// Saves a module, or resumes from it, as the arguments say.
pub fn saved_and_resumed() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let device = Device::default().autodiff();
    let model = initialize(LinearConfig::new(2, 3).init(&device)).expect("a seed is set");
    let [task, path] = &arguments()[..] else { panic!("a task and a file are wanted") };
    if task == "save" {
        let checkpoint = Checkpoint::new(5).and_then(|checkpoint| checkpoint.with_module("model", &model));
        return checkpoint.and_then(|checkpoint| checkpoint.save(path)).expect("a folder to write to");
    }
    let mut checkpoint = Checkpoint::load(path).expect("the file just written");
    checkpoint.module("model", model).expect("the same model");
    let step = match &task[..] {
        "resume" => checkpoint.resume(),
        _ => checkpoint.resume_in_same_environment(),
    };
    match step {
        Ok(step) => report("step", step),
        Err(error) => report("error", error),
    }
}

fn program(task: &str, path: &Path) -> Program {
    Program::new("saved_and_resumed").arguments(&[task, path.to_str().expect("the path of a temporary folder")])
}

#[test]
fn the_same_environment_is_no_matter() {
    let folder = Folder::new();
    let path = folder.path().join("a.checkpoint");
    program("save", &path).run();
    for task in ["resume", "strict"] {
        let output = program(task, &path).run();
        assert_eq!(output.reported("step"), "5");
        assert!(!output.stderr().contains("environment"), "{output}");
    }
}

#[test]
fn another_environment_is_a_warning_or_if_asked_an_error() {
    let folder = Folder::new();
    let path = folder.path().join("a.checkpoint");
    program("save", &path).env("NVIDIA_TF32_OVERRIDE", "1").run();
    let elsewhere = |task: &str| program(task, &path).env("NVIDIA_TF32_OVERRIDE", "0").run();
    let output = elsewhere("resume");
    assert_eq!(output.reported("step"), "5");
    for part in
        ["a.checkpoint", "another environment", "then against now: variable NVIDIA_TF32_OVERRIDE: 1 against 0\n"]
    {
        assert!(output.stderr().contains(part), "no `{part}` in {output}");
    }
    let output = elsewhere("strict");
    let error = output.reported("error");
    for part in ["a.checkpoint", "variable NVIDIA_TF32_OVERRIDE: 1 against 0", "`Checkpoint::resume`"] {
        assert!(error.contains(part), "no `{part}` in {error}");
    }
}

#[test]
fn a_checkpoint_keeps_the_environment_that_it_was_taken_in() {
    let device = crate::deterministic_device();
    let model = LinearConfig::new(2, 3).with_bias(false).init(&device);
    let taken = Checkpoint::new(1).and_then(|checkpoint| checkpoint.with_module("model", &model)).expect("a module");
    let loaded = reloaded(&taken);
    assert_eq!(loaded.environment(), taken.environment());
    assert!(taken.environment().get("driver").is_some(), "{}", taken.environment());
    assert_eq!(taken.environment().get("seed"), None, "the random state is restored, whatever the seed");
    assert_eq!(reloaded(&loaded).environment(), taken.environment());
}

#[test]
fn contents_are_listed_without_a_module() {
    let device = crate::deterministic_device();
    set_random_seed(3);
    let model = initialize(LinearConfig::new(2, 3).with_bias(false).init(&device)).expect("a seed is set");
    let checkpoint = Checkpoint::new(4).and_then(|checkpoint| checkpoint.with_module("model", &model));
    let checkpoint = checkpoint.and_then(|checkpoint| checkpoint.with_value("at", &(7, [0.5])));
    let loaded = reloaded(&checkpoint.expect("a module and two numbers"));
    let items = loaded.contents();
    let listed: Vec<String> = items.iter().map(|item| format!("{} {}: {}", item.kind, item.part, item.path)).collect();
    assert_eq!(
        listed,
        ["checkpoint : step", "checkpoint : random state", "value at: [0]", "value at: [1][0]", "module model: weight"]
    );
    let text = |at: usize| match &items[at].content {
        Content::Text(text) => text.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!([text(0), text(2), text(3)], ["4", "7", "0.5"]);
    let weight = model.weight.val().into_data();
    assert!(matches!(&items[4].content, Content::Tensor(data) if data.as_bytes() == weight.as_bytes()));
    assert!(matches!(loaded.resume_in_same_environment(), Err(Error::Unrestored { .. })));
}
