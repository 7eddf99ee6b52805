//! Tensors that carry the error of an operation are not saved, and saving them is an error and no panic.

use super::reloaded;
use crate::deterministic_device;
use crate::process::Program;
use burn::module::{Module, Param, ParamId};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, GradientsParams, LBFGSConfig, ModuleOptimizer, SgdConfig};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::checkpoint::{Checkpoint, Error};
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed, try_digest};

fn checkpoint() -> Checkpoint {
    Checkpoint::new(0).expect("a device that runs")
}

/// Runs `program` in a thread whose random operations are refused, for it has no seed.
fn unseeded<T: Send>(program: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(program).join().expect("errors, and no panic"))
}

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Default, device)
}

/// Requires that the part cannot be read, where and because of the operation that was refused.
fn assert_unreadable<T: std::fmt::Debug>(result: Result<T, Error>, at: Option<&str>, because: &str) {
    match result {
        Err(Error::Unreadable { name, path, reason }) => {
            assert_eq!((&name[..], path.as_deref()), ("it", at));
            assert!(reason.contains(because), "{reason}");
            assert!(!reason.contains("try_into_data"), "{reason}");
        }
        other => panic!("expected {at:?} to be unreadable, found {other:?}"),
    }
}

const SEED: &str = "call `burn_deterministic::set_random_seed(seed)`";

#[derive(Module, Debug)]
struct Kinds {
    float: Param<Tensor<2>>,
    integer: Param<Tensor<1, Int>>,
    truth: Param<Tensor<1, Bool>>,
}

impl Kinds {
    fn new(device: &Device) -> Self {
        Self {
            float: Param::from_data([[0.5, -1.0]], device),
            integer: Param::initialized(ParamId::new(), Tensor::from_data([1, 2], device)),
            truth: Param::initialized(ParamId::new(), Tensor::from_data([true, false], device)),
        }
    }
}

#[test]
fn a_parameter_of_each_kind() {
    let device = deterministic_device();
    let good = checkpoint().with_module("it", &Kinds::new(&device)).expect("nothing is wrong");
    let mut good = reloaded(&good);
    let expected = digest(&Kinds::new(&device));
    unseeded(move || {
        let kinds = || Kinds::new(&device);
        let float = Kinds { float: Param::from_tensor(random([1, 2], &device) * 2.0), ..kinds() };
        let integer = Tensor::random([2], Distribution::Uniform(0.0, 9.0), &device);
        let integer = Kinds { integer: Param::initialized(ParamId::new(), integer), ..kinds() };
        let truth = random([2], &device).greater_elem(0.5);
        let truth = Kinds { truth: Param::initialized(ParamId::new(), truth), ..kinds() };
        let save = |kinds: &Kinds| checkpoint().with_module("it", kinds);
        assert_unreadable(save(&float), Some("float"), SEED);
        assert_unreadable(save(&integer), Some("integer"), SEED);
        assert_unreadable(save(&truth), Some("truth"), SEED);
        // What was saved takes the place of the error.
        let all = Kinds { float: float.float, integer: integer.integer, truth: truth.truth };
        assert_eq!(digest(&good.module("it", all).expect("the same kinds")), expected);
    });
}

#[test]
fn a_parameter_whose_initialiser_is_refused() {
    let device = deterministic_device();
    unseeded(|| {
        let layer: Linear = LinearConfig::new(3, 2).init(&device);
        let mut saved = reloaded(&checkpoint().with_module("it", &layer).expect("nothing is drawn yet"));
        let _ = layer.weight.val(); // a first use initialises
        assert_unreadable(checkpoint().with_module("it", &layer), Some("weight"), SEED);
        let fresh: Linear = LinearConfig::new(3, 2).init(&device);
        saved.module("it", fresh).expect("nothing is drawn to restore it");
    });
}

#[test]
fn a_running_state_whose_update_is_refused() {
    let device = deterministic_device().autodiff();
    let new = || -> BatchNorm {
        let norm = BatchNormConfig::new(2).init(&device);
        let _ = (norm.gamma.val(), norm.beta.val()); // a first use initialises
        norm
    };
    let good = checkpoint().with_module("it", &new()).expect("nothing is wrong");
    let norm = unseeded(|| {
        let norm = new();
        norm.forward(random([4, 2], &device));
        assert_unreadable(checkpoint().with_module("it", &norm), Some("running_mean"), SEED);
        norm
    });
    // From another thread, whose turn to take the update in it is not.
    assert_unreadable(checkpoint().with_module("it", &norm), Some("running_mean"), SEED);
    let norm = good.clone().module("it", norm).expect("the same layer");
    assert_eq!(digest(&norm.valid()), digest(&new().valid()));
}

#[derive(Module, Debug)]
struct Bowl {
    deep: Param<Tensor<2>>,
}

impl Bowl {
    fn new(device: &Device) -> Self {
        Self { deep: Param::from_data([[0.3, -0.7], [1.1, 0.2]], device) }
    }

    /// Gradients that depend on `noise`.
    fn gradients(&self, noise: Tensor<2>) -> GradientsParams {
        GradientsParams::from_grads((self.deep.val().powi_scalar(2) * noise).sum().backward(), self)
    }
}

#[test]
fn an_optimizers_state() {
    let device = deterministic_device().autodiff();
    let optimizers: [fn() -> ModuleOptimizer; 2] =
        [|| SgdConfig::new().with_momentum(Some(MomentumConfig::new())).init(), || AdamConfig::new().init()];
    for new in optimizers {
        let model = Bowl::new(&device);
        let mut optimizer = new();
        let model = optimizer.step(0.1, Bowl::new(&device), model.gradients(Tensor::ones([2, 2], &device)));
        let good = checkpoint().with_optimizer("it", &optimizer, &model).expect("nothing is wrong");
        let mut good = reloaded(&good);
        unseeded(|| {
            let gradients = model.gradients(random([2, 2], &device));
            let model = optimizer.step(0.1, model, gradients);
            assert_unreadable(checkpoint().with_optimizer("it", &optimizer, &model), None, SEED);
            // What was saved takes the place of the error.
            let optimizer = good.optimizer("it", optimizer, &model).expect("the same optimizer");
            checkpoint().with_optimizer("it", &optimizer, &model).expect("nothing is wrong any more");
        });
    }
}

/// Its state belongs to no single parameter; Burn panics over it in an optimizer of the other type.
#[test]
fn a_quasi_newton_optimizers_state() {
    let device = deterministic_device().autodiff();
    let mut optimizer = LBFGSConfig::new().with_max_iter(2).init();
    let ones = Tensor::ones([2, 2], &device);
    let loss = |model: &Bowl| model.deep.val().powi_scalar(2).sum().into_scalar::<f64>();
    let (model, _) = optimizer.step(0.5, Bowl::new(&device), |model| (loss(&model), model.gradients(ones.clone())));
    let mut saved = reloaded(&checkpoint().with_optimizer("it", &optimizer, &model).expect("nothing is wrong"));
    let refused = saved.clone().optimizer("it", AdamConfig::new().init(), &model).map(|_| ());
    let text = refused.expect_err("the state of another optimizer").to_string();
    assert!(text.contains("`it` cannot be restored"), "{text}");
    saved.optimizer("it", LBFGSConfig::new().init(), &model).expect("the same optimizer");
}

/// An index outside its axis is found out when a checkpoint is taken.
pub fn saved_after_an_index() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let device = Device::default().autodiff();
    let model = Bowl::new(&device);
    let mut optimizer = AdamConfig::new().init();
    let rows = Tensor::<1, Int>::from_data([0, 2], &device);
    let noise = Tensor::ones([2, 2], &device).select(0, rows);
    let gradients = model.gradients(noise);
    let model = optimizer.step(0.1, model, gradients);
    let error = Checkpoint::new(0).expect_err("an index is outside").to_string();
    assert!(error.contains("got the index 2"), "{error}");
    // It is tried again, and then after a block that gives the error to the parameters.
    let again = Checkpoint::new(0).expect_err("nothing has run since").to_string();
    assert_eq!(again, error);
    assert_eq!((Tensor::<1>::ones([3], &device) + 1.0).sum().into_scalar::<f32>(), 6.0);
    let error = try_digest(&model).expect_err("an update depends on the index").to_string();
    assert!(error.contains("got the index 2"), "{error}");
    drop(optimizer);
}

#[test]
fn what_an_index_out_of_range_reached() {
    Program::new("saved_after_an_index").run();
}
