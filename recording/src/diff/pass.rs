//! One pass over both recordings.
//!
//! Records are read from the side that is behind, and each thread's are paired in their order. What has no counterpart yet
//! waits.

use super::comparison::{Affected, Compared, Length, Spread, StateDifference};
use super::contrast::{Contrast, agree, contrast, described, overwritten};
use super::grid::Cell;
use super::marks::Marks;
use super::meeting::{Meeting, Resume};
use super::pictures::Pictures;
use super::source::{Renamed, Source};
use super::states::Tensors;
use super::step::Step;
use crate::error::Error;
use crate::reader::Ending;
use crate::record::{Operation, Origin, Place, Record, State, StateTensor};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

/// So many operations that differ are kept by name.
const KEPT: usize = 12;

/// So many tensors of a state that differ are kept by name.
const KEPT_TENSORS: usize = 8;

/// What a pass has found.
pub(super) struct Pass {
    pub(super) sources: [Source; 2],
    pub(super) first: Option<First>,
    pub(super) state: Option<StateDifference>,
    /// Whether that is what a run was resumed with.
    pub(super) resumed_differs: bool,
    /// The first tensor of the first state that differs whose operation gave the same result.
    pub(super) overwritten: Option<Origin>,
    pub(super) compared: Compared,
    pub(super) spread: Spread,
    pub(super) length: Option<Length>,
    /// Threads of which nothing is recorded, and which issued other numbers of operations.
    pub(super) uncompared: Vec<Length>,
    pub(super) marks: Marks,
    pub(super) pictures: Pictures,
    /// Where one run was resumed.
    pub(super) resume: Option<Rc<Resume>>,
    lanes: BTreeMap<u32, Lane>,
    waiting: [usize; 2],
    ended: [bool; 2],
    /// The least and the greatest number of a step so far.
    steps: Option<[u64; 2]>,
}

/// The first difference of operations.
pub(super) struct First {
    pub(super) contrast: Contrast,
    pub(super) operations: [Operation; 2],
    /// Whether each operand is the same.
    pub(super) operands: Vec<Option<bool>>,
    /// Whether a state of its thread before it differs.
    pub(super) after_state: bool,
    /// Whether an operand is older than the step at which one run was resumed, and not known to agree.
    pub(super) reads_loaded: bool,
}

impl First {
    fn is_received(&self) -> bool {
        self.operations[0].name == Operation::RECEIVE
    }
}

/// The records of a thread that wait for their counterparts.
#[derive(Default)]
struct Lane {
    queues: [VecDeque<Item>; 2],
    /// The programs differ from here on: operations have no counterparts.
    parted: bool,
    /// How many states each side has recorded.
    states: [u64; 2],
    /// How many operations each side has recorded.
    operations: [u64; 2],
    /// How many operations each side issued, as far as is known.
    issued: [u64; 2],
    /// The first operation without a counterpart.
    alone: Option<Affected>,
}

enum Item {
    Operation(Box<Operation>),
    State(State),
}

impl Pass {
    pub(super) fn run(paths: &[PathBuf; 2], renamed: &Renamed, resume: Option<Rc<Resume>>) -> Result<Self, Error> {
        let side = |side| resume.clone().map(|resume| (resume, side));
        let sources = [Source::open(&paths[0], &Renamed::new(), side(0))?, Source::open(&paths[1], renamed, side(1))?];
        let mut pass = Self {
            sources,
            first: None,
            state: None,
            resumed_differs: false,
            overwritten: None,
            compared: Compared::default(),
            spread: Spread::default(),
            length: None,
            uncompared: Vec::new(),
            marks: Marks::default(),
            pictures: Pictures::new(),
            resume: resume.clone(),
            lanes: BTreeMap::new(),
            waiting: [0; 2],
            ended: [false; 2],
            steps: None,
        };
        for (thread, meeting) in resume.iter().flat_map(|resume| resume.reached()) {
            pass.compare_loaded(thread, meeting);
        }
        while let Some(side) = pass.behind() {
            match pass.sources[side].next()? {
                None => pass.ended[side] = true,
                Some(record) => pass.take(side, record),
            }
        }
        pass.end();
        Ok(pass)
    }

    /// Whether all of both was compared, and agrees.
    pub(super) fn is_clean(&self) -> bool {
        let differs = self.first.is_some() || self.state.is_some() || self.length.is_some();
        !differs && self.uncompared.is_empty() && self.compared.digests > 0
    }

    /// The side with fewer records that wait; `None` when both have ended.
    fn behind(&self) -> Option<usize> {
        match self.ended {
            [false, false] => Some(usize::from(self.waiting[0] > self.waiting[1])),
            [false, true] => Some(0),
            [true, false] => Some(1),
            [true, true] => None,
        }
    }

    fn take(&mut self, side: usize, record: Record) {
        match record {
            Record::Header(_) | Record::Thread(_) => {}
            Record::Operation(operation) => {
                let lane = self.lanes.entry(operation.thread).or_default();
                lane.issued[side] = lane.issued[side].max(operation.number + 1);
                lane.operations[side] += 1;
                let thread = operation.thread;
                if lane.parted || (self.ended[1 - side] && lane.queues[1 - side].is_empty()) {
                    self.alone(side, &operation);
                } else {
                    self.queue(side, thread, Item::Operation(Box::new(operation)));
                }
            }
            Record::State(state) => {
                let lane = self.lanes.entry(state.thread).or_default();
                lane.issued[side] = lane.issued[side].max(state.operations);
                lane.states[side] += 1;
                self.queue(side, state.thread, Item::State(state));
            }
            Record::End { operations, .. } => {
                for (thread, count) in (0..).zip(operations) {
                    let lane = self.lanes.entry(thread).or_default();
                    lane.issued[side] = lane.issued[side].max(count);
                }
            }
        }
    }

    fn queue(&mut self, side: usize, thread: u32, item: Item) {
        self.lanes.entry(thread).or_default().queues[side].push_back(item);
        self.waiting[side] += 1;
        self.advance(thread);
    }

    fn pop(&mut self, side: usize, thread: u32) -> Option<Item> {
        let item = self.lanes.get_mut(&thread)?.queues[side].pop_front()?;
        self.waiting[side] -= 1;
        Some(item)
    }

    /// Compares what a thread has on both sides.
    fn advance(&mut self, thread: u32) {
        loop {
            let lane = self.lanes.entry(thread).or_default();
            let [Some(one), Some(other)] = lane.queues.each_ref().map(VecDeque::front) else { return };
            let parted = lane.parted;
            match (one, other) {
                (Item::Operation(one), Item::Operation(other)) if one.number == other.number || parted => {
                    if let (Some(Item::Operation(one)), Some(Item::Operation(other))) =
                        (self.pop(0, thread), self.pop(1, thread))
                    {
                        self.compare([*one, *other]);
                    }
                }
                (Item::State(_), Item::State(_)) => {
                    if let (Some(Item::State(one)), Some(Item::State(other))) =
                        (self.pop(0, thread), self.pop(1, thread))
                    {
                        self.compare_states([one, other]);
                    }
                }
                (one, other) => {
                    // By the level, or because the programs differ: then one has an operation that the other lacks.
                    let side = usize::from(other.key() < one.key());
                    if self.sources[0].header.level == self.sources[1].header.level {
                        self.part(thread, side);
                    }
                    match self.pop(side, thread) {
                        Some(Item::Operation(operation)) => self.alone(side, &operation),
                        Some(Item::State(_)) | None => {}
                    }
                }
            }
        }
    }

    /// The programs differ, because the next record of `side` has no counterpart.
    fn part(&mut self, thread: u32, side: usize) {
        let Some(lane) = self.lanes.get_mut(&thread) else { return };
        if std::mem::replace(&mut lane.parted, true) {
            return;
        }
        let what = match lane.queues.each_ref().map(|queue| queue.front()) {
            [Some(Item::Operation(one)), Some(Item::Operation(other))] => {
                let operations = [(**one).clone(), (**other).clone()];
                let what = format!("number {} in the first, {} in the second", one.number, other.number);
                Some((operations, what))
            }
            [Some(Item::Operation(one)), _] | [_, Some(Item::Operation(one))] => {
                let [here, there] = if side == 0 { ["first", "second"] } else { ["second", "first"] };
                let operations = [(**one).clone(), (**one).clone()];
                Some((operations, format!("`{}` in the {here}, and the step ends in the {there}", one.name)))
            }
            _ => None,
        };
        if let Some((operations, what)) = what {
            self.difference(operations, Contrast::Program(what), Vec::new());
        }
    }

    /// An operation without a counterpart.
    fn alone(&mut self, side: usize, operation: &Operation) {
        let lane = self.lanes.entry(operation.thread).or_default();
        if lane.parted || self.sources[0].header.level == self.sources[1].header.level {
            // One that waited for a counterpart comes here after those that did not.
            if lane.alone.as_ref().is_none_or(|first| operation.number < first.number) {
                lane.alone = Some(Affected::new(operation));
            }
            self.spread.only[side] += 1;
            self.pictures.operation(Step::of(&operation.place), Some(Cell::only(side)));
        }
    }

    fn compare(&mut self, operations: [Operation; 2]) {
        let [one, other] = &operations;
        let thread = one.thread;
        if self.lanes.get(&thread).is_some_and(|lane| lane.parted) {
            self.alone(0, one);
            self.alone(1, other);
            return;
        }
        let mut found = contrast([one, other]);
        let mut operands = Vec::new();
        for (index, (a, b)) in one.inputs.iter().zip(&other.inputs).enumerate() {
            let same = match (a.origin, b.origin) {
                (Some(a), Some(b)) if a == b => self.marks.same(thread, a),
                (Some(a), Some(b)) => {
                    if !matches!(found, Contrast::Program(_)) {
                        let [first, second] = [made(one, index, a), made(other, index, b)];
                        found = Contrast::Program(format!(
                            "operand {index} is {first} in the first, {second} in the second"
                        ));
                    }
                    None
                }
                _ => None,
            };
            operands.push(same);
        }
        let results: Vec<Option<bool>> =
            (0..one.outputs.len().min(other.outputs.len())).map(|output| agree([one, other], output)).collect();
        for (output, same) in (0..).zip(&results) {
            self.count(*same);
            if let Some(same) = *same {
                self.marks.set(thread, Origin { operation: one.number, output }, same);
            }
        }
        let overwritten = overwritten([one, other], &operands);
        for origin in overwritten.iter().filter_map(|&operand| one.inputs[operand].origin) {
            self.marks.set(thread, origin, false);
        }
        if found == Contrast::Same && !overwritten.is_empty() {
            found = Contrast::Operands;
        }
        let changed = results.contains(&Some(false)) || found == Contrast::Operands;
        let unknown = !changed && results.contains(&None);
        self.compared.other_kernels += u64::from(!changed && !unknown && one.kernels != other.kernels);
        self.compared.operations += 1;
        let step = Step::of(&one.place);
        let cell = if changed { Cell::DIFFERING } else { Cell::SAME };
        let cell = self.pictures.operation(step, Some(cell).filter(|_| !unknown));
        let counts = self.spread.steps.entry(step).or_default();
        counts.compared += 1;
        counts.differing += u64::from(changed);
        for (output, same) in one.outputs.iter().zip(results) {
            if let (Some(path), Some(same)) = (&output.parameter, same) {
                self.parameter(path, step, same);
            }
        }
        // An operand that is unknown may be what differs: alone it excuses what comes after a difference.
        let by_operand = operands.contains(&Some(false)) || self.first.is_some() && operands.contains(&None);
        let inherited = matches!(found, Contrast::Results(_)) && by_operand;
        let lane = self.lanes.entry(thread).or_default();
        if let Contrast::Program(_) = found {
            lane.parted = true;
        }
        if inherited {
            if self.spread.first.len() < KEPT {
                self.spread.first.push(Affected::new(one));
            }
        } else if found != Contrast::Same {
            self.pictures.mark(cell);
            self.difference(operations, found, operands);
        }
    }

    /// An operation that differs by itself.
    fn difference(&mut self, operations: [Operation; 2], contrast: Contrast, operands: Vec<Option<bool>>) {
        let thread = operations[0].thread;
        // The order of threads is not known, but each is in order.
        let after_state = self.state.as_ref().is_some_and(|state| state.thread == thread);
        let [one, other] = &operations;
        let is_older = operands.len() == one.inputs.len()
            && one.inputs.iter().zip(&other.inputs).any(|(a, b)| a.origin.is_none() || b.origin.is_none());
        let is_first_step = |resume: &Rc<Resume>| {
            resume.threads.get(&thread).is_some_and(|meeting| Step::of(&one.place) == Step::of(&meeting.step))
        };
        let reads_loaded = is_older && self.resume.as_ref().is_some_and(is_first_step);
        let mut found = First { contrast, operations, operands, after_state, reads_loaded };
        match &mut self.first {
            None => {
                self.first = Some(found);
                return;
            }
            // What a thread received, another one had made before.
            Some(first) if first.is_received() && !found.is_received() && first.operations[0].thread != thread => {
                std::mem::swap(first, &mut found);
            }
            Some(_) => {}
        }
        self.spread.others_count += 1;
        if self.spread.others.len() < KEPT {
            self.spread.others.push(Affected::new(&found.operations[0]));
        }
    }

    fn compare_states(&mut self, [one, other]: [State; 2]) {
        let operations = [one.operations, other.operations];
        let tensors = Tensors::of(&one, &other);
        if let Some(number) = one.place.step {
            let [least, greatest] = self.steps.unwrap_or([number; 2]);
            self.steps = Some([least.min(number), greatest.max(number)]);
        }
        let places = [&one.place, &other.place];
        self.compare_tensors(one.thread, places, operations, tensors);
    }

    /// Compares what a run was resumed with.
    fn compare_loaded(&mut self, thread: u32, meeting: &Meeting) {
        let Some(after) = &meeting.after else { return };
        let pairs = meeting.pairs.iter().map(|pair| pair.each_ref()).collect();
        let mut only = [Vec::new(), Vec::new()];
        only[1 - meeting.side].extend(&meeting.missing);
        // Both as the run counts them that was not interrupted.
        let operations = [meeting.begin[1 - meeting.side]; 2];
        self.compare_tensors(thread, [after; 2], operations, Tensors { pairs, only });
        self.resumed_differs = self.state.is_some();
    }

    /// Compares the tensors of two states.
    fn compare_tensors(&mut self, thread: u32, places: [&Place; 2], operations: [u64; 2], tensors: Tensors) {
        let Tensors { pairs, only } = tensors;
        let [place, other_place] = places;
        let other_place = (Step::of(place) != Step::of(other_place)).then(|| other_place.clone());
        let step = Step::of(place);
        self.compared.states += 1;
        self.compared.steps += u64::from(step.number.is_some());
        let mut names = Vec::new();
        let (mut tensors, mut differing) = (0, 0);
        for &[a, b] in &pairs {
            let same = if (&a.shape, &a.dtype) != (&b.shape, &b.dtype) {
                Some(false)
            } else {
                a.digest.zip(b.digest).map(|(a, b)| a == b)
            };
            self.count(same);
            let Some(same) = same else { continue };
            tensors += 1;
            if a.origin == b.origin {
                if !same && self.state.is_none() && self.marks.same(thread, a.origin) == Some(true) {
                    self.overwritten.get_or_insert(a.origin);
                }
                self.marks.set(thread, a.origin, same);
            }
            self.parameter(a.parameter.as_deref().unwrap_or_default(), step, same);
            if !same {
                differing += 1;
                names.push(a.parameter.clone().unwrap_or_else(|| described(&a.shape, &a.dtype)));
            }
        }
        // A run that goes on may have a pending update of running statistics to take in, where one that was resumed has loaded
        // the result: then it has one tensor more of that path.
        let paths = pairs.iter().flatten().filter_map(|tensor| tensor.parameter.as_deref());
        let paired: HashSet<&str> = paths.filter(|_| self.resume.is_some()).collect();
        // Tensors without a name may live longer in one run, as batches that a loader has ready.
        for (side, alone) in only.into_iter().enumerate() {
            let is_named = |t: &&StateTensor| t.parameter.as_deref().is_some_and(|path| !paired.contains(path));
            let (with_name, without): (Vec<_>, Vec<_>) = alone.into_iter().partition(is_named);
            self.spread.only_tensors[side] += without.len() as u64;
            tensors += with_name.len() as u64;
            differing += with_name.len() as u64;
            let which = ["first", "second"][side];
            names.extend(
                with_name.iter().filter_map(|t| Some(format!("{} (in the {which} alone)", t.parameter.as_ref()?))),
            );
        }
        let counts = self.spread.steps.entry(step).or_default();
        counts.tensors += tensors;
        counts.tensors_differing += differing;
        if self.state.is_none() && (differing > 0 || operations[0] != operations[1] || other_place.is_some()) {
            names.truncate(KEPT_TENSORS);
            let place = place.clone();
            // What comes before the first step is recorded with step 0.
            let steps = self.steps.unwrap_or([0; 2]);
            self.state =
                Some(StateDifference { thread, place, other_place, steps, operations, tensors, differing, names });
        }
    }

    /// Counts two digests, which agree or not, or of which one is unknown.
    fn count(&mut self, same: Option<bool>) {
        match same {
            Some(_) => self.compared.digests += 1,
            None => self.compared.lost += 1,
        }
    }

    /// A value of a parameter, or of a tensor without a name.
    fn parameter(&mut self, name: &str, step: Step, same: bool) {
        self.pictures.parameter(name, step, same);
        if !name.is_empty() {
            let since = self.spread.parameters.entry(name.to_owned()).or_default();
            if !same {
                since.get_or_insert(step);
            }
        }
    }

    /// Both files are read.
    fn end(&mut self) {
        let threads: Vec<u32> = self.lanes.keys().copied().collect();
        for &thread in &threads {
            self.advance(thread);
        }
        for &thread in &threads {
            for side in 0..2 {
                while let Some(item) = self.pop(side, thread) {
                    if let Item::Operation(operation) = item {
                        self.alone(side, &operation);
                    }
                }
            }
        }
        let exact = self.sources.each_ref().map(|source| source.ending() == Some(Ending::Complete));
        // A side has all that it ever will have, and the other one has more.
        let differ = |[one, other]: [u64; 2]| one < other && exact[0] || other < one && exact[1];
        for (&thread, lane) in &self.lanes {
            let length =
                Length { thread, operations: lane.issued, states: lane.states, next: lane.alone.clone().map(Box::new) };
            if lane.states == [0; 2] && lane.operations == [0; 2] {
                self.uncompared.extend(differ(length.operations).then_some(length));
            } else if self.length.is_none() && (differ(length.operations) || differ(length.states)) {
                self.length = Some(length);
            }
        }
    }
}

/// What an operand is: the parameter, if it is one, and the result of which operation.
fn made(operation: &Operation, operand: usize, Origin { operation: number, output }: Origin) -> String {
    let parameter = &operation.inputs[operand].parameter;
    let parameter = parameter.as_ref().map_or_else(String::new, |path| format!("parameter {path}, "));
    format!("{parameter}result {output} of operation {number}")
}

impl Item {
    /// Where in the order of its thread: an operation comes before the state that counts it.
    fn key(&self) -> (u64, bool) {
        match self {
            Self::Operation(operation) => (operation.number, true),
            Self::State(state) => (state.operations, false),
        }
    }
}
