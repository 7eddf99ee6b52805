//! What runs outside the route is stopped or reported, and what a long run keeps does not grow.

use crate::process::{Program, report};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_cubecl::CubeDevice;
use burn_cubecl::fusion::{CubeFuser, CubeOptimization, OptimizationProvider, register};
use burn_cubecl_fusion::optim::elemwise::{ElementWiseFuser, ElemwiseOptimization};
use burn_deterministic::{Determinism, enable_op_determinism, set_random_seed};
use burn_fusion::{FuserProperties, FuserStatus, OperationFuser};
use burn_ir::OperationIr;
use cubecl::logging::{LaunchObservation, LaunchObserver};
use std::sync::Arc;

/// Burn's own element-wise optimization, registered beside the route, with a score that wins.
struct Thief;

impl OptimizationProvider for Thief {
    type Operation = ElemwiseOptimization;

    fn name(&self) -> &str {
        "thief"
    }

    fn fuser(&self, device: &CubeDevice) -> CubeFuser {
        CubeFuser::new(ThiefFuser(ElementWiseFuser::new(device.clone())))
    }
}

struct ThiefFuser(ElementWiseFuser);

impl OperationFuser<CubeOptimization> for ThiefFuser {
    fn fuse(&mut self, operation: &OperationIr) {
        self.0.fuse(operation);
    }

    fn finish(&mut self) -> CubeOptimization {
        self.0.finish()
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn status(&self) -> FuserStatus {
        self.0.status()
    }

    fn properties(&self) -> FuserProperties {
        FuserProperties { score: u64::MAX, ready: self.0.len() > 0 }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn clone_dyn(&self) -> Box<dyn OperationFuser<CubeOptimization>> {
        Box::new(Self(self.0.clone()))
    }
}

/// A profiler that takes CubeCL's one place for an observer.
struct Profiler;

impl LaunchObserver for Profiler {
    fn launched(&self, _kernel: &'static str) {}
}

fn device_with_a_thief() -> Device {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    register(Thief).expect("no tensor operation has run");
    Device::default()
}

pub fn stolen() {
    let device = device_with_a_thief();
    let stolen = Tensor::<1>::from_data([1.0, 2.0, 3.0], &device) * 2.0 + 1.0;
    report("stolen", error(stolen));
    report("later", error(Tensor::<1>::from_data([1.0, 2.0, 3.0], &device).sum()));
}

/// What a read of a tensor says that must not be readable, in one line.
fn error(tensor: Tensor<1>) -> String {
    let error = tensor.try_into_data().expect_err("it cannot be trusted").to_string();
    error.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn stolen_under_a_profiler() {
    let device = device_with_a_thief();
    let numbers = || Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
    let _profiler = LaunchObservation::new(Arc::new(Profiler));
    // A matrix product is not the thief's: its kernel goes unseen, which the route notices.
    numbers().matmul(numbers()).try_into_data().expect("this one is on the route");
    (numbers() * 2.0 + 1.0).try_into_data().expect("its kernel ran before anyone could know");
    report("later", error(numbers().sum()));
}

/// Operations that are skipped launch nothing, and are no violation, also where launches cannot be seen.
pub fn poisoned_under_a_profiler() {
    let device = crate::deterministic_device();
    let numbers = || Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
    let _profiler = LaunchObservation::new(Arc::new(Profiler));
    numbers().matmul(numbers()).try_into_data().expect("on the route");
    let unseeded = Tensor::<2>::random([2, 2], Distribution::Default, &device);
    let dependent = unseeded.clone().matmul(numbers()) + 1.0;
    dependent.sum().try_into_data().expect_err("there is no seed");
    unseeded.try_into_data().expect_err("there is no seed");
    let text = numbers().sum().try_into_data().map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(text, Ok(()), "an innocent operation");
}

#[test]
fn skipped_operations_are_no_violation_under_a_profiler() {
    Program::new("poisoned_under_a_profiler").run().assert_quiet();
}

#[test]
fn work_outside_the_route_is_stopped() {
    let output = Program::new("stolen").run();
    for name in ["stolen", "later"] {
        let error = output.reported(name);
        assert!(error.contains("outside the deterministic route") && error.contains("float_mul_scalar"), "{error}");
    }
    assert!(output.stderr().contains("outside the deterministic route"), "{output}");
}

#[test]
fn work_outside_the_route_is_reported_under_a_profiler() {
    let output = Program::new("stolen_under_a_profiler").run();
    let error = output.reported("later");
    assert!(error.contains("outside the deterministic route"), "{error}");
}

/// Products that launch no kernel, then operations that are skipped: none of it is work outside the route.
pub fn product_of_nothing() {
    let device = crate::deterministic_device();
    let empty = || Tensor::<2>::zeros([3, 0], &device);
    empty().matmul(empty().transpose()).try_into_data().expect("zeros");
    (empty().max_dim(1) - 1.0).sum().try_into_data().expect_err("nothing has no maximum");
    empty().sum().try_into_data().expect("what comes later is as good as ever");
}

#[test]
fn a_product_of_nothing_is_no_violation() {
    Program::new("product_of_nothing").run();
}

/// Seeds and draws in turns, without a read between them.
pub fn reseeding() {
    // Before determinism: a seed needs no device, and starts none.
    set_random_seed(0);
    enable_op_determinism(Determinism::default()).expect("seeding ran no tensor operation");
    let device = Device::default();
    let draw = || Tensor::<1>::random([64], Distribution::Default, &device);
    let drawn: Vec<_> = (0..200)
        .map(|turn| {
            set_random_seed(turn % 2);
            (draw(), draw())
        })
        .collect();
    let drawn: Vec<_> = drawn.into_iter().map(|(first, second)| (first.into_data(), second.into_data())).collect();
    for (turn, pair) in drawn.iter().enumerate() {
        assert!(*pair == drawn[turn % 2], "turn {turn} drew under another turn's seed");
    }
    assert!(drawn[0] != drawn[1] && drawn[0].0 != drawn[0].1, "two seeds, and two operations, draw alike");
}

#[test]
fn a_seed_holds_from_where_it_is_set() {
    Program::new("reseeding").run().assert_quiet();
}

/// Steps that keep tensors for later, as a backward pass does, must not keep them for ever.
pub fn steady_memory() {
    let device = crate::deterministic_device();
    let weights = Tensor::<2>::ones([256, 256], &device);
    let mut state = Tensor::<2>::ones([256, 256], &device);
    let in_use = |state: &mut Tensor<2>| {
        for _ in 0..20 {
            let product = weights.clone().matmul(state.clone());
            *state = (product.clone() - product.clone().mean_dim(1)) * 1e-3 + state.clone();
        }
        device.sync().expect("the steps run");
        device.memory_pool_usage().expect("CubeCL reports its memory").bytes_in_use
    };
    let warm = in_use(&mut state);
    let later = in_use(&mut state);
    assert!(later <= warm, "20 steps left {warm} bytes in use, 20 more left {later}");
}

#[test]
fn memory_in_use_does_not_grow() {
    Program::new("steady_memory").run().assert_quiet();
}
