//! The same program in another process ends in the same bits.

use crate::process::{Folder, Load, Output, Program};

/// Processes of each program.
const RUNS: usize = if cfg!(feature = "heavy") { 20 } else { 3 };

/// Runs a program again and again in ways that a user's machine varies, and requires one digest.
fn one_digest(program: impl Fn() -> Program) {
    let first = program().run();
    for _ in 1..RUNS {
        program().run().assert_digest(&first);
    }
    without_caches(program()).assert_digest(&first);
    with_foreign_settings(program()).assert_digest(&first);
    let _load = Load::new();
    program().run().assert_digest(&first);
}

/// On a machine that has run nothing before: CubeCL's caches and the driver's are empty.
fn without_caches(program: Program) -> Output {
    let folder = Folder::new();
    let caches = folder.path();
    program.folder(caches).env("XDG_CACHE_HOME", caches).env("MESA_SHADER_CACHE_DIR", caches).run()
}

/// Where another program's tuning is kept, and tuning is asked to take its time.
fn with_foreign_settings(program: Program) -> Output {
    program
        .env("CUBECL_ENVIRONMENT", "another-program")
        .env("CUBECL_AUTOTUNE_LEVEL", "full")
        .env("CUBECL_AUTOTUNE_SHORT_CIRCUIT", "0")
        .run()
}

#[test]
fn mlp_with_sgd_and_momentum() {
    one_digest(|| Program::new("mlp"));
}

#[test]
fn convnet_with_batch_norm_dropout_and_adam() {
    one_digest(|| Program::new("convnet"));
}

#[test]
fn transformer_with_tied_weights_and_clipping() {
    one_digest(|| Program::new("transformer"));
}

#[test]
fn lstm_on_embeddings() {
    one_digest(|| Program::new("lstm"));
}

#[test]
fn skip_gram_with_many_duplicates() {
    one_digest(|| Program::new("skip_gram"));
}

#[test]
fn digits_convnet() {
    one_digest(|| Program::new("digits_convnet").arguments(&["--steps", "12"]));
}
