//! Operations checked against their plain-Rust references, on the device that the tests run on: no result differs, and
//! what has no reference is listed here, one by one.

pub mod programs;

use crate::closed_world::guarantee::is_given;
use crate::process::{Folder, Output, Program};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

/// Of the differentiable operations and their gradients, those without a checked result, and why.
const UNCHECKED: &[&str] = &[];

/// Random programs, in up to eight processes where there are many.
const RANDOM_PROGRAMS: u32 = if cfg!(feature = "heavy") { 10_000 } else { 40 };

/// Those of the random programs.
const UNCHECKED_OF_RANDOM_PROGRAMS: &[&str] = &[];

/// A program that is checked.
fn checked(program: &str) -> Program {
    Program::new(program).env("BURN_DETERMINISTIC_GUARANTEE", "gpu-to-gpu").env("BURN_DETERMINISTIC_REFERENCE", "1")
}

/// What was found of a process's operations when it ended, in the file that `BURN_DETERMINISTIC_REFERENCE_REPORT` names: all
/// have the bits of their references.
pub fn report_without_difference(report: &Path) -> String {
    let report = fs::read_to_string(report).expect("the process has ended");
    assert!(report.ends_with("\nend\n"), "{report}");
    assert!(!report.contains("unchecked\t") && !report.contains("different\t"), "{report}");
    report
}

/// The operations that a program has reported as unchecked.
fn unchecked(output: &Output) -> BTreeSet<&str> {
    output.reported("unchecked").split("; ").filter(|operation| !operation.is_empty()).collect()
}

fn number(output: &Output, name: &str) -> u64 {
    output.reported(name).parse().expect("a number")
}

#[test]
fn differentiable_operations_have_the_bits_of_their_references() {
    if !is_given() {
        return;
    }
    let output = checked("checked_operations").run();
    output.assert_quiet();
    assert_eq!(unchecked(&output), UNCHECKED.iter().copied().collect(), "{output}");
    assert!(number(&output, "checked") > 5_000 && number(&output, "kinds") > 130, "{output}");
}

#[test]
fn random_programs_have_the_bits_of_their_references() {
    if !is_given() {
        return;
    }
    let processes =
        if cfg!(feature = "heavy") { thread::available_parallelism().map_or(2, usize::from).min(8) as u32 } else { 1 };
    thread::scope(|scope| {
        for process in 0..processes {
            let [first, end] = [process, process + 1].map(|process| RANDOM_PROGRAMS * process / processes);
            scope.spawn(move || {
                let program = checked("checked_random_programs").arguments(&[&first.to_string(), &end.to_string()]);
                let output = program.run();
                output.assert_quiet();
                assert_eq!(unchecked(&output), UNCHECKED_OF_RANDOM_PROGRAMS.iter().copied().collect(), "{output}");
                assert!(number(&output, "checked") > 200 * u64::from(end - first), "{output}");
                assert!(number(&output, "kinds") > 40, "{output}");
            });
        }
    });
}

#[test]
fn halves_and_integers_have_the_bits_of_their_references() {
    if !is_given() {
        return;
    }
    let output = checked("checked_arithmetic").run();
    output.assert_quiet();
    assert_eq!(unchecked(&output), BTreeSet::new(), "{output}");
    assert!(number(&output, "checked") > 100 && number(&output, "kinds") > 65, "{output}");
}

#[test]
fn a_training_has_the_bits_of_its_references() {
    if !is_given() {
        return;
    }
    let folder = Folder::new();
    let report = folder.path().join("report");
    let out = folder.path().to_str().expect("the path of a temporary folder");
    let program = checked("digits_convnet").arguments(&["--steps", "20", "--out", out]);
    program.env("BURN_DETERMINISTIC_REFERENCE_REPORT", &report).run().assert_quiet();
    let report = report_without_difference(&report);
    let count = |operation: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(&format!("checked\t{operation}\t")));
        line.unwrap_or_else(|| panic!("{operation} was not checked: {report}")).parse::<u64>().expect("a count")
    };
    // Two convolutions a step, of which the first has no input gradient.
    assert_eq!((count("conv2d_weight_backward"), count("conv2d_x_backward")), (40, 20), "{report}");
}

#[test]
fn every_third_operation_alone() {
    if !is_given() {
        return;
    }
    let program = |every: &str| {
        let output = Program::new("checked_training")
            .env("BURN_DETERMINISTIC_GUARANTEE", "gpu-to-gpu")
            .env("BURN_DETERMINISTIC_REFERENCE", every)
            .run();
        (number(&output, "checked"), output.digest().to_owned())
    };
    let ((none, digest), (all, of_all), (some, of_some)) = (program("0"), program("1"), program("3"));
    assert_eq!((&digest, &digest), (&of_all, &of_some), "checks change nothing");
    // Of three that follow each other one is chosen, and with it those that share its kernel.
    assert!(none == 0 && 3 * some + 3 > all && some < all, "{none}, {some}, {all}");
}

#[test]
fn another_guarantee_is_an_error() {
    Program::new("checked_run_to_run").run();
    Program::new("checked_by_a_wrong_variable").env("BURN_DETERMINISTIC_REFERENCE", "often").run();
}
