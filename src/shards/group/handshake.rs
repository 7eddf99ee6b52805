//! The start of a connection: both processes say who they are, and prove that they have the group's token.

use super::error::GroupError;
use super::wire::Seal;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The first bytes of both directions.
const MAGIC: &[u8; 16] = b"burn-det. group\n";

/// The version of what follows.
const PROTOCOL: u32 = 1;

/// Bytes of the crate's version, filled up with zeros.
const VERSION: usize = 32;

/// Bytes of a greeting: the magic, the protocol, the crate's version, and a nonce.
const GREETING: usize = MAGIC.len() + 4 + VERSION + 32;

type Greeting = [u8; GREETING];

/// The token of a group, of which only this is kept.
#[derive(Clone)]
pub(super) struct Token([u8; 32]);

impl Token {
    pub(super) fn new(token: &str) -> Self {
        Self(blake3::derive_key("burn-deterministic 1 token of a group of processes", token.as_bytes()))
    }

    /// What only one who has the token can compute, for these greetings.
    fn proves(&self, what: &str, greetings: &[Greeting; 2]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&greetings[0]).update(&greetings[1]).update(what.as_bytes()).finalize()
    }
}

/// Which end of a connection this process is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Rank 0.
    Leads,
    /// Another rank.
    Joins,
}

/// The tags of both directions.
pub(super) struct Seals {
    pub(super) out: Seal,
    pub(super) into: Seal,
}

/// Greets, and proves the token to each other: rank 0 after the other, so that one who has none learns nothing.
///
/// # Errors
///
/// [`GroupError::Stranger`], [`GroupError::Differ`], [`GroupError::Token`], [`GroupError::Lost`] and
/// [`GroupError::Silent`], which all name `peer`.
pub(super) fn greet(
    mut stream: &TcpStream,
    side: Side,
    token: &Token,
    own: &str,
    peer: &str,
    silence: Duration,
) -> Result<Seals, GroupError> {
    let lost = |error| lost(peer, silence, &error);
    let ours = greeting();
    stream.write_all(&ours).map_err(lost)?;
    let mut theirs = [0; GREETING];
    // What speaks something else may send less.
    stream.read_exact(&mut theirs[..MAGIC.len()]).map_err(lost)?;
    if theirs[..MAGIC.len()] != MAGIC[..] {
        let reason = format!("it begins with {:?}", String::from_utf8_lossy(&theirs[..MAGIC.len()]));
        return Err(GroupError::Stranger { peer: peer.to_owned(), reason });
    }
    stream.read_exact(&mut theirs[MAGIC.len()..MAGIC.len() + 4]).map_err(lost)?;
    let differ = |what: &str, theirs: String, ours: String| GroupError::Differ {
        peer: peer.to_owned(),
        own: own.to_owned(),
        what: what.to_owned(),
        theirs,
        ours,
        remedy: "run the same build everywhere",
    };
    if protocol(&theirs) != PROTOCOL {
        return Err(differ("protocol", protocol(&theirs).to_string(), PROTOCOL.to_string()));
    }
    stream.read_exact(&mut theirs[MAGIC.len() + 4..]).map_err(lost)?;
    if version(&theirs) != version(&ours) {
        return Err(differ("burn-deterministic", version(&theirs), version(&ours)));
    }

    let greetings = if side == Side::Leads { [ours, theirs] } else { [theirs, ours] };
    let proofs = ["a process that joins", "rank 0"].map(|who| token.proves(who, &greetings));
    let is_proved = |mut stream: &TcpStream, expected: &blake3::Hash| {
        let mut proof = [0; blake3::OUT_LEN];
        stream.read_exact(&mut proof).map_err(lost)?;
        // In constant time.
        match blake3::Hash::from(proof) == *expected {
            true => Ok(()),
            false => Err(GroupError::Token { peer: peer.to_owned(), own: own.to_owned() }),
        }
    };
    match side {
        Side::Leads => {
            let proved = is_proved(stream, &proofs[0]);
            // Zeros tell a process with another token that its proof is none.
            let proof = if proved.is_ok() { *proofs[1].as_bytes() } else { [0; blake3::OUT_LEN] };
            stream.write_all(&proof).map_err(lost)?;
            proved?;
        }
        Side::Joins => {
            stream.write_all(proofs[0].as_bytes()).map_err(lost)?;
            is_proved(stream, &proofs[1])?;
        }
    }
    let keys = ["messages of rank 0", "messages to rank 0"].map(|what| token.proves(what, &greetings));
    let [of_leader, of_other] = keys.map(|key| Seal::new(*key.as_bytes()));
    Ok(match side {
        Side::Leads => Seals { out: of_leader, into: of_other },
        Side::Joins => Seals { out: of_other, into: of_leader },
    })
}

/// What is lost when a read or a write fails.
pub(super) fn lost(peer: &str, silence: Duration, error: &std::io::Error) -> GroupError {
    let peer = peer.to_owned();
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => GroupError::Silent { peer, silence },
        ErrorKind::UnexpectedEof => GroupError::Lost { peer, reason: "it was closed".to_owned() },
        _ => GroupError::Lost { peer, reason: error.to_string() },
    }
}

fn greeting() -> Greeting {
    let mut greeting = [0; GREETING];
    let (magic, rest) = greeting.split_at_mut(MAGIC.len());
    magic.copy_from_slice(MAGIC);
    let (protocol, rest) = rest.split_at_mut(4);
    protocol.copy_from_slice(&PROTOCOL.to_le_bytes());
    let (version, nonce) = rest.split_at_mut(VERSION);
    let ours = crate::environment::version();
    version[..ours.len()].copy_from_slice(ours.as_bytes());
    nonce.copy_from_slice(&fresh());
    greeting
}

/// 32 bytes that nobody has seen before: the standard library seeds its hash maps from the system's random numbers.
fn fresh() -> [u8; 32] {
    use std::hash::{BuildHasher, RandomState};
    let mut hasher = blake3::Hasher::new_derive_key("burn-deterministic 1 nonce of a group of processes");
    for part in 0..8_u64 {
        hasher.update(&RandomState::new().hash_one(part).to_le_bytes());
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    hasher.update(&since.as_nanos().to_le_bytes()).update(&std::process::id().to_le_bytes());
    *hasher.finalize().as_bytes()
}

fn protocol(greeting: &Greeting) -> u32 {
    u32::from_le_bytes(greeting[MAGIC.len()..MAGIC.len() + 4].try_into().expect("four bytes"))
}

fn version(greeting: &Greeting) -> String {
    let version = &greeting[MAGIC.len() + 4..][..VERSION];
    let end = version.iter().position(|byte| *byte == 0).unwrap_or(VERSION);
    String::from_utf8_lossy(&version[..end]).into_owned()
}
