//! Trains a small network on a table of a real text's words, to tell which are written with a capital: Keras's "structured
//! data classification", where one class is rarer than the other ("imbalanced classification").
//!
//! Categorical columns go through embeddings and numeric ones are normalised; rows of both classes are drawn equally often.
//!
//! `cargo run --release --features wgpu --example text_table` prints the same digest every time.

use anyhow::Result;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig, Relu};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, CONSTITUTION, Confusion, Help, Run};
use std::collections::BTreeMap;

/// Numbers that describe a value of a categorical column.
const WIDTH: usize = 8;

#[derive(Module, Debug)]
struct Table {
    /// One for each categorical column.
    embeddings: Vec<Embedding>,
    hidden: Linear,
    dropout: Dropout,
    output: Linear,
    activation: Relu,
}

impl Table {
    /// For categorical columns of so many `values`, and so many numeric columns.
    fn new(values: &[usize], numbers: usize, device: &Device) -> Self {
        Self {
            embeddings: values.iter().map(|&values| EmbeddingConfig::new(values, WIDTH).init(device)).collect(),
            hidden: LinearConfig::new(values.len() * WIDTH + numbers, 64).init(device),
            dropout: DropoutConfig::new(0.5).init(),
            output: LinearConfig::new(64, 2).init(device),
            activation: Relu::new(),
        }
    }

    /// Logits `[n, 2]` of the classes.
    fn forward(&self, Batch { categories, numbers, .. }: Batch) -> Tensor<2> {
        let columns = self.embeddings.iter().zip(categories.iter_dim(1));
        let embedded = columns.map(|(embedding, column)| embedding.forward(column).squeeze_dim::<2>(1));
        let x = Tensor::cat(embedded.chain([numbers]).collect(), 1);
        self.output.forward(self.dropout.forward(self.activation.forward(self.hidden.forward(x))))
    }
}

/// A word of the text.
#[derive(Clone, Debug)]
struct Row {
    /// The word, the one before it, its last two letters, and the character before it.
    categories: [i32; 4],
    /// Its letters, the words since the last full stop, and its place in the text, each with mean 0 and variance 1.
    numbers: [f32; 3],
    /// 1 with a capital, 0 without.
    label: i32,
}

/// The rows of `text` in its order, and the number of values of each categorical column.
fn rows(text: &str) -> (Vec<Row>, [usize; 4]) {
    let mut columns: [Vec<String>; 4] = Default::default();
    let (mut numbers, mut labels, mut before, mut stop) = (Vec::new(), Vec::new(), String::new(), 0);
    for word in text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty()) {
        let place = word.as_ptr() as usize - text.as_ptr() as usize;
        let mark = text[..place].trim_end().chars().next_back().filter(|mark| !mark.is_alphabetic());
        if mark == Some('.') {
            stop = labels.len();
        }
        let lower = word.to_lowercase();
        let ending = lower.chars().skip(lower.chars().count().saturating_sub(2)).collect();
        let values = [lower.clone(), std::mem::replace(&mut before, lower), ending, mark.into_iter().collect()];
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        numbers.push([word.chars().count(), labels.len() - stop, place].map(|number| number as f64));
        labels.push(i32::from(word.starts_with(char::is_uppercase)));
    }
    let columns = columns.map(|column| numbered(&column));
    let numbers = normalised(&numbers);
    let row = |index: usize| Row {
        categories: columns.each_ref().map(|(column, _)| column[index]),
        numbers: numbers[index],
        label: labels[index],
    };
    ((0..labels.len()).map(row).collect(), columns.each_ref().map(|(_, values)| *values))
}

/// A column's values as numbers, 0 for all that occur less than three times and then in the order of the alphabet; and how
/// many numbers there are.
fn numbered(column: &[String]) -> (Vec<i32>, usize) {
    let mut counts = BTreeMap::<&String, usize>::new();
    for value in column {
        *counts.entry(value).or_default() += 1;
    }
    let often = counts.into_iter().filter(|(_, count)| *count >= 3);
    let numbers: BTreeMap<&String, i32> = (1..).zip(often).map(|(number, (value, _))| (value, number)).collect();
    (column.iter().map(|value| numbers.get(value).copied().unwrap_or(0)).collect(), numbers.len() + 1)
}

/// Each column less its mean, divided by its standard deviation.
fn normalised(rows: &[[f64; 3]]) -> Vec<[f32; 3]> {
    let mean = |column: usize, power: i32, less: f64| {
        rows.iter().map(|row| (row[column] - less).powi(power)).sum::<f64>() / rows.len() as f64
    };
    let scales = [0, 1, 2].map(|column| (mean(column, 1, 0.0), mean(column, 2, mean(column, 1, 0.0)).sqrt()));
    let scaled = |row: &[f64; 3]| [0, 1, 2].map(|column| ((row[column] - scales[column].0) / scales[column].1) as f32);
    rows.iter().map(scaled).collect()
}

/// Rows on a device: categories `[n, 4]`, numbers `[n, 3]` and labels `[n]`.
#[derive(Clone, Debug)]
struct Batch {
    categories: Tensor<2, Int>,
    numbers: Tensor<2>,
    labels: Tensor<1, Int>,
}

struct RowBatcher;

impl Batcher<Row, Batch> for RowBatcher {
    fn batch(&self, rows: Vec<Row>, device: &Device) -> Batch {
        let count = rows.len();
        let categories = rows.iter().flat_map(|row| row.categories).collect::<Vec<i32>>();
        let numbers = rows.iter().flat_map(|row| row.numbers).collect::<Vec<f32>>();
        let labels = rows.iter().map(|row| row.label).collect::<Vec<i32>>();
        Batch {
            categories: Tensor::from_data(TensorData::new(categories, [count, 4]), device),
            numbers: Tensor::from_data(TensorData::new(numbers, [count, 3]), device),
            labels: Tensor::from_data(TensorData::new(labels, [count]), device),
        }
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a network with embeddings to tell which words of a text have a capital, both classes drawn equally often",
    data: "7,573 words of the Constitution of the United States, in this repository, a row each; every fifth is to test with",
    takes: "half a minute for 10 epochs on two cores without a GPU; guessing has a balanced accuracy of 0.5",
    leaves: &["confusion.svg"],
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
    let (rows, values) = rows(CONSTITUTION);
    let (test, train): (Vec<_>, Vec<_>) = rows.into_iter().enumerate().partition(|(index, _)| index % 5 == 4);
    let [test, train] = [test, train].map(|rows| rows.into_iter().map(|(_, row)| row).collect::<Vec<Row>>());
    let batch_size = arguments.batch_size.unwrap_or(128);
    let learning_rate = arguments.learning_rate.unwrap_or(2e-3);
    let steps = train.len().div_ceil(batch_size);
    // A class is drawn as often as the other, however many rows it has.
    let count = |label| train.iter().filter(|row| row.label == label).count() as f64;
    let weights = [1.0 / count(0), 1.0 / count(1)];
    let weights: Vec<f64> = train.iter().map(|row| weights[row.label as usize]).collect();
    let loader = DataLoaderBuilder::new("train", RowBatcher)
        .weighted(arguments.seed, weights, train.len())
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(InMemDataset::new(train));
    let test = RowBatcher.batch(test, &device.clone().without_autodiff());

    let mut model = Table::new(&values, 3, &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut run = Run::start("text_table", arguments, 10, &["loss"])?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let batch = batch?;
            let labels = batch.labels.clone();
            let loss = loss.forward(model.forward(batch), labels);
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
        let confusion = confusion(&model.valid(), &test)?;
        let accuracies =
            [("test accuracy", confusion.accuracy()), ("balanced accuracy", confusion.balanced_accuracy())];
        run.end_epoch(&accuracies)?;
    }
    let model = model.valid();
    run.confusion(&confusion(&model, &test)?)?;
    run.finish(&model, digest(&model))
}

/// Which class `model` takes for which.
fn confusion(model: &Table, rows: &Batch) -> Result<Confusion> {
    let named = model.forward(rows.clone()).argmax(1).squeeze_dim(1);
    Confusion::new(["small", "capital"].map(str::to_owned).into(), rows.labels.clone(), named)
}
