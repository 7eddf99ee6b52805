//! What a panic says.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The text of a panic, if its payload is one.
pub(crate) fn text(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Runs `body`; the error is the text of its panic.
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let text = text(&*payload).unwrap_or("(a value that is no text)").to_owned();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // The drop of this one may panic again, and so on without end.
            std::mem::forget(payload);
        }
        text
    })
}
