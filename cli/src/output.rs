//! What the commands print and write.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes to stdout, and at once: what follows may take long.
///
/// # Errors
///
/// When stdout is closed, as by `head`; see [`is_closed_pipe`].
pub fn print(text: impl Display) -> Result<()> {
    print_bytes(text.to_string().as_bytes())
}

/// [`print`], for what need not be text.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("writing to stdout")
}

/// Writes a line to stderr, unless that is closed.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a file, and the folders above it.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Whether a command was ended by a reader that wants no more of its output, which is no error to speak of.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe))
}
