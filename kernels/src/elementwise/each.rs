//! Programs side by side in one launch: the cubes of one program, then those of the next.
//!
//! The kernel has the code of each program; a unit computes the vector of elements that it would compute in a launch of the program
//! by itself.

use super::kernel::{Form, Inputs, Outputs, compute};
use super::launch::Bound;
use crate::device::{self, Machine};
use crate::grid::{self, UNITS};
use crate::subnormals::keep_subnormals;
use crate::{KernelError, subnormals};
use cubecl::prelude::*;

/// Most programs of a launch: its kernel has the code of each.
pub(crate) const MOST_PROGRAMS: usize = 8;

/// Bindings of a launch besides tensors: metadata and scalars.
pub(crate) const OTHER_BINDINGS: usize = 2;

/// Most cubes of the programs of a launch: its grid has one axis.
const MOST_CUBES: usize = grid::MAX_CUBES_PER_AXIS as usize;

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

/// What programs of one launch have in common.
type Kind = (usize, [ElemType; 2]);

/// The programs of a launch to come.
struct Launch<'a> {
    kind: Kind,
    programs: Vec<&'a Bound>,
}

impl<'a> Launch<'a> {
    fn takes(&self, client: &Client, kind: Kind, bound: &Bound) -> bool {
        let all = || self.programs.iter().copied().chain([bound]);
        let bindings = all().map(Bound::bindings).sum::<usize>() + OTHER_BINDINGS;
        let cubes: usize = all().map(|program| cubes(program, kind.0)).sum();
        self.kind == kind
            && self.programs.len() < MOST_PROGRAMS
            && bindings <= client.properties().hardware.max_bindings as usize
            && cubes <= MOST_CUBES
    }

    fn run(&self, client: &Client) -> Result<(), KernelError> {
        let (width, dtypes) = self.kind;
        if let [program] = self.programs[..] {
            return program.run(client);
        }
        device::require_units(client, super::launch::KERNEL, UNITS)?;
        let mut inputs = SequenceArg::new();
        let mut outputs = SequenceArg::new();
        let (mut vectors, mut forms) = (SequenceArg::new(), Vec::new());
        for program in &self.programs {
            let (input, output, form) = program.arguments(width);
            inputs.push(input);
            outputs.push(output);
            vectors.push((program.elements() / width) as u32);
            forms.push(form);
        }
        let cubes = self.programs.iter().map(|program| cubes(program, width)).sum();
        // SAFETY: a unit computes a vector below the number of a program's, as in a launch of that program by itself.
        unsafe {
            elementwise_each::launch_unchecked(
                client,
                grid::cubes(cubes),
                CubeDim::new_1d(UNITS),
                width,
                inputs,
                outputs,
                vectors,
                forms,
                dtypes,
            );
        }
        Ok(())
    }
}

/// Cubes of a program whose units compute `width` elements.
fn cubes(program: &Bound, width: usize) -> usize {
    (program.elements() / width).div_ceil(UNITS as usize)
}

/// Launches the programs, as many at once as a launch takes.
pub(super) fn run(client: &Client, programs: &[Bound]) -> Result<(), KernelError> {
    if !shares_launches(client) {
        return programs.iter().try_for_each(|program| program.run(client));
    }
    let mut launches: Vec<Launch<'_>> = Vec::new();
    for program in programs.iter().filter(|program| program.elements() > 0) {
        let kind = (program.width(), [program.condition_dtype(), program.half_or_f32()]);
        match launches.iter_mut().find(|launch| launch.takes(client, kind, program)) {
            Some(launch) => launch.programs.push(program),
            None => launches.push(Launch { kind, programs: vec![program] }),
        }
    }
    launches.iter().try_for_each(|launch| launch.run(client))
}
