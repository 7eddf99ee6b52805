//! What a device's thread knows of the operations that run on it.

use super::digests::Digests;
use super::kinds::{adds, begins_backward_pass, drawn, is_elementwise, name};
use super::launches::launches;
use super::mark::Mark;
use super::queue::Queue;
use super::writer::{Incomplete, is_recording, level, write};
use crate::catalogue;
use crate::context::{self, Launches};
use crate::worker_streams;
use burn_backend::{DType, Shape, StreamId};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_recording::{Level, Operation, Origin, Output, Phase, Record, Tensor};
use burn_fusion::custom::HandleContainer;
use burn_ir::{OperationIr, TensorId, TensorIr, TensorStatus};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The tensors of a device.
pub(super) type Handles = HandleContainer<CubeFusionHandle>;

/// Those of all devices.
static RECORDERS: Mutex<Vec<&'static Mutex<Recorder>>> = Mutex::new(Vec::new());

/// How long the records of a step wait to be written: what a program that is killed loses of them.
const INTERVAL: Duration = Duration::from_secs(1);

/// Tensors that are followed without a look at whether they still are.
const UNCHECKED: usize = 1 << 10;

thread_local! {
    /// Of the device whose operations this thread runs. The end of the process asks for it in another thread, and nothing
    /// frees it.
    static RECORDER: &'static Mutex<Recorder> = {
        let recorder: &Mutex<Recorder> = Box::leak(Box::default());
        RECORDERS.lock().unwrap_or_else(PoisonError::into_inner).push(recorder);
        recorder
    };
}

/// Hands the recorder of the device at work to `body`.
fn with<T>(body: impl FnOnce(&mut Recorder) -> T) -> T {
    RECORDER.with(|recorder| body(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner)))
}

#[derive(Default)]
pub(super) struct Recorder {
    pub(super) queues: HashMap<StreamId, Queue>,
    /// Tensors that have been written or uploaded, and not freed.
    pub(super) live: HashMap<TensorId, Live>,
    pub(super) digests: Digests,
    /// Records that wait for digests.
    records: Vec<Incomplete>,
    /// When the last records were sent to be written.
    sent: Option<Instant>,
}

/// A tensor that lives.
pub(super) struct Live {
    /// The thread that wrote it.
    pub(super) thread: u32,
    pub(super) origin: Origin,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) parameter: Option<Arc<str>>,
    /// The buffer from which element-wise operations made it, if any, and whose next value it may be.
    pub(super) buffer: Option<Arc<str>>,
    /// Whether no state has it yet.
    pub(super) is_new: bool,
    pub(super) role: Role,
}

/// What a tensor is to the steps of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// Of the present step.
    Temporary,
    /// Of draws and uploads alone, by element-wise operations: what a training begins with, before its first step has ended.
    Initial,
    /// What an update has made of a tensor that outlives steps.
    Updated,
    /// It lived when a step ended.
    Outlives,
}

impl Live {
    /// The parameter that it is, or the buffer if it `is_latest` of that one.
    pub(super) fn name(&self, is_latest: impl FnOnce(&str) -> bool) -> Option<&str> {
        match self.buffer.as_deref() {
            Some(buffer) => Some(buffer).filter(|buffer| is_latest(buffer)),
            None => self.parameter.as_deref(),
        }
    }

    fn tensor(&self) -> Tensor {
        Tensor {
            origin: Some(self.origin),
            shape: extents(&self.shape),
            dtype: self.dtype.name().to_owned(),
            parameter: self.parameter.as_deref().map(str::to_owned),
        }
    }
}

pub(super) fn extents(shape: &Shape) -> Vec<u64> {
    shape.iter().map(|&extent| extent as u64).collect()
}

/// Whether the operations of the thread at work are recorded.
fn records() -> bool {
    is_recording() && !worker_streams::contains(StreamId::current())
}

/// Whether each operation of the thread at work is recorded, with digests of its results.
pub(crate) fn each_operation() -> bool {
    records() && with(|recorder| recorder.each_operation())
}

/// Whether a step ends among `operations`, which would run in one kernel: then they run one by one. They are in Burn's relative
/// form; `bind` makes it global.
pub(crate) fn ends_step<'a>(
    operations: impl Iterator<Item = &'a OperationIr> + Clone,
    bind: impl Fn(&OperationIr) -> OperationIr,
) -> bool {
    records()
        && with(|recorder| {
            let Some(queue) = recorder.queues.get(&StreamId::current()) else { return false };
            if queue.ends_by_pass() && operations.clone().any(begins_backward_pass) {
                return true;
            }
            let drops = || operations.clone().any(|operation| matches!(operation, OperationIr::Drop(_)));
            if queue.says_steps || queue.place.phase == Phase::Forward || !drops() {
                return false;
            }
            let operations: Vec<_> = operations.clone().map(bind).collect();
            let updates = queue.is_updating() || operations.iter().any(|operation| recorder.updates(queue, operation));
            let outputs: HashSet<_> =
                operations.iter().flat_map(OperationIr::outputs).map(|output| output.id).collect();
            let drops_updated = |operation: &OperationIr| match operation {
                OperationIr::Drop(tensor) => outputs.contains(&tensor.id) || recorder.is_updated(queue, tensor),
                _ => false,
            };
            updates && operations.iter().any(drops_updated)
        })
}

/// Operations that run in one kernel, in a recording.
pub(crate) struct Together {
    operations: Vec<OperationIr>,
    written: HashSet<TensorId>,
    received: Received,
    in_full: bool,
}

/// Tensors that no operation of the thread has written, with the numbers of their digests.
type Received = HashMap<TensorId, Option<usize>>;

impl Together {
    /// Notes what `operations`, in global form, will take. `None` where nothing is recorded of them.
    pub(crate) fn begin(operations: impl FnOnce() -> Vec<OperationIr>, handles: &Handles) -> Option<Self> {
        if !records() {
            return None;
        }
        let (operations, in_full) = (operations(), each_operation());
        let (mut written, mut received) = (HashSet::new(), Received::new());
        with(|recorder| {
            recorder.forget_many(handles);
            for operation in &operations {
                let from_before = operation.inputs().filter(|input| !written.contains(&input.id));
                recorder.receive(from_before, handles, in_full, &mut received);
                written.extend(operation.outputs().map(|output| output.id));
            }
        });
        context::with(|context| context.launches = in_full.then(Launches::default));
        Some(Self { operations, written, received, in_full })
    }

    /// Notes what the operations have written. Frees what only the recording needs.
    pub(crate) fn end(self, handles: &mut Handles) {
        let launches = launches();
        with(|recorder| {
            for operation in &self.operations {
                if let OperationIr::Drop(tensor) = operation {
                    recorder.live.remove(&tensor.id);
                    continue;
                }
                if begins_backward_pass(operation) {
                    recorder.backward_pass(handles);
                }
                let ran = Ran { draws: &[], error: None, launches: &launches };
                recorder.after(operation, handles, self.in_full, &self.received, ran);
            }
            recorder.send_many();
        });
        if self.in_full {
            // What an operation of the kernel takes for the last time, another one of it may have written.
            let taken = self.operations.iter().flat_map(OperationIr::inputs);
            let last =
                taken.filter(|input| input.status == TensorStatus::ReadWrite && self.written.contains(&input.id));
            last.for_each(|input| drop(handles.remove_handle(input.id)));
        }
    }
}

/// Notes the tensor that `operation` frees, if it does.
pub(crate) fn freed(operation: &OperationIr, handles: &Handles) {
    if let OperationIr::Drop(tensor) = operation
        && is_recording()
    {
        let records = records();
        with(|recorder| {
            let queue = recorder.queues.get(&StreamId::current()).filter(|_| records);
            if queue.is_some_and(|queue| recorder.ends_by_drop(queue, operation)) {
                recorder.update_ends_by_drop(handles);
            }
            recorder.live.remove(&tensor.id);
        });
    }
}

/// An operation that runs, in a recording.
pub(crate) struct Run {
    received: Received,
    /// Whether its results get digests.
    in_full: bool,
}

/// How an operation ran.
struct Ran<'a> {
    draws: &'a [context::Draw],
    error: Option<String>,
    launches: &'a Launches,
}

impl Run {
    /// Notes what `operation`, in global form, will take. `None` where nothing is recorded of it.
    pub(crate) fn begin(operation: &OperationIr, handles: &Handles) -> Option<Self> {
        if !records() {
            return None;
        }
        let mut received = Received::new();
        let in_full = with(|recorder| {
            recorder.forget_many(handles);
            if !is_elementwise(operation) && recorder.queue().is_updating() {
                recorder.update_ends(handles);
            }
            if begins_backward_pass(operation) {
                recorder.backward_pass(handles);
            }
            let in_full = recorder.each_operation();
            recorder.receive(operation.inputs(), handles, in_full, &mut received);
            if in_full && catalogue::is_custom(operation) {
                recorder.digests.launch();
            }
            in_full
        });
        context::with(|context| context.launches = in_full.then(Launches::default));
        Some(Self { received, in_full })
    }

    /// Notes what the operation has written, and the numbers that it has drawn.
    pub(crate) fn end(
        self,
        operation: &OperationIr,
        handles: &Handles,
        draws: &[context::Draw],
        error: Option<String>,
    ) {
        let launches = launches();
        with(|recorder| {
            let ran = Ran { draws, error, launches: &launches };
            recorder.after(operation, handles, self.in_full, &self.received, ran);
            recorder.send_many();
        });
    }
}

/// Notes what the program says.
pub(super) fn mark(mark: &Mark, handles: &Handles) {
    if records() {
        with(|recorder| recorder.mark(mark, handles));
    }
}

/// The streams of the threads that have issued something.
pub(super) fn streams() -> Vec<StreamId> {
    let recorders = RECORDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut streams: Vec<StreamId> = { recorders.into_iter() }
        .flat_map(|recorder| {
            recorder.lock().unwrap_or_else(PoisonError::into_inner).queues.keys().copied().collect::<Vec<_>>()
        })
        .collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

/// Has what is noted of all devices written.
pub(super) fn send_all() {
    let recorders = RECORDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    recorders.into_iter().for_each(|recorder| recorder.lock().unwrap_or_else(PoisonError::into_inner).send());
}

impl Recorder {
    /// The queue of the thread at work.
    pub(super) fn queue(&mut self) -> &mut Queue {
        let records = &mut self.records;
        self.queues.entry(StreamId::current()).or_insert_with(|| {
            let (queue, record) = Queue::new();
            records.push(Incomplete { record, operation: None, digests: Vec::new() });
            queue
        })
    }

    fn each_operation(&self) -> bool {
        match level() {
            Level::Operations => true,
            Level::OperationsOf { first, last } => {
                let step = self.queues.get(&StreamId::current()).and_then(Queue::step_or_last);
                (first..=last).contains(&step.unwrap_or(0))
            }
            _ => false,
        }
    }

    /// Asks for the digests of the tensors that no operation of the thread has written, where they are recorded: an operation
    /// may write where it reads.
    fn receive<'a>(
        &mut self,
        tensors: impl Iterator<Item = &'a TensorIr>,
        handles: &Handles,
        in_full: bool,
        received: &mut Received,
    ) {
        let thread = self.queue().number;
        for tensor in tensors.filter(|_| in_full) {
            if self.is_foreign(tensor, thread) && !received.contains_key(&tensor.id) {
                received.insert(tensor.id, self.digest(tensor, handles));
            }
        }
    }

    /// Whether no operation of the thread has written the tensor.
    fn is_foreign(&self, tensor: &TensorIr, thread: u32) -> bool {
        self.live.get(&tensor.id).is_none_or(|live| live.thread != thread)
    }

    /// The number of the digest of a tensor.
    fn digest(&mut self, tensor: &TensorIr, handles: &Handles) -> Option<usize> {
        handles.get_handle_ref(&tensor.id).and_then(|handle| self.digests.ask(handle, &tensor.shape))
    }

    /// Notes an operation that has run. Tensors that no operation of the thread has written get their numbers now, not when the
    /// kernel began that it shares with others: which others those are differs from run to run.
    fn after(&mut self, operation: &OperationIr, handles: &Handles, in_full: bool, received: &Received, ran: Ran) {
        let thread = self.queue().number;
        for input in operation.inputs() {
            if self.is_foreign(input, thread) {
                let number = self.queue().count();
                self.insert(input, number, 0, Names::default(), Role::Initial);
                if in_full {
                    let outputs = vec![output(input, None)];
                    let receive = Operation { outputs, ..self.operation(number, Operation::RECEIVE) };
                    let digest = received.get(&input.id).copied().flatten();
                    self.record(Record::Operation(receive), None, vec![digest]);
                }
            }
        }
        let inputs = operation.inputs().map(|input| self.live[&input.id].tensor());
        let inputs = if in_full { inputs.collect() } else { Vec::new() };
        let (role, updated) = self.role(operation);
        let number = self.queue().count();
        let (mut outputs, mut digests) = (Vec::new(), Vec::new());
        for (index, tensor) in operation.outputs().enumerate() {
            let updated =
                updated.as_ref().filter(|updated| updated.shape == tensor.shape && updated.dtype == tensor.dtype);
            let parameter = updated.and_then(|updated| updated.parameter.clone());
            if in_full {
                outputs.push(output(tensor, parameter.as_deref()));
                digests.push(self.digest(tensor, handles));
            }
            let names = Names { parameter, buffer: self.buffer(operation, tensor) };
            self.insert(tensor, number, index, names, if updated.is_some() { Role::Updated } else { role });
        }
        for input in operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite) {
            // An operation may write where it reads: then the number of the result is another.
            self.live.remove(&input.id);
        }
        if in_full {
            let is_custom = catalogue::is_custom(operation);
            // Behind those of the results.
            digests.extend(operation.inputs().filter(|_| is_custom).map(|input| self.digest(input, handles)));
            let record = Operation {
                is_custom,
                inputs,
                outputs,
                kernels: ran.launches.kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
                plans: ran.launches.plans.clone(),
                draws: ran.draws.iter().map(drawn).collect(),
                error: ran.error,
                ..self.operation(number, name(operation))
            };
            self.record(Record::Operation(record), Some(operation), digests);
        }
    }

    /// The role of the results of an operation, and what it updates: the tensor that outlives steps, or the parameter, that an
    /// element-wise operation consumes. With the first of them in a backward pass the update begins.
    fn role(&mut self, operation: &OperationIr) -> (Role, Option<Updated>) {
        if !is_elementwise(operation) {
            return (if operation.inputs().next().is_none() { Role::Initial } else { Role::Temporary }, None);
        }
        let is_initial = operation.inputs().all(|input| self.live[&input.id].role == Role::Initial);
        self.queue();
        let queue = &self.queues[&StreamId::current()];
        // A parameter first: the step counts of an optimizer outlive steps too.
        let of = |live: &Live| {
            let (shape, parameter) = (live.shape.clone(), live.parameter.clone());
            Updated { shape, dtype: live.dtype, parameter }
        };
        let mut updated = self.consumed(operation).find(|live| live.parameter.is_some()).map(of);
        if queue.place.phase != Phase::Forward {
            updated = updated.or_else(|| {
                let mut consumed = self.consumed(operation);
                consumed.find(|live| outlives(queue, live, operation)).map(of)
            });
        }
        if updated.is_some() && queue.place.phase == Phase::Backward {
            self.queue().update();
        }
        (if is_initial { Role::Initial } else { Role::Temporary }, updated)
    }

    /// The tensors that an operation consumes.
    fn consumed<'a>(&'a self, operation: &'a OperationIr) -> impl Iterator<Item = &'a Live> {
        let consumed = operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite);
        consumed.filter_map(|input| self.live.get(&input.id))
    }

    /// Whether the update of a step begins with `operation`, if it comes after a backward pass.
    fn updates(&self, queue: &Queue, operation: &OperationIr) -> bool {
        is_elementwise(operation) && self.consumed(operation).any(|live| outlives(queue, live, operation))
    }

    /// Whether the present update made the tensor.
    fn is_updated(&self, queue: &Queue, tensor: &TensorIr) -> bool {
        self.live.get(&tensor.id).is_some_and(|live| is_of_update(queue, live))
    }

    /// Whether a tensor lives that the present update made.
    pub(super) fn has_updated(&mut self) -> bool {
        self.queue();
        let queue = &self.queues[&StreamId::current()];
        self.live.values().any(|live| is_of_update(queue, live))
    }

    /// Notes a tensor that lives from now on.
    fn insert(&mut self, tensor: &TensorIr, operation: u64, index: usize, names: Names, role: Role) {
        let thread = self.queue().number;
        let origin = Origin { operation, output: index as u32 };
        let (shape, dtype) = (tensor.shape.clone(), tensor.dtype);
        let Names { parameter, buffer } = names;
        self.live.insert(tensor.id, Live { thread, origin, shape, dtype, parameter, buffer, is_new: true, role });
    }

    /// The buffer whose next value a result may be.
    fn buffer(&self, operation: &OperationIr, result: &TensorIr) -> Option<Arc<str>> {
        let is_like = |live: &&Live| live.shape == result.shape && live.dtype == result.dtype;
        let mut inputs = operation.inputs().filter(|_| is_elementwise(operation));
        inputs.find_map(|input| self.live.get(&input.id).filter(is_like)?.buffer.clone())
    }

    /// The record of an operation of the thread at work, of which nothing else is known yet.
    fn operation(&mut self, number: u64, name: &str) -> Operation {
        let queue = self.queue();
        Operation {
            thread: queue.number,
            number,
            place: queue.place.clone(),
            name: name.to_owned(),
            is_custom: false,
            parameters: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            operands_after: Vec::new(),
            kernels: Vec::new(),
            plans: Vec::new(),
            draws: Vec::new(),
            error: None,
        }
    }

    /// Whether `operation`, in global form, ends a step of `queue` by freeing what an update made: the model is freed.
    fn ends_by_drop(&self, queue: &Queue, operation: &OperationIr) -> bool {
        queue.is_updating() && matches!(operation, OperationIr::Drop(tensor) if self.is_updated(queue, tensor))
    }

    /// Forgets tensors that are no more: threads free those of others without an operation.
    pub(super) fn forget(&mut self, handles: &Handles) {
        self.live.retain(|id, _| handles.has_handle(id));
    }

    fn forget_many(&mut self, handles: &Handles) {
        if self.live.len() > 2 * handles.num_handles() + UNCHECKED {
            self.forget(handles);
        }
    }

    pub(super) fn record(&mut self, record: Record, operation: Option<&OperationIr>, digests: Vec<Option<usize>>) {
        self.records.push(Incomplete { record, operation: operation.cloned(), digests });
    }

    /// Has the records written if many digests wait: not while an operation runs, which may have asked for some.
    pub(super) fn send_many(&mut self) {
        if self.digests.are_many() {
            self.send();
        }
    }

    /// Has the records of a step written if many digests wait or the last ones were sent some time ago. A read makes the
    /// device finish what it has begun: one in each step would take a tenth of it.
    pub(super) fn send_step(&mut self) {
        if self.sent.is_none_or(|sent| sent.elapsed() >= INTERVAL) {
            self.send();
        }
        self.send_many();
    }

    pub(super) fn send(&mut self) {
        let records = core::mem::take(&mut self.records);
        self.sent = Some(Instant::now());
        if !records.is_empty() {
            write(records, self.digests.take());
        }
    }
}

/// Whether the present update of `queue` wrote the tensor.
pub(super) fn is_of_update(queue: &Queue, live: &Live) -> bool {
    live.thread == queue.number && queue.updated(live.origin.operation)
}

/// Whether a tensor that `operation` consumes outlives steps.
fn outlives(queue: &Queue, live: &Live, operation: &OperationIr) -> bool {
    match live.role {
        Role::Outlives | Role::Updated => true,
        Role::Initial => !queue.has_state && live.origin.operation < queue.before_backward && adds(operation),
        Role::Temporary => false,
    }
}

/// The paths that a result has.
#[derive(Default)]
struct Names {
    parameter: Option<Arc<str>>,
    buffer: Option<Arc<str>>,
}

/// What an operation updates.
struct Updated {
    shape: Shape,
    dtype: DType,
    parameter: Option<Arc<str>>,
}

/// What is recorded of a result, its digest aside.
fn output(tensor: &TensorIr, parameter: Option<&str>) -> Output {
    Output {
        shape: extents(&tensor.shape),
        dtype: tensor.dtype.name().to_owned(),
        digest: None,
        parameter: parameter.map(str::to_owned),
    }
}
