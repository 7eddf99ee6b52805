//! Reductions against their references.

use crate::harness::*;
use burn_deterministic_kernels::reduce;

#[test]
fn sum_level_matches_reference() {
    let client = client();
    let values = random_values(1, 1000);
    let out = reduce::sum_level(&client, upload(&client, &values, &[1000], F32), 1, 1000, 1);
    assert_bits(&download(&client, out), &reduce::reference::sum_level(&values));
}
