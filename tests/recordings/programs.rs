//! A training as a user writes it, in which something may be wrong.

use crate::bits::floats;
use crate::closed_world::custom;
use crate::process::{arguments, report};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn::tensor::IndexingUpdateOp::Add;
use burn_deterministic::checkpoint::Checkpoint;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{
    Determinism, digest, enable_op_determinism, epoch, initialize, label, name_parameters, observe, set_random_seed,
    step,
};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The step at which something is wrong.
pub const STEP: u64 = 3;

const STEPS: u64 = 6;

#[derive(Module, Debug)]
struct Model {
    encoder: Linear,
    decoder: Linear,
}

impl Model {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let hidden = {
            let _label = label("encoder");
            self.encoder.forward(inputs).tanh()
        };
        let _label = label("decoder");
        self.decoder.forward(hidden)
    }
}

/// A number of another value in each run.
fn now() -> f64 {
    f64::from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos())
}

/// On deterministic kernels; the arguments name what is wrong.
pub fn fault() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(4);
    let device = Device::default().autodiff();
    let model = initialize(Model {
        encoder: LinearConfig::new(8, 16).init(&device),
        decoder: LinearConfig::new(16, 4).init(&device),
    });
    train(model.expect("a seed is set"), &device);
}

/// On deterministic kernels: of each step three tensors are left, one moved between two that are computed.
pub fn moved_between() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let [mut first, mut last] = [1.0, 2.0].map(|factor| Tensor::<1>::from_data(floats([8]), &device) * factor);
    let mut moved = first.clone().reshape([2, 4]);
    for number in 0..STEPS {
        let _step = step(number);
        first = first * 0.5;
        let sum = first.clone() + moved.reshape([8]);
        moved = sum.reshape([2, 4]);
        last = last + 1.0;
    }
    report("sum", (first + moved.reshape([8]) + last).into_data());
}

/// On deterministic kernels: of each step three tensors are left, of other shapes, of which one goes on behind another one.
pub fn joined() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let [mut x, offset] = [8, 1].map(|rows| Tensor::<2>::from_data(floats([rows, 4]), &device));
    let (mut mean, mut active) = (offset.clone(), x.clone());
    for number in 0..STEPS {
        let _step = step(number);
        // A row that nothing else needs, what it is added to, a statistic, and what reads the second.
        let centred = active - offset.clone() * 0.5;
        mean = mean * 0.9 + offset.clone();
        x = centred.clone() * 2.0;
        active = centred.tanh();
    }
    report("sum", (active + x + mean).into_data());
}

/// On Burn's own kernels, of which it runs none that Burn tunes.
pub fn observed_fault() {
    observe().expect("this process has run no tensor operation");
    let device = Device::default();
    let mut weights = Tensor::<1>::from_data(floats([8]), &device);
    for number in 0..STEPS {
        let _step = step(number);
        weights = weights * 0.5 + inputs(number, &device).narrow(0, 0, 1).reshape([8]).tanh();
    }
    report("sum", weights.into_data());
}

/// On Burn's own kernels, with products that it tunes.
pub fn observed_training() {
    observe().expect("this process has run no tensor operation");
    let device = Device::default().autodiff();
    device.seed(4);
    let model =
        Model { encoder: LinearConfig::new(8, 16).init(&device), decoder: LinearConfig::new(16, 4).init(&device) };
    train(model, &device);
}

/// On deterministic kernels, with a custom operation that the program has promised to be deterministic, and that is not.
pub fn custom_fault() {
    custom::promise();
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let mut weights = custom::upload(vec![0.5; 8], [8]);
    for number in 0..STEPS {
        let _step = step(number);
        let drift = if number == STEP { now() as f32 * 1e-9 } else { 0.0 };
        (weights, _) = custom::drifting_after(weights, drift, 1);
    }
    report("sum", custom::read(weights).expect("it was promised")[7]);
}

/// On deterministic kernels: two threads compute a tensor each, and this one adds them as they arrive.
pub fn race() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let mut weights = Tensor::<1>::from_data(floats([8]), &Device::default());
    for number in 0..STEPS {
        let _step = step(number);
        let (sender, receiver) = mpsc::channel();
        for worker in 0..2 {
            let sender = sender.clone();
            let thread = thread::spawn(move || {
                let values = Tensor::<1>::from_data(floats([8]), &Device::default()) * (worker + 1);
                if number == STEP {
                    thread::sleep(Duration::from_micros(now() as u64 % 3000));
                }
                sender.send(values).expect("the receiver waits");
            });
            // In each other step one thread after the other.
            if number != STEP {
                thread.join().expect("it computes");
            }
        }
        drop(sender);
        for values in receiver {
            weights = weights * 0.5 + values;
        }
    }
    report("sum", weights.into_data());
}

/// On deterministic kernels, with a batch norm. The argument `late` has one more forward pass in training mode after [`STEP`], as of
/// an evaluation that forgot `valid`: the running statistics are later than the weights then. With `save` and a file there is a
/// checkpoint after that step, with `saved late` after such a pass; with `resume` the training goes on from it.
pub fn normalised() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(4);
    let device = Device::default().autodiff();
    let norm = BatchNormConfig::new(4).init(&device);
    let model = Normalised { linear: LinearConfig::new(8, 4).init(&device), norm };
    let mut model = initialize(model).expect("a seed is set");
    let mut optimizer = AdamConfig::new().init();
    let mut start = 0;
    let after = |word: &str| {
        let arguments = arguments();
        let place = arguments.iter().position(|argument| argument == word)?;
        arguments.get(place + 1).cloned()
    };
    if let Some(path) = after("resume") {
        let mut checkpoint = Checkpoint::load(path).expect("the other program's");
        model = checkpoint.module("model", model).expect("the same model");
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model).expect("the same optimizer");
        start = checkpoint.resume().expect("all was taken");
    }
    for number in start..STEPS {
        {
            let _step = step(number);
            let loss = model.forward(inputs(number, &device)).powi_scalar(2).mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(1e-2, model, gradients);
            if number == STEP && is("late") {
                let _evaluated = model.forward(inputs(number, &device));
            }
        }
        if let Some(path) = after("save").filter(|_| number == STEP) {
            if is("saved late") {
                let _evaluated = model.forward(inputs(number, &device));
            }
            let checkpoint = Checkpoint::new(number + 1)
                .and_then(|checkpoint| checkpoint.with_module("model", &model))
                .and_then(|checkpoint| checkpoint.with_optimizer("optimizer", &optimizer, &model));
            checkpoint.and_then(|checkpoint| checkpoint.save(path)).expect("a folder to write to");
        }
    }
    report("digest", digest(&model));
}

#[derive(Module, Debug)]
struct Normalised {
    linear: Linear,
    norm: BatchNorm,
}

impl Normalised {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.norm.forward(self.linear.forward(inputs))
    }
}

fn is(fault: &str) -> bool {
    arguments().iter().any(|argument| argument == fault)
}

/// The inputs of a step.
fn inputs(number: u64, device: &Device) -> Tensor<2> {
    let wrong = |fault| number == STEP && is(fault);
    let mut values = floats([32, 8]);
    if wrong("data") {
        values = TensorData::new(vec![now() as f32; 32 * 8], [32, 8]);
    }
    let mut inputs = Tensor::<2>::from_data(values, device);
    if wrong("scatter") {
        // 2^18 values into 8 rows, in the order in which they arrive.
        let rows = Tensor::<1, Int>::arange(0..1 << 18, device).remainder_scalar(8);
        let values = Tensor::<1>::from_data(floats([1 << 18]), device);
        let sums = Tensor::<1>::zeros([8], device).scatter(0, rows, values, Add);
        inputs = inputs + sums.reshape([1, 8]) * 1e-3;
    }
    if wrong("noise") {
        inputs = inputs + Tensor::random([32, 8], Distribution::Default, device);
    }
    inputs
}

fn train(mut model: Model, device: &Device) {
    name_parameters(&model);
    let mut optimizer = AdamConfig::new().init();
    let targets = Tensor::<2>::from_data(floats([32, 4]), device);
    let _epoch = epoch(0);
    for number in 0..STEPS {
        let _step = step(number);
        let wrong = |fault| number == STEP && is(fault);
        let inputs = inputs(number, device);
        let loss = MseLoss::new().forward(model.forward(inputs), targets.clone(), Reduction::Mean);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        let rate = if wrong("rate") { 1e-3 + now() * 1e-15 } else { 1e-3 };
        model = optimizer.step(rate, model, gradients);
        if wrong("bit") {
            model = model.map(&mut FlipsOneBit);
        }
        if wrong("longer") {
            let _more = model.encoder.weight.val().sum();
        }
    }
    report("digest", digest(&model));
}

/// Flips the lowest bit of one element of each bias.
struct FlipsOneBit;

impl ModuleMapper for FlipsOneBit {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D != 1 {
            return param;
        }
        param.map(|tensor| {
            let device = tensor.device();
            let data = tensor.into_data();
            let mut values = data.try_to_vec::<f32>().expect("f32");
            values[2] = f32::from_bits(values[2].to_bits() ^ 1);
            Tensor::from_data(TensorData::new(values, data.shape().clone()), &device).require_grad()
        })
    }
}

/// Two epochs of a loader with as many workers as the argument says.
pub fn batches() {
    struct Rows;
    impl Batcher<f32, Tensor<2>> for Rows {
        fn batch(&self, items: Vec<f32>, device: &Device) -> Tensor<2> {
            let rows = items.len();
            Tensor::from_data(TensorData::new(items, [rows, 1]), device)
        }
    }
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(4);
    let device = Device::default().autodiff();
    let workers: usize = arguments()[0].parse().expect("a number of workers");
    let numbers = InMemDataset::new((0..24).map(|number| number as f32).collect());
    let loader = DataLoaderBuilder::new("train", Rows).batch_size(8).num_workers(workers).set_device(device.clone());
    let loader = loader.build(numbers);
    let mut model = initialize(LinearConfig::new(1, 3).init(&device)).expect("a seed is set");
    let mut optimizer = AdamConfig::new().init();
    for _ in 0..2 {
        for batch in loader.batches() {
            let loss = model.forward(batch.expect("a batch")).powf_scalar(2.0).mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(1e-3, model, gradients);
        }
    }
    report("digest", digest(&model));
}

/// A slice is assigned to a tensor that is read later too, so that Burn copies it first.
pub fn copied() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let tensor = Tensor::<2>::from_data(floats([8, 3]), &Device::default());
    let assigned = tensor.clone().slice_assign([0..2, 0..2], Tensor::zeros([2, 2], &tensor.device()));
    report("sums", format!("{:?}", [assigned, tensor].map(|tensor| tensor.into_data())));
}
