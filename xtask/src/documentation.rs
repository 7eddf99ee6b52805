//! Tests of the Markdown files: commands, links and blocks. Their Rust is run by the library's documentation tests.

use crate::Cli;
use crate::markdown::{Markdown, command, files};
use crate::workspace::root;
use clap::{CommandFactory, Parser};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Each file, with its path from the root.
fn documents() -> Vec<(String, Markdown)> {
    let files = files(root()).into_iter();
    let all: Vec<(String, Markdown)> = files.map(|path| (name(&path), Markdown::read(&path))).collect();
    assert!(all.iter().any(|(name, _)| name == "README.md"), "the repository has a README");
    all
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).expect("a file of the repository").to_string_lossy().replace('\\', "/")
}

/// What a command of a shell's block starts, beside Cargo.
#[derive(Debug, PartialEq)]
enum Starts {
    /// This program.
    Xtask,
    /// Cargo itself.
    Cargo,
    /// A program whose own tests parse its commands: `burn-deterministic`, an example, a bundle's `run`.
    Tested,
    /// A command of the shell, Git, or a program that stands for the reader's.
    Other,
}

fn starts(words: &[String]) -> Option<Starts> {
    let second = words.get(1).map(String::as_str);
    match words[0].as_str() {
        "cargo" if second == Some("xtask") => Some(Starts::Xtask),
        "cargo" => Some(Starts::Cargo),
        "burn-deterministic" | "./run" => Some(Starts::Tested),
        program if program.starts_with("target/release/examples/") => Some(Starts::Tested),
        "git" | "cd" | "export" | "for" | "done" | "target/release/my_training" => Some(Starts::Other),
        _ => None,
    }
}

/// Why a command line of `cargo xtask` is wrong, from the name of its subcommand on.
fn refusal(words: &[String]) -> Option<String> {
    let words = std::iter::once("cargo xtask").chain(words.iter().map(String::as_str));
    Cli::try_parse_from(words).err().map(|error| error.to_string())
}

#[test]
fn every_command_is_one_that_exists() {
    let (mut wrong, mut parsed) = (Vec::new(), 0);
    for (file, document) in documents() {
        for words in document.commands() {
            let spelled = words.join(" ");
            let problem = match starts(&words) {
                Some(Starts::Xtask) => {
                    parsed += 1;
                    refusal(&words[2..])
                }
                Some(Starts::Cargo) => problem_of_cargo(&words),
                Some(Starts::Tested | Starts::Other) => None,
                None => Some("no test parses it".to_owned()),
            };
            wrong.extend(problem.map(|problem| format!("{file}: `{spelled}`: {problem}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(parsed > 5, "commands of `cargo xtask` are found: {parsed}");
}

/// Whether a command of Cargo's names features, examples and paths that exist.
fn problem_of_cargo(words: &[String]) -> Option<String> {
    let value = |option: &str| words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the root has a manifest");
    let manifest: toml::Value = toml::from_str(&manifest).expect("a manifest is TOML");
    let is_feature = |name: &str| manifest["features"].get(name).is_some();
    let features = value("--features").into_iter().flat_map(|names| names.split(','));
    let unknown =
        features.filter(|name| !name.contains('/') && !is_feature(name)).map(|name| format!("feature {name}"));
    let example = value("--example").filter(|name| !root().join("examples").join(name).is_dir());
    let path = value("--path").filter(|path| !root().join(path).is_dir());
    let missing = example.into_iter().chain(path).cloned();
    unknown.chain(missing).next().map(|name| format!("there is no {name}"))
}

/// Subcommands and options in text, where `NAME` and `[NAME]` stand for others.
#[test]
fn every_option_that_the_text_names_exists() {
    let cli = Cli::command();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (file, document) in documents() {
        for span in document.spans() {
            let words = command(&span);
            let ["cargo", "xtask", names, rest @ ..] = &words.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
                continue;
            };
            for name in names.split('|') {
                checked += 1;
                let Some(subcommand) = cli.find_subcommand(name) else {
                    wrong.push(format!("{file}: `{span}`: there is no `{name}`"));
                    continue;
                };
                let options = rest.iter().take_while(|word| **word != "--").filter_map(|word| word.strip_prefix("--"));
                let known: BTreeSet<&str> = subcommand.get_arguments().filter_map(|option| option.get_long()).collect();
                let unknown = options.map(|option| option.split('=').next().unwrap_or(option));
                let unknown = unknown.filter(|option| !known.contains(option));
                wrong.extend(unknown.map(|option| format!("{file}: `{span}`: `{name}` has no `--{option}`")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 20, "spans are found: {checked}");
}

#[test]
fn every_link_leads_somewhere() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (file, document) in documents() {
        let path = root().join(&file);
        for link in document.links() {
            if link.contains("://") {
                continue;
            }
            checked += 1;
            let (target, anchor) = link.split_once('#').map_or((link.as_str(), None), |(to, at)| (to, Some(at)));
            let target = if target.is_empty() { path.clone() } else { path.parent().expect("a folder").join(target) };
            if !target.exists() {
                wrong.push(format!("{file}: {link}: no such file"));
            } else if anchor.is_some_and(|anchor| !Markdown::read(&target).anchors().iter().any(|it| it == anchor)) {
                wrong.push(format!("{file}: {link}: no such heading"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "links are found: {checked}");
}

/// Markdown files whose Rust is run, by the crate's documentation or by `src/guides.rs`.
#[test]
fn every_block_of_rust_is_run() {
    let guides = std::fs::read_to_string(root().join("src/guides.rs")).expect("the guides are run");
    for (file, document) in documents() {
        for (language, _) in &document.blocks {
            // Rust's documentation tests take a block without a language for Rust.
            assert!(!language.is_empty(), "{file}: a block has no language");
            let is_run = file == "README.md" || guides.contains(&format!("\"../{file}\""));
            assert!(!language.starts_with("rust") || (language == "rust" && is_run), "{file}: no test runs its Rust");
        }
    }
}

/// Words that follow `pub` and a keyword in the sources of the library and of what it exports, and the variants of its
/// enumerations.
fn public_names() -> BTreeSet<String> {
    let mut folders: Vec<PathBuf> = ["src", "recording/src"].map(|folder| root().join(folder)).into();
    let mut names = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(public_names_of(&std::fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    names
}

fn public_names_of(source: &str) -> Vec<String> {
    let (mut names, mut is_in_enum) = (Vec::new(), false);
    for line in source.lines() {
        let words = line.trim_start().strip_prefix("pub ").unwrap_or_default();
        let words = words.strip_prefix("const ").unwrap_or(words);
        let item =
            ["fn ", "struct ", "enum ", "trait ", "type ", "mod "].iter().find_map(|kind| words.strip_prefix(kind));
        // A variant is at the first level of its enumeration.
        let variant = line.strip_prefix("    ").filter(|rest| is_in_enum && rest.starts_with(char::is_uppercase));
        names.extend(item.or(variant).map(|rest| first_name(rest).to_owned()));
        is_in_enum = words.starts_with("enum ") || is_in_enum && line != "}";
    }
    names
}

fn first_name(text: &str) -> &str {
    text.split(|character: char| !is_of_name(character)).next().unwrap_or_default()
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Names in code that are called, that lead a path, or that follow one.
fn used_names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(is_of_name) {
        let name = first_name(&code[at..]);
        let begins = !code[..at].ends_with(is_of_name) && name.starts_with(char::is_alphabetic);
        let rest = &code[at + name.len()..];
        if begins && (rest.starts_with('(') || rest.starts_with("::") || code[..at].ends_with("::")) {
            names.push(name);
        }
    }
    names
}

/// Names of Rust's, rand's and Burn's in the column of ours.
const NAMES_OF_OTHERS: [&str; 4] = ["burn_deterministic", "default", "new", "take"];

/// The guide for those who come from another library names what stands for its calls here.
#[test]
fn what_the_guide_from_other_libraries_names_exists() {
    let guide = Markdown::read(&root().join("docs/from-keras-and-pytorch.md"));
    let is_of_calls = |row: &&String| row.starts_with('|');
    let calls = guide.prose.iter().skip_while(|row| !row.starts_with("| their call | ours |")).take_while(is_of_calls);
    let known = public_names();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for row in calls {
        let ours = row.split(" | ").nth(1).unwrap_or_default();
        for span in Markdown::parse(ours).spans() {
            for name in used_names(&span).into_iter().filter(|name| !NAMES_OF_OTHERS.contains(name)) {
                checked += 1;
                if !known.contains(name) {
                    wrong.push(format!("`{span}`: this library has no public `{name}`"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "names are found: {checked}");
}

#[test]
fn a_name_that_is_not_public_is_found() {
    let source = "pub struct Kept;\nstruct Inner;\npub enum Kind {\n    One(u8),\n}\nimpl Kept {\n    pub const fn open() {}\n    \
                  Self::Two,\n}\n";
    assert_eq!(public_names_of(source), ["Kept", "Kind", "One", "open"]);
    assert_eq!(used_names("Kept::open(a, &b.c)?.d(Kind::One)"), ["Kept", "open", "d", "Kind", "One"]);
}

#[test]
fn a_wrong_command_a_wrong_option_and_a_wrong_link_are_found() {
    let document = Markdown::parse(
        "# A `b`, c!\n# A b c\n\n[to](x.md#y) and `cargo\nxtask test --strict`\n\n```sh\nA=1 cargo xtask tset # text\neval \"$(cargo \
         xtask driver)\"\n```\n",
    );
    assert_eq!(document.anchors(), ["a-b-c", "a-b-c-1"]);
    assert_eq!(document.links(), ["x.md#y"]);
    assert!(document.spans().contains(&"cargo xtask test --strict".to_owned()), "{:?}", document.spans());
    let commands = document.commands();
    assert_eq!(commands, [vec!["cargo", "xtask", "tset"], vec!["cargo", "xtask", "driver"]]);
    assert!(refusal(&commands[0][2..]).is_some() && refusal(&commands[1][2..]).is_none());
    assert_eq!(starts(&["unknown".to_owned()]), None);
    let words = |line: &str| command(line);
    assert!(
        problem_of_cargo(&words("cargo build --features wgpu,nothing")).is_some_and(|text| text.contains("nothing"))
    );
    assert!(problem_of_cargo(&words("cargo build --example nothing")).is_some());
    assert_eq!(problem_of_cargo(&words("cargo build --features wgpu --example digits_mlp")), None);
}
