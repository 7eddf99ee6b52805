//! Which kernels of Burn's are launched by this backend.

use core::cell::Cell;

thread_local! {
    /// How many parts of methods of [`Deterministic`](super::Deterministic) this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `body`, a part of a method of [`Deterministic`](super::Deterministic) that may launch kernels of Burn's.
pub(super) fn within_backend<T>(body: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _leave = Leave;
    body()
}

/// Whether this thread is in such a part.
pub(crate) fn is_within_backend() -> bool {
    DEPTH.get() > 0
}
