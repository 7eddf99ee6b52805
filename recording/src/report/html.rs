//! A comparison as a page that needs no other file.

use super::escape::escaped;
use super::{graph, picture, words};
use crate::diff::{Affected, Comparison, OperationPair, Outcome};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Steps of which the spread is shown.
const STEPS: usize = 40;

/// A page in HTML: what was found, a picture of steps and operations, the operation with its operands, how the difference
/// spreads, and both environments. It has its style in it, no script, and names no other resource.
pub fn html(comparison: &Comparison) -> String {
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    let _ = write!(
        page,
        "<title>{}</title>\n<style>\n{}</style>\n",
        escaped(&words::verdict(comparison)),
        include_str!("page.css")
    );
    page.push_str("</head>\n<body>\n<main>\n<h1>burn-deterministic: two recordings compared</h1>\n");
    verdict(&mut page, comparison);
    pictures(&mut page, comparison);
    if let Some(pair) = comparison.difference().and_then(|difference| difference.operation.as_ref()) {
        operation(&mut page, pair);
    }
    spread(&mut page, comparison);
    environments(&mut page, comparison);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// Text in which `this` is code.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { code(part) } else { escaped(part) }).collect()
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}

fn row(page: &mut String, name: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    let _ = writeln!(page, "<tr><th>{}</th>{cells}</tr>", escaped(name));
}

fn verdict(page: &mut String, comparison: &Comparison) {
    let good = if comparison.same() == Some(true) { " good" } else { "" };
    let _ = writeln!(page, "<section class=\"verdict{good}\">\n<h2>{}</h2>", with_code(&words::verdict(comparison)));
    if let Some(resumed) = &comparison.resumed {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&words::resumed(resumed)));
    }
    if let Outcome::Differ(difference) = &comparison.outcome {
        if let Some(pair) = &difference.operation {
            let [one, _] = &pair.operations;
            let at = format!("Operation {}, `{}`: {}.", words::number(one), one.name, one.place);
            let _ = writeln!(page, "<p><b>{}</b></p>", with_code(&at));
        }
        let _ = writeln!(page, "<p>{}</p>", with_code(&words::why(comparison, difference)));
        let _ = writeln!(page, "<p class=\"do\">{}</p>", with_code(&words::advice(comparison, difference)));
    }
    if let Some(state) = &comparison.state {
        let of = format!("{} of {}", state.differing, state.tensors);
        let names = if state.names.is_empty() { String::new() } else { format!(", {}", state.names.join(", ")) };
        let [one, other] = state.operations.map(words::grouped);
        let operations = if one == other {
            String::new()
        } else {
            format!(" There had been {one} operations in the first, {other} in the second.")
        };
        let text = format!("The first state that differs is after {}: {of} tensors{names}.{operations}", state.place);
        let _ = writeln!(page, "<p>{}</p>", escaped(&text));
    }
    if !comparison.uncompared.is_empty() {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&words::uncompared(&comparison.uncompared)));
    }
    if comparison.compared.lost > 0 && !matches!(comparison.outcome, Outcome::Same | Outcome::Nothing) {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&words::lost(comparison.compared.lost)));
    }
    page.push_str("<table>\n");
    for (name, side) in ["first", "second"].into_iter().zip(&comparison.sides) {
        let path = code(&side.path.display().to_string());
        let command = code(&side.header.command.join(" "));
        row(page, name, &[format!("{path}<br/>{command}<br/>{}", escaped(&words::side(side)))]);
    }
    for (first, second) in &comparison.threads {
        row(page, "threads", &[format!("{second} of the second is {first} of the first, by what it does")]);
    }
    page.push_str("</table>\n</section>\n");
}

fn pictures(page: &mut String, comparison: &Comparison) {
    let mark = comparison.difference().and_then(|difference| difference.operation.as_ref()).map(|pair| {
        let one = &pair.operations[0];
        format!("first difference: {} {}", words::grouped(one.number), one.name)
    });
    let wide = !comparison.parameters.rows.is_empty();
    let operations = picture::svg(&comparison.operations, "operations of the step", mark.as_deref(), wide);
    let parameters = picture::svg(&comparison.parameters, "parameters", None, wide);
    if operations.is_empty() && parameters.is_empty() {
        return;
    }
    page.push_str("<section>\n");
    for (title, svg) in [("Operations by step", operations), ("Parameters by step", parameters)] {
        if !svg.is_empty() {
            let _ = writeln!(page, "<h2>{title}</h2>\n{svg}");
        }
    }
    page.push_str("<p class=\"legend\">");
    let mut legend = vec![("same", "equal"), ("some", "fewer than half of a cell differ"), ("most", "different")];
    if comparison.spread.only != [0, 0] {
        legend.extend([("first", "in the first alone"), ("second", "in the second alone")]);
    }
    for (class, what) in legend {
        let _ = write!(page, "<span><i style=\"background:var(--{class})\"></i>{what}</span>");
    }
    page.push_str("</p>\n</section>\n");
}

fn operation(page: &mut String, pair: &OperationPair) {
    let [one, other] = &pair.operations;
    let _ = writeln!(page, "<section>\n<h2>The first operation that differs</h2>\n<table>");
    page.push_str("<tr><th></th><th>first</th><th>second</th></tr>\n");
    let both = |cells: [String; 2]| -> Vec<String> {
        let [first, second] = cells;
        if first == second {
            vec![first]
        } else {
            vec![first, format!("<span class=\"different-word\">{second}</span>")]
        }
    };
    let mut line = |name: &str, cells: [String; 2]| {
        let cells = both(cells);
        let span = if cells.len() == 1 { " colspan=\"2\"" } else { "" };
        let cells: String = cells.iter().map(|cell| format!("<td{span}>{cell}</td>")).collect();
        let _ = writeln!(page, "<tr><th>{}</th>{cells}</tr>", escaped(name));
    };
    line(
        "operation",
        pair.operations.each_ref().map(|op| format!("{} {}", escaped(&words::number(op)), code(&op.name))),
    );
    line("place", pair.operations.each_ref().map(|operation| escaped(&operation.place.to_string())));
    line("parameters", pair.operations.each_ref().map(|operation| with_code(&words::parameters(operation))));
    line("kernels", pair.operations.each_ref().map(|operation| code(&words::kernels(operation))));
    if pair.operations.iter().any(|operation| !operation.plans.is_empty()) {
        line("plans", pair.operations.each_ref().map(|operation| code(&words::plans(operation))));
    }
    let draws = pair.operations.each_ref().map(|operation| {
        let draws: Vec<String> =
            operation.draws.iter().map(|draw| format!("key {:016x}, stream {}", draw.key, draw.stream)).collect();
        draws.join("; ")
    });
    if !draws[0].is_empty() || !draws[1].is_empty() {
        line("random numbers", draws.map(|draws| if draws.is_empty() { "no seed".to_owned() } else { draws }));
    }
    for (index, (a, b)) in one.outputs.iter().zip(&other.outputs).enumerate() {
        let digest = |output: &crate::Output| {
            let name = output.parameter.as_ref().map_or_else(String::new, |path| format!(", parameter {path}"));
            let what = escaped(&format!("{:?} {}{name}", output.shape, output.dtype));
            let digest = output.digest.map_or_else(|| "no result".to_owned(), |digest| digest.to_string());
            format!("{what}<br/><span class=\"mono\">{digest}</span>")
        };
        line(&format!("result {index}"), [digest(a), digest(b)]);
    }
    if let Some(error) = pair.operations.iter().find_map(|operation| operation.error.as_ref()) {
        line("error", [escaped(error), escaped(error)]);
    }
    page.push_str("</table>\n");
    let is_other = words::is_other(pair);
    for side in 0..if is_other { 2 } else { 1 } {
        let of = if is_other { format!(" in the {}", words::ordinal(side)) } else { String::new() };
        if pair.operands[side].is_empty() {
            let _ = writeln!(page, "<h3>No operands{of}</h3>");
            continue;
        }
        let _ = writeln!(page, "<h3>Operands{of}</h3>\n<table>");
        for (index, operand) in pair.operands[side].iter().enumerate() {
            let same = words::same(operand);
            let mut word = format!("<span class=\"{}-word\">{}</span>", same.to_lowercase(), same.to_lowercase());
            if pair.overwritten.contains(&index) {
                word.push_str(", <span class=\"different-word\">different</span> after the operation");
            }
            let digest = operand.digest.map_or_else(|| "-".to_owned(), |digest| digest.to_string());
            let cells = [
                escaped(&words::tensor(&operand.tensor)),
                word,
                format!("<span class=\"mono\">{digest}</span>"),
                escaped(&words::origin(operand)),
            ];
            row(page, &index.to_string(), &cells);
        }
        let _ = writeln!(page, "</table>\n<h3>Where they come from</h3>\n{}", graph::svg(pair, side));
    }
    page.push_str("</section>\n");
}

fn spread(page: &mut String, comparison: &Comparison) {
    let spread = &comparison.spread;
    let steps: Vec<_> = spread.steps.iter().filter(|(_, s)| s.differing > 0 || s.tensors_differing > 0).collect();
    if steps.is_empty() && spread.others.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>How it spreads</h2>\n<table>\n<tr><th>step</th><th class=\"number\">operations</th>");
    page.push_str("<th class=\"number\">differ</th><th></th><th class=\"number\">tensors of its state</th>");
    page.push_str("<th class=\"number\">differ</th></tr>\n");
    for (step, counts) in steps.iter().take(STEPS) {
        let share = counts.differing as f64 / counts.compared.max(1) as f64;
        let numbers = [counts.compared, counts.differing, counts.tensors, counts.tensors_differing].map(words::grouped);
        let [compared, differing, tensors, tensors_differing] =
            numbers.map(|number| format!("<td class=\"number\">{number}</td>"));
        let bar =
            format!("<td style=\"width:30%\"><span class=\"bar\" style=\"width:{:.1}%\"></span></td>", share * 100.0);
        let step = escaped(&step.to_string());
        let _ = writeln!(page, "<tr><td>{step}</td>{compared}{differing}{bar}{tensors}{tensors_differing}</tr>");
    }
    page.push_str("</table>\n");
    if steps.len() > STEPS {
        let _ = writeln!(page, "<p>and {} more steps</p>", steps.len() - STEPS);
    }
    affected(page, "The next operations that differ, because an operand does", &spread.first);
    affected(page, "Operations that differ although their operands agree", &spread.others);
    let parameters: Vec<_> = spread.parameters.iter().filter_map(|(path, since)| Some((path, (*since)?))).collect();
    if !parameters.is_empty() {
        let title = format!("{} of {} parameters differ", parameters.len(), spread.parameters.len());
        let _ = writeln!(page, "<h3>{title}</h3>\n<table>");
        for (path, since) in parameters {
            row(page, path, &[format!("from {since} on")]);
        }
        page.push_str("</table>\n");
    }
    page.push_str("</section>\n");
}

fn affected(page: &mut String, title: &str, operations: &[Affected]) {
    if operations.is_empty() {
        return;
    }
    let _ = writeln!(page, "<h3>{title}</h3>\n<table>");
    for operation in operations {
        let parameter = operation.parameter.as_ref().map_or_else(String::new, |path| format!(", parameter {path}"));
        let cells = [
            code(&operation.name),
            escaped(&format!("{}{parameter}", operation.result)),
            escaped(&operation.place.to_string()),
        ];
        row(page, &words::grouped(operation.number), &cells);
    }
    page.push_str("</table>\n");
}

fn environments(page: &mut String, comparison: &Comparison) {
    let [first, second] = comparison.sides.each_ref().map(|side| &side.environment);
    let names: BTreeSet<&str> = first.iter().chain(second.iter()).map(|(name, _)| name).collect();
    let differing: BTreeSet<&str> = comparison.environment.iter().map(|difference| difference.name.as_str()).collect();
    let title = match differing.len() {
        0 => "The environments are the same".to_owned(),
        1 => "The environments differ in one entry".to_owned(),
        count => format!("The environments differ in {count} entries"),
    };
    let _ = writeln!(page, "<section>\n<h2>{title}</h2>\n<table>\n<tr><th></th><th>first</th><th>second</th></tr>");
    for difference in comparison.environment.iter().filter(|difference| !names.contains(difference.name.as_str())) {
        let value = |value: &Option<String>| escaped(value.as_deref().unwrap_or_default());
        let [one, other] = [value(&difference.first), value(&difference.second)];
        let _ = writeln!(
            page,
            "<tr class=\"differs\"><th>{}</th><td>{one}</td><td>{other}</td></tr>",
            escaped(&difference.name)
        );
    }
    for name in names {
        let class = if differing.contains(name) { " class=\"differs\"" } else { "" };
        let value = |value: Option<&str>| escaped(value.unwrap_or_default());
        let [one, other] = [value(first.get(name)), value(second.get(name))];
        let _ = writeln!(page, "<tr{class}><th>{}</th><td>{one}</td><td>{other}</td></tr>", escaped(name));
    }
    page.push_str("</table>\n</section>\n");
}
