//! Tests of the Markdown files: commands, links and blocks. Their Rust is run by the library's documentation tests.

use crate::Cli;
use crate::markdown::{Markdown, command, files};
use crate::workspace::root;
use clap::{CommandFactory, Parser};
use std::collections::BTreeSet;
use std::path::Path;

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
