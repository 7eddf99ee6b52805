//! What a module holds comes back, and into nothing but such a module.

use super::{differences, reloaded};
use crate::deterministic_device;
use burn::module::{Flag, Module, Param, ParamId, ParamMapper};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::prelude::*;
use burn::tensor::{DType, Distribution};
use burn_deterministic::checkpoint::{Checkpoint, Error};
use burn_deterministic::{compare, digest, set_random_seed};

fn checkpoint(step: u64) -> Checkpoint {
    Checkpoint::new(step).expect("a device that runs")
}

/// Saves and restores a module by way of a file.
fn through_a_file<M: Module>(from: &M, into: M) -> Result<M, Error> {
    reloaded(&checkpoint(0).with_module("model", from)?).module("model", into)
}

/// A tensor of each kind.
#[derive(Module, Debug)]
struct Kinds {
    float: Param<Tensor<2>>,
    integer: Param<Tensor<1, Int>>,
    truth: Param<Tensor<1, Bool>>,
    empty: Param<Tensor<3>>,
    nested: Vec<Param<Tensor<1>>>,
    flag: Param<Flag>,
}

impl Kinds {
    fn new(float: [u32; 8], integer: [i32; 3], truth: [bool; 2], device: &Device) -> Self {
        let float = TensorData::new(float.map(f32::from_bits).to_vec(), [2, 4]);
        Self {
            float: Param::from_data(float, device),
            integer: Param::initialized(ParamId::new(), Tensor::from_data(integer, device)),
            truth: Param::initialized(ParamId::new(), Tensor::from_data(truth, device)),
            empty: Param::from_tensor(Tensor::zeros([2, 0, 3], device)),
            nested: (0..2).map(|at| Param::from_data([integer[at] as f32], device)).collect(),
            flag: Param::from_bool(true),
        }
    }

    /// Not a number in two ways, infinities, negative zero, subnormal numbers.
    fn odd(device: &Device) -> Self {
        let float = [0x7fc0_1234, 0xff80_0001, 0x7f80_0000, 0xff80_0000, 0x8000_0000, 1, 0x807f_ffff, 0x3eaa_aaab];
        Self::new(float, [i32::MIN, -1, i32::MAX], [true, false], device)
    }

    fn plain(device: &Device) -> Self {
        Self::new([0; 8], [0; 3], [false; 2], device)
    }
}

#[test]
fn every_bit_of_every_kind_comes_back() {
    for device in [deterministic_device(), deterministic_device().autodiff()] {
        let (odd, plain) = (Kinds::odd(&device), Kinds::plain(&device));
        let ids = [plain.float.id, plain.integer.id, plain.truth.id];
        assert_ne!(digest(&odd), digest(&plain));
        let restored = through_a_file(&odd, plain).expect("the same kinds");
        assert_eq!(digest(&restored), digest(&odd));
        let bytes = |module: &Kinds| module.float.val().into_data().as_bytes().to_vec();
        assert_eq!(bytes(&restored), bytes(&odd));
        assert_eq!([restored.float.id, restored.integer.id, restored.truth.id], ids, "ids stay the module's own");
    }
}

/// Burn's own files of equal models differ; these do not.
#[test]
fn equal_models_are_written_in_equal_bytes() {
    let device = deterministic_device();
    let (one, other) = (Kinds::odd(&device), Kinds::odd(&device));
    let of_burn = |module: &Kinds| module.clone().into_record().into_bytes().expect("a record").to_vec();
    assert_ne!(of_burn(&one), of_burn(&other), "the hazard");
    let ours = |module: &Kinds| {
        let folder = crate::process::Folder::new();
        let path = folder.path().join("a.checkpoint");
        checkpoint(0).with_module("model", module).expect("a model").save(&path).expect("a folder to write to");
        std::fs::read(&path).expect("the file just written")
    };
    assert_eq!(ours(&one), ours(&other));
}

/// Batch norm holds its last update apart, where Burn's visitors do not see it.
#[test]
fn a_running_state_comes_back_with_its_last_update() {
    let device = deterministic_device().autodiff();
    let used = |steps: usize| {
        let norm = BatchNormConfig::new(2).init(&device);
        for step in 0..steps {
            let data = TensorData::new(vec![step as f32, 1.0, 2.0, -3.0], [2, 2]);
            norm.forward(Tensor::<2>::from_data(data, &device));
        }
        norm
    };
    let seen = |norm: &BatchNorm| norm.running_mean.value().into_data().as_bytes().to_vec();
    let norm = used(3);
    let last = used(3).running_mean.value_sync().into_data();
    assert_ne!(seen(&norm), last.as_bytes(), "the hazard: the third update is not to be seen");
    let restored = through_a_file(&norm, used(1)).expect("the same layer");
    let expected = used(3);
    for _ in 0..2 {
        let comparison = compare(&restored, &expected).expect("readable layers");
        assert!(comparison.is_equal(), "{comparison}");
        let data = TensorData::new(vec![5.0_f32, 1.0, 0.5, -1.0], [2, 2]);
        for norm in [&restored, &expected] {
            norm.forward(Tensor::<2>::from_data(data.clone(), &device));
        }
    }
}

#[test]
fn what_is_not_initialised_stays_so_and_draws_the_same_numbers() {
    let device = deterministic_device();
    let layer = || LinearConfig::new(5, 3).init(&device);
    let bits = |layer: &Linear| layer.weight.val().into_data().as_bytes().to_vec();
    set_random_seed(1);
    let _: Tensor<1> = Tensor::random([4], Distribution::Default, &device);
    let saved = layer();
    let checkpoint = checkpoint(9).with_module("layer", &saved).expect("nothing to read");
    assert!(!saved.weight.is_initialized(), "saving is not using");
    let expected = bits(&saved);

    set_random_seed(2);
    let mut checkpoint = reloaded(&checkpoint);
    let used = layer();
    bits(&used);
    let found = differences(checkpoint.clone().module("layer", used));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`weight` was not initialised, and is"), "{found:?}");
    let restored = checkpoint.module("layer", layer()).expect("the same layer");
    assert_eq!(checkpoint.resume().expect("nothing is left"), 9);
    assert!(!restored.weight.is_initialized());
    assert_eq!(bits(&restored), expected);
}

/// Two layers that are one, as Burn ties them: by a clone.
#[derive(Module, Debug)]
struct Tied {
    first: Param<Tensor<1>>,
    second: Param<Tensor<1>>,
}

impl Tied {
    fn new(values: [f32; 2], device: &Device) -> Self {
        let first = Param::from_data(values, device);
        Self { second: first.clone(), first }
    }

    fn apart(values: [f32; 2], device: &Device) -> Self {
        Self { first: Param::from_data(values, device), second: Param::from_data(values, device) }
    }

    fn trained(mut self, steps: usize) -> Self {
        let mut optimizer = SgdConfig::new().init();
        for _ in 0..steps {
            let loss = (self.first.val() * self.second.val().exp()).sum();
            let gradients = GradientsParams::from_grads(loss.backward(), &self);
            self = optimizer.step(0.1, self, gradients);
        }
        self
    }
}

#[test]
fn tied_parameters_go_on_tied() {
    let device = deterministic_device().autodiff();
    let tied = || Tied::new([0.3, -0.7], &device);
    for before in 0..3 {
        let expected = tied().trained(before + 2);
        let restored = through_a_file(&tied().trained(before), tied()).expect("the same ties");
        assert_eq!(digest(&restored.trained(2)), digest(&expected), "{before} steps before");
    }
    // Without it the first case could not fail: what shares no tensor trains otherwise.
    let apart = Tied::apart([0.3, -0.7], &device);
    assert_ne!(digest(&apart.trained(2)), digest(&tied().trained(2)));
    let found = differences(through_a_file(&tied(), Tied::apart([0.3, -0.7], &device)));
    assert_eq!(found, ["`second` was tied to `first`, and is not tied"]);
}

#[derive(Module, Debug)]
struct Small {
    one: Linear,
    dropout: Dropout,
}

#[derive(Module, Debug)]
struct Other {
    one: Linear,
    two: Linear,
    dropout: Param<Tensor<1>>,
}

fn used(layer: Linear) -> Linear {
    // A first use initialises.
    let (_, _) = (layer.weight.val(), layer.bias.as_ref().map(Param::val));
    layer
}

#[test]
fn all_that_does_not_fit_is_told_at_once() {
    let device = deterministic_device();
    set_random_seed(3);
    let linear = |inputs, outputs| used(LinearConfig::new(inputs, outputs).init(&device));
    let saved = Small { one: linear(3, 2), dropout: DropoutConfig::new(0.5).init() };
    let half = |layer: Linear| {
        let mapper = ParamMapper::default();
        let weight = layer.weight.val().cast(DType::F16);
        Linear { weight: Param::from_mapped_value(layer.weight.id, weight, mapper), ..layer }
    };
    let other =
        Other { one: half(linear(3, 4)), two: linear(1, 1), dropout: Param::from_tensor(Tensor::zeros([1], &device)) };
    let error = reloaded(&checkpoint(0).with_module("model", &saved).expect("a model"));
    let error = error.clone().module("model", other);
    let text = error.as_ref().expect_err("another model").to_string();
    assert!(text.starts_with("`model` of the checkpoint of step 0 in `"), "{text}");
    let mut found = differences(error);
    found.sort();
    assert_eq!(
        found,
        [
            "`dropout.training` was saved, and is not there now",
            "`dropout` was not saved",
            "`one.bias` was [2], and is [4]",
            "`one.weight` was [3, 2], and is [3, 4]",
            "`one.weight` was f32, and is f16",
            "`two.bias` was not saved",
            "`two.weight` was not saved",
        ]
    );
}

#[test]
fn what_is_frozen_is_frozen_again() {
    let device = deterministic_device().autodiff();
    set_random_seed(4);
    let model = || Small { one: used(LinearConfig::new(3, 2).init(&device)), dropout: DropoutConfig::new(0.5).init() };
    let frozen = model().freeze();
    let restored = through_a_file(&frozen, model().freeze()).expect("the same model");
    assert!(!restored.one.weight.is_require_grad());
    assert_eq!(digest(&restored), digest(&frozen));
    assert_eq!(
        differences(through_a_file(&frozen, model())),
        [
            "`dropout.training` was not set, and is",
            "`one.bias` was frozen, and is trainable",
            "`one.weight` was frozen, and is trainable",
        ]
    );
    let trainable = through_a_file(&model(), model()).expect("the same model");
    assert!(trainable.one.weight.is_require_grad(), "and goes on being trained");
    // For inference there is no difference.
    through_a_file(&model(), model().valid()).expect("the same model");
    through_a_file(&model().valid(), model()).expect("the same model");
}
