//! The same program in another process ends in the same bits.

use crate::driver;
use crate::process::{Folder, Load, Output, Program};

/// Processes of each program.
const RUNS: usize = if cfg!(feature = "heavy") { 20 } else { 3 };

/// Shuffled orders of blocks and threads on the CUDA emulator, in place of runs that would all have the ascending one.
const SEEDS: u64 = if cfg!(feature = "heavy") { 20 } else { 4 };

/// Runs a program again and again in ways that a user's machine varies, and requires one digest.
fn one_digest(program: impl Fn() -> Program) {
    let first = program().run();
    if driver::is_emulator() {
        for seed in 1..=SEEDS {
            program().env("CUDA_EMULATOR_SEED", seed.to_string()).run().assert_digest(&first);
        }
    } else {
        for _ in 1..RUNS {
            program().run().assert_digest(&first);
        }
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
fn gru_with_tied_weights_and_clipping() {
    one_digest(|| Program::new("gru"));
}

#[test]
fn convnet_on_embeddings() {
    one_digest(|| Program::new("text_convnet"));
}

#[test]
fn skip_gram_with_many_duplicates() {
    one_digest(|| Program::new("skip_gram"));
}

#[test]
fn digits_convnet() {
    one_digest(|| Program::new("digits_convnet").arguments(&["--steps", "12"]));
}
