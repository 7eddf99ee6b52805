//! The commands that run programs, and `diff`, as a user runs them. The program is [`program`], which computes nothing, and
//! writes what a training would record.

use burn_deterministic_recording::{
    Digest, Environment, Header, Level, Operation, Origin, Output, Phase, Place, Record, State, StateTensor, Tensor,
    Thread, Writer,
};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Steps of the program.
const STEPS: u64 = 4;

/// What [`program`] does.
const BEHAVIOUR: &str = "TEST_PROGRAM";

/// A file with a line for each run.
const RUNS: &str = "TEST_RUNS";

/// An operation with one result of two numbers.
fn operation(number: u64, step: u64, name: &str, inputs: Vec<u64>, value: u32) -> Operation {
    let input = |operation| Tensor {
        origin: Some(Origin { operation, output: 0 }),
        shape: vec![2],
        dtype: "f32".into(),
        parameter: None,
    };
    let digest = Some(Digest([number as u32, value, 0, 0]));
    Operation {
        thread: 0,
        number,
        place: Place { step: Some(step), ..Place::default() },
        name: name.into(),
        parameters: String::new(),
        inputs: inputs.into_iter().map(input).collect(),
        outputs: vec![Output { shape: vec![2], dtype: "f32".into(), digest, parameter: None }],
        kernels: vec!["burn_cubecl::kernel".into()],
        draws: Vec::new(),
        error: None,
    }
}

/// Not a test: a program that the tests run.
#[test]
#[ignore = "the program that other tests run"]
fn program() {
    let behaviour = env::var(BEHAVIOUR).expect("a behaviour");
    if let Ok(seed) = env::var("BURN_DETERMINISTIC_SEED") {
        let seed: f64 = seed.parse().expect("a number");
        println!("\ntest accuracy: {}\nloss {}", 0.9 + seed / 100.0, 1.0 / seed);
        return;
    }
    let runs = env::var(RUNS).expect("a file");
    let run = fs::read_to_string(&runs).unwrap_or_default().lines().count() as u32;
    fs::write(&runs, "run\n".repeat(run as usize + 1)).expect("a file");
    let level = env::var("BURN_DETERMINISTIC_RECORD_LEVEL").expect("a level");
    let is_weights = level == "weights";
    assert!(behaviour != "fails", "as it was told to");
    if behaviour == "records nothing" {
        return;
    }
    let wrong = match &*behaviour {
        "never" | "digest alone" | "no steps" => false,
        "from step 2 on" | "no steps, differs" => true,
        "in weights alone" => is_weights,
        "third run" => run >= 2,
        other => panic!("{other}"),
    };
    let value = if wrong { run } else { 0 };
    let level = match level.strip_prefix("operations:0-") {
        Some(last) => Level::OperationsOf { first: 0, last: last.parse().expect("a number") },
        None if is_weights => Level::Weights,
        None => Level::Operations,
    };
    let steps = !behaviour.starts_with("no steps");
    let mut writer = Writer::create(env::var("BURN_DETERMINISTIC_RECORD").expect("a file")).expect("a file");
    let header = Header { command: vec!["test".into()], level, deterministic: false, environment: Environment::new() };
    writer.write(&Record::Header(header)).expect("a header");
    writer.write(&Record::Thread(Thread { number: 0 })).expect("a thread");
    for step in 0..STEPS {
        let value = if step >= 2 { value } else { 0 };
        let is_recorded = match level {
            Level::OperationsOf { last, .. } => step <= last,
            Level::Operations => true,
            _ => false,
        };
        if is_recorded {
            let upload = operation(2 * step, step, "upload", vec![], 0);
            writer.write(&Record::Operation(upload)).expect("an operation");
            let sum = operation(2 * step + 1, step, "float_scatter_add", vec![2 * step], value);
            writer.write(&Record::Operation(sum)).expect("an operation");
        }
        if steps {
            let tensor = StateTensor {
                origin: Origin { operation: 2 * step + 1, output: 0 },
                shape: vec![2],
                dtype: "f32".into(),
                parameter: Some("weight".into()),
                digest: Some(Digest([2 * step as u32 + 1, value, 0, 0])),
            };
            let place = Place { step: Some(step), phase: Phase::Update, ..Place::default() };
            let state = State { thread: 0, operations: 2 * step + 2, place, tensors: vec![tensor] };
            writer.write(&Record::State(state)).expect("a state");
        }
    }
    let end = Record::End { operations: vec![2 * STEPS], environment: Environment::new() };
    writer.write(&end).expect("an end");
    writer.finish().expect("an end");
    println!("\ndigest: {:032x}", if wrong || behaviour == "digest alone" { run } else { 0 });
}

/// Runs the command on [`program`]; gives its status, stdout and stderr.
fn run(behaviour: &str, command: &[&str], options: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let this = env::current_exe().expect("this program");
    let mut run = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
    run.args(command).args(options).arg("--").arg(this).args(["--exact", "program", "--ignored", "--nocapture"]);
    run.env(BEHAVIOUR, behaviour).env(RUNS, folder.path().join("runs")).env_remove("RUST_BACKTRACE");
    let output = run.output().expect("the command of this package");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("it ends by itself"), text(output.stdout), text(output.stderr))
}

fn verify(behaviour: &str, options: &[&str]) -> (i32, String, String) {
    run(behaviour, &["verify"], options)
}

#[test]
fn runs_that_agree_are_the_same() {
    let (status, stdout, stderr) = verify("never", &[]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    assert!(stdout.contains("\nSAME: 3 runs agree in the weights after each of 4 steps\n"), "{stdout}");
    assert!(stderr.contains("run 3 of 3"), "{stderr}");
    assert!(!stderr.contains("at most"), "no operations are needed: {stderr}");
}

#[test]
fn runs_that_differ_end_with_the_first_operation() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = folder.path().join("recordings");
    let page = folder.path().join("pages/found.html");
    let [records_text, page_text] = [&records, &page].map(|path| path.to_str().expect("text"));
    let options = ["--runs", "2", "--record-dir", records_text, "--html", page_text];
    let (status, stdout, stderr) = verify("from step 2 on", &options);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("DIFFERENT: the weights differ after step 2, and agree before"), "{stdout}");
    assert!(stderr.contains("run 1 of at most 10, with operations:0-2"), "{stderr}");
    assert!(stdout.contains("DIFFERENT: `float_scatter_add` is not repeatable"), "{stdout}");
    assert!(stdout.contains("operation   5 of thread 0"), "{stdout}");
    assert!(fs::read_to_string(&page).expect("a page").contains("float_scatter_add"));

    let diff = |second: &Path| {
        let mut diff = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
        let output = diff.arg("diff").args([&records.join("run-1"), second]).output().expect("the command");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    };
    let (status, text) = diff(&records.join("run-1"));
    assert!(status == Some(0) && text.contains("SAME"), "{text}");
    let (status, text) = diff(&records.join("run-2"));
    assert!(status == Some(1) && text.contains("after       step 2"), "{text}");
    assert_eq!(diff(&page).0, Some(2), "not a recording");
}

#[test]
fn one_run_of_three_that_differs_is_found() {
    let (status, stdout, _) = verify("third run", &[]);
    assert_eq!(status, 1, "{stdout}");
    assert!(stdout.contains("`float_scatter_add` is not repeatable"), "{stdout}");
}

#[test]
fn an_operation_that_is_not_found_is_said_to_be() {
    let (status, stdout, stderr) = verify("in weights alone", &["--more-runs", "4"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("The operation was not found: 4 more runs"), "{stdout}");
    assert_eq!(stderr.matches("of at most 4").count(), 4, "{stderr}");
}

#[test]
fn digests_that_differ_where_no_step_does_are_shown() {
    let (status, stdout, _) = verify("digest alone", &["--more-runs", "2"]);
    assert_eq!(status, 1, "{stdout}");
    assert!(stdout.contains("the weights after each of 4 steps agree, and the digests printed do not"), "{stdout}");
    assert!(stdout.contains("All operations agree in 2 more runs"), "{stdout}");
}

#[test]
fn a_program_without_steps_is_compared_by_its_operations() {
    let (status, stdout, _) = verify("no steps", &["--more-runs", "3"]);
    assert_eq!(status, 0, "{stdout}");
    assert!(stdout.contains("SAME: 3 runs agree in all operations"), "{stdout}");
    let (status, stdout, _) = verify("no steps, differs", &[]);
    assert_eq!(status, 1, "{stdout}");
    assert!(stdout.contains("`float_scatter_add` is not repeatable"), "{stdout}");
}

#[test]
fn a_program_that_records_nothing_or_fails_is_an_error() {
    let (status, _, stderr) = verify("records nothing", &[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("burn_deterministic::enable_op_determinism("), "{stderr}");
    assert!(stderr.contains("burn_deterministic::observe()?;"), "{stderr}");
    let (status, _, stderr) = verify("fails", &[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("failed: exit status: 101"), "{stderr}");
}

#[test]
fn a_sweep_shows_how_metrics_vary() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let options = ["--seeds", "1..4", "--html", page.to_str().expect("text")];
    // The program's test harness knows no `--seed 1`: its name has the place of the seed.
    let (status, stdout, stderr) = run("sweep", &["sweep"], &options);
    assert_eq!(status, 2, "{stdout}");
    assert!(stderr.contains("--seed 1` failed"), "{stderr}");

    let this = env::current_exe().expect("this program");
    let mut sweep = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
    sweep.arg("sweep").args(options).arg("--").arg(this);
    sweep.args(["program", "--ignored", "--nocapture", "--skip", "{seed}"]).env(BEHAVIOUR, "sweep");
    let output = sweep.output().expect("the command");
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("test accuracy\n  mean 0.92500  deviation 0.012910  (4 seeds)\n"), "{stdout}");
    assert!(stdout.contains("min 0.91000 (seed 1)  max 0.94000 (seed 4)  range 0.030000"), "{stdout}");
    assert!(stdout.contains("loss\n  mean 0.52083"), "{stdout}");
    assert!(fs::read_to_string(&page).expect("a page").contains("seed 4: 0.94000"));
}
