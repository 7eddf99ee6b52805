//! Every family with plans has a function that takes one, and `crate::plans` tests each.

use crate::harness::client;
use crate::plans::refusals;
use std::collections::BTreeSet;
use std::path::Path;

/// The functions of the kernels' sources that take a plan.
fn planned_functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the sources can be read") {
        let path = entry.expect("a folder's entry").path();
        if path.is_dir() {
            planned_functions(&path, found);
        } else {
            let source = std::fs::read_to_string(&path).expect("a source is text");
            for function in source.split("\npub fn ").skip(1) {
                let (signature, _) = function.split_once('{').expect("a function has a body");
                if signature.contains(": Option<Plan>") {
                    found.extend(signature.split(['(', '<']).next().map(str::to_owned));
                }
            }
        }
    }
}

/// Families with plans that no function takes.
const WITHOUT_FUNCTIONS: [&str; 1] = [
    // It sorts for other families: their plans have its plans, and `sort` and `update` take them.
    "radix_sort",
];

#[test]
fn every_family_with_plans_has_a_function_that_takes_one() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = std::fs::read_dir(sources).expect("the sources can be read");
    let folders =
        entries.map(|entry| entry.expect("a folder's entry").path()).filter(|path| path.join("plan.rs").exists());
    let mut without = vec![];
    let mut with = 0;
    for folder in folders {
        let mut functions = BTreeSet::new();
        planned_functions(&folder, &mut functions);
        match functions.is_empty() {
            true => without.push(folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()),
            false => with += 1,
        }
    }
    assert_eq!(without, WITHOUT_FUNCTIONS);
    assert!(with >= 7, "only {with} families with plans were found");
}

#[test]
fn every_function_that_takes_a_plan_is_given_one_that_does_not_apply() {
    let mut functions = BTreeSet::new();
    planned_functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut functions);
    let tested: BTreeSet<_> = refusals(&client(), 2).into_iter().map(|(function, ..)| function.to_owned()).collect();
    assert_eq!(tested, functions);
}
