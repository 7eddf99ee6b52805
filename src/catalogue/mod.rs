//! The operation catalogue: every method of burn-backend's traits and every operation of Burn's stream, and what
//! becomes of it here.
//!
//! Nothing is forwarded because nobody looked. The tables are checked against the traits' sources, against this
//! crate's implementation and against `docs/operations.md`; [`operation`] is an exhaustive match, so that a new Burn
//! operation does not compile until it is here.

pub mod batch;
mod boolean;
mod entry;
mod float;
mod fused;
mod integer;
mod module;
mod operation;
mod quantized;
pub(crate) mod reason;
mod runtime;
mod stream;
#[cfg(test)]
mod tests;

pub use entry::{Entry, Route, Section};
pub(crate) use fused::{Fused, Kind, fused};
pub use operation::operation;
pub(crate) use operation::{computes, is_custom, is_free, name};

use batch::line;

/// Every trait of burn-backend's that makes up a backend.
pub const TRAITS: &[Section] = &[
    Section { name: "Backend", entries: runtime::BACKEND },
    Section { name: "FloatTensorOps", entries: float::FLOAT },
    Section { name: "IntTensorOps", entries: integer::INT },
    Section { name: "BoolTensorOps", entries: boolean::BOOL },
    Section { name: "ModuleOps", entries: module::MODULE },
    Section { name: "ActivationOps", entries: module::ACTIVATION },
    Section { name: "QTensorOps", entries: quantized::QUANTIZED },
    Section { name: "TransactionOps", entries: runtime::TRANSACTION },
    Section { name: "DistributedOps", entries: runtime::DISTRIBUTED },
];

/// What Burn's operation stream carries besides methods of the traits.
pub const STREAM: Section = Section { name: "Operation stream", entries: stream::STREAM };

/// What Burn's tensor API and its extension crates do before the stream.
pub const HOST: Section = Section { name: "Before the stream", entries: stream::HOST };

/// The entry of a method or of a stream operation.
pub fn entry(method: &str) -> Option<&'static Entry> {
    TRAITS.iter().chain([&STREAM]).flat_map(|section| section.entries).find(|entry| entry.method == method)
}

/// Why a method is refused and what to do instead, as the catalogue has it.
pub(crate) fn refusal(method: &str) -> (&'static str, &'static str) {
    match entry(method) {
        Some(Entry { route: Route::Refused { reason, alternative }, .. }) => (reason, alternative),
        _ => unreachable!("{method} is not refused"),
    }
}

/// The catalogue as `docs/operations.md`.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Operations\n\n\
         Every method of the traits that make up a Burn backend, and what becomes of it in burn-deterministic. \
         Generated from `src/catalogue`; a test keeps it current (`UPDATE_DOCS=1 cargo xtask test catalogue` writes it).\n\n\
         - **kernel**: a fixed-order kernel of burn-deterministic-kernels, whose family documents the order.\n\
         - **composed**: Burn's default body, or one of ours in its place, which calls the methods named. What one does on the host besides is a pure \
         function of the data: one thread, one order.\n\
         - **forwarded**: the inner backend's method, or an answer that computes nothing, with the reason that is safe.\n\
         - **refused**: an error, with the reason and what to do instead.\n\n\
         A star marks operations whose f32, f16, bf16, i32 or bool form on Burn's stream runs in the fused kernel `elementwise::run`, together \
         with its neighbours and with the bits of a kernel each; `float_slice_assign` where the slice is a part of one axis. Two stars mark f32 reductions that may end such a sequence \
         (`reduce::reduce_program`), and reductions along the last axis, of half types too, after which it may go on \
         (`rows::RowProgram`), with the bits they have by themselves. Three stars mark operations that run \
         there too, along the last axis with one index a row, and of these updates in all three. Products of f32 of equal sizes that run \
         before such a sequence share launches on a GPU (`matmul::matmul_each`), with the bits of one each.\n\n\
         | trait | methods | kernel | composed | forwarded | refused |\n|---|---|---|---|---|---|\n",
    );
    for section in TRAITS.iter().chain([&STREAM, &HOST]) {
        let count = |name: &str| section.entries.iter().filter(|entry| entry.route.name() == name).count();
        let [kernel, composed, forwarded, refused] = ["kernel", "composed", "forwarded", "refused"].map(count);
        let Section { name, entries } = section;
        let methods = entries.len();
        line(&mut text, format_args!("| {name} | {methods} | {kernel} | {composed} | {forwarded} | {refused} |"));
    }
    for section in TRAITS.iter().chain([&STREAM, &HOST]) {
        line(&mut text, format_args!("\n## {}\n\n| operation | route | detail |\n|---|---|---|", section.name));
        for Entry { method, route } in section.entries {
            let stars = match fused(method) {
                None => "",
                Some(Fused::Reduction(_)) => " **",
                Some(Fused::Gather | Fused::Scatter | Fused::WithIndex(_)) => " ***",
                Some(_) => " *",
            };
            line(&mut text, format_args!("| `{method}`{stars} | {} | {} |", route.name(), route.detail()));
        }
    }
    batch::markdown(&mut text);
    text
}
