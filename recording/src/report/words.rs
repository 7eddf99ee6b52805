//! What is said of a comparison, in text and page alike.

use crate::diff::{Cause, Comparison, Difference, Length, Operand, OperationPair, Outcome, Owner, Side};
use crate::reader::Ending;
use crate::record::{Draw, Level, Operation, Tensor};

/// Threads that are named at most.
const THREADS: usize = 4;

/// One line: what the comparison has found.
pub(super) fn verdict(comparison: &Comparison) -> String {
    let compared = comparison.compared;
    let all = format!("{} operations and {} states", grouped(compared.operations), grouped(compared.states));
    match &comparison.outcome {
        Outcome::Nothing if compared.lost > 0 => format!("NOTHING COMPARED: {}", lost(compared.lost)),
        Outcome::Nothing => "NOTHING COMPARED: the recordings have no state and no operation in common".to_owned(),
        Outcome::Same if compared.lost > 0 => {
            format!("SAME as far as is known: {all} agree, but {}", lost(compared.lost))
        }
        Outcome::Same => format!("SAME: {all} agree"),
        Outcome::SameSoFar => format!("SAME as far as both go: {all} agree, and {}", cut(comparison)),
        Outcome::Length(length) => format!("DIFFERENT LENGTH: {all} agree; {}", longer(length)),
        Outcome::Differ(difference) => format!("DIFFERENT: {}", title(difference)),
    }
}

/// Results of which it is not known whether they agree.
pub(super) fn lost(count: u64) -> String {
    match count {
        1 => "1 digest was lost: whether its tensor agrees is not known".to_owned(),
        count => format!("{} digests were lost: whether their tensors agree is not known", grouped(count)),
    }
}

fn cut(comparison: &Comparison) -> String {
    let cut = comparison.sides.each_ref().map(|side| side.ending == Ending::Cut);
    match cut {
        [true, true] => "both recordings were cut before their programs ended".to_owned(),
        [first, _] => format!("the {} recording was cut before its program ended", ordinal(usize::from(!first))),
    }
}

fn longer(Length { thread, operations: [one, other], states }: &Length) -> String {
    if one == other {
        let [one, other] = states.map(grouped);
        return format!("thread {thread} ends {one} steps in the first program, {other} in the second");
    }
    let side = usize::from(one < other);
    let (short, long) = (*one.min(other), *one.max(other));
    format!(
        "thread {thread} ends after {} operations in the {} program, and has {} in the {}",
        grouped(short),
        ordinal(1 - side),
        grouped(long),
        ordinal(side)
    )
}

/// Threads that could not be compared.
pub(super) fn uncompared(threads: &[Length]) -> String {
    let shown = threads.iter().take(THREADS).map(|Length { thread, operations: [one, other], .. }| {
        format!("thread {thread} issued {} operations in the first, {} in the second", grouped(*one), grouped(*other))
    });
    let mut shown: Vec<String> = shown.collect();
    if threads.len() > THREADS {
        shown.push(format!("and {} more threads", threads.len() - THREADS));
    }
    format!("not compared, because nothing of them is recorded: {}", shown.join("; "))
}

/// The kind of difference, in a few words.
pub(super) fn title(difference: &Difference) -> String {
    let name = difference.operation.as_ref().map_or_else(String::new, |pair| format!("`{}`", pair.operations[0].name));
    match &difference.cause {
        Cause::Program(_) => "the programs differ".to_owned(),
        Cause::Parameters => format!("a parameter of {name} differs that is no tensor"),
        Cause::Data { reordered: true } => "the data come in another order".to_owned(),
        Cause::Data { reordered: false } => "the data differ".to_owned(),
        Cause::Received { reordered: true } => "tensors of another thread come in another order".to_owned(),
        Cause::Received { reordered: false } => "a tensor of another thread differs".to_owned(),
        Cause::Seed => "random numbers differ: another seed, or another number of draws before".to_owned(),
        Cause::Unseeded => "random numbers differ: no seed of them is recorded".to_owned(),
        Cause::Failure { side } => format!("{name} failed in the {} run alone", ordinal(*side)),
        Cause::KernelChoice => format!("{name} ran another kernel, which gives another result"),
        Cause::Kernel(_) => format!("{name} is not repeatable: the same operands gave another result"),
        Cause::Environment => format!("{name} gave another result in another environment"),
        Cause::Overwritten => "a tensor changed after its operation had computed it".to_owned(),
        Cause::NotRecorded => "the weights differ; which operation made them differ is not recorded".to_owned(),
    }
}

/// Why it is that kind.
pub(super) fn why(comparison: &Comparison, difference: &Difference) -> String {
    let pair = difference.operation.as_ref();
    let mut why = match &difference.cause {
        Cause::Program(what) => format!("Up to here the programs did the same. Then: {what}."),
        Cause::Parameters => {
            let [one, other] = pair.map(|pair| pair.operations.each_ref().map(parameters)).unwrap_or_default();
            format!("It is {one} in the first run, {other} in the second: a number that the host computed.")
        }
        Cause::Data { reordered } => {
            let parameter = pair.and_then(|pair| pair.operations[0].outputs.first()?.parameter.clone());
            let what = parameter.map_or_else(|| "data".to_owned(), |path| format!("values for the parameter {path}"));
            let all = if *reordered { " All uploads together are the same: their order is not." } else { "" };
            format!("The host uploaded other {what}; no device was at work.{all}")
        }
        Cause::Received { reordered } => {
            let all = if *reordered { " All that threads received is together the same: its order is not." } else { "" };
            format!(
                "What another thread uploaded or computed differs; whether it does on the host or on the device is not known \
                 from this thread.{all}"
            )
        }
        Cause::Seed => {
            let draws = |operation: &Operation| match operation.draws.first() {
                Some(Draw { key, stream }) => format!("key {key:016x}, stream {stream}"),
                None => "no seed".to_owned(),
            };
            let [one, other] = pair.map(|pair| pair.operations.each_ref().map(draws)).unwrap_or_default();
            format!("They were drawn from {one} in the first run, from {other} in the second.")
        }
        Cause::Unseeded => "The operation has no operands, and what its generator was seeded with is not recorded: Burn's own \
                            is not."
            .to_owned(),
        Cause::Failure { .. } => {
            let error = pair.and_then(|pair| pair.operations.iter().find_map(|operation| operation.error.clone()));
            format!("Its operands agree. {}", error.unwrap_or_default())
        }
        Cause::KernelChoice => {
            "The operands agree, the kernels do not: a kernel was chosen by measurement (autotune), or by the memory that \
             was free."
                .to_owned()
        }
        Cause::Kernel(owner) => format!(
            "Operands, parameters and kernels agree, and the result does not. {}",
            match owner {
                Owner::Library => "The kernel is of burn-deterministic and adds in a fixed order: the device, its driver or \
                                   its memory has erred, or the kernel is wrong.",
                Owner::Burn => "The kernel is Burn's: it adds in an order that varies (atomics), autotune ran it with other \
                                settings, or the device has erred.",
                Owner::Program => "It is a custom operation of the program, or a kernel of it is neither of \
                                   burn-deterministic nor Burn's: it adds in an order that varies, reads what other \
                                   threads write, or the device has erred.",
                Owner::Unknown => "No kernel of it is recorded: it may have run on the host.",
            }
        ),
        Cause::Environment => {
            let differences: Vec<String> = comparison.environment.iter().map(ToString::to_string).collect();
            let burn = comparison.sides.iter().any(|side| !side.header.deterministic);
            let may = if burn { " A kernel of Burn's may differ from run to run as well." } else { "" };
            let differences = differences.join("; ");
            format!("Operands and parameters agree, and the programs ran in other environments: {differences}.{may}")
        }
        Cause::Overwritten => {
            "All operations agree, and a tensor at the end of the step does not: something wrote to its memory that is no \
             operation, or the memory has erred."
                .to_owned()
        }
        Cause::NotRecorded => {
            let state = comparison.state.as_ref();
            let place = state.map_or_else(String::new, |state| state.place.to_string());
            let environment = match comparison.environment.is_empty() {
                true => "",
                false => " The environments differ, too: see below.",
            };
            format!("States agree up to the one after {place}.{environment}")
        }
    };
    let unknown = pair.map_or(0, |pair| pair.operands[0].iter().filter(|operand| operand.same.is_none()).count());
    let matters = matches!(difference.cause, Cause::Kernel(_) | Cause::KernelChoice | Cause::Environment);
    if unknown > 0 && matters {
        why.push_str(&format!(
            " But {unknown} of its operands are unknown, because they are older than the recording or their digests were \
             lost, and may differ: record from step 0 to know."
        ));
    }
    why
}

/// What to do about it.
pub(super) fn advice(comparison: &Comparison, difference: &Difference) -> String {
    let deterministic = comparison.sides.iter().all(|side| side.header.deterministic);
    let is_custom = difference.operation.as_ref().is_some_and(|pair| pair.operations[0].is_custom);
    match &difference.cause {
        Cause::Program(_) => "Compare the builds and arguments of the two. If these are the same, look for a branch on time, \
                              on the order of threads, on an unseeded number or on a value read from a tensor."
            .to_owned(),
        Cause::Parameters => "Look at how the program computes it: from time, an unseeded number, or a value read from a \
                              tensor?"
            .to_owned(),
        Cause::Data { .. } => "Look at how the program makes its data: an unseeded shuffle, the order of files in a folder, a \
                               hash map, time, workers that hand batches over as they finish. \
                               `burn_deterministic::data::DataLoaderBuilder` makes the same batches with any number of \
                               workers."
            .to_owned(),
        Cause::Received { .. } => "Look at the thread that made it. Where it is a worker of a loader, take batches in a fixed \
                                   order: `burn_deterministic::data::DataLoaderBuilder` does, with any number of workers; \
                                   Burn's loader does without workers."
            .to_owned(),
        Cause::Seed => "Give both runs one seed (`set_random_seed`), and look for an operation before this one that draws in \
                        one run alone."
            .to_owned(),
        Cause::Unseeded if deterministic => {
            "Call `burn_deterministic::set_random_seed(seed)` in the thread that draws, before it.".to_owned()
        }
        Cause::Unseeded => "Call `device.seed(seed)` before it; with several threads, or for numbers that do not depend on \
                            other draws, use `enable_op_determinism` and `set_random_seed(seed)`."
            .to_owned(),
        Cause::Failure { .. } => "See the error. A device without memory fails in one run and not in another.".to_owned(),
        Cause::KernelChoice if is_custom => {
            "Have the custom operation choose its kernels without measuring them; until then its `promise_deterministic` is \
             not true."
                .to_owned()
        }
        Cause::KernelChoice | Cause::Kernel(Owner::Burn) if !deterministic => {
            "Call `enable_op_determinism`: the operation then runs in a kernel whose order is fixed, and no kernel is chosen \
             by measurement."
                .to_owned()
        }
        Cause::KernelChoice | Cause::Kernel(Owner::Library | Owner::Burn) => {
            "Run the program with `Determinism::default().rerun(2)`, which compares every operation with itself; if it finds \
             this operation on another device too, report it to burn-deterministic."
                .to_owned()
        }
        Cause::Kernel(Owner::Unknown) => {
            "Look at what the program computes with this operation on the host, and report it to burn-deterministic if it is \
             Burn's."
                .to_owned()
        }
        Cause::Kernel(Owner::Program) => {
            "Have the custom operation add in a fixed order, without float atomics; until then its \
             `promise_deterministic` is not true."
                .to_owned()
        }
        Cause::Environment => "Run both on the same device, driver, build and settings: bits are guaranteed from run to run, \
                               not from one environment to another."
            .to_owned(),
        Cause::Overwritten => "Look for a kernel that writes out of bounds, and check the device's memory.".to_owned(),
        Cause::NotRecorded => {
            // What comes before the first step is recorded with step 0.
            let last = comparison.state.as_ref().map(|state| state.place.step.unwrap_or(0));
            let level = last.map_or_else(|| "operations".to_owned(), |last| format!("operations:0-{last}"));
            format!("Record the operations of two runs with `BURN_DETERMINISTIC_RECORD_LEVEL={level}`, and compare these.")
        }
    }
}

/// A side in a line.
pub(super) fn side(side: &Side) -> String {
    let level = match side.header.level {
        Level::Weights => "weights".to_owned(),
        Level::Operations => "all operations".to_owned(),
        Level::OperationsOf { first, last } => format!("operations of steps {first} to {last}"),
    };
    let ending = match side.ending {
        Ending::Complete => "complete".to_owned(),
        Ending::Cut if side.unverified == 0 => "cut before the program ended".to_owned(),
        Ending::Cut => {
            let count = grouped(side.unverified);
            format!("cut before the program ended, the last records ({count}) without their checksum")
        }
    };
    let steps = side.last_step.map_or_else(|| "no step".to_owned(), |step| format!("up to step {step}"));
    let kernels = if side.header.deterministic { "deterministic kernels" } else { "Burn's own kernels" };
    format!(
        "{level}: {} operations, {} states, {steps}; {kernels}; {ending}",
        grouped(side.operations),
        grouped(side.states)
    )
}

/// Shape and dtype of an operand, and its parameter.
pub(super) fn tensor(tensor: &Tensor) -> String {
    let shape = format!("{:?} {}", tensor.shape, tensor.dtype);
    match &tensor.parameter {
        Some(path) => format!("{shape}, parameter {path}"),
        None => shape,
    }
}

/// Where an operand came from.
pub(super) fn origin(operand: &Operand) -> String {
    let Some(origin) = operand.tensor.origin else { return "older than the recording".to_owned() };
    let name = match &operand.producer {
        Some(producer) => format!(" {}", producer.0.name),
        None => ", not recorded".to_owned(),
    };
    format!("from {}{name}", grouped(origin.operation))
}

/// Whether an operand is the same.
pub(super) fn same(operand: &Operand) -> &'static str {
    match operand.same {
        Some(true) => "equal",
        Some(false) => "DIFFERENT",
        None => "unknown",
    }
}

/// Parameters that are no tensors.
pub(super) fn parameters(operation: &Operation) -> String {
    if operation.parameters.is_empty() { "none".to_owned() } else { format!("`{}`", operation.parameters) }
}

/// The kernels of an operation.
pub(super) fn kernels(operation: &Operation) -> String {
    if operation.kernels.is_empty() { "none recorded".to_owned() } else { operation.kernels.join(", ") }
}

/// The number of an operation, and its thread.
pub(super) fn number(operation: &Operation) -> String {
    format!("{} of thread {}", grouped(operation.number), operation.thread)
}

/// Whether both sides have to be shown, because the operations are others.
pub(super) fn is_other(pair: &OperationPair) -> bool {
    let [one, other] = &pair.operations;
    (&one.name, &one.inputs) != (&other.name, &other.inputs)
}

/// `first` or `second`.
pub(super) fn ordinal(side: usize) -> &'static str {
    ["first", "second"][side]
}

/// With a comma after each group of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The first digits of a digest, and the last.
pub(super) fn short(digest: impl ToString) -> String {
    let digest = digest.to_string();
    format!("{}..{}", &digest[..8], &digest[digest.len() - 4..])
}

/// A step, or where there is none.
pub(super) fn step(step: Option<u64>) -> String {
    step.map_or_else(|| "no step".to_owned(), |step| format!("step {}", grouped(step)))
}
