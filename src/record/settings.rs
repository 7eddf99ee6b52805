//! The environment variables of a recording.

use crate::error::Error;
use burn_deterministic_recording::Level;
use std::env;
use std::path::PathBuf;

/// The file.
const FILE: &str = "BURN_DETERMINISTIC_RECORD";

/// `weights`, `operations` or `operations:FIRST-LAST`.
const LEVEL: &str = "BURN_DETERMINISTIC_RECORD_LEVEL";

/// The file and the level that the environment asks for.
///
/// # Errors
///
/// [`Error::Variable`] for a level of another spelling.
pub(crate) fn of_environment() -> Result<Option<(PathBuf, Level)>, Error> {
    let Some(path) = env::var_os(FILE).filter(|path| !path.is_empty()) else { return Ok(None) };
    let level = match env::var(LEVEL) {
        Err(env::VarError::NotPresent) => Level::default(),
        Ok(text) => parsed(&text).ok_or_else(|| wrong(&text))?,
        Err(env::VarError::NotUnicode(text)) => return Err(wrong(&text.to_string_lossy())),
    };
    Ok(Some((path.into(), level)))
}

fn parsed(text: &str) -> Option<Level> {
    match text {
        "weights" => Some(Level::Weights),
        "operations" => Some(Level::Operations),
        text => {
            let (first, last) = text.strip_prefix("operations:")?.split_once('-')?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(Level::OperationsOf { first, last })
        }
    }
}

fn wrong(text: &str) -> Error {
    Error::Variable {
        name: LEVEL,
        value: text.to_owned(),
        expected: "`weights`, `operations` or `operations:FIRST-LAST` with numbers of steps",
    }
}

#[cfg(test)]
mod tests {
    use super::parsed;
    use burn_deterministic_recording::Level;

    #[test]
    fn levels_are_spelled() {
        assert_eq!(parsed("weights"), Some(Level::Weights));
        assert_eq!(parsed("operations"), Some(Level::Operations));
        assert_eq!(parsed("operations:3-3"), Some(Level::OperationsOf { first: 3, last: 3 }));
        for wrong in ["", "all", "operations:", "operations:3", "operations:4-3", "operations:a-b", "Weights"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
