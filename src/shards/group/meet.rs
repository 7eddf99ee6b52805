//! How the processes of a group find each other.

use super::error::GroupError;
use super::facts::Facts;
use super::handshake::{Seals, Side, Token, greet, lost};
use super::members::Members;
use super::wire::{Fault, Kind, Limits, Message, receive, send};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked for what has come.
const LOOK: Duration = Duration::from_millis(5);

/// How often rank 0 is tried to be reached.
const RETRY: Duration = Duration::from_millis(50);

/// Connections that have not said yet who they are, at a time.
const UNKNOWN: usize = 64;

/// What a process has to meet the others with.
pub(super) struct Meeting<'a> {
    pub(super) address: &'a str,
    pub(super) token: &'a Token,
    pub(super) silence: Duration,
    pub(super) wait: Duration,
    pub(super) size: usize,
    pub(super) shards: usize,
    pub(super) facts: Facts,
}

/// A connection that has shown that it has the token.
struct Arrival {
    stream: TcpStream,
    address: SocketAddr,
    seals: Seals,
    facts: Facts,
}

impl Arrival {
    /// Finds out who a connection to rank 0 is.
    fn of(
        stream: TcpStream,
        address: SocketAddr,
        token: &Token,
        ours: &Facts,
        silence: Duration,
    ) -> Result<Self, GroupError> {
        let peer = format!("a process at {address}");
        prepare(&stream, silence).map_err(|error| lost(&peer, silence, &error))?;
        let mut seals = greet(&stream, Side::Leads, token, "rank 0", &peer, silence)?;
        let facts = receive_facts(&stream, &mut seals, &peer, silence)?;
        let peer = spelled(facts.rank, &address.to_string());
        send(&stream, &mut seals.out, Kind::Facts, &ours.encode()).map_err(|error| lost(&peer, silence, &error))?;
        ours.check(&facts, "rank 0", &peer)?;
        Ok(Self { stream, address, seals, facts })
    }
}

impl Meeting<'_> {
    /// Waits for all other ranks, as rank 0.
    ///
    /// # Errors
    ///
    /// When one does not come, or differs; those that have come are told.
    pub(super) fn lead(self, listener: Option<TcpListener>) -> Result<Members, GroupError> {
        let unusable = |error: std::io::Error| GroupError::Address {
            address: self.address.to_owned(),
            used: "listened at".to_owned(),
            reason: error.to_string(),
        };
        let listener = listener.map_or_else(|| TcpListener::bind(self.address), Ok).map_err(unusable)?;
        listener.set_nonblocking(true).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let members = Members::new(0, self.size, self.shards, self.silence);
        let mut joined: Vec<Option<String>> = vec![None; self.size];
        let (arrivals, arrived) = channel();
        let (mut unknown, mut strangers) = (0, Vec::new());
        let since = Instant::now();
        while members.connected() + 1 < self.size {
            while unknown < UNKNOWN
                && let Ok((stream, address)) = listener.accept()
            {
                unknown += 1;
                self.receive_arrival(stream, address, &arrivals);
            }
            while let Ok(arrival) = arrived.try_recv() {
                unknown -= 1;
                match arrival {
                    Ok(arrival) => self.admit(arrival, &members, &mut joined)?,
                    // A process of another version or with another token is meant for a group; what speaks something
                    // else, or nothing, has nothing to do with this one.
                    Err(failure @ (GroupError::Differ { .. } | GroupError::Token { .. })) => {
                        return Err(members.fail(failure));
                    }
                    Err(stranger) => strangers.push(stranger.to_string()),
                }
            }
            // One that has come may fail while others are waited for.
            if let Some((_, Err(failure))) = members.next(Some(LOOK)) {
                return Err(members.fail(failure));
            }
            if since.elapsed() > self.wait {
                let absent = (1..self.size).filter(|rank| joined[*rank].is_none()).map(|rank| format!("rank {rank}"));
                return Err(members.fail(GroupError::Absent {
                    address: address.to_string(),
                    absent: absent.collect::<Vec<_>>().join(", "),
                    wait: self.wait,
                    strangers: strangers.first().map_or_else(String::new, |first| {
                        format!(" ({} other connections were no process of a group: {first})", strangers.len())
                    }),
                }));
            }
        }
        members.complete();
        members.send(Kind::Ready, &[])?;
        Ok(members)
    }

    /// Has a thread find out who a connection is, since one that says nothing is waited for.
    fn receive_arrival(&self, stream: TcpStream, address: SocketAddr, to: &Sender<Result<Arrival, GroupError>>) {
        let (token, ours, silence, to) = (self.token.clone(), self.facts.clone(), self.silence, to.clone());
        let arrive = move || {
            // Nobody waits for it any more where the group has failed.
            let _ = to.send(Arrival::of(stream, address, &token, &ours, silence));
        };
        // Without a thread the connection is closed, and its process says so.
        let _ = thread::Builder::new().name("group meets".to_owned()).spawn(arrive);
    }

    fn admit(&self, arrival: Arrival, members: &Members, joined: &mut [Option<String>]) -> Result<(), GroupError> {
        let Arrival { stream, address, mut seals, facts } = arrival;
        let peer = spelled(facts.rank, &address.to_string());
        let own = "rank 0, which listens".to_owned();
        let other = match joined.get(facts.rank) {
            _ if facts.rank == 0 => Some(own),
            Some(other) => other.clone(),
            None => Some(format!("no process of {}", self.size)),
        };
        if let Some(other) = other {
            let failure = GroupError::Rank { peer, other };
            // It finds out that the connection has ended where it cannot be told.
            let _ = send(&stream, &mut seals.out, Kind::Fail, failure.to_string().as_bytes());
            return Err(members.fail(failure));
        }
        joined[facts.rank] = Some(peer.clone());
        members.add(facts.rank, peer, stream, seals).map_err(|failure| members.fail(failure))
    }

    /// Goes to rank 0, as another rank, and waits until all have come.
    ///
    /// # Errors
    ///
    /// When rank 0 cannot be reached or differs, or when the group fails.
    pub(super) fn join(self, rank: usize) -> Result<Members, GroupError> {
        let own = format!("rank {rank}");
        let stream = self.reach()?;
        let address = stream.peer_addr().map_or_else(|_| self.address.to_owned(), |address| address.to_string());
        let peer = spelled(0, &address);
        prepare(&stream, self.silence).map_err(|error| lost(&peer, self.silence, &error))?;
        let mut seals = greet(&stream, Side::Joins, self.token, &own, &peer, self.silence)?;
        send(&stream, &mut seals.out, Kind::Facts, &self.facts.encode())
            .map_err(|error| lost(&peer, self.silence, &error))?;
        let facts = receive_facts(&stream, &mut seals, &peer, self.silence)?;
        self.facts.check(&facts, &own, &peer)?;
        let members = Members::new(rank, self.size, self.shards, self.silence);
        members.add(0, peer, stream, seals).map_err(|failure| members.fail(failure))?;
        members.complete();
        match members.next(None) {
            Some((_, Ok(Message { kind: Kind::Ready, .. }))) => Ok(members),
            Some((_, Err(failure))) => Err(members.fail(failure)),
            _ => Err(members.fail(GroupError::Message {
                peer: members.peer(0),
                reason: "it has not said that all have come".to_owned(),
            })),
        }
    }

    /// A connection to rank 0, which may start later.
    fn reach(&self) -> Result<TcpStream, GroupError> {
        let since = Instant::now();
        loop {
            let tried = self.address.to_socket_addrs().and_then(|addresses| {
                let mut last = std::io::Error::other("the name has no address");
                for address in addresses {
                    match TcpStream::connect_timeout(&address, self.silence) {
                        Ok(stream) => return Ok(stream),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            });
            match tried {
                Ok(stream) => return Ok(stream),
                Err(error) if since.elapsed() > self.wait => {
                    return Err(GroupError::Address {
                        address: self.address.to_owned(),
                        used: format!("reached within {:?}", self.wait),
                        reason: error.to_string(),
                    });
                }
                Err(_) => thread::sleep(RETRY),
            }
        }
    }
}

fn spelled(rank: usize, address: &str) -> String {
    format!("rank {rank} ({address})")
}

fn prepare(stream: &TcpStream, silence: Duration) -> std::io::Result<()> {
    // One that a listener has accepted may be as the listener is.
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silence))?;
    stream.set_write_timeout(Some(silence))
}

fn receive_facts(stream: &TcpStream, seals: &mut Seals, peer: &str, silence: Duration) -> Result<Facts, GroupError> {
    let reason = match receive(stream, &mut seals.into, Limits::default) {
        Ok(Message { kind: Kind::Facts, contents }) => return Facts::decode(&contents, peer),
        Ok(Message { kind, .. }) => format!("{} comes first", kind.spelled()),
        Err(Fault::System(error)) => return Err(lost(peer, silence, &error)),
        Err(Fault::Contents(reason)) => reason,
    };
    Err(GroupError::Message { peer: peer.to_owned(), reason })
}
