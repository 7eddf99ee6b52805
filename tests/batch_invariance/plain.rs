//! The hazard: on plain Burn the result of a sample depends on its batch.

use super::{Case, layers, products, reductions};
use crate::driver;
use crate::process::{self, Program};
use crate::skip::skip;
use burn::prelude::*;

/// What was seen to depend on the batch on plain Burn 0.22.1, on some driver, after some measurement of its own.
fn cases(device: &Device) -> Vec<Case> {
    vec![
        products::wide_linear(),
        layers::group_norm(device),
        reductions::sum_of_rows(),
        layers::conv_transpose2d_of_channels(),
    ]
}

/// Reports the first case whose results depend on the batch on plain Burn: each takes a minute of measurements.
pub fn plain_batches() {
    let device = Device::default();
    let first = cases(&device).into_iter().find_map(|case| case.run(&device).err());
    process::report("difference", first.unwrap_or_else(|| "none".to_owned()));
}

/// What plain Burn computes is the driver's and its measurements' choice, so that only where it was seen is it required.
#[test]
fn plain_burn_depends_on_the_batch() {
    if driver::is_emulator() {
        return skip("the CUDA emulator runs no operations of a warp, which plain Burn's kernels have");
    }
    let output = Program::new("plain_batches").run();
    let difference = output.reported("difference");
    eprintln!("plain Burn, by the batch: {difference}");
    if difference == "none" {
        assert!(!driver::name().contains("llvmpipe"), "nothing depends on the batch in {output}");
        skip("plain Burn's results do not depend on the batch, so that the hazard does not show");
    }
}
