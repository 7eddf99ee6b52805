//! The cubes of rows.

use super::phases::Phases;
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use cubecl::prelude::Client;

/// Most bytes of shared memory of a cube: GPUs then hold several.
const MAX_SHARED: usize = 32_768;

/// Units of a cube, of rows of at most [`COLUMNS`] elements.
const UNITS: u32 = 64;

/// The units of a cube, and the shared memory of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cube {
    /// Units of a row: a power of two, and one for each of its columns.
    pub units: u32,
    /// Rows.
    pub rows: u32,
    /// Elements of a row in a list of shared memory.
    pub pitch: u32,
}

impl Cube {
    /// The cube for rows of `length` elements, where one kernel can have them: they are one block of the columns order, and what is
    /// kept of them fits in shared memory.
    pub fn of(client: &Client, phases: &Phases, length: usize) -> Option<Self> {
        if !(1..=COLUMNS_BLOCK as usize).contains(&length) {
            return None;
        }
        let length = length as u32;
        let units = length.next_power_of_two().clamp(8, COLUMNS);
        let cube = Self { units, rows: UNITS / units, pitch: length.next_power_of_two().max(units) };
        let shared = client.properties().hardware.max_shared_memory_size.min(MAX_SHARED);
        (cube.bytes(phases) <= shared).then_some(cube)
    }

    /// Bytes of shared memory for the lists, the columns and the totals.
    fn bytes(self, phases: &Phases) -> usize {
        let accumulators = phases.most_accumulators();
        let words = self.pitch as usize * phases.lists.max(1) + (self.units as usize + 1) * accumulators;
        words * self.rows as usize * size_of::<u32>()
    }
}
