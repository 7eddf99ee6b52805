//! The first difference of two recordings.
//!
//! Operations are paired by thread and number. An operation whose operands agree and whose result does not is where runs part;
//! one with an operand that differs only passes that on. The digest of an operand is that of the result, or of the tensor of
//! a state, which its origin names. Files are read as streams: memory holds two bytes for each operation, eight
//! more for each result while the threads of both are matched, and what waits for its counterpart.

mod cause;
mod comparison;
mod contrast;
mod grid;
mod marks;
mod pass;
mod source;
mod threads;

pub use comparison::{
    Affected, Cause, Compared, Comparison, Difference, Length, Operand, OperationPair, Outcome, Owner, Side, Spread,
    StateDifference, StepSpread,
};
pub use grid::{Cell, Picture};

use crate::environment::{Environment, EnvironmentDifference};
use crate::error::Error;
use crate::record::{Operation, Origin, Tensor};
use cause::{Circumstances, cause};
use contrast::{Contrast, agree};
use pass::{Counts, First, Pass};
use source::{Found, Renamed, Source};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Compares two recordings.
///
/// It reads each file once. Where something differs it reads them again: for threads that have other numbers, and for the
/// operations that made the operands of the first difference.
///
/// # Errors
///
/// When a file is not a recording, or damaged. A file that was cut is compared as far as it goes.
pub fn compare(first: &Path, second: &Path) -> Result<Comparison, Error> {
    let paths = [first.to_owned(), second.to_owned()];
    let mut renamed = Renamed::new();
    let mut pass = Pass::run(&paths, &renamed)?;
    if !pass.is_clean() && pass.counts.iter().any(|counts| counts.threads > 1) {
        renamed = threads::matched(&paths)?;
        if !renamed.is_empty() {
            pass = Pass::run(&paths, &renamed)?;
        }
    }
    comparison(paths, &renamed, pass)
}

fn comparison(paths: [PathBuf; 2], renamed: &Renamed, mut pass: Pass) -> Result<Comparison, Error> {
    let environments = environments(&pass.sources);
    let environment = differences(&pass.sources, &environments);
    let circumstances = Circumstances {
        environment: !environment.is_empty(),
        same_uploads: pass.counts[0].uploads == pass.counts[1].uploads,
    };
    let outcome = match pass.first.take() {
        // A state that differs before says that something happened which is not recorded.
        Some(first) if !first.after_state => {
            let cause = cause(&first, &circumstances);
            let operation = Some(pair(&paths, renamed, first, &pass)?);
            Outcome::Differ(Box::new(Difference { cause, operation }))
        }
        first => match &pass.state {
            Some(state) => {
                let cause = match state.operations {
                    [one, other] if one != other => {
                        Cause::Program(format!("{one} operations in the first, {other} in the second"))
                    }
                    _ if pass.overwritten => Cause::Overwritten,
                    _ => Cause::NotRecorded,
                };
                let operation = first.map(|first| pair(&paths, renamed, first, &pass)).transpose()?;
                Outcome::Differ(Box::new(Difference { cause, operation }))
            }
            None => unchanged(&pass),
        },
    };
    let [one, other] = &pass.sources;
    let mut headers = [one.header.clone(), other.header.clone()].into_iter().zip(environments);
    let endings = [one.ending(), other.ending()];
    let unverified = [one.unverified(), other.unverified()];
    let counts = pass.counts;
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
    let [first, second] = paths;
    let sides = [side(first, 0), side(second, 1)];
    Ok(Comparison {
        sides,
        outcome,
        environment,
        threads: renamed.iter().map(|(&second, &first)| (first, second)).collect(),
        compared: pass.compared,
        state: pass.state,
        uncompared: pass.uncompared,
        spread: pass.spread,
        operations: pass.operations.picture(Vec::new()),
        parameters: pass.parameters.picture(pass.rows),
    })
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
        let (path, renamed) = (&paths[side], if side == 0 { &none } else { renamed });
        let Operation { thread, inputs, .. } = &first.operations[side];
        let parents = Source::find(path, renamed, *thread, &origins(inputs))?;
        let grandparents = parents.operations.values().flat_map(|operation| origins(&operation.inputs)).collect();
        let found = [parents, Source::find(path, renamed, *thread, &grandparents)?];
        let mut operands = operands(*thread, inputs, &found, pass);
        for (operand, same) in operands.iter_mut().zip(&first.operands) {
            operand.same = operand.same.or(*same);
        }
        Ok(operands)
    };
    let operands = [of(0)?, of(1)?];
    Ok(OperationPair { operations: first.operations, operands, outputs })
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
