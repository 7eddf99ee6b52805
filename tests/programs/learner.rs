//! burn-train's own loop on augmented digits of noise: metrics, gradient clipping and accumulation, checkpoints, early
//! stopping.

use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::optim::AdamConfig;
use burn::prelude::*;
use burn::train::checkpoint::KeepLastNCheckpoints;
use burn::train::metric::store::{Aggregate, Direction, Split};
use burn::train::metric::{AccuracyMetric, LossMetric};
use burn::train::{
    ClassificationOutput, InferenceStep, Learner, MetricEarlyStoppingStrategy, StoppingCondition, SupervisedTraining,
    TrainOutput, TrainStep,
};
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, Pipeline};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const FEATURES: usize = 16;
const CLASSES: usize = 4;

/// How a training is run.
pub struct Run<'a> {
    /// Where burn-train keeps its records.
    pub folder: &'a Path,
    pub workers: usize,
    pub epochs: usize,
    /// The epoch, from 1, whose checkpoint the training goes on from.
    pub from: Option<usize>,
    /// The probability with which dropout leaves a value out.
    pub dropout: f64,
    /// Stop when the loss on the validation set has not fallen for an epoch.
    pub early_stopping: bool,
}

#[derive(Clone, Debug)]
struct Sample {
    features: [f32; FEATURES],
    class: i32,
}

#[derive(Clone, Debug)]
pub struct Batch {
    features: Tensor<2>,
    classes: Tensor<1, Int>,
}

struct Stack;

impl Batcher<Sample, Batch> for Stack {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> Batch {
        let features: Vec<f32> = samples.iter().flat_map(|sample| sample.features).collect();
        let classes: Vec<i32> = samples.iter().map(|sample| sample.class).collect();
        let features = Tensor::<2>::from_data(TensorData::new(features, [samples.len(), FEATURES]), device);
        Batch {
            // Work on the device, that is not done in the samples' threads.
            features: (features.clone() - features.clone().mean_dim(0)) * 0.7,
            classes: Tensor::from_data(TensorData::new(classes, [samples.len()]), device),
        }
    }
}

#[derive(Module, Debug)]
pub struct Classifier {
    first: Linear,
    dropout: Dropout,
    second: Linear,
    activation: Relu,
}

impl Classifier {
    fn forward(&self, batch: Batch) -> ClassificationOutput {
        let hidden = self.dropout.forward(self.activation.forward(self.first.forward(batch.features)));
        let output = self.second.forward(hidden);
        let loss = CrossEntropyLossConfig::new().init(&output.device());
        let loss = loss.forward(output.clone(), batch.classes.clone());
        ClassificationOutput::new(loss, output, batch.classes)
    }
}

impl TrainStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let output = self.forward(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.forward(batch)
    }
}

/// Points around one centre for each class.
fn samples(length: usize, seed: u64) -> Vec<Sample> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = move || rng.random_range(-2.0..2.0);
    let sample = |index: usize| {
        let class = index % CLASSES;
        let centre = |feature: usize| if feature % CLASSES == class { 0.7 } else { 0.0 };
        Sample { features: std::array::from_fn(|feature| centre(feature) + noise()), class: class as i32 }
    };
    (0..length).map(sample).collect()
}

fn train_loader(workers: usize) -> Arc<DataLoader<Sample, Batch>> {
    let samples = Pipeline::new(InMemDataset::new(samples(203, 1))).filter(|sample| sample.features[0] < 1.5).augment(
        812,
        |mut sample, rng| {
            sample.features.iter_mut().for_each(|feature| *feature += rng.random_range(-0.2..0.2));
            // As if reading it took its time, which no seed decides.
            thread::sleep(Duration::from_micros(rand::rng().next_u64() % 200));
            sample
        },
    );
    DataLoaderBuilder::new(Stack).shuffle(812).batch_size(16).num_workers(workers).prefetch(3).build_pipeline(samples)
}

/// Trains as [`Run`] says: the model, and the epochs that it took.
pub fn train(device: &Device, run: &Run<'_>) -> Classifier {
    let train = train_loader(run.workers);
    train.resume_at(run.from.unwrap_or(0), 0);
    let valid =
        DataLoaderBuilder::new(Stack).batch_size(32).num_workers(run.workers).build(InMemDataset::new(samples(70, 2)));
    let model = Classifier {
        first: LinearConfig::new(FEATURES, 32).init(device),
        dropout: DropoutConfig::new(run.dropout).init(),
        second: LinearConfig::new(32, CLASSES).init(device),
        activation: Relu::new(),
    };
    let optimizer = AdamConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(0.5))).init();
    let rate = ExponentialLrSchedulerConfig::new(5e-2, 0.99).init().expect("a learning rate and its decay");
    let mut training = SupervisedTraining::new(run.folder, train.clone(), valid)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .grads_accumulation(3)
        .with_default_checkpointers()
        .with_checkpointing_strategy(KeepLastNCheckpoints::new(10))
        .num_epochs(run.epochs);
    if run.early_stopping {
        training = training.early_stopping(MetricEarlyStoppingStrategy::new(
            &LossMetric::new(),
            Aggregate::Mean,
            Direction::Lowest,
            Split::Valid,
            StoppingCondition::NoImprovementSince { n_epochs: 1 },
        ));
    }
    if let Some(epoch) = run.from {
        training = training.checkpoint(epoch);
    }
    let result = training.launch(Learner::new(model, optimizer, rate));
    assert!(result.error.is_none(), "{:?}", result.error);
    println!("\nepochs: {}", train.position().epoch);
    result.model
}
