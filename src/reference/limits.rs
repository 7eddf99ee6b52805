//! What the references do not say.

use std::panic::resume_unwind;

/// Why an operation is not checked: the payload with which a method of [`Reference`](super::Reference) ends.
#[derive(Debug)]
pub(crate) struct NotChecked(pub &'static str);

/// Ends the operation, without a message.
pub(crate) fn not_checked(reason: &'static str) -> ! {
    resume_unwind(Box::new(NotChecked(reason)))
}
