//! A program may end with work queued: its process waits for what the driver compiles.

use crate::bits::floats;
use crate::process::{Folder, Program, report};
use burn::prelude::*;
use burn::tensor::activation::softmax;
use burn_deterministic::{Determinism, enable_op_determinism};
use core::ffi::c_int;
use std::thread;
use std::time::Duration;

const REPEATS: usize = if cfg!(feature = "heavy") { 20 } else { 3 };

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// What a program may do at its end. It is registered before the driver is loaded, so it runs after the driver's
/// destructors, and a compilation that has not ended has a second to meet them.
extern "C" fn linger() {
    thread::sleep(Duration::from_secs(1));
}

/// Hands kernels of several families to the device, none of which the driver has compiled.
fn begin(device: &Device) {
    let x = Tensor::<2>::from_data(floats([64, 48]), device);
    let products = x.clone().matmul(x.clone().transpose());
    let _ = softmax(products.clone(), 1).argmax(1);
    let _ = products.clone().sum_dim(0).sin() + products.cumsum(0).cos();
    let _ = x.topk(3, 1);
    device.flush().expect("handing over what is queued");
}

fn enabled() -> Device {
    assert_eq!(atexit(linger), 0);
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    Device::default()
}

/// Returns from `main` at once.
pub fn ends_at_once() {
    begin(&enabled());
    report("state", "returning");
}

/// Returns while another thread goes on.
pub fn ends_amid_a_thread() {
    let device = enabled();
    begin(&device);
    thread::spawn(move || {
        for length in 1.. {
            let _ = Tensor::<1>::ones([length], &device).sum();
            begin(&device);
        }
    });
    report("state", "returning");
}

/// Ends without returning.
pub fn exits_at_once() {
    begin(&enabled());
    report("state", "returning");
    std::process::exit(3);
}

/// The program, where the driver finds nothing compiled before.
fn program(name: &str) -> (Program, Folder) {
    let caches = Folder::new();
    (Program::new(name).env("MESA_SHADER_CACHE_DIR", caches.path()), caches)
}

#[test]
fn a_program_ends_with_work_queued() {
    for _ in 0..REPEATS {
        let (program, _caches) = program("ends_at_once");
        assert_eq!(program.run().reported("state"), "returning");
    }
}

#[test]
fn a_program_ends_while_a_thread_goes_on() {
    for _ in 0..REPEATS {
        let (program, _caches) = program("ends_amid_a_thread");
        assert_eq!(program.run().reported("state"), "returning");
    }
}

#[test]
fn a_program_exits_with_work_queued() {
    for _ in 0..REPEATS {
        let (program, _caches) = program("exits_at_once");
        assert_eq!(program.fail().reported("state"), "returning");
    }
}
