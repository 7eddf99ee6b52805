//! The settings of the process: what was asked of [`enable_op_determinism`](crate::enable_op_determinism), and whether
//! it is in force. Everything reads them, so nothing of this crate is imported here.

use burn_deterministic_recording::Level;
use core::sync::atomic::{AtomicBool, Ordering};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What determinism means for a program, and what happens where it cannot be had.
///
/// `Determinism::default()` is what most programs want: [`Guarantee::RunToRun`] and [`OnViolation::Error`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Determinism {
    pub(crate) guarantee: Guarantee,
    pub(crate) on_violation: OnViolation,
    /// 0 stands for once, unchecked.
    pub(crate) runs: u32,
    pub(crate) thread_seed: Option<u64>,
    pub(crate) record: Option<(PathBuf, Level)>,
    /// How many operations there are to one that is checked; 0 stands for none.
    pub(crate) reference: u32,
    pub(crate) tensor_float_32: bool,
}

impl Determinism {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for a guarantee.
    pub fn guarantee(self, guarantee: Guarantee) -> Self {
        Self { guarantee, ..self }
    }

    /// Chooses what happens to an operation that has no deterministic version, or no seed.
    pub fn on_violation(self, on_violation: OnViolation) -> Self {
        Self { on_violation, ..self }
    }

    /// Runs every operation of Burn's stream `runs` times on the same operands and compares the bits of the results;
    /// 0 and 1 mean once, without a comparison, which is the default.
    ///
    /// A difference is a violation, [`Error::NotRepeatable`](crate::Error::NotRepeatable). The bits of a program do not
    /// change: the random operations draw the same numbers in each run, and the first result is the one that stays.
    /// Element-wise operations that share a kernel are repeated together. Work below the tensor API, on
    /// [`Deterministic`](crate::Deterministic) itself, is not repeated.
    ///
    /// For finding faults of a device, a driver or a promised custom operation: each operation takes `runs` times as
    /// long, waits for the device, copies every result to the host `runs` times, and keeps its operands in memory,
    /// so that nothing is computed in place.
    pub fn rerun(self, runs: u32) -> Self {
        Self { runs: if runs < 2 { 0 } else { runs }, ..self }
    }

    /// Computes every `every`-th operation of Burn's stream a second time, on the host, by the plain-Rust references of
    /// the kernels' orders, on the operands as the device has them, and compares the bits of the results; 1 means each
    /// operation, 0 none, which is the default. The environment variable `BURN_DETERMINISTIC_REFERENCE=EVERY` comes
    /// before it.
    ///
    /// It tells which of two devices that disagree is wrong. A difference is a violation,
    /// [`Error::NotReference`](crate::Error::NotReference). [`reference_check`](crate::reference_check()) counts what
    /// was checked, and names what has no reference. The bits of a program do not change. Element-wise operations that
    /// share a kernel are checked together, by what lives on after it. Any NaN equals any other.
    ///
    /// It needs [`Guarantee::GpuToGpu`]: under the other the device's `fma` is part of a result, and enabling is an
    /// error. Each checked operation waits for the device, and runs on one core of the host.
    pub fn check_against_reference(self, every: u32) -> Self {
        Self { reference: every, ..self }
    }

    /// Seeds every thread that draws random numbers before it has a seed or a stream of its own, as if it had called
    /// [`set_random_seed`](crate::set_random_seed) with `seed` first. Without it such a draw is a violation,
    /// [`Error::Unseeded`](crate::Error::Unseeded).
    ///
    /// For programs in which threads have nothing to do with each other, above all tests, of which each runs in a
    /// thread of its own: two such threads draw the **same** numbers. Not for pools of threads (rayon, tokio): which
    /// task runs on which thread changes from run to run, and with it the numbers. `Device::seed` has no effect then.
    /// Where threads work together, give each [a stream](crate::RandomStream::enter). Draws on
    /// [`Deterministic`](crate::Deterministic) itself, below the tensor API, take no part: seed their thread.
    pub fn seed_threads(self, seed: u64) -> Self {
        Self { thread_seed: Some(seed), ..self }
    }

    /// Allows matrix products and convolutions of f32 on tensor cores, with factors rounded to TF32: 10 fraction bits instead of 23. Off by default; plain
    /// Burn's autotune may choose such kernels without being asked.
    ///
    /// It has an effect under [`Guarantee::RunToRun`], with CUDA on NVIDIA GPUs from Ampere on, if their tensor cores compute the
    /// sums of a [reference](burn_deterministic_kernels::matmul::tensor_cores); otherwise f32 multiply-adds are used. It applies to `matmul`,
    /// to what is composed of it (linear layers, attention, recurrent layers), and to the convolutions and gradients that
    /// [have this order](burn_deterministic_kernels::convolution::tensor_cores).
    pub fn allow_tensor_float_32(self) -> Self {
        Self { tensor_float_32: true, ..self }
    }

    /// Records what the program computes, in the file at `path`, which is overwritten: for [`Level::Weights`] a digest
    /// of each tensor that lives at the end of a step, for the other levels also each operation with its operands, its
    /// kernels and a digest of each result.
    ///
    /// `burn-deterministic diff` compares two such files, and names the first operation that differs;
    /// `docs/debugging.md` shows how. [`step`](crate::step), [`label`](crate::label()) and
    /// [`name_parameters`](crate::name_parameters) say where in the program an operation is.
    ///
    /// The environment variables `BURN_DETERMINISTIC_RECORD=FILE` and
    /// `BURN_DETERMINISTIC_RECORD_LEVEL=weights|operations|operations:FIRST-LAST` do the same, and come before the
    /// settings.
    ///
    /// The bits of the program do not change.
    pub fn record(self, path: impl Into<PathBuf>, level: Level) -> Self {
        Self { record: Some((path.into(), level)), ..self }
    }
}

/// Between which runs the bits are equal, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Guarantee {
    /// The same program on the same device model, with the same driver, CUDA toolkit and build.
    ///
    /// With CUDA on NVIDIA GPUs, matrix products and convolutions of f16 and bf16 run on tensor cores; `docs/guarantee.md` says which.
    #[default]
    RunToRun,
    /// The same program on any device that passes a test of its arithmetic: on others every operation of Burn's stream is
    /// [`Error::Inexact`](crate::Error::Inexact) or [`Error::SubnormalsNotKept`](crate::Error::SubnormalsNotKept).
    /// [`require_guarantee`](crate::require_guarantee) tells beforehand.
    ///
    /// Products are rounded before they are added, also in matrix products and convolutions, whose long chains take up
    /// to twice as many instructions on a GPU. f16 and bf16 are computed in f32, and each operation is rounded once; their
    /// matrix products and convolutions do not run on tensor cores.
    /// Refused are arithmetic in f64, casts of floats to other integers than i32, and quantization, whose kernels are
    /// Burn's and whose bits are the device's.
    ///
    /// Not covered are the bits of a NaN. The program must do the same on every device: what it draws, and the operations
    /// that it issues.
    GpuToGpu,
}

/// What happens to an operation that has no deterministic version, or no seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnViolation {
    /// It is not run; every read of what depends on it returns the error.
    #[default]
    Error,
    /// It runs on Burn's plain backend, and a warning on standard error names it, once for each text. For porting a
    /// program: the run is not deterministic. What the plain backend cannot run either stays an error: an element type
    /// that the device does not have, or operands that a Fourier transform does not take.
    Warn,
}

/// The settings in force, from the end of the installation on.
static ENABLED: OnceLock<Determinism> = OnceLock::new();

/// Held during an installation.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Whether operations run on Burn's own kernels, and are recorded.
static OBSERVING: AtomicBool = AtomicBool::new(false);

/// An installation in progress. Other threads that ask for the settings wait until it has ended.
pub(crate) struct Installation(MutexGuard<'static, ()>);

impl Installation {
    /// Waits for any other installation to end.
    pub(crate) fn begin() -> Self {
        Self(INSTALLING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The settings of an earlier installation.
    pub(crate) fn enabled(&self) -> Option<Determinism> {
        ENABLED.get().cloned()
    }

    /// Whether the process [observes](crate::observe()).
    pub(crate) fn observes(&self) -> bool {
        is_observing()
    }

    /// Puts the observation in force.
    pub(crate) fn observe(&self) {
        OBSERVING.store(true, Ordering::Relaxed);
    }

    /// Puts `settings` in force.
    pub(crate) fn finish(self, settings: Determinism) {
        let Self(_installing) = self;
        ENABLED.get_or_init(|| settings);
    }
}

/// The settings in force. Takes a lock only before there are any.
fn enabled() -> Option<&'static Determinism> {
    ENABLED.get().or_else(|| {
        drop(Installation::begin());
        ENABLED.get()
    })
}

/// Whether the process [observes](crate::observe()).
pub(crate) fn is_observing() -> bool {
    OBSERVING.load(Ordering::Relaxed)
}

/// Whether [`enable_op_determinism`](crate::enable_op_determinism) has succeeded in this process.
pub fn is_op_determinism_enabled() -> bool {
    enabled().is_some()
}

/// The settings in force; the default ones where [`Deterministic`](crate::Deterministic) is used without enabling.
pub(crate) fn determinism() -> &'static Determinism {
    static DEFAULT: Determinism = Determinism {
        guarantee: Guarantee::RunToRun,
        on_violation: OnViolation::Error,
        runs: 0,
        thread_seed: None,
        record: None,
        reference: 0,
        tensor_float_32: false,
    };
    enabled().unwrap_or(&DEFAULT)
}
