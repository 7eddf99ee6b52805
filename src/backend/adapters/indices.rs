//! Indices outside their axis: noted when an operation gets them, reported when the program next waits for the device.
//!
//! A kernel of each operation that takes indices, its own or one beside it, sets a flag on the device if one is outside.
//! Nobody waits for it: the flags of a thread's operations on a device are read together, where the program waits for the
//! device anyway, or after [`FLAGS`] operations. Only when one is set are its indices read. Indices
//! beyond [`BYTES`] are not kept, and the error names none of them.
//!
//! A thread may end without having waited. So a thread that waits also reads the flags that other threads have left, and
//! gets their error once; the other thread gets it too, if it still asks. Not so under
//! [`Determinism::seed_threads`](crate::Determinism::seed_threads), where threads have nothing to do with each other, and not where
//! a batch of a loader's is waited for: that tells of its own indices.

use super::dependents::{Dependents, FLAGS, Places};
use crate::backend::reads::copy_at_once;
use crate::backend::transfer;
use crate::context;
use crate::device;
use crate::error::{Error, index_of, operands as describe};
use crate::settings::determinism;
use crate::worker_streams;
use burn_backend::ops::{
    BoolTensorOps, FloatTensorOps, IntTensorOps, QTensorOps, TransactionPrimitive, TransactionPrimitiveData,
};
use burn_backend::{DType, DeviceId, ExecutionError, Shape, StreamId, TensorData, TensorMetadata, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice, fusion::FusionCubeRuntime, tensor::CubeTensor};
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::index_check::{Flag, Flags, first_outside};
use burn_fusion::client::GlobalFusionClient;
use burn_ir::TensorId;
use core::sync::atomic::{AtomicUsize, Ordering};
use cubecl::server::Handle;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Bytes of memory that they keep for their indices, at most, but for those of one operation.
const BYTES: usize = 64 << 20;

/// An operation whose indices are checked.
pub(crate) struct Check {
    /// The operation, as errors name it.
    pub operation: &'static str,
    /// Its operands.
    pub operands: Vec<(Shape, DType)>,
    /// Its indices.
    pub indices: CubeTensor,
    /// The sizes of their axes.
    pub sizes: Vec<usize>,
    /// Its result, where it came over Burn's stream.
    pub output: Option<TensorId>,
}

/// An operation whose indices are being checked.
struct Pending {
    operation: &'static str,
    operands: Vec<(Shape, DType)>,
    /// Where they are kept.
    indices: Option<CubeTensor>,
    sizes: Vec<usize>,
    output: Option<TensorId>,
}

/// What a thread's operations on a device have left.
#[derive(Default)]
struct Ledger {
    flags: Option<Flags>,
    pending: Vec<Pending>,
    /// What depends on their results, of the first so many: those of the blocks that have [noted](note_dependents) that.
    dependents: Dependents,
    noted: usize,
    bytes: usize,
    found: Option<OutOfRange>,
    /// What was found and reported, and has still to be given to the tensors that depend on it, by the next block.
    reported: Option<OutOfRange>,
    /// Whether another thread got what was found.
    given_to_another: bool,
}

/// Operations that got an index outside its axis.
#[derive(Clone)]
pub(crate) struct OutOfRange {
    /// The error of the first one.
    pub error: Error,
    /// The results of all that came over Burn's stream, and what earlier blocks have computed from them.
    pub failed: Vec<TensorId>,
}

/// The ledger of each device and stream.
type Ledgers = BTreeMap<(DeviceId, StreamId), Arc<Mutex<Ledger>>>;

/// Ledgers that have something in them, or are at work: most programs have none.
static LEDGERS: Mutex<Ledgers> = Mutex::new(BTreeMap::new());

/// How many have something in them.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Flags that belong to no ledger, none of them set, by the device and the stream that have their memory: another stream's read of them
/// would wait for this one at whatever moment of its work ([`transfer::on`]).
static SPARE: Mutex<Vec<((DeviceId, StreamId), Flags)>> = Mutex::new(Vec::new());

/// Spare flags that are kept.
const MAX_SPARE: usize = 16;

/// Runs `body`, which sets the flag if one of the `indices` of an operation is not in these `sizes`.
pub(super) fn flagged<T>(
    operation: &'static str,
    operands: &[&CubeTensor],
    indices: &CubeTensor,
    sizes: &[usize],
    body: impl FnOnce(Flag<'_>) -> Result<T, KernelError>,
) -> Result<T, KernelError> {
    let check = Check {
        operation,
        operands: operands.iter().map(|operand| (operand.shape(), operand.dtype)).collect(),
        indices: indices.clone(),
        sizes: sizes.to_vec(),
        output: context::position(),
    };
    flagged_each(&indices.device, vec![check], |flags| body(flags[0]))
}

/// Runs `body`, which sets the flag of each check whose indices are not all in their sizes: [`FLAGS`] checks at most.
pub(crate) fn flagged_each<T>(
    device: &CubeDevice,
    checks: Vec<Check>,
    body: impl FnOnce(&[Flag<'_>]) -> Result<T, KernelError>,
) -> Result<T, KernelError> {
    if checks.is_empty() {
        return body(&[]);
    }
    with_ledger(device, |ledger| {
        if ledger.pending.len() + checks.len() > FLAGS {
            ledger.look(device);
        }
        let new = || spare(device).unwrap_or_else(|| Flags::new(&device.client(), FLAGS));
        let flags = ledger.flags.get_or_insert_with(new);
        let first = ledger.pending.len();
        let of_checks: Vec<_> = (first..first + checks.len()).map(|number| flags.flag(number)).collect();
        // Before the kernel, which may set a flag and then fail.
        for Check { operation, operands, indices, sizes, output } in checks {
            let bytes = ledger.bytes + indices.handle.size() as usize;
            let is_kept = ledger.bytes == 0 || bytes <= BYTES;
            if is_kept {
                ledger.bytes = bytes;
            }
            let indices = is_kept.then_some(indices);
            ledger.pending.push(Pending { operation, operands, indices, sizes, output });
        }
        let result = body(&of_checks)?;
        if ledger.pending.len() == FLAGS {
            ledger.look(device);
        }
        Ok(result)
    })
}

/// The first operation of this thread on `device` that got an index outside its axis, once. Where it `waits`, of all
/// that ran, else of those whose flags were read already; and then of other threads' operations.
pub(crate) fn out_of_range(device: &CubeDevice, waits: bool) -> Option<OutOfRange> {
    if OPEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let own = with_ledger(device, |ledger| {
        if waits {
            ledger.look(device);
        }
        ledger.found.take()
    });
    match own {
        None if waits && asks_for_others() => of_another_thread(device),
        own => own,
    }
}

/// The error of the same, where no block gives it to what has failed: the next block of this thread does, and until then the error is
/// returned again.
pub(in crate::backend) fn reported(device: &CubeDevice) -> Option<Error> {
    let found = out_of_range(device, true);
    if found.is_none() && OPEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    with_ledger(device, |ledger| match (found, &mut ledger.reported) {
        (Some(found), Some(reported)) => {
            reported.failed.extend(found.failed);
            Some(found.error)
        }
        (Some(found), none) => {
            let error = found.error.clone();
            *none = (!found.failed.is_empty()).then_some(found);
            Some(error)
        }
        (None, reported) => reported.as_ref().map(|reported| reported.error.clone()),
    })
}

/// What was [reported] and has failed, once.
pub(crate) fn out_of_range_before(device: &CubeDevice) -> Option<OutOfRange> {
    if OPEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    with_ledger(device, |ledger| ledger.reported.take())
}

/// Has `note` add what depends on this thread's operations that are not checked yet, given the results of those that ran since the last
/// time and came over Burn's stream.
pub(crate) fn note_dependents(device: &CubeDevice, note: impl FnOnce(Vec<(TensorId, Places)>, &mut Dependents)) {
    if OPEN.load(Ordering::Relaxed) == 0 {
        return;
    }
    with_ledger(device, |ledger| {
        let first = core::mem::replace(&mut ledger.noted, ledger.pending.len());
        let outputs = (first..).zip(&ledger.pending[first..]);
        let outputs = outputs.filter_map(|(place, pending)| Some((pending.output?, Places::at(place))));
        if !ledger.pending.is_empty() {
            note(outputs.collect(), &mut ledger.dependents);
        }
    });
}

/// Reports an operation of this thread that came over Burn's stream and got an index outside its axis. Waits for the
/// devices.
///
/// # Errors
///
/// [`Error::IndexOutOfRange`] or [`Error::UnkeptIndexOutOfRange`], once.
pub(crate) fn check_indices() -> Result<(), Error> {
    if OPEN.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    for device in device::in_use() {
        let client = GlobalFusionClient::<FusionCubeRuntime>::new(device.clone());
        // A device that fails says so at the program's next read.
        if let Ok(Some(error)) = client.run(|| reported(&device)) {
            return Err(error);
        }
    }
    Ok(())
}

/// Whether a wait of the thread at work is told what other threads have left.
fn asks_for_others() -> bool {
    determinism().thread_seed.is_none() && !worker_streams::contains(StreamId::current())
}

/// What another thread's operations have left, once. Its results carry no error from here: their thread may be at work.
fn of_another_thread(device: &CubeDevice) -> Option<OutOfRange> {
    let device_id = device.to_id();
    let all = (device_id, StreamId { value: 0 })..=(device_id, StreamId { value: u64::MAX });
    let others: Vec<_> = ledgers().range(all).map(|(key, ledger)| (*key, ledger.clone())).collect();
    others.into_iter().find_map(|(key, ledger)| {
        // One in use is read by its own thread, or another time.
        let mut own = match ledger.try_lock() {
            Ok(own) => own,
            Err(TryLockError::Poisoned(own)) => own.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let found = at_work(key, &mut own, |ledger| {
            // On the other thread's stream, after what it has launched: flags that a third thread made are ordered after
            // nothing else.
            key.1.executes(|| ledger.look(device));
            let found = ledger.found.clone().filter(|_| !ledger.given_to_another)?;
            ledger.given_to_another = true;
            Some(found)
        });
        drop(own);
        forget_closed(key, ledger);
        Some(OutOfRange { failed: Vec::new(), ..found? })
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
    let read = match reported(&tensor.device) {
        Some(error) => Err(ExecutionError::with_context(error.to_string())),
        None => {
            copy_at_once();
            Ok(transfer::into_data(tensor, read))
        }
    };
    async move { read?.await }
}

/// `read` of all tensors at once, unless an operation of this thread got an index outside its axis before. Tensors of
/// several devices or streams, and quantized ones, which Burn's own read leaves out, are read one after the other.
pub(in crate::backend) fn read_all_checked<F>(
    transaction: TransactionPrimitive<CubeBackend>,
    read: impl FnOnce(TransactionPrimitive<CubeBackend>) -> F + Send,
) -> impl Future<Output = Result<TransactionPrimitiveData, ExecutionError>> + Send
where
    F: Future<Output = Result<TransactionPrimitiveData, ExecutionError>> + Send,
{
    let TransactionPrimitive { read_floats, read_qfloats, read_ints, read_bools, .. } = &transaction;
    let (mut devices, mut handles): (Vec<CubeDevice>, Vec<Handle>) = (Vec::new(), Vec::new());
    for tensor in read_floats.iter().chain(read_qfloats).chain(read_ints).chain(read_bools) {
        if !devices.contains(&tensor.device) {
            devices.push(tensor.device.clone());
        }
        handles.push(tensor.handle.clone());
    }
    let error = devices.iter().find_map(reported);
    copy_at_once();
    async move {
        if let Some(error) = error {
            return Err(ExecutionError::with_context(error.to_string()));
        }
        let is_of_one_stream = handles.iter().all(|handle| handle.stream == handles[0].stream);
        if devices.len() == 1 && is_of_one_stream && transaction.read_qfloats.is_empty() {
            return transfer::on(handles[0].stream, handles, read(transaction)).await;
        }
        let mut data = TransactionPrimitiveData::default();
        for tensor in transaction.read_floats {
            data.read_floats.push(transfer::into_data(tensor, CubeBackend::float_into_data).await?);
        }
        for tensor in transaction.read_qfloats {
            data.read_qfloats.push(transfer::into_data(tensor, CubeBackend::q_into_data).await?);
        }
        for tensor in transaction.read_ints {
            data.read_ints.push(transfer::into_data(tensor, CubeBackend::int_into_data).await?);
        }
        for tensor in transaction.read_bools {
            data.read_bools.push(transfer::into_data(tensor, CubeBackend::bool_into_data).await?);
        }
        Ok(data)
    }
}

fn ledgers() -> MutexGuard<'static, Ledgers> {
    LEDGERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands `body` this thread's ledger. The others stay free meanwhile: `body` may wait for the device.
fn with_ledger<T>(device: &CubeDevice, body: impl FnOnce(&mut Ledger) -> T) -> T {
    let key = (device.to_id(), StreamId::current());
    let ledger = ledgers().entry(key).or_default().clone();
    let result = at_work(key, &mut ledger.lock().unwrap_or_else(PoisonError::into_inner), body);
    forget_closed(key, ledger);
    result
}

/// Removes a ledger that is empty.
fn forget_closed(key: (DeviceId, StreamId), ledger: Arc<Mutex<Ledger>>) {
    let mut ledgers = ledgers();
    // Nobody else has it, or can get it now.
    if Arc::strong_count(&ledger) == 2 && !ledger.lock().unwrap_or_else(PoisonError::into_inner).is_open() {
        ledgers.remove(&key);
    }
}

/// Runs `body`, which may open or close the ledger.
fn at_work<T>(key: (DeviceId, StreamId), ledger: &mut Ledger, body: impl FnOnce(&mut Ledger) -> T) -> T {
    let was_open = ledger.is_open();
    body(AtWork { key, ledger, was_open }.ledger)
}

/// A ledger that is at work, and is counted when that ends, in a panic too.
struct AtWork<'a> {
    key: (DeviceId, StreamId),
    ledger: &'a mut Ledger,
    was_open: bool,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        match (self.was_open, self.ledger.is_open()) {
            (false, true) => OPEN.fetch_add(1, Ordering::Relaxed),
            (true, false) => OPEN.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        // A closed one needs no flags.
        if !self.ledger.is_open() {
            keep_spare(self.key, self.ledger.flags.take());
        }
    }
}

/// Flags of the device and the current stream for a ledger that has none.
fn spare(device: &CubeDevice) -> Option<Flags> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (device.to_id(), StreamId::current());
    let own = spare.iter().position(|(of, _)| *of == key)?;
    Some(spare.remove(own).1)
}

/// Keeps flags, and forgets the oldest where there are many: those of threads that have ended.
fn keep_spare(key: (DeviceId, StreamId), flags: Option<Flags>) {
    let Some(flags) = flags else { return };
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() == MAX_SPARE {
        spare.remove(0);
    }
    spare.push((key, flags));
}

impl Ledger {
    fn is_open(&self) -> bool {
        self.found.is_some() || self.reported.is_some() || !self.pending.is_empty()
    }

    /// Reads the flags of what is pending, and keeps what they say.
    fn look(&mut self, device: &CubeDevice) {
        let Some(flags) = &self.flags else { return };
        if self.pending.is_empty() {
            return;
        }
        (self.bytes, self.noted) = (0, 0);
        let pending = core::mem::take(&mut self.pending);
        // A device that cannot read them back has failed, and every read returns that.
        let raised = flags.read(&device.client());
        let is_raised = |place: &usize| raised.as_ref().is_ok_and(|raised| raised[*place]);
        let places: Vec<usize> = (0..pending.len()).filter(is_raised).collect();
        if raised.is_err() || !places.is_empty() {
            self.flags = None;
        }
        let mut failed = self.dependents.take(places.iter().copied().collect());
        failed.extend(places.iter().filter_map(|&place| pending[place].output));
        let first = places.first().and_then(|&first| pending.into_iter().nth(first));
        let Some(error) = first.map(|first| first.error(device)) else { return };
        match &mut self.found {
            Some(found) => found.failed.extend(failed),
            none => {
                *none = Some(OutOfRange { error, failed });
                self.given_to_another = false;
            }
        }
    }
}

impl Pending {
    fn error(self, device: &CubeDevice) -> Error {
        let Self { operation, operands, indices, sizes, .. } = self;
        let device = format!("{device:?}");
        let operands = describe(operands.iter().map(|(shape, dtype)| (&shape[..], *dtype)));
        let Some(indices) = indices else {
            return Error::UnkeptIndexOutOfRange { operation, operands, device };
        };
        let data = read_sync(transfer::into_data(indices, CubeBackend::int_into_data));
        let values: Vec<i64> = data.as_ref().map(|data| data.iter::<i64>().collect()).unwrap_or_default();
        let place = first_outside(&values, &sizes);
        let index = place.map_or(0, |place| values[place]);
        let place = place.unwrap_or_default();
        let position = data.map(|data| index_of(place, data.shape())).unwrap_or_default();
        Error::IndexOutOfRange { operation, operands, device, index, position, length: sizes[place % sizes.len()] }
    }
}
