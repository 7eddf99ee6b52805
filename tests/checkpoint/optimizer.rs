//! An optimizer's state comes back, and into nothing but such an optimizer.

use super::{differences, reloaded};
use crate::deterministic_device;
use crate::process::Folder;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::module::{Module, Param, ParamGroup};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdaGradConfig, AdamConfig, AdamWConfig, GradientsParams, LBFGSConfig, LionConfig, ModuleOptimizer, RmsPropConfig,
    SgdConfig,
};
use burn::prelude::*;
use burn_deterministic::checkpoint::{Checkpoint, Error};
use burn_deterministic::digest;

#[derive(Module, Debug)]
struct Bowl {
    deep: Param<Tensor<2>>,
    flat: Param<Tensor<1>>,
}

impl Bowl {
    fn new(device: &Device) -> Self {
        Self { deep: Param::from_data([[0.3, -0.7], [1.1, 0.2]], device), flat: Param::from_data([0.5, -0.25], device) }
    }

    fn loss(&self) -> Tensor<1> {
        (self.deep.val().powi_scalar(2).sum() * 3.0) + (self.flat.val() - 1.0).powi_scalar(2).sum()
    }

    fn gradients(&self) -> GradientsParams {
        GradientsParams::from_grads(self.loss().backward(), self)
    }

    fn trained(mut self, optimizer: &mut ModuleOptimizer, steps: usize) -> Self {
        for _ in 0..steps {
            let gradients = self.gradients();
            self = optimizer.step(0.05, self, gradients);
        }
        self
    }
}

fn saved(model: &Bowl, optimizer: &ModuleOptimizer) -> Checkpoint {
    let checkpoint = Checkpoint::new(3).and_then(|checkpoint| checkpoint.with_module("model", model));
    let checkpoint = checkpoint.and_then(|checkpoint| checkpoint.with_optimizer("optimizer", optimizer, model));
    checkpoint.expect("a model and its optimizer")
}

fn momentum() -> ModuleOptimizer {
    SgdConfig::new().with_momentum(Some(MomentumConfig::new())).init()
}

#[test]
fn burns_optimizers_go_on_where_they_stood() {
    let device = deterministic_device().autodiff();
    let grouped = || {
        let flat = ParamGroup::from_predicate("flat");
        AdamConfig::new().init().with_group(flat, LionConfig::new().build(), None)
    };
    let optimizers: [(&str, &dyn Fn() -> ModuleOptimizer); 8] = [
        ("SGD", &|| SgdConfig::new().init()),
        ("SGD with momentum", &momentum),
        ("Adam", &|| AdamConfig::new().init()),
        ("Adam with the largest moment", &|| AdamConfig::new().with_amsgrad(true).init()),
        ("AdamW", &|| AdamWConfig::new().init()),
        ("AdaGrad", &|| AdaGradConfig::new().init()),
        ("RMSprop", &|| RmsPropConfig::new().with_centered(true).init()),
        ("Adam and Lion", &grouped),
    ];
    for (name, new) in optimizers {
        let mut optimizer = new();
        let model = Bowl::new(&device).trained(&mut optimizer, 3);
        let mut checkpoint = reloaded(&saved(&model, &optimizer));
        let expected = digest(&model.trained(&mut optimizer, 2));

        let model = checkpoint.module("model", Bowl::new(&device)).expect("the same model");
        let mut optimizer = checkpoint.optimizer("optimizer", new(), &model).expect("the same optimizer");
        assert_eq!(checkpoint.resume().expect("nothing is left"), 3);
        assert_eq!(digest(&model.clone().trained(&mut optimizer, 2)), expected, "{name}");
        if name != "SGD" {
            assert_ne!(digest(&model.trained(&mut new(), 2)), expected, "{name} has a state that matters");
        }
    }
}

/// Burn's own records of equal optimizers differ; these do not.
#[test]
fn equal_optimizers_are_written_in_equal_bytes() {
    let device = deterministic_device().autodiff();
    let trained = || {
        let mut optimizer = AdamConfig::new().init();
        let model = Bowl::new(&device).trained(&mut optimizer, 2);
        (model, optimizer)
    };
    let ((model, optimizer), (other_model, other)) = (trained(), trained());
    let of_burn = |optimizer: &ModuleOptimizer| optimizer.into_bytes().expect("a record").to_vec();
    assert_ne!(of_burn(&optimizer), of_burn(&other), "the hazard");
    let ours = |checkpoint: Checkpoint| {
        let folder = Folder::new();
        let path = folder.path().join("a.checkpoint");
        checkpoint.save(&path).expect("a folder to write to");
        std::fs::read(&path).expect("the file just written")
    };
    assert_eq!(ours(saved(&model, &optimizer)), ours(saved(&other_model, &other)));
}

/// Burn leaves out in silence what an optimizer has no use for.
#[test]
fn the_state_of_another_optimizer_is_refused() {
    let device = deterministic_device().autodiff();
    let mut adam = AdamConfig::new().init();
    let model = Bowl::new(&device).trained(&mut adam, 1);
    let mut checkpoint = reloaded(&saved(&model, &adam));
    let found = differences(checkpoint.clone().optimizer("optimizer", momentum(), &model).map(|_| ()));
    assert!(found.contains(&"`deep: momentum.moment_1` was saved, and is not there now".to_owned()), "{found:?}");
    checkpoint.optimizer("optimizer", AdamConfig::new().init(), &model).expect("the same optimizer");
}

#[derive(Module, Debug)]
struct Deeper {
    bowl: Bowl,
}

#[test]
fn the_state_of_another_model_is_refused() {
    let device = deterministic_device().autodiff();
    let mut adam = AdamConfig::new().init();
    let model = Bowl::new(&device).trained(&mut adam, 1);
    let mut checkpoint = reloaded(&saved(&model, &adam));
    let deeper = Deeper { bowl: Bowl::new(&device) };
    let found = differences(checkpoint.optimizer("optimizer", AdamConfig::new().init(), &deeper).map(|_| ()));
    assert_eq!(found, ["`deep` was saved, and is not there now", "`flat` was saved, and is not there now"]);

    let stranger = Bowl::new(&device);
    let error = Checkpoint::new(0).expect("a device that runs").with_optimizer("optimizer", &adam, &stranger);
    assert!(matches!(error, Err(Error::NotOfTheModule { .. })), "it holds no state of the stranger's parameters");
}

#[test]
fn a_quasi_newton_optimizer_goes_on_where_it_stood() {
    let device = deterministic_device().autodiff();
    let step = |optimizer: &mut burn::optim::LBFGS, model: Bowl| {
        optimizer.step(0.5, model, |model| (model.loss().into_scalar::<f64>(), model.gradients())).0
    };
    let config = LBFGSConfig::new().with_max_iter(2);
    let mut optimizer = config.init();
    let model = step(&mut optimizer, Bowl::new(&device));
    let checkpoint = Checkpoint::new(1).and_then(|checkpoint| checkpoint.with_optimizer("it", &optimizer, &model));
    let mut restored = reloaded(&checkpoint.expect("an optimizer")).optimizer("it", config.init(), &model).expect("it");
    let expected = digest(&step(&mut optimizer, model.clone()));
    assert_eq!(digest(&step(&mut restored, model.clone())), expected);
    assert_ne!(digest(&step(&mut config.init(), model)), expected, "its history matters");
}

#[test]
fn a_scheduler_goes_on_where_it_stood() {
    let new = || LinearLrSchedulerConfig::new(0.9, 0.1, 7).init().expect("rates within 0 and 1");
    let mut scheduler = new();
    (0..3).for_each(|_| {
        scheduler.step();
    });
    let checkpoint = Checkpoint::new(3).and_then(|checkpoint| checkpoint.with_scheduler("rate", scheduler.to_record()));
    let record = reloaded(&checkpoint.expect("a scheduler")).scheduler("rate").expect("a scheduler");
    let mut restored = new().load_record(record);
    for _ in 0..6 {
        assert_eq!(restored.step().base().to_bits(), scheduler.step().base().to_bits());
    }
}
