//! Recordings of no program: a training of two layers, whose operations are made up.

use burn_deterministic_recording::diff::{Cause, Comparison, Step, compare};
use burn_deterministic_recording::{
    Digest, Draw, Environment, Header, Level, Operation, Origin, Output, Phase, Place, Record, State, StateTensor,
    Tensor, Thread, Writer,
};
use std::path::{Path, PathBuf};

/// Records in the making.
#[derive(Clone)]
pub struct Synthetic {
    pub header: Header,
    pub records: Vec<Record>,
}

/// A digest that is a function of `value`.
pub fn digest(value: u64) -> Digest {
    let mixed = (value + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Digest([mixed as u32, (mixed >> 32) as u32, value as u32, 7])
}

/// What a program on Vulkan writes first.
pub fn header(level: Level) -> Header {
    let mut environment = Environment::new();
    environment.set("crate", "0.1.0");
    environment.set("device", "Wgpu(Cpu)");
    environment.set("driver", "llvmpipe 25.0.7");
    Header { command: vec!["train".into(), "--seed".into(), "1".into()], level, deterministic: true, environment }
}

/// The place of an operation of `step`.
pub fn place(step: Option<u64>, phase: Phase, label: &str) -> Place {
    let labels = if label.is_empty() { Vec::new() } else { label.split('/').map(str::to_owned).collect() };
    Place { step, epoch: step.map(|_| 0), batch: step, labels, source: None, phase }
}

/// An operand that is a result of thread 0.
pub fn operand(operation: u64, parameter: Option<&str>) -> Tensor {
    let origin = Some(Origin { operation, output: 0 });
    Tensor { origin, shape: vec![64, 10], dtype: "f32".into(), parameter: parameter.map(str::to_owned) }
}

/// An operation of thread 0 with one result of [64, 10].
pub fn operation(number: u64, place: Place, name: &str, inputs: Vec<Tensor>, value: u64) -> Operation {
    let kernels = if name == "upload" { vec![] } else { vec![format!("burn_deterministic_kernels::{name}")] };
    let output = Output { shape: vec![64, 10], dtype: "f32".into(), digest: Some(digest(value)), parameter: None };
    Operation {
        thread: 0,
        number,
        place,
        name: name.into(),
        is_custom: false,
        parameters: String::new(),
        inputs,
        outputs: vec![output],
        operands_after: Vec::new(),
        kernels,
        plans: Vec::new(),
        draws: Vec::new(),
        error: None,
    }
}

/// A step of epoch 0.
pub fn of(step: u64) -> Step {
    Step { epoch: Some(0), number: Some(step) }
}

/// What a program that issued these numbers of operations writes last.
pub fn end(operations: Vec<u64>) -> Record {
    let environment = Environment::from_iter([("devices", "Wgpu(Cpu)"), ("seed", "1")]);
    Record::End { operations, environment }
}

/// Operations of a step of [`training`].
pub const STEP: u64 = 8;

/// Operations before the first step of [`training`].
pub const SETUP: u64 = 2;

/// A training of `steps` steps. Operations 0 and 1 upload the parameters `fc1.weight` and `fc2.weight`. Of each step,
/// operation 0 uploads a batch, 1 draws a mask, 2 to 3 are forward, 4 to 5 backward, 6 to 7 update the parameters.
pub fn training(steps: u64, level: Level) -> Synthetic {
    let mut records = vec![Record::Thread(Thread { number: 0 })];
    let mut operations = Vec::new();
    let names = ["fc1.weight", "fc2.weight"];
    for (number, name) in (0..).zip(names) {
        let mut upload = operation(number, place(None, Phase::Forward, ""), "upload", vec![], number);
        upload.outputs[0].parameter = Some(name.into());
        operations.push(upload);
    }
    let mut weights = [0, 1];
    for step in 0..steps {
        let first = SETUP + step * STEP;
        let forward = |label| place(Some(step), Phase::Forward, label);
        let [backward, update] = [Phase::Backward, Phase::Update].map(|phase| place(Some(step), phase, ""));
        let value = |index: u64| 100 + first + index;
        operations.push(operation(first, forward(""), "upload", vec![], value(0)));
        let mut mask = operation(first + 1, forward("dropout"), "float_random", vec![], value(1));
        mask.draws.push(Draw { key: 812, stream: first });
        operations.push(mask);
        let [fc1, fc2] = [operand(weights[0], Some(names[0])), operand(weights[1], Some(names[1]))];
        let product = vec![operand(first, None), fc1.clone()];
        operations.push(operation(first + 2, forward("model/fc1"), "float_matmul", product, value(2)));
        let masked = vec![operand(first + 2, None), operand(first + 1, None), fc2.clone()];
        operations.push(operation(first + 3, forward("model/fc2"), "float_matmul", masked, value(3)));
        let gradient = vec![operand(first + 3, None), operand(first + 2, None)];
        operations.push(operation(first + 4, backward.clone(), "float_matmul", gradient, value(4)));
        let gradient = vec![operand(first + 4, None), operand(first, None)];
        operations.push(operation(first + 5, backward, "float_scatter_add", gradient, value(5)));
        for (index, (weight, gradient)) in (6..).zip([(fc1, first + 5), (fc2, first + 4)]) {
            let parameter = weight.parameter.clone();
            let operands = vec![weight, operand(gradient, None)];
            let mut updated = operation(first + index, update.clone(), "float_sub", operands, value(index));
            updated.parameters = "scalar 0.01".into();
            updated.outputs[0].parameter = parameter;
            operations.push(updated);
        }
        weights = [first + 6, first + 7];
        records.extend(operations.drain(..).map(Record::Operation));
        let tensors = (0..).zip(names).map(|(index, name)| StateTensor {
            origin: Origin { operation: first + 6 + index, output: 0 },
            shape: vec![64, 10],
            dtype: "f32".into(),
            parameter: Some(name.into()),
            digest: Some(digest(value(6 + index))),
        });
        let state = State { thread: 0, operations: first + STEP, place: update, tensors: tensors.collect() };
        records.push(Record::State(state));
    }
    records.push(end(vec![SETUP + steps * STEP]));
    let mut all = Synthetic { header: header(level), records };
    all.records.retain(|record| match record {
        Record::Operation(operation) => match level {
            Level::Operations => true,
            Level::OperationsOf { first, last } => {
                operation.place.step.is_some_and(|step| first <= step && step <= last)
            }
            _ => false,
        },
        _ => true,
    });
    all
}

/// A training on data of its own, from operation `from` on.
pub fn shard(steps: u64, from: u64, seed: u64) -> Synthetic {
    let mut shard = training(steps, Level::Operations);
    shard.corrupt(from);
    for record in &mut shard.records {
        let digests: Vec<&mut Option<Digest>> = match record {
            Record::Operation(o) if o.number >= from => o.outputs.iter_mut().map(|output| &mut output.digest).collect(),
            Record::State(state) => state.tensors.iter_mut().map(|tensor| &mut tensor.digest).collect(),
            _ => continue,
        };
        digests.into_iter().flatten().for_each(|digest| digest.0[3] = seed as u32);
    }
    shard
}

/// A program whose threads, by number, do what these do with their thread 0. Their records take turns as `turn` says:
/// whose, and how many.
pub fn together(threads: &[Synthetic], mut turn: impl FnMut() -> (usize, usize)) -> Synthetic {
    let mut all = Synthetic { header: threads[0].header.clone(), records: Vec::new() };
    let mut counts = Vec::new();
    let mut sources = Vec::new();
    for (number, thread) in (0..).zip(threads) {
        let mut records = Vec::new();
        for mut record in thread.records.iter().cloned() {
            match &mut record {
                Record::Thread(thread) => thread.number = number,
                Record::Operation(operation) => operation.thread = number,
                Record::State(state) => state.thread = number,
                Record::End { operations, .. } => counts.extend_from_slice(operations),
                _ => {}
            }
            if !matches!(record, Record::End { .. }) {
                records.push(record);
            }
        }
        sources.push(records.into_iter().peekable());
    }
    while sources.iter_mut().any(|source| source.peek().is_some()) {
        let (thread, count) = turn();
        all.records.extend(sources[thread % threads.len()].by_ref().take(count));
    }
    all.records.push(end(counts));
    all
}

/// [`together`], one after another.
pub fn in_turn(threads: &[Synthetic]) -> Synthetic {
    let mut next = 0;
    together(threads, || {
        next += 1;
        (next - 1, usize::MAX)
    })
}

impl Synthetic {
    /// Changes the operation `number` of thread 0.
    pub fn change(&mut self, number: u64, change: impl FnOnce(&mut Operation)) {
        let found = self.records.iter_mut().find_map(|record| match record {
            Record::Operation(operation) if operation.thread == 0 && operation.number == number => Some(operation),
            _ => None,
        });
        change(found.expect("the operation is recorded"));
    }

    /// The places of all operations and states.
    pub fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.records.iter_mut().filter_map(|record| match record {
            Record::Operation(Operation { place, .. }) | Record::State(State { place, .. }) => Some(place),
            _ => None,
        })
    }

    /// Numbers the steps, and the batches, from `first` on instead of 0.
    pub fn count_from(&mut self, first: u64) {
        for place in self.places() {
            place.step = place.step.map(|step| step + first);
            place.batch = place.batch.map(|batch| batch + first);
        }
    }

    /// The number of the first step.
    pub fn first_step(&self) -> u64 {
        let mut places = self.clone();
        places.places().find_map(|place| place.step).expect("a step")
    }

    /// Gives a result of thread 0 another value, and all that is computed from it.
    pub fn corrupt(&mut self, number: u64) {
        let mut changed = vec![Origin { operation: number, output: 0 }];
        for record in &mut self.records {
            match record {
                Record::Operation(operation) => {
                    let of = |output| Origin { operation: operation.number, output };
                    let read = operation.inputs.iter().any(|input| input.origin.is_some_and(|o| changed.contains(&o)));
                    if read || changed.contains(&of(0)) {
                        for output in &mut operation.outputs {
                            output.digest = output.digest.map(|Digest([a, b, c, d])| Digest([!a, b, c, d]));
                        }
                        changed.push(of(0));
                    }
                }
                Record::State(state) => {
                    for tensor in state.tensors.iter_mut().filter(|tensor| changed.contains(&tensor.origin)) {
                        tensor.digest = tensor.digest.map(|Digest([a, b, c, d])| Digest([!a, b, c, d]));
                    }
                }
                _ => {}
            }
        }
    }

    /// Leaves the operations out, as `Level::Weights` does.
    pub fn weights_only(mut self) -> Self {
        self.records.retain(|record| !matches!(record, Record::Operation(_)));
        self.header.level = Level::Weights;
        self
    }

    /// Writes the file, with a flush after each state.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        let mut writer = Writer::create(&path).expect("a file");
        writer.write(&Record::Header(self.header.clone())).expect("a header");
        for record in &self.records {
            writer.write(record).expect("a record");
            if let Record::State(_) = record {
                writer.flush().expect("a flush");
            }
        }
        writer.finish().expect("an end");
        path
    }
}

/// Compares two recordings, and checks that the report can be made.
pub fn compared(first: &Synthetic, second: &Synthetic) -> Comparison {
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [first.write(folder.path(), "a"), second.write(folder.path(), "b")];
    let comparison = compare(&paths[0], &paths[1]).expect("a comparison");
    let text = comparison.to_string();
    assert!(text.starts_with("first   "), "{text}");
    comparison
}

/// The cause, and the number of the operation.
pub fn cause(comparison: &Comparison) -> (&Cause, Option<u64>) {
    let difference = comparison.difference().unwrap_or_else(|| panic!("a difference: {comparison}"));
    (&difference.cause, difference.operation.as_ref().map(|pair| pair.operations[0].number))
}
