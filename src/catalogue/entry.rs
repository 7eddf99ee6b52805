//! What the catalogue says of an operation.

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// A fixed-order kernel; its function in burn-deterministic-kernels, whose family states the order. Several are
    /// separated by a comma and a blank.
    Kernel(&'static str),
    /// Burn's default body, or one of ours in its place; the methods of this backend it calls.
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

    pub(super) fn detail(&self) -> String {
        match self {
            Self::Kernel(functions) => format!("`{}`", functions.replace(", ", "`, `")),
            Self::Composed(text) | Self::Forwarded(text) => (*text).to_owned(),
            Self::Refused { reason, alternative } => format!("{reason}; {alternative}"),
        }
    }
}

pub(super) const fn kernel(method: &'static str, function: &'static str) -> Entry {
    Entry { method, route: Route::Kernel(function) }
}

pub(super) const fn composed(method: &'static str, of: &'static str) -> Entry {
    Entry { method, route: Route::Composed(of) }
}

pub(super) const fn forwarded(method: &'static str, reason: &'static str) -> Entry {
    Entry { method, route: Route::Forwarded(reason) }
}

pub(super) const fn refused(method: &'static str, reason: &'static str, alternative: &'static str) -> Entry {
    Entry { method, route: Route::Refused { reason, alternative } }
}
