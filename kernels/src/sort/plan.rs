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

/// Units that select together: at least one element of a chunk for each, and as many elements as for one.
pub(super) const UNITS_OF_CUBE: usize = 64;

/// Shortest line of which a cube is planned to select.
const SHORTEST_OF_CUBE: usize = 2 * UNITS_OF_CUBE;

/// Elements of a chunk from which a cube is busy with reading: eight vectors a unit.
const CHUNK_OF_CUBE: usize = 32 * UNITS_OF_CUBE;

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

/// What selects from one chunk of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// A unit, which keeps the elements in its registers.
    Unit,
    /// A cube of 64 units, each of which keeps the first elements of its share: two lists are made one, in shared memory, until
    /// one list is left. For lines that are not strided against each other (an inner extent of 1).
    Cube,
}

/// The geometry of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Elements that a chunk keeps.
    pub slots: usize,
    /// Elements of a chunk.
    pub chunk: usize,
    /// What selects from a chunk.
    pub selector: Selector,
}

impl Selection {
    /// The geometry that is planned for `problem` on `machine`.
    fn new(problem: &Problem, machine: Machine) -> Self {
        let Problem { outer, length, inner, kept, .. } = *problem;
        let elements = problem.elements();
        // A unit reads a line in one go, far from its neighbours. That is fast where there are many more lines than a GPU has units.
        let few = outer <= 64 * length;
        if machine == Machine::Gpu && inner == 1 && length >= SHORTEST_OF_CUBE && few {
            let chunk = (elements / (1 << 11)).clamp(CHUNK_OF_CUBE, LONGEST_CHUNK * UNITS_OF_CUBE).next_multiple_of(4);
            return Self { slots: kept.next_power_of_two(), chunk, selector: Selector::Cube };
        }
        // The longer a chunk is, the more seldom an element displaces one that is in a slot.
        let units = if machine == Machine::Gpu { 1 << 14 } else { 1 << 9 };
        let chunk = (elements / units).clamp(32 * kept, LONGEST_CHUNK).next_multiple_of(4);
        Self { slots: kept, chunk, selector: Selector::Unit }
    }

    /// Neighbours that make up a group. A chunk is read in groups, and of each only its first element in order competes for a
    /// slot; the groups that win are read again, element by element. With groups of about `sqrt(chunk / slots)` there are
    /// about as many groups as elements that are read again, which makes their sum the smallest.
    pub(super) fn group(&self, length: usize) -> usize {
        (self.chunk.min(length) / self.slots.max(1)).isqrt().max(1).next_multiple_of(4)
    }

    /// Words of shared memory that a cube has for the lists of its units.
    pub(super) fn shared_words(&self, two_words: bool) -> usize {
        let of_entry = if two_words { 3 } else { 2 };
        match self.selector {
            Selector::Unit => 0,
            Selector::Cube => of_entry * self.slots * UNITS_OF_CUBE,
        }
    }

    /// Loop iterations of the unit that has the most of them.
    fn iterations(&self, length: usize) -> usize {
        let (longest, group) = (self.chunk.min(length), self.group(length));
        // Three for each loop over a group, and one for each element.
        longest + 3 * longest.div_ceil(group) + self.slots * (group + 3)
    }

    fn refuses(&self, problem: &Problem) -> Option<String> {
        let Problem { kept, length, inner, .. } = *problem;
        let (most, longest) = match self.selector {
            Selector::Unit => (MOST_SLOTS, LONGEST_CHUNK),
            Selector::Cube => (MOST_SELECTED, LONGEST_CHUNK * UNITS_OF_CUBE),
        };
        if self.slots > most || self.chunk > longest {
            return Some(format!("{self:?}, want at most {most} slots, and chunks of {longest}"));
        }
        // The first elements of a line are among those its chunks keep, and chunks become fewer.
        if self.slots < kept || 2 * self.slots > self.chunk {
            return Some(format!("the first {kept} by {self:?}, want at least {kept} slots, and chunks twice as long"));
        }
        match self.selector {
            Selector::Unit => {
                let iterations = self.iterations(length);
                (iterations >= MAX_ITERATIONS).then(|| {
                    format!("{self:?} of {length} elements loops {iterations} times, want less than {MAX_ITERATIONS}")
                })
            }
            Selector::Cube => {
                let fits = self.slots.is_power_of_two() && self.chunk.min(length) >= UNITS_OF_CUBE && inner == 1;
                (!fits).then(|| {
                    format!(
                        "{self:?} of {length} elements beside {inner} others, want a power of two of slots, and lines and \
                         chunks of at least {UNITS_OF_CUBE} elements beside no other"
                    )
                })
            }
        }
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
    let by_units =
        [(slots, 2 * slots), (slots, 100 * slots), (slots + 3, 5 * slots + 3)].map(|edge| (edge, Selector::Unit));
    let by_cubes = [(slots, UNITS_OF_CUBE.max(2 * slots)), (slots, 100 * slots), (slots, 101 * slots)]
        .map(|edge| (edge, Selector::Cube));
    let edges = by_units.into_iter().chain(by_cubes);
    let edges = edges.map(|((slots, chunk), selector)| Selection { slots, chunk, selector });
    let chosen = [Machine::Gpu, Machine::Software].map(|machine| Selection::new(problem, machine));
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
        Plan::Select(Selection::new(problem, machine))
    } else if length <= ranked || (length <= 2048 && elements.saturating_mul(length) <= FEW_COMPARISONS) {
        Plan::Rank
    } else {
        Plan::Radix(radix_sort::plan::plan(&problem.by_word(), machine))
    }
}
