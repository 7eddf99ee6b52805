//! The plans of launches: one that does not apply is refused, and an observer is told of the others.

use crate::KernelError;
use core::fmt::Debug;
use std::sync::OnceLock;

/// Is told the kernel and the plan of a launch, on the thread that launches.
pub type Observer = fn(kernel: &'static str, plan: &dyn Debug);

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Tells `observer` of each plan that is chosen and applies from now on, in the whole process; the launch may still be refused.
/// The first observer stays.
pub fn observe(observer: Observer) {
    let _ = OBSERVER.set(observer);
}

/// Refuses a plan for the reason why it does not apply, if there is one.
pub(crate) fn require_plan(
    kernel: &'static str,
    plan: &impl Debug,
    refusal: Option<String>,
) -> Result<(), KernelError> {
    if let Some(reason) = refusal {
        return Err(KernelError::Plan { kernel, reason });
    }
    if let Some(observer) = OBSERVER.get() {
        observer(kernel, plan);
    }
    Ok(())
}
