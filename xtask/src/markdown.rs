//! Markdown files, as far as tests of the documentation read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The Markdown files under `root`, outside of Cargo's target folder and hidden ones, in ascending order.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display())) {
            let path = entry.expect("an entry of a folder").path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file's text: its lines outside of fenced blocks, and the lines of each block with the block's language.
pub struct Markdown {
    /// Lines outside of blocks.
    pub prose: Vec<String>,
    /// The language of each block, and its lines.
    pub blocks: Vec<(String, Vec<String>)>,
}

impl Markdown {
    /// Reads a file.
    pub fn read(path: &Path) -> Self {
        Self::parse(&fs::read_to_string(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display())))
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Self {
        let (mut prose, mut blocks, mut is_open) = (Vec::new(), Vec::<(String, Vec<String>)>::new(), false);
        for line in text.lines() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                if !is_open {
                    blocks.push((language.to_owned(), Vec::new()));
                }
                is_open = !is_open;
            } else if is_open {
                blocks.last_mut().expect("one is open").1.push(line.to_owned());
            } else {
                prose.push(line.to_owned());
            }
        }
        assert!(!is_open, "a block has no end");
        Self { prose, blocks }
    }

    /// The commands of the blocks for a shell, as words: without comments, variables that are set for one command, and
    /// the `eval` around one.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let lines = self.blocks.iter().filter(|(language, _)| language == "sh").flat_map(|(_, lines)| lines);
        lines.map(|line| command(line)).filter(|words| !words.is_empty()).collect()
    }

    /// The code spans outside of blocks, with single spaces.
    pub fn spans(&self) -> Vec<String> {
        // A span ends in its paragraph; an odd mark there is left alone.
        self.prose.split(|line| line.trim().is_empty()).flat_map(|paragraph| spans(&paragraph.join(" "))).collect()
    }

    /// Where links outside of blocks lead.
    pub fn links(&self) -> Vec<String> {
        let text = self.prose.join("\n");
        let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        ends.map(|(target, _)| target.to_owned()).collect()
    }

    /// The anchors of the headings, as GitHub makes them.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors = Vec::<String>::new();
        for heading in self.prose.iter().filter(|line| line.starts_with('#')) {
            let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            let anchor: String = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
            let earlier = anchors.iter().filter(|other| **other == anchor).count();
            anchors.push(if earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
        }
        anchors
    }
}

/// The words of a line for a shell.
pub fn command(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    let line = line.strip_prefix("eval \"$(").and_then(|inner| inner.strip_suffix(")\"")).unwrap_or(line);
    if line.starts_with('#') {
        return Vec::new();
    }
    let is_variable = |word: &&str| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    line.split_whitespace().skip_while(is_variable).map(str::to_owned).collect()
}

fn spans(paragraph: &str) -> Vec<String> {
    let normal = |span: &str| span.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = paragraph.split('`').collect();
    // Text and spans take turns, and text is last.
    parts
        .iter()
        .enumerate()
        .filter(|(nth, _)| nth % 2 == 1 && nth + 1 < parts.len())
        .map(|(_, span)| normal(span))
        .collect()
}

/// The commands of all files under `root` that start this program, each with its file and without the program's name.
pub fn commands_of(root: &Path, program: &str) -> Vec<(PathBuf, Vec<String>)> {
    let all = files(root).into_iter().flat_map(|file| {
        let commands = Markdown::read(&file).commands();
        commands.into_iter().map(move |words| (file.clone(), words))
    });
    let of_program = all.filter(|(_, words)| words[0].starts_with(program));
    of_program.map(|(file, words)| (file, words[1..].to_vec())).collect()
}
