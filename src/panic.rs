//! What a panic says.

use std::any::Any;

/// The text of a panic, if its payload is one.
pub(crate) fn text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}
