//! The kernels and plans that a recorded operation launches.

use crate::context::{self, Launches};
use core::fmt::Debug;

/// Burn copies a tensor before it writes into it if someone else still holds the buffer, be it the queue of a launch: whether it
/// does depends on time, and changes no bit.
const COPY: &str = "CubeTensor::copy::Copy";

/// Notes that a kernel was launched.
pub(crate) fn launched(kernel: &'static str) {
    context::with(|context| {
        if let Some(launches) = context.launches.as_mut().filter(|_| !kernel.contains(COPY)) {
            launches.kernels.push(kernel);
        }
    });
}

/// Notes the plan of a launch.
pub(super) fn planned(kernel: &'static str, plan: &dyn Debug) {
    context::with(|context| {
        if let Some(launches) = context.launches.as_mut() {
            launches.plans.push(format!("{kernel}: {plan:?}"));
        }
    });
}

/// What was launched since an operation began, where it is recorded.
pub(super) fn launches() -> Launches {
    context::with(|context| context.launches.take()).unwrap_or_default()
}
