//! A training that does not say where its steps are.

use super::{compared, read, recorded};
use crate::bits::floats;
use crate::process::{Folder, Program, arguments, report};
use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, SgdConfig};
use burn::prelude::*;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, set_random_seed};
use burn_deterministic_recording::{Operation, Phase, Record, State};
use std::collections::BTreeSet;

const STEPS: u64 = 4;

#[derive(Module, Debug)]
struct Model {
    hidden: Linear,
    norm: BatchNorm,
    output: Linear,
}

/// The arguments name the optimizer, whether the model is initialised before the first step, and a fault in the last step.
pub fn unmarked() {
    let is = |word: &str| arguments().iter().any(|argument| argument == word);
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(4);
    let device = Device::default().autodiff();
    let mut model = Model {
        hidden: LinearConfig::new(8, 16).init(&device),
        norm: BatchNormConfig::new(16).init(&device),
        output: LinearConfig::new(16, 4).init(&device),
    };
    if is("initialized") {
        model = initialize(model).expect("a seed is set");
    }
    let mut adam = AdamConfig::new().init();
    let mut sgd = SgdConfig::new().init();
    for number in 0..STEPS {
        let inputs = Tensor::<2>::from_data(floats([32, 8]), &device);
        let targets = Tensor::<2>::from_data(floats([32, 4]), &device);
        let outputs = model.output.forward(model.norm.forward(model.hidden.forward(inputs)).tanh());
        let loss = MseLoss::new().forward(outputs, targets, Reduction::Mean);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        let rate = if is("rate") && number + 1 == STEPS { 2e-3 } else { 1e-3 };
        model = match is("sgd") {
            true => sgd.step(rate, model, gradients),
            false => adam.step(rate, model, gradients),
        };
    }
    // What nobody reads need not be computed.
    report("digest", digest(&model));
}

fn run(arguments: &[&str], level: &str) -> (Vec<State>, Vec<Operation>) {
    let folder = Folder::new();
    let file = folder.path().join("file");
    recorded(Program::new("unmarked").arguments(arguments), &file, level).run();
    let (mut states, mut operations) = (Vec::new(), Vec::new());
    for record in read(file).records {
        match record {
            Record::State(state) => states.push(state),
            Record::Operation(operation) => operations.push(operation),
            _ => {}
        }
    }
    (states, operations)
}

#[test]
fn each_step_has_a_state_with_the_weights() {
    for arguments in [["adam", "initialized"], ["sgd", "initialized"], ["adam", "drawn late"], ["sgd", "drawn late"]] {
        let (states, _) = run(&arguments, "weights");
        let steps: Vec<_> = states.iter().map(|state| state.place.step).collect();
        assert_eq!(steps, (0..STEPS).map(Some).collect::<Vec<_>>(), "{arguments:?}");
        for state in &states {
            let shapes: Vec<_> = state.tensors.iter().map(|tensor| &tensor.shape[..]).collect();
            for weights in [[8u64, 16], [16, 4]] {
                assert!(shapes.contains(&&weights[..]), "{arguments:?}: {shapes:?}");
            }
        }
        let last = states.last().expect("a state");
        let most = last.tensors.len();
        assert!(most <= 24, "a state has parameters, moments and statistics, no activations: {last:#?}");
    }
}

#[test]
fn operations_are_in_their_step_and_phase() {
    for arguments in [["adam", "initialized"], ["sgd", "initialized"], ["adam", "drawn late"]] {
        let (_, operations) = run(&arguments, "operations");
        for step in 1..STEPS {
            let of = |phase: Phase| {
                let found = operations
                    .iter()
                    .filter(move |operation| operation.place.step == Some(step) && operation.place.phase == phase);
                found.map(|operation| operation.name.as_str()).collect::<Vec<_>>()
            };
            let uploads = of(Phase::Forward).iter().filter(|name| **name == Operation::UPLOAD).count();
            let products = |phase| of(phase).iter().filter(|name| **name == "float_matmul").count();
            let found = (uploads, [Phase::Forward, Phase::Backward, Phase::Update].map(products));
            assert_eq!(found, (2, [2, 3, 0]), "{arguments:?}, step {step}: {:#?}", of(Phase::Backward));
            let updates: BTreeSet<_> = of(Phase::Update).into_iter().collect();
            assert!(updates.contains("float_sub"), "{arguments:?}, step {step}: {updates:?}");
        }
    }
}

#[test]
fn another_last_update_is_named_at_its_step() {
    let programs = ["", "rate"].map(|fault| Program::new("unmarked").arguments(&["initialized", fault]));
    let comparison = compared(programs, "weights");
    let state = comparison.state.as_ref().unwrap_or_else(|| panic!("the weights differ: {:?}", comparison.outcome));
    assert_eq!(state.place.step, Some(STEPS - 1), "{state:?}");
}
