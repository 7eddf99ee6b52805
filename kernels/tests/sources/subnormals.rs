//! Every kernel ends in `keep_subnormals()`, or gives the reason in `EXCEPTIONS`.

use super::forbidden::{assert_excepted, sources};
use quote::ToTokens;
use syn::visit::{self, Visit};

/// Kernels that end otherwise.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("answer_f32", "it is asked what the device does by itself, and what kernels that keep subnormal numbers do"),
    ("answer_rounded_then_added", "likewise"),
    ("answer", "likewise, of functions"),
    (
        "answer_halves",
        "it casts half types, which no rewriting changes: a device that takes theirs for zero is refused",
    ),
];

/// The kernels that do not end in `keep_subnormals();`, and the number of all.
#[derive(Default)]
struct Kernels {
    without: Vec<String>,
    all: usize,
}

impl<'ast> Visit<'ast> for Kernels {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let is_kernel = function.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cube") && attribute.to_token_stream().to_string().contains("launch")
        });
        if is_kernel {
            self.all += 1;
            let last = function.block.stmts.last().map(|last| last.to_token_stream().to_string());
            if last.as_deref() != Some("keep_subnormals () ;") {
                self.without.push(function.sig.ident.to_string());
            }
        }
        visit::visit_item_fn(self, function);
    }
}

#[test]
fn every_kernel_keeps_subnormal_numbers() {
    let mut found = Vec::new();
    let mut all = 0;
    for (path, file) in sources("src") {
        let mut kernels = Kernels::default();
        kernels.visit_file(&file);
        all += kernels.all;
        found.extend(kernels.without.into_iter().map(|name| (path.clone(), name)));
    }
    assert!(all > 60, "only {all} kernels were found");
    assert_excepted("a kernel must end in `keep_subnormals();`", &found, EXCEPTIONS);
}

#[test]
fn a_kernel_that_ends_otherwise_is_found() {
    let found = |text: &str| {
        let mut kernels = Kernels::default();
        kernels.visit_file(&syn::parse_str(text).expect("an example parses"));
        (kernels.all, kernels.without.len())
    };
    assert_eq!(found("#[cube(launch)] fn kernel(x: &mut [f32]) { x[0] = 1.0; keep_subnormals(); }"), (1, 0));
    assert_eq!(found("#[cube(launch)] fn kernel(x: &mut [f32]) { keep_subnormals(); x[0] = 1.0; }"), (1, 1));
    assert_eq!(found("#[cube] fn part(x: f32) -> f32 { x }"), (0, 0));
}
