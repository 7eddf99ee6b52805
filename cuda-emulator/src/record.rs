//! What the emulator was given to compile and to launch, written to `CUDA_EMULATOR_SOURCES`.

use crate::settings::Settings;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

/// A kernel, as it was given.
pub struct Recorded {
    /// The file of its source, if that was written.
    pub file: Option<String>,
    /// Its entry.
    pub name: String,
}

/// The extent of a launch.
pub struct Extent {
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

/// Writes a source, named by its hash, and returns the name; nothing where it is not to be written.
pub fn source(source: &str, settings: &Settings) -> Result<Option<String>, String> {
    let Some(folder) = &settings.sources else { return Ok(None) };
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let name = format!("{:016x}.cu", hasher.finish());
    fs::write(folder.join(&name), source).map_err(|error| failure(folder, &error))?;
    Ok(Some(name))
}

/// Adds a line to `launches.tsv`: source, entry, blocks, threads of a block, bytes of shared memory of a block.
pub fn launch(kernel: &Recorded, extent: &Extent, settings: &Settings) -> Result<(), String> {
    let (Some(folder), Some(file)) = (&settings.sources, &kernel.file) else { return Ok(()) };
    let Extent { blocks, threads, shared } = extent;
    let line = format!("{file}\t{}\t{blocks}\t{threads}\t{shared}\n", kernel.name);
    let list = OpenOptions::new().create(true).append(true).open(folder.join("launches.tsv"));
    // In one write, so that lines of several threads do not mix.
    list.and_then(|mut list| list.write_all(line.as_bytes())).map_err(|error| failure(folder, &error))
}

fn failure(folder: &Path, error: &std::io::Error) -> String {
    format!("cannot write to CUDA_EMULATOR_SOURCES={}: {error}; name a folder that exists", folder.display())
}
