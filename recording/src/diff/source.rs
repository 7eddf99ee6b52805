//! The records of one side, with the threads' numbers of the first.

use crate::error::Error;
use crate::reader::{Ending, Reader};
use crate::record::{Header, Operation, Origin, Record, State};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// Thread numbers of the second recording that are others in the first.
pub(super) type Renamed = BTreeMap<u32, u32>;

pub(super) struct Source {
    pub(super) header: Header,
    reader: Reader,
    renamed: Renamed,
}

/// What was looked for by [`Source::find`].
#[derive(Default)]
pub(super) struct Found {
    /// By thread and number.
    pub(super) operations: HashMap<(u32, u64), Operation>,
    /// Digests of results, also of those that only a state has.
    pub(super) digests: HashMap<Origin, crate::record::Digest>,
}

impl Source {
    pub(super) fn open(path: &Path, renamed: &Renamed) -> Result<Self, Error> {
        let (header, reader) = Reader::open(path)?;
        Ok(Self { header, reader, renamed: renamed.clone() })
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        let mut record = self.reader.next_record()?;
        if self.renamed.is_empty() {
            return Ok(record);
        }
        let number = |thread: &mut u32| *thread = *self.renamed.get(thread).unwrap_or(thread);
        match &mut record {
            Some(Record::Thread(thread)) => number(&mut thread.number),
            Some(Record::Operation(operation)) => {
                number(&mut operation.thread);
                let origins = operation.inputs.iter_mut().filter_map(|input| input.origin.as_mut());
                origins.for_each(|origin| number(&mut origin.thread));
            }
            Some(Record::State(state)) => {
                number(&mut state.thread);
                state.tensors.iter_mut().for_each(|tensor| number(&mut tensor.origin.thread));
            }
            Some(Record::End { operations }) => {
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

    /// Looks through the file for these results and the operations that made them.
    pub(super) fn find(path: &Path, renamed: &Renamed, wanted: &HashSet<Origin>) -> Result<Found, Error> {
        let mut found = Found::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        let operations: HashSet<(u32, u64)> = wanted.iter().map(|origin| (origin.thread, origin.operation)).collect();
        let mut source = Self::open(path, renamed)?;
        while found.operations.len() < operations.len() {
            match source.next()? {
                None => break,
                Some(Record::Operation(operation)) if operations.contains(&(operation.thread, operation.number)) => {
                    let Operation { thread, number, .. } = operation;
                    for (output, result) in (0..).zip(&operation.outputs) {
                        let origin = Origin { thread, operation: number, output };
                        found.digests.extend(result.digest.map(|digest| (origin, digest)));
                    }
                    found.operations.insert((thread, number), operation);
                }
                Some(Record::State(State { tensors, .. })) => {
                    let wanted = tensors.iter().filter(|tensor| wanted.contains(&tensor.origin));
                    found.digests.extend(wanted.map(|tensor| (tensor.origin, tensor.digest)));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}
