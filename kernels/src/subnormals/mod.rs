//! Subnormal numbers on a device that takes them for zero.
//!
//! Vulkan, WebGPU and Metal let a device take subnormal numbers for zero, as operands and as results. Its kernels then have
//! other bits than those of a device that computes with them. [`keep`] has the kernels of such a device compute with them:
//! their f32 operations are rewritten, before they are compiled, into those of [`arithmetic`], which have IEEE 754's bits.
//! They take several times as long; no other device's kernels change.
//!
//! Each kernel ends in `keep_subnormals`, which rewrites what the kernel has been told to do so far.

#![allow(missing_docs, reason = "`#[cube]` makes a module of each public function, without its documentation")]

mod arithmetic;
mod rewrite;

use crate::append_only::AppendOnly;
use cubecl::ir::DeviceIdentity;
use cubecl::prelude::*;
use std::sync::OnceLock;

/// Whether the kernels of a device keep subnormal numbers, from the first kernel on for which it matters.
static KEPT: AppendOnly<(String, String), OnceLock<bool>> = AppendOnly::new();

/// Whether there is a device whose kernels do so because of [`keep`].
static ANY: OnceLock<()> = OnceLock::new();

fn kept(identity: &DeviceIdentity) -> &'static OnceLock<bool> {
    let is_of = |(name, fingerprint): &(String, String)| *name == identity.name && *fingerprint == identity.fingerprint;
    let known = KEPT.iter().find(|(key, _)| is_of(key)).map(|(_, kept)| kept);
    known.unwrap_or_else(|| KEPT.keep((identity.name.clone(), identity.fingerprint.clone()), OnceLock::new()))
}

/// Has all kernels of this crate keep subnormal numbers on a device, and on others that have its name and driver, from now to
/// the end of the process. For a device that takes them for zero; another one becomes slower and computes the same.
///
/// It does not see kernels that CubeCL stores and loads (`compilation.cache`).
///
/// # Errors
///
/// When a kernel that takes them for zero was compiled for such a device before.
pub fn keep(client: &Client) -> Result<(), TooLate> {
    match kept(&client.properties().identity).get_or_init(|| true) {
        true => {
            let _ = ANY.set(());
            Ok(())
        }
        false => Err(TooLate),
    }
}

/// Whether kernels keep subnormal numbers because [`keep`] was called: then each of their operations is many, and a unit
/// should have few, for a compiler takes more than twice as long for twice as many.
pub fn is_kept(client: &Client) -> bool {
    ANY.get().is_some() && kept(&client.properties().identity).get() == Some(&true)
}

/// Whether [`keep`] can be called for a device.
///
/// # Errors
///
/// Those of [`keep`].
pub fn can_keep(client: &Client) -> Result<(), TooLate> {
    match kept(&client.properties().identity).get() {
        Some(false) => Err(TooLate),
        _ => Ok(()),
    }
}

/// A kernel that takes subnormal numbers for zero was compiled for the device before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a kernel that takes subnormal numbers for zero was compiled for the device before")]
pub struct TooLate;

/// The end of a kernel: on a device whose kernels [`keep`] subnormal numbers, rewrites the operations before it.
#[cube]
pub fn keep_subnormals() {
    intrinsic!(|scope| {
        let state = scope.state();
        let identity = &state.device_properties.as_ref().expect("a kernel is compiled for a device").identity;
        let kept = kept(identity);
        // Most devices are decided by their first kernel, and no other one is looked at.
        if kept.get() != Some(&false) {
            let affected = rewrite::affected(scope);
            if !affected.is_empty() && *kept.get_or_init(|| false) {
                rewrite::rewrite(scope, affected);
            }
        }
    })
}

/// The end of a kernel that keeps subnormal numbers if `wanted`, whatever others of the device do.
#[cube]
pub fn keep_subnormals_if(#[comptime] wanted: bool) {
    intrinsic!(|scope| {
        if wanted {
            rewrite::rewrite(scope, rewrite::affected(scope));
        }
    })
}
