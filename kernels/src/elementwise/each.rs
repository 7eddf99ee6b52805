//! Programs side by side in one launch: the cubes of one program, then those of the next.
//!
//! The kernel has the code of each program; a unit computes the vector of elements that it would compute in a launch of the program
//! by itself.

use super::kernel::{Form, Inputs, Outputs, compute};
use super::launch::{Bound, KERNEL};
use crate::device::{self, Machine};
use crate::dtype::{F32, U32};
use crate::grid::{self, UNITS};
use crate::side_by_side::{Kind, Launch, Share, launches};
use crate::subnormals::keep_subnormals;
use crate::{KernelError, subnormals};
use cubecl::prelude::*;

/// The programs of a launch, by the cubes: those before a program's have other numbers.
#[cube(launch_unchecked)]
pub fn elementwise_each<B: Int, F: Float, N: Size>(
    inputs: &Sequence<Inputs<B, F, N>>,
    outputs: &mut Sequence<Outputs<B, F, N>>,
    vectors: &Sequence<u32>,
    #[comptime] forms: Vec<Form>,
    #[define(B, F)] _dtypes: [ElemType; 2],
) {
    // Counted from the first cube of a program. Before that it wraps, beyond the cubes of any.
    let mut cube = CUBE_POS as u32;
    #[unroll]
    for i in 0..comptime!(forms.len()) {
        let cubes = vectors[i].div_ceil(UNITS);
        let at = cube * UNITS + UNIT_POS;
        if cube < cubes && at < vectors[i] {
            let results = outputs.index_mut(i);
            compute::<B, F, N>(&inputs[i], results, at, comptime!(forms[i].clone()));
        }
        cube -= cubes;
    }
    keep_subnormals();
}

/// Whether the device runs several programs in a launch. Where kernels are rewritten to keep subnormal numbers their compilers
/// take long, and a software driver computes the programs one after the other.
pub fn shares_launches(client: &Client) -> bool {
    Machine::of(client) == Machine::Gpu && !subnormals::is_kept(client)
}

/// What programs of one launch have in common: the elements of a unit, and the types of conditions and of half words, where there are
/// any.
struct Common {
    width: usize,
    condition_dtype: Option<ElemType>,
    half: Option<ElemType>,
}

impl Kind for Common {
    fn joined(&self, other: &Self) -> Option<Self> {
        let condition_dtype = self.condition_dtype.joined(&other.condition_dtype)?;
        let half = self.half.joined(&other.half)?;
        (self.width == other.width).then_some(Self { width: self.width, condition_dtype, half })
    }
}

/// Launches the programs, as many at once as a launch takes.
pub(super) fn run(client: &Client, programs: &[Bound]) -> Result<(), KernelError> {
    if !shares_launches(client) {
        return programs.iter().try_for_each(|program| program.run(client));
    }
    let programs = programs.iter().filter(|program| program.elements() > 0);
    let with_share = |program| {
        let width = Bound::width(program);
        let share = Share { bindings: program.bindings(), cubes: program.vectors(width).div_ceil(UNITS as usize) };
        let common = Common { width, condition_dtype: program.used_condition_dtype(), half: program.half() };
        (common, share, program)
    };
    launches(client, programs.map(with_share)).iter().try_for_each(|launch| match launch.items[..] {
        [program] => program.run(client),
        _ => launch_all(client, launch),
    })
}

fn launch_all(client: &Client, launch: &Launch<Common, &Bound>) -> Result<(), KernelError> {
    device::require_units(client, KERNEL, UNITS)?;
    let Common { width, condition_dtype, half } = launch.kind;
    let (mut inputs, mut outputs) = (SequenceArg::new(), SequenceArg::new());
    let (mut vectors, mut forms) = (SequenceArg::new(), Vec::new());
    for program in &launch.items {
        let (input, output, form) = program.arguments(width);
        inputs.push(input);
        outputs.push(output);
        vectors.push(program.vectors(width) as u32);
        forms.push(form);
    }
    // SAFETY: a unit computes a vector below the number of a program's, as in a launch of that program by itself.
    unsafe {
        elementwise_each::launch_unchecked(
            client,
            grid::cubes(launch.cubes()),
            CubeDim::new_1d(UNITS),
            width,
            inputs,
            outputs,
            vectors,
            forms,
            [condition_dtype.unwrap_or(U32), half.unwrap_or(F32)],
        );
    }
    Ok(())
}
