//! What decides the bits of a program beside its source: versions, devices, drivers, settings, configuration, seed.

mod build;
mod configuration;
mod driver;
mod host;
mod probe;

pub(crate) use build::{BURN, version};
pub(crate) use probe::DeviceKey;

use crate::device;
use crate::known_answer;
use crate::promise::promises;
use crate::random::seed_in_words;
use crate::settings::{Determinism, Guarantee, OnViolation, determinism, is_op_determinism_enabled};
use burn_core::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_deterministic_recording::Environment;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Where this program runs: names and values of what can decide its bits beside its source and its data.
///
/// Two runs of one program have equal environments at the same place in it. Nothing in it depends on the time, the process
/// or the host's name. The program's own executable is not in it.
///
/// | name | value |
/// |---|---|
/// | `burn-deterministic`, `burn`, `cubecl` | versions of the crates |
/// | `compiler`, `target`, `profile`, `features` | how this crate was compiled |
/// | `device`, `runtime`, `driver`, `nvrtc`, `types`, `arithmetic` | of each device that the program has opened so far, or of the default one, which is opened; those of a second device are `device 2` and so on |
/// | `determinism`, `promises` | the settings of [`enable_op_determinism`](crate::enable_op_determinism), and what is [promised](crate::promise_deterministic) |
/// | `seed`, `seed of threads` | the calling thread's seed, and that of [`seed_threads`](crate::Determinism::seed_threads) |
/// | `burn.toml`, `cubecl.toml` | BLAKE3 hash of each such file in the working folder and above it, `../burn.toml`, at the first call |
/// | `variable CUBECL_...` | environment variables that choose devices, drivers, kernels or schedules, at the first call |
/// | `os`, `cpu` | the operating system and the processor |
///
/// What does not apply is left out. The first call waits for each device, to ask it for its arithmetic
/// ([`device_arithmetic`](crate::device_arithmetic)), and takes milliseconds.
pub fn environment() -> Environment {
    environment_under(is_op_determinism_enabled().then(determinism))
}

/// [`environment`] under settings that are in force or about to be; `None` stands for none. It does not ask for those in
/// force, and so may be called while they are being installed, before the route is: the kernels that it launches are then
/// observed by nothing that waits for the settings.
pub(crate) fn environment_under(settings: Option<&Determinism>) -> Environment {
    let mut devices: BTreeSet<DeviceKey> =
        device::in_use().iter().chain(&known_answer::asked()).map(DeviceKey::of_cube).collect();
    if devices.is_empty() {
        devices.insert(DeviceKey::of(&Device::default()));
    }
    let mut environment = of_process_on(&devices);
    set_settings(&mut environment, settings);
    if let Some(seed) = seed_in_words(settings.and_then(|settings| settings.thread_seed)) {
        environment.set("seed", seed);
    }
    environment
}

/// What [`environment`] says of one device: its name, runtime, driver, types and arithmetic. Opens the device, and waits
/// for it the first time. A device that cannot be opened says so in `arithmetic`.
pub fn device_environment(device: &Device) -> Environment {
    probe::facts(&DeviceKey::of(device))
}

/// Every device of the runtimes that are compiled in. None is opened.
pub fn devices() -> Vec<Device> {
    CubeDevice::enumerate_all().into_iter().map(device::of_cube).collect()
}

/// The environment of a computation on `devices`, whichever thread issues it.
pub(crate) fn of(devices: &BTreeSet<DeviceKey>) -> Environment {
    let mut environment = of_process_on(devices);
    set_settings(&mut environment, is_op_determinism_enabled().then(determinism));
    environment
}

fn of_process_on(devices: &BTreeSet<DeviceKey>) -> Environment {
    static PROCESS: OnceLock<Environment> = OnceLock::new();
    let mut environment = PROCESS.get_or_init(of_process).clone();
    for (number, device) in (1..).zip(devices) {
        for (name, value) in probe::facts(device).iter() {
            environment.set(if number == 1 { name.to_owned() } else { format!("{name} {number}") }, value);
        }
    }
    environment
}

/// What does not change while the process lives.
fn of_process() -> Environment {
    let mut environment = build::facts();
    environment.extend(&configuration::facts());
    environment.extend(&host::facts());
    environment
}

fn set_settings(environment: &mut Environment, settings: Option<&Determinism>) {
    let Some(settings) = settings else {
        environment.set("determinism", "not enabled");
        return;
    };
    let guarantee = match settings.guarantee {
        Guarantee::RunToRun => "run to run",
        Guarantee::GpuToGpu => "GPU to GPU",
    };
    let violations = match settings.on_violation {
        OnViolation::Error => "are errors",
        OnViolation::Warn => "are warnings",
    };
    let runs = if settings.runs > 0 { format!(", each operation {} times", settings.runs) } else { String::new() };
    let products = if settings.tensor_float_32 && settings.guarantee == Guarantee::RunToRun {
        ", products of f32 may be of TF32"
    } else {
        ""
    };
    environment.set("determinism", format!("{guarantee}, violations {violations}{runs}{products}"));
    if let Some(seed) = settings.thread_seed {
        environment.set("seed of threads", seed.to_string());
    }
    let promised: Vec<String> = promises().into_iter().map(|promise| promise.operation).collect();
    if !promised.is_empty() {
        environment.set("promises", promised.join(", "));
    }
}
