//! Every example, trained twice in processes of its own, ends in the same weights, tensor by tensor.
//!
//! The examples are part of this binary, so that they need not be built one by one: each of theirs takes a linker's time.

use crate::golden;
use crate::process::{Folder, Program};
use anyhow::Result;
use examples_common::{Arguments, Difference, first_difference};

/// The examples, whose `main` is for a process of their own.
macro_rules! examples {
    ($($name:ident = $path:literal,)*) => {
        $(
            #[path = $path]
            #[expect(dead_code, reason = "its `main`")]
            mod $name;
        )*

        const EXAMPLES: &[(&str, fn(&Arguments) -> Result<()>)] = &[$((stringify!($name), $name::run)),*];
    };
}

examples! {
    digits_convnet = "../examples/digits_convnet/main.rs",
    digits_gan = "../examples/digits_gan/main.rs",
    digits_mlp = "../examples/digits_mlp/main.rs",
    digits_resnet = "../examples/digits_resnet/main.rs",
    digits_transfer = "../examples/digits_transfer/main.rs",
    digits_vae = "../examples/digits_vae/main.rs",
    text_lstm = "../examples/text_lstm/main.rs",
    text_transformer = "../examples/text_transformer/main.rs",
    word2vec = "../examples/word2vec/main.rs",
}

/// In a process that [`Program`] started: runs the example.
pub fn run(name: &str, arguments: &[String]) {
    let (_, run) = EXAMPLES.iter().find(|(known, _)| *known == name).expect("a program of this suite or an example");
    // The test harness leaves its own line open.
    println!();
    let arguments = Arguments::from_words(arguments.iter().map(String::as_str)).expect("arguments of an example");
    run(&arguments).expect("the example runs to its end");
}

/// Trains, and leaves the weights in `folder`.
fn train(name: &str, arguments: &[&str], folder: &Folder) -> String {
    let out = folder.path().to_str().expect("the path of a temporary folder");
    Program::new(name).arguments(&[arguments, &["--out", out]].concat()).run().digest().to_owned()
}

fn difference(one: &Folder, other: &Folder) -> Option<Difference> {
    first_difference(&one.path().join("weights"), &other.path().join("weights")).expect("both left their weights")
}

/// Trains for `steps` steps, or to the end, twice: the second time with threads that prepare samples.
fn trains_alike(name: &str, steps: usize) {
    let steps = steps.to_string();
    let arguments: &[&str] = if cfg!(feature = "heavy") { &[] } else { &["--steps", &steps] };
    let folders = [Folder::new(), Folder::new()];
    let [one, other] = &folders;
    let digests = [train(name, arguments, one), train(name, &[arguments, &["--workers", "2"]].concat(), other)];
    if let Some(difference) = difference(one, other) {
        panic!("two trainings of {name} differ: {difference}");
    }
    assert_eq!(digests[0], digests[1], "the weights agree, and the digests do not");
    golden::check(&[&[name], arguments].concat().join(" "), &digests[0]);
}

#[test]
fn digits_convnet_ends_in_the_same_weights() {
    trains_alike("digits_convnet", 24);
}

#[test]
fn digits_gan_ends_in_the_same_weights() {
    trains_alike("digits_gan", 24);
}

#[test]
fn digits_mlp_ends_in_the_same_weights() {
    trains_alike("digits_mlp", 30);
}

#[test]
fn digits_resnet_ends_in_the_same_weights() {
    trains_alike("digits_resnet", 24);
}

#[test]
fn digits_transfer_ends_in_the_same_weights() {
    trains_alike("digits_transfer", 24);
}

#[test]
fn digits_vae_ends_in_the_same_weights() {
    trains_alike("digits_vae", 24);
}

#[test]
fn text_lstm_ends_in_the_same_weights() {
    trains_alike("text_lstm", 12);
}

#[test]
fn text_transformer_ends_in_the_same_weights() {
    trains_alike("text_transformer", 24);
}

#[test]
fn word2vec_ends_in_the_same_weights() {
    trains_alike("word2vec", 24);
}

/// Without it the comparisons above could not fail.
#[test]
fn another_seed_ends_in_other_weights() {
    let folders = [Folder::new(), Folder::new()];
    let digests = [("1", &folders[0]), ("2", &folders[1])]
        .map(|(seed, folder)| train("digits_mlp", &["--steps", "2", "--seed", seed], folder));
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
