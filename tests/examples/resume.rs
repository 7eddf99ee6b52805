//! An example that was killed, and started again with `--resume`, ends as one that was not.

#[cfg(target_os = "linux")]
use crate::checkpoint::file::small_disk;
#[cfg(unix)]
use crate::driver;
use crate::examples::{difference, training};
use crate::process::{Folder, Output, Program};
use crate::skip::skip;
use burn_deterministic::checkpoint::{CheckpointWriter, Checkpoints};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Times that a training is killed before it is left to end.
const KILLS: usize = if cfg!(feature = "heavy") { 20 } else { 2 };
/// The same, of the examples that save in ways of their own.
const FEW_KILLS: usize = if cfg!(feature = "heavy") { 10 } else { 1 };

/// Steps of the trainings with a loop of their own; two checkpoints are three steps apart.
const STEPS: u64 = if cfg!(feature = "heavy") { 60 } else { 18 };

/// A training that keeps its checkpoints in `checkpoints`, and goes on from them.
fn resumed(name: &str, arguments: &[&str], out: &Folder, checkpoints: &Folder) -> Program {
    let folder = checkpoints.path().to_str().expect("the path of a temporary folder");
    training(name, &[arguments, &["--checkpoint", folder, "--resume"]].concat(), out)
}

/// The steps, or epochs, of the last checkpoints in `folder` and in the folders in it.
fn reached(folder: &Path) -> u64 {
    let mut last = 0;
    let mut inner = 0;
    // The folder may not be there yet, and a file may be gone by now.
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            inner += reached(&path);
        }
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("step-").or(name.strip_prefix("scheduler-")).and_then(|n| n.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    last + inner
}

/// Kills the training `kills` times on its way to `end`, which [`reached`] counts, and requires that it ends as one that
/// nobody kills and that keeps no checkpoints.
fn survives(name: &str, arguments: &[&str], every: &[&str], end: u64, kills: usize) {
    let [plain, out, checkpoints] = [Folder::new(), Folder::new(), Folder::new()];
    let whole = training(name, arguments, &plain).run();
    let seed = rand::random();
    eprintln!("kills of {name} are drawn with the seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let mut moments: Vec<u64> = (0..kills).map(|_| random.random_range(0..end)).collect();
    moments.sort_unstable();
    let program = |workers| resumed(name, &[arguments, every, &["--workers", workers]].concat(), &out, &checkpoints);
    let mut workers = ["0", "2", "1", "8"].into_iter().cycle();
    for moment in moments {
        let command = program(workers.next().expect("an endless cycle"));
        let mut child = command.start_silent();
        while reached(checkpoints.path()) < moment && child.try_wait().expect("a child to ask for").is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(random.random_range(0..100_000)));
        child.kill().expect("a child to kill, or one that has ended");
        let status = child.wait().expect("the child's end");
        eprintln!("{name} was killed at {}, for it was to be at {moment}: {status}", reached(checkpoints.path()));
        assert!(status.success() || status.code().is_none(), "it failed by itself: {status}");
    }
    let last = program(workers.next().expect("an endless cycle")).run();
    last.assert_digest(&whole);
    if let Some(difference) = difference(&plain, &out) {
        panic!("{name}, killed {kills} times, ends in other weights: {difference}");
    }
    let plot = |folder: &Folder| std::fs::read(folder.path().join("loss.svg")).expect("both left a plot");
    assert!(plot(&plain) == plot(&out), "the weights of {name} agree, and the losses do not");
    assert_prints_the_end_of(&last, &whole);
}

/// Starts of printed lines that say how long something took, where it lies, or where the training went on.
const INCIDENTAL: [&str; 5] =
    ["first step after ", "loss.svg, ", "test result: ", "going on after ", "no checkpoint in "];

/// Requires that a resumed training has printed what the whole one has: the losses and metrics of the epochs that it came
/// to, and all that follows them.
fn assert_prints_the_end_of(resumed: &Output, whole: &Output) {
    fn printed(output: &Output) -> (Vec<&str>, Vec<&str>) {
        let lines = output.stdout().lines();
        lines.filter(|line| !INCIDENTAL.iter().any(|start| line.starts_with(start))).partition(is_of_epoch)
    }
    fn is_of_epoch(line: &&str) -> bool {
        line.starts_with("epoch ")
    }
    let ((epochs, rest), (all_epochs, all_rest)) = (printed(resumed), printed(whole));
    assert!(!epochs.is_empty(), "no epoch was ended: {resumed}");
    let same = all_epochs.ends_with(&epochs) && rest == all_rest;
    assert!(same, "other losses or metrics\n{resumed}\nthan without a stop\n{whole}");
}

/// Stops a training after `stop` steps, and requires that it prints what one prints that goes to `end` without a stop.
fn prints_the_same(name: &str, arguments: &[&str], stop: &str, end: &str) {
    let [plain, out, checkpoints] = [Folder::new(), Folder::new(), Folder::new()];
    let whole = training(name, &[arguments, &["--steps", end]].concat(), &plain).run();
    resumed(name, &[arguments, &["--steps", stop]].concat(), &out, &checkpoints).run();
    let last = resumed(name, &[arguments, &["--steps", end]].concat(), &out, &checkpoints).run();
    assert_prints_the_end_of(&last, &whole);
    last.assert_digest(&whole);
}

fn survives_between_steps(name: &str, kills: usize) {
    survives(name, &["--steps", &STEPS.to_string()], &["--checkpoint-every", "3"], STEPS, kills);
}

#[test]
fn digits_convnet_goes_on_after_kills() {
    survives_between_steps("digits_convnet", KILLS);
}

#[test]
fn text_transformer_goes_on_after_kills() {
    survives_between_steps("text_transformer", KILLS);
}

#[test]
fn digits_gan_goes_on_after_kills() {
    survives_between_steps("digits_gan", FEW_KILLS);
}

#[test]
fn digits_transfer_goes_on_after_kills() {
    survives_between_steps("digits_transfer", FEW_KILLS);
}

#[test]
fn word2vec_goes_on_after_kills() {
    survives_between_steps("word2vec", FEW_KILLS);
}

/// Of epochs of five steps it stops in the second, and ends in the third. Each epoch tests with other samples.
#[test]
fn word2vec_prints_the_same_after_a_stop() {
    prints_the_same("word2vec", &["--batch-size", "8192"], "7", "12");
}

#[test]
fn digits_mlp_prints_the_same_after_a_stop() {
    prints_the_same("digits_mlp", &["--batch-size", "512"], "5", "10");
}

#[test]
fn digits_resnet_prints_the_same_after_a_stop() {
    prints_the_same("digits_resnet", &[], "2", "4");
}

#[test]
fn digits_unet_prints_the_same_after_a_stop() {
    prints_the_same("digits_unet", &[], "2", "4");
}

#[test]
fn digits_vae_prints_the_same_after_a_stop() {
    prints_the_same("digits_vae", &["--batch-size", "512"], "5", "9");
}

#[test]
fn text_lstm_prints_the_same_after_a_stop() {
    prints_the_same("text_lstm", &[], "2", "4");
}

#[test]
fn text_table_prints_the_same_after_a_stop() {
    prints_the_same("text_table", &["--batch-size", "2048"], "4", "7");
}

/// burn-train's checkpoints are an epoch apart, and its early stopping is to stop where it would have.
#[test]
fn digits_learner_goes_on_after_kills() {
    survives("digits_learner", &["--learning-rate", "0.05"], &[], 6, KILLS);
}

const SHORT: [&str; 4] = ["--steps", "8", "--checkpoint-every", "2"];

/// The newest checkpoint of a training that has taken four of its steps.
fn interrupted(out: &Folder, checkpoints: &Folder) -> PathBuf {
    resumed("digits_mlp", &["--steps", "4", "--checkpoint-every", "2"], out, checkpoints).run();
    let path = checkpoints.path().join("step-000000000004.checkpoint");
    assert!(path.exists(), "no checkpoint of the last step");
    path
}

fn assert_says(output: &Output, parts: &[&str]) {
    for part in parts {
        assert!(output.stderr().contains(part), "no `{part}` from {output}");
    }
}

#[test]
fn a_truncated_checkpoint_is_named_and_the_one_before_is_as_good() {
    let [plain, out, checkpoints] = [Folder::new(), Folder::new(), Folder::new()];
    let whole = training("digits_mlp", &SHORT[..2], &plain).run();
    let path = interrupted(&out, &checkpoints);
    let bytes = std::fs::read(&path).expect("the checkpoint");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("the folder can be written to");
    let failed = resumed("digits_mlp", &SHORT, &out, &checkpoints).fail();
    assert_says(&failed, &[&path.display().to_string(), "is incomplete", "remove its file"]);
    std::fs::remove_file(&path).expect("the checkpoint");
    let again = resumed("digits_mlp", &SHORT, &out, &checkpoints).run();
    assert!(again.stdout().contains("going on after step 2"), "{again}");
    again.assert_digest(&whole);
}

#[test]
fn another_training_does_not_go_on_from_these_checkpoints() {
    let [out, checkpoints] = [Folder::new(), Folder::new()];
    interrupted(&out, &checkpoints);
    let folder = checkpoints.path().to_str().expect("the path of a temporary folder");
    let other = resumed("digits_mlp", &["--seed", "5", "--batch-size", "32"], &out, &checkpoints).fail();
    assert_says(&other, &[folder, "--seed was 812, and is 5", "--batch-size was its default, and is 32"]);
    let other = resumed("digits_convnet", &[], &out, &checkpoints).fail();
    assert_says(&other, &["the example was digits_mlp, and is digits_convnet"]);
    let shorter = resumed("digits_mlp", &["--steps", "3"], &out, &checkpoints).fail();
    assert_says(&shorter, &["after 4 steps: more than"]);
    let anew = training("digits_mlp", &["--checkpoint", folder], &out).fail();
    assert_says(&anew, &[folder, "`--resume`", "another folder"]);
}

#[test]
fn a_folder_has_one_training_at_a_time_and_can_be_read_meanwhile() {
    let [out, checkpoints] = [Folder::new(), Folder::new()];
    interrupted(&out, &checkpoints);
    let training = CheckpointWriter::open(checkpoints.path()).expect("no training is at work");
    let failed = resumed("digits_mlp", &SHORT, &out, &checkpoints).fail();
    let process = format!("process {}", std::process::id());
    assert_says(&failed, &[&checkpoints.path().display().to_string(), "is locked", &process]);
    let latest = Checkpoints::open(checkpoints.path()).and_then(|checkpoints| checkpoints.latest());
    assert!(latest.expect("an intact file").is_some());
    drop(training);
    resumed("digits_mlp", &SHORT, &out, &checkpoints).run();
}

/// A limit on the size of files stops a write as a full disk does, and anybody may set it.
#[cfg(unix)]
#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before() {
    if driver::name().contains("SwiftShader") {
        return skip("SwiftShader keeps compiled kernels in files in memory, which the limit stops too");
    }
    let [plain, out, checkpoints] = [Folder::new(), Folder::new(), Folder::new()];
    let whole = training("digits_mlp", &SHORT[..2], &plain).run();
    interrupted(&out, &checkpoints);
    let limit = "trap '' XFSZ; ulimit -f 64";
    let failed = resumed("digits_mlp", &SHORT, &out, &checkpoints).after(limit).fail();
    let path = checkpoints.path().join("step-000000000006.checkpoint");
    assert_says(&failed, &[&path.display().to_string(), "File too large", "make room", "`--resume`"]);
    let again = resumed("digits_mlp", &SHORT, &out, &checkpoints).run();
    assert!(again.stdout().contains("going on after step 4"), "{again}");
    again.assert_digest(&whole);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let [out, checkpoints] = [Folder::new(), Folder::new()];
    let Some(mount) = small_disk(checkpoints.path(), "300k") else { return };
    let failed = resumed("digits_mlp", &SHORT, &out, &checkpoints).unshared(&mount).fail();
    let folder = checkpoints.path().display().to_string();
    assert_says(&failed, &[&folder, "No space left on device", "make room", "`--resume`"]);
}
