//! Counts by step and row, on a grid of a bounded size.

use super::step::Step;

/// Counts by step and row. With more steps or rows than the grid has, neighbours share a column or a row.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The first step of each column.
    pub steps: Vec<Step>,
    /// The name of each row, where rows have names and none share one.
    pub rows: Vec<String>,
    /// By column, then by row; columns may end early.
    pub cells: Vec<Vec<Cell>>,
    /// Column and row of the first difference.
    pub first: Option<(usize, usize)>,
    /// Steps of a column.
    pub steps_of_column: usize,
    /// Operations or tensors of a row.
    pub items_of_row: usize,
}

/// How many operations or tensors are the same, differ, or are in one recording alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The same in both.
    pub same: u32,
    /// Different.
    pub differing: u32,
    /// In the first or the second recording alone.
    pub only: [u32; 2],
}

/// A [`Picture`] in the making.
pub(super) struct Grid {
    limits: [usize; 2],
    scales: [usize; 2],
    steps: Vec<Step>,
    cells: Vec<Vec<Cell>>,
    /// In steps and rows.
    first: Option<(usize, usize)>,
}

impl Cell {
    pub(super) const SAME: Self = Self { same: 1, differing: 0, only: [0; 2] };
    pub(super) const DIFFERING: Self = Self { same: 0, differing: 1, only: [0; 2] };

    pub(super) fn only(side: usize) -> Self {
        let mut only = [0; 2];
        only[side] = 1;
        Self { same: 0, differing: 0, only }
    }

    fn add(&mut self, other: Self) {
        self.same = self.same.saturating_add(other.same);
        self.differing = self.differing.saturating_add(other.differing);
        for (only, other) in self.only.iter_mut().zip(other.only) {
            *only = only.saturating_add(other);
        }
    }
}

impl Grid {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { limits: [columns, rows], scales: [1; 2], steps: Vec::new(), cells: Vec::new(), first: None }
    }

    /// Adds to a cell: `column` counts the steps, in the order in which they begin.
    pub(super) fn add(&mut self, column: usize, step: Step, row: usize, cell: Cell) {
        while column / self.scales[0] >= self.limits[0] {
            self.scales[0] *= 2;
            self.cells = merged(&self.cells, |one, other| {
                one.resize(one.len().max(other.len()), Cell::default());
                one.iter_mut().zip(other).for_each(|(one, other)| one.add(*other));
            });
            self.steps = merged(&self.steps, |_, _| {});
        }
        while row / self.scales[1] >= self.limits[1] {
            self.scales[1] *= 2;
            for column in &mut self.cells {
                *column = merged(column, |one, other| one.add(*other));
            }
        }
        let (column, row) = (column / self.scales[0], row / self.scales[1]);
        if self.cells.len() <= column {
            self.cells.resize(column + 1, Vec::new());
            self.steps.resize(column + 1, step);
        }
        let cells = &mut self.cells[column];
        if cells.len() <= row {
            cells.resize(row + 1, Cell::default());
        }
        cells[row].add(cell);
    }

    /// Marks the first difference.
    pub(super) fn mark(&mut self, column: usize, row: usize) {
        self.first.get_or_insert((column, row));
    }

    pub(super) fn picture(self, names: Vec<String>) -> Picture {
        let [steps_of_column, items_of_row] = self.scales;
        Picture {
            steps: self.steps,
            rows: if items_of_row == 1 { names } else { Vec::new() },
            cells: self.cells,
            first: self.first.map(|(column, row)| (column / steps_of_column, row / items_of_row)),
            steps_of_column,
            items_of_row,
        }
    }
}

/// Pairs of neighbours, as `merge` makes one of two.
fn merged<T: Clone>(items: &[T], merge: impl Fn(&mut T, &T)) -> Vec<T> {
    let pairs = items.chunks(2).map(|pair| {
        let mut one = pair[0].clone();
        if let Some(other) = pair.get(1) {
            merge(&mut one, other);
        }
        one
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_cells_when_the_grid_is_full() {
        let of = |number| Step { epoch: None, number: Some(number) };
        let mut grid = Grid::new(4, 2);
        for step in 0..10 {
            for row in 0..5 {
                grid.add(step, of(100 + step as u64), row, if row == 3 { Cell::DIFFERING } else { Cell::SAME });
            }
        }
        grid.mark(9, 3);
        let picture = grid.picture(vec!["a".into()]);
        assert_eq!((picture.steps_of_column, picture.items_of_row), (4, 4));
        assert_eq!(picture.steps, [100, 104, 108].map(of));
        assert_eq!(picture.first, Some((2, 0)));
        assert!(picture.rows.is_empty(), "rows share names");
        let cell = |same, differing| Cell { same, differing, only: [0; 2] };
        assert_eq!(picture.cells[0], [cell(12, 4), cell(4, 0)]);
        assert_eq!(picture.cells[2], [cell(6, 2), cell(2, 0)]);
    }
}
