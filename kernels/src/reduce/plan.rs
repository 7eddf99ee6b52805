//! How a reduction or a search is laid over the device; every plan gives the same bits.

use super::kernel::short_rows::{ROWS, STAGED};
pub use super::view::View;

use crate::KernelError;
use crate::device::{Machine, require_shared_memory, require_units};
use crate::grid::UNITS;
use crate::order::{COLUMNS, COLUMNS_BLOCK as BLOCK};
use cubecl::prelude::Client;

// A unit reads one block: its elements, and a loop over its columns around them, each of which is a loop to leave.
const _: () = assert!(((BLOCK + 3 * COLUMNS) as usize) <= crate::grid::MAX_ITERATIONS);

/// What is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The elements of a tensor are reduced.
    Reduction,
    /// The results of a program are reduced: elements of a dense tensor that is not in memory yet.
    ProgramReduction,
    /// The index of an extreme is searched among the elements of a tensor.
    Search,
}

/// A reduction of at least one element to each of at least one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The elements that the first pass reads.
    pub view: View,
    /// What is reduced.
    pub kind: Kind,
}

impl Problem {
    /// The reduction of `shape` with `strides` over `axes`. Axes that do not join to two loops are copied before, and a
    /// program's results written.
    pub fn new(shape: &[usize], strides: &[usize], axes: &[usize], kind: Kind) -> Self {
        Self::in_place(shape, strides, axes, kind).0
    }

    /// [`new`](Self::new), and whether the view is of the tensor itself, not of a copy with the reduced axes last.
    pub(super) fn in_place(shape: &[usize], strides: &[usize], axes: &[usize], kind: Kind) -> (Self, bool) {
        let reduced: Vec<bool> = (0..shape.len()).map(|i| axes.contains(&i)).collect();
        match (View::of(shape, strides, &reduced), kind) {
            (Some(view), kind) => (Self { view, kind }, true),
            (None, Kind::Search) => (Self { view: View::of_copy(shape, &reduced), kind }, false),
            (None, _) => (Self { view: View::of_copy(shape, &reduced), kind: Kind::Reduction }, false),
        }
    }

    /// What the pass after the first reads: one value for each block of an output.
    fn totals(&self) -> View {
        let blocks = self.view.blocks();
        match self.kind {
            // The value is an index, of an element of the view.
            Kind::Search => View { axis: blocks, ..self.view },
            Kind::Reduction | Kind::ProgramReduction => View::rows(self.view.outputs, blocks),
        }
    }
}

/// How the units of a cube share blocks, where they read one element at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cube {
    /// Blocks of a cube.
    pub width: u32,
    /// Units that share the columns of one block; with one there is no shared memory and no barrier.
    pub groups: u32,
}

impl Cube {
    /// One unit a block.
    pub const WIDE: Self = Self { width: 64, groups: 1 };
    /// One unit a block and few a cube: more cubes where there are few blocks.
    pub const NARROW: Self = Self { width: 8, groups: 1 };
    /// Four units a block, for many blocks of a dense axis on a software driver, and for searches in short rows: fewer lanes then
    /// read a block apart.
    pub const FOUR_UNITS: Self = Self { width: 8, groups: 4 };
    /// A unit for two columns, for outputs that are adjacent in memory: eight outputs are a sector of 32 bytes.
    pub const UNIT_TWO_COLUMNS: Self = Self { width: 8, groups: COLUMNS / 2 };
    /// One unit a column, for elements of an output that are adjacent in memory.
    pub const UNIT_A_COLUMN: Self = Self { width: 1, groups: COLUMNS };

    const ALL: [Self; 5] = [Self::WIDE, Self::NARROW, Self::FOUR_UNITS, Self::UNIT_TWO_COLUMNS, Self::UNIT_A_COLUMN];

    /// Those that read one element of each of four outputs.
    const OF_FOUR_OUTPUTS: [Self; 3] = [Self::WIDE, Self::NARROW, Self::UNIT_TWO_COLUMNS];

    /// Whether elements of an output are nearer to each other than outputs.
    fn is_dense(view: &View) -> bool {
        view.outputs == 1 || view.axis_stride <= view.inner_stride
    }

    /// The cube for a pass over `view`.
    fn of(view: &View, machine: Machine) -> Self {
        let blocks = u64::from(view.blocks()) * u64::from(view.outputs);
        let dense_axis = Self::is_dense(view);
        match machine {
            Machine::Software if blocks < 1 << 12 => Self::NARROW,
            Machine::Software if dense_axis => Self::FOUR_UNITS,
            Machine::Software => Self::WIDE,
            Machine::Gpu if view.axis <= COLUMNS => Self::WIDE,
            Machine::Gpu if dense_axis => Self::UNIT_A_COLUMN,
            // Enough outputs fill the device with one unit each.
            Machine::Gpu if blocks >= 1 << 18 => Self::WIDE,
            Machine::Gpu => Self::UNIT_TWO_COLUMNS,
        }
    }

    /// The cube for a pass over `view`, of vectors of four outputs.
    fn of_four_outputs(view: &View, machine: Machine) -> Self {
        match machine {
            Machine::Software => Self::NARROW,
            // Shorter ones would leave most units of a block idle.
            Machine::Gpu if view.axis <= COLUMNS / 4 => Self::WIDE,
            Machine::Gpu => Self::UNIT_TWO_COLUMNS,
        }
    }

    /// Refuses a device that does not have the units of a cube, or the shared memory for `slots` elements of `bytes`
    /// bytes for each of its blocks.
    pub(super) fn require(
        self,
        client: &Client,
        kernel: &'static str,
        slots: u32,
        bytes: usize,
    ) -> Result<(), KernelError> {
        require_units(client, kernel, self.width.saturating_mul(self.groups))?;
        // A unit with a block of its own shares nothing.
        let shared = if self.groups == 1 { 0 } else { (slots * self.width) as usize * bytes };
        require_shared_memory(client, kernel, shared)
    }
}

/// The kernel of the first pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Units read one element at a time.
    Single(Cube),
    /// Units read an element of each of [four outputs](View::in_vectors_of_outputs) at a time. Not for searches.
    FourOutputs(Cube),
    /// A unit has a block and reads [four of its elements](View::has_elements_in_vectors) at a time.
    FourElements {
        /// Units of a cube.
        width: u32,
    },
    /// A unit has a [short row](View::has_short_rows), and reads rows together with the other units of its cube. Not for
    /// searches.
    ShortRows,
    /// A cube has the 2 to [`Pass::MAX_BLOCKS`] blocks of an output, a unit a column of one of them: no second pass. Not for searches.
    AllBlocks,
}

impl Pass {
    /// Units of a cube that reads vectors, on a software driver.
    const WIDTH: u32 = 8;

    /// Blocks of an output in one cube: each has 64 units.
    pub const MAX_BLOCKS: u32 = UNITS / COLUMNS;

    /// Whether an output of `view` has several blocks, and a cube holds them all.
    fn is_of_few_blocks(view: &View) -> bool {
        (2..=Self::MAX_BLOCKS).contains(&view.blocks())
    }

    /// Whether a second pass adds what the blocks of an output give.
    fn leaves_totals(self, view: &View) -> bool {
        view.blocks() > 1 && self != Self::AllBlocks
    }

    /// The blocks of a cube, and the units of a block.
    pub(super) fn cube(self) -> Cube {
        match self {
            Self::AllBlocks => Cube { width: Self::MAX_BLOCKS, groups: COLUMNS },
            Self::Single(cube) | Self::FourOutputs(cube) => cube,
            Self::FourElements { width } => Cube { width, groups: 1 },
            Self::ShortRows => Cube { width: ROWS, groups: 1 },
        }
    }

    /// Refuses a device that does not have the units of a cube, or the shared memory for accumulators of so many bytes.
    pub(super) fn require(self, client: &Client, kernel: &'static str, bytes: usize) -> Result<(), KernelError> {
        let lanes = if matches!(self, Self::FourOutputs(_)) { 4 } else { 1 };
        if self == Self::ShortRows {
            require_shared_memory(client, kernel, STAGED * bytes)?;
        }
        self.cube().require(client, kernel, COLUMNS, lanes * bytes)
    }
}

/// How a reduction is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The pass over the elements.
    pub first: Pass,
    /// Whether the first pass computes a program's results where it reads them. If not, a launch before it writes them.
    pub fuses: bool,
    /// The passes over the values of blocks, which read one at a time; none where an output has one block.
    pub totals: Option<Cube>,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let in_vectors = Pass::FourElements { width: Pass::WIDTH };
        let of_outputs = Cube::OF_FOUR_OUTPUTS.map(Pass::FourOutputs);
        let firsts: Vec<Pass> = Cube::ALL
            .map(Pass::Single)
            .into_iter()
            .chain(of_outputs)
            .chain([in_vectors, Pass::ShortRows, Pass::AllBlocks])
            .collect();
        let totals: Vec<Option<Cube>> = [None].into_iter().chain(Cube::ALL.map(Some)).collect();
        let mut plans = Vec::new();
        for first in firsts {
            for fuses in [false, true] {
                plans.extend(totals.iter().map(|&totals| Self { first, fuses, totals }));
            }
        }
        plans.retain(|plan| plan.refuses(problem).is_none());
        plans
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let Problem { view, kind } = problem;
        let cubes = [Some(self.first.cube()), self.totals];
        let wanted = match self.first {
            _ if cubes.into_iter().flatten().any(|cube| cube.width == 0 || cube.groups == 0) => "cubes with units",
            _ if self.totals.is_some() != self.first.leaves_totals(view) => {
                "cubes for totals where an output has several blocks"
            }
            _ if self.fuses && *kind != Kind::ProgramReduction => "results of a program",
            Pass::FourOutputs(_) if view.in_vectors_of_outputs().is_none() => "outputs in vectors of four",
            Pass::FourOutputs(_) if *kind == Kind::Search => "elements to reduce",
            Pass::FourElements { .. } if !view.has_elements_in_vectors() => "elements in vectors of four",
            Pass::ShortRows if !view.has_short_rows() => "rows of at most 64 neighbours",
            Pass::AllBlocks if !Pass::is_of_few_blocks(view) => "2 to 4 blocks of an output",
            Pass::ShortRows | Pass::AllBlocks if *kind == Kind::Search => "elements to reduce",
            _ => return None,
        };
        Some(format!("{self:?} for {problem:?}, want {wanted}"))
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses).
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let Problem { view, kind } = problem;
    let software = machine == Machine::Software;
    let four_outputs = view.in_vectors_of_outputs().filter(|_| *kind != Kind::Search);
    let first = match four_outputs {
        _ if software && view.has_elements_in_vectors() => Pass::FourElements { width: Pass::WIDTH },
        Some(vectors) => Pass::FourOutputs(Cube::of_four_outputs(&vectors, machine)),
        None if software => Pass::Single(Cube::of(view, machine)),
        // Of fewer elements most units would read none.
        None if view.has_short_rows() && view.axis > 16 => match kind {
            // Four units compare neighbours.
            Kind::Search => Pass::Single(Cube::FOUR_UNITS),
            Kind::Reduction | Kind::ProgramReduction => Pass::ShortRows,
        },
        None if Pass::is_of_few_blocks(view) && Cube::is_dense(view) && *kind != Kind::Search => Pass::AllBlocks,
        None => Pass::Single(Cube::of(view, machine)),
    };
    // On a software driver a program takes longer without vectors than writing and reading its results.
    let fuses = *kind == Kind::ProgramReduction && (!software || !matches!(first, Pass::Single(_)));
    let totals = first.leaves_totals(view).then(|| Cube::of(&problem.totals(), machine));
    Plan { first, fuses, totals }
}

/// The plan whose units have the fewest operations: for kernels whose operations are many each
/// ([`subnormals`](crate::subnormals)).
pub fn of_few_operations(problem: &Problem) -> Plan {
    let totals = (problem.view.blocks() > 1).then_some(Cube::UNIT_A_COLUMN);
    Plan { first: Pass::Single(Cube::UNIT_A_COLUMN), fuses: false, totals }
}
