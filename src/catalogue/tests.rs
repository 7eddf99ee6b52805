//! The tables against Burn's sources, this crate's implementation and the documentation.

use super::{Entry, HOST, Route, STREAM, TRAITS, batch, entry, markdown};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where burn-backend declares each trait, and the source of this crate that implements it.
const SOURCES: &[(&str, &str, &str)] = &[
    ("Backend", "backend/base.rs", include_str!("../backend/runtime.rs")),
    ("FloatTensorOps", "backend/ops/tensor.rs", include_str!("../backend/float.rs")),
    ("IntTensorOps", "backend/ops/int_tensor.rs", include_str!("../backend/integer.rs")),
    ("BoolTensorOps", "backend/ops/bool_tensor.rs", include_str!("../backend/boolean.rs")),
    ("ModuleOps", "backend/ops/modules/base.rs", include_str!("../backend/module.rs")),
    ("ActivationOps", "backend/ops/activation.rs", include_str!("../backend/activation.rs")),
    ("QTensorOps", "backend/ops/qtensor.rs", include_str!("../backend/quantized.rs")),
    ("TransactionOps", "backend/ops/transaction.rs", include_str!("../backend/transaction.rs")),
    ("DistributedOps", "backend/distributed/ops.rs", include_str!("../backend/distributed.rs")),
];

/// A method of a trait.
struct Method {
    name: String,
    has_default: bool,
}

#[test]
fn every_method_of_every_trait_has_one_entry_in_the_order_of_the_trait() {
    let root = burn_backend_sources();
    for (section, (name, path, _)) in TRAITS.iter().zip(SOURCES) {
        assert_eq!(section.name, *name);
        let declared: Vec<String> = methods(&root.join(path), name).into_iter().map(|method| method.name).collect();
        let listed: Vec<&str> = section.entries.iter().map(|entry| entry.method).collect();
        assert_eq!(listed, declared, "{name}");
    }
}

#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    for Entry { method, .. } in TRAITS.iter().chain([&STREAM, &HOST]).flat_map(|section| section.entries) {
        assert!(seen.insert(method), "{method} has two entries");
    }
}

#[test]
fn batch_invariance_is_told_of_every_operation_once() {
    let mut told = BTreeSet::new();
    for operation in batch::GROUPS.iter().flat_map(batch::Group::operations) {
        assert!(told.insert(operation), "{operation} is in two groups");
    }
    let operations = TRAITS.iter().chain([&STREAM]).flat_map(|section| section.entries).map(|entry| entry.method);
    assert_eq!(told, operations.collect::<BTreeSet<_>>());
}

#[test]
fn every_stream_operation_names_an_entry() {
    let source = include_str!("operation.rs");
    let matches = &source[source.find("\nfn base(").expect("the matches start with `base`")..];
    let mut names = BTreeSet::new();
    for line in matches.lines().filter(|line| line.contains("=>") || line.contains(": \"")) {
        let quoted = line.split('"').skip(1).step_by(2);
        let kinds: &[&str] = match line {
            _ if line.contains("base!(") => &["float_", "int_", "bool_"],
            _ if line.contains("numeric!(") => &["float_", "int_"],
            _ => &[""],
        };
        names.extend(quoted.flat_map(|name| kinds.iter().map(move |kind| format!("{kind}{name}"))));
    }
    assert!(names.len() > 250, "only {} names were found", names.len());
    for name in names {
        assert!(entry(&name).is_some(), "{name} has no entry");
    }
}

#[test]
fn the_implementation_does_what_the_table_says() {
    let root = burn_backend_sources();
    for (section, (name, path, implementation)) in TRAITS.iter().zip(SOURCES) {
        let required: BTreeMap<String, bool> =
            methods(&root.join(path), name).into_iter().map(|method| (method.name, !method.has_default)).collect();
        for Entry { method, route } in section.entries {
            let text = definition(implementation, method);
            match (route, text) {
                (Route::Composed(_), Some(text)) => {
                    assert!(required[*method], "{method} is composed, but overrides a default body");
                    assert!(!text.contains("CubeBackend::"), "{method} is composed, but calls the inner backend");
                }
                (Route::Composed(_), None) => {}
                (Route::Kernel(_), Some(text)) => {
                    let kernel = text.contains("kernel::") || text.contains("Self::");
                    assert!(kernel, "{method} should call a kernel: {text}");
                }
                (Route::Refused { .. }, Some(text)) => {
                    let refused = text.contains(&format!("catalogue::refusal(\"{method}\")"));
                    assert!(refused, "{method} should be refused: {text}");
                }
                (Route::Forwarded(_), Some(_)) => {}
                (route, None) => panic!("{method} is {}, but not overridden", route.name()),
            }
        }
    }
}

#[test]
fn forwarded_groups_give_the_reason_of_the_table() {
    let reasons = include_str!("reason.rs");
    for (section, (_, _, implementation)) in TRAITS.iter().zip(SOURCES) {
        let groups = ["forward! {", "elementary! {"].map(|macro_call| implementation.split(macro_call).skip(1));
        for group in groups.into_iter().flatten() {
            let group = &group[..group.find("\n    }\n").expect("a group ends")];
            let name = group.split(':').next().expect("a group starts with its reason").trim();
            let declaration = format!("const {name}: &str =");
            let at = reasons.find(&declaration).unwrap_or_else(|| panic!("reason.rs has no {name}"));
            let text = reasons[at..].split('"').nth(1).expect("a reason is a literal");
            for method in function_names(group) {
                let entry = section.entries.iter().find(|entry| entry.method == method);
                assert_eq!(entry.map(|entry| entry.route), Some(Route::Forwarded(text)), "{method}");
            }
        }
    }
}

#[test]
fn the_documentation_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, markdown()).expect("docs/operations.md can be written");
    }
    let text = std::fs::read_to_string(&path).expect("docs/operations.md can be read");
    assert!(text == markdown(), "docs/operations.md is stale: run `UPDATE_DOCS=1 cargo test catalogue`");
}

/// The `src` folder of the burn-backend that Cargo resolved.
fn burn_backend_sources() -> PathBuf {
    // For the host alone: Cargo has not downloaded what only other platforms need.
    let version = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(version.stdout).expect("rustc writes UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host, "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
    let packages = metadata["packages"].as_array().expect("packages are an array");
    let package = packages.iter().find(|package| package["name"] == "burn-backend").expect("burn-backend is resolved");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    manifest.parent().expect("a manifest lies in a folder").join("src")
}

/// The methods a trait declares, in order.
fn methods(path: &Path, name: &str) -> Vec<Method> {
    let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
    let declaration = format!("pub trait {name}");
    let ends = code.match_indices(&declaration).map(|(at, found)| at + found.len());
    let start = { ends }.find(|&end| !code[end..].starts_with(char::is_alphanumeric)).expect("the trait is there");
    let mut declared = Vec::new();
    let mut depth = 0;
    let mut rest = &code[start..];
    while let Some(at) = rest.find(['{', '}', 'f']) {
        let (token, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        let word_starts = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match token {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ if depth == 1 && word_starts && after.starts_with("n ") => {
                let name = after[2..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                declared.push(Method { name, has_default: has_body(after) });
            }
            _ => {}
        }
        rest = after;
        if depth == 0 && token == b'}' {
            break;
        }
    }
    declared
}

/// Whether a signature is followed by a body.
fn has_body(signature: &str) -> bool {
    let mut depth = 0;
    for c in signature.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return true,
            ';' if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// The text of a method in an implementation, up to the next one.
fn definition<'a>(text: &'a str, method: &str) -> Option<&'a str> {
    let start = ["(", "<"].iter().find_map(|open| text.find(&format!("fn {method}{open}")))?;
    let end = text[start + 1..].find("fn ").map_or(text.len(), |next| start + 1 + next);
    Some(&text[start..end])
}

/// The names of the functions declared in a piece of source.
fn function_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).map(|rest| &rest[..rest.find(['(', '<']).expect("a function has arguments")])
}
