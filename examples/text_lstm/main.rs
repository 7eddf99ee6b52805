//! Trains an LSTM to continue a real text character by character, and prints what it writes: Keras's "character-level
//! text generation with LSTM".
//!
//! `cargo run --release --features wgpu --example text_lstm` prints the same digest, and the same text, every time.

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, Lstm, LstmConfig, LstmState};
use burn::optim::{GradientsParams, RmsPropConfig};
use burn::prelude::*;
use burn::tensor::activation;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Help, PassageBatcher, Passages, Run, TEXT};
use rand::RngExt;

/// Characters in a passage.
const LENGTH: usize = 16;
const HIDDEN: usize = 128;

#[derive(Module, Debug)]
struct CharacterLstm {
    embedding: Embedding,
    lstm: Lstm,
    output: Linear,
}

impl CharacterLstm {
    fn new(characters: usize, device: &Device) -> Self {
        Self {
            embedding: EmbeddingConfig::new(characters, 32).init(device),
            lstm: LstmConfig::new(32, HIDDEN, true).init(device),
            output: LinearConfig::new(HIDDEN, characters).init(device),
        }
    }

    /// Characters `[batch, length]` to logits `[batch * length, characters]` of the next, and the state at the end.
    fn forward(&self, text: Tensor<2, Int>, state: Option<LstmState<2>>) -> (Tensor<2>, LstmState<2>) {
        let (x, state) = self.lstm.forward(self.embedding.forward(text), state);
        (self.output.forward(x.flatten::<2>(0, 1)), state)
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "an LSTM to continue a text character by character, and prints what it writes",
    data: TEXT,
    takes: "two minutes at most on two cores without a GPU",
    leaves: &[],
};

fn main() -> Result<()> {
    run(&Arguments::read(&HELP))
}

/// Trains, and prints the digest of the weights.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.plain {
        observe()?;
    } else {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let device = arguments.device();
    let (characters, train, test) = Passages::load(LENGTH);
    let batch_size = arguments.batch_size.unwrap_or(64);
    let learning_rate = arguments.learning_rate.unwrap_or(1e-2);
    let steps = train.len().div_ceil(batch_size);
    // Each epoch cuts the text at other places.
    let passages = Pipeline::new(train).augment(arguments.seed, |text: Vec<i32>, random| {
        let start = random.random_range(0..LENGTH);
        text[start..=start + LENGTH].to_vec()
    });
    let loader = DataLoaderBuilder::new("train", PassageBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build_pipeline(passages);

    let mut model = CharacterLstm::new(characters.count(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let clipping = Some(GradientClippingConfig::Norm(1.0));
    let mut optimizer = RmsPropConfig::new().with_grad_clipping(clipping).init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut run = Run::start("text_lstm", arguments, 3, &["loss"])?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let (text, next) = batch?;
            let loss = loss.forward(model.forward(text, None).0, next);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_value("loader", &loader.position())
            })?;
        }
        let (text, next) = test.all(&device.clone().without_autodiff());
        let test_loss = loss.forward(model.valid().forward(text, None).0, next);
        run.end_epoch(&[("test loss", test_loss.into_scalar::<f32>())])?;
    }
    let model = model.valid();
    let written = write(&model, &characters.encode("The Congress shall "), 200, &device.without_autodiff());
    println!("{}", characters.decode(&written));
    run.finish(&model, digest(&model))
}

/// `start`, and `length` more characters.
fn write(model: &CharacterLstm, start: &[i32], length: usize, device: &Device) -> Vec<i32> {
    let mut written = start.to_vec();
    let (mut read, mut state) = (0, None);
    while written.len() < start.len() + length {
        let unread = &written[read..];
        let text = Tensor::from_data(TensorData::new(unread.to_vec(), [1, unread.len()]), device);
        let (logits, reached) = model.forward(text, state);
        let last = logits.slice(s![-1.., ..]);
        // At temperature 0.7, likely characters become likelier.
        let next = activation::softmax(last / 0.7, 1).categorical(1);
        (read, state) = (written.len(), Some(reached));
        written.push(next.into_scalar::<i32>());
    }
    written
}
