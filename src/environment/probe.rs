//! What a device is: asked once for each device and process.

use super::driver;
use crate::device;
use crate::error::Error;
use crate::known_answer;
use burn_backend::DeviceId;
use burn_core::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::arithmetic::MultiplyAdd;
use burn_deterministic_kernels::known_answer::{Arithmetic, Casts, Rounding, Subnormals};
use burn_deterministic_recording::Environment;
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A device, in an order that does not depend on when it was opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeviceKey {
    /// One of CubeCL's.
    Cube(DeviceId),
    /// One that this crate does not cover, as Burn spells it.
    Other(String),
}

impl DeviceKey {
    pub(crate) fn of(device: &Device) -> Self {
        match device::covers(device) {
            true => Self::of_cube(&device::cube(device)),
            false => Self::Other(format!("{:?}", device.clone().inner())),
        }
    }

    pub(super) fn of_cube(device: &CubeDevice) -> Self {
        Self::Cube(device.to_id())
    }
}

/// Name, runtime, driver, types and arithmetic.
pub(super) fn facts(device: &DeviceKey) -> Environment {
    /// No lock is held while a device is asked: a thread that asks waits for it.
    static KNOWN: Mutex<BTreeMap<DeviceKey, Environment>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().get(device).cloned();
    found.unwrap_or_else(|| {
        let asked = match device {
            DeviceKey::Cube(id) => ask(&CubeDevice::from_id(*id)),
            DeviceKey::Other(name) => {
                let mut facts = Environment::new();
                facts.set("device", format!("{name}, which is not covered"));
                facts
            }
        };
        known().entry(device.clone()).or_insert(asked).clone()
    })
}

fn ask(device: &CubeDevice) -> Environment {
    let mut facts = Environment::new();
    // CubeCL panics where a device cannot be opened.
    let Ok(client) = catch_unwind(AssertUnwindSafe(|| device.client())) else {
        facts.set("device", format!("{device:?}"));
        facts.set("arithmetic", "unknown: the device cannot be opened");
        return facts;
    };
    let identity = &client.properties().identity;
    facts.set("device", &identity.name);
    facts.set("runtime", client.name());
    let types = TYPES.iter().filter(|(_, elem)| client.properties().supports_type(*elem)).map(|(name, _)| *name);
    facts.set("types", types.collect::<Vec<_>>().join(" "));
    // Before NVRTC is looked for: the questions are the first kernel that it compiles.
    facts.set("arithmetic", verdict(known_answer::arithmetic_of(device)));
    facts.set("driver", driver::of(device, identity));
    if let (CubeDevice::Cuda(_), Some(nvrtc)) = (device, driver::nvrtc()) {
        facts.set("nvrtc", nvrtc);
    }
    facts
}

/// Element types that devices differ in.
const TYPES: [(&str, ElemType); 9] = [
    ("f64", ElemType::Float(FloatKind::F64)),
    ("f32", ElemType::Float(FloatKind::F32)),
    ("f16", ElemType::Float(FloatKind::F16)),
    ("bf16", ElemType::Float(FloatKind::BF16)),
    ("i64", ElemType::Int(IntKind::I64)),
    ("i16", ElemType::Int(IntKind::I16)),
    ("i8", ElemType::Int(IntKind::I8)),
    ("u64", ElemType::UInt(UIntKind::U64)),
    ("u8", ElemType::UInt(UIntKind::U8)),
];

/// The known-answer test's verdict in short.
fn verdict(verdict: &Result<Arithmetic, Error>) -> String {
    match verdict {
        Ok(arithmetic) => words(arithmetic),
        Err(Error::Arithmetic { test, operands, expected, got, .. }) => {
            format!("refused: `{test}` of {operands} is {got}, and {expected} is right")
        }
        Err(error) => format!("unknown: {error}"),
    }
}

fn words(arithmetic: &Arithmetic) -> String {
    let multiply_add = match arithmetic.multiply_add {
        MultiplyAdd::Fused => "rounds once",
        MultiplyAdd::Unfused => "rounds twice",
    };
    let mut words = format!(
        "fma {multiply_add}, subnormals {}, division {}, square root {}, NaN {} NaN",
        subnormals(arithmetic.subnormals),
        rounding(arithmetic.division),
        rounding(arithmetic.square_root),
        if arithmetic.nan_is_unequal { "!=" } else { "not !=" },
    );
    for (name, casts) in [("f16", arithmetic.f16), ("bf16", arithmetic.bf16)] {
        if let Some(Casts { narrowing, subnormals: kept }) = casts {
            words.push_str(&format!(", {name} casts {} with subnormals {}", rounding(narrowing), subnormals(kept)));
        }
    }
    words
}

fn subnormals(subnormals: Subnormals) -> &'static str {
    match subnormals {
        Subnormals::Kept => "kept",
        Subnormals::Flushed => "flushed",
        Subnormals::Mixed => "mixed",
    }
}

fn rounding(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::NearestEven => "nearest",
        Rounding::Approximate => "approximate",
        Rounding::Corrected => "corrected",
    }
}
