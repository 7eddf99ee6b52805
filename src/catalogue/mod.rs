//! The operation catalogue: every method of burn-backend's traits and every operation of Burn's stream, and what
//! becomes of it here.
//!
//! Nothing is forwarded because nobody looked. The tables are checked against the traits' sources, against this
//! crate's implementation and against `docs/operations.md`; [`operation`] is an exhaustive match, so that a new Burn
//! operation does not compile until it is here.

pub mod batch;
mod boolean;
mod float;
mod integer;
mod module;
mod operation;
mod quantized;
pub(crate) mod reason;
mod runtime;
mod stream;
#[cfg(test)]
mod tests;

pub use operation::operation;

use core::fmt::Write;

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A fixed-order kernel; its function in burn-deterministic-kernels, whose family states the order.
    Kernel(&'static str),
    /// Burn's default body, or one of ours where Burn has none; the methods of this backend it calls.
    Composed(&'static str),
    /// The inner backend's method, or an answer that computes nothing; why that is safe.
    Forwarded(&'static str),
    /// An error.
    Refused {
        /// Why.
        reason: &'static str,
        /// What to do instead.
        alternative: &'static str,
    },
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the method.
    pub method: &'static str,
    /// What becomes of it.
    pub route: Route,
}

/// The operations of one of burn-backend's traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name of the trait.
    pub name: &'static str,
    /// Its methods, in the order of the trait.
    pub entries: &'static [Entry],
}

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

/// Methods whose f32, i32 or bool form on Burn's stream runs in the fused kernel of `elementwise`, together with its
/// neighbours.
///
/// Divisions, remainders, shifts and powers of ints are not among them: what becomes of a division by zero or a shift by
/// more than a word is the driver's, and need not be the same beside other operations.
pub const FUSED: &[&str] = &[
    "float_add",
    "float_add_scalar",
    "float_sub",
    "float_sub_scalar",
    "float_mul",
    "float_mul_scalar",
    "float_div",
    "float_div_scalar",
    "float_abs",
    "float_neg",
    "float_recip",
    "float_exp",
    "float_log",
    "float_sqrt",
    "float_tanh",
    "float_sin",
    "float_cos",
    "float_erf",
    "float_floor",
    "float_ceil",
    "float_round",
    "float_trunc",
    "float_into_int",
    "float_equal",
    "float_equal_elem",
    "float_greater",
    "float_greater_elem",
    "float_greater_equal",
    "float_greater_equal_elem",
    "float_lower",
    "float_lower_elem",
    "float_lower_equal",
    "float_lower_equal_elem",
    "float_mask_where",
    "float_mask_fill",
    "int_add",
    "int_add_scalar",
    "int_sub",
    "int_sub_scalar",
    "int_mul",
    "int_mul_scalar",
    "int_neg",
    "bitwise_and",
    "bitwise_and_scalar",
    "bitwise_or",
    "bitwise_or_scalar",
    "bitwise_xor",
    "bitwise_xor_scalar",
    "bitwise_not",
    "int_equal",
    "int_equal_elem",
    "int_greater",
    "int_greater_elem",
    "int_greater_equal",
    "int_greater_equal_elem",
    "int_lower",
    "int_lower_elem",
    "int_lower_equal",
    "int_lower_equal_elem",
    "int_mask_where",
    "int_mask_fill",
    "int_into_float",
    "bool_not",
    "bool_and",
    "bool_or",
    "bool_xor",
    "bool_not_equal",
    "bool_into_float",
    "bool_into_int",
];

/// Methods whose f32 form on Burn's stream may end a run of such operations: the fold computes its elements where it reads
/// them.
pub const FOLDED: &[&str] =
    &["float_sum", "float_sum_dim", "float_sum_dims", "float_prod", "float_prod_dim", "float_mean", "float_mean_dim"];

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
         Generated from `src/catalogue`; a test keeps it current (`UPDATE_DOCS=1 cargo test catalogue` writes it).\n\n\
         - **kernel**: a fixed-order kernel of burn-deterministic-kernels, whose family documents the order.\n\
         - **composed**: Burn's default body, or one of ours where Burn has none, which calls the methods named. What one does on the host besides is a pure \
         function of the data: one thread, one order.\n\
         - **forwarded**: the inner backend's method, or an answer that computes nothing, with the reason that is safe.\n\
         - **refused**: an error, with the reason and what to do instead.\n\n\
         A star marks operations whose f32, i32 or bool form on Burn's stream runs in the fused kernel `elementwise::run`, together \
         with its neighbours and with the bits of a kernel each. Two stars mark f32 reductions that may end such a run \
         (`reduce::fold_program`), with the bits they have by themselves.\n\n\
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
            let fused = match method {
                method if FUSED.contains(method) => " *",
                method if FOLDED.contains(method) => " **",
                _ => "",
            };
            line(&mut text, format_args!("| `{method}`{fused} | {} | {} |", route.name(), route.detail()));
        }
    }
    batch::markdown(&mut text);
    text
}

fn line(text: &mut String, line: core::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}

impl Route {
    /// The route in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kernel(_) => "kernel",
            Self::Composed(_) => "composed",
            Self::Forwarded(_) => "forwarded",
            Self::Refused { .. } => "refused",
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Kernel(function) => format!("`{function}`"),
            Self::Composed(text) | Self::Forwarded(text) => (*text).to_owned(),
            Self::Refused { reason, alternative } => format!("{reason}; {alternative}"),
        }
    }
}

const fn kernel(method: &'static str, function: &'static str) -> Entry {
    Entry { method, route: Route::Kernel(function) }
}

const fn composed(method: &'static str, of: &'static str) -> Entry {
    Entry { method, route: Route::Composed(of) }
}

const fn forwarded(method: &'static str, reason: &'static str) -> Entry {
    Entry { method, route: Route::Forwarded(reason) }
}

const fn refused(method: &'static str, reason: &'static str, alternative: &'static str) -> Entry {
    Entry { method, route: Route::Refused { reason, alternative } }
}
