//! What a program says of where it runs.

use crate::process::{Folder, Program, report};
use burn::prelude::*;
use burn_deterministic::{
    Determinism, Environment, device_environment, devices, enable_op_determinism, environment, set_random_seed,
};

/// Computes something, and tells the environment before and after.
pub fn tell() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let before = environment();
    let drawn = Tensor::<1>::random([3], burn::tensor::Distribution::Default, &Device::default());
    drawn.try_into_data().expect("three numbers");
    assert!(before.differences(&environment()).is_empty(), "{before}{}", environment());
    println!("\nbegin\n{before}\nend");
    report("environment", before.digest());
}

/// The environment of a program's process.
fn told(program: Program) -> Environment {
    let output = program.run();
    let text = output.stdout().split_once("begin\n").expect("the environment").1;
    let environment = Environment::parse(text).expect("lines of an environment");
    assert_eq!(environment.digest(), output.reported("environment"));
    environment
}

fn differences(first: &Environment, second: &Environment) -> Vec<String> {
    first.differences(second).iter().map(ToString::to_string).collect()
}

#[test]
fn two_runs_of_a_program_have_equal_environments() {
    let first = told(Program::new("tell_environment"));
    assert_eq!(differences(&first, &told(Program::new("tell_environment"))), Vec::<String>::new());
    assert_eq!(first.get("seed"), Some("812"));
    assert_eq!(first.get("determinism"), Some("run to run, violations are errors"));
    for name in ["arithmetic", "burn", "compiler", "cpu", "cubecl", "device", "driver", "os", "runtime", "target"] {
        assert!(
            first.get(name).is_some_and(|value| !value.is_empty() && !value.starts_with("unknown")),
            "{name}: {first}"
        );
    }
}

#[test]
fn a_variable_and_a_configuration_file_are_told_in_words() {
    let folder = Folder::new();
    let here = || Program::new("tell_environment").folder(folder.path());
    let first = told(here());
    let other = told(here().env("NVIDIA_TF32_OVERRIDE", "0").env("BURN_DETERMINISTIC_NOTE", "no matter"));
    assert_eq!(differences(&first, &other), ["variable NVIDIA_TF32_OVERRIDE: nothing against 0"]);
    std::fs::write(folder.path().join("cubecl.toml"), "# nothing\n").expect("a folder to write to");
    let hash = &blake3::hash(b"# nothing\n").to_hex()[..32];
    assert_eq!(differences(&first, &told(here())), [format!("cubecl.toml: nothing against BLAKE3 {hash}")]);
}

#[test]
fn a_seed_is_that_of_the_thread() {
    let seed_of = |prepare: fn()| {
        let thread = std::thread::spawn(move || {
            prepare();
            environment().get("seed").map(str::to_owned)
        });
        thread.join().expect("no panic")
    };
    assert_eq!(seed_of(|| ()), None);
    assert_eq!(seed_of(|| set_random_seed(7)).as_deref(), Some("7"));
    let restored = seed_of(|| {
        let state = std::thread::spawn(|| {
            set_random_seed(8);
            burn_deterministic::random_state().expect("no device fails")
        });
        set_random_seed(7);
        let state = state.join().expect("no panic");
        burn_deterministic::restore_random_state(&state).expect("no stream is entered");
    });
    assert!(restored.as_deref().is_some_and(|seed| seed.starts_with("key ")), "{restored:?}");
}

#[test]
fn devices_are_listed_and_described() {
    let listed = devices();
    assert!(!listed.is_empty(), "these tests run on one");
    let described = device_environment(&listed[0]);
    assert!(described.get("arithmetic").is_some_and(|arithmetic| arithmetic.starts_with("fma rounds")), "{described}");
    let uncovered = device_environment(&Device::flex());
    assert!(uncovered.get("device").is_some_and(|device| device.ends_with("which is not covered")), "{uncovered}");
}
