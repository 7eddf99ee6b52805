//! Initial weights are a function of the seed and the parameter's path.

use crate::process::Program;
use crate::random::seeds::{internal, source};
use burn::module::{Devices, Module, ModuleMapper, ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, Initializer, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Error, RandomStream, digest, initialize, set_random_seed};
use burn_deterministic_kernels::random::{Distribution as Draws, Source, reference};
use cubecl::ir::{ElemType, FloatKind};

fn bits<const D: usize>(parameter: &Param<Tensor<D>>) -> Vec<u32> {
    parameter.val().into_data().iter::<f32>().map(f32::to_bits).collect()
}

/// What a uniform initialiser gives a parameter of `length` elements at `path`, by the host.
fn expected(path: &str, bound: f64, length: usize) -> Vec<u32> {
    let stream = internal(&RandomStream::current().expect("seeded"), "initialize").fork(path);
    uniform(source(&stream, 0), bound, length)
}

fn uniform(source: Source, bound: f64, length: usize) -> Vec<u32> {
    let uniform = Draws::Uniform { low: -bound, high: bound };
    let values = reference::floats(source, uniform, ElemType::Float(FloatKind::F32), 0..length as u64);
    values.expect("in range").into_iter().map(f32::to_bits).collect()
}

/// The bound of a layer's weights and biases by default: `1 / sqrt(fan in)`, as Burn computes it.
fn bound(fan_in: f64) -> f64 {
    3f64.sqrt() * (1.0 / 3f64.sqrt()) * (1.0 / fan_in.sqrt())
}

/// These never change without a release that says so under **Bits**. They were computed with another implementation of
/// BLAKE3 and ChaCha.
#[test]
fn the_first_weights_stay() {
    let root = internal(&RandomStream::from_seed(812), "initialize");
    let first = |path: &str, fan_in| uniform(source(&root.fork(path), 0), bound(fan_in), 3);
    assert_eq!(first("convolution.weight", 18.0), [1_036_671_890, 1_034_364_826, 3_191_392_929]);
    assert_eq!(first("head.0.weight", 5.0), [3_165_365_552, 3_195_858_826, 3_194_403_260]);
}

#[derive(Module, Debug)]
struct Small {
    convolution: Conv2d,
    norm: BatchNorm,
    head: Vec<Linear>,
}

impl Small {
    fn new(device: &Device) -> Self {
        Self {
            convolution: Conv2dConfig::new([2, 3], [3, 3]).init(device),
            norm: BatchNormConfig::new(3).init(device),
            head: vec![LinearConfig::new(5, 4).init(device), LinearConfig::new(4, 2).with_bias(false).init(device)],
        }
    }
}

/// [`Small`] with layers before, between and after.
#[derive(Module, Debug)]
struct Larger {
    embedding: Embedding,
    norm: BatchNorm,
    convolution: Conv2d,
    head: Vec<Linear>,
    last: Option<Linear>,
}

impl Larger {
    fn new(device: &Device) -> Self {
        let Small { convolution, norm, mut head } = Small::new(device);
        head.push(LinearConfig::new(2, 9).init(device));
        let embedding = EmbeddingConfig::new(7, 3).init(device);
        Self { embedding, norm, convolution, head, last: Some(LinearConfig::new(2, 2).init(device)) }
    }
}

#[test]
fn a_parameter_draws_from_the_stream_of_its_path() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let model = initialize(Small::new(&device)).expect("a seeded thread");
    assert_eq!(bits(&model.convolution.weight), expected("convolution.weight", bound(18.0), 54));
    assert_eq!(bits(model.convolution.bias.as_ref().expect("a bias")), expected("convolution.bias", bound(18.0), 3));
    assert_eq!(bits(&model.head[0].weight), expected("head.0.weight", bound(5.0), 20));
    assert_eq!(bits(model.head[0].bias.as_ref().expect("a bias")), expected("head.0.bias", bound(5.0), 4));
    assert_eq!(bits(&model.head[1].weight), expected("head.1.weight", bound(4.0), 8));
    assert_eq!(bits(&model.norm.gamma), [1f32.to_bits(); 3]);
}

#[test]
fn other_layers_and_the_order_of_use_change_nothing() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let small = initialize(Small::new(&device)).expect("a seeded thread");
    // The thread has drawn, and the parameters are made in another order.
    Tensor::<1>::random([3], Distribution::Default, &device);
    let larger = initialize(Larger::new(&device)).expect("a seeded thread");
    assert_eq!(bits(&larger.convolution.weight), bits(&small.convolution.weight));
    assert_eq!(bits(&larger.head[0].weight), bits(&small.head[0].weight));
    assert_eq!(bits(&larger.head[1].weight), bits(&small.head[1].weight));
    assert_ne!(bits(&larger.last.expect("a layer").weight), bits(&larger.head[1].weight));

    // The hazard: Burn draws where a parameter is first used.
    let lazy = |first: fn(&Small) -> Vec<u32>| {
        set_random_seed(812);
        let model = Small::new(&device);
        first(&model);
        bits(&model.convolution.weight)
    };
    assert_ne!(lazy(|model| bits(&model.convolution.weight)), lazy(|model| bits(&model.head[0].weight)));

    set_random_seed(813);
    let other = initialize(Small::new(&device)).expect("a seeded thread");
    assert_ne!(bits(&other.convolution.weight), bits(&small.convolution.weight));
}

#[test]
fn the_threads_own_numbers_stay_as_they_are() {
    let device = crate::deterministic_device();
    let draw = || Tensor::<1>::random([9], Distribution::Default, &device).into_data();
    set_random_seed(812);
    let undisturbed = [draw(), draw()];
    set_random_seed(812);
    let first = draw();
    initialize(Larger::new(&device)).expect("a seeded thread");
    assert_eq!([first, draw()], undisturbed);
}

#[test]
fn a_parameter_with_a_value_keeps_it() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let fresh = initialize(Small::new(&device)).expect("a seeded thread");
    let mut model = Small::new(&device);
    model.head[0].weight = Param::from_tensor(Tensor::full([5, 4], 0.25, &device));
    let used = bits(&model.head[1].weight);
    let model = initialize(model).expect("a seeded thread");
    assert_eq!(bits(&model.head[0].weight), [0.25f32.to_bits(); 20]);
    assert_eq!(bits(&model.head[1].weight), used);
    assert_ne!(bits(&fresh.head[1].weight), used);
    assert_eq!(bits(&model.convolution.weight), bits(&fresh.convolution.weight));
    let digest_before = digest(&model);
    assert_eq!(digest(&initialize(model).expect("a seeded thread")), digest_before);
}

#[test]
fn the_initialised_module_trains() {
    let device = crate::deterministic_device().autodiff();
    set_random_seed(812);
    let layer = initialize(LinearConfig::new(3, 2).init(&device)).expect("a seeded thread");
    let gradients = layer.forward(Tensor::<2>::ones([4, 3], &device)).sum().backward();
    let gradient = layer.weight.val().grad(&gradients).expect("weights require gradients");
    assert_eq!(gradient.into_data().iter::<f32>().collect::<Vec<_>>(), [4.0; 6]);
}

/// A language model's embedding and output layer, which are one tensor.
#[derive(Module, Debug)]
struct Tied {
    embedding: Embedding,
    output: Linear,
}

#[test]
fn shared_parameters_stay_shared() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let embedding = EmbeddingConfig::new(6, 6).init(&device);
    let mut output = LinearConfig::new(6, 6).init(&device);
    output.weight = embedding.weight.clone();
    let apart = initialize(embedding.clone()).expect("a seeded thread");
    let before = bits(&apart.weight);
    let embedding = EmbeddingConfig::new(6, 6).init(&device);
    output.weight = embedding.weight.clone();
    let tied = initialize(Tied { embedding, output }).expect("a seeded thread");
    assert_eq!(tied.output.weight.id, tied.embedding.weight.id);
    assert_eq!(bits(&tied.output.weight), bits(&tied.embedding.weight));
    assert_ne!(bits(&tied.embedding.weight), before, "`embedding.weight` is another path than `weight`");
}

/// Two parameters that a hand-written module visits at one path.
#[derive(Clone, Debug)]
pub struct Nameless(pub Param<Tensor<1>>, pub Param<Tensor<1>>);

impl Module for Nameless {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(visitor);
        self.1.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(Module::map(self.0, mapper), Module::map(self.1, mapper))
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        self.1.collect_devices(self.0.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device), self.1.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device), self.1.to_device(device))
    }

    fn materialize(self) -> Self {
        self
    }

    fn valid(&self) -> Self {
        Self(self.0.valid(), self.1.valid())
    }

    fn train(self) -> Self {
        Self(self.0.train(), self.1.train())
    }
}

#[test]
fn two_parameters_at_one_path_are_an_error() {
    let device = crate::deterministic_device();
    set_random_seed(812);
    let normal = || Initializer::Normal { mean: 0.0, std: 1.0 }.init([4], &device);
    let error = initialize(Nameless(normal(), normal())).expect_err("they would be equal");
    assert_eq!(error, Error::DuplicatePath { path: String::new() });
}

/// Without determinism, and without a seed.
pub fn initialize_too_early() {
    set_random_seed(812);
    let layer = |device: &Device| LinearConfig::new(3, 2).init(device);
    let plain = Device::default();
    let error = initialize(layer(&plain)).expect_err("plain Burn draws from the operating system");
    assert_eq!(error, Error::NotEnabled { function: "initialize" });
    let device = crate::deterministic_device();
    let unseeded = std::thread::spawn(move || initialize(layer(&device)).expect_err("no seed"));
    assert!(matches!(unseeded.join().expect("an error"), Error::NoStream { .. }));
}

#[test]
fn initialize_without_determinism_or_a_seed() {
    Program::new("initialize_too_early").run().assert_quiet();
}
