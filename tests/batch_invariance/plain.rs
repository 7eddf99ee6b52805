//! The hazard: on plain Burn the result of a sample depends on its batch.

use super::{Case, differences, layers, products, reductions};
use crate::driver;
use crate::process::{self, Program};
use crate::skip::skip;
use burn::prelude::*;

/// What was seen to depend on the batch on plain Burn 0.22.1.
fn cases(device: &Device) -> Vec<Case> {
    vec![
        reductions::sum_of_rows(),
        products::wide_linear(),
        layers::conv_transpose2d_of_channels(),
        layers::group_norm(device),
    ]
}

/// Counts the cases whose results depend on the batch on plain Burn.
pub fn plain_batches() {
    let device = Device::default();
    let differences = differences(&cases(&device), &device);
    for difference in &differences {
        process::report("difference", difference);
    }
    process::report("differences", differences.len());
}

/// What plain Burn computes is the driver's and its measurements' choice, so that only where it was seen is it required.
#[test]
fn plain_burn_depends_on_the_batch() {
    if driver::is_emulator() {
        return skip("the CUDA emulator runs no operations of a warp, which plain Burn's kernels have");
    }
    let output = Program::new("plain_batches").run();
    let count = output.reported("differences");
    eprintln!("plain Burn: {count} of 4 operations depend on the batch");
    if count == "0" {
        assert!(!driver::name().contains("llvmpipe"), "nothing depends on the batch in {output}");
        skip("plain Burn's results do not depend on the batch, so that the hazard does not show");
    }
}
