//! Learns vectors for the words of a real text by skip-gram with negative sampling, and prints which words are near
//! which: TensorFlow's tutorial "word2vec", after T. Mikolov et al., "Distributed Representations of Words and Phrases
//! and their Compositionality" (2013).
//!
//! `cargo run --release --features wgpu --example word2vec` prints the same digest, and the same words, every time.

use anyhow::{Context, Result};
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation;
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use examples_common::{Arguments, CONSTITUTION, Run, Words, generator, shuffled};
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
        let embedding = || EmbeddingConfig::new(words, WIDTH).init(device);
        Self { words: embedding(), contexts: embedding() }
    }

    /// Scores `[n, k]` of `k` contexts for each word: words `[n, 1]`, contexts `[n, k]`.
    fn forward(&self, words: Tensor<2, Int>, contexts: Tensor<2, Int>) -> Tensor<2> {
        let scores = self.contexts.forward(contexts).matmul(self.words.forward(words).swap_dims(1, 2));
        scores.squeeze_dim::<2>(2)
    }
}

/// A word and one near it.
type Pair = (i32, i32);

fn main() -> Result<()> {
    run(&Arguments::read())
}

/// Trains, and prints the digest of the weights.
pub fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.plain {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let device = arguments.device();
    let words = Words::of(CONSTITUTION, 5);
    let (train, test) = words.text.split_at(words.text.len() / 10 * 9);
    let (train, test) = (pairs(train), pairs(test));
    let batch_size = arguments.batch_size.unwrap_or(512);
    let learning_rate = arguments.learning_rate.unwrap_or(3e-3);
    // The authors' choice: between as often as in the text and all alike.
    let strangers = WeightedIndex::new(words.counts.iter().map(|&count| (count as f32).powf(0.75)))?;

    let mut model = SkipGram::new(words.vocabulary.len(), &device);
    let mut optimizer = AdamConfig::new().init();
    let mut run = Run::start("word2vec", arguments, 12, &["loss"])?;
    while let Some(epoch) = run.epoch(train.len().div_ceil(batch_size))? {
        let order = shuffled(train.len(), arguments.seed, epoch);
        let mut random = generator(!arguments.seed, epoch);
        for indices in order.chunks(batch_size).take(run.steps_left()) {
            let pairs: Vec<Pair> = indices.iter().map(|&index| train[index]).collect();
            let drawn = (&strangers).sample_iter(&mut random).take(NEGATIVES * pairs.len()).collect();
            let loss = loss(&model, &pairs, drawn, &device);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
        }
        let drawn = (&strangers).sample_iter(&mut generator(!arguments.seed, 0)).take(NEGATIVES * test.len()).collect();
        let test_loss = loss(&model.valid(), &test, drawn, &device.clone().without_autodiff());
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

/// The pairs' words belong together, and do not with the words `drawn` for them.
fn loss(model: &SkipGram, pairs: &[Pair], drawn: Vec<usize>, device: &Device) -> Tensor<1> {
    let column = |numbers: Vec<i32>| Tensor::from_data(TensorData::new(numbers, [pairs.len(), 1]), device);
    let words: Tensor<2, Int> = column(pairs.iter().map(|pair| pair.0).collect());
    let contexts = column(pairs.iter().map(|pair| pair.1).collect());
    let drawn: Vec<i32> = drawn.into_iter().map(|number| number as i32).collect();
    let drawn = Tensor::from_data(TensorData::new(drawn, [pairs.len(), NEGATIVES]), device);
    let near = activation::log_sigmoid(model.forward(words.clone(), contexts));
    let far = activation::log_sigmoid(model.forward(words, drawn).neg());
    (near.sum() + far.sum()).neg() / pairs.len() as f32
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
