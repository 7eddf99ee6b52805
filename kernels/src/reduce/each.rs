//! Reductions of programs side by side in one launch.

use super::kernel::single::{self, Form};
use super::kernel::source::Source;
use super::operation::Operation;
use super::plan::Cube;
use super::view::{View, ViewLaunch};
use crate::buffer::{Unwritten, unwritten, unwritten_each};
use crate::dtype::{F32, U32};
use crate::elementwise::{Bound, InputsLaunch, OutputsLaunch};
use crate::order::COLUMNS;
use crate::quotient::Quotients;
use crate::side_by_side::{Launch, Share, launches};
use crate::{KernelError, grid, known_answer};
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
    /// The elements of each output in all passes, where the mean is wanted.
    count: Option<u32>,
}

/// What a pass writes.
struct Target {
    reduced: TensorHandle,
    /// The mean, which the last pass writes where it is wanted, and the number that divides the sum.
    mean: Option<(TensorHandle, u32)>,
}

impl Pass<'_> {
    /// The storage type of the program's bool tensors, if there are any.
    fn condition_dtype(&self) -> Option<ElemType> {
        self.program.and_then(Bound::used_condition_dtype)
    }

    fn share(&self, target: &Target) -> Share {
        let bindings = BINDINGS + self.program.map_or(0, Bound::bindings) + usize::from(target.mean.is_some());
        Share { bindings, cubes: self.view.all_blocks() }
    }

    /// What the mean is divided by, if this pass writes it.
    fn divisor(&self) -> Option<u32> {
        self.count.filter(|_| self.view.blocks() == 1)
    }

    /// The pass over the values of the blocks, if it has several.
    fn next(self, blocks: TensorHandle) -> Self {
        Self { view: View::rows(self.view.outputs, self.view.blocks()), program: None, stored: blocks, ..self }
    }
}

/// Memory for what the passes write.
fn targets(client: &Client, passes: &[(usize, Pass<'_>)]) -> Vec<Target> {
    let shapes: Vec<_> =
        { passes.iter() }.map(|(_, pass)| [pass.view.outputs as usize, pass.view.blocks() as usize]).collect();
    let mut results = Vec::new();
    for ((_, pass), shape) in passes.iter().zip(&shapes) {
        let count = 1 + usize::from(pass.divisor().is_some());
        results.extend((0..count).map(|_| Unwritten { shape, dtype: F32, memory: None }));
    }
    let mut tensors = unwritten_each(client, results).into_iter();
    let mut tensor = || tensors.next().expect("a tensor for each");
    let target = |(_, pass): &(usize, Pass<'_>)| Target {
        reduced: tensor(),
        mean: pass.divisor().map(|divisor| (tensor(), divisor)),
    };
    passes.iter().map(target).collect()
}

/// The results of each reduction.
pub(super) fn run(client: &Client, reductions: &[Reduction]) -> Result<Vec<Handles>, KernelError> {
    if reductions.is_empty() {
        return Ok(vec![]);
    }
    CUBE.require(client, Operation::Sum.name(), COLUMNS, F32.size())?;
    // A binding has to be there, which nothing reads.
    let nothing = unwritten(client, vec![1], F32);
    let first = reductions.iter().map(|Reduction { operation, view, program, mean }| Pass {
        operation: *operation,
        view: *view,
        program: Some(program),
        stored: nothing.clone(),
        count: mean.then_some(view.axis),
    });
    let mut passes: Vec<_> = first.enumerate().collect();
    let mut results: Vec<Option<Handles>> = reductions.iter().map(|_| None).collect();
    while !passes.is_empty() {
        let written = targets(client, &passes);
        let with_target = passes.iter().map(|(_, pass)| pass).zip(&written);
        let shares = with_target.map(|(pass, target)| (pass.condition_dtype(), pass.share(target), (pass, target)));
        launches(client, shares).iter().for_each(|launch| launch_all(client, launch));
        let mut left = Vec::new();
        for ((index, pass), Target { reduced, mean }) in passes.into_iter().zip(written) {
            match pass.view.blocks() {
                1 => results[index] = Some((reduced.handle, mean.map(|(mean, _)| mean.handle))),
                _ => left.push((index, pass.next(reduced))),
            }
        }
        passes = left;
    }
    Ok(results.into_iter().map(|result| result.expect("each has a last pass")).collect())
}

fn launch_all(client: &Client, launch: &Launch<Option<ElemType>, (&Pass<'_>, &Target)>) {
    let (mut stored, mut targets, mut views) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
    let (mut inputs, mut outputs, mut forms) = (SequenceArg::new(), SequenceArg::new(), Vec::new());
    let (mut mean_targets, mut divisors, mut means) = (SequenceArg::new(), SequenceArg::new(), Vec::new());
    let mut divided = 0;
    for (pass, target) in &launch.items {
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
        targets.push(target.reduced.clone().into_arg().into_buffer_arg());
        views.push(ViewLaunch::of(&pass.view));
        means.push(target.mean.as_ref().map(|_| divided));
        if let Some((mean, divisor)) = &target.mean {
            divided += 1;
            mean_targets.push(mean.clone().into_arg().into_buffer_arg());
            divisors.push(*divisor as f32);
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
