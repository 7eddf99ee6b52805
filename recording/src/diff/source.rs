//! The records of one side, with the threads' numbers of the first.

use crate::environment::Environment;
use crate::error::Error;
use crate::reader::{Ending, Reader};
use crate::record::{Digest, Header, Operation, Origin, Record, State};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Thread numbers of the second recording that are others in the first.
pub(super) type Renamed = BTreeMap<u32, u32>;

pub(super) struct Source {
    pub(super) header: Header,
    /// What was known at the end, once that has been read.
    pub(super) end: Option<Environment>,
    reader: Reader,
    renamed: Renamed,
}

/// What was looked for by [`Source::find`].
#[derive(Default)]
pub(super) struct Found {
    /// By number.
    pub(super) operations: HashMap<u64, Operation>,
    /// Digests of results, also of those that only a state has.
    pub(super) digests: HashMap<Origin, Digest>,
}

impl Source {
    pub(super) fn open(path: &Path, renamed: &Renamed) -> Result<Self, Error> {
        let (header, reader) = Reader::open(path)?;
        Ok(Self { header, end: None, reader, renamed: renamed.clone() })
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    pub(super) fn unverified(&self) -> u64 {
        self.reader.unverified()
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        let mut record = self.reader.next_record()?;
        if let Some(Record::End { environment, .. }) = &record {
            self.end = Some(environment.clone());
        }
        if self.renamed.is_empty() {
            return Ok(record);
        }
        let number = |thread: &mut u32| *thread = *self.renamed.get(thread).unwrap_or(thread);
        match &mut record {
            Some(Record::Thread(thread)) => number(&mut thread.number),
            Some(Record::Operation(operation)) => number(&mut operation.thread),
            Some(Record::State(state)) => number(&mut state.thread),
            Some(Record::End { operations, .. }) => {
                let mut renamed = Vec::new();
                for (mut thread, &count) in (0..).zip(&*operations) {
                    number(&mut thread);
                    renamed.resize(renamed.len().max(thread as usize + 1), 0);
                    renamed[thread as usize] = count;
                }
                *operations = renamed;
            }
            _ => {}
        }
        Ok(record)
    }

    /// Looks through the file for these results of a thread and the operations that made them.
    pub(super) fn find(path: &Path, renamed: &Renamed, thread: u32, wanted: &HashSet<Origin>) -> Result<Found, Error> {
        let mut found = Found::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        let operations: HashSet<u64> = wanted.iter().map(|origin| origin.operation).collect();
        let mut source = Self::open(path, renamed)?;
        while found.operations.len() < operations.len() {
            match source.next()? {
                None => break,
                Some(Record::Operation(made)) if made.thread == thread && operations.contains(&made.number) => {
                    for (output, result) in (0..).zip(&made.outputs) {
                        let origin = Origin { operation: made.number, output };
                        found.digests.extend(result.digest.map(|digest| (origin, digest)));
                    }
                    found.operations.insert(made.number, made);
                }
                Some(Record::State(State { thread: of, tensors, .. })) if of == thread => {
                    let wanted = tensors.iter().filter(|tensor| wanted.contains(&tensor.origin));
                    found.digests.extend(wanted.filter_map(|tensor| Some((tensor.origin, tensor.digest?))));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}
