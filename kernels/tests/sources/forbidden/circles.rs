//! Circles of imports: none among the files of a crate, and none among the modules at its top.
//!
//! An import is of the file that defines the name, through every re-export on the way; a re-export itself is none. Tests may
//! import anything.

use super::backend::add_use;
use super::sources;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

/// The path of a module in its crate.
type Module = Vec<String>;

/// Edges of a graph of modules.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// What a file names of its crate.
#[derive(Default)]
struct File {
    /// The module that is being visited.
    module: Module,
    /// Paths as they are spelled, and the module in which they are.
    named: Vec<(Module, String)>,
    /// Re-exported paths, by their last name.
    exported: BTreeMap<String, String>,
}

impl<'ast> Visit<'ast> for File {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        add_use(&mut paths, "", &item.tree);
        match item.vis {
            _ if is_test(&item.attrs) => {}
            Visibility::Inherited => self.named.extend(paths.into_iter().map(|path| (self.module.clone(), path))),
            _ => self.exported.extend(paths.into_iter().map(|path| {
                let name = path.rsplit("::").next().expect("a path has a last name");
                (name.to_owned(), path)
            })),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.named.push((self.module.clone(), names.join("::")));
        }
        visit::visit_path(self, path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let tests = |list: &syn::MetaList| list.tokens.to_string().split(|c: char| !c.is_alphabetic()).any(|w| w == "test");
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && matches!(&attribute.meta, syn::Meta::List(list) if tests(list))
    })
}

/// The files of a crate, by their modules.
struct Crate(BTreeMap<Module, File>);

impl Crate {
    fn of(sources: &[(String, syn::File)]) -> Self {
        let files = sources.iter().map(|(path, source)| {
            let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|name| name == "mod" || name == "lib") {
                module.pop();
            }
            let mut file = File { module: module.clone(), ..File::default() };
            file.visit_file(source);
            (module, file)
        });
        Self(files.filter(|(module, _)| !module.iter().any(|name| name == "tests")).collect())
    }

    /// The file that defines what is spelled `path` in `module`, if it is of this crate.
    fn defines(&self, module: &Module, path: &str) -> Option<Module> {
        let mut names = path.split("::").peekable();
        let mut full = match *names.peek()? {
            "crate" => Module::new(),
            "self" | "super" => module.clone(),
            child if self.0.contains_key(&[&module[..], &[child.to_owned()]].concat()) => module.clone(),
            _ => return None,
        };
        for name in names {
            match name {
                "crate" | "self" => {}
                "super" => drop(full.pop()),
                name => full.push(name.to_owned()),
            }
        }
        let end = (0..=full.len()).rev().find(|&end| self.0.contains_key(&full[..end]))?;
        let file = full[..end].to_vec();
        match full.get(end).and_then(|name| self.0[&file].exported.get(name)) {
            Some(path) => self.defines(&file, path),
            None => Some(file),
        }
    }

    fn imports(&self) -> Graph {
        let of_file = |(module, file): (&Module, &File)| {
            let defined = file.named.iter().filter_map(|(inside, path)| self.defines(inside, path));
            (module.clone(), defined.filter(|other| other != module).collect())
        };
        self.0.iter().map(of_file).collect()
    }
}

/// The imports of the modules at the top of a crate.
fn at_the_top(imports: &Graph) -> Graph {
    let mut tops = Graph::new();
    for (module, others) in imports.iter().filter(|(module, _)| !module.is_empty()) {
        let others = others.iter().map(|other| other.iter().take(1).cloned().collect::<Module>());
        let others = others.filter(|other| other[..] != module[..1]);
        tops.entry(module[..1].to_vec()).or_default().extend(others);
    }
    tops
}

/// The imports that are part of a circle, or on a way from one to another.
fn circles(mut graph: Graph) -> Vec<String> {
    loop {
        let imported: BTreeSet<_> = graph.values().flatten().cloned().collect();
        let importing: BTreeSet<_> = graph.keys().cloned().collect();
        let before = graph.clone();
        graph.retain(|module, others| {
            others.retain(|other| importing.contains(other));
            imported.contains(module) && !others.is_empty()
        });
        if graph == before {
            let edges = graph.iter().flat_map(|(module, others)| others.iter().map(move |other| (module, other)));
            return edges.map(|(module, other)| format!("{} -> {}", module.join("::"), other.join("::"))).collect();
        }
    }
}

#[test]
fn imports_go_one_way() {
    for folder in ["src", "../src", "../recording/src", "../cli/src"] {
        let imports = Crate::of(&sources(folder)).imports();
        assert_eq!(circles(at_the_top(&imports)), [""; 0], "among the modules of {folder}");
        assert_eq!(circles(imports), [""; 0], "among the files of {folder}");
    }
}

#[test]
fn circles_are_found() {
    let circles_of = |files: &[(&str, &str)]| {
        let parse = |&(path, text): &(&str, &str)| (path.to_owned(), syn::parse_str(text).expect("an example parses"));
        let imports = Crate::of(&files.iter().map(parse).collect::<Vec<_>>()).imports();
        (circles(imports.clone()), circles(at_the_top(&imports)))
    };
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B;"),
        ("b/mod.rs", "mod c; mod d; pub use c::B;"),
        ("b/c.rs", "fn f() { super::d::g() }"),
    ];
    let with = |last| circles_of(&[&files[..], &[("b/d.rs", last)]].concat());
    assert_eq!(with("use crate::a::A;").0, ["a -> b::c", "b::c -> b::d", "b::d -> a"]);
    assert_eq!(with("use crate::a::A;").1, ["a -> b", "b -> a"]);
    assert_eq!(with("mod inside { use super::super::B; }").0, ["b::c -> b::d", "b::d -> b::c"]);
    assert_eq!(with("#[cfg(test)] mod tests { use crate::a::A; }"), (vec![], vec![]));
    // Two files may import two others of each other's folder; the folders may not.
    let folders = [("a/b.rs", "use crate::c::d;"), ("c/d.rs", ""), ("c/e.rs", "use crate::a::f;"), ("a/f.rs", "")];
    assert_eq!(circles_of(&folders), (vec![], vec!["a -> c".to_owned(), "c -> a".to_owned()]));
}
