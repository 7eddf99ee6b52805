//! Learns vectors for the words of a real text by skip-gram with negative sampling, and prints which words are near
//! which: TensorFlow's tutorial "word2vec", after T. Mikolov et al., "Distributed Representations of Words and Phrases
//! and their Compositionality" (2013).
//!
//! `cargo run --release --features wgpu --example word2vec` prints the same digest, and the same words, every time.

use anyhow::{Context, Result};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig, Initializer};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, CONSTITUTION, Help, Run, TEXT, Words};
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

/// How far apart a word and its context are at most.
const WINDOW: usize = 3;
/// Words drawn for each that was there.
const NEGATIVES: usize = 5;
const WIDTH: usize = 32;

#[derive(Module, Debug)]
struct SkipGram {
    words: Embedding,
    contexts: Embedding,
}

impl SkipGram {
    fn new(words: usize, device: &Device) -> Self {
        let initializer = Initializer::Uniform { min: -0.1, max: 0.1 };
        let embedding = || EmbeddingConfig::new(words, WIDTH).with_initializer(initializer.clone()).init(device);
        Self { words: embedding(), contexts: embedding() }
    }

    /// Scores `[n, k]` of `k` contexts for each word: words `[n, 1]`, contexts `[n, k]`.
    fn forward(&self, words: Tensor<2, Int>, contexts: Tensor<2, Int>) -> Tensor<2> {
        let scores = self.contexts.forward(contexts).matmul(self.words.forward(words).swap_dims(1, 2));
        scores.squeeze_dim::<2>(2)
    }

    /// Words belong together with those near them, and not with those drawn, `[1]`.
    fn loss(&self, Batch { words, near, drawn }: Batch) -> Tensor<1> {
        let [count, _] = words.dims();
        let near = activation::log_sigmoid(self.forward(words.clone(), near));
        let far = activation::log_sigmoid(self.forward(words, drawn).neg());
        (near.sum() + far.sum()).neg() / count as f32
    }
}

/// A word and one near it.
type Pair = (i32, i32);

/// A word, one near it, and some drawn.
#[derive(Clone, Debug)]
struct Sample {
    word: i32,
    near: i32,
    drawn: [i32; NEGATIVES],
}

/// Samples on a device: words `[n, 1]`, near ones `[n, 1]`, drawn ones `[n, NEGATIVES]`.
struct Batch {
    words: Tensor<2, Int>,
    near: Tensor<2, Int>,
    drawn: Tensor<2, Int>,
}

struct SampleBatcher;

impl Batcher<Sample, Batch> for SampleBatcher {
    fn batch(&self, samples: Vec<Sample>, device: &Device) -> Batch {
        let tensor = |numbers: Vec<i32>| {
            let shape = [samples.len(), numbers.len() / samples.len()];
            Tensor::from_data(TensorData::new(numbers, shape), device)
        };
        Batch {
            words: tensor(samples.iter().map(|sample| sample.word).collect()),
            near: tensor(samples.iter().map(|sample| sample.near).collect()),
            drawn: tensor(samples.iter().flat_map(|sample| sample.drawn).collect()),
        }
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "vectors for words by skip-gram with negative sampling, and prints which words are near which",
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
    let words = Words::of(CONSTITUTION, 5);
    let batch_size = arguments.batch_size.unwrap_or(512);
    let (train, test) = words.text.split_at(words.text.len() / 10 * 9);
    let (train, test) = (pairs(train), pairs(test));
    let (steps, test_size) = (train.len().div_ceil(batch_size), test.len());
    let learning_rate = arguments.learning_rate.unwrap_or(5e-3);
    // The authors' choice: between as often as in the text and all alike.
    let strangers = WeightedIndex::new(words.counts.iter().map(|&count| (count as f32).powf(0.75)))?;
    let samples = |pairs: Vec<Pair>| {
        let strangers = strangers.clone();
        Pipeline::new(InMemDataset::new(pairs)).augment(arguments.seed, move |(word, near): Pair, random| Sample {
            word,
            near,
            drawn: [(); NEGATIVES].map(|()| strangers.sample(random) as i32),
        })
    };
    let train = DataLoaderBuilder::new("train", SampleBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build_pipeline(samples(train));
    // The same strangers after each epoch, so that losses can be compared.
    let test = DataLoaderBuilder::new("test", SampleBatcher)
        .batch_size(test_size)
        .fixed_epoch()
        .set_device(device.clone().without_autodiff())
        .build_pipeline(samples(test));

    let mut model = SkipGram::new(words.vocabulary.len(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = AdamConfig::new().init();
    let mut run = Run::start("word2vec", arguments, 8, &["loss"])?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        train.resume_at(&checkpoint.value("train")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&train) {
            let loss = model.loss(batch?);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_value("train", &train.position())
            })?;
        }
        let batch = test.batches().next().context("there are pairs to test with")??;
        let test_loss = model.valid().loss(batch);
        run.end_epoch(&[("test loss", test_loss.into_scalar::<f32>())])?;
    }
    let model = model.valid();
    for word in ["president", "senate", "law", "states", "two"] {
        println!("{word}: {}", neighbours(&model, &words, word)?.join(", "));
    }
    run.finish(&model, digest(&model))
}

/// Every word with those around it.
fn pairs(text: &[i32]) -> Vec<Pair> {
    let around = |at: usize| (at.saturating_sub(WINDOW)..text.len().min(at + WINDOW + 1)).filter(move |&n| n != at);
    (0..text.len()).flat_map(|at| around(at).map(move |near| (text[at], text[near]))).collect()
}

/// The five words whose vectors have the smallest angles with that of `word`.
fn neighbours<'a>(model: &SkipGram, words: &'a Words, word: &str) -> Result<Vec<&'a str>> {
    let index = words.vocabulary.iter().position(|known| known == word).with_context(|| format!("no word {word}"))?;
    let vectors = model.words.weight.val();
    let lengths = vectors.clone().square().sum_dim(1).sqrt();
    let vectors = vectors / lengths;
    let cosines = vectors.clone().matmul(vectors.slice(s![index..index + 1, ..]).transpose()).flatten::<1>(0, 1);
    let nearest = cosines.argsort_descending(0).try_into_data()?.iter::<i64>().collect::<Vec<_>>();
    let others = nearest.into_iter().map(|number| number as usize).filter(|&number| number != index);
    Ok(others.take(5).map(|number| words.vocabulary[number].as_str()).collect())
}
