//! The thread that writes the file.

use super::{count, parameters};
use crate::error::Error;
use burn_deterministic_kernels::digest::Partials;
use burn_deterministic_recording::{Digest, Environment, Header, Level, Record, Writer};
use burn_ir::OperationIr;
use core::sync::atomic::{AtomicBool, Ordering};
use cubecl::client::Client;
use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// Digests to be read.
pub(super) struct Pending {
    pub(super) client: Option<Client>,
    pub(super) launched: Vec<Launched>,
    /// How many.
    pub(super) digests: usize,
}

/// A launch.
pub(super) struct Launched {
    pub(super) partials: Partials,
    /// The number of each tensor's digest.
    pub(super) numbers: Vec<usize>,
}

/// A record, and where in it which of the digests belong.
pub(super) struct Incomplete {
    pub(super) record: Record,
    /// Whose parameters belong in it.
    pub(super) operation: Option<OperationIr>,
    /// By output, and then operand, or by tensor of the record.
    pub(super) digests: Vec<Option<usize>>,
}

enum Message {
    Records { records: Vec<Incomplete>, digests: Pending },
    End { operations: Vec<u64>, environment: Environment, done: Sender<()> },
}

/// Whether a recording has been started.
static RECORDING: AtomicBool = AtomicBool::new(false);

static LEVEL: OnceLock<Level> = OnceLock::new();

static SENDER: Mutex<Option<Sender<Message>>> = Mutex::new(None);

/// Whether this process records.
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// What is recorded.
pub(super) fn level() -> Level {
    LEVEL.get().copied().unwrap_or_default()
}

/// A recording whose file has a header. Nothing is recorded before it [begins](super::begin).
pub(crate) struct Prepared {
    sender: Sender<Message>,
    level: Level,
}

/// Opens the file of a recording, once in a process.
///
/// # Errors
///
/// [`Error::Record`] when the file cannot be written.
pub(crate) fn prepare(
    path: PathBuf,
    level: Level,
    deterministic: bool,
    environment: Environment,
) -> Result<Prepared, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Record { reason: error.to_string() };
    let mut writer = Writer::create(path).map_err(|error| failed(&error))?;
    let header = Header {
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        level,
        deterministic,
        environment,
    };
    writer.write(&Record::Header(header)).and_then(|()| writer.flush()).map_err(|error| failed(&error))?;
    let (sender, receiver) = channel();
    let spawned = thread::Builder::new().name("recording".to_owned()).spawn(move || work(writer, &receiver));
    spawned.map_err(|error| failed(&error))?;
    Ok(Prepared { sender, level })
}

impl Prepared {
    /// Records from now on.
    pub(super) fn begin(self) {
        *sender_lock() = Some(self.sender);
        let _ = LEVEL.set(self.level);
        RECORDING.store(true, Ordering::Relaxed);
    }
}

fn sender_lock() -> std::sync::MutexGuard<'static, Option<Sender<Message>>> {
    SENDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has records written, with the digests that are being read.
pub(super) fn write(records: Vec<Incomplete>, digests: Pending) {
    if let Some(sender) = &*sender_lock() {
        // The thread has ended where the file could not be written, which it said.
        let _ = sender.send(Message::Records { records, digests });
    }
}

/// Ends the recording, if there is one; `done` is told when the file is written.
pub(super) fn end(environment: Environment, done: Sender<()>) {
    RECORDING.store(false, Ordering::Relaxed);
    if let Some(sender) = sender_lock().take() {
        let _ = sender.send(Message::End { operations: count::all(), environment, done });
    }
}

fn work(mut writer: Writer, messages: &Receiver<Message>) {
    for message in messages {
        let result = match message {
            Message::Records { records, digests } => {
                let digests = digests.wait();
                let mut records = records.into_iter().map(|record| record.complete(&digests));
                records.try_for_each(|record| writer.write(&record)).and_then(|()| writer.flush())
            }
            Message::End { operations, environment, done } => {
                let written = writer.write(&Record::End { operations, environment }).and_then(|()| writer.finish());
                report(&written);
                let _ = done.send(());
                return;
            }
        };
        if result.is_err() {
            RECORDING.store(false, Ordering::Relaxed);
            return report(&result);
        }
    }
}

fn report(result: &Result<(), burn_deterministic_recording::Error>) {
    if let Err(error) = result {
        say(&format!("the recording stops here, and the program goes on: {error}"));
    }
}

/// Writes a line to standard error.
pub(super) fn say(what: &str) {
    // A closed standard error must not become a panic.
    let _ = writeln!(std::io::stderr(), "burn-deterministic: {what}");
}

impl Pending {
    fn wait(self) -> Vec<Option<[u32; 4]>> {
        let mut digests = vec![None; self.digests];
        let Some(client) = self.client else { return digests };
        let mut fill = |launched: &Launched, bytes: &[u8]| {
            let read = launched.partials.digests(bytes);
            launched.numbers.iter().zip(read).for_each(|(&number, digest)| digests[number] = Some(digest));
        };
        let stream = |launched: &Launched| launched.partials.handle().stream;
        // On the stream that has launched them: another one would wait for it at whatever moment of its work, which CubeCL takes
        // for a wait for what is launched then too.
        for of_stream in self.launched.chunk_by(|one, other| stream(one) == stream(other)) {
            let handles = || of_stream.iter().map(|launched| launched.partials.handle());
            stream(&of_stream[0]).executes(|| match client.read(handles().collect()) {
                Ok(bytes) => of_stream.iter().zip(&bytes).for_each(|(launched, bytes)| fill(launched, bytes)),
                // One tensor that was never written fails them all. The program learns of it at its next read, and the record
                // stays without its digest.
                Err(_) => of_stream.iter().zip(handles()).for_each(|(launched, handle)| {
                    if let Ok(bytes) = client.read_one(handle) {
                        fill(launched, &bytes);
                    }
                }),
            });
        }
        digests
    }
}

impl Incomplete {
    fn complete(self, read: &[Option<[u32; 4]>]) -> Record {
        let mut record = self.record;
        let mut digests = self.digests.iter().map(|number| read.get((*number)?).copied().flatten().map(Digest));
        match &mut record {
            Record::Operation(operation) => {
                operation.parameters = self.operation.as_ref().map(parameters::of).unwrap_or_default();
                operation.outputs.iter_mut().zip(&mut digests).for_each(|(output, digest)| output.digest = digest);
                operation.operands_after = digests.collect();
            }
            Record::State(state) => {
                state.tensors.iter_mut().zip(digests).for_each(|(tensor, digest)| tensor.digest = digest);
            }
            _ => {}
        }
        record
    }
}
