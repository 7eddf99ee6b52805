//! Reductions against their references.

use crate::harness::*;
use burn_deterministic_kernels::reduce::plan::Plan;
use burn_deterministic_kernels::reduce::{self, Operation, reference};

#[test]
fn sum_of_everything_matches_reference() {
    let client = client();
    for n in [1, 2, 63, 64, 65, 100, 127, 128, 1000, 4095, 4096, 4097, 4160, 4161, 10_007, 300_000] {
        let values = random_values(n as u64, n);
        let want = [reference::sum(&values)];
        for plan in Plan::ALL {
            let input = upload(&client, &values, &[n], F32);
            let got = reduce::fold(&client, Operation::Sum, input, &[0], Some(plan)).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}
