//! The tables against Burn's sources, this crate's implementation and the documentation.

mod implementation;

use super::{Entry, HOST, Route, STREAM, TRAITS, batch, entry, fused, markdown, reason};
use std::collections::BTreeSet;
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

#[test]
fn every_method_of_every_trait_has_one_entry_in_the_order_of_the_trait() {
    let root = burn_backend_sources();
    for (section, (name, path, _)) in TRAITS.iter().zip(SOURCES) {
        assert_eq!(section.name, *name);
        let declared: Vec<String> = methods(&root.join(path), name);
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

/// The references have what [`Deterministic`](crate::Deterministic) has, and leave to Burn's default bodies what it
/// leaves to them.
#[test]
fn the_references_override_what_the_implementation_overrides() {
    const REFERENCES: &[(&str, &str)] = &[
        ("FloatTensorOps", include_str!("../reference/float.rs")),
        ("IntTensorOps", include_str!("../reference/integer.rs")),
        ("BoolTensorOps", include_str!("../reference/boolean.rs")),
        ("ModuleOps", include_str!("../reference/module.rs")),
        ("ActivationOps", include_str!("../reference/uncomputed.rs")),
        ("QTensorOps", include_str!("../reference/uncomputed.rs")),
        ("TransactionOps", include_str!("../reference/uncomputed.rs")),
        ("DistributedOps", include_str!("../reference/uncomputed.rs")),
    ];
    for (name, references) in REFERENCES {
        let section = TRAITS.iter().find(|section| section.name == *name).expect("a trait");
        let (_, _, implementation) = SOURCES.iter().find(|(of, ..)| of == name).expect("a trait");
        let overridden: BTreeSet<&str> = {
            let bodies = implementation::bodies(implementation);
            section.entries.iter().map(|entry| entry.method).filter(|method| bodies.contains_key(*method)).collect()
        };
        // `fn name(`, lists of names, `fn name, name;`, the same before a ` = ..`, and those of convolutions, `2: name,
        // name;`.
        let lines = references.lines().map(|line| line.trim_start().trim_start_matches("async "));
        let defining = lines.filter(|line| line.starts_with("fn ") || line.starts_with(|c: char| c.is_ascii_digit()));
        let words = defining.flat_map(|line| {
            let names = line.split(['(', '=']).next().unwrap_or_default();
            names.split(|c: char| !c.is_alphanumeric() && c != '_')
        });
        let words: BTreeSet<&str> = words.collect();
        let methods = section.entries.iter().map(|entry| entry.method);
        assert_eq!(methods.filter(|method| words.contains(method)).collect::<BTreeSet<_>>(), overridden, "{name}");
    }
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
fn what_fuses_has_an_entry() {
    let source = include_str!("fused.rs");
    let names: Vec<&str> = source.lines().filter(|line| line.contains("=>")).flat_map(literals).collect();
    assert!(names.len() > 70, "only {} names were found", names.len());
    for name in names {
        assert!(entry(name).is_some() && fused(name).is_some(), "{name} is no method");
    }
}

#[test]
fn the_implementation_does_what_the_table_says() {
    let mut sources = implementation::sources(&burn_backend_sources());
    sources.push(implementation::without_comments(include_str!("../backend/attention.rs")));
    for (section, (_, _, implementation)) in TRAITS.iter().zip(SOURCES) {
        let bodies = implementation::bodies(implementation);
        let listed: BTreeSet<&str> = section.entries.iter().map(|entry| entry.method).collect();
        for method in bodies.keys() {
            assert!(listed.contains(&method[..]), "{method} has no entry");
        }
        for Entry { method, route } in section.entries {
            let Some(body) = bodies.get(*method) else {
                assert!(matches!(route, Route::Composed(_)), "{method} is {}, but not overridden", route.name());
                continue;
            };
            let detail = route.detail();
            let named: BTreeSet<String> = detail.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            // A row names the kernels that the method reaches, whatever its route, and no others.
            let kernels: BTreeSet<String> = { named.iter() }.filter(|name| name.contains("::")).cloned().collect();
            assert_eq!(
                implementation::kernels_reached(body),
                kernels,
                "{method}: what the code reaches, and the row says"
            );
            // Whatever is passed on by name is the method itself.
            for name in literals(body).chain(implementation::paths_after(body, "CubeBackend::")) {
                assert_eq!(name, *method, "the body of {method} names another method");
            }
            let calls_inner = body.contains("CubeBackend::");
            match route {
                Route::Kernel(_) => assert!(!kernels.is_empty(), "{method} names no kernel"),
                Route::Composed(_) => {
                    assert!(!calls_inner, "{method} is composed, but calls the inner backend");
                    let calls = implementation::calls_of(body, &sources);
                    assert_eq!(calls, named, "{method}: what the code calls, and the row says");
                }
                Route::Forwarded(reason) => {
                    let answers = [reason::SEED, reason::HAS_CTC].contains(reason);
                    assert_eq!(calls_inner, !answers, "{method} is forwarded for a reason that is not its own");
                }
                Route::Refused { .. } => {
                    assert!(body.contains("catalogue::refusal("), "{method} should be refused: {body}");
                }
            }
        }
    }
}

/// Methods whose default body sends its work to a thread of Burn's, with what that thread calls and the file in which
/// it does: no call leads there.
const SENT: (&[&str], &str, &str) = (
    &[
        "start_communication_server",
        "close_communication_server",
        "register_sync_parameters",
        "submit_sync_collective",
        "submit_gradient_sync",
    ],
    "all_reduce",
    "backend/distributed/server.rs",
);

#[test]
fn default_bodies_call_what_the_table_says() {
    let root = burn_backend_sources();
    let sources = implementation::sources(&root);
    let (senders, sent, thread) = SENT;
    assert!(source(&root.join(thread)).contains(&format!("B::{sent}(")), "{thread} does not call {sent}");
    let (mut compared, mut seen) = (0, BTreeSet::new());
    for (section, (_, path, implementation)) in TRAITS.iter().zip(SOURCES) {
        let source = source(&root.join(path));
        let overridden = implementation::bodies(implementation);
        for Entry { method, route } in section.entries.iter().filter(|entry| !overridden.contains_key(entry.method)) {
            let body = implementation::function_of(&source, method).expect("what is not overridden has a default body");
            let mut calls = implementation::calls_of(body, &sources);
            calls.retain(|name| entry(name).is_some());
            if senders.contains(method) {
                assert_eq!(calls, BTreeSet::new(), "{method} calls methods itself, and is said to send all work");
                calls.insert(sent.to_owned());
                seen.insert(*method);
            }
            let detail = route.detail();
            let named = detail.split('`').skip(1).step_by(2).filter(|name| entry(name).is_some()).map(str::to_owned);
            assert_eq!(calls, named.collect(), "{method}: what Burn's body calls, and the row says");
            compared += 1;
        }
    }
    assert_eq!(seen, senders.iter().copied().collect(), "methods that send their work");
    assert!(compared > 140, "only {compared} bodies were compared");
}

#[test]
fn calls_are_found_in_functions_that_a_body_hands_itself_to() {
    let sources =
        ["fn whole<B: Backend>(x: T) -> T {\n    B::first(part::<B>(x))\n}\n\nfn part<B: Backend>(x: T) -> T {\n    \
                    whole::<B>(B::second(x))\n}\n"
            .to_owned()];
    let calls = implementation::calls_of("Self::own(tools::whole::<B>(x)) + settings::<C>(x)", &sources);
    assert_eq!(calls.iter().map(String::as_str).collect::<Vec<_>>(), ["first", "own", "second"]);
}

#[test]
fn the_bodies_of_methods_are_found() {
    let bodies = implementation::bodies(
        "impl Ops for B {\n    forward! {\n        MOVEMENT:\n        fn flip(x: [usize; 2]) -> T;\n    }\n\n    adapted! {\n        \
         adapters::reduce::along:\n        fn sum(\n            x: T,\n        ) -> T = reduce::sum;\n\n        \
         adapters::matmul::product:\n        fn matmul(x: T) -> T;\n    }\n\n    fn all(x: T) -> T {\n        if x {\n        }\n        \
         Self::any(x) // kernel\n    }\n}\n",
    );
    let found: Vec<(&str, &str)> = bodies.iter().map(|(name, body)| (&name[..], body.trim())).collect();
    assert_eq!(
        found,
        [
            ("all", "{\n        if x {\n        }\n        Self::any(x) \n    }"),
            ("flip", ", CubeBackend::flip"),
            ("matmul", "adapters::matmul::product(), CubeBackend::matmul"),
            ("sum", "adapters::reduce::along(reduce::sum), CubeBackend::sum"),
        ]
    );
}

#[test]
fn the_kernels_that_a_body_reaches_are_found() {
    let reached = |body: &str| implementation::kernels_reached(body).into_iter().collect::<Vec<_>>();
    assert_eq!(reached("adapters::reduce::along(reduce::sum)"), ["reduce::sum"], "as an argument");
    assert_eq!(reached("adapters::matmul::product()"), ["matmul::matmul"], "in the adapter");
    let products = ["matmul::matmul", "matmul::tensor_cores::matmul"];
    assert_eq!(reached("adapters::matmul::float_product()"), products, "in a module of a family");
    assert_eq!(
        reached("adapters::scatter::scatter_nd()"),
        ["scatter::update_checked"],
        "in another function of the adapters"
    );
    assert_eq!(reached("Self::bool_any(Self::int_not_equal_elem(x, 0))"), [""; 0], "through other methods");
    assert_eq!(reached("let operands = scatter::Operands { x };"), [""; 0], "a type");
}

#[test]
fn forwarded_groups_give_the_reason_of_the_table() {
    let reasons = include_str!("reason.rs");
    for (section, (_, _, implementation)) in TRAITS.iter().zip(SOURCES) {
        let groups = ["forward! {", "run_to_run! {"].map(|macro_call| implementation.split(macro_call).skip(1));
        for group in groups.into_iter().flatten() {
            let group = &group[..group.find("\n    }\n").expect("a group ends")];
            let name = group.split([':', ',']).next().expect("a group starts with its reason").trim();
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
    assert!(text == markdown(), "docs/operations.md is stale: run `UPDATE_DOCS=1 cargo xtask test catalogue`");
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

/// A file of Burn's, without comments.
fn source(path: &Path) -> String {
    let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    implementation::without_comments(&source)
}

/// The methods a trait declares, in order.
fn methods(path: &Path, name: &str) -> Vec<String> {
    let code = source(path);
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
                declared.push(after[2..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
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

/// The names of methods among the string literals of a piece of source.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    let is_name =
        |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_numeric() || c == '_');
    text.split('"').skip(1).step_by(2).filter(is_name)
}

/// The names of the functions declared in a piece of source.
fn function_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).map(|rest| &rest[..rest.find(['(', '<']).expect("a function has arguments")])
}
