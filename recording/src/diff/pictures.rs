//! Operations and parameters by step, in the making.

use super::grid::{Cell, Grid, Picture};
use super::step::Step;
use std::collections::HashMap;

/// Steps are columns, in the order in which they begin.
pub(super) struct Pictures {
    operations: Grid,
    parameters: Grid,
    /// Names of the rows of parameters.
    rows: Vec<String>,
    row_of: HashMap<String, usize>,
    columns: HashMap<Step, usize>,
    /// Operations of each step so far.
    heights: HashMap<Step, usize>,
}

impl Pictures {
    pub(super) fn new() -> Self {
        Self {
            operations: Grid::new(240, 120),
            parameters: Grid::new(240, 48),
            rows: Vec::new(),
            row_of: HashMap::new(),
            columns: HashMap::new(),
            heights: HashMap::new(),
        }
    }

    /// The next operation of a step; `None` where it is not known whether it differs. Gives its place, for [`mark`](Self::mark).
    pub(super) fn operation(&mut self, step: Step, cell: Option<Cell>) -> (usize, usize) {
        let height = self.heights.entry(step).or_default();
        let row = *height;
        *height += 1;
        let column = self.column(step);
        if let Some(cell) = cell {
            self.operations.add(column, step, row, cell);
        }
        (column, row)
    }

    /// Marks the first operation that differs.
    pub(super) fn mark(&mut self, (column, row): (usize, usize)) {
        self.operations.mark(column, row);
    }

    /// A value of a parameter, or of a tensor without a name.
    pub(super) fn parameter(&mut self, name: &str, step: Step, same: bool) {
        let next = self.rows.len();
        let row = *self.row_of.entry(name.to_owned()).or_insert(next);
        if row == next {
            self.rows.push(if name.is_empty() { "tensors without a name".to_owned() } else { name.to_owned() });
        }
        let column = self.column(step);
        self.parameters.add(column, step, row, if same { Cell::SAME } else { Cell::DIFFERING });
        if !same {
            self.parameters.mark(column, row);
        }
    }

    fn column(&mut self, step: Step) -> usize {
        let next = self.columns.len();
        *self.columns.entry(step).or_insert(next)
    }

    /// Operations and parameters.
    pub(super) fn finish(self) -> [Picture; 2] {
        [self.operations.picture(Vec::new()), self.parameters.picture(self.rows)]
    }
}
