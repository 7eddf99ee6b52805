//! Messages on a connection: a kind, a length, the contents, and a tag of all three under the connection's key.

use std::io::{self, Read, Write};

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// What all processes must have alike.
    Facts = 1,
    /// All processes have come.
    Ready,
    /// A sign of life.
    Alive,
    /// The end of a process's part.
    Leave,
    /// The end of the group, with the reason.
    Fail,
    /// The samples of a process's shards in a step.
    Begin,
    /// Those of all shards.
    Begun,
    /// A process's sums of gradients.
    Nodes,
    /// The gradients.
    Sums,
    /// A process's sums of another tensor.
    Mean,
    /// The mean.
    Means,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Facts,
        Self::Ready,
        Self::Alive,
        Self::Leave,
        Self::Fail,
        Self::Begin,
        Self::Begun,
        Self::Nodes,
        Self::Sums,
        Self::Mean,
        Self::Means,
    ];

    /// As an error spells it.
    pub(super) fn spelled(self) -> &'static str {
        match self {
            Self::Facts => "the start of the group",
            Self::Ready | Self::Alive | Self::Leave | Self::Fail => "a note on the group",
            Self::Begin | Self::Begun => "the beginning",
            Self::Nodes | Self::Sums => "the gradients",
            Self::Mean | Self::Means => "a mean (`Step::mean`)",
        }
    }

    /// The bytes that contents may have.
    fn limit(self, limits: Limits) -> u64 {
        match self {
            Self::Ready | Self::Alive | Self::Leave => 0,
            Self::Facts => 1 << 16,
            Self::Fail => 1 << 14,
            Self::Begin | Self::Begun => limits.samples,
            Self::Nodes | Self::Sums => limits.gradients,
            // Nobody knows the size of a tensor that a program makes.
            Self::Mean | Self::Means => 1 << 30,
        }
    }
}

/// The bytes that the contents of messages may have, where that depends on the training.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    /// About the samples of shards.
    pub(super) samples: u64,
    /// With gradients.
    pub(super) gradients: u64,
}

/// The reasons of [`Kind::Fail`] are cut to so many bytes.
pub(super) const REASON: usize = 1 << 13;

/// A message.
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) contents: Vec<u8>,
}

/// What makes the tags of one direction of a connection.
pub(super) struct Seal {
    key: [u8; 32],
    /// Messages so far: none can be repeated, left out or moved.
    number: u64,
}

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, number: 0 }
    }

    fn tag(&mut self, header: &[u8; HEADER], contents: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.number.to_le_bytes()).update(header).update(contents);
        self.number += 1;
        hasher.finalize()
    }
}

/// Bytes of the kind and the length.
const HEADER: usize = 9;

/// Bytes that are allocated at a time, before they have come.
const PIECE: usize = 1 << 20;

/// Sends a message.
///
/// # Errors
///
/// The system's.
pub(super) fn send(mut to: impl Write, seal: &mut Seal, kind: Kind, contents: &[u8]) -> io::Result<()> {
    let mut header = [kind as u8; HEADER];
    header[1..].copy_from_slice(&(contents.len() as u64).to_le_bytes());
    let tag = seal.tag(&header, contents);
    to.write_all(&header)?;
    to.write_all(contents)?;
    to.write_all(tag.as_bytes())
}

/// Why there is no message.
pub(super) enum Fault {
    System(io::Error),
    /// What came is none.
    Contents(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Receives a message, with contents within the `limits()` of that time.
pub(super) fn receive(mut from: impl Read, seal: &mut Seal, limits: impl Fn() -> Limits) -> Result<Message, Fault> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == header[0]);
    let kind = kind.ok_or_else(|| Fault::Contents(format!("a message of the unknown kind {}", header[0])))?;
    let length = u64::from_le_bytes(header[1..].try_into().expect("eight bytes"));
    let limit = kind.limit(limits());
    if length > limit {
        return Err(Fault::Contents(format!(
            "{length} bytes for {}, which takes {limit} at most (are the models alike?)",
            kind.spelled()
        )));
    }
    let mut contents = Vec::new();
    while (contents.len() as u64) < length {
        let start = contents.len();
        // At most `PIECE`, so it is a `usize`.
        let more = (length - start as u64).min(PIECE as u64) as usize;
        contents.resize(start + more, 0);
        from.read_exact(&mut contents[start..])?;
    }
    let mut tag = [0; blake3::OUT_LEN];
    from.read_exact(&mut tag)?;
    // In constant time.
    match seal.tag(&header, &contents) == blake3::Hash::from(tag) {
        true => Ok(Message { kind, contents }),
        false => Err(Fault::Contents(format!("the tag of {} is not that of its {length} bytes", kind.spelled()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(messages: &[(Kind, &[u8])]) -> Vec<u8> {
        let (mut bytes, mut seal) = (Vec::new(), Seal::new([7; 32]));
        messages.iter().for_each(|(kind, contents)| send(&mut bytes, &mut seal, *kind, contents).expect("memory"));
        bytes
    }

    fn received(mut bytes: &[u8], limit: u64) -> Result<Vec<(Kind, Vec<u8>)>, Option<String>> {
        let (mut messages, mut seal) = (Vec::new(), Seal::new([7; 32]));
        while !bytes.is_empty() {
            match receive(&mut bytes, &mut seal, || Limits { samples: limit, gradients: limit }) {
                Ok(Message { kind, contents }) => messages.push((kind, contents)),
                Err(Fault::System(_)) => return Err(None),
                Err(Fault::Contents(reason)) => return Err(Some(reason)),
            }
        }
        Ok(messages)
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let long: Vec<u8> = (0..PIECE * 2 + 3).map(|at| at as u8).collect();
        let bytes = sent(&[(Kind::Begin, b"abc"), (Kind::Alive, b""), (Kind::Sums, &long)]);
        let expected = vec![(Kind::Begin, b"abc".to_vec()), (Kind::Alive, Vec::new()), (Kind::Sums, long.clone())];
        assert_eq!(received(&bytes, long.len() as u64), Ok(expected));
    }

    #[test]
    fn what_is_changed_on_the_way_is_no_message() {
        let bytes = sent(&[(Kind::Begin, b"abc"), (Kind::Begun, b"abcd")]);
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[byte] ^= 1 << bit;
                assert!(received(&changed, 100).is_err(), "bit {bit} of byte {byte}");
            }
        }
        for end in 1..bytes.len() {
            assert!(received(&bytes[..end], 100).is_err() || end == bytes.len() - 45, "{end} bytes");
        }
        let once = sent(&[(Kind::Begin, b"abc")]);
        assert!(received(&[&once[..], &once[..]].concat(), 100).is_err(), "a message is repeated");
    }

    #[test]
    fn a_length_is_bounded_before_anything_is_allocated() {
        let mut header = vec![Kind::Nodes as u8];
        header.extend(u64::MAX.to_le_bytes());
        let reason = received(&header, 1 << 20).expect_err("too long").expect("no end of the stream");
        assert!(reason.contains("18446744073709551615 bytes for the gradients"), "{reason}");
        // One within the limit, of which nothing follows: no more than a piece of it is allocated.
        let mut header = vec![Kind::Nodes as u8];
        header.extend((1_u64 << 50).to_le_bytes());
        assert_eq!(received(&header, u64::MAX), Err(None));
        assert!(received(&[99; 64], 100).expect_err("unknown").expect("no end").contains("unknown kind 99"));
    }
}
