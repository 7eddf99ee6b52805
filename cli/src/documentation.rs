//! Tests of the command lines of `burn-deterministic` in the Markdown files of the repository.

use crate::Arguments;
use crate::markdown::{Markdown, command, commands_of, files};
use clap::{CommandFactory, Parser};
use std::path::Path;

/// What follows the name in spans that are no commands: a line of a Cargo.toml, and the first bytes of a recording.
const NO_COMMANDS: [&str; 2] = ["=", "recording"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the repository")
}

#[test]
fn every_command_is_one_that_exists() {
    let commands = commands_of(root(), "burn-deterministic");
    assert!(commands.len() > 4, "commands are found: {commands:?}");
    for (file, words) in commands {
        let parsed =
            Arguments::try_parse_from(std::iter::once("burn-deterministic").chain(words.iter().map(String::as_str)));
        if let Err(error) = parsed {
            panic!("{}: `burn-deterministic {}`: {error}", file.display(), words.join(" "));
        }
    }
}

/// Subcommands and options in text, where words in capitals stand for others.
#[test]
fn every_option_that_the_text_names_exists() {
    let cli = Arguments::command();
    let mut checked = 0;
    for file in files(root()) {
        for span in Markdown::read(&file).spans() {
            let words = command(&span);
            let Some(("burn-deterministic", [name, rest @ ..])) =
                words.split_first().map(|(program, rest)| (program.as_str(), rest))
            else {
                continue;
            };
            if NO_COMMANDS.contains(&name.as_str()) {
                continue;
            }
            checked += 1;
            let place = format!("{}: `{span}`", file.display());
            let subcommand = cli.find_subcommand(name).unwrap_or_else(|| panic!("{place}: there is no `{name}`"));
            let options = rest.iter().take_while(|word| *word != "--").filter_map(|word| word.strip_prefix("--"));
            for option in options {
                let is_known = subcommand.get_arguments().any(|argument| argument.get_long() == Some(option));
                assert!(is_known, "{place}: `{name}` has no `--{option}`");
            }
        }
    }
    assert!(checked > 5, "spans are found: {checked}");
}
