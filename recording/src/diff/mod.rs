//! The first difference of two recordings.
//!
//! Operations are paired by thread and number. An operation whose operands agree and whose result does not is where runs part;
//! one with an operand that differs only passes that on. The digest of an operand is that of the result, or of the tensor of
//! a state, which its origin names. Files are read as streams: memory holds two bytes for each operation, eight
//! more for each result while the threads of both are matched, what waits for its counterpart, and, where one run was resumed, a
//! few states.

mod around;
mod cause;
mod comparison;
mod contrast;
mod grid;
mod marks;
mod meeting;
mod pass;
mod pictures;
mod resume;
mod source;
mod states;
mod step;
mod threads;

pub use comparison::{
    Affected, Cause, Compared, Comparison, Difference, Length, Operand, OperationPair, Outcome, Owner, Resumed, Side,
    Spread, StateDifference, StepSpread,
};
pub use grid::{Cell, Picture};
pub use step::Step;

use crate::environment::{Environment, EnvironmentDifference};
use crate::error::Error;
use crate::record::{Operation, Origin, Tensor};
use cause::{Circumstances, cause};
use contrast::{Contrast, agree, overwritten};
use pass::{First, Pass};
use resume::resume;
use source::{Counts, Found, Renamed, Source};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Compares two recordings.
///
/// It reads each file once, and its first two steps before that. Where something differs it reads them again: for threads that
/// have other numbers, and for the operations that made the operands of the first difference. Where one begins at a later step
/// than the other, it reads them to their ends first, to find out whether that run was resumed and [where they meet](Resumed).
///
/// # Errors
///
/// When a file is not a recording, or damaged. A file that was cut is compared as far as it goes.
pub fn compare(first: &Path, second: &Path) -> Result<Comparison, Error> {
    let paths = [first.to_owned(), second.to_owned()];
    if let Some((resume, renamed)) = resume(&paths)? {
        let pass = Pass::run(&paths, &renamed, Some(Rc::new(resume)))?;
        return comparison(paths, &renamed, pass);
    }
    let mut renamed = Renamed::new();
    let mut pass = Pass::run(&paths, &renamed, None)?;
    if !pass.is_clean() && pass.sources.iter().any(|source| source.counts.threads > 1) {
        renamed = threads::matched(&paths)?;
        if !renamed.is_empty() {
            pass = Pass::run(&paths, &renamed, None)?;
        }
    }
    comparison(paths, &renamed, pass)
}

fn comparison(paths: [PathBuf; 2], renamed: &Renamed, mut pass: Pass) -> Result<Comparison, Error> {
    let first = pass.first.take();
    let environments = environments(&pass.sources);
    let environment = differences(&pass.sources, &environments);
    let circumstances = Circumstances {
        // Other seeds show where numbers are drawn.
        environment: environment.iter().any(|difference| difference.name != "seed"),
        same_uploads: pass.sources[0].counts.uploads == pass.sources[1].counts.uploads,
    };
    let outcome = match (first, &pass.state) {
        (Some(first), _) if !first.after_state => by_operation(&paths, renamed, first, &circumstances, &pass)?,
        // A state that differs before says that something happened which is not recorded.
        (first, Some(state)) => by_state(&paths, renamed, first, state, &pass)?,
        (_, None) => unchanged(&pass),
    };
    let [one, other] = &pass.sources;
    let mut headers = [one.header.clone(), other.header.clone()].into_iter().zip(environments);
    let endings = [one.ending(), other.ending()];
    let unverified = [one.unverified(), other.unverified()];
    let counts = pass.sources.each_ref().map(|source| source.counts);
    let resumed = pass.resume.as_ref().and_then(|resume| resume.summary(counts.map(|counts| counts.threads)));
    let mut side = |path: PathBuf, index: usize| {
        let Counts { operations, states, threads, last_step, .. } = counts[index];
        let (header, environment) = headers.next().expect("a header for each side");
        let ending = endings[index].expect("both files were read to their ends");
        Side {
            path,
            header,
            environment,
            ending,
            unverified: unverified[index],
            operations,
            states,
            threads,
            last_step,
        }
    };
    let [operations, parameters] = pass.pictures.finish();
    let [first, second] = paths;
    let sides = [side(first, 0), side(second, 1)];
    Ok(Comparison {
        sides,
        outcome,
        resumed,
        environment,
        threads: renamed.iter().map(|(&second, &first)| (first, second)).collect(),
        compared: pass.compared,
        state: pass.state,
        uncompared: pass.uncompared,
        spread: pass.spread,
        operations,
        parameters,
    })
}

/// The records of the first recording, as they are compared.
fn records(paths: &[PathBuf; 2], pass: &Pass) -> Result<Source, Error> {
    let resume = pass.resume.clone().filter(|resume| resume.side == 0).map(|resume| (resume, 0));
    Source::open(&paths[0], &Renamed::new(), resume)
}

/// What becomes of two recordings of which `first` is the first difference.
fn by_operation(
    paths: &[PathBuf; 2],
    renamed: &Renamed,
    first: First,
    circumstances: &Circumstances,
    pass: &Pass,
) -> Result<Outcome, Error> {
    let cause = cause(&first, circumstances);
    let one = &first.operations[0];
    let may_be_overwritten =
        matches!(cause, Cause::Kernel(_) | Cause::KernelChoice | Cause::Environment) && !one.is_custom;
    let made = one.inputs.iter().filter_map(|input| Some(input.origin?.operation)).min();
    let mut suspects = Vec::new();
    if let Some(made) = made.filter(|_| may_be_overwritten) {
        suspects = around::custom_operations(records(paths, pass)?, one.thread, made + 1..one.number)?;
    }
    let is_named = one.outputs.first().is_some_and(|output| output.parameter.is_some());
    let mut replaced = None;
    if matches!(cause, Cause::Data { .. }) && !is_named {
        replaced = around::replaced(records(paths, pass)?, one)?;
    }
    let operation = Some(pair(paths, renamed, first, pass)?);
    Ok(Outcome::Differ(Box::new(Difference { cause, operation, suspects, replaced })))
}

/// What becomes of two recordings of which `state` differs before any operation that is recorded, or without one.
fn by_state(
    paths: &[PathBuf; 2],
    renamed: &Renamed,
    first: Option<First>,
    state: &StateDifference,
    pass: &Pass,
) -> Result<Outcome, Error> {
    let mut suspects = Vec::new();
    let cause = match (state.operations, &state.other_place, pass.overwritten) {
        _ if pass.resumed_differs => Cause::Resumed { named: true },
        ([one, other], ..) if one != other => {
            Cause::Program(format!("{one} operations in the first, {other} in the second"))
        }
        (_, Some(other), _) => Cause::Program(format!("a step is {} in the first, {other} in the second", state.place)),
        ([end, _], None, Some(origin)) => {
            let since = origin.operation + 1..end;
            suspects = around::custom_operations(records(paths, pass)?, state.thread, since)?;
            Cause::Overwritten
        }
        _ => Cause::NotRecorded,
    };
    let operation = first.map(|first| pair(paths, renamed, first, pass)).transpose()?;
    Ok(Outcome::Differ(Box::new(Difference { cause, operation, suspects, replaced: None })))
}

/// What becomes of two recordings in which nothing differs.
fn unchanged(pass: &Pass) -> Outcome {
    if let Some(length) = &pass.length {
        return Outcome::Length(length.clone());
    }
    if pass.compared.digests == 0 {
        return Outcome::Nothing;
    }
    let complete = |source: &Source| source.ending() == Some(crate::Ending::Complete);
    if pass.sources.iter().all(complete) { Outcome::Same } else { Outcome::SameSoFar }
}

/// What is known of both environments: a file that was cut lacks what was known at the end.
fn environments(sources: &[Source; 2]) -> [Environment; 2] {
    let mut environments = sources.each_ref().map(|source| source.header.environment.clone());
    if let [Some(first), Some(second)] = sources.each_ref().map(|source| &source.end) {
        environments[0].extend(first);
        environments[1].extend(second);
    }
    environments
}

fn differences(sources: &[Source; 2], [first, second]: &[Environment; 2]) -> Vec<EnvironmentDifference> {
    let mut differences = first.differences(second);
    let kernels = sources.each_ref().map(|source| match source.header.deterministic {
        true => "deterministic",
        false => "Burn's own",
    });
    if kernels[0] != kernels[1] {
        let [first, second] = kernels.map(|kernels| Some(kernels.to_owned()));
        differences.push(EnvironmentDifference { name: "kernels".to_owned(), first, second });
    }
    differences
}

/// An operation with the operations that made its operands.
fn pair(paths: &[PathBuf; 2], renamed: &Renamed, first: First, pass: &Pass) -> Result<OperationPair, Error> {
    let outputs = match &first.contrast {
        Contrast::Results(outputs) => outputs.clone(),
        _ => {
            let [one, other] = &first.operations;
            let outputs = 0..one.outputs.len().min(other.outputs.len());
            outputs.filter(|&output| agree([one, other], output) == Some(false)).collect()
        }
    };
    let none = Renamed::new();
    let of = |side: usize| -> Result<Vec<Operand>, Error> {
        // The numbers of a resumed run have to be found as they are compared. Those of the other run are so from its beginning.
        let resume = pass.resume.clone().filter(|resume| resume.side == side).map(|resume| (resume, side));
        let open = || Source::open(&paths[side], if side == 0 { &none } else { renamed }, resume.clone());
        let Operation { thread, inputs, .. } = &first.operations[side];
        let parents = open()?.find(*thread, &origins(inputs))?;
        let grandparents = parents.operations.values().flat_map(|operation| origins(&operation.inputs)).collect();
        let found = [parents, open()?.find(*thread, &grandparents)?];
        let mut operands = operands(*thread, inputs, &found, pass);
        for (operand, same) in operands.iter_mut().zip(&first.operands) {
            // As it was before the operation.
            operand.same = same.or(operand.same);
        }
        Ok(operands)
    };
    let operands = [of(0)?, of(1)?];
    let overwritten = overwritten(first.operations.each_ref(), &first.operands);
    Ok(OperationPair { operations: first.operations, operands, outputs, overwritten })
}

fn origins(inputs: &[Tensor]) -> HashSet<Origin> {
    inputs.iter().filter_map(|input| input.origin).collect()
}

/// Operands, with as many levels above them as were found.
fn operands(thread: u32, inputs: &[Tensor], found: &[Found], pass: &Pass) -> Vec<Operand> {
    let Some((level, above)) = found.split_first() else { return Vec::new() };
    let operand = |tensor: &Tensor| {
        let digest = tensor.origin.and_then(|origin| level.digests.get(&origin)).copied();
        let made = tensor.origin.and_then(|origin| level.operations.get(&origin.operation));
        let producer = made.map(|made| Box::new((made.clone(), operands(thread, &made.inputs, above, pass))));
        let same = tensor.origin.and_then(|origin| pass.marks.same(thread, origin));
        Operand { tensor: tensor.clone(), same, digest, producer }
    };
    inputs.iter().map(operand).collect()
}
