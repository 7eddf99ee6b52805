//! The records of one side, with the threads' numbers of the first.

use super::contrast::is_data;
use super::meeting::Resume;
use crate::environment::Environment;
use crate::error::Error;
use crate::reader::{Ending, Reader};
use crate::record::{Digest, Header, Operation, Origin, Record, State};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

/// Thread numbers of the second recording that are others in the first.
pub(super) type Renamed = BTreeMap<u32, u32>;

pub(super) struct Source {
    pub(super) header: Header,
    /// What was known at the end, once that has been read.
    pub(super) end: Option<Environment>,
    pub(super) counts: Counts,
    reader: Reader,
    renamed: Renamed,
    resume: Option<(Rc<Resume>, usize)>,
}

/// What a side consists of.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) operations: u64,
    pub(super) states: u64,
    pub(super) threads: u64,
    pub(super) last_step: Option<u64>,
    /// A sum over the digests of all uploads that are compared, and of what other threads sent: the same for the same data in
    /// any order.
    pub(super) uploads: u128,
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
    /// Of a comparison with a resumed run, `resume` has the side: what comes before the step of that is left out.
    pub(super) fn open(path: &Path, renamed: &Renamed, resume: Option<(Rc<Resume>, usize)>) -> Result<Self, Error> {
        let (header, reader) = Reader::open(path)?;
        Ok(Self { header, end: None, counts: Counts::default(), reader, renamed: renamed.clone(), resume })
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    pub(super) fn unverified(&self) -> u64 {
        self.reader.unverified()
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        while let Some(mut record) = self.reader.next_record()? {
            if let Record::End { environment, .. } = &record {
                self.end = Some(environment.clone());
            }
            self.rename(&mut record);
            self.counts.add(&record);
            if self.resume.as_ref().is_none_or(|(resume, side)| resume.takes(*side, &mut record)) {
                self.counts.add_data(&record);
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn rename(&self, record: &mut Record) {
        if self.renamed.is_empty() {
            return;
        }
        let number = |thread: &mut u32| *thread = *self.renamed.get(thread).unwrap_or(thread);
        match record {
            Record::Thread(thread) => number(&mut thread.number),
            Record::Operation(operation) => number(&mut operation.thread),
            Record::State(state) => number(&mut state.thread),
            Record::End { operations, .. } => {
                let mut renamed = Vec::new();
                for (mut thread, &count) in (0..).zip(&*operations) {
                    number(&mut thread);
                    renamed.resize(renamed.len().max(thread as usize + 1), 0);
                    renamed[thread as usize] = count;
                }
                *operations = renamed;
            }
            Record::Header(_) => {}
        }
    }

    /// Looks through the file for these results of a thread and the operations that made them.
    pub(super) fn find(mut self, thread: u32, wanted: &HashSet<Origin>) -> Result<Found, Error> {
        let mut found = Found::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        let operations: HashSet<u64> = wanted.iter().map(|origin| origin.operation).collect();
        while found.operations.len() < operations.len() {
            match self.next()? {
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

impl Counts {
    fn add(&mut self, record: &Record) {
        let place = match record {
            Record::Thread(_) => {
                self.threads += 1;
                return;
            }
            Record::Operation(operation) => {
                self.operations += 1;
                &operation.place
            }
            Record::State(state) => {
                self.states += 1;
                &state.place
            }
            Record::Header(_) | Record::End { .. } => return,
        };
        self.last_step = self.last_step.max(place.step);
    }

    fn add_data(&mut self, record: &Record) {
        let Record::Operation(operation) = record else { return };
        if is_data(operation) {
            let digests = operation.outputs.iter().filter_map(|output| output.digest);
            let number = |digest: Digest| digest.0.iter().fold(0, |n, &w| n << 32 | u128::from(w));
            self.uploads = digests.fold(self.uploads, |sum, digest| sum.wrapping_add(number(digest)));
        }
    }
}
