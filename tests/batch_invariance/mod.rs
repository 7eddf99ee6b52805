//! Batch invariance: the result of a sample has the same bits alone and in every batch.
//!
//! [`Case`] is an operation on a batch. [`differences`] runs it on batches of 1 to 64 samples, with the samples at other
//! places, among other neighbours, and among NaN. [`padding`] lengthens sequences instead. [`plain`] shows that plain
//! Burn's results do depend on the batch.
//!
//! `burn_deterministic::catalogue::batch` says of which operations this is promised. A case names those it shows:
//! [`calls`] requires that it calls them over Burn's stream, or it is a call of the backend's method, as those of
//! [`methods`] are. [`every_operation_that_is_promised_has_a_case`] compares the two lists.

mod calls;
mod elements;
mod layers;
mod methods;
mod moves;
mod padding;
pub mod plain;
mod products;
mod reductions;
mod windows;

use crate::bits::{floats, indices};
use crate::deterministic_device;
use burn::prelude::*;
use burn_deterministic::catalogue::batch::GROUPS;
use std::collections::BTreeSet;

/// Samples in the largest batch.
const SAMPLES: usize = 64;

/// Samples in the others, besides one.
const SIZES: [usize; 5] = [2, 3, 7, 16, 33];

/// Indices that a sample has, each below [`BOUND`].
const INDICES: usize = 64;
const BOUND: usize = 10;

/// From samples `[samples, length]`, with indices `[samples, INDICES]`, to results `[samples, ..]`.
type Run = Box<dyn Fn(TensorData, TensorData, &Device) -> TensorData>;

/// An operation on a batch.
struct Case {
    name: String,
    /// The operations of the catalogue that it shows.
    operations: &'static str,
    /// Whether `operations` have to reach Burn's stream; the others are called without it.
    on_the_stream: bool,
    /// Elements of a sample.
    length: usize,
    results: Run,
}

impl Case {
    /// A case of the tensor API.
    fn new(
        name: impl Into<String>,
        operations: &'static str,
        length: usize,
        run: impl Fn(Tensor<2>, Tensor<2, Int>) -> Tensor<2> + 'static,
    ) -> Self {
        let run = move |values: TensorData, at: TensorData, device: &Device| {
            run(Tensor::from_data(values, device), Tensor::from_data(at, device)).into_data()
        };
        Self { name: name.into(), operations, on_the_stream: true, length, results: Box::new(run) }
    }

    /// A method of the backend, below the tensor API.
    fn method(
        method: &'static str,
        length: usize,
        run: impl Fn(TensorData, TensorData) -> TensorData + 'static,
    ) -> Self {
        let run = move |values, at, _: &Device| run(values, at);
        Self { name: method.to_owned(), operations: method, on_the_stream: false, length, results: Box::new(run) }
    }

    /// The bits of the results of a batch, a row each. `None` is a sample of NaN.
    ///
    /// # Errors
    ///
    /// What the case names and does not call.
    fn results(&self, batch: &[Option<usize>], device: &Device) -> Result<Vec<Vec<u32>>, String> {
        let samples = floats([SAMPLES * self.length]).try_to_vec::<f32>().expect("f32");
        let numbers = indices([SAMPLES * INDICES], BOUND).try_to_vec::<i32>().expect("i32");
        let sample = |number: &Option<usize>| match number {
            Some(number) => samples[number * self.length..][..self.length].to_vec(),
            None => vec![f32::NAN; self.length],
        };
        let numbers = |number: &Option<usize>| numbers[number.unwrap_or(0) * INDICES..][..INDICES].to_vec();
        let values = TensorData::new(batch.iter().flat_map(sample).collect::<Vec<f32>>(), [batch.len(), self.length]);
        let at = TensorData::new(batch.iter().flat_map(numbers).collect::<Vec<i32>>(), [batch.len(), INDICES]);
        let (results, called) = calls::called(|| (self.results)(values, at, device));
        if self.on_the_stream {
            let uncalled: Vec<_> = self.operations.split_whitespace().filter(|name| !called.contains(name)).collect();
            if !uncalled.is_empty() {
                return Err(format!("{}: it does not call {uncalled:?}, but {called:?}", self.name));
            }
        }
        let [rows, length] = results.shape().dims();
        assert_eq!(rows, batch.len(), "{}: one result for each sample", self.name);
        let bits: Vec<u32> = results.iter::<f32>().map(f32::to_bits).collect();
        Ok(bits.chunks(length).map(<[u32]>::to_vec).collect())
    }

    /// Runs every batch.
    ///
    /// # Errors
    ///
    /// The first batch in which a sample's result is not what it is in the largest one, and what is not called.
    fn run(&self, device: &Device) -> Result<(), String> {
        let all: Vec<_> = (0..SAMPLES).map(Some).collect();
        let want = self.results(&all, device)?;
        assert!(want.iter().any(|row| *row != want[0]), "{}: its results show no difference", self.name);
        let alone = [0, 1, 30, SAMPLES - 1].map(|sample| vec![Some(sample)]);
        let turned: Vec<_> = all.iter().rev().copied().collect();
        let smaller = SIZES.into_iter().flat_map(|size| [all[..size].to_vec(), turned[..size].to_vec()]);
        let among_nan = [(7, 0), (33, 32), (SAMPLES, 17)].map(|(size, place)| {
            let mut batch = vec![None; size];
            batch[place] = Some(5);
            batch
        });
        for batch in alone.into_iter().chain(smaller).chain(among_nan) {
            for (place, (row, sample)) in self.results(&batch, device)?.iter().zip(&batch).enumerate() {
                if let Some(sample) = sample.filter(|&sample| *row != want[sample]) {
                    let kind = if batch.contains(&None) { " of NaN" } else { "" };
                    let size = batch.len();
                    return Err(format!("{}: sample {sample} at {place} of {size}{kind}", self.name));
                }
            }
        }
        Ok(())
    }
}

/// What depends on the batch: each case's first difference. A case that does not call what it names is here too.
fn differences(cases: &[Case], device: &Device) -> Vec<String> {
    cases.iter().filter_map(|case| case.run(device).err()).collect()
}

fn check(cases: fn(&Device) -> Vec<Case>) {
    let device = deterministic_device();
    burn_deterministic::set_random_seed(812);
    let differences = differences(&cases(&device), &device);
    assert!(
        differences.is_empty(),
        "results depend on the batch, or are not those of the operation:\n{}",
        differences.join("\n")
    );
}

/// A result `[samples, ..]` as `[samples, n]`.
fn rows<const D: usize>(tensor: Tensor<D>) -> Tensor<2> {
    let samples = tensor.dims()[0];
    let length = tensor.shape().num_elements() / samples;
    tensor.reshape([samples, length])
}

/// Samples `[samples, length]` as columns `[length, samples]` that lie in memory like that.
fn columns(samples: Tensor<2>) -> Tensor<2> {
    let device = samples.device();
    Tensor::from_data(samples.transpose().into_data(), &device)
}

/// Weights: the same values in every batch.
fn weights<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(floats(shape), device)
}

macro_rules! groups {
    ($($test:ident: $cases:path;)*) => {
        $(
            #[test]
            fn $test() {
                check($cases);
            }
        )*

        #[test]
        fn every_operation_that_is_promised_has_a_case() {
            let device = deterministic_device();
            let mut cases = Vec::new();
            $(cases.extend($cases(&device));)*
            let shown: BTreeSet<_> = cases.iter().flat_map(|case| case.operations.split_whitespace()).collect();
            let promised = GROUPS.iter().filter(|group| group.is_invariant).flat_map(|group| group.operations());
            assert_eq!(shown, promised.collect::<BTreeSet<_>>());
        }
    };
}

groups! {
    element_wise_operations: elements::pairs;
    elementary_functions: elements::functions;
    activations: elements::activations;
    integers: elements::integers;
    float_methods: methods::float_methods;
    activation_methods: methods::activations;
    layer_methods: methods::layers;
    integer_methods: methods::integer_methods;
    boolean_methods: methods::boolean_methods;
    copies: moves::moves;
    reads_at_indices: moves::reads;
    updates_at_indices: moves::updates;
    sums_and_products: reductions::sums;
    extremes: reductions::extremes;
    scans: reductions::scans;
    orders: reductions::orders;
    softmaxes_and_losses: reductions::softmaxes;
    matrix_products: products::products;
    attention: products::attentions;
    convolutions: layers::convolutions;
    transposed_convolutions: layers::transposed_convolutions;
    normalisations: layers::normalisations;
    recurrent_layers: layers::recurrent;
    networks: layers::networks;
    pools: windows::pools;
    resizing_and_sampling: windows::sampling;
}
