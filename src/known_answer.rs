//! Known answers: a device whose arithmetic is not what the kernels rely on is refused.
//!
//! A device is asked once, before its first block of Burn's stream runs, and before the first kernel of this crate's that
//! runs below the tensor API (see [`burn_deterministic_kernels::known_answer`]); before its first operation under
//! [`Guarantee::GpuToGpu`] it is asked for functions too. Nothing is locked meanwhile: a thread that
//! asks waits for the device, whose own thread may be about to ask too. Then both do, and the first verdict stays.
//!
//! Each block, and each kernel below the tensor API, looks the verdict up.

use crate::device;
use crate::error::Error;
use crate::settings::{Guarantee, determinism};
use burn_backend::DeviceId;
use burn_core::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::append_only::AppendOnly;
use burn_deterministic_kernels::known_answer::{
    Answers, Arithmetic, WrongAnswer, ask, ask_functions, ask_kept, judge, judge_functions, require_exact,
};
use burn_deterministic_kernels::subnormals::{self, TooLate};
use burn_std::config::RuntimeConfig;
use core::fmt::Display;
use cubecl::config::CubeClRuntimeConfig;
use std::sync::OnceLock;

type Verdict = Result<Arithmetic, Error>;

/// What was found out about a device.
struct Verdicts {
    /// For [`Guarantee::RunToRun`].
    run_to_run: Verdict,
    /// What it answered, where that passes.
    answers: Option<Answers>,
    /// For [`Guarantee::GpuToGpu`], which also asks for sums and functions, when it is wanted.
    gpu_to_gpu: OnceLock<Verdict>,
    /// The same, for operations: where the device takes subnormal numbers for zero, its kernels keep them from then on.
    in_force: OnceLock<Verdict>,
}

impl Verdicts {
    fn new(run_to_run: Verdict, answers: Option<Answers>) -> Self {
        Self { run_to_run, answers, gpu_to_gpu: OnceLock::new(), in_force: OnceLock::new() }
    }

    fn of(&self, guarantee: Guarantee, device: &CubeDevice) -> &Verdict {
        match guarantee {
            Guarantee::RunToRun => &self.run_to_run,
            Guarantee::GpuToGpu => first(&self.gpu_to_gpu, || {
                let arithmetic = self.run_to_run.clone()?;
                let kept = arithmetic.takes_subnormals_for_zero();
                if kept {
                    can_keep_subnormals(device)?;
                }
                let answers = self.answers.as_ref().expect("a device that passes has answered");
                let answers = ask_kept(&device.client(), answers).map_err(|error| not_asked(device, error))?;
                require_exact(&answers).map_err(|wrong| inexact(device, wrong))?;
                let answers = ask_functions(&device.client(), kept).map_err(|error| not_asked(device, error))?;
                judge_functions(&answers).map_err(|wrong| inexact(device, wrong))?;
                Ok(arithmetic)
            }),
        }
    }

    /// Of operations under the guarantee in force.
    fn in_force(&self, device: &CubeDevice) -> &Verdict {
        match determinism().guarantee {
            Guarantee::RunToRun => &self.run_to_run,
            Guarantee::GpuToGpu => self.in_force.get().unwrap_or_else(|| {
                let verdict = self.of(Guarantee::GpuToGpu, device).clone();
                first(&self.in_force, || {
                    let arithmetic = verdict?;
                    if arithmetic.takes_subnormals_for_zero() {
                        subnormals::keep(&device.client()).map_err(|TooLate| too_late(device))?;
                    }
                    Ok(arithmetic)
                })
            }),
        }
    }
}

/// The first verdict stays. Not `get_or_init`, which would have other threads wait for this one.
fn first(verdict: &OnceLock<Verdict>, find: impl FnOnce() -> Verdict) -> &Verdict {
    if verdict.get().is_none() {
        let _ = verdict.set(find());
    }
    verdict.get().expect("this thread or another has set it")
}

/// Whether the kernels of a device that takes subnormal numbers for zero can keep them.
fn can_keep_subnormals(device: &CubeDevice) -> Result<(), Error> {
    if stores_kernels(&CubeClRuntimeConfig::get()) {
        let reason = "CubeCL's store of compiled kernels may hold some that do so; set `cache = false` under \
             `[compilation]` in cubecl.toml, or `[cubecl.compilation]` in burn.toml";
        return Err(Error::SubnormalsNotKept { device: format!("{device:?}"), reason });
    }
    subnormals::can_keep(&device.client()).map_err(|TooLate| too_late(device))
}

fn too_late(device: &CubeDevice) -> Error {
    let reason = "a kernel that does so was compiled for it before, in this process; start the program again, and enable \
                  determinism with `Guarantee::GpuToGpu` before any operation, those of `Deterministic<CubeBackend>` too";
    Error::SubnormalsNotKept { device: format!("{device:?}"), reason }
}

/// Whether CubeCL loads kernels that another process compiled. It finds them by a name that does not tell whether they
/// keep subnormal numbers.
fn stores_kernels(config: &CubeClRuntimeConfig) -> bool {
    // The field exists with some of CubeCL's features only.
    let config = serde_json::to_value(config).expect("a configuration is text");
    config["compilation"]["cache"] == true
}

/// What a device's arithmetic is: how `fma` rounds, what becomes of subnormal numbers, how exact `/` and `sqrt` are, and
/// what casts of half types do. Two runs under [`Guarantee::RunToRun`] can have equal bits only on devices that agree in it;
/// under [`Guarantee::GpuToGpu`] kernels do not depend on it.
///
/// Opens the device, and waits for it the first time.
///
/// # Errors
///
/// - [`Error::NotCovered`] when the device is not [covered](crate::covers),
/// - [`Error::Arithmetic`] when it does not compute what the kernels rely on: operations on it are refused,
/// - [`Error::Untested`] when the test cannot run.
pub fn device_arithmetic(device: &Device) -> Result<Arithmetic, Error> {
    device::check("device_arithmetic", device)?;
    arithmetic_of(&device::cube(device)).clone()
}

/// What a device's arithmetic is, whatever the guarantee.
pub(crate) fn arithmetic_of(device: &CubeDevice) -> &'static Verdict {
    &verdicts(device).run_to_run
}

/// Requires that programs on `device` can have `guarantee`.
///
/// Opens the device, and waits for it the first time.
///
/// # Errors
///
/// Those of [`device_arithmetic`], and for [`Guarantee::GpuToGpu`]
///
/// - [`Error::Inexact`] when its casts, the subnormal numbers, quotients and square roots of kernels, sums or functions have
///   other bits than IEEE 754's and the references',
/// - [`Error::SubnormalsNotKept`] when it takes subnormal numbers for zero, and its kernels cannot keep them.
pub fn require_guarantee(device: &Device, guarantee: Guarantee) -> Result<(), Error> {
    device::check("require_guarantee", device)?;
    let device = device::cube(device);
    verdicts(&device).of(guarantee, &device).clone().map(|_| ())
}

/// The verdict on a device, for the guarantee in force.
pub(crate) fn of(device: &CubeDevice) -> &'static Verdict {
    verdicts(device).in_force(device)
}

/// The verdicts so far.
static VERDICTS: AppendOnly<DeviceId, Verdicts> = AppendOnly::new();

fn verdicts(device: &CubeDevice) -> &'static Verdicts {
    let id = device.to_id();
    VERDICTS.get(&id).unwrap_or_else(|| VERDICTS.keep(id, examine(device)))
}

/// The devices that have been asked.
pub(crate) fn asked() -> Vec<CubeDevice> {
    VERDICTS.iter().map(|(device, _)| CubeDevice::from_id(*device)).collect()
}

fn examine(device: &CubeDevice) -> Verdicts {
    let answers = match ask(&device.client()) {
        Ok(answers) => answers,
        Err(error) => return Verdicts::new(Err(not_asked(device, error)), None),
    };
    let judged = judge(&answers);
    #[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
    let judged = tests::with_planted_fault(judged);
    let run_to_run = judged.map_err(|WrongAnswer { test, operands, expected, got, .. }| Error::Arithmetic {
        device: format!("{device:?}"),
        test,
        operands,
        expected,
        got,
    });
    Verdicts::new(run_to_run, Some(answers))
}

fn not_asked(device: &CubeDevice, error: impl Display) -> Error {
    Error::Untested { device: format!("{device:?}"), reason: error.to_string() }
}

fn inexact(device: &CubeDevice, WrongAnswer { test, operands, expected, got, .. }: WrongAnswer) -> Error {
    Error::Inexact { device: format!("{device:?}"), test, operands, expected, got }
}

#[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
mod tests {
    use super::*;
    use crate::backend::Deterministic;
    use crate::settings::{Determinism, OnViolation};
    use burn_backend::ops::{DeformConvOptions, FloatTensorOps, ModuleOps};
    use burn_backend::{FloatDType, Shape, TensorData, read_sync};
    use burn_core::tensor::Tensor;
    use burn_cubecl::CubeBackend;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::process::Command;

    /// Set in processes of their own, whose device answers wrongly.
    const FAULT: &str = "BURN_DETERMINISTIC_PLANTED_FAULT";

    /// How often a device has been asked.
    static ASKED: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn with_planted_fault(judged: Result<Arithmetic, WrongAnswer>) -> Result<Arithmetic, WrongAnswer> {
        ASKED.fetch_add(1, Ordering::Relaxed);
        if std::env::var_os(FAULT).is_none() {
            return judged;
        }
        Err(WrongAnswer {
            test: "multiply_rounded(a, b) + c",
            operands: "a = 0x3f800800, b = 0x3f800800, c = 0xbf800000".to_owned(),
            expected: "0x3a000000".to_owned(),
            got: "0x3a000400".to_owned(),
        })
    }

    fn assert_refused(text: &str) {
        let device = format!("{:?}", CubeDevice::default());
        for part in [
            &device,
            "`multiply_rounded(a, b) + c` of a = 0x3f800800, b = 0x3f800800, c = 0xbf800000 is 0x3a000400",
            "0x3a000000 is right",
            "update its driver, or use another device",
        ] {
            assert!(text.contains(part), "no `{part}` in: {text}");
        }
    }

    #[test]
    fn the_device_passes_and_is_asked_once() {
        if std::env::var_os(FAULT).is_some() {
            return;
        }
        let first = device_arithmetic(&Device::default()).expect("the device computes what the kernels rely on");
        for _ in 0..1000 {
            assert_eq!(device_arithmetic(&Device::default().autodiff()), Ok(first));
        }
        // Tests beside this one may have been first too.
        let asked = ASKED.load(Ordering::Relaxed);
        assert!((1..100).contains(&asked), "asked {asked} times");
    }

    /// What a test of this module writes in a process of its own, whose device answers wrongly.
    fn with_a_fault(test: &str) -> String {
        in_process(test, FAULT, "1")
    }

    /// What a test of this module writes in a process of its own with this variable.
    fn in_process(test: &str, variable: &str, value: &str) -> String {
        let program = std::env::current_exe().expect("the path of this test binary");
        let mut command = Command::new(program);
        command.args(["--exact", &format!("known_answer::tests::{test}"), "--nocapture"]).env(variable, value);
        let output = command.output().expect("this binary starts");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
        text
    }

    #[test]
    fn a_device_that_answers_wrongly_is_refused() {
        let text = with_a_fault("refused");
        assert!(text.contains("refused everywhere"), "{text}");
    }

    #[test]
    fn a_device_that_answers_wrongly_may_compute_with_a_warning() {
        let text = with_a_fault("warned");
        assert!(text.contains("computed everywhere"), "{text}");
        assert_refused(&text);
        assert_eq!(text.matches("computes wrongly").count(), 1, "{text}");
    }

    /// A fault of the emulator's arithmetic.
    const PLANTED: &str = "CUDA_EMULATOR_ARITHMETIC";

    #[test]
    fn a_device_with_planted_arithmetic_is_refused_and_one_that_is_corrected_is_not() {
        let device = CubeDevice::default();
        let is_emulator = device.client().properties().identity.name.starts_with("CUDA emulator");
        if !is_emulator || std::env::var_os(PLANTED).is_some() {
            return;
        }
        let flushed = in_process("required", PLANTED, "flushed");
        assert!(flushed.contains("it can give GpuToGpu"), "{flushed}");
        let too_late = in_process("kept_too_late", PLANTED, "flushed");
        assert!(too_late.contains("refused behind another kernel"), "{too_late}");
        let regrouped = in_process("required", PLANTED, "reassociated");
        assert!(regrouped.contains("cannot give `GpuToGpu`"), "{regrouped}");
        let corrected = in_process("required", PLANTED, "approximate");
        assert!(corrected.contains("it can give GpuToGpu"), "{corrected}");
    }

    /// In the processes that [`a_device_with_planted_arithmetic_is_refused_and_one_that_is_corrected_is_not`] starts.
    #[test]
    fn required() {
        if std::env::var_os(PLANTED).is_none() {
            return;
        }
        let device = Device::default();
        require_guarantee(&device, Guarantee::RunToRun).expect("the kernels can rely on it");
        match require_guarantee(&device, Guarantee::GpuToGpu) {
            Ok(()) => println!("it can give GpuToGpu"),
            Err(error) => println!("{error}"),
        }
    }

    /// In a process that [`a_device_with_planted_arithmetic_is_refused_and_one_that_is_corrected_is_not`] starts.
    #[test]
    fn kept_too_late() {
        if std::env::var_os(PLANTED).is_none() {
            return;
        }
        // Below the tensor API, before enabling: its kernel takes subnormal numbers for zero.
        type Ours = Deterministic<CubeBackend>;
        let data = TensorData::from([f32::from_bits(0x0040_0000), f32::from_bits(1)]);
        let sum = Ours::float_sum(Ours::float_from_data(data.clone(), &CubeDevice::default()));
        let sum = read_sync(Ours::float_into_data(sum)).expect("it is computed");
        assert_eq!(sum.try_into_vec::<f32>().expect("f32"), [0.0]);

        let settings = Determinism::default().guarantee(Guarantee::GpuToGpu);
        crate::enable_op_determinism(settings).expect("no operation of the tensor API has run");
        let device = Device::default();
        let error = Tensor::<1>::from_data(data, &device).sum().try_into_data().expect_err("it would have other bits");
        assert!(error.to_string().contains("compiled for it before"), "{error}");
        println!("refused behind another kernel");
    }

    #[test]
    fn stored_kernels_are_those_of_the_configuration() {
        let config = |text: &str| serde_json::from_str(text).expect("a configuration");
        assert!(!stores_kernels(&CubeClRuntimeConfig::default()));
        // A build without the feature `persistence` of CubeCL stores none, and reads over it.
        let stored: CubeClRuntimeConfig = config(r#"{"compilation": {"cache": true}}"#);
        let has_field = format!("{stored:?}").contains("cache: true");
        assert_eq!(stores_kernels(&stored), has_field);
    }

    /// In the process that [`a_device_that_answers_wrongly_may_compute_with_a_warning`] starts.
    #[test]
    fn warned() {
        if std::env::var_os(FAULT).is_none() {
            return;
        }
        let device = Device::default();
        let settings = Determinism::default().on_violation(OnViolation::Warn);
        crate::enable_op_determinism(settings).expect("no operation has run");
        let data = TensorData::from([1.0f32, 2.0]);
        let x = Tensor::<1>::from_data(data.clone(), &device);
        // An element-wise sequence, kernels of ours, and what is forwarded.
        assert_eq!(values(x.clone() * 2.0 - 1.0), [1.0, 3.0]);
        assert_eq!(values(x.clone().sum()), [3.0]);
        assert_eq!(values(x.clone().unsqueeze::<2>().matmul(x.clone().unsqueeze::<2>().transpose())), [5.0]);
        assert_eq!(values(x.flip([0])), [2.0, 1.0]);

        type Ours = Deterministic<CubeBackend>;
        let sum = Ours::float_sum(Ours::float_from_data(data, &CubeDevice::default()));
        let sum = read_sync(Ours::float_into_data(sum)).expect("it is computed");
        assert_eq!(sum.try_into_vec::<f32>().expect("f32"), [3.0]);
        println!("computed everywhere");
    }

    fn values<const N: usize>(tensor: Tensor<N>) -> Vec<f32> {
        let data = tensor.try_into_data().expect("it is computed");
        data.try_into_vec().expect("f32")
    }

    /// In the process that [`a_device_that_answers_wrongly_is_refused`] starts.
    #[test]
    fn refused() {
        if std::env::var_os(FAULT).is_none() {
            return;
        }
        // Below the tensor API, before enabling.
        type Ours = Deterministic<CubeBackend>;
        let data = TensorData::from([1.0f32, 2.0]);
        let sum = Ours::float_sum(Ours::float_from_data(data.clone(), &CubeDevice::default()));
        let error = read_sync(Ours::float_into_data(sum)).expect_err("the device answers wrongly");
        assert_refused(&format!("{error:?}"));
        let zeros = |shape: [usize; 4]| Ours::float_zeros(Shape::from(shape), &CubeDevice::default(), FloatDType::F32);
        let gradients = Ours::deform_conv2d_backward(
            zeros([1, 1, 1, 1]),
            zeros([1, 2, 1, 1]),
            zeros([1, 1, 1, 1]),
            None,
            None,
            zeros([1, 1, 1, 1]),
            DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1),
        );
        for gradient in [gradients.x_grad, gradients.offset_grad, gradients.weight_grad] {
            let error = read_sync(Ours::float_into_data(gradient)).expect_err("the device answers wrongly");
            assert_refused(&format!("{error:?}"));
        }

        let device = Device::default();
        assert_refused(&device_arithmetic(&device).expect_err("the device answers wrongly").to_string());
        crate::enable_op_determinism(Determinism::default()).expect("no operation has run");
        let x = Tensor::<1>::from_data(data, &device);
        for result in [x.clone() + 1.0, x.clone().sum(), x.clone().exp()] {
            assert_refused(&result.try_into_data().expect_err("the device answers wrongly").to_string());
        }
        println!("refused everywhere");
    }
}
