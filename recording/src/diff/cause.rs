//! Why the first operation that differs does.

use super::comparison::{Cause, Owner};
use super::contrast::Contrast;
use super::pass::First;
use crate::record::Operation;

/// What is known besides the operation.
pub(super) struct Circumstances {
    /// Whether the environments differ.
    pub(super) environment: bool,
    /// Whether all uploads, and what other threads sent, are together the same.
    pub(super) same_uploads: bool,
}

pub(super) fn cause(first: &First, circumstances: &Circumstances) -> Cause {
    let [one, other] = &first.operations;
    match &first.contrast {
        Contrast::Program(what) => Cause::Program(what.clone()),
        Contrast::Parameters => Cause::Parameters,
        Contrast::Failure(side) => Cause::Failure { side: *side },
        _ if one.name == Operation::UPLOAD => Cause::Data { reordered: circumstances.same_uploads },
        _ if one.name == Operation::RECEIVE => Cause::Received { reordered: circumstances.same_uploads },
        _ if one.draws != other.draws => Cause::Seed,
        _ if one.draws.is_empty() && is_random(one) => Cause::Unseeded,
        _ if circumstances.environment => Cause::Environment,
        _ if one.kernels != other.kernels => Cause::KernelChoice,
        _ if first.reads_loaded => Cause::Resumed { named: false },
        _ => Cause::Kernel(owner(one)),
    }
}

/// Whether an operation draws random numbers, by Burn's names: `float_random`, `int_random`.
fn is_random(operation: &Operation) -> bool {
    operation.inputs.is_empty() && operation.name.split('_').any(|word| word == "random")
}

fn owner(operation: &Operation) -> Owner {
    if operation.is_custom {
        return Owner::Program;
    }
    let of = |kernel: &String| match kernel.split("::").next().unwrap_or_default() {
        "burn_deterministic" | "burn_deterministic_kernels" => Owner::Library,
        name if is_burns(name) => Owner::Burn,
        _ => Owner::Program,
    };
    let owners: Vec<Owner> = operation.kernels.iter().map(of).collect();
    // The least trusted of them.
    let found = [Owner::Program, Owner::Burn, Owner::Library].into_iter().find(|owner| owners.contains(owner));
    found.unwrap_or(Owner::Unknown)
}

/// Whether a crate with kernels is Burn's: a program's crate may well be called `burn_something`.
fn is_burns(name: &str) -> bool {
    let burn = ["burn_cubecl", "burn_cubecl_fusion", "burn_fusion", "burn_linalg", "burn_signal", "burn_vision"];
    burn.contains(&name) || ["cubecl", "cubek"].iter().any(|family| name.split('_').next() == Some(family))
}
