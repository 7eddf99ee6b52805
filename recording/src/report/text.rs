//! A comparison as text.

use super::words;
use crate::diff::{Affected, Comparison, OperationPair, Outcome, StateDifference, Step, StepSpread};
use core::fmt::{self, Formatter};

/// Steps of which the spread is shown.
const STEPS: usize = 8;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, side) in ["first", "second"].into_iter().zip(&self.sides) {
            writeln!(f, "{name:<8}{}", side.path.display())?;
            writeln!(f, "        {}", words::side(side))?;
        }
        let command = self.sides.each_ref().map(|side| side.header.command.join(" "));
        if command[0] != command[1] {
            writeln!(f, "commands differ: `{}` against `{}`", command[0], command[1])?;
        }
        for (first, second) in &self.threads {
            writeln!(f, "thread {second} of the second is thread {first} of the first, by what it does")?;
        }
        if let Some(resumed) = &self.resumed {
            writeln!(f, "{}", words::resumed(resumed))?;
        }
        writeln!(f, "\n{}", words::verdict(self))?;
        if let Outcome::Differ(difference) = &self.outcome {
            writeln!(f)?;
            if let Some(pair) = &difference.operation {
                operation(f, pair)?;
            }
            line(f, "why", &words::why(self, difference))?;
            line(f, "do", &words::advice(self, difference))?;
        }
        self.spread(f)?;
        if let Some(state) = &self.state {
            write_state(f, state)?;
        }
        if !self.uncompared.is_empty() {
            writeln!(f, "\n{}", words::uncompared(&self.uncompared))?;
        }
        if self.compared.lost > 0 && !matches!(self.outcome, Outcome::Same | Outcome::Nothing) {
            writeln!(f, "\n{}", words::lost(self.compared.lost))?;
        }
        if self.compared.other_kernels > 0 {
            let count = words::grouped(self.compared.other_kernels);
            writeln!(f, "\n{count} operations ran other kernels with the same results")?;
        }
        if self.environment.is_empty() {
            let count = self.sides[0].environment.iter().count();
            return writeln!(f, "\nenvironment: the same in all {count} entries");
        }
        writeln!(f, "\nenvironment")?;
        self.environment.iter().try_for_each(|difference| writeln!(f, "  {difference}"))
    }
}

fn line(f: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    // Continuation lines are aligned with the first.
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in value.split(' ') {
        if !current.is_empty() && current.len() + word.len() >= 100 {
            lines.push(std::mem::take(&mut current));
        }
        current = if current.is_empty() { word.to_owned() } else { format!("{current} {word}") };
    }
    lines.push(current);
    for (index, text) in lines.iter().enumerate() {
        writeln!(f, "  {:<12}{text}", if index == 0 { name } else { "" })?;
    }
    Ok(())
}

fn operation(f: &mut Formatter<'_>, pair: &OperationPair) -> fmt::Result {
    let [one, other] = &pair.operations;
    let is_other = words::is_other(pair);
    line(f, "operation", &format!("{} `{}`", words::number(one), one.name))?;
    if (one.number, &one.name) != (other.number, &other.name) {
        line(f, "", &format!("{} `{}` in the second", words::number(other), other.name))?;
    }
    line(f, "place", &one.place.to_string())?;
    for (index, (a, b)) in one.outputs.iter().zip(&other.outputs).enumerate() {
        let digest = |digest: Option<crate::Digest>| digest.map_or_else(|| "unknown".to_owned(), |d| d.to_string());
        let name = a.parameter.as_ref().map_or_else(String::new, |path| format!(", parameter {path}"));
        let differs = match (pair.outputs.contains(&index), a.digest.is_some() && b.digest.is_some()) {
            (true, _) => "DIFFERENT",
            (false, true) => "equal",
            (false, false) => "unknown",
        };
        line(f, &format!("result {index}"), &format!("{:?} {}{name}: {differs}", a.shape, a.dtype))?;
        if pair.outputs.contains(&index) {
            line(f, "", &format!("first   {}", digest(a.digest)))?;
            line(f, "", &format!("second  {}", digest(b.digest)))?;
        }
    }
    for side in 0..if is_other { 2 } else { 1 } {
        for (index, operand) in pair.operands[side].iter().enumerate() {
            let digest = operand.digest.map_or_else(String::new, |digest| format!(" {}", words::short(digest)));
            let which = if is_other { format!(" in the {}", words::ordinal(side)) } else { String::new() };
            let [tensor, origin] = [words::tensor(&operand.tensor), words::origin(operand)];
            let after = if pair.overwritten.contains(&index) { ", DIFFERENT after the operation" } else { "" };
            let text = format!("{tensor}: {}{after}{digest}, {origin}{which}", words::same(operand));
            line(f, &format!("operand {index}"), &text)?;
        }
    }
    let mut both = |name: &str, of: fn(&crate::Operation) -> String, show: bool| -> fmt::Result {
        let [first, second] = [of(one), of(other)];
        match (first == second, show) {
            (true, false) => Ok(()),
            (true, true) => line(f, name, &first),
            (false, _) => {
                line(f, name, &format!("{first} in the first"))?;
                line(f, "", &format!("{second} in the second"))
            }
        }
    };
    both("parameters", words::parameters, !one.parameters.is_empty())?;
    both("kernels", words::kernels, true)?;
    both("plans", words::plans, !one.plans.is_empty())
}

impl Comparison {
    fn spread(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let spread = &self.spread;
        let differing = |step: &StepSpread| step.differing > 0 || step.tensors_differing > 0;
        let steps: Vec<_> = spread.steps.iter().filter(|(_, counts)| differing(counts)).collect();
        let [first, second] = spread.only;
        if steps.is_empty() && first + second == 0 {
            return Ok(());
        }
        writeln!(f, "\nhow it spreads")?;
        for (index, (step, counts)) in steps.iter().take(STEPS).enumerate() {
            let mut parts = Vec::new();
            for (differing, all, what) in [
                (counts.differing, counts.compared, "operations"),
                (counts.tensors_differing, counts.tensors, "tensors of its state"),
            ] {
                if all > 0 {
                    parts.push(format!("{} of {} {what} differ", words::grouped(differing), words::grouped(all)));
                }
            }
            line(f, if index == 0 { "steps" } else { "" }, &format!("{step}: {}", parts.join(", ")))?;
        }
        if steps.len() > STEPS {
            let last = steps.last().map_or_else(Step::default, |(step, _)| **step);
            line(f, "", &format!("and later steps, {} in all, up to {last}", steps.len()))?;
        }
        affected(f, "then", &spread.first)?;
        affected(f, "also", &spread.others)?;
        if spread.others_count > spread.others.len() as u64 {
            let more = spread.others_count - spread.others.len() as u64;
            line(f, "", &format!("and {} more whose operands agree", words::grouped(more)))?;
        }
        let parameters: Vec<_> = spread.parameters.iter().filter_map(|(path, since)| Some((path, (*since)?))).collect();
        if !parameters.is_empty() {
            let all = spread.parameters.len();
            line(f, "parameters", &format!("{} of {all} differ", parameters.len()))?;
            for (path, since) in parameters.iter().take(STEPS) {
                line(f, "", &format!("{path}, from {since} on"))?;
            }
            if parameters.len() > STEPS {
                line(f, "", &format!("and {} more", parameters.len() - STEPS))?;
            }
        }
        if first + second > 0 {
            let [first, second] = spread.only.map(words::grouped);
            line(f, "unpaired", &format!("{first} operations of the first alone, {second} of the second"))?;
        }
        Ok(())
    }
}

fn affected(f: &mut Formatter<'_>, name: &str, operations: &[Affected]) -> fmt::Result {
    for (index, operation) in operations.iter().enumerate() {
        let Affected { number, name: what, place, result, .. } = operation;
        let parameter = operation.parameter.as_ref().map_or_else(String::new, |path| format!(", parameter {path}"));
        let text = format!("{} `{what}` {result}{parameter} ({place})", words::grouped(*number));
        writeln!(f, "  {:<12}{text}", if index == 0 { name } else { "" })?;
    }
    Ok(())
}

fn write_state(f: &mut Formatter<'_>, state: &StateDifference) -> fmt::Result {
    let StateDifference { thread, place, operations: [one, other], tensors, differing, names, .. } = state;
    writeln!(f, "\nfirst state that differs")?;
    line(f, "after", &format!("{place}, of thread {thread}"))?;
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    line(f, "tensors", &format!("{differing} of {tensors} differ{names}"))?;
    if one != other {
        let [one, other] = [*one, *other].map(words::grouped);
        line(f, "operations", &format!("{one} in the first, {other} in the second"))?;
    }
    Ok(())
}
