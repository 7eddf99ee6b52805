//! What a user relies on, through the public API only.
//!
//! Determinism is enabled once for a process, and what it promises is about separate processes. So a test here runs
//! programs: this binary starts itself again, with the name of one of [`PROGRAMS`] to run (see [`process`]). Tests that
//! need one deterministic process and nothing else share this one.
//!
//! The default suite shows each property with few repeats; the feature `heavy` has as many as the guarantee is judged
//! by.

#[cfg(not(any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
compile_error!(
    "no runtime is compiled in, so there is no device to test on: run `cargo xtask test`, or add `--features wgpu` (or \
     vulkan, metal, webgpu, cuda, cuda-nvrtc, rocm)"
);

mod accuracy;
mod backend;
mod batch_invariance;
mod bits;
mod checkpoint;
mod closed_world;
mod conformance;
mod data;
#[path = "../kernels/tests/device.rs"]
mod device;
mod driver;
mod environment;
mod examples;
mod lifetime;
mod one_kind;
mod operations;
mod order;
mod planted;
mod process;
mod programs;
mod random;
mod recordings;
mod reference;
mod repeatability;
mod shards;
#[path = "../kernels/tests/skip.rs"]
mod skip;
mod weights;

use burn::prelude::*;
use burn_deterministic::{Determinism, Digest, enable_op_determinism, set_random_seed};
use device::default_device as cube_device;

/// What can be run in a process of its own.
const PROGRAMS: &[(&str, fn())] = &[
    ("checkpointed", checkpoint::kill::checkpointed),
    ("endless_writes", checkpoint::kill::endless_writes),
    ("full_disk", checkpoint::file::full_disk),
    ("nested_writers", checkpoint::folder::nested_writers),
    ("second_writer", checkpoint::folder::second_writer),
    ("rotating_writer", checkpoint::folder::rotating_writer),
    ("reader", checkpoint::folder::reader),
    ("saved_and_resumed", checkpoint::environment::saved_and_resumed),
    ("tell_environment", environment::tell),
    ("holder", checkpoint::folder::holder),
    ("saved_after_an_index", checkpoint::poisoned::saved_after_an_index),
    ("fault", recordings::programs::fault),
    ("moved_between", recordings::programs::moved_between),
    ("joined", recordings::programs::joined),
    ("observed_fault", recordings::programs::observed_fault),
    ("observed_training", recordings::programs::observed_training),
    ("custom_fault", recordings::programs::custom_fault),
    ("overwritten", recordings::overwrite::overwritten),
    ("race", recordings::programs::race),
    ("normalised", recordings::programs::normalised),
    ("recorded_batches", recordings::programs::batches),
    ("copied", recordings::programs::copied),
    ("planted", planted::programs::planted),
    ("clobbered", planted::programs::clobbered),
    ("unmarked", recordings::unmarked::unmarked),
    ("unwritable", recordings::failures::unwritable),
    ("too_late_to_record", recordings::failures::too_late),
    ("unwritable_observed", recordings::failures::unwritable_observed),
    ("mlp", || trained(programs::mlp::train)),
    ("convnet", || trained(programs::convnet::train)),
    ("transformer", || trained(programs::transformer::train)),
    ("lstm", || trained(programs::lstm::train)),
    ("gru", || trained(programs::gru::train)),
    ("text_convnet", || trained(programs::text_convnet::train)),
    ("skip_gram", || trained(programs::skip_gram::train)),
    ("driver", driver::report),
    ("ends_at_once", lifetime::exit::ends_at_once),
    ("ends_amid_a_thread", lifetime::exit::ends_amid_a_thread),
    ("exits_at_once", lifetime::exit::exits_at_once),
    ("stressed", || trained(repeatability::threads::stressed)),
    ("odd_places", || trained(repeatability::threads::odd_places)),
    ("plain_batches", batch_invariance::plain::plain_batches),
    ("plain_scatter", repeatability::repeats::plain_scatter),
    ("reinforced", repeatability::reinforced::reinforced),
    ("plain_reads", repeatability::reads::plain_reads),
    ("unseeded", closed_world::refusals::unseeded),
    ("unseeded_dropout", closed_world::refusals::unseeded_dropout),
    ("unseeded_thread", closed_world::refusals::unseeded_thread),
    ("device_seeded", random::device_seed::seeded),
    ("device_seeded_and_resumed", random::device_seed::seeded_and_resumed),
    ("device_seeded_again_and_again", random::device_seed::seeded_again_and_again),
    ("device_seeded_too_early", random::device_seed::seeded_too_early),
    ("device_seed_of_two_threads", random::device_seed::a_second_thread),
    ("seeds_of_both_kinds", random::device_seed::seeds_of_both_kinds),
    ("batches_of_burn", closed_world::uncovered::batches_of_burn),
    ("redirected", closed_world::uncovered::redirected),
    ("seeded_only", closed_world::uncovered::seeded_only),
    ("seeded_without_an_operation", closed_world::uncovered::seeded_without_an_operation),
    ("extension_refused", closed_world::uncovered::extension_refused),
    ("extension_promised", closed_world::uncovered::extension_promised),
    ("extension_warned", closed_world::uncovered::extension_warned),
    ("captured", closed_world::uncovered::captured),
    ("unsupported", closed_world::refusals::unsupported),
    ("warned", closed_world::refusals::warned),
    ("too_late", closed_world::configuration::too_late),
    ("too_late_for_a_queued_operation", closed_world::configuration::too_late_for_a_queued_operation),
    ("enabled_again", closed_world::configuration::enabled_again),
    ("bypassing", closed_world::configuration::bypassing),
    ("stolen", closed_world::coverage::stolen),
    ("stolen_under_a_profiler", closed_world::coverage::stolen_under_a_profiler),
    ("poisoned_under_a_profiler", closed_world::coverage::poisoned_under_a_profiler),
    ("several_devices", closed_world::several_devices::several_devices),
    ("soak", lifetime::growth::soak),
    ("assigns_in_one_thread", backend::in_place::assigns_in_one_thread),
    ("remote_bits", backend::remote::remote_bits),
    ("remote_refusal", backend::remote::remote_refusal),
    ("remote_unknown", backend::remote::remote_unknown),
    ("new_plans", lifetime::growth::new_plans),
    ("annealed_steps", lifetime::growth::annealed_steps),
    ("threads_that_end", lifetime::growth::threads_that_end),
    ("products_of_types", order::products::products_of_types),
    ("shared_launches_against_references", order::checked::against_references),
    ("shared_launches_twice", order::checked::twice),
    ("products_of_every_device", closed_world::guarantee::products_of_every_device),
    ("refused_on_every_device", closed_world::guarantee::refused_on_every_device),
    ("inexact_device", closed_world::guarantee::inexact_device),
    ("guarantee_of_a_wrong_variable", closed_world::guarantee::guarantee_of_a_wrong_variable),
    ("told_by_another_thread", closed_world::indices::told_by_another_thread),
    ("told_after_a_state_is_taken", closed_world::indices::told_after_a_state_is_taken),
    ("not_told_by_a_full_run", closed_world::indices::not_told_by_a_full_run),
    ("told_in_groups", closed_world::indices::told_in_groups),
    ("checked_operations", reference::programs::operations),
    ("checked_random_programs", reference::programs::random),
    ("checked_arithmetic", reference::programs::arithmetic),
    ("checked_training", reference::programs::training),
    ("checked_run_to_run", reference::programs::run_to_run),
    ("checked_by_a_wrong_variable", reference::programs::wrong_variable),
    ("product_of_nothing", closed_world::coverage::product_of_nothing),
    ("reseeding", closed_world::coverage::reseeding),
    ("steady_memory", closed_world::coverage::steady_memory),
    ("told", closed_world::indices::told),
    ("told_once", closed_world::indices::told_once),
    ("told_alone", closed_world::indices::told_alone),
    ("told_of_all", closed_world::indices::told_of_all),
    ("told_late", closed_world::indices::told_late),
    ("told_among_many", closed_world::indices::told_among_many),
    ("told_without_its_index", closed_world::indices::told_without_its_index),
    ("told_in_training", closed_world::indices::told_in_training),
    ("batches_tell_of_indices", data::batchers::batches_tell_of_indices),
    ("no_room_for_a_worker", data::workers::no_room_for_a_worker),
    ("unseeded_batches", data::batchers::unseeded_batches),
    ("killed_loader", data::kill::killed_loader),
    ("unknown_custom", closed_world::custom::unknown_custom),
    ("warned_custom", closed_world::custom::warned_custom),
    ("promised_custom", closed_world::custom::promised_custom),
    ("short_training", || trained(repeatability::rerun::short_training)),
    ("short_training_again", || repeatability::rerun::trained_again(repeatability::rerun::short_training)),
    ("drift_is_found", repeatability::rerun::drift_is_found),
    ("drift_is_reported", repeatability::rerun::drift_is_reported),
    ("repeats_change_nothing", repeatability::rerun::repeats_change_nothing),
    ("once", repeatability::rerun::once),
    ("two_threads_of_a_process", random::seeds::two_threads_of_a_process),
    ("threads_with_one_seed", random::seeds::threads_with_one_seed),
    ("sharded", shards::training::sharded),
    ("grouped", shards::group::grouped),
    ("grouped_differently", shards::group::grouped_differently),
    ("sharded_learner", shards::learner::sharded_learner),
    ("sharded_model", shards::models::sharded_model),
    ("interrupted", random::seeds::interrupted),
    ("state_before_a_device_is_up", random::seeds::state_before_a_device_is_up),
    ("initialize_too_early", random::initialize::initialize_too_early),
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

#[test]
fn programs_have_names_of_their_own() {
    let names: std::collections::BTreeSet<_> = PROGRAMS.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), PROGRAMS.len());
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
