//! Every example, trained twice in processes of its own, ends in the same weights, tensor by tensor. On the CUDA emulator,
//! where an example's digest is recorded, it is trained once: the record is of another process, without workers. With
//! `Guarantee::GpuToGpu` each is trained once more, to the digest of every device; elsewhere than on the emulator every fourth
//! operation is checked against its plain-Rust reference on the way.
//!
//! The examples are part of this binary, so that they need not be built one by one: each of theirs takes a linker's time.

pub mod golden;
mod learner;
mod resume;

use crate::closed_world::guarantee::is_given;
use crate::driver;
use crate::process::{Folder, Load, Program};
use crate::reference::report_without_difference;
use anyhow::Result;
use examples_common::{Arguments, Difference, Help, LEFT, first_difference};

struct Example {
    name: &'static str,
    help: Help,
    run: fn(&Arguments) -> Result<()>,
}

/// The examples, whose `main` is for a process of their own.
macro_rules! examples {
    ($($name:ident = $path:literal,)*) => {
        $(
            #[path = $path]
            #[expect(dead_code, reason = "its `main`")]
            mod $name;
        )*

        const EXAMPLES: &[Example] = &[$(Example { name: stringify!($name), help: $name::HELP, run: $name::run }),*];
    };
}

examples! {
    digits_convnet = "../../examples/digits_convnet/main.rs",
    digits_gan = "../../examples/digits_gan/main.rs",
    digits_learner = "../../examples/digits_learner/main.rs",
    digits_mlp = "../../examples/digits_mlp/main.rs",
    digits_resnet = "../../examples/digits_resnet/main.rs",
    digits_transfer = "../../examples/digits_transfer/main.rs",
    digits_unet = "../../examples/digits_unet/main.rs",
    digits_vae = "../../examples/digits_vae/main.rs",
    text_lstm = "../../examples/text_lstm/main.rs",
    text_table = "../../examples/text_table/main.rs",
    text_transformer = "../../examples/text_transformer/main.rs",
    word2vec = "../../examples/word2vec/main.rs",
}

fn example(name: &str) -> &'static Example {
    EXAMPLES.iter().find(|example| example.name == name).expect("a program of this suite or an example")
}

/// In a process that [`Program`] started: runs the example.
pub fn run(name: &str, arguments: &[String]) {
    let run = example(name).run;
    // The test harness leaves its own line open.
    println!();
    let arguments = Arguments::from_words(arguments.iter().map(String::as_str)).expect("arguments of an example");
    // As the example's own `main` ends.
    if let Err(error) = run(&arguments) {
        eprintln!("Error: {error:?}");
        std::process::exit(1);
    }
}

/// A training that leaves its weights in `folder`.
pub fn training(name: &str, arguments: &[&str], folder: &Folder) -> Program {
    let out = folder.path().to_str().expect("the path of a temporary folder");
    Program::new(name).arguments(&[arguments, &["--out", out]].concat())
}

/// The first difference between the weights that two trainings left.
pub fn difference(one: &Folder, other: &Folder) -> Option<Difference> {
    first_difference(&one.path().join("weights"), &other.path().join("weights")).expect("both left their weights")
}

/// Trains `runs` times, with other numbers of threads that prepare samples, and under load where there are many runs.
fn train_alike(name: &str, arguments: &[&str], runs: usize) {
    let train = |workers: &str| {
        let folder = Folder::new();
        let digest = training(name, &[arguments, &["--workers", workers]].concat(), &folder).run().digest().to_owned();
        (folder, digest)
    };
    let (folder, digest) = train("0");
    assert_left(name, &folder);
    let _load = (runs > 2).then(Load::new);
    for workers in ["2", "1", "8", "0"].into_iter().cycle().take(runs - 1) {
        let (other, other_digest) = train(workers);
        if let Some(difference) = difference(&folder, &other) {
            panic!("two trainings of {name} differ, the second with {workers} workers: {difference}");
        }
        assert_eq!(digest, other_digest, "the weights agree, and the digests do not");
    }
    golden::check(&spelled(name, arguments), &digest);
}

/// Requires that the example left what its `--help` says.
fn assert_left(name: &str, folder: &Folder) {
    let entries = std::fs::read_dir(folder.path()).expect("the folder of the results");
    let mut left: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    left.sort();
    let mut said = [&LEFT[..], example(name).help.leaves].concat();
    said.sort();
    assert_eq!(left, said, "{name}");
}

/// Which operations of a training with the bits of every device are checked against their references: every, or every fourth.
const CHECKED: &str = if cfg!(feature = "heavy") { "1" } else { "4" };

/// Trains as far as `short` says, twice; with the feature `heavy` ten times, and to the end twice. To the end the emulator
/// would take hours.
fn trains_alike(name: &str, short: &[&str]) {
    if is_given() {
        let arguments = [short, &["--workers", "2"]].concat();
        let folder = Folder::new();
        let program = training(name, &arguments, &folder).env("BURN_DETERMINISTIC_GUARANTEE", "gpu-to-gpu");
        let report = folder.path().join("report");
        // On the emulator it would take as long again.
        let is_checked = !driver::is_emulator();
        let program = match is_checked {
            true => {
                program.env("BURN_DETERMINISTIC_REFERENCE", CHECKED).env("BURN_DETERMINISTIC_REFERENCE_REPORT", &report)
            }
            false => program,
        };
        golden::check_on(golden::EVERY_DEVICE, &spelled(name, short), program.run().digest());
        if is_checked {
            report_without_difference(&report);
        }
    }
    if driver::is_emulator() && golden::is_recorded(&spelled(name, short)) {
        let digest = training(name, &[short, &["--workers", "2"]].concat(), &Folder::new()).run().digest().to_owned();
        golden::check(&spelled(name, short), &digest);
    } else if cfg!(feature = "heavy") && !driver::is_emulator() {
        train_alike(name, short, 10);
        train_alike(name, &[], 2);
    } else {
        train_alike(name, short, 2);
    }
}

/// A training, as goldens name it.
fn spelled(name: &str, arguments: &[&str]) -> String {
    [&[name], arguments].concat().join(" ")
}

#[test]
fn digits_convnet_ends_in_the_same_weights() {
    trains_alike("digits_convnet", &["--steps", "24"]);
}

#[test]
fn digits_gan_ends_in_the_same_weights() {
    trains_alike("digits_gan", &["--steps", "24"]);
}

#[test]
fn digits_learner_ends_in_the_same_weights() {
    trains_alike("digits_learner", &["--epochs", "3"]);
}

#[test]
fn digits_mlp_ends_in_the_same_weights() {
    trains_alike("digits_mlp", &["--steps", "30"]);
}

#[test]
fn digits_resnet_ends_in_the_same_weights() {
    trains_alike("digits_resnet", &["--steps", "24"]);
}

#[test]
fn digits_transfer_ends_in_the_same_weights() {
    trains_alike("digits_transfer", &["--steps", "24"]);
}

#[test]
fn digits_unet_ends_in_the_same_weights() {
    trains_alike("digits_unet", &["--steps", "12"]);
}

#[test]
fn digits_vae_ends_in_the_same_weights() {
    trains_alike("digits_vae", &["--steps", "24"]);
}

#[test]
fn text_lstm_ends_in_the_same_weights() {
    trains_alike("text_lstm", &["--steps", "12"]);
}

#[test]
fn text_table_ends_in_the_same_weights() {
    trains_alike("text_table", &["--steps", "24"]);
}

#[test]
fn text_transformer_ends_in_the_same_weights() {
    trains_alike("text_transformer", &["--steps", "24"]);
}

#[test]
fn word2vec_ends_in_the_same_weights() {
    trains_alike("word2vec", &["--steps", "24"]);
}

/// Without it the comparisons above could not fail.
#[test]
fn another_seed_ends_in_other_weights() {
    let folders = [Folder::new(), Folder::new()];
    let digests = [("1", &folders[0]), ("2", &folders[1])].map(|(seed, folder)| {
        training("digits_mlp", &["--steps", "2", "--seed", seed], folder).run().digest().to_owned()
    });
    assert_ne!(digests[0], digests[1]);
    let difference = difference(&folders[0], &folders[1]).expect("other weights");
    match &difference {
        Difference::Element { tensor, bits: [one, other], .. } => {
            assert_eq!(tensor, "hidden.0.dense.weight");
            assert_ne!(one, other);
        }
        other => panic!("the same tensors with other elements were expected, not {other}"),
    }
    assert!(difference.to_string().contains(" ULP apart"), "{difference}");
}
