//! How a sort is laid over the device; every plan gives the same bits.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::radix_sort;

/// At most this many elements of a line: ranked.
const MOST_RANKED: usize = 512;

/// At most this many elements kept: selected. A unit has a register or two for each.
const MOST_SELECTED: usize = 32;

/// Most slots of a chunk: a kernel has registers for each, and is unrolled over them.
const MOST_SLOTS: usize = 64;

/// Longest chunk of a line that one unit selects from.
const LONGEST_CHUNK: usize = 1 << 14;

/// At most this many comparisons: ranked.
const FEW_COMPARISONS: usize = 1 << 24;

/// The first `kept` elements in order of each line of `tensor[outer, length, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Product of the sizes before the axis.
    pub outer: usize,
    /// Elements along the axis.
    pub length: usize,
    /// Product of the sizes after the axis.
    pub inner: usize,
    /// Elements of a line that the result has.
    pub kept: usize,
    /// Bits of the word that elements are compared by, or of each of the two.
    pub bits: u32,
    /// Whether elements are compared by two words.
    pub two_words: bool,
}

impl Problem {
    fn elements(&self) -> usize {
        self.outer * self.length * self.inner
    }

    /// The sort of all lines' elements by one word.
    pub(super) fn by_word(&self) -> radix_sort::Problem {
        radix_sort::Problem { length: self.elements(), rows: (u32::MAX >> (32 - self.bits)) as usize }
    }

    /// The sort of all lines' elements by line, if there are several.
    pub(super) fn by_line(&self) -> Option<radix_sort::Problem> {
        let lines = self.outer * self.inner;
        (lines > 1).then(|| radix_sort::Problem { length: self.elements(), rows: lines - 1 })
    }
}

/// The geometry of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Elements that a chunk keeps.
    pub slots: usize,
    /// Elements of a chunk.
    pub chunk: usize,
}

impl Selection {
    /// The geometry that keeps `kept` of `elements`.
    fn new(kept: usize, elements: usize, machine: Machine) -> Self {
        // The longer a chunk is, the more seldom an element displaces one that is in a slot.
        let units = if machine == Machine::Gpu { 1 << 14 } else { 1 << 9 };
        Self { slots: kept, chunk: (elements / units).clamp(32 * kept, LONGEST_CHUNK).next_multiple_of(4) }
    }

    /// Neighbours that make up a group. A chunk is read in groups, and of each only its first element in order competes for a
    /// slot; the groups that win are read again, element by element. With groups of about `sqrt(chunk / slots)` there are
    /// about as many groups as elements that are read again, which makes their sum the smallest.
    pub(super) fn group(&self, length: usize) -> usize {
        (self.chunk.min(length) / self.slots.max(1)).isqrt().max(1).next_multiple_of(4)
    }

    /// Loop iterations of the unit that has the most of them.
    fn iterations(&self, length: usize) -> usize {
        let (longest, group) = (self.chunk.min(length), self.group(length));
        // Three for each loop over a group, and one for each element.
        longest + 3 * longest.div_ceil(group) + self.slots * (group + 3)
    }

    fn refuses(&self, problem: &Problem) -> Option<String> {
        let Problem { kept, length, .. } = *problem;
        if self.slots > MOST_SLOTS || self.chunk > LONGEST_CHUNK {
            return Some(format!("{self:?}, want at most {MOST_SLOTS} slots, and chunks of {LONGEST_CHUNK}"));
        }
        // The first elements of a line are among those its chunks keep, and chunks become fewer.
        if self.slots < kept || 2 * self.slots > self.chunk {
            return Some(format!("the first {kept} by {self:?}, want at least {kept} slots, and chunks twice as long"));
        }
        let iterations = self.iterations(length);
        (iterations >= MAX_ITERATIONS)
            .then(|| format!("{self:?} of {length} elements loops {iterations} times, want less than {MAX_ITERATIONS}"))
    }
}

/// How elements are brought in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Enumeration sort: the rank of an element is the number of elements of its line that come before it. One launch.
    Rank,
    /// Selection: each chunk of a line keeps its first elements, and the chunks of what is left again, until one chunk is
    /// left. One launch each time.
    Select(Selection),
    /// Stable radix sorts of all lines together, by each word of the elements by this plan, and then by line by one of its kind.
    Radix(radix_sort::Plan),
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let radix = radix_sort::Plan::candidates(&problem.by_word()).into_iter().map(Self::Radix);
        let select = selections(problem).into_iter().map(Self::Select);
        let all = [Self::Rank].into_iter().chain(radix).chain(select);
        all.filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        match self {
            Self::Rank if problem.length < MAX_ITERATIONS => None,
            Self::Rank => {
                Some(format!("a rank of {} elements of a line, want less than {MAX_ITERATIONS}", problem.length))
            }
            Self::Select(selection) => selection.refuses(problem),
            Self::Radix(radix_sort::Plan::Rank) => {
                Some(format!("{self:?}, want chunks or tiles: a rank takes no positions"))
            }
            Self::Radix(sort) => sort.refuses(&problem.by_word()),
        }
    }
}

/// The selections that are planned for `problem`, and edges.
fn selections(problem: &Problem) -> Vec<Selection> {
    let kept = problem.kept;
    // A unit has a register or two for each slot.
    if !(1..=MOST_SELECTED).contains(&kept) {
        return vec![];
    }
    let slots = kept.next_power_of_two();
    let edges = [(slots, 2 * slots), (slots, 100 * slots), (slots + 3, 5 * slots + 3)];
    let edges = edges.map(|(slots, chunk)| Selection { slots, chunk });
    let chosen = [Machine::Gpu, Machine::Software].map(|machine| Selection::new(kept, problem.elements(), machine));
    let mut selections: Vec<Selection> = chosen.into_iter().chain(edges).collect();
    selections.dedup();
    selections
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let Problem { length, kept, two_words, .. } = *problem;
    let elements = problem.elements();
    let ranked = if two_words { 2 * MOST_RANKED } else { MOST_RANKED };
    if kept <= MOST_SELECTED && 2 * kept <= length {
        Plan::Select(Selection::new(kept, elements, machine))
    } else if length <= ranked || (length <= 2048 && elements.saturating_mul(length) <= FEW_COMPARISONS) {
        Plan::Rank
    } else {
        Plan::Radix(radix_sort::plan::plan(&problem.by_word(), machine))
    }
}
