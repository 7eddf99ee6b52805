//! What a training keeps does not grow with its steps.

use crate::process::{Folder, Output, Program, report};
use burn::module::Module;
use burn::nn::{DropoutConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Determinism, enable_op_determinism, set_random_seed};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Burn's plan of the highest number that a run used, which it writes when it logs everything.
fn plans(output: &Output) -> usize {
    let plans = output.stderr().split("execute plan #").skip(1);
    let numbers = plans.filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    numbers.max().expect("Burn logs the plans it uses")
}

/// A folder with settings of Burn's that log every plan.
fn logging() -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path().join("burn.toml"), "[fusion.logger]\nlevel = \"full\"\nstderr = true\n")
        .expect("a file for the test");
    folder
}

/// Noise whose width changes in each step, a product and a tanh.
fn annealed(state: Tensor<2>, step: usize) -> Tensor<2> {
    let noise = Tensor::<2>::random([16, 16], Distribution::Normal(0.0, 1.0 / (1.0 + step as f64)), &state.device());
    (state.clone().matmul(state) * 0.01 + noise).tanh()
}

/// Values of a hash map, whose order is another one in each step.
fn dropped_in_any_order(step: usize, device: &Device) {
    let values: HashMap<usize, Tensor<1>> =
        (0..6).map(|key| (key + 31 * step, Tensor::ones([key + 2], device).exp())).collect();
    drop(values);
}

fn enabled() -> Device {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    Device::default()
}

pub fn new_plans() {
    let device = enabled();
    let (mut state, kept) = (Tensor::<2>::ones([16, 16], &device), Tensor::<1>::ones([7], &device) * 3.0);
    let elsewhere = std::thread::spawn({
        let device = device.clone();
        move || Tensor::<1>::ones([5], &device) + 1.0
    });
    let waiting = elsewhere.join().expect("it adds");
    for step in 0..3000 {
        state = annealed(state, step);
        dropped_in_any_order(step, &device);
    }
    report("state", format!("{:?}", state.slice(0..1).into_data().as_bytes()));
    // Tensors from before the plans were dropped, and one that waited.
    assert_eq!(kept.sum().into_scalar::<f32>(), 21.0);
    assert_eq!(waiting.sum().into_scalar::<f32>(), 10.0);
    let in_use = device.memory_pool_usage().expect("CubeCL reports its memory").bytes_in_use;
    assert!(in_use < 1 << 20, "{in_use} bytes in use where nothing is held");
}

#[test]
fn plans_do_not_accumulate() {
    let folder = logging();
    let output = Program::new("new_plans").folder(folder.path()).run();
    output.assert_quiet();
    let plans = plans(&output);
    assert!(plans < 3000, "plan {plans} was used");
    let other = Program::new("new_plans").run();
    assert_eq!(output.reported("state"), other.reported("state"));
}

/// Noise of another width in each step: the time of steps and the memory of the process.
pub fn annealed_steps() {
    let device = enabled();
    let mut state = Tensor::<2>::ones([16, 16], &device);
    let steps = if cfg!(feature = "heavy") { 200_000 } else { 10_000 };
    let mut times = Vec::new();
    let mut tenth = |number: usize| {
        for part in 10 * number..10 * (number + 1) {
            times.push(timed(&device, || {
                for step in part * steps / 100..(part + 1) * steps / 100 {
                    state = annealed(state.clone(), step);
                }
            }));
        }
        resident()
    };
    // The first one compiles the kernels.
    let tenths: Vec<_> = (0..10).map(&mut tenth).collect();
    report("tenths", format!("{tenths:?}"));
    assert_steady(&times);
    assert!(tenths[9] < tenths[2] + (8 << 20), "{tenths:?}");
}

/// The time until the device has done some steps.
fn timed(device: &Device, steps: impl FnOnce()) -> Duration {
    let start = Instant::now();
    steps();
    device.sync().expect("the steps run");
    start.elapsed()
}

/// Requires that steps do not get several times slower, of which each time is a hundredth, by the fastest of twenty near
/// the beginning and of twenty at the end. A step whose cost is the number of steps before it takes 12 times as long
/// there. Other work that begins in between makes all twenty up to 3 times as slow (measured on two cores), and would
/// hide less.
fn assert_steady(times: &[Duration]) {
    let fastest = |times: &[Duration]| *times.iter().min().expect("twenty times");
    let (first, last) = (fastest(&times[6..26]), fastest(&times[80..]));
    assert!(last < 5 * first, "{last:?} after {first:?}: {times:?}");
}

#[test]
fn annealing_does_not_slow_a_training_down() {
    measured("annealed_steps").run().assert_quiet();
}

/// A program that measures its memory. Without the cache Mesa compiles each kernel from the first one on, so that its compiler is
/// in memory by then; with it LLVM's code, 11 MB of a file, is read when the first kernel is not in the cache, which may be late.
fn measured(name: &str) -> Program {
    Program::new(name).env("MESA_SHADER_CACHE_DISABLE", "true")
}

/// Bytes of memory that the process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
}

/// Threads that seed, draw, read at indices and end without a wait.
pub fn threads_that_end() {
    let device = enabled();
    let thread = |number: u64, device: Device| {
        set_random_seed(number);
        let at = Tensor::<1, Int>::zeros([1 << 16], &device);
        let table = Tensor::<2>::random([4, 2], Distribution::Default, &device);
        table.select(0, at).sum()
    };
    let round = || {
        for number in 0..100 {
            let device = device.clone();
            let sum = std::thread::spawn(move || thread(number, device)).join().expect("it ends");
            drop(sum);
        }
        let one = Tensor::<1>::ones([3], &device).sum();
        assert_eq!(one.into_scalar::<f32>(), 3.0);
        device.sync().expect("all of it runs");
        device.memory_pool_usage().expect("CubeCL reports its memory").bytes_in_use
    };
    round();
    // Past the number of threads whose queues are kept, and CubeCL's cache of launch arguments.
    for _ in 0..5 {
        round();
    }
    let (first, resident_first) = (round(), resident());
    for _ in 0..4 {
        round();
    }
    let (last, resident_last) = (round(), resident());
    report("bytes", format!("{first} {last} {resident_first} {resident_last}"));
    // What one thread's selection reads takes 256 KiB.
    assert!(last <= first + (1 << 20), "{first} bytes in use on the device after 700 threads, {last} after 1200");
    assert!(resident_last <= resident_first + (16 << 20), "{resident_first} bytes, then {resident_last}");
}

#[test]
fn nothing_is_kept_for_threads_that_end() {
    measured("threads_that_end").run().assert_quiet();
}

#[derive(Module, Debug)]
struct Noisy {
    first: Linear,
    second: Linear,
}

/// Steps of a small model: dropout whose rate changes in each step, threads that come and go, refused operations.
pub fn soak() {
    let device = enabled();
    let autodiff = device.clone().autodiff();
    let mut model =
        Noisy { first: LinearConfig::new(8, 16).init(&autodiff), second: LinearConfig::new(16, 2).init(&autodiff) };
    let mut optimizer = AdamConfig::new().init();
    let steps = if cfg!(feature = "heavy") { 1_000_000 } else { 4_000 };
    let mut step = |number: usize| {
        let inputs = Tensor::<2>::random([4, 8], Distribution::Default, &autodiff);
        let dropout = DropoutConfig::new(0.5 / (1.0 + number as f64)).init();
        let outputs = model.second.forward(dropout.forward(model.first.forward(inputs).tanh()));
        let gradients = outputs.powi_scalar(2).mean().backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        model = optimizer.step(0.001, model.clone(), gradients);
        if number.is_multiple_of(100) {
            let device = device.clone();
            let drawn = std::thread::spawn(move || {
                let unseeded = Tensor::<1>::random([3], Distribution::Default, &device);
                assert!((unseeded + 1.0).try_into_data().is_err(), "a thread without a seed");
                set_random_seed(number as u64);
                Tensor::<1>::random([3], Distribution::Default, &device)
            });
            drawn.join().expect("it draws").try_into_data().expect("under its seed");
        }
    };
    let mut times = Vec::new();
    let mut tenth = |number: usize| {
        for part in 10 * number..10 * (number + 1) {
            times.push(timed(&device, || (part * steps / 100..(part + 1) * steps / 100).for_each(&mut step)));
        }
        let in_use = device.memory_pool_usage().expect("CubeCL reports its memory").bytes_in_use;
        (resident(), in_use)
    };
    // The first one compiles the kernels.
    let tenths: Vec<_> = (0..10).map(&mut tenth).collect();
    report("tenths", format!("{tenths:?}"));
    assert_steady(&times);
    // Past CubeCL's caches, and the first exchange of Burn's plans.
    let (first, last) = (tenths[5], tenths[9]);
    assert!(last.0 < first.0 + (24 << 20), "{tenths:?}");
    assert!(last.1 < first.1 + (1 << 20), "{tenths:?}");
}

#[test]
fn a_long_training_stays_as_it_was() {
    // Each thread has a stream of CubeCL's, up to a number, and its stream on CUDA some MiB of the host's memory.
    let folder = Folder::new();
    std::fs::write(folder.path().join("cubecl.toml"), "[streaming]\nmax_streams = 4\n").expect("a file for the test");
    let output = measured("soak").folder(folder.path()).run();
    output.assert_quiet();
    println!("{}", output.reported("tenths"));
}
