//! Indices outside their axis: noted when an operation gets them, reported when the program next waits for the device.
//!
//! Each operation that takes indices launches a check beside its kernel, which raises a flag on the device if one is
//! outside. Nobody waits for it: the flags of a thread's operations on a device are read together, where the program
//! waits for the device anyway, or after [`FLAGS`] operations. Only when one is up are its indices looked at.

use crate::backend::reads::copy_at_once;
use crate::backend::refused::describe;
use crate::error::{Error, index_of};
use crate::random::of_operation;
use burn_backend::ops::IntTensorOps;
use burn_backend::{DeviceId, ExecutionError, StreamId, TensorData, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::scatter::bounds::{Flags, check, first_outside};
use burn_ir::TensorId;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Mutex;

/// Operations of one thread and device that may wait to be looked at.
const FLAGS: usize = 64;

/// Bytes of indices that they may keep in memory.
const BYTES: usize = 64 << 20;

/// An operation whose indices are being checked.
struct Pending {
    operation: &'static str,
    operands: String,
    indices: CubeTensor,
    sizes: Vec<usize>,
    output: Option<TensorId>,
}

/// What a thread's operations on a device have left.
#[derive(Default)]
struct Ledger {
    flags: Option<Flags>,
    pending: Vec<Pending>,
    bytes: usize,
    found: Option<OutOfRange>,
}

/// An operation that got an index outside its axis.
pub(crate) struct OutOfRange {
    /// What to tell the program.
    pub error: Error,
    /// The operation's result, where it came over Burn's stream.
    pub output: Option<TensorId>,
}

/// Looked up by key only, never iterated.
static LEDGERS: Mutex<Option<HashMap<(DeviceId, StreamId), Ledger>>> = Mutex::new(None);

/// How many ledgers have something in them: most programs have none.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Has the `indices` of an operation checked, for axes of these `sizes` (see [`check`]).
pub(super) fn note(
    operation: &'static str,
    operands: &[&CubeTensor],
    indices: &CubeTensor,
    sizes: &[usize],
) -> Result<(), KernelError> {
    let client = indices.device.client();
    with_ledger(&indices.device, |ledger| {
        let flags = ledger.flags.get_or_insert_with(|| Flags::new(&client, FLAGS));
        check(&client, super::operand(indices), sizes, flags, ledger.pending.len())?;
        ledger.pending.push(Pending {
            operation,
            operands: describe(operands),
            indices: indices.clone(),
            sizes: sizes.to_vec(),
            output: of_operation(),
        });
        ledger.bytes += indices.meta.shape().num_elements() * indices.dtype.size();
        if ledger.pending.len() == FLAGS || ledger.bytes > BYTES {
            ledger.look(&indices.device);
        }
        Ok(())
    })
}

/// The first operation of this thread on `device` that got an index outside its axis, once. Where it `waits`, of all
/// that ran; else of those that were looked at already.
pub(crate) fn out_of_range(device: &CubeDevice, waits: bool) -> Option<OutOfRange> {
    if OPEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    with_ledger(device, |ledger| {
        if waits {
            ledger.look(device);
        }
        ledger.found.take()
    })
}

/// `read` of `tensor`, unless an operation of this thread got an index outside its axis before.
pub(in crate::backend) fn read_checked<F>(
    tensor: CubeTensor,
    read: impl FnOnce(CubeTensor) -> F,
) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send
where
    F: Future<Output = Result<TensorData, ExecutionError>> + Send,
{
    let read = match out_of_range(&tensor.device, true) {
        Some(found) => Err(ExecutionError::with_context(found.error.to_string())),
        None => {
            copy_at_once();
            Ok(read(tensor))
        }
    };
    async move { read?.await }
}

/// Takes this thread's ledger out while `body` has it: `body` may wait for the device, whose thread may want another one.
fn with_ledger<T>(device: &CubeDevice, body: impl FnOnce(&mut Ledger) -> T) -> T {
    let key = (device.to_id(), StreamId::current());
    let ledgers = || LEDGERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut ledger = ledgers().get_or_insert_default().remove(&key).unwrap_or_default();
    let was_open = ledger.is_open();
    let result = body(&mut ledger);
    match (was_open, ledger.is_open()) {
        (false, true) => OPEN.fetch_add(1, Ordering::Relaxed),
        (true, false) => OPEN.fetch_sub(1, Ordering::Relaxed),
        _ => 0,
    };
    ledgers().get_or_insert_default().insert(key, ledger);
    result
}

impl Ledger {
    fn is_open(&self) -> bool {
        self.found.is_some() || !self.pending.is_empty()
    }

    /// Reads the flags of what is pending, and keeps the first finding.
    fn look(&mut self, device: &CubeDevice) {
        let Some(flags) = &self.flags else { return };
        if self.pending.is_empty() {
            return;
        }
        self.bytes = 0;
        let pending = core::mem::take(&mut self.pending);
        // A device that cannot tell has lost more than this, and says so at every read.
        let Ok(raised) = flags.read(&device.client()) else { return };
        let Some(first) = raised.iter().position(|raised| *raised) else { return };
        self.flags = None;
        let Some(found) = pending.into_iter().nth(first) else { return };
        let found = OutOfRange { output: found.output, error: found.error(device) };
        self.found.get_or_insert(found);
    }
}

impl Pending {
    fn error(self, device: &CubeDevice) -> Error {
        let Self { operation, operands, indices, sizes, .. } = self;
        let device = format!("{device:?}");
        let data = read_sync(CubeBackend::int_into_data(indices));
        let values: Vec<i64> = data.as_ref().map(|data| data.iter::<i64>().collect()).unwrap_or_default();
        let place = first_outside(&values, &sizes);
        let index = place.map_or(0, |place| values[place]);
        let place = place.unwrap_or_default();
        let position = data.map(|data| index_of(place, data.shape())).unwrap_or_default();
        Error::IndexOutOfRange { operation, operands, device, index, position, length: sizes[place % sizes.len()] }
    }
}
