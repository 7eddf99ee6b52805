//! The connections of a process to the others of its group.
//!
//! A thread for each connection reads it at all times, so that a process that computes is told of a failure of others,
//! and another one says every quarter of the bound of silence that this process lives. So a peer that computes for long
//! is waited for, and one that has stopped is an error within the bound.

use super::error::GroupError;
use super::handshake::{Seals, lost};
use super::messages::limit_of_samples;
use super::wire::{Fault, Kind, Limits, Message, REASON, Seal, receive, send};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long another process is tried to be told why the group ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A message of a peer, or why there will be none any more.
type Event = (usize, Result<Message, GroupError>);

/// A connection.
struct Line {
    rank: usize,
    /// As errors name it.
    peer: String,
    stream: TcpStream,
    out: Mutex<Seal>,
    silence: Duration,
    /// [`Limits::samples`] and [`Limits::gradients`].
    limit_of_samples: u64,
    limit_of_gradients: AtomicU64,
}

impl Line {
    fn send(&self, kind: Kind, contents: &[u8]) -> Result<(), GroupError> {
        self.write(&mut locked(&self.out), kind, contents)
    }

    fn write(&self, seal: &mut Seal, kind: Kind, contents: &[u8]) -> Result<(), GroupError> {
        send(&self.stream, seal, kind, contents).map_err(|error| lost(&self.peer, self.silence, &error))
    }

    /// Says why the group ends, if that is possible without waiting for long, and sends nothing any more.
    fn end(&self, kind: Kind, reason: &str) {
        let since = Instant::now();
        while since.elapsed() < LAST_WORDS {
            match self.out.try_lock() {
                Ok(mut seal) => {
                    // What cannot be sent now tells nobody: the peer finds out that the connection has ended.
                    let _ = self.stream.set_write_timeout(Some(LAST_WORDS));
                    let _ = self.write(&mut seal, kind, reason.as_bytes());
                    break;
                }
                Err(TryLockError::Poisoned(_)) => break,
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            }
        }
        // The other direction stays open: a system drops what it has sent where it is sent something after.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn read(&self, seal: &mut Seal) -> Result<Message, GroupError> {
        let limits =
            || Limits { samples: self.limit_of_samples, gradients: self.limit_of_gradients.load(Ordering::Relaxed) };
        match receive(&self.stream, seal, limits) {
            Ok(message) => Ok(message),
            Err(Fault::System(error)) => Err(lost(&self.peer, self.silence, &error)),
            Err(Fault::Contents(reason)) => Err(GroupError::Message { peer: self.peer.clone(), reason }),
        }
    }
}

/// What the threads of the connections have in common.
#[derive(Default)]
struct Common {
    lines: Mutex<Vec<Arc<Line>>>,
    /// Why the group has ended.
    failure: Mutex<Option<GroupError>>,
    /// Held while a result is sent to all: who leaves after it ends nothing before all have it.
    sending: Mutex<()>,
}

impl Common {
    /// Ends the group, and tells the others.
    fn fail(&self, failure: &GroupError) {
        self.fail_with(failure, failure.to_string());
    }

    fn fail_with(&self, failure: &GroupError, mut reason: String) {
        let _whole = locked(&self.sending);
        {
            let mut first = locked(&self.failure);
            if first.is_some() {
                return;
            }
            *first = Some(failure.clone());
        }
        reason.truncate(reason.floor_char_boundary(REASON));
        self.end(Kind::Fail, &reason);
    }

    fn end(&self, kind: Kind, reason: &str) {
        let lines = locked(&self.lines).clone();
        // Side by side, since one that hangs takes its time; one after the other where the system has no thread.
        thread::scope(|scope| {
            for line in &lines {
                if Builder::new().spawn_scoped(scope, move || line.end(kind, reason)).is_err() {
                    line.end(kind, reason);
                }
            }
        });
    }
}

/// The connections of a process: of rank 0 to all others, of another one to rank 0.
pub(crate) struct Members {
    pub(crate) rank: usize,
    /// The number of processes.
    pub(crate) size: usize,
    /// The number of shards of all processes.
    pub(crate) shards: usize,
    silence: Duration,
    common: Arc<Common>,
    events: Mutex<Receiver<Event>>,
    /// For the threads of connections that are still to be added.
    sender: Mutex<Option<Sender<Event>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Dropped, the threads that say that this process lives end.
    alive: Mutex<Vec<Sender<()>>>,
    /// The failure that has been returned; those after it say that the group has ended.
    told: Mutex<bool>,
}

impl Members {
    pub(super) fn new(rank: usize, size: usize, shards: usize, silence: Duration) -> Self {
        let (sender, events) = channel();
        Self {
            rank,
            size,
            shards,
            silence,
            common: Arc::default(),
            events: Mutex::new(events),
            sender: Mutex::new(Some(sender)),
            threads: Mutex::default(),
            alive: Mutex::default(),
            told: Mutex::new(false),
        }
    }

    /// Adds the connection to the peer of this rank.
    ///
    /// # Errors
    ///
    /// [`GroupError::Lost`], when the system has no room for its threads.
    pub(super) fn add(&self, rank: usize, peer: String, stream: TcpStream, seals: Seals) -> Result<(), GroupError> {
        let line = Arc::new(Line {
            rank,
            peer: peer.clone(),
            stream,
            out: Mutex::new(seals.out),
            silence: self.silence,
            limit_of_samples: limit_of_samples(self.shards),
            limit_of_gradients: AtomicU64::new(0),
        });
        locked(&self.common.lines).push(line.clone());
        let (alive, is_alive) = channel::<()>();
        let (of_line, period) = (line.clone(), self.silence / 4);
        let beat = move || {
            while is_alive.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                let mut seal = match of_line.out.try_lock() {
                    Ok(seal) => seal,
                    // A message is being sent, which is a sign of life.
                    Err(TryLockError::WouldBlock) => continue,
                    Err(TryLockError::Poisoned(_)) => return,
                };
                // The thread that reads finds out why nothing can be sent.
                if of_line.write(&mut seal, Kind::Alive, &[]).is_err() {
                    return;
                }
            }
        };
        let common = self.common.clone();
        let events = locked(&self.sender).clone().expect("connections are added before the group is left");
        let mut into = seals.into;
        let read = move || {
            let failure = loop {
                break match line.read(&mut into) {
                    Ok(Message { kind: Kind::Alive, .. }) => continue,
                    Ok(Message { kind: Kind::Leave, .. }) => GroupError::Left { peer: line.peer.clone() },
                    Ok(Message { kind: Kind::Fail, contents }) => GroupError::Told {
                        peer: line.peer.clone(),
                        reason: String::from_utf8_lossy(&contents).into_owned(),
                    },
                    Ok(message) => {
                        // The owner of the other end lives until this thread has been joined.
                        let _ = events.send((rank, Ok(message)));
                        continue;
                    }
                    Err(failure) => failure,
                };
            };
            let _ = events.send((rank, Err(failure.clone())));
            common.fail(&failure);
        };
        let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let thread = Builder::new().name(format!("{name} {rank}")).spawn(body);
            thread.map_err(|error| GroupError::Lost { peer: peer.clone(), reason: format!("no thread: {error}") })
        };
        let started = [start("group reads", Box::new(read))?, start("group beats", Box::new(beat))?];
        locked(&self.threads).extend(started);
        locked(&self.alive).push(alive);
        Ok(())
    }

    /// As an error of another process names this one.
    pub(crate) fn own(&self) -> String {
        format!("rank {}", self.rank)
    }

    /// The peer of this rank, as an error names it.
    pub(crate) fn peer(&self, rank: usize) -> String {
        let lines = locked(&self.common.lines);
        let line = lines.iter().find(|line| line.rank == rank);
        line.map_or_else(|| format!("rank {rank}"), |line| line.peer.clone())
    }

    /// Ends the group with an error of this process, and tells the others.
    pub(crate) fn give_up(&self, reason: &str) {
        *locked(&self.told) = true;
        let failure = GroupError::Told { peer: self.own(), reason: reason.to_owned() };
        self.common.fail_with(&failure, reason.to_owned());
    }

    /// Ends the group with an error that all are told.
    pub(crate) fn fail(&self, failure: GroupError) -> GroupError {
        self.common.fail(&failure);
        *locked(&self.told) = true;
        failure
    }

    /// Requires that the group has not ended.
    ///
    /// # Errors
    ///
    /// Why it has, and after that was returned once, [`GroupError::Over`].
    pub(crate) fn check(&self) -> Result<(), GroupError> {
        let Some(failure) = locked(&self.common.failure).clone() else { return Ok(()) };
        match std::mem::replace(&mut *locked(&self.told), true) {
            false => Err(failure),
            true => Err(GroupError::Over {
                reason: match failure {
                    GroupError::Over { reason } => reason,
                    failure => failure.to_string(),
                },
            }),
        }
    }

    /// The next message or failure.
    pub(super) fn next(&self, patience: Option<Duration>) -> Option<Event> {
        let events = locked(&self.events);
        match patience {
            Some(patience) => events.recv_timeout(patience).ok(),
            None => events.recv().ok(),
        }
    }

    /// Sends each other process that this one is connected to the same.
    ///
    /// # Errors
    ///
    /// For the first that cannot be reached; the group has ended then.
    pub(crate) fn send(&self, kind: Kind, contents: &[u8]) -> Result<(), GroupError> {
        let sent = {
            let _whole = locked(&self.common.sending);
            let lines = locked(&self.common.lines).clone();
            lines.iter().try_for_each(|line| line.send(kind, contents))
        };
        sent.map_err(|failure| {
            // What a peer has told says more than that it cannot be reached.
            let told = loop {
                match self.next(Some(LAST_WORDS)) {
                    Some((_, Err(told))) => break Some(told),
                    Some(_) => continue,
                    None => break None,
                }
            };
            self.fail(told.unwrap_or(failure))
        })
    }

    /// Allows messages with so many bytes of gradients.
    pub(crate) fn allow_gradients(&self, bytes: u64) {
        locked(&self.common.lines).iter().for_each(|line| line.limit_of_gradients.store(bytes, Ordering::Relaxed));
    }

    /// One message of this kind from each process that this one is connected to, with its rank, by rank.
    ///
    /// # Errors
    ///
    /// When one has ended, fails, or sends something else: a message begins with the step that it is of. The group has
    /// ended then.
    pub(crate) fn receive(&self, kind: Kind, step: u64) -> Result<Vec<(usize, Vec<u8>)>, GroupError> {
        let peers = locked(&self.common.lines).len();
        let mut received: Vec<(usize, Vec<u8>)> = Vec::with_capacity(peers);
        while received.len() < peers {
            let Some((rank, message)) = self.next(None) else {
                return Err(GroupError::Over { reason: "every connection has ended".to_owned() });
            };
            let message = message.map_err(|failure| self.fail(failure))?;
            let of = message.contents.first_chunk().map(|step| u64::from_le_bytes(*step));
            let is_second = received.iter().any(|(other, _)| *other == rank);
            if message.kind != kind || of != Some(step) || is_second {
                let theirs = format!("{} of step {}", message.kind.spelled(), of.unwrap_or_default());
                return Err(self.fail(GroupError::Differ {
                    peer: self.peer(rank),
                    own: self.own(),
                    what: "come to".to_owned(),
                    theirs,
                    ours: format!("come to {} of step {step}", kind.spelled()),
                    remedy: "run the same program in every process, with the same calls of `Shards::step` and \
                             `Step::mean`",
                }));
            }
            received.push((rank, message.contents));
        }
        received.sort_by_key(|(rank, _)| *rank);
        Ok(received)
    }

    /// The number of processes that this one is connected to.
    pub(super) fn connected(&self) -> usize {
        locked(&self.common.lines).len()
    }

    /// Notes that all are connected.
    pub(super) fn complete(&self) {
        locked(&self.sender).take();
    }
}

impl Drop for Members {
    /// Leaves the group, and waits until the others know, for the bound of silence at most.
    fn drop(&mut self) {
        let failed = {
            let mut failure = locked(&self.common.failure);
            let failed = failure.is_some();
            // What others tell from now on is of no use.
            failure.get_or_insert_with(|| GroupError::Left { peer: self.own() });
            failed
        };
        if !failed {
            self.common.end(Kind::Leave, "");
        }
        locked(&self.alive).clear();
        locked(&self.sender).take();
        for thread in std::mem::take(&mut *locked(&self.threads)) {
            // A panic of such a thread has been printed, and there is nobody to hand it to.
            let _ = thread.join();
        }
    }
}

/// What a panic leaves here is whole: every change is one assignment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
