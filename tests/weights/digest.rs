//! Digests of modules: what they cover, and that taking one changes nothing.

use crate::deterministic_device;
use burn::module::{Module, Param, ParamId};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Error, digest, digests, random_state, set_random_seed, try_digest};
use std::panic::catch_unwind;

/// A layer that is drawn at its first use, and one that holds its last update apart.
#[derive(Module, Debug)]
struct Normed {
    first: Linear,
    norm: BatchNorm,
    second: Linear,
}

impl Normed {
    fn new(device: &Device) -> Self {
        Self {
            first: LinearConfig::new(3, 4).init(device),
            norm: BatchNormConfig::new(4).init(device),
            second: LinearConfig::new(4, 2).with_bias(false).init(device),
        }
    }

    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.second.forward(self.norm.forward(self.first.forward(inputs)))
    }
}

fn batch(step: u8, device: &Device) -> Tensor<2> {
    Tensor::from_data([[f32::from(step), 1.0, -2.0], [0.5, 3.0, f32::from(step)]], device)
}

fn used(steps: u8, device: &Device) -> Normed {
    set_random_seed(812);
    let model = Normed::new(device);
    for step in 0..steps {
        let _ = model.forward(batch(step, device));
    }
    model
}

#[test]
fn the_last_update_of_a_batch_norm_counts() {
    let device = deterministic_device().autodiff();
    let (two, three) = (used(2, &device), used(3, &device));
    assert_ne!(digest(&two), digest(&three), "the updates differ");
    let model = used(3, &device);
    let before = digest(&model);
    assert_eq!(before, digest(&model.valid()));
    assert_eq!(before, digest(&model));
}

#[test]
fn a_digest_changes_nothing_in_the_run() {
    let device = deterministic_device().autodiff();
    let run = |look: fn(&Normed)| {
        set_random_seed(812);
        let model = Normed::new(&device);
        look(&model);
        let mut outputs = vec![Tensor::<2>::random([1, 2], Distribution::Default, &device).into_data()];
        for step in 0..3 {
            outputs.push(model.forward(batch(step, &device)).into_data());
            look(&model);
        }
        (outputs, digest(&model.valid()))
    };
    let undisturbed = run(|_| ());
    assert_eq!(run(|model| assert_eq!(digest(model), digest(model))), undisturbed);
    assert_eq!(run(|model| assert!(digests(model).is_ok())), undisturbed);
    // The order of the draws decides the weights: the test could not pass if a digest drew them.
    assert_ne!(run(|model| drop((model.second.weight.val(), model.first.weight.val()))), undisturbed);
}

#[test]
fn what_is_not_initialised_stays_so_and_has_a_digest() {
    let device = deterministic_device();
    set_random_seed(812);
    let state = random_state().expect("a device that runs");
    let layer = LinearConfig::new(3, 4).init(&device);
    let lazy = digest(&layer);
    assert!(!layer.weight.is_initialized() && !layer.bias.as_ref().is_some_and(Param::is_initialized));
    assert_eq!(random_state().expect("a device that runs"), state);
    assert_eq!(lazy, digest(&LinearConfig::new(3, 4).init(&device)), "a function of path and shape");
    assert_ne!(lazy, digest(&LinearConfig::new(3, 5).init(&device)));
    assert_ne!(lazy, digest(&LinearConfig::new(3, 4).with_bias(false).init(&device)));
    let _ = layer.weight.val();
    assert_ne!(lazy, digest(&layer));
}

/// Not initialised, and of another kind.
#[test]
fn the_kind_of_what_is_not_initialised_counts() {
    let device = deterministic_device();
    let id = ParamId::new();
    let float = Param::<Tensor<1>>::uninitialized(id, |d, _| Tensor::zeros([3], d), device.clone(), true, [3].into());
    let int = Param::<Tensor<1, Int>>::uninitialized(id, |d, _| Tensor::zeros([3], d), device, false, [3].into());
    assert_ne!(digest(&vec![float]), digest(&vec![int]));
}

fn unreadable() -> Normed {
    let device = deterministic_device();
    let model = Normed::new(&device);
    // No seed in this thread: the weight carries the error of its draw.
    let _ = model.second.weight.val();
    model
}

fn in_an_unseeded_thread<T: Send + 'static>(body: fn() -> T) -> T {
    std::thread::spawn(body).join().expect("an error, not a panic")
}

#[test]
fn an_error_on_a_tensor_is_returned_with_its_path() {
    let says = |error: Error| match &error {
        Error::Unreadable { module: "the module", path, reason } => {
            assert_eq!(path, "second.weight");
            assert!(reason.contains("set_random_seed"), "{reason}");
            let text = error.to_string();
            assert!(text.starts_with("`second.weight` of the module cannot be read: "), "{text}");
        }
        other => panic!("expected an unreadable weight, found {other}"),
    };
    says(in_an_unseeded_thread(|| try_digest(&unreadable()).expect_err("a weight that was not drawn")));
    says(in_an_unseeded_thread(|| digests(&unreadable()).expect_err("a weight that was not drawn")));
    let panicked = in_an_unseeded_thread(|| catch_unwind(|| digest(&unreadable())).expect_err("nothing to return"));
    let text = panicked.downcast_ref::<String>().expect("a text");
    assert!(text.contains("`second.weight` of the module cannot be read"), "{text}");
}

#[test]
fn digests_are_by_path_in_visiting_order() {
    let device = deterministic_device().autodiff();
    let model = used(1, &device);
    let found = digests(&model).expect("readable");
    let paths: Vec<&str> = found.iter().map(|(path, _)| &path[..]).collect();
    assert_eq!(
        paths,
        [
            "first.weight",
            "first.bias",
            "norm.gamma",
            "norm.beta",
            "norm.running_mean",
            "norm.running_var",
            "second.weight"
        ]
    );
    let again = digests(&used(2, &device)).expect("readable");
    let differing = found.iter().zip(&again).filter(|(one, other)| one != other);
    let differing: Vec<&str> = differing.map(|((path, _), _)| &path[..]).collect();
    assert_eq!(differing, ["norm.running_mean", "norm.running_var"]);
    // A module of one tensor has that tensor's digest.
    let alone = vec![Param::<Tensor<1>>::from_data([1.0, 2.0], &device)];
    assert_eq!(digests(&alone).expect("readable"), [("0".to_owned(), digest(&alone))]);
}

/// These never change without a release that says so: they were computed with another implementation of BLAKE3.
#[test]
fn the_definition_stays() {
    let device = deterministic_device();
    let values = vec![Param::<Tensor<2>>::from_data([[1.0, -0.0, 2.5]], &device)];
    assert_eq!(digest(&values).to_string(), VALUES);
    let lazy = Param::<Tensor<2>>::uninitialized(
        ParamId::new(),
        |device, _| Tensor::zeros([1, 3], device),
        device,
        false,
        [1, 3].into(),
    );
    assert_eq!(digest(&vec![lazy]).to_string(), UNINITIALISED);
}

const VALUES: &str = "dac31d3beec9b1bb18876a759dca46c8bacadb0c2b12c829ac2d8df4f1e20dc5";
const UNINITIALISED: &str = "76ded00cef8cdfac050c1b2edef9356dfdd26c521091e10869d8f9d000cdd747";
