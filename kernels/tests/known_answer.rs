//! The known-answer test on the present device.

use crate::harness::client;
use burn_deterministic_kernels::known_answer::{ask, judge};
use std::time::{Duration, Instant};

#[test]
fn the_device_passes() {
    let client = client();
    let answers = ask(&client).expect("the device works");
    let arithmetic = judge(&answers).expect("the device computes as the kernels rely on");
    eprintln!("{arithmetic:?}");
    assert_eq!(ask(&client).expect("the device works"), answers);
}

/// Once its kernels are compiled it takes 1 ms on lavapipe; the limit leaves room for a busy machine.
#[test]
fn it_costs_little() {
    let client = client();
    ask(&client).expect("the device works");
    let least = (0..10).map(|_| {
        let started = Instant::now();
        ask(&client).expect("the device works");
        started.elapsed()
    });
    let least = least.min().expect("ten runs");
    assert!(least < Duration::from_millis(20), "{least:?}");
}
