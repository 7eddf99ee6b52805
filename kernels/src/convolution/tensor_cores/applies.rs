//! Which passes have the order of tensor cores.

use super::super::plan::{Pass, Problem};
use super::plan::MAX_COPIED;
use super::product;
use crate::matmul::tensor_cores::plan::VECTOR;
use cubecl::ir::{ElemType, FloatKind};

/// Fewest channels and terms: those of a fragment.
const FEWEST: usize = 16;

/// Most phases of an input gradient.
const MAX_PHASES: usize = 16;

/// Whether a pass of this type [has the order](super) of tensor cores: of no other type than f16, bf16 and f32.
pub fn applies(problem: &Problem, dtype: ElemType) -> bool {
    let ElemType::Float(FloatKind::F16 | FloatKind::BF16 | FloatKind::F32) = dtype else { return false };
    let geometry = &problem.geometry;
    let width = VECTOR as usize / dtype.size();
    let channels = problem.source_channels().next_multiple_of(width);
    let (enough, samples) = match problem.pass {
        Pass::ToWeight => (geometry.terms() >= FEWEST && geometry.inputs * geometry.taps() >= FEWEST, geometry.batch),
        Pass::ToOutput | Pass::ToInput => (problem.source_channels() * geometry.taps() >= FEWEST, 1),
    };
    let weights = [geometry.groups, problem.channels(), channels, geometry.taps()];
    let is_reached = |elements: Option<usize>| elements.is_some_and(|elements| elements < MAX_COPIED);
    enough
        && problem.channels() >= FEWEST
        && product::count(problem) <= MAX_PHASES
        && is_reached(product::copied(problem, samples, width))
        && is_reached(weights.into_iter().try_fold(1, usize::checked_mul))
}
