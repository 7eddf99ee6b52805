//! What the methods of [`Deterministic`](crate::Deterministic) call, by their source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of `src/backend/adapters` that call kernels, by name.
const ADAPTERS: &[(&str, &str)] = &[
    ("convolution", include_str!("../../backend/adapters/convolution.rs")),
    ("ctc", include_str!("../../backend/adapters/ctc.rs")),
    ("deform_convolution", include_str!("../../backend/adapters/deform_convolution.rs")),
    ("elementwise", include_str!("../../backend/adapters/elementwise.rs")),
    ("indices", include_str!("../../backend/adapters/indices.rs")),
    ("matmul", include_str!("../../backend/adapters/matmul.rs")),
    ("pool", include_str!("../../backend/adapters/pool.rs")),
    ("random", include_str!("../../backend/adapters/random.rs")),
    ("reduce", include_str!("../../backend/adapters/reduce.rs")),
    ("resample", include_str!("../../backend/adapters/resample.rs")),
    ("scan", include_str!("../../backend/adapters/scan.rs")),
    ("scatter", include_str!("../../backend/adapters/scatter.rs")),
    ("sort", include_str!("../../backend/adapters/sort.rs")),
    ("windows", include_str!("../../backend/adapters/windows.rs")),
];

/// The methods that the source of an implementation has, each with its body. That of a line of `forward!`, `views!` or `run_to_run!`
/// is the call of the inner backend, that of a line of `adapted!` the call of the adapter and of the inner backend.
pub(super) fn bodies(source: &str) -> BTreeMap<String, String> {
    let source = without_comments(source);
    let mut bodies = BTreeMap::new();
    // The items of the `impl` end at a brace behind four blanks.
    for item in source.split_inclusive("\n    }\n") {
        let group = ["forward", "views", "run_to_run", "adapted"]
            .iter()
            .find_map(|name| item.find(&format!("    {name}! {{\n")));
        let Some(group) = group else {
            let Some((name, rest)) = function(item) else { continue };
            let body = rest.find(" {\n").map_or("", |body| &rest[body..]);
            assert!(bodies.insert(name.to_owned(), body.to_owned()).is_none(), "{name} is there twice");
            continue;
        };
        let mut adapter = None;
        for line in item[group..].split_inclusive(";\n") {
            let Some((name, rest)) = function(line) else { continue };
            // What the methods that follow have in common.
            if let Some(common) = line.lines().find_map(|line| line.trim().strip_suffix(':')) {
                adapter = common.starts_with("adapters::").then_some(common);
            }
            let kernel = rest.trim_end().strip_suffix(';').and_then(|rest| rest.rsplit_once(" = "));
            let call = adapter.map(|adapter| format!("{adapter}({})", kernel.map_or("", |(_, kernel)| kernel)));
            let body = format!("{}, CubeBackend::{name}", call.unwrap_or_default());
            assert!(bodies.insert(name.to_owned(), body).is_none(), "{name} is there twice");
        }
    }
    bodies
}

/// The kernels that a body reaches, itself or in the adapters it calls: `family::function`.
pub(super) fn kernels_reached(body: &str) -> BTreeSet<String> {
    let (mut reached, mut seen) = (BTreeSet::new(), BTreeSet::new());
    reach(body, None, &mut reached, &mut seen);
    reached
}

fn reach(
    body: &str,
    adapter: Option<(&'static str, &'static str)>,
    reached: &mut BTreeSet<String>,
    seen: &mut BTreeSet<(&'static str, String)>,
) {
    for path in paths(body) {
        let called = match path[..] {
            ["adapters", family, function] if is_function(function) => {
                let file = ADAPTERS.iter().find(|(name, _)| *name == family);
                Some((*file.unwrap_or_else(|| panic!("no adapters are known in {family}.rs")), function))
            }
            [function] => adapter.map(|file| (file, function)),
            [family, .., function] if is_family(family) && path[1..].iter().all(|part| is_function(part)) => {
                reached.insert(path.join("::"));
                let _ = function;
                None
            }
            _ => None,
        };
        if let Some(((family, source), function)) = called
            && let Some(body) = function_of(source, function)
            && seen.insert((family, function.to_owned()))
        {
            reach(&without_comments(body), Some((family, source)), reached, seen);
        }
    }
}

/// Every source below a folder, without comments.
pub(super) fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    let source = |path: &Path| without_comments(&std::fs::read_to_string(path).expect("a source is text"));
    paths.iter().flat_map(|path| if path.is_dir() { sources(path) } else { vec![source(path)] }).collect()
}

/// The methods that a body of Burn's calls, itself and in the functions of `sources` that it names the backend to.
pub(super) fn calls_of(body: &str, sources: &[String]) -> BTreeSet<String> {
    let (mut calls, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        let prefixes = ["B::", "Self::", "<Self>::"];
        calls.extend(prefixes.iter().flat_map(|prefix| paths_after(body, prefix)).map(str::to_owned));
        for backend in ["::<B>(", "::<Self>("] {
            for (end, _) in body.match_indices(backend) {
                let name = body[..end].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                if seen.insert(name) {
                    bodies.extend(sources.iter().filter_map(|source| function_of(source, name)));
                }
            }
        }
    }
    calls
}

/// The last parts of paths that begin with `prefix`.
pub(super) fn paths_after<'a>(body: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let words = body.split(prefix).skip(1);
    words.map(|rest| &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())])
}

/// The paths in a piece of source, part by part.
fn paths(text: &str) -> Vec<Vec<&str>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    words.map(|word| word.split("::").filter(|part| !part.is_empty()).collect()).collect()
}

/// Whether the kernels have this family.
fn is_family(name: &str) -> bool {
    let modules = include_str!("../../../kernels/src/lib.rs");
    modules.lines().any(|line| line == format!("pub mod {name};"))
}

fn is_function(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_lowercase())
}

/// The body of a function of a file.
pub(super) fn function_of<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let starts = ["(", "<"].map(|open| format!("fn {name}{open}"));
    let start = starts.iter().find_map(|start| source.find(start))?;
    let indent = source[..start].rfind('\n').map_or("", |line| {
        let line = &source[line + 1..start];
        &line[..line.len() - line.trim_start().len()]
    });
    let body = start + source[start..].find('{')?;
    let end = source[body..].find(&format!("\n{indent}}}\n")).map_or(source.len(), |end| body + end);
    Some(&source[body..end])
}

/// The name of the function that `text` starts with, and what follows the name.
fn function(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("fn ")?;
    Some(rest.split_at(rest.find(['(', '<'])?))
}

pub(super) fn without_comments(source: &str) -> String {
    source.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}
