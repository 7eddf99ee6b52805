//! `Device::seed`, Burn's own way of seeding.

use crate::process::{Program, report};
use burn::nn::DropoutConfig;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Determinism, enable_op_determinism, random_state, restore_random_state, set_random_seed};

fn enabled() -> Device {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    Device::default()
}

fn draw(device: &Device) -> Tensor<1> {
    Tensor::random([6], Distribution::Normal(0.0, 1.0), device)
}

fn bits(tensor: Tensor<1>) -> Vec<u8> {
    tensor.into_data().as_bytes().to_vec()
}

pub fn seeded() {
    let device = enabled();
    device.seed(7);
    let first = (draw(&device), draw(&device));
    let dropped = DropoutConfig::new(0.5).init().forward(Tensor::<1>::ones([40], &device.clone().autodiff()));
    // Nothing was read in between.
    device.seed(7);
    let again = (draw(&device), draw(&device));
    device.seed(8);
    let other = draw(&device);
    let [first, second] = [first.0, first.1].map(bits);
    assert!(first != second, "two operations draw alike");
    assert_eq!([first.clone(), second], [again.0, again.1].map(bits));
    assert!(first != bits(other), "two seeds draw alike");
    device.seed(7);
    assert_eq!(bits(draw(&device)), first);
    // With and without a read between.
    let after = bits(draw(&device));
    device.seed(7);
    drop(bits(draw(&device)));
    assert_eq!(bits(draw(&device)), after);
    report("first", format!("{first:?}"));
    report("dropped", format!("{:?}", bits(dropped)));
}

pub fn seeded_and_resumed() {
    let device = enabled();
    device.seed(7);
    let _ = draw(&device);
    let state = random_state().expect("the device runs");
    let next = bits(draw(&device));
    restore_random_state(&state).expect("nothing is entered");
    assert_eq!(bits(draw(&device)), next);
    // A restored seed gives way to a new one, as the one that was saved does.
    device.seed(8);
    let new = bits(draw(&device));
    device.seed(9);
    restore_random_state(&state).expect("nothing is entered");
    assert_eq!(bits(draw(&device)), next, "a seed from before the restore does not count");
    device.seed(8);
    assert_eq!(bits(draw(&device)), new);
}

/// A seed in each step, as of a program that numbers its draws by steps.
pub fn seeded_again_and_again() {
    let device = enabled();
    let seeded = |seed: u64| {
        device.seed(seed);
        draw(&device)
    };
    let first = bits(seeded(0));
    let drawn: Vec<_> = (0..5000).map(seeded).collect();
    let last = drawn.into_iter().next_back().expect("5000 draws");
    assert_ne!(bits(last), first);
    assert_eq!(bits(seeded(0)), first);
}

#[test]
fn it_may_be_set_in_each_step() {
    Program::new("device_seeded_again_and_again").run();
}

pub fn seeds_of_both_kinds() {
    let device = enabled();
    set_random_seed(3);
    let own = bits(draw(&device));
    device.seed(7);
    set_random_seed(3);
    assert_eq!(bits(draw(&device)), own, "a thread with a seed of its own keeps it");
}

pub fn seeded_too_early() {
    Device::default().seed(7);
    let device = enabled();
    let text = draw(&device).try_into_data().expect_err("that seed is not known").to_string();
    for part in ["no seed is set", "`burn_deterministic::set_random_seed(seed)`", "after `enable_op_determinism`"] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    device.seed(7);
    draw(&device).try_into_data().expect("this one is");
}

pub fn a_second_thread() {
    let device = enabled();
    device.seed(7);
    let ours = bits(draw(&device));
    let elsewhere = {
        let device = device.clone();
        std::thread::spawn(move || draw(&device).try_into_data().map(|_| ()).map_err(|error| error.to_string()))
    };
    let text = elsewhere.join().expect("no panic").expect_err("which thread draws first would decide");
    for part in ["`Device::seed`", "`burn_deterministic::set_random_seed(seed)`", "another thread"] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    // A thread may draw from the seed that another one has set.
    device.seed(7);
    let elsewhere = {
        let device = device.clone();
        std::thread::spawn(move || bits(draw(&device)))
    };
    assert_eq!(elsewhere.join().expect("it draws"), ours);
    draw(&device).try_into_data().expect_err("now this is the second thread");
}

#[test]
fn it_is_honoured() {
    let [first, second] = [(); 2].map(|()| Program::new("device_seeded").run());
    for name in ["first", "dropped"] {
        assert_eq!(first.reported(name), second.reported(name));
    }
}

#[test]
fn it_can_be_resumed() {
    Program::new("device_seeded_and_resumed").run();
}

#[test]
fn a_seed_of_the_thread_comes_first() {
    Program::new("seeds_of_both_kinds").run();
}

#[test]
fn before_determinism_it_does_not_count() {
    Program::new("device_seeded_too_early").run();
}

#[test]
fn two_threads_cannot_share_it() {
    Program::new("device_seed_of_two_threads").run();
}
