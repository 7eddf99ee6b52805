//! Random numbers. They are addressed, not consumed: a random operation draws words of its own under the key of the
//! stream that its thread draws from. How keys are derived, and which words an operation draws, is in the documentation of [`RandomStream`].

mod device_seed;
mod ended;
mod position;
mod repeat;
mod rng;
mod seeded_only;
mod state;
mod stream;
mod thread;

use crate::enable::{OnViolation, determinism, is_op_determinism_enabled};
use crate::error::Error;
use burn_backend::{DType, Shape, StreamId};
use burn_cubecl::CubeDevice;
use repeat::Draw;
use std::collections::HashMap;
use std::sync::Mutex;
use thread::{MAX_CHANGES, Source, Thread};

pub(crate) use device_seed::{plant, waited};
pub(crate) use position::{devices, is_run_unasked, issued, of_operation, run_unasked, seen, tensors_exist};
pub(crate) use repeat::repeatable;
pub use rng::StreamRng;
pub use state::{RandomState, random_state, restore_random_state};
pub use stream::{EnteredStream, RandomStream};

/// By Burn's stream, which is how an operation that runs on the device's thread knows the thread that issued it.
/// Maps are looked up by key only, never iterated.
static THREADS: Mutex<Option<HashMap<StreamId, Thread>>> = Mutex::new(None);

/// What operations draw from that come neither over Burn's stream nor from a thread with a stream.
static BACKEND: Mutex<Option<Source>> = Mutex::new(None);

/// Seeds every random operation that this thread issues from now on.
///
/// Call it before the first module is initialised; before or after
/// [`enable_op_determinism`](crate::enable_op_determinism) makes no difference. In a program that never enables
/// determinism it does nothing, and a warning on standard error says so. Calling it again starts the same numbers again, and ends what the thread has [entered](RandomStream::enter). Another
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
    change(StreamId::current(), |thread| thread.seed(root(seed)));
}

/// Seeds the operations that a server or a program runs on the backend itself: `Backend::seed`.
///
/// Behind a server the seed arrives on one thread and operations run on others, so it holds for all of them.
pub(crate) fn set_backend_seed(seed: u64) {
    let mut backend = BACKEND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *backend = Some(root(seed));
}

/// What a thread draws from, and what it has drawn.
fn with_thread<T>(stream: StreamId, body: impl FnOnce(&mut Thread) -> T) -> T {
    let seed = determinism().thread_seed;
    let is_new = ended::touch(stream);
    let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let thread = threads.get_or_insert_default().entry(stream).or_insert_with(|| Thread::new(seed.map(root)));
    thread.users += usize::from(is_new);
    body(thread)
}

/// The root of a seed, nothing drawn yet.
fn root(seed: u64) -> Source {
    Source::new(*RandomStream::from_seed(seed).key())
}

/// Changes what a thread draws from, for what it issues from now on.
fn change<T>(stream: StreamId, change: impl FnOnce(&mut Thread) -> T) -> T {
    ended::forget();
    let position = position::now();
    let (result, changes) = with_thread(stream, |thread| {
        let result = change(thread);
        (result, thread.note(position))
    });
    if changes > MAX_CHANGES {
        // Where a device fails nothing is forgotten, and the failure is the program's to read from its tensors.
        let _ = settle(stream).map(|()| with_thread(stream, Thread::forget));
    }
    result
}

/// Runs what a thread has issued, so that all its random operations are counted.
///
/// # Errors
///
/// [`Error::Device`] when a device cannot run its operations.
fn settle(stream: StreamId) -> Result<(), Error> {
    let position = position::now();
    position::run_unasked(stream, || position::run_queued(stream))?;
    with_thread(stream, |thread| thread.settle(position));
    Ok(())
}

/// Runs `body`, and then what it has issued in this thread, without waiting for the device. What fails is the program's
/// to read from its tensors.
pub(crate) fn begun<T>(body: impl FnOnce() -> T) -> T {
    if !is_op_determinism_enabled() {
        return body();
    }
    let before = position::tensors_made();
    let result = body();
    if position::tensors_made() != before {
        let _ = position::run_queued(StreamId::current());
    }
    result
}

/// Ends this thread's seed, and what it has entered.
pub(crate) fn unseed() {
    let thread = StreamId::current();
    if with_thread(thread, |thread| thread.source().is_some()) {
        change(thread, Thread::unseed);
    }
}

/// The key and stream of a random operation of the thread that issued the operation being run.
///
/// # Errors
///
/// [`Error::Unseeded`] when that thread had no stream when it issued the operation, [`Error::SeedOfAnotherThread`] when
/// another thread draws from the seed of `Device::seed`, [`Error::Uncounted`] when the thread's state was taken since, and
/// had to count it.
pub(crate) fn next_stream(
    operation: &'static str,
    shape: &Shape,
    dtype: DType,
    device: &CubeDevice,
) -> Result<Draw, Error> {
    repeat::again(|| draw(operation, shape, dtype, device))
}

/// [`next_stream`], of an operation that runs for the first time.
fn draw(operation: &'static str, shape: &Shape, dtype: DType, device: &CubeDevice) -> Result<Draw, Error> {
    let position = position::of_operation();
    if position.is_none() {
        seeded_only::drawn();
    }
    // Outside Burn's stream an operation runs where it is issued, and has no position.
    let thread_seed = position.and_then(|_| determinism().thread_seed);
    if let (Some(position), None, OnViolation::Error) = (position, thread_seed, determinism().on_violation) {
        device_seed::honour(operation, shape, dtype, position, device)?;
    }
    let of_thread = {
        let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let threads = threads.get_or_insert_default();
        let thread = match thread_seed {
            Some(seed) => Some(threads.entry(StreamId::current()).or_insert_with(|| Thread::new(Some(root(seed))))),
            None => threads.get_mut(&StreamId::current()),
        };
        if let Some(thread) = &thread
            && position.is_some_and(|position| thread.is_settled(position))
        {
            return Err(Error::Uncounted { operation, device: format!("{device:?}") });
        }
        thread.and_then(|thread| thread.draw(position, device.to_id()))
    };
    let drawn = of_thread.or_else(|| {
        let mut backend = BACKEND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Some(backend.as_mut().filter(|_| position.is_none())?.draw(device.to_id()))
    });
    let device = || format!("{device:?}");
    drawn.ok_or_else(|| Error::Unseeded { operation, shape: shape.clone(), dtype, device: device() })
}
