//! Binds a program that reduces rows to its operands, and launches it.

use super::cube::Cube;
use super::kernel::{self, RowForm};
use super::phases::Phases;
use crate::buffer::unwritten_each;
use crate::elementwise::{Bound, Call, Operands, Program, Results, Reused};
use crate::index_check::Flag;
use crate::view::checked_elements;
use crate::{KernelError, device, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const KERNEL: &str = "rows";

/// A program that reduces rows, and which of its operands have one value a row.
#[derive(Clone, Debug)]
pub struct RowProgram {
    program: Arc<Program>,
    phases: Arc<Phases>,
}

impl RowProgram {
    /// The program, where these word operands, and these bool operands, have length 1 along the last axis.
    ///
    /// # Panics
    ///
    /// When the program reduces what is one value a row, an index is not one value a row, or it has windows.
    pub fn new(program: Arc<Program>, row_words: Vec<bool>, row_conditions: Vec<bool>) -> Self {
        assert!(program.indices().iter().all(|&index| row_words[index]), "an index is one value a row");
        assert!(program.windows().is_empty(), "a kernel of rows has no windows");
        let phases = Arc::new(Phases::of(&program, row_words, row_conditions));
        Self { program, phases }
    }

    /// Whether one kernel can have rows of `length` elements.
    pub fn fits(&self, client: &Client, length: usize) -> bool {
        Cube::of(client, &self.phases, length).is_some()
    }

    /// Runs the program on `shape`, whose last axis has the elements of a row. A result of one value a row has length 1 there.
    /// Sets the flag of each of the program's [indices](Program::indices) that is no place in a row.
    ///
    /// # Panics
    ///
    /// When there are more or fewer flags than indices, or they are of several buffers.
    ///
    /// # Errors
    ///
    /// Those of [`elementwise::run`](crate::elementwise::run()), and [`KernelError::Shape`] where the rows do not
    /// [fit](Self::fits) or an operand said to have one value a row has another length.
    pub fn run(
        &self,
        client: &Client,
        shape: &[usize],
        operands: Operands,
        condition_dtype: ElemType,
        flags: &[Flag<'_>],
    ) -> Result<Results, KernelError> {
        self.run_donated(client, shape, operands, condition_dtype, flags, &[])
    }

    /// As [`run`](Self::run), with results in the memory of the word operands with the indices `donated`, as
    /// [`elementwise::run_donated`](crate::elementwise::run_donated).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run), and as that.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_donated(
        &self,
        client: &Client,
        shape: &[usize],
        operands: Operands,
        condition_dtype: ElemType,
        flags: &[Flag<'_>],
        donated: &[usize],
    ) -> Result<Results, KernelError> {
        assert_eq!(flags.len(), self.program.indices().len(), "flags, and indices");
        assert!(flags.iter().all(|flag| flag.is_beside(flags[0])), "flags of several buffers");
        let elements = checked_elements(KERNEL, shape)?;
        let length = shape.last().copied().unwrap_or(0);
        let refused = |reason: String| KernelError::Shape { kernel: KERNEL, reason };
        let Some(cube) = Cube::of(client, &self.phases, length) else {
            return Err(refused(format!("rows of {length} elements do not fit in one kernel")));
        };
        let words = operands.words.iter().zip(&self.phases.row_inputs);
        let masks = operands.conditions.iter().zip(&self.phases.row_masks);
        let is_other = |operand: &TensorHandle| operand.shape().last().is_some_and(|&last| last != 1);
        if let Some((operand, _)) = words.chain(masks).find(|(operand, is_row)| **is_row && is_other(operand)) {
            return Err(refused(format!(
                "an operand of shape {:?} has more than one value a row",
                &operand.shape()[..]
            )));
        }
        let one = [&shape[..shape.len() - 1], &[1]].concat();
        let Phases { row_words, row_halves, row_conditions, .. } = &*self.phases;
        let program = &self.program;
        let may = |word, operand| self.phases.may_overwrite(word, operand);
        let reused = Reused::of(program, shape, &operands, donated, may);
        let call = Call { program, shape, operands, condition_dtype };
        let (bound, mut results) = Bound::without_results(client, call, reused)?;
        let (words, halves) = (program.word_outputs().len(), program.half_outputs().len());
        for (first, of_rows) in [(0, row_words), (words, row_halves), (words + halves, row_conditions)] {
            of_rows.iter().for_each(|(output, _)| results[first + output].shape = &one);
        }
        let bound = bound.with_results(&mut unwritten_each(client, results).into_iter());
        if elements > 0 {
            device::require_units(client, KERNEL, cube.units * cube.rows)?;
            self.launch(client, &bound, cube, [elements / length, length], flags);
        }
        Ok(bound.into_results())
    }

    fn launch(&self, client: &Client, bound: &Bound, cube: Cube, [rows, length]: [usize; 2], flags: &[Flag<'_>]) {
        let (inputs, outputs, form) = bound.arguments(1);
        let mut numbers = SequenceArg::new();
        flags.iter().for_each(|flag| numbers.push(flag.number()));
        let form = RowForm { form, phases: self.phases.clone(), cube };
        // SAFETY: a unit reads and writes elements of its own row, below `length`, of rows below `rows`, and reads the first
        // row, which exists, where it has none; `Cube::of` has bounded `length` by the pitch of lists, and the units of a cube
        // by those of columns, and flags are in their buffer. An output in an operand's memory has its elements, which only the
        // unit that overwrites them reads, in that phase or before. A barrier is between what one unit writes to shared memory
        // and another reads.
        unsafe {
            kernel::compute_rows::launch_unchecked(
                client,
                grid::cubes(rows.div_ceil(cube.rows as usize)),
                CubeDim::new_2d(cube.units, cube.rows),
                1,
                inputs,
                outputs,
                flags.first().map(|flag| flag.buffer()).into(),
                numbers,
                rows as u32,
                length as u32,
                form,
                [bound.condition_dtype(), bound.half_or_f32()],
            );
        }
    }
}
