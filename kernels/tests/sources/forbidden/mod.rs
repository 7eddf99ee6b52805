//! What the sources must not spell: each rule, and that it can fail.
//!
//! In the kernels: racing or subgroup arithmetic, relaxed arithmetic, unordered collections, and float products that a
//! compiler could contract ([`products`]). In the backend: a choice of kernels that is Burn's ([`backend`]). In both: circles of
//! imports ([`circles`]). An exception is listed with its reason, and fails when no longer needed.

mod backend;
mod circles;
mod products;

use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::{self, Visit};

/// A family of names, and why none of them may be used.
struct Rule {
    reason: &'static str,
    forbids: fn(&str) -> bool,
    /// Names that are meant otherwise, and why.
    exceptions: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        reason: "atomics combine values in the order in which they arrive",
        forbids: |name| name.starts_with("Atomic") || name.starts_with("atomic"),
        exceptions: &[],
    },
    Rule {
        reason: "subgroup operations combine values in an order that the device chooses, by a width that it has",
        forbids: |name| {
            name.starts_with("plane_") || name.starts_with("PLANE_") || name == "UNIT_POS_PLANE" || {
                ["shuffle", "ballot", "subgroup", "warp_"].iter().any(|word| name.to_lowercase().contains(word))
            }
        },
        exceptions: &[(
            "plane_size_max",
            "tells a software driver from a GPU; only the choice of a plan depends on it",
        )],
    },
    Rule {
        reason: "relaxed arithmetic lets a compiler choose the order",
        forbids: |name| name.to_lowercase().replace('_', "").contains("fastmath"),
        exceptions: &[],
    },
    Rule {
        reason: "a hash collection's order differs from run to run; use a `BTreeMap`, a `BTreeSet` or a `Vec`",
        forbids: |name| name.starts_with("HashMap") || name.starts_with("HashSet"),
        exceptions: &[],
    },
    Rule {
        reason: "an unstable sort may order equal keys anyhow",
        forbids: |name| name.contains("sort_unstable") || name.contains("select_nth_unstable"),
        exceptions: &[],
    },
];

/// Every name in a file, those in macros included.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn of(file: &syn::File) -> Self {
        let mut names = Self::default();
        names.visit_file(file);
        names
    }

    fn add_tokens(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Group(group) => self.add_tokens(group.stream()),
                proc_macro2::TokenTree::Ident(name) => drop(self.0.insert(name.to_string())),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, name: &'ast syn::Ident) {
        self.0.insert(name.to_string());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        // A comment on an item is an attribute too.
        if let syn::Meta::List(list) = &attribute.meta {
            self.add_tokens(list.tokens.clone());
        }
    }

    fn visit_macro(&mut self, macro_call: &'ast syn::Macro) {
        self.add_tokens(macro_call.tokens.clone());
        visit::visit_macro(self, macro_call);
    }
}

/// Every source file in a folder beside this crate's manifest, parsed.
pub(super) fn sources(folder: &str) -> Vec<(String, syn::File)> {
    let mut sources = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let name = path.strip_prefix(&root).expect("below the root").display().to_string();
                sources.push((name, syn::parse_file(&text).expect("a source file parses")));
            }
        }
    }
    assert!(sources.len() > 10, "only {} source files were found", sources.len());
    sources
}

/// Requires that what was found is what the exceptions name, each with a reason.
pub(super) fn assert_excepted(reason: &str, found: &[(String, String)], exceptions: &[(&str, &str)]) {
    let listed = |name: &str| exceptions.iter().any(|(exception, _)| *exception == name);
    let forbidden: Vec<_> = found.iter().filter(|(_, name)| !listed(name)).collect();
    assert!(forbidden.is_empty(), "{reason}: {forbidden:?}");
    for (exception, _) in exceptions {
        assert!(found.iter().any(|(_, name)| name == exception), "the exception `{exception}` is no longer needed");
    }
}

#[test]
fn no_source_has_a_forbidden_name() {
    let names: Vec<_> = sources("src").iter().map(|(path, file)| (path.clone(), Names::of(file).0)).collect();
    for rule in RULES {
        let found: Vec<_> = names
            .iter()
            .flat_map(|(path, names)| names.iter().map(|name| (path.clone(), name.clone())))
            .filter(|(_, name)| (rule.forbids)(name))
            .collect();
        assert_excepted(rule.reason, &found, rule.exceptions);
    }
}

#[test]
fn every_rule_finds_what_it_forbids() {
    let examples = [
        "fn kernel(total: &Tensor<Atomic<f32>>) {}",
        "fn kernel(x: f32) -> f32 { comptime!(plane_sum(x)) }",
        "#[cube(fast_math = FastMath::all())] fn kernel() {}",
        "use std::collections::HashMap;",
        "fn order(x: &mut [f32]) { x.sort_unstable_by(f32::total_cmp) }",
    ];
    for (rule, example) in RULES.iter().zip(examples) {
        let names = Names::of(&syn::parse_str(example).expect("an example parses"));
        assert!(names.0.iter().any(|name| (rule.forbids)(name)), "{example}: {}", rule.reason);
    }
    assert_eq!(RULES.len(), examples.len());
}
