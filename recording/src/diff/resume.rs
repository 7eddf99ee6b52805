//! Where a run that was resumed from a checkpoint meets one that was not interrupted.
//!
//! The resumed run begins with a state, of the tensors that it loaded, and at a later step than the other run. Of each thread
//! both leave out the records before that step. The tensors that were loaded are compared with those that the other run had
//! after the step before. The later records of the resumed run get the numbers that the other run counts: of steps, of
//! operations, and of the operations that made their tensors. So the two are compared like any others from there on.
//!
//! A state holds what was written since the last one, so the value of a parameter is that of the last state that names it. A
//! tensor without a name has another number in each run, and is found where its elements are those of one tensor alone.

use super::meeting::{Meeting, Resume};
use super::source::{Renamed, Source};
use super::threads;
use crate::error::Error;
use crate::reader::Ending;
use crate::record::{Digest, Origin, Place, Record, State, StateTensor};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Where a step is in a training: the batch of a loader's epoch, or what the program says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    is_batch: bool,
    epoch: Option<u64>,
    number: u64,
}

/// How a thread begins.
#[derive(Default)]
struct Beginning {
    /// The first two states.
    states: Vec<State>,
    /// The number and the place of the first operation of a step.
    operation: Option<(u64, Place)>,
}

/// A thread of the run that was not interrupted, up to the step at which the other run was resumed.
#[derive(Default)]
struct Before {
    /// Its first step.
    begins: Option<Position>,
    /// What it began with.
    first: Vec<StateTensor>,
    /// The last state.
    last: Option<State>,
    /// How many operations there were before the step of that state.
    since: u64,
    /// The last value of each parameter.
    named: BTreeMap<String, StateTensor>,
    /// The number of the first operation of a step since the last state.
    operation: Option<u64>,
    /// The state at the end of the step at which the other run was resumed.
    next: Option<State>,
}

/// Finds out which run was resumed, and where, and threads of the second recording whose numbers are others in the first; `None`
/// where both begin with the same steps.
pub(super) fn resume(paths: &[PathBuf; 2]) -> Result<Option<(Resume, Renamed)>, Error> {
    let begins = |path| -> Result<Option<Position>, Error> { Ok(first(&Beginnings::read(path, false)?.positions())) };
    let begins = [begins(&paths[0])?, begins(&paths[1])?];
    if begins.contains(&None) || begins[0] == begins[1] {
        return Ok(None);
    }
    // Threads begin in any order, so the first that was found may be another one in each run.
    let threads = [Beginnings::read(&paths[0], true)?, Beginnings::read(&paths[1], true)?];
    let unpaired = unpaired(paths, &threads)?;
    let [Some(one), Some(other)] = unpaired.each_ref().map(first) else { return Ok(None) };
    if !one.is_like(&other) {
        return Ok(None);
    }
    let side = usize::from(one < other);
    // A single thread that trains may have another number in each run.
    let mut renamed = Renamed::new();
    let [one, other] = unpaired.each_ref().map(|threads| threads.iter().min_by_key(|(_, begin)| **begin));
    if let (Some((&one, _)), Some((&other, _)), 1) = (one, other, unpaired[side].len())
        && one != other
    {
        renamed.extend([(one, other), (other, one)]);
    }
    let none = Renamed::new();
    let of = |side: usize| if side == 0 { &none } else { &renamed };
    let resumed = unpaired[side].keys().map(|thread| {
        let number = *of(side).get(thread).unwrap_or(thread);
        (number, &threads[side].threads[thread])
    });
    let resumed: BTreeMap<u32, &Beginning> = resumed.collect();
    let others = before(&paths[1 - side], of(1 - side), &resumed)?;
    let meeting =
        |(thread, resumed): (&u32, &&Beginning)| Some((*thread, Meeting::new(side, resumed, others.get(thread)?)?));
    let threads: BTreeMap<u32, Meeting> = resumed.iter().filter_map(meeting).collect();
    Ok((!threads.is_empty()).then_some((Resume { side, threads }, renamed)))
}

/// Where threads begin, by their numbers.
type Positions = BTreeMap<u32, Position>;

fn first(positions: &Positions) -> Option<Position> {
    positions.values().min().copied()
}

/// Where the threads of each run begin that begin elsewhere in the other run: at another step, and from other values.
fn unpaired(paths: &[PathBuf; 2], threads: &[Beginnings; 2]) -> Result<[Positions; 2], Error> {
    let mut unpaired = threads.each_ref().map(Beginnings::positions);
    let mut pair = |is_pair: &dyn Fn(u32, u32) -> bool| {
        let [ones, others] = unpaired.each_ref().map(|threads| threads.keys().copied().collect::<Vec<_>>());
        for one in ones {
            let mut others = others.iter().filter(|other| unpaired[1].contains_key(other) && is_pair(one, **other));
            // Of several, the one with the same number.
            let found = others.clone().find(|other| **other == one).or_else(|| others.next()).copied();
            if let Some(other) = found {
                unpaired[0].remove(&one);
                unpaired[1].remove(&other);
            }
        }
    };
    let [ones, others] = threads.each_ref().map(|side| |thread: u32| &side.threads[&thread]);
    pair(&|one, other| ones(one).position() == others(other).position());
    // A program may count from another number in each run, without any checkpoint.
    pair(&|one, other| ones(one).is_from_same_values(others(other)));
    if threads.iter().any(|side| side.is_cut) && unpaired.iter().all(|threads| !threads.is_empty()) {
        // The counterpart of a thread may have been cut before its first step.
        let renamed = threads::matched(paths)?;
        let is_beginning = |side: usize, thread: u32| {
            let Beginnings { threads, is_cut } = &threads[side];
            *is_cut && threads.get(&thread).is_some_and(|thread| thread.position().is_none())
        };
        let [ones, others] = &mut unpaired;
        let number = |other: u32| renamed.get(&other).copied().unwrap_or(other);
        let second: HashMap<u32, u32> = threads[1].threads.keys().map(|&other| (number(other), other)).collect();
        ones.retain(|one, _| !second.get(one).is_some_and(|&other| is_beginning(1, other)));
        others.retain(|&other, _| !is_beginning(0, number(other)));
    }
    Ok(unpaired)
}

/// How the threads of a recording begin.
struct Beginnings {
    threads: BTreeMap<u32, Beginning>,
    is_cut: bool,
}

impl Beginnings {
    /// `all` threads, or as many as it takes to know a step with which the recording begins.
    fn read(path: &Path, all: bool) -> Result<Self, Error> {
        let mut threads: BTreeMap<u32, Beginning> = BTreeMap::new();
        let mut source = Source::open(path, &Renamed::new(), None)?;
        while let Some(record) = source.next()? {
            match record {
                Record::Thread(thread) => drop(threads.entry(thread.number).or_default()),
                Record::Operation(operation) if operation.place.step.is_some() => {
                    let beginning = threads.entry(operation.thread).or_default();
                    beginning.operation.get_or_insert((operation.number, operation.place));
                }
                Record::State(state) => {
                    let states = &mut threads.entry(state.thread).or_default().states;
                    if states.len() < 2 {
                        states.push(state);
                    }
                    if states.len() == 2 && !all {
                        break;
                    }
                }
                _ => {}
            }
        }
        Ok(Self { threads, is_cut: source.ending() == Some(Ending::Cut) })
    }

    /// Of the threads that have a step.
    fn positions(&self) -> Positions {
        self.threads.iter().filter_map(|(&thread, beginning)| Some((thread, beginning.position()?))).collect()
    }
}

/// What the threads of the run that was not interrupted have before the other run was resumed.
fn before(path: &Path, renamed: &Renamed, resumed: &BTreeMap<u32, &Beginning>) -> Result<BTreeMap<u32, Before>, Error> {
    let mut threads: BTreeMap<u32, Before> = BTreeMap::new();
    let mut source = Source::open(path, renamed, None)?;
    while let Some(record) = source.next()? {
        let (number, place) = match &record {
            Record::Operation(operation) => (operation.thread, &operation.place),
            Record::State(state) => (state.thread, &state.place),
            _ => continue,
        };
        let (position, Some(end)) = (Position::of(place), resumed.get(&number).and_then(|resumed| resumed.position()))
        else {
            continue;
        };
        let thread = threads.entry(number).or_default();
        if thread.next.is_some() {
            continue;
        }
        match record {
            Record::Operation(operation) if position.is_some() => {
                thread.operation.get_or_insert(operation.number);
            }
            Record::State(state) => {
                thread.begins = thread.begins.or(position);
                if position == Some(end) {
                    thread.next = Some(state);
                } else {
                    thread.ends(state);
                }
            }
            _ => {}
        }
    }
    Ok(threads)
}

impl Position {
    fn of(place: &Place) -> Option<Self> {
        let number = place.batch.or(place.step)?;
        Some(Self { is_batch: place.batch.is_some(), epoch: place.epoch, number })
    }

    /// Whether both count the same: a program with epochs is another one than a program without.
    fn is_like(&self, other: &Self) -> bool {
        (self.is_batch, self.epoch.is_some()) == (other.is_batch, other.epoch.is_some())
    }
}

impl Beginning {
    /// The state before the first step. It has no step, or that of the state after it.
    fn initial(&self) -> Option<&State> {
        let (first, second) = (self.states.first()?, self.states.get(1));
        let position = Position::of(&first.place);
        let is_initial = position.is_none() || second.is_some_and(|second| Position::of(&second.place) == position);
        is_initial.then_some(first)
    }

    /// The state at the end of the first step.
    fn end(&self) -> Option<&State> {
        self.states.get(usize::from(self.initial().is_some()))
    }

    /// The place of the first step.
    fn place(&self) -> Option<&Place> {
        // An operation may come before the program has said which step it is.
        self.end().map(|state| &state.place).or(self.operation.as_ref().map(|(_, place)| place))
    }

    fn position(&self) -> Option<Position> {
        Position::of(self.place()?)
    }

    /// Whether the first steps of both begin with the same tensors, as far as these are known.
    fn is_from_same_values(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (self.initial(), other.initial()) else { return false };
        let form = |tensor: &StateTensor| (tensor.origin, tensor.shape.clone(), tensor.dtype.clone());
        let pairs = || one.tensors.iter().zip(&other.tensors);
        let known = || pairs().filter_map(|(one, other)| Some((one.digest?, other.digest?)));
        (one.operations, one.tensors.len()) == (other.operations, other.tensors.len())
            && pairs().all(|(one, other)| form(one) == form(other))
            && known().all(|(one, other)| one == other)
            && known().count() > 0
    }
}

impl Before {
    /// A step ends that is before the one at which the other run was resumed.
    fn ends(&mut self, state: State) {
        for tensor in &state.tensors {
            if let Some(path) = &tensor.parameter {
                self.named.insert(path.clone(), tensor.clone());
            }
        }
        match &self.last {
            None => self.first.clone_from(&state.tensors),
            Some(last) => self.since = last.operations,
        }
        self.last = Some(state);
        self.operation = None;
    }

    /// Whether the last step wrote the tensor.
    fn is_new(&self, tensor: &StateTensor) -> bool {
        tensor.origin.operation >= self.since
    }

    /// The tensors that can be told from all others by their elements: parameters that the last step wrote, and what has no
    /// name.
    fn by_elements(&self) -> HashMap<Elements<'_>, &StateTensor> {
        let last = self.last.iter().flat_map(|last| &last.tensors);
        let unnamed = self.first.iter().chain(last).filter(|tensor| tensor.parameter.is_none());
        let named = self.named.values().filter(|tensor| self.is_new(tensor));
        let tensors: BTreeMap<Origin, &StateTensor> = unnamed.chain(named).map(|t| (t.origin, t)).collect();
        let mut found: HashMap<Elements, Option<&StateTensor>> = HashMap::new();
        for tensor in tensors.into_values() {
            if let Some(elements) = elements(tensor) {
                found.entry(elements).and_modify(|other| *other = None).or_insert(Some(tensor));
            }
        }
        found.into_iter().filter_map(|(elements, tensor)| Some((elements, tensor?))).collect()
    }
}

/// Shape, dtype and digest.
type Elements<'a> = (&'a [u64], &'a str, Digest);

fn elements(tensor: &StateTensor) -> Option<Elements<'_>> {
    Some((&tensor.shape, &tensor.dtype, tensor.digest?))
}

impl Meeting {
    /// `None` where the other run does not begin earlier.
    fn new(side: usize, resumed: &Beginning, other: &Before) -> Option<Self> {
        let (place, position) = (resumed.place()?, resumed.position()?);
        if other.begins? >= position {
            return None;
        }
        let after = other.last.as_ref().map(|last| last.place.clone());
        // The step itself, or that it would be the next one.
        let follows = |last: &Place| {
            let batch = last.batch.filter(|_| last.epoch == place.epoch).map(|batch| batch + 1);
            let step = last.step? + 1;
            (batch.is_some() && batch == place.batch || Some(step) == place.step).then_some(step)
        };
        let step = other.next.as_ref().and_then(|next| next.place.step).or_else(|| follows(after.as_ref()?));
        let mut meeting = Self {
            side,
            step: Place { step: step.or(place.step), ..place.clone() },
            is_reached: step.is_some(),
            begin: begin(side, resumed, other),
            steps: step.zip(place.step).map_or(0, |(step, own)| step.wrapping_sub(own)),
            after,
            pairs: Vec::new(),
            missing: Vec::new(),
            unmatched: 0,
            origins: HashMap::new(),
            matched: HashSet::new(),
        };
        if let Some(initial) = resumed.initial() {
            meeting.pair(initial, other);
        }
        Some(meeting)
    }

    /// Finds the counterparts of the tensors that were loaded.
    fn pair(&mut self, initial: &State, other: &Before) {
        // Of several tensors with one path the last one is the parameter.
        let path = |tensor: &'_ StateTensor| tensor.parameter.clone();
        let loaded: HashMap<String, Origin> =
            initial.tensors.iter().filter_map(|tensor| Some((path(tensor)?, tensor.origin))).collect();
        let by_elements = other.by_elements();
        for tensor in &initial.tensors {
            let equal = elements(tensor).and_then(|elements| by_elements.get(&elements)).copied();
            let found = match path(tensor) {
                None => equal,
                Some(path) if loaded[&path] != tensor.origin => None,
                // An operation that does not consume a parameter does not hand its name on: then the new value has none.
                Some(path) => match other.named.get(&path) {
                    Some(named) if other.is_new(named) || elements(named) == elements(tensor) => Some(named),
                    named => equal.filter(|equal| equal.parameter.is_none() && other.is_new(equal)).or(named),
                },
            };
            let Some(found) = found else {
                self.unmatched += 1;
                continue;
            };
            self.origins.insert(tensor.origin, found.origin);
            self.matched.insert(found.origin);
            let mut pair = [found.clone(), StateTensor { origin: found.origin, ..tensor.clone() }];
            if self.side == 0 {
                pair.reverse();
            }
            self.pairs.push(pair);
        }
        // A parameter that the last step did not write may be gone in both runs, and without any name nothing is known.
        if !loaded.is_empty() {
            let missing =
                other.named.iter().filter(|(path, tensor)| other.is_new(tensor) && !loaded.contains_key(*path));
            self.missing = missing.map(|(_, tensor)| tensor.clone()).collect();
        }
    }
}

/// The number of the first operation that is compared, by side. The other run may have operations between the step before and
/// this one, as of an evaluation. States alone do not tell them from those of the step, which is then taken to have as many
/// operations in both runs.
fn begin(side: usize, resumed: &Beginning, other: &Before) -> [u64; 2] {
    let initial = resumed.initial().map(|state| state.operations);
    let (own, others) = (initial.unwrap_or(0), other.last.as_ref().map_or(0, |state| state.operations));
    let ends = resumed.end().zip(other.next.as_ref()).map(|(end, next)| {
        let count = end.operations.saturating_sub(own).min(next.operations.saturating_sub(others));
        [end.operations - count, next.operations - count]
    });
    let first = initial.or(resumed.operation.as_ref().map(|(number, _)| *number));
    // Where operations are recorded they say it, also where those of the first step are others.
    let [own, others] = match (first, other.operation, ends) {
        (Some(own), Some(others), _) => [own, others],
        (_, _, Some(ends)) => ends,
        _ => [first.unwrap_or(0), other.operation.unwrap_or(others)],
    };
    if side == 0 { [own, others] } else { [others, own] }
}
