//! The seed of a thread.

use super::seeded_only;
use super::thread::{Source, Thread};
use super::threads::{change, with_thread};
use crate::settings::is_op_determinism_enabled;
use burn_backend::StreamId;

/// Seeds every random operation that this thread issues from now on.
///
/// Call it before the first module is initialised; before or after
/// [`enable_op_determinism`](crate::enable_op_determinism) makes no difference. In a program that never enables
/// determinism it does nothing, and a warning on standard error says so. Calling it again starts the same numbers again, and ends what the thread has [entered](crate::RandomStream::enter). Another
/// thread that draws random numbers has a seed or a stream of its own, or that of
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
    if !is_op_determinism_enabled() {
        seeded_only::watch();
    }
    change(StreamId::current(), |thread| thread.seed(Source::of_seed(seed)));
}

/// Ends this thread's seed, and what it has entered.
pub(crate) fn unseed() {
    let thread = StreamId::current();
    if with_thread(thread, |thread| thread.source().is_some()) {
        change(thread, Thread::unseed);
    }
}
