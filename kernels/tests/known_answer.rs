//! The known-answer test on the present device, and on one whose arithmetic has a planted fault.

use crate::harness::client;
use crate::skip::skip;
use burn_deterministic_kernels::known_answer::{
    Arithmetic, Rounding, WrongAnswer, ask, ask_functions, ask_kept, judge, judge_functions, quotients, require_exact,
};
use burn_deterministic_kernels::quotient::Quotients;
use cubecl::prelude::*;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn the_device_passes() {
    let client = client();
    let answers = ask(&client).expect("the device works");
    let arithmetic = judge(&answers).expect("the device computes as the kernels rely on");
    eprintln!("{arithmetic:?}");
    assert_eq!(ask(&client).expect("the device works"), answers);
    let corrected = [arithmetic.division, arithmetic.square_root].contains(&Rounding::Corrected);
    assert_eq!(quotients(&client) == Quotients::Corrected, corrected);
}

#[test]
fn sums_and_functions_pass() {
    let client = client();
    let arithmetic = judge(&ask(&client).expect("the device works")).expect("it computes as the kernels rely on");
    let answers = ask_functions(&client, arithmetic.takes_subnormals_for_zero()).expect("the device works");
    assert_eq!(judge_functions(&answers), Ok(()));
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

/// The whole test, as for equal bits on every device.
fn judge_all(client: &Client) -> Result<Arithmetic, WrongAnswer> {
    let answers = ask(client).expect("the device works");
    let arithmetic = judge(&answers)?;
    require_exact(&ask_kept(client, &answers).expect("the device works"))?;
    let kept = arithmetic.takes_subnormals_for_zero();
    judge_functions(&ask_functions(client, kept).expect("the device works"))?;
    Ok(arithmetic)
}

/// The program of the processes that [`with_planted`] starts.
#[test]
#[ignore = "the program that other tests run"]
fn judged() {
    match judge_all(&client()) {
        Ok(Arithmetic { division, square_root, subnormals, .. }) => {
            println!("accepted: {division:?}, {square_root:?}, {subnormals:?}");
        }
        Err(wrong) => println!("refused: {wrong}"),
    }
}

/// What tests of this program say on the emulator with planted arithmetic, in a process of their own; nothing on another device.
pub fn with_planted(arithmetic: &str, tests: &[&str]) -> Option<String> {
    if !client().properties().identity.name.starts_with("CUDA emulator") {
        skip("only the CUDA emulator has planted arithmetic");
        return None;
    }
    let mut command = Command::new(env::current_exe().expect("a test has a path"));
    command.args(["--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).args(tests);
    let output = command.env("CUDA_EMULATOR_ARITHMETIC", arithmetic).output().expect("the test runs itself");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

/// Requires that a device with planted arithmetic is refused, by a line that has these parts.
#[track_caller]
fn assert_refused(arithmetic: &str, parts: &[&str]) {
    let Some(said) = with_planted(arithmetic, &["known_answer::judged"]) else { return };
    let line = said.lines().find(|line| line.contains("refused: ") || line.contains("accepted: "));
    let line = line.unwrap_or_else(|| panic!("no verdict in {said}"));
    println!("{line}");
    for part in ["refused: "].iter().chain(parts) {
        assert!(line.contains(part), "no `{part}` in: {line}");
    }
}

#[test]
fn contracted_products_are_refused() {
    let operands = "a = 0x3f800800, b = 0x3f800800, c = 0xbf800000";
    assert_refused("contracted", &["multiply_rounded(a, b) + c", operands, "is 0x3a000400, want 0x3a000000"]);
}

/// Subnormal numbers taken for zero are kept by kernels told to: they have the bits of their references.
#[test]
fn flushed_subnormals_are_kept() {
    let tests = [
        "known_answer::judged",
        "subnormals::operations_have_the_bits_of_the_host",
        "subnormals::a_device_that_takes_them_for_zero_has_other_bits",
        "elementwise::adam_has_the_bits_of_its_instructions",
        "elementwise::no_algebra_across_instructions",
        "reduce::plans::sums_match_the_reference_under_every_plan",
    ];
    let Some(said) = with_planted("flushed", &tests) else { return };
    assert!(said.contains("accepted: NearestEven, NearestEven, Flushed"), "{said}");
    assert!(said.contains("6 passed"), "{said}");
}

#[test]
fn regrouped_sums_are_refused() {
    assert_refused("reassociated", &[" of ", " is 0x", ", want 0x"]);
}

#[test]
fn fast_arithmetic_is_refused() {
    assert_refused("fast", &[" of ", " is 0x", ", want 0x"]);
}

/// Quotients a last place off are corrected: what divides has the bits of its reference.
#[test]
fn approximate_quotients_are_corrected() {
    let tests = [
        "known_answer::judged",
        "quotient::corrected_quotients_and_roots_have_the_bits_of_the_host",
        "elementwise::adam_has_the_bits_of_its_instructions",
        "elementwise::no_algebra_across_instructions",
    ];
    let Some(said) = with_planted("approximate", &tests) else { return };
    assert!(said.contains("accepted: Corrected, Corrected"), "{said}");
    assert!(said.contains("4 passed"), "{said}");
}
