//! The seed of a thread.

use super::seeded_only;
use super::thread::{Source, Thread, key_of_seed};
use super::threads::{change, lock, with_thread};
use crate::settings::is_op_determinism_enabled;
use burn_backend::StreamId;
use core::cell::Cell;
use std::sync::OnceLock;

/// Seeds every random operation that this thread issues from now on.
///
/// Call it before the first module is initialised; before or after
/// [`enable_op_determinism`](crate::enable_op_determinism) makes no difference. In a program that never enables
/// determinism it does nothing, and a warning on standard error says so. Calling it again starts the same numbers again, and
/// ends what the thread has [entered](crate::RandomStream::enter). Another thread that draws random numbers has a seed or a stream of its own, or that of
/// [`Determinism::seed_threads`](crate::Determinism::seed_threads): no thread's numbers depend on what other threads do.
///
/// Operations draw from `RandomStream::from_seed(seed)`; how is in the documentation of [`RandomStream`].
///
/// `Device::seed`, called after `enable_op_determinism`, is honoured too, if exactly one thread draws and has neither a seed
/// of this function nor a stream; a second thread that draws gets
/// [`Error::SeedOfAnotherThread`](crate::Error::SeedOfAnotherThread). It has no effect in a thread that has called this
/// function, under [`Determinism::seed_threads`](crate::Determinism::seed_threads), and with
/// [`OnViolation::Warn`](crate::OnViolation::Warn). Use one of the two ways of seeding, not both.
///
/// A seed belongs to a thread. A task that moves between threads, as those of rayon and tokio do, draws from whichever it
/// is on: enter a stream in it, for each piece of work that is not interrupted by an `.await`:
/// `let _draws = stream.fork_index(n).enter();`. A parameter that Burn initialises at its first use draws in the thread
/// of that use: where several threads share a model, call [`initialize`](crate::initialize) before.
pub fn set_random_seed(seed: u64) {
    LAST.set(Some(seed));
    if let Some(note) = NOTE.get() {
        note(seed);
    }
    if !is_op_determinism_enabled() {
        seeded_only::watch();
    }
    change(StreamId::current(), |thread| thread.seed(Source::of_seed(seed)));
}

/// Who is told of each seed.
static NOTE: OnceLock<fn(u64)> = OnceLock::new();

/// Has `note` called with each seed that a thread is given from now on.
pub(crate) fn note_seeds(note: fn(u64)) {
    let _ = NOTE.set(note);
}

thread_local! {
    /// The last seed that this thread was given, for [`seed_in_words`].
    static LAST: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The seed that this thread draws from where it has entered nothing: the number, or the start of the hash of the key where
/// the key is not of a number that this process knows, as after a state was restored or `Device::seed` was called. `None`
/// without a seed, and with that of all threads.
pub(crate) fn seed_in_words(of_all_threads: Option<u64>) -> Option<String> {
    let (seeded, _) = lock().get(&StreamId::current())?.save();
    let key = seeded?.key();
    let is_of = |seed: &u64| key_of_seed(*seed) == key;
    match (LAST.get().filter(is_of), of_all_threads.filter(is_of)) {
        (Some(seed), _) => Some(seed.to_string()),
        (None, Some(_)) => None,
        (None, None) => Some(format!("key {}", &blake3::hash(&key).to_hex()[..16])),
    }
}

/// Ends this thread's seed, and what it has entered.
pub(crate) fn unseed() {
    let thread = StreamId::current();
    if with_thread(thread, |thread| thread.source().is_some()) {
        change(thread, Thread::unseed);
    }
}
