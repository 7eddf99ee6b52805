//! Custom operations of Burn's own extension crates, which are known by their ids.

use crate::backend::{Deterministic, fourier};
use crate::error::Error;
use burn_cubecl::CubeBackend;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_ir::{CustomOpIr, HandleContainer, ScalarIr};

type B = Deterministic<CubeBackend>;

/// How a custom operation becomes deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// burn-signal's `rfft` of so many values along an axis.
    Forward { axis: usize, n: usize },
    /// burn-signal's `irfft`.
    Inverse { axis: usize, n: usize },
    /// It reads its operand and computes on the host in one order, as burn-linalg 0.22.1 has it.
    OnTheHost,
}

/// What is known of a custom operation in global form. Nothing of a transform whose length is not a power of two, which
/// burn-signal's functions do not issue.
pub(super) fn known(custom: &CustomOpIr) -> Option<Known> {
    let known = match (custom.id.as_str(), &custom.inputs[..], &custom.outputs[..]) {
        ("signal::rfft", [signal], [_, _]) => {
            let (axis, n) = transform(&custom.scalars, |axis| signal.shape.get(axis).copied())?;
            Known::Forward { axis, n }
        }
        ("signal::irfft", [real, _], [_]) => {
            let (axis, n) =
                transform(&custom.scalars, |axis| real.shape.get(axis).map(|bins| bins.saturating_sub(1) * 2))?;
            Known::Inverse { axis, n }
        }
        ("linalg::svd", [_], [_, _, _]) => Known::OnTheHost,
        _ => return None,
    };
    Some(known)
}

/// The axis and the length of a transform, which is `natural` where none is given.
fn transform(scalars: &[ScalarIr], natural: impl FnOnce(usize) -> Option<usize>) -> Option<(usize, usize)> {
    let &[ScalarIr::UInt(axis), ScalarIr::Bool(given), ScalarIr::UInt(n)] = scalars else { return None };
    let axis = usize::try_from(axis).ok()?;
    let natural = natural(axis)?;
    let n = if given { usize::try_from(n).ok()? } else { natural };
    n.is_power_of_two().then_some((axis, n))
}

/// Runs a transform.
///
/// # Panics
///
/// When the kernel refuses its operands.
pub(super) fn run(custom: &CustomOpIr, known: Known, handles: &mut HandleContainer<CubeFusionHandle>) {
    let mut operands =
        custom.inputs.iter().map(|input| handles.get_float_tensor::<B>(input)).collect::<Vec<_>>().into_iter();
    let mut operand = || operands.next().expect("as many operands as a known operation has");
    let results = match known {
        Known::Forward { axis, n } => fourier::forward(operand(), axis, n).map(Vec::from),
        Known::Inverse { axis, n } => fourier::inverse(operand(), operand(), axis, n).map(|signal| vec![signal]),
        Known::OnTheHost => unreachable!("it runs as Burn's own"),
    };
    let results = results.unwrap_or_else(|refusal| panic!("{}", Error::from(refusal)));
    for (output, result) in custom.outputs.iter().zip(results) {
        handles.register_float_tensor::<B>(&output.id, result);
    }
}
