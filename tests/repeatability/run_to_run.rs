//! The same program in another process ends in the same bits.

use crate::driver;
use crate::process::{Folder, Load, Output, Program};

/// Processes of each program.
const RUNS: usize = if cfg!(feature = "heavy") { 20 } else { 3 };

/// Shuffled orders of blocks and threads on the CUDA emulator, in place of runs that would all have the ascending one.
const SEEDS: u64 = if cfg!(feature = "heavy") { 20 } else { 2 };

/// Runs a program again and again in ways that a user's machine varies, and requires one digest.
fn one_digest(program: impl Fn() -> Program) {
    let is_emulator = driver::is_emulator();
    let first = if is_emulator { seeded(program(), "").run() } else { program().run() };
    if is_emulator {
        for seed in 1..=SEEDS {
            seeded(program(), &seed.to_string()).run().assert_digest(&first);
        }
    } else {
        for _ in 1..RUNS {
            program().run().assert_digest(&first);
        }
    }
    // Both vary the host, which is the same with other devices.
    if !is_emulator || cfg!(feature = "heavy") {
        without_caches(program()).assert_digest(&first);
        with_foreign_settings(program()).assert_digest(&first);
    }
    let _load = Load::new();
    program().run().assert_digest(&first);
}

/// Under a seed of the emulator's; the empty one is the ascending order.
fn seeded(program: Program, seed: &str) -> Program {
    program.env("CUDA_EMULATOR_SEED", seed)
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
