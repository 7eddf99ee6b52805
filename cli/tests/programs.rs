//! The commands that run programs, and `diff`, as a user runs them. The program is [`program`], which computes nothing,
//! and writes what a training would record.

use burn_deterministic_recording::{
    Digest, Environment, Header, Level, Operation, Origin, Output, Phase, Place, Record, State, StateTensor, Tensor,
    Thread, Writer,
};
use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Steps of the program.
const STEPS: u64 = 4;

/// What [`program`] does.
const BEHAVIOUR: &str = "TEST_PROGRAM";

/// A file for the number of a process that [`program`] leaves.
const PROCESS: &str = "TEST_PROCESS";

/// A file with a line for each run.
const RUNS: &str = "TEST_RUNS";

/// An operation with one result of two numbers.
fn operation(number: u64, place: &Place, name: &str, inputs: Vec<u64>, value: u32) -> Operation {
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
        place: place.clone(),
        name: name.into(),
        is_custom: false,
        parameters: String::new(),
        inputs: inputs.into_iter().map(input).collect(),
        outputs: vec![Output { shape: vec![2], dtype: "f32".into(), digest, parameter: None }],
        operands_after: Vec::new(),
        kernels: vec!["burn_cubecl::kernel".into()],
        plans: Vec::new(),
        draws: Vec::new(),
        error: None,
    }
}

/// A parameter in a state.
fn tensor(operation: u64, value: u32) -> StateTensor {
    StateTensor {
        origin: Origin { operation, output: 0 },
        shape: vec![2],
        dtype: "f32".into(),
        parameter: Some("weight".into()),
        digest: Some(Digest([operation as u32, value, 0, 0])),
    }
}

fn finish(mut writer: Writer, operations: u64) {
    let end = Record::End { operations: vec![operations], environment: Environment::new() };
    writer.write(&end).and_then(|()| writer.finish()).expect("an end");
}

/// Not a test: a program that the tests run.
#[test]
#[ignore = "the program that other tests run"]
fn program() {
    let behaviour = env::var(BEHAVIOUR).expect("a behaviour");
    if let Ok(seed) = env::var("BURN_DETERMINISTIC_SEED") {
        let seed: f64 = seed.parse().expect("a number");
        assert!(behaviour != "sweep, fails with 2" || seed != 2.0, "as it was told to");
        println!("\ntest accuracy: {}\nloss {}", 0.9 + seed / 100.0, 1.0 / seed);
        return;
    }
    if let Ok(report) = env::var("BURN_DETERMINISTIC_REFERENCE_REPORT") {
        let checks = ["GUARANTEE", "REFERENCE"].map(|name| env::var(format!("BURN_DETERMINISTIC_{name}")));
        let every = if behaviour == "every tenth" { "10" } else { "1" };
        assert_eq!(checks, ["gpu-to-gpu", every].map(|value| Ok(value.to_owned())));
        let text = match &*behaviour {
            "differs from a reference" => "checked\tfloat_exp\t2\ndifferent\t`float_exp` (device A) differs\nend\n",
            "reports nothing" => return,
            _ => "checked\tfloat_exp\t2\nchecked\tconv2d\t1\nunchecked\tinterpolate\trefused\t4\nend\n",
        };
        fs::write(report, text).expect("a file");
        assert!(!behaviour.contains("differs"), "as a read does of what differs");
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
    if behaviour == "leaves a process" {
        // It holds the program's stdout.
        let mut process = Command::new("sh");
        process
            .args(["-c", "echo begin; sleep 100 2> /dev/null & echo $! >> \"$0\"; echo end"])
            .arg(env::var(PROCESS).expect("a file"));
        assert!(process.status().expect("a shell").success());
    }
    if behaviour == "prints for ever" {
        fs::write(&runs, std::process::id().to_string()).expect("a file");
        for _ in 0..6000 {
            // The test harness panics where stdout is closed: this is about a program that goes on.
            let _ = writeln!(io::stdout(), "a line");
            thread::sleep(Duration::from_millis(10));
        }
        return;
    }
    let mut stdin = Vec::new();
    io::stdin().read_to_end(&mut stdin).expect("a stdin");
    let wrong = match &*behaviour {
        "reads stdin" => !stdin.is_empty(),
        "never"
        | "goes on"
        | "digest alone"
        | "leaves a process"
        | "counts from another number"
        | "no steps"
        | "second run is cut"
        | "second run is empty"
        | "longer"
        | "lost" => false,
        "from step 2 on" | "epochs, from step 2 on" | "no steps, differs" | "before the first step" => true,
        "in weights alone" | "another operation, later" => is_weights,
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
    if behaviour == "second run is empty" && run == 1 {
        return finish(writer, 0);
    }
    let first_step = if behaviour == "before the first step" { 0 } else { 2 };
    // From a checkpoint that the first run has left.
    let start = if behaviour == "goes on" && run > 0 { 2 } else { 0 };
    // What the training begins with.
    if steps && (is_weights || behaviour == "counts from another number") {
        let value = if first_step == 0 { value } else { start as u32 };
        let place = Place::default();
        let state = State { thread: 0, operations: 0, place, tensors: vec![tensor(0, value)] };
        writer.write(&Record::State(state)).expect("a state");
    }
    for step in start..STEPS {
        let value = if step >= first_step { value } else { 0 };
        let mut place = Place { step: Some(step), ..Place::default() };
        if behaviour.starts_with("epochs") {
            (place.epoch, place.step) = (Some(step / 2), Some(step % 2));
        } else if behaviour == "counts from another number" {
            place.step = Some(step + 7 * u64::from(run));
        }
        let is_recorded = match level {
            Level::OperationsOf { last, .. } => place.step <= Some(last),
            Level::Operations => true,
            _ => false,
        };
        let is_later = behaviour == "another operation, later" && !is_weights && step == STEPS - 1 && run % 2 == 1;
        if is_recorded {
            let mut operations = vec![
                operation(2 * step, &place, "upload", vec![], 0),
                operation(2 * step + 1, &place, "float_scatter_add", vec![2 * step], value),
            ];
            operations.extend(is_later.then(|| operation(2 * step + 2, &place, "float_exp", vec![2 * step], 0)));
            for operation in operations {
                writer.write(&Record::Operation(operation)).expect("an operation");
            }
        }
        if steps {
            let place = Place { phase: Phase::Update, ..place };
            let more =
                u64::from(behaviour == "longer" && is_weights && step >= 1) * u64::from(run) + u64::from(is_later);
            let mut tensor = tensor(2 * step + 1, value);
            tensor.digest = tensor.digest.filter(|_| behaviour != "lost" || step != 1);
            let state = State { thread: 0, operations: 2 * step + 2 + more, place, tensors: vec![tensor] };
            writer.write(&Record::State(state)).expect("a state");
        }
    }
    if behaviour != "second run is cut" || run != 1 {
        finish(writer, 2 * STEPS);
    }
    println!("\ndigest: {:032x}", if wrong || behaviour == "digest alone" { run } else { 0 });
}

/// The command on [`program`].
fn command_of(behaviour: &str, command: &[&str], options: &[&str], runs: &Path) -> Command {
    let this = env::current_exe().expect("this program");
    let mut run = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
    run.args(command).args(options).arg("--").arg(this).args(["--exact", "program", "--ignored", "--nocapture"]);
    run.env(BEHAVIOUR, behaviour).env(RUNS, runs).env_remove("RUST_BACKTRACE");
    run
}

/// Runs the command on [`program`]; gives its status, stdout and stderr.
fn run(behaviour: &str, command: &[&str], options: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = command_of(behaviour, command, options, &folder.path().join("runs"));
    let output = run.output().expect("the command of this package");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("it ends by itself"), text(output.stdout), text(output.stderr))
}

fn verify(behaviour: &str, options: &[&str]) -> (i32, String, String) {
    run(behaviour, &["verify"], options)
}

#[test]
fn a_run_that_goes_on_where_another_was_is_no_second_run() {
    let (status, stdout, stderr) = verify("goes on", &[]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(stderr.contains("run 2 of 3 began at step 2, from what an earlier run has left"), "{stderr}");
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
    let (status, stdout, stderr) = verify("no steps", &[]);
    assert_eq!(status, 0, "{stdout}");
    assert!(stdout.contains("\nSAME: 3 runs agree in all 8 operations; no step is recorded\n"), "{stdout}");
    assert_eq!(stderr.matches("of at most 3").count(), 3, "as many runs as with steps: {stderr}");
    let (status, stdout, _) = verify("no steps, differs", &[]);
    assert_eq!(status, 1, "{stdout}");
    assert!(stdout.contains("`float_scatter_add` is not repeatable"), "{stdout}");
}

#[test]
fn a_program_that_records_nothing_or_fails_is_an_error() {
    let (status, _, stderr) = verify("records nothing", &[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("burn_deterministic::enable_op_determinism("), "{stderr}");
    for cause in ["burn_deterministic::observe()?;", "build it again", "in another process"] {
        assert!(stderr.contains(cause), "{stderr}");
    }
    let (status, _, stderr) = verify("fails", &[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("failed: exit status: 101"), "{stderr}");
}

#[test]
fn a_sweep_shows_how_metrics_vary() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("pages/page.html");
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

    let output = sweep.env(BEHAVIOUR, "sweep, fails with 2").output().expect("the command");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!(output.status.code(), Some(2), "{stdout}");
    assert!(stdout.contains("test accuracy\n  not printed with 1 of 4 seeds\n  mean 0.92667"), "{stdout}");
    assert!(stderr.contains("the program failed with seed 2, which the statistics leave out"), "{stderr}");
}

#[test]
fn a_run_whose_recording_is_not_complete_is_an_error() {
    let (status, stdout, stderr) = verify("second run is cut", &[]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(stderr.contains("error: run 2 of 3: ") && stderr.contains("is not complete"), "{stderr}");
    assert!(stderr.contains("the disk is full, or the program was killed, or it ended by `_exit`"), "{stderr}");
    let (status, stdout, stderr) = verify("second run is empty", &[]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(stderr.contains("error: run 2 of 3: ") && stderr.contains("has no step and no operation"), "{stderr}");
}

#[test]
fn digests_that_were_lost_are_said() {
    let (status, stdout, _) = verify("lost", &[]);
    assert_eq!(status, 0, "{stdout}");
    assert!(stdout.contains("after each of 4 steps, but for digests that were lost (1)\n"), "{stdout}");
}

#[test]
fn a_difference_before_the_first_step_comes_first() {
    let (status, stdout, stderr) = verify("before the first step", &[]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("DIFFERENT: the weights differ before the first step\n"), "{stdout}");
    assert!(stderr.contains("with operations:0-0"), "{stderr}");
    assert!(stdout.contains("`float_scatter_add` is not repeatable"), "{stdout}");
}

#[test]
fn runs_that_differ_in_their_operations_alone_are_said_to() {
    let (status, stdout, stderr) = verify("longer", &["--runs", "2", "--more-runs", "2"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    let expected = "DIFFERENT: one run has 4 operations up to step 1 and the other 5; the weights agree\n";
    assert!(stdout.contains(expected), "{stdout}");
    assert!(stdout.contains("tensors     0 of 1 differ\n"), "{stdout}");
    assert!(!stdout.contains("burn-deterministic verify"), "it is at work: {stdout}");
}

#[test]
fn steps_that_are_numbered_anew_are_named_with_their_epoch() {
    let (status, stdout, stderr) = verify("epochs, from step 2 on", &["--runs", "2"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("the weights differ after step 0 (epoch 1), and agree before"), "{stdout}");
    assert!(stderr.contains("with operations:0-1\n"), "those of the epoch before too: {stderr}");
    assert!(stdout.contains("operation   5 of thread 0 `float_scatter_add`"), "{stdout}");
}

#[test]
fn runs_that_count_their_steps_from_other_numbers_are_other_programs() {
    let (status, stdout, stderr) = verify("counts from another number", &["--runs", "2", "--more-runs", "2"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stdout.contains("a step is step 0 in one run and step 7 in the other; the weights agree"), "{stdout}");
    assert!(stdout.contains("DIFFERENT: the programs differ"), "{stdout}");
}

#[test]
fn another_operation_after_those_that_were_recorded_is_named() {
    let (status, stdout, stderr) = verify("another operation, later", &["--runs", "2"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(stderr.contains("with operations:0-2") && stderr.contains("with operations:0-3"), "{stderr}");
    assert!(stdout.contains("operation   8 of thread 0 `float_exp`"), "{stdout}");
}

#[test]
fn a_process_that_the_program_leaves_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = folder.path().join("process");
    let mut verify = command_of("leaves a process", &["verify"], &["--runs", "2"], &folder.path().join("runs"));
    let begin = Instant::now();
    let output = verify.env(PROCESS, &process).output().expect("the command");
    let elapsed = begin.elapsed();
    let left = fs::read_to_string(&process).expect("the numbers of processes");
    Command::new("kill").args(left.lines()).status().expect("a command");
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    assert_eq!((stdout.matches("begin\nend\n").count(), stdout.matches("\ndigest: ").count()), (2, 3), "{stdout}");
}

#[test]
fn every_run_has_an_empty_stdin() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut verify = command_of("reads stdin", &["verify"], &[], &folder.path().join("runs"));
    let mut verify =
        verify.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command");
    verify.stdin.take().expect("a pipe").write_all(b"data").expect("a pipe that is read, or not");
    let output = verify.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_reader_that_wants_no_more_ends_the_command_and_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("runs");
    let closed = || {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let mut verify = command_of("prints for ever", &["verify"], &[], &runs);
    let output = verify.stdout(closed()).stderr(Stdio::piped()).spawn().and_then(|child| child.wait_with_output());
    let output = output.expect("the command");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(!stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
    // The program may have been ended before it could create the file, or write its number.
    if let Ok(process) = fs::read_to_string(&runs)
        && !process.is_empty()
        && cfg!(target_os = "linux")
    {
        assert!(!Path::new("/proc").join(process).exists(), "the program goes on");
    }

    let path = folder.path().join("a");
    let mut writer = Writer::create(&path).expect("a file");
    let header =
        Header { command: Vec::new(), level: Level::Weights, deterministic: true, environment: Environment::new() };
    writer.write(&Record::Header(header)).expect("a header");
    finish(writer, 0);
    let mut diff = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
    let diff = diff.arg("diff").args([&path, &path]).stdout(closed()).stderr(Stdio::piped());
    let output = diff.spawn().and_then(|child| child.wait_with_output()).expect("the command");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(2), "".into()));
}

#[test]
fn a_file_that_is_not_there_is_said_once() {
    let mut diff = Command::new(env!("CARGO_BIN_EXE_burn-deterministic"));
    let output = diff.args(["diff", "none", "none"]).output().expect("the command");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.code() == Some(2) && stderr.matches("none").count() == 1, "{stderr}");
    assert_eq!(stderr.matches("os error 2").count(), 1, "{stderr}");
}

#[test]
fn a_program_is_checked_against_references() {
    let (status, stdout, stderr) = verify("agrees with references", &["--against-reference"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    let expected = "\nEQUAL WHERE CHECKED: 3 operations of 2 kinds checked, all equal\nnot checked: interpolate, 4 times: refused\n";
    assert!(stdout.ends_with(expected), "{stdout}");
    let (status, stdout, stderr) = verify("every tenth", &["--against-reference", "10"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
}

#[test]
fn a_device_that_differs_from_a_reference_is_named() {
    let (status, stdout, stderr) = verify("differs from a reference", &["--against-reference"]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(
        stdout.contains("\nDIFFERENT: `float_exp` (device A) differs\n2 operations of 1 kinds checked\n"),
        "{stdout}"
    );
}

#[test]
fn a_program_that_reports_no_check_was_not_checked() {
    let (status, stdout, stderr) = verify("reports nothing", &["--against-reference"]);
    assert_eq!(status, 2, "{stdout}{stderr}");
    assert!(stderr.contains("reported nothing: it must call `burn_deterministic::enable_op_determinism`"), "{stderr}");
}
