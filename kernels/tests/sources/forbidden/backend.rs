//! The backend, in the workspace's `src`: which of Burn's kernels it calls, and that it leaves no choice of one to Burn.

use super::{Names, assert_excepted, sources};
use syn::visit::{self, Visit};
use syn::{Path, UseTree};

/// Kernels of Burn's that the backend calls by itself, and why each is safe. What it forwards to methods of Burn's backend
/// is in the catalogue.
const KERNELS: &[(&str, &str)] = &[("burn_cubecl::kernel::untile", "copies a tiled tensor, and computes nothing")];

/// Paths as they are spelled, those of `use` in full.
#[derive(Default)]
struct Paths(Vec<String>);

impl Paths {
    fn of(file: &syn::File) -> Vec<String> {
        let mut paths = Self::default();
        paths.visit_file(file);
        paths.0
    }
}

/// Adds the paths of a `use`, in full, to `paths`.
pub(super) fn add_use(paths: &mut Vec<String>, before: &str, tree: &UseTree) {
    let joined = |name: &syn::Ident| if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
    match tree {
        UseTree::Path(path) => add_use(paths, &joined(&path.ident), &path.tree),
        UseTree::Group(group) => group.items.iter().for_each(|tree| add_use(paths, before, tree)),
        UseTree::Name(name) if name.ident == "self" => paths.push(before.to_owned()),
        UseTree::Name(name) => paths.push(joined(&name.ident)),
        UseTree::Rename(name) => paths.push(joined(&name.ident)),
        UseTree::Glob(_) => paths.push(format!("{before}::*")),
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        add_use(&mut self.0, "", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.0.push(segments.join("::"));
        visit::visit_path(self, path);
    }
}

/// Whether a path leaves the choice of a kernel to Burn.
fn leaves_the_choice(path: &str) -> bool {
    let strategy = ["Strategy", "Selection", "Routine"].iter().any(|kind| path.contains(kind));
    strategy && ["default", "Default", "Auto", "Autotune"].iter().any(|choice| path.ends_with(&format!("::{choice}")))
}

fn paths() -> Vec<(String, String)> {
    let files = sources("../src");
    let paths = files.iter().flat_map(|(path, file)| Paths::of(file).into_iter().map(move |used| (path.clone(), used)));
    paths.collect()
}

#[test]
fn no_choice_of_a_kernel_is_left_to_burn() {
    let left: Vec<_> = paths().into_iter().filter(|(_, path)| leaves_the_choice(path)).collect();
    assert_excepted("Burn chooses a kernel by the device, or by measurement", &left, &[]);
    let names = sources("../src")
        .into_iter()
        .flat_map(|(path, file)| Names::of(&file).0.into_iter().map(move |name| (path.clone(), name)));
    let tuned: Vec<_> = names.filter(|(_, name)| name.to_lowercase().contains("autotune")).collect();
    assert_excepted("a measurement chooses a kernel", &tuned, &[]);
}

#[test]
fn every_kernel_of_burn_that_is_called_is_listed() {
    let kernels: Vec<_> = paths().into_iter().filter(|(_, path)| path.starts_with("burn_cubecl::kernel")).collect();
    assert_excepted("nobody looked at this kernel of Burn's", &kernels, KERNELS);
}

#[test]
fn the_rules_find_what_they_forbid() {
    let used = |text: &str| Paths::of(&syn::parse_str(text).expect("an example parses"));
    let chosen = used("fn f() { sum(x, KernelStrategy::default()); sum(x, ReduceStrategy::Specific(tree)) }");
    assert_eq!(chosen.iter().filter(|path| leaves_the_choice(path)).count(), 1);
    assert!(used("fn f() { matmul(x, MatmulStrategy::Autotune) }").iter().any(|path| leaves_the_choice(path)));
    let kernels = used("use burn_cubecl::{CubeBackend, kernel::{untile, matmul::{self, launch}}};");
    let of_burn: Vec<_> = kernels.iter().filter(|path| path.starts_with("burn_cubecl::kernel")).collect();
    assert_eq!(
        of_burn,
        ["burn_cubecl::kernel::untile", "burn_cubecl::kernel::matmul", "burn_cubecl::kernel::matmul::launch"]
    );
}
