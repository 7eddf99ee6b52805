//! Known answers: a device whose arithmetic is not what the kernels rely on is refused.
//!
//! A device is asked once, before its first block of Burn's stream runs, and before the first kernel of this crate's that
//! runs below the tensor API (see [`burn_deterministic_kernels::known_answer`]). No lock is held meanwhile: a thread that
//! asks waits for the device, whose own thread may be about to ask too. Then both do, and the first verdict stays.

use crate::device;
use crate::error::Error;
use burn_backend::DeviceId;
use burn_core::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::known_answer::{Arithmetic, WrongAnswer, ask, judge};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Verdict = Result<Arithmetic, Error>;

/// What a device's arithmetic is: how `fma` rounds, what becomes of subnormal numbers, how exact `/` and `sqrt` are, and
/// what casts of half types do. Two runs can have equal bits only on devices that agree in it.
///
/// Opens the device, and waits for it the first time.
///
/// # Errors
///
/// - [`Error::NotCovered`] when the device is not [covered](crate::covers),
/// - [`Error::Arithmetic`] when it does not compute what the kernels rely on: operations on it are refused,
/// - [`Error::Device`] when it cannot be asked.
pub fn device_arithmetic(device: &Device) -> Result<Arithmetic, Error> {
    device::check("device_arithmetic", device)?;
    of(&device::cube(device))
}

/// The verdict on a device.
pub(crate) fn of(device: &CubeDevice) -> Verdict {
    let id = device.to_id();
    let known = verdicts().get(&id).cloned();
    known.unwrap_or_else(|| {
        let verdict = examine(device);
        verdicts().entry(id).or_insert(verdict).clone()
    })
}

/// The devices that have been asked.
pub(crate) fn asked() -> Vec<CubeDevice> {
    verdicts().keys().map(|id| CubeDevice::from_id(*id)).collect()
}

fn verdicts() -> MutexGuard<'static, BTreeMap<DeviceId, Verdict>> {
    static VERDICTS: Mutex<BTreeMap<DeviceId, Verdict>> = Mutex::new(BTreeMap::new());
    VERDICTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn examine(device: &CubeDevice) -> Verdict {
    let answers = ask(&device.client()).map_err(|error| Error::Device {
        device: format!("{device:?}"),
        reason: format!("it could not be asked what its arithmetic is: {error}"),
    })?;
    let judged = judge(&answers);
    #[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
    let judged = tests::with_planted_fault(judged);
    judged.map_err(|WrongAnswer { test, operands, expected, got, .. }| Error::Arithmetic {
        device: format!("{device:?}"),
        test,
        operands,
        expected,
        got,
    })
}

#[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
mod tests {
    use super::*;
    use crate::backend::Deterministic;
    use crate::settings::Determinism;
    use burn_backend::ops::FloatTensorOps;
    use burn_backend::{TensorData, read_sync};
    use burn_core::tensor::Tensor;
    use burn_cubecl::CubeBackend;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::process::Command;

    /// Set in a process of its own, whose device answers wrongly.
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

    #[test]
    fn a_device_that_answers_wrongly_is_refused() {
        let program = std::env::current_exe().expect("the path of this test binary");
        let mut command = Command::new(program);
        command.args(["--exact", "known_answer::tests::refused", "--nocapture"]).env(FAULT, "1");
        let output = command.output().expect("this binary starts");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("refused everywhere"), "{text}");
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
