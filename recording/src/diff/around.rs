//! What a recording has around the first difference: custom operations before it, and the parameter that an upload replaces.

use super::comparison::Affected;
use super::source::Source;
use crate::error::Error;
use crate::record::{Operation, Record, StateTensor};
use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

/// So many custom operations are kept by name, the last ones.
const KEPT: usize = 4;

/// The custom operations of a thread with these numbers.
pub(super) fn custom_operations(mut source: Source, thread: u32, numbers: Range<u64>) -> Result<Vec<Affected>, Error> {
    let mut found = VecDeque::new();
    while let Some(record) = source.next()? {
        let Record::Operation(operation) = record else { continue };
        if operation.thread != thread || operation.number < numbers.start {
            continue;
        }
        if operation.number >= numbers.end {
            break;
        }
        if operation.is_custom {
            found.push_back(Affected::new(&operation));
            if found.len() > KEPT {
                found.pop_front();
            }
        }
    }
    Ok(found.into())
}

/// The parameter whose value an upload without a name replaces, if only one may be it: of its shape and dtype, written in the
/// step before and never again.
pub(super) fn replaced(mut source: Source, upload: &Operation) -> Result<Option<String>, Error> {
    let Some(values) = upload.outputs.first() else { return Ok(None) };
    let is_like = |tensor: &StateTensor| (&tensor.shape, &tensor.dtype) == (&values.shape, &values.dtype);
    // Those of the last step before, and whether a later state has them.
    let mut candidates: BTreeMap<String, bool> = BTreeMap::new();
    let (mut is_first, mut has_later) = (true, false);
    while let Some(record) = source.next()? {
        let Record::State(state) = record else { continue };
        if state.thread != upload.thread {
            continue;
        }
        let named = state.tensors.into_iter().filter(is_like).filter_map(|tensor| tensor.parameter);
        if state.operations <= upload.number {
            // What a training begins with has parameters, too, that no step writes.
            candidates = if is_first { BTreeMap::new() } else { named.map(|path| (path, false)).collect() };
        } else {
            has_later = true;
            for path in named {
                candidates.entry(path).and_modify(|is_written| *is_written = true);
            }
        }
        is_first = false;
    }
    candidates.retain(|_, is_written| !*is_written);
    Ok(candidates.pop_first().map(|(path, _)| path).filter(|_| has_later && candidates.is_empty()))
}
