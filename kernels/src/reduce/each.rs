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
use crate::{KernelError, buffer, grid, known_answer};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// Most blocks of a reduction that shares a launch: more fill a device by themselves.
pub(super) const MOST_BLOCKS: usize = 1024;

/// Bindings of a reduction besides those of its program: what is stored, and the result.
const BINDINGS: usize = 2;

/// A cube has a block, a unit a column of it.
const CUBE: Cube = Cube::UNIT_A_COLUMN;

const _: () = assert!(CUBE.width == 1, "a cube has one sum, which its first unit divides");

/// A sum or a product of what a program computes.
pub(super) struct Reduction {
    pub operation: Operation,
    pub view: View,
    pub program: Bound,
    /// Whether the mean is wanted beside the sum.
    pub mean: bool,
}

/// The reduction and, where it is wanted, the mean: dense, one element for each output of the view.
pub(super) type Handles = (Handle, Option<Handle>);

/// A pass over the elements of a reduction, or over the values of its blocks.
struct Pass<'a> {
    operation: Operation,
    view: View,
    /// A program, or else what is stored.
    program: Option<&'a Bound>,
    stored: TensorHandle,
    target: TensorHandle,
    /// The elements of each output in all passes, where the mean is wanted.
    count: Option<u32>,
    /// Where the last pass writes that.
    mean: Option<Mean>,
}

/// A mean beside a sum.
struct Mean {
    target: TensorHandle,
    count: u32,
}

impl Pass<'_> {
    fn share(&self) -> Share {
        let bindings = BINDINGS + self.program.map_or(0, Bound::bindings) + usize::from(self.mean.is_some());
        Share { bindings, cubes: self.view.all_blocks() }
    }

    /// The storage type of the program's bool tensors, if there are any.
    fn condition_dtype(&self) -> Option<ElemType> {
        self.program.and_then(Bound::used_condition_dtype)
    }
}

/// The results of each reduction.
pub(super) fn run(client: &Client, reductions: &[Reduction]) -> Result<Vec<Handles>, KernelError> {
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
    let mean = |view: &View, count: Option<u32>| {
        count.filter(|_| view.blocks() == 1).map(|count| Mean { target: target(view), count })
    };
    let first = reductions.iter().map(|Reduction { operation, view, program, mean: has_mean }| {
        let count = has_mean.then_some(view.axis);
        Pass {
            operation: *operation,
            view: *view,
            program: Some(program),
            stored: nothing.clone(),
            target: target(view),
            count,
            mean: mean(view, count),
        }
    });
    let mut passes: Vec<(usize, Pass<'_>)> = first.enumerate().collect();
    let mut results: Vec<Option<Handles>> = reductions.iter().map(|_| None).collect();
    while !passes.is_empty() {
        let shares = passes.iter().map(|(_, pass)| (pass.condition_dtype(), pass.share(), pass));
        launches(client, shares).iter().for_each(|launch| launch_all(client, launch));
        let (done, left): (Vec<_>, Vec<_>) = passes.into_iter().partition(|(_, pass)| pass.view.blocks() == 1);
        for (index, pass) in done {
            results[index] = Some((pass.target.handle, pass.mean.map(|mean| mean.target.handle)));
        }
        let next = left.into_iter().map(|(index, pass)| {
            let view = View::rows(pass.view.outputs, pass.view.blocks());
            let (target, mean) = (target(&view), mean(&view, pass.count));
            (index, Pass { view, program: None, stored: pass.target, target, mean, ..pass })
        });
        passes = next.collect();
    }
    Ok(results.into_iter().map(|result| result.expect("each has a last pass")).collect())
}

fn launch_all(client: &Client, launch: &Launch<Option<ElemType>, &Pass<'_>>) {
    let (mut stored, mut targets, mut views) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
    let (mut inputs, mut outputs, mut forms) = (SequenceArg::new(), SequenceArg::new(), Vec::new());
    let (mut mean_targets, mut divisors, mut means) = (SequenceArg::new(), SequenceArg::new(), Vec::new());
    let mut divided = 0;
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
        means.push(pass.mean.as_ref().map(|_| divided));
        if let Some(Mean { target, count }) = &pass.mean {
            divided += 1;
            mean_targets.push(target.clone().into_arg().into_buffer_arg());
            divisors.push(*count as f32);
        }
        forms.push(Form {
            cube: CUBE,
            split: pass.view.is_split(),
            operation: pass.operation,
            quotients: Quotients::Device,
            source,
        });
    }
    // Asking waits for the device.
    let quotients = if divided == 0 { Quotients::Device } else { known_answer::quotients(client) };
    // SAFETY: a cube of a reduction does what it does in a launch of that reduction by itself, and its first unit divides what it has
    // written into a mean of as many elements; the others do nothing.
    unsafe {
        single::reduce_single_each::launch_unchecked(
            client,
            grid::cubes(launch.cubes()),
            CubeDim::new_2d(CUBE.width, CUBE.groups),
            stored,
            inputs,
            outputs,
            targets,
            mean_targets,
            divisors,
            views,
            forms,
            means,
            quotients,
            launch.kind.unwrap_or(U32),
        );
    }
}
