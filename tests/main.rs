//! What a user relies on, through the public API only.
//!
//! Determinism is enabled once for a process, and what it promises is about separate processes. So a test here runs
//! programs: this binary starts itself again, with the name of one of [`PROGRAMS`] to run (see [`process`]). Tests that
//! need one deterministic process and nothing else share this one.
//!
//! The default suite shows each property with few repeats; the feature `heavy` has as many as the guarantee is judged
//! by.

#![cfg(feature = "wgpu")]

mod accuracy;
mod attention;
mod autodiff_backend;
mod batch_invariance;
mod batchers;
mod bits;
mod checkpoint;
mod compare;
mod configuration;
mod conformance;
mod coverage;
mod cumulative;
mod custom;
mod data;
mod device_seed;
mod digest;
mod distributions;
mod examples;
mod exit;
mod extensions;
mod fusion;
mod golden;
mod growth;
mod host;
mod indices;
mod initialize;
mod injection;
mod layout;
mod learner;
mod loader_streams;
mod modules;
mod operations;
mod positions;
mod process;
mod programs;
mod random_programs;
mod reads;
mod refusals;
mod remote;
mod repeats;
mod rerun;
mod resume;
mod run_to_run;
mod seeds;
mod several_devices;
#[path = "../kernels/tests/skip.rs"]
mod skip;
mod sorting;
mod stress;
mod threads;
mod uncovered;
mod workers;

use burn::prelude::*;
use burn_deterministic::{Determinism, Digest, enable_op_determinism, set_random_seed};

/// What can be run in a process of its own.
const PROGRAMS: &[(&str, fn())] = &[
    ("checkpointed", checkpoint::kill::checkpointed),
    ("endless_writes", checkpoint::kill::endless_writes),
    ("full_disk", checkpoint::file::full_disk),
    ("nested_writers", checkpoint::folder::nested_writers),
    ("second_writer", checkpoint::folder::second_writer),
    ("rotating_writer", checkpoint::folder::rotating_writer),
    ("reader", checkpoint::folder::reader),
    ("holder", checkpoint::folder::holder),
    ("saved_after_an_index", checkpoint::poisoned::saved_after_an_index),
    ("mlp", || trained(programs::mlp::train)),
    ("convnet", || trained(programs::convnet::train)),
    ("transformer", || trained(programs::transformer::train)),
    ("lstm", || trained(programs::lstm::train)),
    ("skip_gram", || trained(programs::skip_gram::train)),
    ("driver", golden::driver),
    ("ends_at_once", exit::ends_at_once),
    ("ends_amid_a_thread", exit::ends_amid_a_thread),
    ("exits_at_once", exit::exits_at_once),
    ("stressed", || trained(threads::stressed)),
    ("odd_places", || trained(threads::odd_places)),
    ("plain_batches", batch_invariance::plain::plain_batches),
    ("plain_scatter", repeats::plain_scatter),
    ("plain_reads", reads::plain_reads),
    ("unseeded", refusals::unseeded),
    ("unseeded_dropout", refusals::unseeded_dropout),
    ("unseeded_thread", refusals::unseeded_thread),
    ("device_seeded", device_seed::seeded),
    ("device_seeded_and_resumed", device_seed::seeded_and_resumed),
    ("device_seeded_again_and_again", device_seed::seeded_again_and_again),
    ("device_seeded_too_early", device_seed::seeded_too_early),
    ("device_seed_of_two_threads", device_seed::a_second_thread),
    ("seeds_of_both_kinds", device_seed::seeds_of_both_kinds),
    ("redirected", uncovered::redirected),
    ("seeded_only", uncovered::seeded_only),
    ("seeded_without_an_operation", uncovered::seeded_without_an_operation),
    ("extension_refused", uncovered::extension_refused),
    ("extension_promised", uncovered::extension_promised),
    ("extension_warned", uncovered::extension_warned),
    ("captured", uncovered::captured),
    ("unsupported", refusals::unsupported),
    ("warned", refusals::warned),
    ("too_late", configuration::too_late),
    ("too_late_for_a_queued_operation", configuration::too_late_for_a_queued_operation),
    ("enabled_again", configuration::enabled_again),
    ("bypassing", configuration::bypassing),
    ("stolen", coverage::stolen),
    ("stolen_under_a_profiler", coverage::stolen_under_a_profiler),
    ("poisoned_under_a_profiler", coverage::poisoned_under_a_profiler),
    ("several_devices", several_devices::several_devices),
    ("soak", growth::soak),
    ("remote_bits", remote::remote_bits),
    ("remote_refusal", remote::remote_refusal),
    ("remote_unknown", remote::remote_unknown),
    ("new_plans", growth::new_plans),
    ("annealed_steps", growth::annealed_steps),
    ("threads_that_end", growth::threads_that_end),
    ("told_by_another_thread", indices::told_by_another_thread),
    ("told_after_a_state_is_taken", indices::told_after_a_state_is_taken),
    ("not_told_by_a_full_run", indices::not_told_by_a_full_run),
    ("product_of_nothing", coverage::product_of_nothing),
    ("reseeding", coverage::reseeding),
    ("steady_memory", coverage::steady_memory),
    ("told", indices::told),
    ("told_once", indices::told_once),
    ("told_late", indices::told_late),
    ("told_in_training", indices::told_in_training),
    ("batches_tell_of_indices", batchers::batches_tell_of_indices),
    ("unseeded_batches", batchers::unseeded_batches),
    ("unknown_custom", custom::unknown_custom),
    ("warned_custom", custom::warned_custom),
    ("promised_custom", custom::promised_custom),
    ("short_training", || trained(rerun::short_training)),
    ("short_training_again", || rerun::trained_again(rerun::short_training)),
    ("drift_is_found", rerun::drift_is_found),
    ("drift_is_reported", rerun::drift_is_reported),
    ("repeats_change_nothing", rerun::repeats_change_nothing),
    ("once", rerun::once),
    ("two_threads_of_a_process", seeds::two_threads_of_a_process),
    ("threads_with_one_seed", seeds::threads_with_one_seed),
    ("interrupted", seeds::interrupted),
    ("state_before_a_device_is_up", seeds::state_before_a_device_is_up),
    ("initialize_too_early", initialize::initialize_too_early),
];

/// A user's program: enable, seed, train, print the digest.
fn trained(train: fn(&Device) -> Digest) {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    process::report("digest", train(&Device::default().autodiff()));
}

/// The device of the tests that run in this process.
fn deterministic_device() -> Device {
    enable_op_determinism(Determinism::default()).expect("every test of this process enables the same");
    Device::default()
}

/// In a process that [`process::Program`] started: the program it is to run. In the suite's own: nothing.
#[test]
fn program() {
    if let Some(name) = process::requested() {
        let program = PROGRAMS.iter().find(|(known, _)| *known == name);
        match program {
            Some((_, run)) => run(),
            None => examples::run(&name, &process::arguments()),
        }
    }
}
