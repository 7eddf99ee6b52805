//! What is said of a comparison, in text and page alike.

use crate::diff::{
    Affected, Cause, Comparison, Difference, Length, Operand, OperationPair, Outcome, Owner, Resumed, Side, Step,
};
use crate::reader::Ending;
use crate::record::{Draw, Level, Operation, Tensor};

/// Threads that are named at most.
const THREADS: usize = 4;

/// One line: what the comparison has found.
pub(super) fn verdict(comparison: &Comparison) -> String {
    let compared = comparison.compared;
    let all = format!("{} operations and {} states", grouped(compared.operations), grouped(compared.states));
    match &comparison.outcome {
        Outcome::Nothing if comparison.resumed.is_some_and(|resumed| !resumed.is_reached) => {
            "NOTHING COMPARED: one run was resumed at a step that the other did not reach".to_owned()
        }
        Outcome::Nothing if compared.lost > 0 => format!("NOTHING COMPARED: {}", lost(compared.lost)),
        Outcome::Nothing => "NOTHING COMPARED: the recordings have no state and no operation in common".to_owned(),
        Outcome::Same if compared.lost > 0 => {
            format!("SAME as far as is known: {all} agree, but {}", lost(compared.lost))
        }
        Outcome::Same => format!("SAME: {all} agree"),
        Outcome::SameSoFar => format!("SAME as far as both go: {all} agree, and {}", cut(comparison)),
        Outcome::Length(length) => format!("DIFFERENT LENGTH: {all} agree; {}", longer(length)),
        Outcome::Differ(difference) => format!("DIFFERENT: {}", title(comparison, difference)),
    }
}

/// That one run was resumed, and what that means for the comparison.
pub(super) fn resumed(resumed: &Resumed) -> String {
    let Resumed { side, tensors, unmatched, .. } = *resumed;
    let [own, other] = [ordinal(side), ordinal(1 - side)];
    let before = format!("the {own} run was resumed before {}", resumed_at(resumed));
    if !resumed.is_reached {
        let last = resumed.after.map_or_else(|| "no step".to_owned(), |last| format!("step {}", grouped(last)));
        return format!("{before}, and the recording of the {other} ends after {last}: record that run for longer");
    }
    let all = tensors + unmatched;
    let numbers = format!("steps and operations are numbered as in the {other}");
    let mut text = match resumed.after {
        Some(after) if all > 0 => format!(
            "{before}: {} of {} tensors that it resumed with are compared with those that the {other} had after step {}, and \
             {numbers}",
            grouped(tensors),
            grouped(all),
            grouped(after)
        ),
        _ => format!("{before}, with values that are not recorded, and {numbers}"),
    };
    if unmatched > 0 {
        text.push_str(&format!("; the rest has no name that the {other} knows"));
    }
    if resumed.other_threads {
        text.push_str("; threads without steps are not compared");
    }
    text
}

/// The step before which a run was resumed.
fn resumed_at(resumed: &Resumed) -> String {
    let mut text = format!("step {}", grouped(resumed.step));
    let parts = [("epoch", resumed.epoch), ("batch", resumed.batch)];
    for (name, number) in parts.into_iter().filter_map(|(name, number)| Some((name, number?))) {
        text.push_str(&format!(", {name} {}", grouped(number)));
    }
    text
}

/// Where one run was resumed and the other was not, if the difference is in the first step after that.
fn first_step_resumed<'a>(comparison: &'a Comparison, difference: &Difference) -> Option<&'a Resumed> {
    let operation = difference.operation.as_ref().map(|pair| &pair.operations[0].place);
    let place = operation.or(comparison.state.as_ref().map(|state| &state.place))?;
    comparison.resumed.as_ref().filter(|resumed| (place.epoch, place.step) == (resumed.epoch, Some(resumed.step)))
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

fn longer(Length { thread, operations: [one, other], states, next }: &Length) -> String {
    if one == other {
        let [one, other] = states.map(grouped);
        return format!("thread {thread} ends {one} steps in the first program, {other} in the second");
    }
    let side = usize::from(one < other);
    let (short, long) = (*one.min(other), *one.max(other));
    let next = next.as_ref().map_or_else(String::new, |next| format!(", from {} on", listed_operation(next)));
    format!(
        "thread {thread} ends after {} operations in the {} program, and has {} in the {}{next}",
        grouped(short),
        ordinal(1 - side),
        grouped(long),
        ordinal(side)
    )
}

/// ``12 `float_sum` (step 3, epoch 0, forward)``.
fn listed_operation(Affected { number, name, place, .. }: &Affected) -> String {
    format!("{} `{name}` ({place})", grouped(*number))
}

/// Whether the operation wrote into an operand.
fn overwrites(difference: &Difference) -> bool {
    difference.operation.as_ref().is_some_and(|pair| !pair.overwritten.is_empty())
}

/// Custom operations, one after another.
fn custom(suspects: &[Affected]) -> String {
    let listed: Vec<String> = suspects.iter().map(listed_operation).collect();
    let plural = if listed.len() == 1 { "" } else { "s" };
    format!("the custom operation{plural} {}", listed.join(", "))
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
fn title(comparison: &Comparison, difference: &Difference) -> String {
    let name = difference.operation.as_ref().map_or_else(String::new, |pair| format!("`{}`", pair.operations[0].name));
    match &difference.cause {
        Cause::Program(_) => match &difference.operation {
            Some(pair) => format!("the programs differ from operation {} on", number(&pair.operations[0])),
            None => "the programs differ".to_owned(),
        },
        Cause::Parameters => format!("a parameter of {name} differs that is no tensor"),
        Cause::Data { reordered: true } => "the data come in another order".to_owned(),
        Cause::Data { reordered: false } => "the data differ".to_owned(),
        Cause::Received { reordered: true } => "tensors of another thread come in another order".to_owned(),
        Cause::Received { reordered: false } => "a tensor of another thread differs".to_owned(),
        Cause::Seed => "random numbers differ: another seed, or another number of draws before".to_owned(),
        Cause::Unseeded => "random numbers differ: no seed of them is recorded".to_owned(),
        Cause::Failure { side } => format!("{name} failed in the {} run alone", ordinal(*side)),
        Cause::KernelChoice => format!("{name} ran another kernel, which gives another result"),
        // Of a kernel's settings, which autotune chooses too, nothing is recorded.
        Cause::Kernel(Owner::Burn) => {
            format!("{name} is not repeatable, or autotune chose other settings: the same operands gave another result")
        }
        Cause::Kernel(Owner::Library | Owner::Unknown) if !difference.suspects.is_empty() => {
            let custom = custom(&difference.suspects);
            format!("{name} is not repeatable, or {custom} has written into its operands")
        }
        Cause::Kernel(_) if overwrites(difference) => {
            format!("{name} wrote into an operand, which holds other values after it")
        }
        Cause::Kernel(_) => format!("{name} is not repeatable: the same operands gave another result"),
        Cause::Environment => format!("{name} gave another result in another environment"),
        Cause::Overwritten => "a tensor changed after its operation had computed it".to_owned(),
        Cause::Resumed { .. } => match &comparison.resumed {
            Some(resumed) => {
                format!(
                    "the runs part where the {} was resumed, before step {}",
                    ordinal(resumed.side),
                    grouped(resumed.step)
                )
            }
            None => "the runs part where one was resumed".to_owned(),
        },
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
            let what = match (parameter, &difference.replaced) {
                (Some(path), _) => format!("values for the parameter {path}"),
                (None, Some(path)) => format!("values, it seems for the parameter {path}, which no later state has"),
                (None, None) => "data".to_owned(),
            };
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
        Cause::Kernel(_) if overwrites(difference) => {
            "The operands agree before the operation, and not after it: a kernel wrote where it should only read. What reads \
             them later gives other results."
                .to_owned()
        }
        Cause::Kernel(owner) => format!(
            "Operands, {}kernels agree, and the result does not. {}",
            if pair.is_some_and(|pair| pair.operations[0].is_custom) {
                "which are all that is recorded of a custom operation's arguments, and "
            } else {
                "parameters and "
            },
            match owner {
                Owner::Library => "The kernel is of burn-deterministic and adds in a fixed order: the device, its driver or \
                                   its memory has erred, or the kernel is wrong.",
                Owner::Burn => "The kernel is Burn's: it adds in an order that varies (atomics), autotune ran it with other \
                                settings, or the device has erred.",
                Owner::Program => "It is a custom operation of the program, or a kernel of it is neither of \
                                   burn-deterministic nor Burn's: the program gives it other numbers besides the tensors, \
                                   it adds in an order that varies, reads what other threads write, or the device has erred.",
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
        Cause::Resumed { named: true } => {
            let [own, other] = comparison.resumed.map_or([1, 0], |resumed| [resumed.side, 1 - resumed.side]).map(ordinal);
            let state = comparison.state.as_ref();
            let after = state.map_or_else(String::new, |state| format!(" after {}", Step::of(&state.place)));
            let names = state.map_or_else(String::new, |state| listed(&state.names, state.differing));
            format!("What the {own} run resumed with is not what the {other} had{after}: {names}.")
        }
        Cause::Resumed { named: false } => {
            let side = comparison.resumed.map_or(1, |resumed| resumed.side);
            let unknown = pair.map(unknown).unwrap_or_default();
            format!(
                "Parameters, kernels and all operands agree but for {unknown}: a tensor that the {} run resumed with, without a \
                 name that both runs know, as the state of an optimizer.",
                ordinal(side)
            )
        }
    };
    let unknown = pair.map_or(0, |pair| pair.operands[0].iter().filter(|operand| operand.same.is_none()).count());
    let older = match comparison.resumed {
        Some(_) => "tensors of before the one run was resumed, without a name,",
        None => "older than the recording",
    };
    let matters = matches!(difference.cause, Cause::Kernel(_) | Cause::KernelChoice | Cause::Environment);
    if !difference.suspects.is_empty() {
        why.push_str(&format!(
            " Between the operation that made the tensor and its use ran {}: what a custom operation writes into tensors \
             that are neither its operands nor its results is not recorded.",
            custom(&difference.suspects)
        ));
    }
    if unknown > 0 && matters {
        why.push_str(&format!(
            " But {unknown} of its operands are unknown, because they are {older} or their digests were lost, and may \
             differ: record from step 0 to know."
        ));
    }
    why
}

/// The operands that are not known to agree.
fn unknown(pair: &OperationPair) -> String {
    let unknown = (0..).zip(&pair.operands[0]).filter(|(_, operand)| operand.same.is_none());
    let unknown: Vec<String> = unknown.map(|(index, _): (usize, _)| format!("operand {index}")).collect();
    unknown.join(", ")
}

/// Names, and how many more there are.
fn listed(names: &[String], count: u64) -> String {
    let more = count.saturating_sub(names.len() as u64);
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {} more", grouped(more)) }
}

/// What to do about it.
pub(super) fn advice(comparison: &Comparison, difference: &Difference) -> String {
    let advice = advice_by_cause(comparison, difference);
    let resumed = match difference.cause {
        Cause::Program(_) | Cause::Parameters | Cause::Data { .. } | Cause::Seed | Cause::NotRecorded => {
            first_step_resumed(comparison, difference)
        }
        _ => None,
    };
    let Some(resumed) = resumed else { return advice };
    format!(
        "{advice} It is the first step after the {} run was resumed: see that the checkpoint restores the optimizer, the learning \
         rate schedule, the position in the data and the random state too, and that both runs take checkpoints at the same \
         steps, because taking one applies the pending update of running statistics.",
        ordinal(resumed.side)
    )
}

fn advice_by_cause(comparison: &Comparison, difference: &Difference) -> String {
    let deterministic = comparison.sides.iter().all(|side| side.header.deterministic);
    let is_custom = difference.operation.as_ref().is_some_and(|pair| pair.operations[0].is_custom);
    match &difference.cause {
        Cause::Program(_) => "Compare the builds and arguments of the two. If these are the same, look for a branch on time, \
                              on the order of threads or of a hash map, on an unseeded number or on a value read from a \
                              tensor."
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
        Cause::Overwritten | Cause::Kernel(Owner::Library | Owner::Unknown) if !difference.suspects.is_empty() => {
            "See that the kernels of the custom operation write into its results alone, and within their bounds. If the program \
             differs from run to run without it, run that with `Determinism::default().rerun(2)`, which compares every operation \
             with itself, and report it to burn-deterministic."
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
        Cause::Kernel(_) if overwrites(difference) => {
            "Have the kernels of the custom operation write into its results alone, or name what they write as a result.".to_owned()
        }
        Cause::Kernel(Owner::Program) => {
            "Compare the numbers that the program gives it: time, a count, an unseeded number? If they agree, have the \
             custom operation add in a fixed order, without float atomics; until then its `promise_deterministic` is not \
             true."
                .to_owned()
        }
        Cause::Environment => "Run both on the same device, driver, build and settings: bits are guaranteed from run to run, \
                               not from one environment to another."
            .to_owned(),
        Cause::Resumed { .. } => "Save the records of the whole module and of the optimizer after the same step, as \
                                  `burn_deterministic::checkpoint::Checkpoint` does. Between that step and the checkpoint run \
                                  no forward pass in training mode, which changes running statistics: evaluate with \
                                  `model.valid()`."
            .to_owned(),
        Cause::Overwritten => "Look for a kernel that writes out of bounds, and check the device's memory.".to_owned(),
        Cause::NotRecorded => {
            let level = |&[first, last]: &[u64; 2]| format!("operations:{}-{last}", comparison.resumed.map_or(0, |_| first));
            let level = comparison.state.as_ref().map_or_else(|| "operations".to_owned(), |state| level(&state.steps));
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
    let Some(origin) = operand.tensor.origin else { return "older than what is compared".to_owned() };
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

/// The plans of the kernels.
pub(super) fn plans(operation: &Operation) -> String {
    if operation.plans.is_empty() { "none recorded".to_owned() } else { operation.plans.join(", ") }
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
