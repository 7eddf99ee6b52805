//! One error type. Each variant says what happened, where, why, and what to do now.

use crate::settings::Determinism;
use burn_backend::{DType, Shape};
use std::borrow::Cow;

/// What to do in threads that Burn starts.
const OF_BURN: &str = "in a worker of Burn's data loader use `burn_deterministic::data::DataLoaderBuilder` in its place, and in a thread of \
                       burn-train's the strategy of `burn_deterministic::shards` or of `burn_deterministic::rl`";

/// Has `Debug` show the text: it is what `main` prints of an error that it returns, and what `expect` prints.
macro_rules! debug_as_display {
    ($($error:ty),+) => {$(
        impl core::fmt::Debug for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )+};
}
pub(crate) use debug_as_display;

debug_as_display!(Error, Refusal);

/// Why determinism could not be enabled, or why an operation was not run.
///
/// Errors of operations reach a program where it reads a tensor: Burn's `try_*` reads return them as values, and the
/// plain reads panic with the same text.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor was made before determinism was enabled.
    #[error(
        "determinism was enabled too late: a tensor has been made already, and its operations run without it; call \
         `enable_op_determinism` at the start of `main`, before the first tensor or module is created"
    )]
    TooLate,

    /// Determinism is already enabled with other settings.
    #[error(
        "determinism is already enabled with {enabled:?}, and cannot change to {requested:?} in the same process; \
         enable it once, with the settings you want"
    )]
    AlreadyEnabled {
        /// The settings in force.
        enabled: Determinism,
        /// The settings asked for now.
        requested: Determinism,
    },

    /// The program is observed, on Burn's own kernels.
    #[error(
        "`burn_deterministic::observe` was called before `enable_op_determinism`: operations already run on Burn's own \
         kernels; call one of the two"
    )]
    Observes,

    /// The program's operations cannot be recorded.
    #[error(
        "the operations cannot be recorded: {reason}; name a file that can be written, by `BURN_DETERMINISTIC_RECORD` or \
         `Determinism::record`"
    )]
    Record {
        /// Why.
        reason: String,
    },

    /// A device does not pass through the deterministic backend.
    #[error(
        "`{function}`: {device} does not run on the deterministic backend: it computes, and draws random numbers, as in \
         plain Burn; turn on a GPU feature of `burn` and of `burn-deterministic` (for NVIDIA `cuda` and `cuda-nvrtc`), use a CUDA, ROCm, \
         Metal, Vulkan or WebGPU device (`Device::cuda(0)`, `Device::wgpu(..)`, `Device::default()`), and build the model on it, {}",
        burn_device()
    )]
    NotCovered {
        /// What was called.
        function: &'static str,
        /// The device.
        device: String,
    },

    /// An operation was issued on a device that does not pass through the deterministic backend: a remote one.
    #[error(
        "`{operation}` was issued on a device that computes in another process, where this one cannot see its order; use \
         a device of this process, or, where the server serves `burn_deterministic::Deterministic<CubeBackend>`, say so \
         before `enable_op_determinism`: `burn_deterministic::promise_deterministic(\"burn_remote\", reason)`"
    )]
    OtherBackend {
        /// The operation, by the name of its method in burn-backend.
        operation: &'static str,
    },

    /// A random seed was set, and determinism was not enabled.
    #[error(
        "`burn_deterministic::set_random_seed` was called, but `burn_deterministic::enable_op_determinism` was not{}: \
         operations run on Burn's own kernels, and random numbers do not come from the seed; call \
         `burn_deterministic::enable_op_determinism(Determinism::default())?` at the start of `main`",
        operation.map(|operation| format!(" before the first operation, `{operation}`")).unwrap_or_default()
    )]
    SeededOnly {
        /// The first operation, where there is one.
        operation: Option<&'static str>,
    },

    /// A kernel was launched outside Burn's operations.
    #[error(
        "the kernel `{kernel}` was launched outside Burn's operations, by code whose order of computation is not known here \
         (an extension with kernels of its own, or Burn's plain backend called directly); {}",
        remedy_of_kernel(kernel)
    )]
    OutsideBlock {
        /// The kernel's name: the path of its Rust type.
        kernel: &'static str,
    },

    /// A graph of kernels is being captured.
    #[error(
        "`{operation}` (device {device}) runs inside `burn::tensor::capture`: a replay would repeat the random numbers of the \
         capture, and nothing would check its indices; run the closure itself each time"
    )]
    Captured {
        /// The operation, by the name of its method in burn-backend.
        operation: &'static str,
        /// The device it was to run on.
        device: String,
    },

    /// A Burn setting would send operations around the deterministic kernels.
    #[error("Burn's setting `{setting}` is {value}, which {effect}; {remedy}")]
    Configuration {
        /// The key in `burn.toml` or `cubecl.toml`, or the file that Burn cannot read.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What it would do.
        effect: &'static str,
        /// What to do now.
        remedy: &'static str,
    },

    /// An environment variable of this crate's has a value that means nothing.
    #[error("the environment variable `{name}` is `{value}`; set it to {expected}, or unset it")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },

    /// Burn's optimization registry refused the installation.
    #[error("Burn's fusion registry refused the deterministic route: {reason}; {remedy}")]
    Registry {
        /// What the registry said.
        reason: String,
        /// What to do now.
        remedy: &'static str,
    },

    /// An operation has no deterministic version.
    #[error(transparent)]
    Refused(#[from] Refusal),

    /// A random operation ran before a seed was set.
    #[error(
        "`{operation}` (result {:?} {}; device {device}) draws random numbers, and no seed is set in its \
         thread: its result would differ from run to run; in a thread of the program's, before it, call \
         `burn_deterministic::set_random_seed(seed)`, or `device.seed(seed)` after `enable_op_determinism`; in a task of a pool \
         (rayon, tokio) seed no thread, but enter a stream (a `burn_deterministic::RandomStream`) of the task: \
         `let _draws = stream.fork_index(task).enter();`; {of_burn}; where threads are independent, as tests are, \
         `burn_deterministic::Determinism::new().seed_threads(seed)` seeds each",
        &shape[..],
        dtype.name(),
        of_burn = OF_BURN
    )]
    Unseeded {
        /// The operation, by Burn's name.
        operation: &'static str,
        /// The shape of the tensor it was to fill.
        shape: Shape,
        /// The dtype of that tensor.
        dtype: DType,
        /// The device it was to run on.
        device: String,
    },

    /// A random operation was issued by a second thread without a seed of its own, or on a second device, where
    /// `Device::seed` has set one.
    #[error(
        "`{operation}` (result {:?} {}; device {device}) draws random numbers in a thread without a seed, and another thread, \
         or this one on another device, draws from the seed that `Device::seed` has set: which drew first would decide its \
         result; in each thread of the program's that draws call `burn_deterministic::set_random_seed(seed)`, or, in a task of a pool \
         (rayon, tokio), enter a stream (a `burn_deterministic::RandomStream`) of the task: \
         `let _draws = stream.fork_index(task).enter();`; {of_burn}",
        &shape[..],
        dtype.name(),
        of_burn = OF_BURN
    )]
    SeedOfAnotherThread {
        /// The operation, by Burn's name.
        operation: &'static str,
        /// The shape of the tensor it was to fill.
        shape: Shape,
        /// The dtype of that tensor.
        dtype: DType,
        /// The device it was to run on.
        device: String,
    },

    /// A thread that draws from nothing was asked for its stream.
    #[error(
        "the thread `{thread}` has no random stream; call `burn_deterministic::set_random_seed(seed)` in it, or enter a \
         stream (a `burn_deterministic::RandomStream`) made for it: `let _draws = stream.fork(\"name\").enter();`; the seed \
         of `Device::seed` is known only after the thread has drawn from it"
    )]
    NoStream {
        /// The thread's name, or its id.
        thread: String,
    },

    /// A random state cannot be restored where the thread is.
    #[error(
        "the random state was taken inside {state} entered streams, and this thread is inside {thread}; restore it at \
         the same place of the program"
    )]
    Depth {
        /// Streams entered when the state was taken.
        state: usize,
        /// Streams entered now.
        thread: usize,
    },

    /// A random operation was issued before its thread's operations were counted, and began only after.
    #[error(
        "`{operation}` drew random numbers on device {device}, but it ran only after \
         `burn_deterministic::random_state` or `Checkpoint::new` (or the thread, after thousands of streams) had counted this \
         thread's draws, so it is missing in that count: this happens to the first operation on a device; call \
         `device.sync()` once after it"
    )]
    Uncounted {
        /// The operation, by Burn's name.
        operation: &'static str,
        /// The device it was to run on.
        device: String,
    },

    /// A device cannot run the operations that wait for it.
    #[error("the operations that wait for device {device} cannot run: {reason}; start the program again")]
    Device {
        /// The device.
        device: String,
        /// What it said.
        reason: String,
    },

    /// The test of a device's arithmetic could not run.
    #[error(
        "device {device} could not run the test of its arithmetic: {reason}; no operation runs on it: check its driver, and with \
         CUDA the toolkit (`libnvrtc.so` in `LD_LIBRARY_PATH`, headers in `CUDA_PATH`), and start the program again"
    )]
    Untested {
        /// The device.
        device: String,
        /// What it said.
        reason: String,
    },

    /// A device does not compute what the kernels rely on.
    #[error(
        "device {device} computes wrongly: `{test}` of {operands} is {got}, where {expected} is right; the kernels rely on \
         it, so no operation runs on this device; update its driver, or use another device"
    )]
    Arithmetic {
        /// The device.
        device: String,
        /// The operation of the known-answer test, `multiply_rounded(a, b) + c`.
        test: &'static str,
        /// Its operands, as bits.
        operands: String,
        /// The right answer, as bits.
        expected: String,
        /// What the device answers, as bits.
        got: String,
    },

    /// A device computes otherwise than the others under [`Guarantee::GpuToGpu`](crate::Guarantee::GpuToGpu).
    #[error(
        "device {device} cannot give `GpuToGpu`: `{test}` of {operands} is {got}, where IEEE 754 has {expected}; a program would end \
         with other bits on it than on other devices, so no operation runs; ask for `Guarantee::RunToRun`, or use another device"
    )]
    Inexact {
        /// The device.
        device: String,
        /// The operation of the known-answer test, `a / b`.
        test: &'static str,
        /// Its operands, as bits.
        operands: String,
        /// The right answer, as bits.
        expected: String,
        /// What the device answers, as bits.
        got: String,
    },

    /// Determinism has not been enabled.
    #[error("`{function}` needs determinism; call `enable_op_determinism` first, at the start of `main`")]
    NotEnabled {
        /// What was called.
        function: &'static str,
    },

    /// Two parameters of a module have the same path.
    #[error(
        "the parameters to be initialised at `{path}` are two, and would get the same values; give the module's parts \
         names of their own in `Module::visit`"
    )]
    DuplicatePath {
        /// The path, `encoder.0.weight`.
        path: String,
    },

    /// A parameter or buffer of a module cannot be read.
    #[error("`{path}` of {module} cannot be read: {reason}")]
    Unreadable {
        /// `the module`; of two that are compared, `the first module` or `the second module`.
        module: &'static str,
        /// The path, `encoder.0.weight`.
        path: String,
        /// The error that the tensor's operations left on it.
        reason: String,
    },

    /// An operation gave other bits when it ran again on the same operands ([`Determinism::rerun`]).
    #[error(
        "`{operation}` (operands {operands}; device {device}) gave other bits when it ran again on the same operands: \
         run {run} has {again} at {index:?} of {:?} {}, where the first run has {first}; no result computed from it can \
         be trusted: please report it with this text, or take the promise back if it is a custom operation",
        &shape[..],
        dtype.name()
    )]
    NotRepeatable {
        /// The operation, by the name of its method in burn-backend; several where they share a kernel.
        operation: Cow<'static, str>,
        /// Shapes and dtypes of the operands, `[2, 3] f32, [3] i32`.
        operands: String,
        /// The device it ran on.
        device: String,
        /// The shape of the first result that differs.
        shape: Shape,
        /// The dtype of that result.
        dtype: DType,
        /// The first position of that result, in row-major order, where the bits differ.
        index: Vec<usize>,
        /// Which run differs from the first one; 2 is the first that can.
        run: u32,
        /// The element of the first run as hexadecimal bits.
        first: String,
        /// The element of the other run as hexadecimal bits.
        again: String,
    },

    /// An operation gave other bits than its reference ([`Determinism::check_against_reference`]).
    #[error(
        "`{operation}` (operands {operands}; device {device}) gave other bits than the plain-Rust reference of its \
         order: {got} at {index:?} of {:?} {}, where the reference has {expected}; the device or its driver computes \
         wrongly, or the kernel has a defect: run the program on another device, and report what differs with this text",
        &shape[..],
        dtype.name()
    )]
    NotReference {
        /// The operation, by the name of its method in burn-backend; with the others of its kernel where it shares one.
        operation: String,
        /// Shapes and dtypes of the operands, `[2, 3] f32, [3] i32`.
        operands: String,
        /// The device it ran on.
        device: String,
        /// The shape of the first result that differs.
        shape: Shape,
        /// The dtype of that result.
        dtype: DType,
        /// The first position of that result, in row-major order, where the bits differ.
        index: Vec<usize>,
        /// The device's element as hexadecimal bits.
        got: String,
        /// The reference's element as hexadecimal bits.
        expected: String,
    },

    /// A device takes subnormal numbers for zero, and its kernels cannot be compiled so that they keep them.
    #[error("`GpuToGpu` is not possible on {device}: it takes subnormal numbers for zero, and {reason}")]
    SubnormalsNotKept {
        /// The device.
        device: String,
        /// Why its kernels cannot keep them, and what to do.
        reason: &'static str,
    },

    /// Operations are to be [checked](Determinism::check_against_reference) under another guarantee than
    /// [`Guarantee::GpuToGpu`](crate::Guarantee::GpuToGpu).
    #[error(
        "operations can be checked against their references under `Guarantee::GpuToGpu` alone, for under `RunToRun` \
         the device's `fma` is part of a result; add `.guarantee(Guarantee::GpuToGpu)` to the settings, or set \
         `BURN_DETERMINISTIC_GUARANTEE=gpu-to-gpu`"
    )]
    ReferenceNeedsGpuToGpu,

    /// An operation got an index that is outside its axis.
    #[error(
        "`{operation}` (operands {operands}; device {device}) got the index {index}, at {position:?} of its indices, for \
         an axis of {length}: it read zeros there, or updated nothing; correct the index (negative ones do not count \
         from the end)"
    )]
    IndexOutOfRange {
        /// The operation, by the name of its method in burn-backend.
        operation: &'static str,
        /// Shapes and dtypes of the operands, `[2, 3] f32, [3] i32`.
        operands: String,
        /// The device it ran on.
        device: String,
        /// The first index outside, in row-major order.
        index: i64,
        /// Its position in the tensor of indices.
        position: Vec<usize>,
        /// The length of the axis it is for.
        length: usize,
    },

    /// An operation got an index that is outside its axis, and its indices were not kept until that was known.
    #[error(
        "`{operation}` (operands {operands}; device {device}) got an index outside its axis: it read zeros there, or updated \
         nothing; the index is not known, since its indices, with those of operations that no read has waited for, take \
         more than 64 MiB; correct the index (negative ones do not count from the end); to have it named, read a result before \
         this operation"
    )]
    UnkeptIndexOutOfRange {
        /// The operation, by the name of its method in burn-backend.
        operation: &'static str,
        /// Shapes and dtypes of the operands, `[2, 3] f32, [3] i32`.
        operands: String,
        /// The device it ran on.
        device: String,
    },

    /// A custom operation was promised to be deterministic after determinism had been enabled.
    #[error(
        "the custom operation `{operation}` was promised too late: determinism is enabled already; call \
         `promise_deterministic` before `enable_op_determinism`"
    )]
    PromisedTooLate {
        /// The operation's id on Burn's stream.
        operation: String,
    },

    /// An operation ran on Burn's plain backend instead of the deterministic one.
    #[error(
        "`{operation}` ran outside the deterministic route, so nothing computed since can be trusted; this is a defect \
         of burn-deterministic or of a fusion optimization registered besides it: please report it with this text"
    )]
    OutsideRoute {
        /// The operation, by the name of its method in burn-backend.
        operation: &'static str,
    },
}

/// An operation that has no deterministic version here.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("`{operation}` was refused (operands {operands}; device {device}): {reason}; {remedy}")]
pub struct Refusal {
    /// The operation, by the name of its method in burn-backend.
    pub operation: Cow<'static, str>,
    /// Shapes and dtypes of the operands, `[2, 3] f32, [3] i32`.
    pub operands: String,
    /// The device it was to run on.
    pub device: String,
    /// Why there is no deterministic version.
    pub reason: String,
    /// What to do instead.
    pub remedy: String,
}

/// What to do about a kernel launched outside Burn's operations.
fn remedy_of_kernel(kernel: &str) -> String {
    let path = kernel.split('<').next().unwrap_or(kernel);
    match ["burn_", "cubek", "cubecl"].iter().any(|of_burn| path.starts_with(of_burn)) {
        true => "it is one of Burn's own, whose order may be picked by timing: call the methods of \
                 `burn_deterministic::Deterministic<CubeBackend>` instead"
            .to_owned(),
        false => format!(
            "if it computes the same bits in every run, say so before `enable_op_determinism`: \
             `burn_deterministic::promise_deterministic(\"{path}\", reason)`"
        ),
    }
}

/// What to do about a variable that redirects `Device::default()`.
fn burn_device() -> String {
    match std::env::var("BURN_DEVICE") {
        Ok(name) => format!("and unset the environment variable BURN_DEVICE, which is `{name}`"),
        Err(_) => "with its tensors".to_owned(),
    }
}

/// The operands of an operation, as [`Refusal::operands`] has them.
pub(crate) fn operands<S: AsRef<[usize]>>(operands: impl Iterator<Item = (S, DType)>) -> String {
    let operands: Vec<_> = operands.map(|(shape, dtype)| format!("{:?} {}", shape.as_ref(), dtype.name())).collect();
    if operands.is_empty() { "none".to_owned() } else { operands.join(", ") }
}

/// The index of element `flat`, in row-major order, of a tensor of this shape.
pub(crate) fn index_of(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = shape.to_vec();
    for axis in index.iter_mut().rev() {
        (flat, *axis) = (flat / *axis, flat % *axis);
    }
    index
}
