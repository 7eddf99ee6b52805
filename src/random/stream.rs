//! The tree of streams.

use super::rng::StreamRng;
use super::thread::{Source, key_of_seed};
use super::threads::{change, with_thread};
use crate::error::Error;
use burn_backend::StreamId;
use core::fmt;
use core::marker::PhantomData;
use serde::{Deserialize, Serialize};

/// A place in the tree of random numbers: a key, and what is derived from it.
///
/// A stream is a value. Forking gives a stream whose numbers have nothing in common with its parent's or its siblings',
/// and changes nothing: `stream.fork("dropout")` is the same stream whenever and however often it is asked for,
/// whatever else was forked or drawn. So a program names what it draws, and the order in which it does so, or the
/// number of threads it uses, does not matter.
///
/// ```
/// use burn_deterministic::{RandomStream, set_random_seed};
/// use rand_core::Rng;
///
/// # fn main() -> Result<(), burn_deterministic::Error> {
/// set_random_seed(812);
/// let data = RandomStream::current()?.fork("data");
///
/// // On the host, with anything that takes a generator of rand 0.10.
/// let mut rng = data.fork("order").fork_index(3).rng();
/// let first = rng.next_u32();
/// assert_eq!(first, data.fork("order").fork_index(3).rng().next_u32());
///
/// // A thread of its own: its random tensor operations draw from the stream.
/// let worker = data.fork("worker").fork_index(0);
/// std::thread::spawn(move || {
///     let _draws = worker.enter();
///     // Tensor::random(..)
/// });
/// # Ok(())
/// # }
/// ```
///
/// # Derivation
///
/// The key is 32 bytes. `derive_key` is BLAKE3's, its first argument the context; `||` concatenates; numbers are 8
/// little-endian bytes:
///
/// ```text
/// from_seed(seed)         derive_key("burn-deterministic 1 random operations of a thread", seed)
/// stream.fork(name)       derive_key("burn-deterministic 1 stream forked by name", key || name in UTF-8)
/// stream.fork_index(n)    derive_key("burn-deterministic 1 stream forked by index", key || n)
/// internal(stream, use)   derive_key("burn-deterministic 1 stream forked by the library", key || use in UTF-8)
/// ```
///
/// `internal` is private: by it this crate forks the streams that programs give it, so that its own streams never
/// coincide with a program's forks, whatever their names. Its uses are
///
/// ```text
/// "shuffle"          the order of an epoch                   data::DataLoaderBuilder::shuffle
/// "shuffle_window"   the order of a window of samples        data::DataLoaderBuilder::shuffle_window
/// "shards"           the order of a stream's shards          data::DataLoaderBuilder::shuffle_window
/// "weighted"         the samples of an epoch, by weight      data::DataLoaderBuilder::weighted
/// "batch"            random tensor operations of a batcher   data::DataLoaderBuilder::random
/// "augment"          random numbers of a sample              data::Pipeline::augment
/// "initialize"       initial values of parameters            initialize
/// "shard"            what a shard of a batch draws           shards::Shards::step
/// "environment"      what an environment draws               rl::off_policy
/// "evaluation"       the same, in an evaluation              rl::off_policy
/// ```
///
/// and what is forked from there on is in the documentation of each. A program may compute such a key itself, and make
/// the stream of it with [`from_key`](Self::from_key).
///
/// All numbers are words of ChaCha8 under that key, each source with a 64-bit stream number of ChaCha's own:
///
/// ```text
///                                                 high 32 bits            low 32 bits
/// the n-th random operation on a device, from 0   the device's number     n
/// rng()                                           0xFFFF_FFFF             0
/// ```
///
/// The number of `Device::default()` is 0, whatever device that is: a program that uses no other draws the same numbers on all.
/// Another device has `(type << 16 | index) + 1`, with the type and index of Burn's `DeviceId`. Operations are counted from where the stream was
/// entered or the seed was set, on each device apart. From 2^32 operations on the low bits begin again under the key
/// `derive_key("burn-deterministic 1 later operations of a stream", key || n / 2^32)`. Which words an element of a tensor
/// takes, and how they become a value, is in the documentation of the package `burn-deterministic-kernels`, module
/// `random`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RandomStream {
    key: [u8; 32],
}

impl RandomStream {
    /// The root of a seed: what operations draw from after [`set_random_seed`](crate::set_random_seed) with it.
    pub fn from_seed(seed: u64) -> Self {
        Self { key: key_of_seed(seed) }
    }

    /// The stream that the calling thread draws from: the innermost one it has [entered](Self::enter), or else the root
    /// of its seed.
    ///
    /// # Errors
    ///
    /// [`Error::NoStream`] when the thread has neither.
    pub fn current() -> Result<Self, Error> {
        let key = with_thread(StreamId::current(), |thread| thread.source().map(Source::key));
        key.map(|key| Self { key }).ok_or_else(|| Error::NoStream { thread: thread_name() })
    }

    /// The stream of this name under this one.
    pub fn fork(&self, name: &str) -> Self {
        self.derive("burn-deterministic 1 stream forked by name", name.as_bytes())
    }

    /// The stream of this number under this one; none is that of a name.
    pub fn fork_index(&self, index: u64) -> Self {
        self.derive("burn-deterministic 1 stream forked by index", &index.to_le_bytes())
    }

    /// The stream for a use of this crate's own: never one that a program forks. Every use is listed in the documentation
    /// of [`RandomStream`].
    pub(crate) fn internal(&self, of: &str) -> Self {
        self.derive("burn-deterministic 1 stream forked by the library", of.as_bytes())
    }

    /// The parent's key has one length, so what follows it is unambiguous.
    fn derive(&self, context: &str, child: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        hasher.update(&self.key).update(child);
        Self { key: *hasher.finalize().as_bytes() }
    }

    /// A generator for the host, at its start; each call gives the same numbers.
    pub fn rng(&self) -> StreamRng {
        StreamRng::new(self.key)
    }

    /// Makes the random tensor operations that the calling thread issues draw from this stream, from its start, until
    /// the guard is dropped.
    ///
    /// It is how a thread gets numbers of its own, and how a part of a program gets numbers that do not depend on what
    /// was drawn before it. When the guard is dropped the thread goes on with what it drew from before, where it left
    /// off. Entering a stream twice gives the same numbers twice: fork one for each use.
    ///
    /// Operations belong to the stream that was entered when they were issued, not when a device runs them.
    pub fn enter(&self) -> EnteredStream {
        self.enter_source(Source::new(self.key))
    }

    /// [`enter`](Self::enter), where operations are numbered as on the default device, whichever device they are on.
    pub(crate) fn enter_on_any_device(&self) -> EnteredStream {
        self.enter_source(Source::on_any_device(self.key))
    }

    fn enter_source(&self, source: Source) -> EnteredStream {
        let thread = StreamId::current();
        let guard = change(thread, |thread| thread.enter(source));
        EnteredStream { thread, guard, _not_send: PhantomData }
    }

    /// The stream of a key that was derived as above, or that [`key`](Self::key) gave.
    pub fn from_key(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The key, for those who derive words themselves.
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

impl From<u64> for RandomStream {
    /// The [root](RandomStream::from_seed) of a seed, where a stream is asked for.
    fn from(seed: u64) -> Self {
        Self::from_seed(seed)
    }
}

impl fmt::Debug for RandomStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RandomStream(")?;
        self.key.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A stream is entered as long as this lives: see [`RandomStream::enter`].
///
/// It stays on its thread. Guards of one thread may be dropped in any order: the thread draws from the last stream it
/// entered of those whose guard lives.
#[must_use = "the stream is left when this is dropped"]
#[derive(Debug)]
pub struct EnteredStream {
    thread: StreamId,
    guard: u64,
    _not_send: PhantomData<*const ()>,
}

impl Drop for EnteredStream {
    fn drop(&mut self) {
        change(self.thread, |thread| thread.exit(self.guard));
    }
}

/// How the calling thread is called in an error.
fn thread_name() -> String {
    let thread = std::thread::current();
    thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned)
}
