//! The folder of `--checkpoint`: whose training its checkpoints are of.

use crate::Arguments;
use anyhow::{Context, Result, bail, ensure};
use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Checkpoints that are kept: earlier ones are for when the last cannot be read.
const KEPT: usize = 3;
/// The file in the folder that says what the training was started with.
const FILE: &str = "arguments.checkpoint";
const NAME: &str = "arguments";

/// What decides the weights of a training after some number of steps, by its name on the command line.
pub type Settings = BTreeMap<String, String>;

/// The settings of the training `name`.
pub fn settings(name: &str, arguments: &Arguments) -> Settings {
    fn given(argument: Option<impl Display>) -> String {
        argument.map_or_else(|| "its default".to_owned(), |argument| argument.to_string())
    }
    let settings = [
        ("the example", name.to_owned()),
        ("--seed", arguments.seed.to_string()),
        ("--batch-size", given(arguments.batch_size)),
        ("--learning-rate", given(arguments.learning_rate)),
        ("--dataset", format!("{:?}", arguments.dataset).to_lowercase()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Opens a folder for a training of these settings: an empty one, or with `resume` one of the same settings. No other
/// training can write there as long as the writer is kept.
pub fn open(folder: &Path, settings: &Settings, resume: bool) -> Result<CheckpointWriter> {
    let writer = CheckpointWriter::open(folder)?.keep(KEPT);
    let file = folder.join(FILE);
    if !file.exists() {
        Checkpoint::new(0)?.with_value(NAME, settings)?.save(&file)?;
        return Ok(writer);
    }
    let folder = folder.display();
    if !resume {
        bail!("`{folder}` holds the checkpoints of a training: go on with it by `--resume`, or give another folder");
    }
    let saved: Settings = Checkpoint::load(&file)?.value(NAME)?;
    let now = |name: &String| settings.get(name).map_or("nothing", String::as_str);
    let differing = saved.iter().filter(|(name, value)| now(name) != *value);
    let differing: Vec<String> =
        differing.map(|(name, value)| format!("{name} was {value}, and is {}", now(name))).collect();
    ensure!(
        differing.is_empty(),
        "`{folder}` holds the checkpoints of another training: {}; start again as then, or give another folder",
        differing.join("; ")
    );
    Ok(writer)
}

/// The last checkpoint in `folder`.
pub fn latest(writer: &mut CheckpointWriter) -> Result<Option<Checkpoint>> {
    writer.latest().context(
        "the last checkpoint cannot be read: remove its file, and `--resume` goes on from the one before it, to the same \
         weights",
    )
}
