//! Why a group of processes cannot form, or has ended.

use crate::error::debug_as_display;
use std::time::Duration;

debug_as_display!(GroupError);

/// Why processes cannot train together, or do not any more. Peers are named by rank and address.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The rank, the number of processes and the number of shards do not fit together.
    #[error(
        "rank {rank} of {size} processes with {shards} shards: want a rank below the number of processes, and at \
         least as many shards as processes"
    )]
    Size {
        /// The rank of this process.
        rank: usize,
        /// The number of processes.
        size: usize,
        /// The number of shards of all.
        shards: usize,
    },

    /// Rank 0 cannot listen at the group's address, or another rank cannot reach it.
    #[error(
        "{address} cannot be {used}: {reason}; give all processes the address at which rank 0 listens \
         (`Group::address`)"
    )]
    Address {
        /// The address.
        address: String,
        /// `listened at`, or `reached within` a time.
        used: String,
        /// The system's error.
        reason: String,
    },

    /// Processes have not come.
    #[error(
        "of the group at {address} {absent} did not come within {wait:?}{strangers}; start every rank, or wait \
         longer (`Group::wait`)"
    )]
    Absent {
        /// Where rank 0 listens.
        address: String,
        /// The ranks.
        absent: String,
        /// How long was waited for them.
        wait: Duration,
        /// Connections that were no process of a group; empty where there were none.
        strangers: String,
    },

    /// A process at the address of the group speaks something else.
    #[error("{peer} is no process of a group of burn-deterministic: {reason}")]
    Stranger {
        /// Where it is.
        peer: String,
        /// What it sent.
        reason: String,
    },

    /// A process has another token.
    #[error("{peer} has another token than {own}: give all processes of a group the same (`Group::new`)")]
    Token {
        /// The peer.
        peer: String,
        /// This process.
        own: String,
    },

    /// A process differs in what all must have alike.
    #[error("{peer} has {what} {theirs}, and {own} has {ours}: {remedy}")]
    Differ {
        /// The peer.
        peer: String,
        /// This process.
        own: String,
        /// In what.
        what: String,
        /// The peer's value.
        theirs: String,
        /// That of this process.
        ours: String,
        /// What to do.
        remedy: &'static str,
    },

    /// Two processes have one rank.
    #[error("{peer} has the rank of {other}: give each process a rank of its own, from 0")]
    Rank {
        /// The one that came later.
        peer: String,
        /// The one that has joined.
        other: String,
    },

    /// A connection has ended.
    #[error(
        "the connection to {peer} has ended: {reason}; see whether that process has ended or the network has failed, and start all \
         processes again from a checkpoint"
    )]
    Lost {
        /// The peer.
        peer: String,
        /// The system's error.
        reason: String,
    },

    /// A process hangs, or the network does: it has sent no sign of life.
    #[error(
        "{peer} has sent nothing for {silence:?}, not even that it lives; see whether that process is stopped or the network is down, \
         and start all processes again from a checkpoint"
    )]
    Silent {
        /// The peer.
        peer: String,
        /// For how long.
        silence: Duration,
    },

    /// A process has ended its part of the training.
    #[error("{peer} has left the group; run as many steps in all processes")]
    Left {
        /// The peer.
        peer: String,
    },

    /// What a process sent is no message of a group.
    #[error("what {peer} sent is no message of this group: {reason}")]
    Message {
        /// The peer.
        peer: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Another process has ended the group, and says why.
    #[error("{peer} has ended the group: {reason}")]
    Told {
        /// The peer.
        peer: String,
        /// Its error.
        reason: String,
    },

    /// The group has ended before.
    #[error("this group has ended: {reason}; start all processes again from a checkpoint")]
    Over {
        /// With which error.
        reason: String,
    },
}
