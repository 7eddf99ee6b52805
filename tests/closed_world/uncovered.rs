//! Devices and code that do not pass through the backend: the program is told at the first occasion.

use crate::bits::floats;
use crate::driver;
use crate::process::{Program, arguments, report};
use crate::skip::skip;
use burn::data::dataloader::DataLoaderBuilder as BurnBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::nn::LinearConfig;
use burn::prelude::*;
use burn::tensor::{Distribution, Tensor};
use burn_backend::ops::FloatTensorOps;
use burn_cubecl::CubeBackend;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{
    Determinism, Error, OnViolation, covers, enable_op_determinism, initialize, promise_deterministic, promises,
    set_random_seed, try_digest,
};
use burn_fusion::Fusion;
use cubecl::prelude::*;

#[test]
fn the_devices_of_cubecl_are_covered() {
    assert!(covers(&Device::default()) && covers(&Device::default().autodiff()));
    assert!(!covers(&Device::flex()) && !covers(&Device::flex().autodiff()));
}

/// Rows of one element.
#[derive(Clone)]
struct Single;

impl Batcher<f32, Tensor<1>> for Single {
    fn batch(&self, items: Vec<f32>, device: &Device) -> Tensor<1> {
        Tensor::from_data(&items[..], device)
    }
}

/// Adds the batches of Burn's loader.
pub fn batches_of_burn() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let workers = arguments()[0].parse().expect("a number of workers");
    let items = InMemDataset::new((0..32u8).map(f32::from).collect());
    let loader = BurnBuilder::new(Single).batch_size(2).num_workers(workers).build(items);
    let batches = loader.iter().map(|batch| batch.expect("nothing fails here"));
    let total = batches.fold(Tensor::zeros([2], &Device::default()), |total, batch| total + batch);
    report("total", total.sum().into_scalar::<f32>());
}

#[test]
fn several_workers_of_burns_loader_are_warned_of() {
    for (workers, told) in [("0", 0), ("1", 0), ("2", 1)] {
        let output = Program::new("batches_of_burn").arguments(&[workers]).run();
        assert_eq!(output.reported("total"), "496");
        let expected = if cfg!(target_os = "linux") { told } else { 0 };
        assert_eq!(
            output.stderr().matches("a data loader of Burn's has several workers").count(),
            expected,
            "{output}"
        );
    }
}

pub fn redirected() {
    let error = enable_op_determinism(Determinism::default()).expect_err("Flex is not covered");
    report("error", &error);
    // What `main` and `expect` print.
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(matches!(error, Error::NotCovered { function: "enable_op_determinism", .. }), "{error:?}");
    assert!(!burn_deterministic::is_op_determinism_enabled());
}

#[test]
fn a_redirected_default_device_is_an_error() {
    let output = Program::new("redirected").env("BURN_DEVICE", "flex").run();
    let error = output.reported("error");
    assert!(error.contains("Flex") && error.contains("unset") && error.contains("BURN_DEVICE"), "{error}");
}

#[test]
fn a_model_elsewhere_is_not_initialised() {
    crate::deterministic_device();
    set_random_seed(1);
    let model = LinearConfig::new(2, 3).init(&Device::flex());
    let error = try_digest(&model).expect_err("Flex is not covered");
    assert!(matches!(error, Error::NotCovered { function: "digest", .. }), "{error:?}");
    let error = initialize(model).expect_err("Flex is not covered");
    assert!(matches!(error, Error::NotCovered { function: "initialize", .. }), "{error:?}");
    initialize(LinearConfig::new(2, 3).init(&Device::default())).expect("a device of CubeCL");
}

#[test]
fn a_loader_elsewhere_gives_an_error() {
    struct Count;
    impl Batcher<usize, usize> for Count {
        fn batch(&self, items: Vec<usize>, _device: &Device) -> usize {
            items.len()
        }
    }
    crate::deterministic_device();
    let numbers = InMemDataset::new((0..4).collect());
    let loader = DataLoaderBuilder::new("train", Count).set_device(Device::flex()).build(numbers);
    let error = loader.batches().next().expect("an error").expect_err("Flex is not covered").to_string();
    assert!(error.contains("`DataLoader::batches`") && error.contains("Flex"), "{error}");
}

pub fn seeded_only() {
    set_random_seed(3);
    let drawn = Tensor::<1>::random([4], Distribution::Default, &Device::default());
    drawn.clone().try_into_data().expect("plain Burn draws it");
    drop(drawn + 1.0);
}

pub fn seeded_without_an_operation() {
    set_random_seed(3);
}

#[test]
fn a_seed_without_determinism_is_told_once() {
    for (program, part) in [("seeded_only", "the first operation, `float_random`"), ("seeded_without_an_operation", "")]
    {
        let output = Program::new(program).run();
        let told = output.stderr().matches("enable_op_determinism` was not").count();
        assert!(told == 1 && output.stderr().contains(part), "{output}");
    }
    // A seed before enabling is as good as one after it.
    Program::new("reseeding").run().assert_quiet();
}

/// What an extension does that resolves a tensor, computes on Burn's plain backend and registers the result.
fn extension() {
    let input = Fusion::<CubeBackend>::float_from_data(floats([40]), &crate::cube_device());
    let client = input.client.clone();
    let sum = CubeBackend::float_sum(client.clone().resolve_tensor_float::<CubeBackend>(input));
    client.register_tensor_handle(sum.into());
}

fn launched() -> std::thread::Result<()> {
    std::panic::catch_unwind(extension)
}

/// What an extension does that launches a kernel of its own.
fn extension_with_a_kernel() {
    let client = crate::cube_device().client();
    let output = client.empty(size_of::<u32>());
    // SAFETY: one unit writes the one element that the buffer has.
    unsafe {
        own_kernel::launch_unchecked(
            &client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(1),
            BufferArg::from_raw_parts(output.clone(), 1),
        );
    }
    let read = client.read_one(output).expect("the kernel ran");
    assert_eq!(read[..4], 7u32.to_le_bytes());
}

#[cube(launch_unchecked)]
fn own_kernel(output: &mut [u32]) {
    output[0] = 7u32;
}

fn text(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<String>().expect("with a text").replace('\n', " ")
}

pub fn extension_refused() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    report("panic", text(launched().expect_err("nobody knows its kernels")));
    report("own", text(std::panic::catch_unwind(extension_with_a_kernel).expect_err("nobody knows its kernel")));
    let sum = Tensor::<1>::from_data(floats([40]), &Device::default()).sum();
    sum.try_into_data().expect("what runs in Burn's operations is as good as ever");
}

pub fn extension_promised() {
    let module = module_path!();
    promise_deterministic(module, "it writes one number").expect("determinism is not enabled yet");
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    extension_with_a_kernel();
    assert!(promises().iter().any(|promise| promise.uses > 0), "{:?}", promises());
}

pub fn extension_warned() {
    let settings = Determinism::default().on_violation(OnViolation::Warn);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    launched().expect("it is let pass");
}

#[test]
fn kernels_outside_operations_are_refused_by_name() {
    let output = Program::new("extension_refused").run();
    let panic = output.reported("panic");
    assert!(panic.contains("outside Burn's operations") && panic.contains("Deterministic<CubeBackend>"), "{panic}");
    let own = output.reported("own");
    assert!(own.contains(&format!("promise_deterministic(\"{}::own_kernel", module_path!())), "{own}");
    let output = Program::new("extension_warned").run();
    assert!(output.stderr().contains("outside Burn's operations"), "{output}");
    Program::new("extension_promised").run().assert_quiet();
}

pub fn captured() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(3);
    let device = Device::default();
    let before = Tensor::<1>::from_data([1.0, 2.0], &device) + 1.0;
    let drawn = || Tensor::<1>::random([8], Distribution::Default, &device) * 2.0;
    let graph = burn::tensor::capture(&device, drawn);
    report("captured", graph.is_hardware());
    let text = graph.output().clone().try_into_data().expect_err("a replay would repeat the numbers").to_string();
    assert!(text.contains("burn::tensor::capture") && text.contains("float_random"), "{text}");
    drop(graph);
    assert_eq!(before.sum().into_scalar::<f32>(), 5.0);
    drawn().try_into_data().expect("after the capture operations run");
}

#[test]
fn a_capture_of_kernels_is_refused() {
    if driver::is_emulator() {
        return skip("the CUDA emulator has no graphs to capture");
    }
    Program::new("captured").run();
}
