//! burn-train's strategies for several devices, which have no fixed order, are refused by name.

use crate::process::{Folder, Program, arguments};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::SgdConfig;
use burn::prelude::*;
use burn::train::{
    ExecutionStrategy, InferenceStep, Learner, MultiDeviceOptim, RegressionOutput, SupervisedTraining, TrainOutput,
    TrainStep, TrainingStrategy,
};
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::set_random_seed;

#[derive(Module, Debug)]
struct Line {
    line: Linear,
}

impl Line {
    fn outputs(&self, inputs: Tensor<2>) -> RegressionOutput {
        let targets = inputs.clone() * 2.0;
        let outputs = self.line.forward(inputs);
        let loss = (outputs.clone() - targets.clone()).powi_scalar(2).mean();
        RegressionOutput { loss, output: outputs, targets }
    }
}

impl TrainStep for Line {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, inputs: Tensor<2>) -> TrainOutput<RegressionOutput> {
        let output = self.outputs(inputs);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Line {
    type Input = Tensor<2>;
    type Output = RegressionOutput;

    fn step(&self, inputs: Tensor<2>) -> RegressionOutput {
        self.outputs(inputs)
    }
}

struct Column;

impl Batcher<f32, Tensor<2>> for Column {
    fn batch(&self, items: Vec<f32>, device: &Device) -> Tensor<2> {
        let rows = items.len();
        Tensor::from_data(TensorData::new(items, [rows, 1]), device)
    }
}

/// Trains by the strategy that the arguments name, on one device listed twice.
pub fn several_devices() {
    let device = crate::deterministic_device().autodiff();
    set_random_seed(1);
    let devices = vec![device.clone(), device.clone()];
    let strategy = match arguments()[0].as_str() {
        "main" => ExecutionStrategy::MultiDevice(devices, MultiDeviceOptim::OptimMainDevice),
        "sharded" => ExecutionStrategy::MultiDevice(devices, MultiDeviceOptim::OptimSharded),
        _ => ExecutionStrategy::SingleDevice(device.clone()),
    };
    let loader = |name| {
        let numbers = InMemDataset::new((0..64).map(|number| number as f32 / 64.0).collect());
        DataLoaderBuilder::new(name, Column).batch_size(8).build(numbers)
    };
    let folder = Folder::new();
    let model = Line { line: LinearConfig::new(1, 1).init(&device) };
    let result = SupervisedTraining::new(folder.path().to_str().expect("a path"), loader("train"), loader("valid"))
        .with_application_logger(None)
        .with_training_strategy(TrainingStrategy::Default(strategy))
        .num_epochs(2)
        .launch(Learner::new(model, SgdConfig::new().init(), 0.1));
    if let Some(error) = result.error {
        crate::process::report("error", error.to_string().replace('\n', " "));
    }
}

#[test]
fn they_are_refused_by_name() {
    for strategy in ["main", "sharded"] {
        let output = Program::new("several_devices").arguments(&[strategy]).run();
        let error = output.reported("error");
        assert!(error.contains("OptimMainDevice") && error.contains("Shards::new"), "{error}");
    }
    let output = Program::new("several_devices").arguments(&["single"]).run();
    assert!(!output.stdout().contains("error: "), "{output}");
}
