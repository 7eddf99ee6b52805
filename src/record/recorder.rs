//! What a device's thread knows of the operations that run on it.

use super::digests::Digests;
use super::left_out::is_left_out;
use super::mark::Mark;
use super::writer::{Incomplete, is_recording, level, write};
use super::{count, parameters};
use crate::catalogue;
use crate::context;
use burn_backend::{DType, Shape, StreamId};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_recording::{
    Draw, Level, Operation, Origin, Output, Phase, Place, Record, State, StateTensor, Tensor, Thread,
};
use burn_fusion::custom::HandleContainer;
use burn_ir::{BaseOperationIr, OperationIr, TensorId, TensorIr, TensorStatus};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The tensors of a device.
type Handles = HandleContainer<CubeFusionHandle>;

/// Those of all devices.
static RECORDERS: Mutex<Vec<&'static Mutex<Recorder>>> = Mutex::new(Vec::new());

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
struct Recorder {
    queues: HashMap<StreamId, Queue>,
    /// Tensors that have been written or uploaded, and not freed.
    live: HashMap<TensorId, Live>,
    digests: Digests,
    /// Records that wait for digests.
    records: Vec<Incomplete>,
}

/// The operations of one thread on the device.
struct Queue {
    number: u32,
    operations: Arc<AtomicU64>,
    place: Place,
    /// What the present step began with.
    step: Option<Begun>,
    /// Whether the program has ever said where a step begins.
    says_steps: bool,
    /// The step that ended last.
    last_step: Option<u64>,
    /// Whether a state has been recorded.
    has_state: bool,
    backward_passes: u64,
    batches: u64,
    /// The operations before the present step.
    before_step: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Begun {
    Step,
    Batch,
}

struct Live {
    thread: u32,
    origin: Origin,
    shape: Shape,
    dtype: DType,
    parameter: Option<Arc<str>>,
    /// Whether it was written since the last state of its thread.
    is_new: bool,
}

impl Live {
    /// As an operand of `thread`.
    fn tensor(&self, thread: u32) -> Tensor {
        Tensor {
            origin: (self.thread == thread).then_some(self.origin),
            shape: extents(&self.shape),
            dtype: self.dtype.name().to_owned(),
            parameter: self.parameter.as_deref().map(str::to_owned),
        }
    }
}

fn extents(shape: &Shape) -> Vec<u64> {
    shape.iter().map(|&extent| extent as u64).collect()
}

/// Whether the operations of the thread at work are recorded.
fn records() -> bool {
    is_recording() && !is_left_out(StreamId::current())
}

/// Whether each operation of the thread at work is recorded, with digests of its results.
pub(crate) fn each_operation() -> bool {
    records()
        && match level() {
            Level::Operations => true,
            Level::OperationsOf { first, last } => with(|recorder| {
                let queue = recorder.queues.get(&StreamId::current());
                // What comes before the first step is part of that, and what comes after a step is part of it.
                let step = queue.and_then(|queue| queue.place.step.or(queue.last_step));
                (first..=last).contains(&step.unwrap_or(0))
            }),
            _ => false,
        }
}

/// Operations that run in one kernel, in a recording.
pub(crate) struct Together {
    operations: Vec<OperationIr>,
    written: HashSet<TensorId>,
    in_full: bool,
}

impl Together {
    /// Notes what `operations`, in global form, will take. `None` where nothing is recorded of them.
    pub(crate) fn begin(operations: impl FnOnce() -> Vec<OperationIr>, handles: &Handles) -> Option<Self> {
        if !records() {
            return None;
        }
        let (operations, in_full) = (operations(), each_operation());
        let mut written = HashSet::new();
        with(|recorder| {
            for operation in &operations {
                let from_before = operation.inputs().filter(|input| !written.contains(&input.id));
                recorder.find(from_before, handles, in_full);
                written.extend(operation.outputs().map(|output| output.id));
            }
        });
        context::with(|context| context.kernels = in_full.then(Vec::new));
        Some(Self { operations, written, in_full })
    }

    /// Notes what the operations have written. Frees what only the recording needs.
    pub(crate) fn end(self, handles: &mut Handles) {
        let kernels = launched_kernels();
        with(|recorder| {
            for operation in &self.operations {
                if let OperationIr::Drop(tensor) = operation {
                    recorder.live.remove(&tensor.id);
                    continue;
                }
                let run = recorder.begin(operation, handles, self.in_full);
                recorder.end(run, operation, handles, &[], None, &kernels);
            }
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

/// Notes that a kernel was launched.
pub(crate) fn launched(kernel: &'static str) {
    context::with(|context| {
        if let Some(kernels) = &mut context.kernels {
            kernels.push(kernel);
        }
    });
}

/// The kernels launched since an operation began, where they are recorded.
fn launched_kernels() -> Vec<&'static str> {
    context::with(|context| context.kernels.take()).unwrap_or_default()
}

/// Notes the tensor that `operation` frees, if it does.
pub(crate) fn freed(operation: &OperationIr) {
    if let OperationIr::Drop(tensor) = operation
        && is_recording()
    {
        with(|recorder| recorder.live.remove(&tensor.id));
    }
}

/// An operation that runs, in a recording.
pub(crate) struct Run {
    inputs: Vec<Tensor>,
    /// The parameter that its result is the new value of, if it has the same shape and dtype.
    updates: Option<(Shape, DType, Arc<str>)>,
    /// Whether its results get digests.
    in_full: bool,
}

impl Run {
    /// Notes what `operation`, in global form, will take. `None` where nothing is recorded of it.
    pub(crate) fn begin(operation: &OperationIr, handles: &Handles) -> Option<Self> {
        if !records() {
            return None;
        }
        let in_full = each_operation();
        let run = with(|recorder| recorder.begin(operation, handles, in_full));
        context::with(|context| context.kernels = in_full.then(Vec::new));
        Some(run)
    }

    /// Notes what the operation has written, and the numbers that it has drawn.
    pub(crate) fn end(
        self,
        operation: &OperationIr,
        handles: &Handles,
        draws: &[context::Draw],
        error: Option<String>,
    ) {
        let kernels = launched_kernels();
        with(|recorder| recorder.end(self, operation, handles, draws, error, &kernels));
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

/// Has what is noted of all devices written, of which none begins a block any more.
pub(crate) fn devices_end() {
    let recorders = RECORDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    recorders.into_iter().for_each(|recorder| recorder.lock().unwrap_or_else(PoisonError::into_inner).send());
}

impl Queue {
    fn new() -> (Self, Record) {
        let (number, operations) = count::of_thread();
        let queue = Self {
            number,
            operations,
            place: Place::default(),
            step: None,
            says_steps: false,
            last_step: None,
            has_state: false,
            backward_passes: 0,
            batches: 0,
            before_step: 0,
        };
        (queue, Record::Thread(Thread { number }))
    }

    /// The next operation's number.
    fn count(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    fn origin(&self, operation: u64, output: usize) -> Origin {
        Origin { operation, output: output as u32 }
    }
}

impl Recorder {
    fn queue(&mut self) -> &mut Queue {
        let records = &mut self.records;
        self.queues.entry(StreamId::current()).or_insert_with(|| {
            let (queue, record) = Queue::new();
            records.push(Incomplete { record, digests: Vec::new() });
            queue
        })
    }

    fn begin(&mut self, operation: &OperationIr, handles: &Handles, in_full: bool) -> Run {
        if self.live.len() > 2 * handles.num_handles() + UNCHECKED {
            self.forget(handles);
        }
        if begins_backward_pass(operation) {
            self.backward_pass(handles);
        }
        self.find(operation.inputs(), handles, in_full);
        let thread = self.queue().number;
        let inputs = operation.inputs().map(|input| self.live[&input.id].tensor(thread));
        let inputs = if in_full { inputs.collect() } else { Vec::new() };
        let consumed = operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite);
        let mut updates = None;
        let mut takes_old = false;
        for input in consumed {
            let live = &self.live[&input.id];
            takes_old |= !live.is_new;
            if let Some(parameter) = live.parameter.as_ref().filter(|_| is_elementwise(operation)) {
                updates.get_or_insert_with(|| (live.shape.clone(), live.dtype, parameter.clone()));
            }
        }
        let place = &mut self.queue().place;
        if place.phase == Phase::Backward && takes_old && is_elementwise(operation) {
            place.phase = Phase::Update;
        }
        Run { inputs, updates, in_full }
    }

    fn end(
        &mut self,
        run: Run,
        operation: &OperationIr,
        handles: &Handles,
        draws: &[context::Draw],
        error: Option<String>,
        kernels: &[&'static str],
    ) {
        let number = self.queue().count();
        let written: Vec<_> = { operation.outputs().enumerate() }
            .map(|(index, output)| {
                let origin = self.queue().origin(number, index);
                let updated = |(shape, dtype, _): &&(Shape, DType, _)| *shape == output.shape && *dtype == output.dtype;
                let parameter = run.updates.as_ref().filter(updated).map(|(_, _, parameter)| parameter.clone());
                self.written(output, origin, parameter, handles, run.in_full)
            })
            .collect();
        for input in operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite) {
            // An operation may write where it reads: then the number of the result is another.
            self.live.remove(&input.id);
        }
        if run.in_full {
            let (outputs, digests) = written.into_iter().flatten().unzip();
            let operation = Operation {
                parameters: parameters::of(operation),
                inputs: run.inputs,
                outputs,
                kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
                draws: draws.iter().map(drawn).collect(),
                error,
                ..self.operation(number, name(operation))
            };
            self.record(Record::Operation(operation), digests);
        }
    }

    /// Notes a tensor that lives from now on. In full, what is recorded of it, and the number of its digest.
    fn written(
        &mut self,
        tensor: &TensorIr,
        origin: Origin,
        parameter: Option<Arc<str>>,
        handles: &Handles,
        in_full: bool,
    ) -> Option<(Output, Option<usize>)> {
        let recorded = in_full.then(|| {
            let handle = handles.get_handle_ref(&tensor.id);
            let output = Output {
                shape: extents(&tensor.shape),
                dtype: tensor.dtype.name().to_owned(),
                digest: None,
                parameter: parameter.as_deref().map(str::to_owned),
            };
            (output, handle.and_then(|handle| self.digests.ask(handle, &tensor.shape)))
        });
        let thread = self.queue().number;
        let live = Live { thread, origin, shape: tensor.shape.clone(), dtype: tensor.dtype, parameter, is_new: true };
        self.live.insert(tensor.id, live);
        recorded
    }

    /// The record of an operation of the thread at work, of which nothing else is known yet.
    fn operation(&mut self, number: u64, name: &str) -> Operation {
        let queue = self.queue();
        Operation {
            thread: queue.number,
            number,
            place: queue.place.clone(),
            name: name.to_owned(),
            parameters: String::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            kernels: Vec::new(),
            draws: Vec::new(),
            error: None,
        }
    }

    /// Notes the tensors that no operation has written: data from the host, or tensors of another thread's.
    fn find<'a>(&mut self, tensors: impl Iterator<Item = &'a TensorIr>, handles: &Handles, in_full: bool) {
        for tensor in tensors {
            if self.live.contains_key(&tensor.id) {
                continue;
            }
            let number = self.queue().count();
            let origin = self.queue().origin(number, 0);
            if let Some((output, digest)) = self.written(tensor, origin, None, handles, in_full) {
                let upload = Operation { outputs: vec![output], ..self.operation(number, Operation::UPLOAD) };
                self.record(Record::Operation(upload), vec![digest]);
            }
        }
    }

    fn backward_pass(&mut self, handles: &Handles) {
        let queue = self.queue();
        let (says_steps, passes) = (queue.says_steps, queue.backward_passes);
        queue.backward_passes += 1;
        if !says_steps {
            if passes > 0 {
                self.state(handles);
            }
            self.queue().place.step = Some(passes);
        }
        self.queue().place.phase = Phase::Backward;
    }

    fn mark(&mut self, mark: &Mark, handles: &Handles) {
        let step = self.queue().step;
        match mark {
            Mark::Label(label) => self.queue().place.labels.push(label.clone()),
            Mark::LabelEnds => {
                self.queue().place.labels.pop();
            }
            Mark::Step(number) => {
                self.first_state(handles);
                let queue = self.queue();
                queue.place.step = Some(*number);
                queue.place.phase = Phase::Forward;
                // A batch's step ends with the batch.
                queue.step = step.or(Some(Begun::Step));
            }
            Mark::StepEnds if step == Some(Begun::Step) => self.step_ends(handles),
            Mark::StepEnds => {}
            Mark::Epoch(epoch) => self.queue().place.epoch = Some(*epoch),
            Mark::EpochEnds => self.queue().place.epoch = None,
            Mark::Batch { epoch, batch } => {
                match step {
                    Some(Begun::Batch) => self.step_ends(handles),
                    _ => self.first_state(handles),
                }
                let queue = self.queue();
                queue.before_step = queue.operations.load(Ordering::Relaxed);
                queue.place.epoch = Some(*epoch);
                queue.place.batch = Some(*batch);
                if queue.step.is_none() {
                    queue.place.step = Some(queue.batches);
                    queue.place.phase = Phase::Forward;
                    queue.batches += 1;
                    queue.step = Some(Begun::Batch);
                }
            }
            Mark::BatchesEnd if step == Some(Begun::Batch) => {
                let queue = self.queue();
                if queue.operations.load(Ordering::Relaxed) == queue.before_step {
                    // There was no batch.
                    queue.batches -= 1;
                    (queue.step, queue.place.step) = (None, None);
                } else {
                    self.step_ends(handles);
                }
                let place = &mut self.queue().place;
                (place.epoch, place.batch) = (None, None);
            }
            Mark::BatchesEnd => {}
            Mark::Parameters(parameters) => {
                for (id, path) in parameters {
                    if let Some(live) = self.live.get_mut(id) {
                        live.parameter = Some(path.as_str().into());
                    }
                }
            }
        }
    }

    /// Records the values that a training begins with.
    fn first_state(&mut self, handles: &Handles) {
        self.queue().says_steps = true;
        if !self.queue().has_state {
            self.state(handles);
        }
    }

    fn step_ends(&mut self, handles: &Handles) {
        self.state(handles);
        let queue = self.queue();
        queue.step = None;
        queue.last_step = queue.place.step.take();
        queue.place.phase = Phase::Forward;
    }

    /// Records the tensors that live and were written since the last state of the thread.
    fn state(&mut self, handles: &Handles) {
        let queue = self.queue();
        queue.has_state = true;
        let (thread, operations, place) = (queue.number, queue.operations.load(Ordering::Relaxed), queue.place.clone());
        self.forget(handles);
        let mut new: Vec<(&TensorId, &mut Live)> =
            self.live.iter_mut().filter(|(_, live)| live.is_new && live.thread == thread).collect();
        new.sort_unstable_by_key(|(_, live)| live.origin);
        let (mut tensors, mut digests) = (Vec::with_capacity(new.len()), Vec::with_capacity(new.len()));
        for (id, live) in new {
            live.is_new = false;
            let handle = handles.get_handle_ref(id);
            digests.push(handle.and_then(|handle| self.digests.ask(handle, &live.shape)));
            tensors.push(StateTensor {
                origin: live.origin,
                shape: extents(&live.shape),
                dtype: live.dtype.name().to_owned(),
                parameter: live.parameter.as_deref().map(str::to_owned),
                digest: None,
            });
        }
        self.record(Record::State(State { thread, operations, place, tensors }), digests);
        self.send();
    }

    /// Forgets tensors that are no more: threads free those of others without an operation.
    fn forget(&mut self, handles: &Handles) {
        self.live.retain(|id, _| handles.has_handle(id));
    }

    fn record(&mut self, record: Record, digests: Vec<Option<usize>>) {
        self.records.push(Incomplete { record, digests });
        if self.digests.are_many() {
            self.send();
        }
    }

    fn send(&mut self) {
        let records = core::mem::take(&mut self.records);
        if !records.is_empty() {
            write(records, self.digests.read());
        }
    }
}

fn name(operation: &OperationIr) -> &str {
    match operation {
        OperationIr::Init(_) => Operation::UPLOAD,
        operation => catalogue::name(operation),
    }
}

/// Whether `operation` begins a backward pass: burn-autodiff makes the gradient of a loss of one element so.
fn begins_backward_pass(operation: &OperationIr) -> bool {
    match operation {
        OperationIr::BaseFloat(BaseOperationIr::Ones(ones)) => ones.out.shape.num_elements() == 1,
        _ => false,
    }
}

fn is_elementwise(operation: &OperationIr) -> bool {
    matches!(operation, OperationIr::NumericFloat(..) | OperationIr::Float(..) | OperationIr::BaseFloat(_))
}

fn drawn((key, stream): &context::Draw) -> Draw {
    let hash = blake3::hash(key);
    let first: [u8; 8] = hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes");
    Draw { key: u64::from_le_bytes(first), stream: *stream }
}
