//! Reductions of programs side by side in one launch.

use super::kernel::single::{self, Form};
use super::kernel::source::Source;
use super::operation::Operation;
use super::plan::Cube;
use super::view::{View, ViewLaunch};
use crate::dtype::{F32, U32};
use crate::elementwise::{Bound, InputsLaunch, OutputsLaunch};
use crate::order::COLUMNS;
use crate::quotient::Quotients;
use crate::side_by_side::{Launch, Share, launches};
use crate::{KernelError, buffer, grid};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// Most blocks of a reduction that shares a launch: more fill a device by themselves.
pub(super) const MOST_BLOCKS: usize = 1024;

/// Bindings of a reduction besides those of its program: what is stored, and the result.
const BINDINGS: usize = 2;

/// A cube has a block, a unit a column of it.
const CUBE: Cube = Cube::UNIT_A_COLUMN;

/// A sum or a product of what a program computes.
pub(super) struct Reduction {
    pub operation: Operation,
    pub view: View,
    pub program: Bound,
}

/// A pass over the elements of a reduction, or over the values of its blocks.
struct Pass<'a> {
    operation: Operation,
    view: View,
    /// A program, or else what is stored.
    program: Option<&'a Bound>,
    stored: TensorHandle,
    target: TensorHandle,
}

impl Pass<'_> {
    fn share(&self) -> Share {
        let bindings = BINDINGS + self.program.map_or(0, Bound::bindings);
        Share { bindings, cubes: self.view.all_blocks() }
    }

    fn condition_dtype(&self) -> ElemType {
        self.program.map_or(U32, Bound::condition_dtype)
    }
}

/// The dense results, one for each output of each view.
pub(super) fn run(client: &Client, reductions: &[Reduction]) -> Result<Vec<Handle>, KernelError> {
    if reductions.is_empty() {
        return Ok(vec![]);
    }
    CUBE.require(client, Operation::Sum.name(), COLUMNS, F32.size())?;
    let target = |view: &View| {
        let [outputs, blocks] = [view.outputs, view.blocks()].map(|count| count as usize);
        buffer::unwritten(client, vec![outputs, blocks], F32)
    };
    // A binding has to be there, which nothing reads.
    let nothing = buffer::unwritten(client, vec![1], F32);
    let first = reductions.iter().map(|Reduction { operation, view, program }| Pass {
        operation: *operation,
        view: *view,
        program: Some(program),
        stored: nothing.clone(),
        target: target(view),
    });
    let mut passes: Vec<(usize, Pass<'_>)> = first.enumerate().collect();
    let mut results: Vec<Option<Handle>> = vec![None; reductions.len()];
    while !passes.is_empty() {
        let shares = passes.iter().map(|(_, pass)| (pass.condition_dtype(), pass.share(), pass));
        launches(client, shares).iter().for_each(|launch| launch_all(client, launch));
        let (done, left): (Vec<_>, Vec<_>) = passes.into_iter().partition(|(_, pass)| pass.view.blocks() == 1);
        done.into_iter().for_each(|(index, pass)| results[index] = Some(pass.target.handle));
        let next = left.into_iter().map(|(index, pass)| {
            let view = View::rows(pass.view.outputs, pass.view.blocks());
            (index, Pass { view, program: None, stored: pass.target, target: target(&view), ..pass })
        });
        passes = next.collect();
    }
    Ok(results.into_iter().map(|result| result.expect("each has a last pass")).collect())
}

fn launch_all(client: &Client, launch: &Launch<ElemType, &Pass<'_>>) {
    let (mut stored, mut targets, mut views) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
    let (mut inputs, mut outputs, mut forms) = (SequenceArg::new(), SequenceArg::new(), Vec::new());
    for pass in &launch.items {
        let (input, output, source) = match pass.program {
            Some(program) => {
                let (input, output, form) = program.arguments(1);
                (input, output, Source::Computed(form))
            }
            None => (InputsLaunch::none(), OutputsLaunch::none(), Source::Stored),
        };
        inputs.push(input);
        outputs.push(output);
        stored.push(pass.stored.clone().into_arg().into_buffer_arg());
        targets.push(pass.target.clone().into_arg().into_buffer_arg());
        views.push(ViewLaunch::of(&pass.view));
        forms.push(Form {
            cube: CUBE,
            split: pass.view.is_split(),
            operation: pass.operation,
            quotients: Quotients::Device,
            source,
        });
    }
    // SAFETY: a cube of a reduction does what it does in a launch of that reduction by itself; the others do nothing.
    unsafe {
        single::reduce_single_each::launch_unchecked(
            client,
            grid::cubes(launch.cubes()),
            CubeDim::new_2d(CUBE.width, CUBE.groups),
            stored,
            inputs,
            outputs,
            targets,
            views,
            forms,
            launch.kind,
        );
    }
}
