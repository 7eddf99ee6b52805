//! What the device's multiply-add means.

use crate::harness::client;
use burn_deterministic_kernels::arithmetic::multiply_add_of;

#[test]
fn multiply_add_has_one_meaning() {
    let client = client();
    let first = multiply_add_of(&client);
    assert_eq!(first, multiply_add_of(&client));
}
