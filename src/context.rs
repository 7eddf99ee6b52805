//! What the current thread is doing for Burn's stream.
//!
//! Burn runs the operations of a device in blocks, on a thread of the device, and tells observers when a block starts
//! and ends and when a kernel is launched. Between the observers, the block and the methods of
//! [`Deterministic`](crate::Deterministic) lie Burn, burn-router and CubeCL, which pass nothing of ours on. So each thread
//! has a [`Context`], and it is written from the outside in:
//!
//! ```text
//! block starts      stage, outputs, waits
//!   Block::run      stage
//!     operation     operation, repeated
//!       method      in_method
//!         kernel    kernel_seen
//! block ran         stage
//! ```
//!
//! What outlives a block is kept where it is used: queues (`route::pending`), execution plans (`route::execution_plans`),
//! failed tensors (`route::coverage`), and the streams that a thread draws for (`random::threads`).

use burn_ir::TensorId;
use core::cell::RefCell;
use core::mem::{self, ManuallyDrop};

/// What a thread is doing.
pub(crate) struct Context {
    /// Where in a block of Burn's stream the thread is.
    pub stage: Stage,
    /// What the block writes, uploads included.
    pub outputs: Vec<TensorId>,
    /// Whether the program waits for the block: it contains the last operation that its thread has issued.
    pub waits: bool,
    /// The operation of the block that runs on the deterministic backend.
    pub operation: Option<Operation>,
    /// The random numbers of an operation that runs more than once.
    pub repeated: Option<Repeated>,
    /// Whether the thread is in a part of a method of [`Deterministic`](crate::Deterministic) that may launch kernels of
    /// Burn's, in a block or outside.
    pub in_method: bool,
    /// Whether CubeCL has told of a launch since this was last cleared.
    pub kernel_seen: bool,
    /// What an operation launches, where it is recorded.
    pub launches: Option<Launches>,
}

impl Context {
    /// Of a thread that is doing nothing.
    const fn new() -> Self {
        Self {
            stage: Stage::Outside,
            outputs: Vec::new(),
            waits: false,
            operation: None,
            repeated: None,
            in_method: false,
            kernel_seen: false,
            launches: None,
        }
    }
}

/// What an operation launches.
#[derive(Default)]
pub(crate) struct Launches {
    /// The kernels.
    pub kernels: Vec<&'static str>,
    /// The plans of those that have some.
    pub plans: Vec<String>,
}

/// Where a thread is in a block.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Stage {
    /// In no block.
    #[default]
    Outside,
    /// In a block that starts with this operation and has not passed through the route.
    Unrouted(&'static str),
    /// The same, of a block that Burn skips.
    Skipped(&'static str),
    /// In a block of the route.
    Routed,
    /// At the end of a block of the route.
    Done,
}

/// An operation of Burn's stream.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    /// Its (first) result, whose number says when it was issued: see `random::position`.
    pub output: Option<TensorId>,
}

/// The random numbers of an operation: those it has drawn before, to be drawn again.
pub(crate) struct Repeated {
    pub draws: Vec<Draw>,
    /// How many the present run has drawn.
    pub next: usize,
}

/// The key and the stream of one random operation.
pub(crate) type Draw = ([u8; 32], u64);

thread_local! {
    // Without a destructor: a method that another thread-local's destructor calls still finds it.
    static CONTEXT: ManuallyDrop<RefCell<Context>> = const { ManuallyDrop::new(RefCell::new(Context::new())) };
}

/// Hands the thread's context to `body`, which must call nothing that asks for it.
pub(crate) fn with<T>(body: impl FnOnce(&mut Context) -> T) -> T {
    CONTEXT.with(|context| body(&mut context.borrow_mut()))
}

/// Runs `body` with another value of a field; the one before is put back, also if `body` panics.
pub(crate) fn scoped<T, F>(field: fn(&mut Context) -> &mut F, value: F, body: impl FnOnce() -> T) -> T {
    struct Restore<F> {
        field: fn(&mut Context) -> &mut F,
        before: Option<F>,
    }
    impl<F> Drop for Restore<F> {
        fn drop(&mut self) {
            if let Some(before) = self.before.take() {
                with(|context| *(self.field)(context) = before);
            }
        }
    }
    let before = with(|context| mem::replace(field(context), value));
    let _restore = Restore { field, before: Some(before) };
    body()
}

/// Runs `body`, a part of a method of [`Deterministic`](crate::Deterministic) that may launch kernels of Burn's.
pub(crate) fn in_method<T>(body: impl FnOnce() -> T) -> T {
    scoped(|context| &mut context.in_method, true, body)
}

/// Whether the thread runs an operation of Burn's stream. Then a refusal is a panic, and the block has asked for the
/// device's [verdict](crate::known_answer).
pub(crate) fn on_the_stream() -> bool {
    with(|context| context.operation.is_some())
}

/// The position of the operation being run, where it came over Burn's stream: the number of its result.
pub(crate) fn position() -> Option<TensorId> {
    with(|context| context.operation?.output)
}
