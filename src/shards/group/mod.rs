//! A group of processes, on one machine or several, that compute the shards of one training.
//!
//! Rank 0 listens, and each other rank has a connection to it. All messages are between rank 0 and another rank, and a
//! step has two rounds of them:
//!
//! ```text
//! others -> 0   the samples of their shards            0 -> others   those of all shards
//! others -> 0   their sums of gradients                0 -> others   the gradients
//! ```
//!
//! # On the wire
//!
//! Numbers are little-endian. Both ends first send a greeting of 84 bytes, which is never longer or shorter up to its
//! protocol:
//!
//! ```text
//! 16 bytes   "burn-det. group\n"
//!  4 bytes   the protocol, 1
//! 32 bytes   the version of this crate, filled up with zeros
//! 32 bytes   a nonce
//! ```
//!
//! Then each proves that it has the token, the process that joins first, by 32 bytes of BLAKE3 keyed with
//! `derive_key("burn-deterministic 1 token of a group of processes", token)`, over both greetings, that of rank 0
//! first, and `a process that joins` or `rank 0`. The token itself is neither sent nor kept.
//!
//! What follows are messages: a byte for the kind, 8 for the length, the contents, and 32 bytes of BLAKE3 of the
//! message's number, from 0, and all of that, keyed for each direction by the token and the greetings. So a message
//! that was changed, cut, repeated or left out is an error. Contents are not secret: anyone on the way can read
//! gradients.
//!
//! The first message has what all processes must have alike, as JSON. A length is compared with what the model's
//! sums can take before anything is allocated for it.

mod error;
mod facts;
mod handshake;
mod meet;
mod members;
pub(super) mod messages;
mod wire;

pub use error::GroupError;
pub(super) use members::Members;
pub(super) use wire::Kind;

use burn_core::tensor::Device;
use facts::Facts;
use handshake::Token;
use meet::Meeting;
use std::fmt;
use std::net::TcpListener;
use std::time::Duration;

/// Where rank 0 listens without [`Group::address`].
const ADDRESS: &str = "127.0.0.1:29812";

/// The place of this process in a group, which [`Shards::in_group`](super::Shards::in_group) joins.
pub struct Group {
    rank: usize,
    size: usize,
    token: Token,
    address: String,
    listener: Option<TcpListener>,
    silence: Duration,
    wait: Duration,
}

impl Group {
    /// The process of this `rank`, from 0, of `size`. Who has the `token` may take part: any text that is hard to
    /// guess, the same in all processes. It is neither sent nor printed.
    pub fn new(rank: usize, size: usize, token: &str) -> Self {
        Self {
            rank,
            size,
            token: Token::new(token),
            address: ADDRESS.to_owned(),
            listener: None,
            silence: Duration::from_secs(10),
            wait: Duration::from_secs(60),
        }
    }

    /// The address at which rank 0 listens, `host:port`; without it `127.0.0.1:29812`, which other machines do not
    /// reach. `0.0.0.0:29812` on rank 0 listens at all addresses of its machine, of which the others are given one.
    pub fn address(self, address: impl Into<String>) -> Self {
        Self { address: address.into(), ..self }
    }

    /// What rank 0 listens with, in place of the address: bound to a port that the system has chosen, say.
    pub fn listener(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// After how long without any sign of life another process is given up; without it 10 seconds, and the same in all
    /// processes. However long a process computes, it gives signs of life.
    ///
    /// # Panics
    ///
    /// When it is less than 100 milliseconds.
    pub fn silence(self, silence: Duration) -> Self {
        assert!(silence >= Duration::from_millis(100), "a bound of silence of {silence:?}: give at least 100 ms");
        Self { silence, ..self }
    }

    /// How long the other processes are waited for at the start; without it a minute.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Meets the other processes.
    pub(super) fn meet(self, shards: usize, device: &Device) -> Result<Members, GroupError> {
        let Self { rank, size, token, address, listener, silence, wait } = self;
        if rank >= size || size > shards {
            return Err(GroupError::Size { rank, size, shards });
        }
        let facts = Facts::new(rank, size, shards, silence, device);
        let meeting = Meeting { address: &address, token: &token, silence, wait, size, shards, facts };
        match rank {
            0 => meeting.lead(listener),
            _ => meeting.join(rank),
        }
    }
}

/// The shards of process or device `number` of `size`: from `ceil(number * count / size)` up to that of the next one.
pub(super) fn shards_of(number: usize, size: usize, count: usize) -> std::ops::Range<usize> {
    let first = |number: usize| (number as u128 * count as u128).div_ceil(size as u128) as usize;
    first(number)..first(number + 1)
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, size, address, silence, wait, .. } = self;
        let mut all = f.debug_struct("Group");
        all.field("rank", rank).field("size", size).field("address", address);
        all.field("silence", silence).field("wait", wait).finish_non_exhaustive()
    }
}
