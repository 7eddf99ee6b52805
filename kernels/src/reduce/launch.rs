//! The launches of a reduction: a pass over the elements, then passes over the values of blocks.

use super::kernel::short_rows::{ROWS, ShortForm};
use super::kernel::source::Source;
use super::kernel::{all_blocks, four_elements, short_rows, single};
use super::operation::Operation;
use super::plan::{Cube, Pass, Plan};
use super::view::{View, ViewLaunch};
use crate::dtype::{F32, U32};
use crate::elementwise::{Bound, InputsLaunch, OutputsLaunch};
use crate::known_answer;
use crate::order::COLUMNS;
use crate::quotient::Quotients;
use crate::{KernelError, buffer, grid};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// What the first pass reads.
#[derive(Clone, Copy)]
pub(super) enum First<'a> {
    /// Elements in memory.
    Stored(&'a TensorHandle),
    /// Results of a program, computed where they are read.
    Computed(&'a Bound),
}

/// The arguments of a kernel that reads either: it binds both, whichever it reads.
struct Sources<B: Int, N: Size> {
    stored: TensorHandle,
    inputs: InputsLaunch<B, f32, N>,
    outputs: OutputsLaunch<B, f32, N>,
    source: Source,
    condition_dtype: ElemType,
}

impl First<'_> {
    /// The arguments of a kernel whose units read `width` elements at a time, of `dtype` where a program computes them.
    fn sources<B: Int, N: Size>(self, client: &Client, width: usize, dtype: ElemType) -> Sources<B, N> {
        match self {
            Self::Stored(stored) => Sources {
                stored: stored.clone(),
                inputs: InputsLaunch::none(),
                outputs: OutputsLaunch::none(),
                source: Source::Stored,
                condition_dtype: U32,
            },
            Self::Computed(bound) => {
                let (inputs, outputs, form) = bound.arguments(width);
                let (source, condition_dtype) = (Source::Computed(form), bound.condition_dtype());
                // A binding has to be there, which nothing reads.
                let stored = buffer::unwritten(client, vec![width], dtype);
                Sources { stored, inputs, outputs, source, condition_dtype }
            }
        }
    }
}

/// A reduction of at least one element to each of at least one output, by a plan that applies.
pub(super) struct Passes {
    pub operation: Operation,
    pub accumulator: ElemType,
    pub dtype: ElemType,
    pub view: View,
    pub plan: Plan,
}

impl Passes {
    /// The dense results, one for each output of the view.
    pub fn run(self, client: &Client, first: First<'_>) -> Result<Handle, KernelError> {
        let Self { operation, accumulator, dtype, mut view, plan } = self;
        plan.first.require(client, operation.name(), accumulator.size())?;
        if let Some(cube) = plan.totals {
            cube.require(client, operation.name(), COLUMNS, accumulator.size())?;
        }
        let n = view.axis as usize;
        let outputs = view.outputs as usize;
        let mut totals: Option<TensorHandle> = None;
        loop {
            // What this pass leaves of an output.
            let blocks = if totals.is_none() && plan.first == Pass::AllBlocks { 1 } else { view.blocks() };
            let last = blocks == 1;
            let to = if last { dtype } else { accumulator };
            let target = buffer::unwritten(client, vec![outputs, blocks as usize], to);
            // Only the last pass divides.
            let (step, divisor) = match operation {
                Operation::Mean if last => (operation, n),
                Operation::Mean => (Operation::Sum, 1),
                other => (other, 1),
            };
            let pass = Launch { operation: step, accumulator, view, divisor };
            match (totals, plan.totals) {
                (None, _) => pass.launch(client, plan.first, first, target.clone()),
                (Some(totals), Some(cube)) => pass.single(client, cube, 1, First::Stored(&totals), target.clone()),
                (Some(_), None) => unreachable!("a plan that applies has cubes for totals"),
            }
            if last {
                return Ok(target.handle);
            }
            (totals, view) = (Some(target), View::rows(view.outputs, blocks));
        }
    }
}

/// One pass.
struct Launch {
    operation: Operation,
    accumulator: ElemType,
    view: View,
    /// What a mean divides by: the elements of one output before the first pass.
    divisor: usize,
}

impl Launch {
    fn launch(self, client: &Client, pass: Pass, first: First<'_>, target: TensorHandle) {
        match pass {
            Pass::Single(cube) => self.single(client, cube, 1, first, target),
            Pass::FourOutputs(cube) => {
                let view = self.view.in_vectors_of_outputs().expect("a plan that applies");
                Self { view, ..self }.single(client, cube, 4, first, target);
            }
            Pass::FourElements { width } => self.four_elements(client, width, first, target),
            Pass::ShortRows => self.short_rows(client, first, target),
            Pass::AllBlocks => self.all_blocks(client, first, target),
        }
    }

    /// Cubes of `width` blocks each.
    fn cubes(&self, width: u32) -> CubeCount {
        grid::cubes(self.view.all_blocks().div_ceil(width as usize))
    }

    /// Only a mean divides floats.
    fn quotients(&self, client: &Client) -> Quotients {
        match self.operation {
            Operation::Mean if self.accumulator == F32 => known_answer::quotients(client),
            _ => Quotients::Device,
        }
    }

    fn divisor(&self) -> InputScalar {
        InputScalar::new(self.divisor, self.accumulator)
    }

    fn form(&self, client: &Client, cube: Cube, source: Source) -> single::Form {
        let (split, quotients) = (self.view.is_split(), self.quotients(client));
        single::Form { cube, split, operation: self.operation, quotients, source }
    }

    /// `lanes` outputs a unit, which are what the view counts.
    fn single(self, client: &Client, cube: Cube, lanes: usize, first: First<'_>, target: TensorHandle) {
        let Sources { stored, inputs, outputs, source, condition_dtype } = first.sources(client, lanes, target.dtype);
        let dtypes = [stored.dtype, self.accumulator, target.dtype, condition_dtype];
        let form = self.form(client, cube, source);
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and reads only elements
        // of the view, in whole vectors, which `stored` covers, or numbers the elements of a program's shape: `reduced_shape`
        // bounds the last of them. Each element is read once, and what a program writes for it goes to a place of its own.
        unsafe {
            single::reduce_single::launch_unchecked(
                client,
                self.cubes(cube.width),
                CubeDim::new_2d(cube.width, cube.groups),
                lanes,
                stored.into_arg().into_buffer_arg(),
                inputs,
                outputs,
                target.into_arg().into_buffer_arg(),
                ViewLaunch::of(&self.view),
                self.view.blocks(),
                self.divisor(),
                form,
                dtypes,
            );
        }
    }

    fn all_blocks(self, client: &Client, first: First<'_>, target: TensorHandle) {
        let Sources { stored, inputs, outputs, source, condition_dtype } = first.sources(client, 1, target.dtype);
        let dtypes = [stored.dtype, self.accumulator, target.dtype, condition_dtype];
        let blocks = self.view.blocks();
        // SAFETY: as in `single`: a cube writes only where its output exists.
        unsafe {
            all_blocks::reduce_all_blocks::launch_unchecked(
                client,
                grid::cubes(self.view.outputs as usize),
                CubeDim::new_2d(COLUMNS, blocks),
                1,
                stored.into_arg().into_buffer_arg(),
                inputs,
                outputs,
                target.into_arg().into_buffer_arg(),
                ViewLaunch::of(&self.view),
                self.divisor(),
                blocks,
                self.form(client, Pass::AllBlocks.cube(), source),
                dtypes,
            );
        }
    }

    fn short_rows(self, client: &Client, first: First<'_>, target: TensorHandle) {
        let Sources { stored, inputs, outputs, source, condition_dtype } = first.sources(client, 1, target.dtype);
        let dtypes = [stored.dtype, self.accumulator, target.dtype, condition_dtype];
        let outputs_split = self.view.inner != self.view.outputs;
        let form = ShortForm { outputs_split, operation: self.operation, quotients: self.quotients(client), source };
        // SAFETY: as in `single`: rows and columns that do not exist are neither read nor written.
        unsafe {
            short_rows::reduce_short_rows::launch_unchecked(
                client,
                self.cubes(ROWS),
                CubeDim::new_1d(ROWS),
                1,
                stored.into_arg().into_buffer_arg(),
                inputs,
                outputs,
                target.into_arg().into_buffer_arg(),
                ViewLaunch::of(&self.view),
                self.divisor(),
                form,
                dtypes,
            );
        }
    }

    fn four_elements(self, client: &Client, width: u32, first: First<'_>, target: TensorHandle) {
        let Sources { stored, inputs, outputs, source, condition_dtype } = first.sources(client, 4, target.dtype);
        let dtypes = [stored.dtype, self.accumulator, target.dtype, condition_dtype];
        // SAFETY: as in `single`; what a unit reads of such a view are whole vectors.
        unsafe {
            four_elements::reduce_four_elements::launch_unchecked(
                client,
                self.cubes(width),
                CubeDim::new_1d(width),
                stored.into_arg().into_buffer_arg(),
                inputs,
                outputs,
                target.into_arg().into_buffer_arg(),
                ViewLaunch::of(&self.view),
                self.view.blocks(),
                self.divisor(),
                width,
                self.operation,
                self.quotients(client),
                source,
                dtypes,
            );
        }
    }
}
