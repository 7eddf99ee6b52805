//! What can be wrong with a checkpoint, and what to do.

use super::versions::Versions;
use crate::error::debug_as_display;
use burn_backend::{DType, Shape};
use burn_deterministic_recording::EnvironmentDifference;
use std::fmt;
use std::io;
use std::path::PathBuf;

debug_as_display!(Error);

/// Why a checkpoint was not written, not read or not restored.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused something. At a path that was to be written is what was there before, or the whole new file, if
    /// only its folder could not be synced.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The file is not a checkpoint of this crate.
    #[error("`{}` is not a checkpoint: it does not begin as one does; give a file that `Checkpoint::save` wrote", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },

    /// The file was written by a version of this crate with another format.
    #[error(
        "`{}` has version {version} of the checkpoint format, and this version of burn-deterministic reads {supported} \
         only; load it with the version that wrote it{}",
        path.display(),
        written_by.as_ref().map(|versions| format!(", {versions}")).unwrap_or_default()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version that this crate reads.
        supported: u32,
        /// What wrote it, where its header says so.
        written_by: Option<Versions>,
    },

    /// The file is shorter or longer than it says.
    #[error(
        "`{}` is incomplete or has something appended: its header says {expected} bytes, and it has {found}; use an \
         earlier checkpoint",
        path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length by its header.
        expected: u64,
        /// Its length.
        found: u64,
    },

    /// The contents are not what was written.
    #[error("`{}` is damaged: {reason}; use an earlier checkpoint", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },

    /// Another writer has the folder open.
    #[error(
        "`{}` is locked: {} writes checkpoints there; end it or wait for its end, or train in another folder (to read \
         checkpoints beside a training, use `checkpoint::Checkpoints`)",
        folder.display(),
        holder_name(*holder)
    )]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process id of the other writer, where it could be read.
        holder: Option<u32>,
    },

    /// The file system of the folder has no locks, so another writer would not be noticed.
    #[error(
        "cannot lock `{}`: {source}; keep the checkpoints on a file system that has locks (`flock`), or write files by \
         `Checkpoint::save`, which takes none",
        path.display()
    )]
    LockUnavailable {
        /// The file to be locked.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The folder holds checkpoints of another branch of the training.
    #[error(
        "the checkpoint of step {step} is not saved in `{}`: the newest one there is of step {newest}, and {}; to go on from \
         the newest, load it by `CheckpointWriter::latest()`; to go on from an earlier step, call \
         `CheckpointWriter::truncate_after(step)`, which removes the later files; to start again, `clear()`, which removes \
         all; to keep them, use another folder",
        folder.display(),
        if step < newest {
            "this step comes before it"
        } else {
            "this writer does not know that the training goes on from it"
        }
    )]
    OtherBranch {
        /// The folder.
        folder: PathBuf,
        /// The step that was to be saved.
        step: u64,
        /// The step of the newest checkpoint there.
        newest: u64,
    },

    /// Other versions took the checkpoint, under which bits can differ.
    #[error(
        "{checkpoint} was taken under other versions, and what is computed under these can have other bits: go on with \
         the versions that took it, or accept that by `Checkpoint::resume_across_versions` in the place of `resume`"
    )]
    OtherVersions {
        /// The checkpoint.
        checkpoint: String,
        /// What took it.
        written_by: Versions,
    },

    /// The checkpoint was taken in another environment, in which bits can differ.
    #[error(
        "{checkpoint} was taken in another environment, and what is computed here can have other bits; then against now: {}; \
         go on where it was taken, or accept that by `Checkpoint::resume` in the place of `resume_in_same_environment`",
        joined(differences)
    )]
    OtherEnvironment {
        /// The checkpoint.
        checkpoint: String,
        /// What differs: its environment first, the present one second.
        differences: Vec<EnvironmentDifference>,
    },

    /// Two parts were given the same name.
    #[error("the checkpoint has a part named `{name}` already; give each part a name of its own")]
    Duplicate {
        /// The name.
        name: String,
    },

    /// There is no such part, or it has been restored already.
    #[error("{checkpoint} has no {kind} named `{name}` left to restore; it has {present}")]
    Missing {
        /// The checkpoint.
        checkpoint: String,
        /// What was asked for.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The parts that are there.
        present: String,
    },

    /// Parts that nothing was restored from: the run would go on without them.
    #[error("{checkpoint} also has {parts}, which was not restored; restore every part before `resume`")]
    Unrestored {
        /// The checkpoint.
        checkpoint: String,
        /// The parts.
        parts: String,
    },

    /// A tensor could not be read from its device.
    #[error("{} of `{name}` cannot be read: {reason}", tensor(path.as_deref()))]
    Unreadable {
        /// The part.
        name: String,
        /// The tensor's path; `None` in an optimizer, whose record does not say which tensor it was.
        path: Option<String>,
        /// The error that its operations left on it.
        reason: String,
    },

    /// Two tensors of a module have the same path, so they cannot be distinguished.
    #[error("`{name}` has two parameters at `{path}`; let the module's `visit` enter each under a name of its own")]
    Ambiguous {
        /// The part.
        name: String,
        /// The path.
        path: String,
    },

    /// An optimizer holds state of a parameter that the module does not have.
    #[error(
        "the optimizer `{name}` holds state of a parameter (`{path}` when it was last stepped) that is not in the module \
         given with it; pass the module that it optimizes"
    )]
    NotOfTheModule {
        /// The part.
        name: String,
        /// The parameter's path by the optimizer.
        path: String,
    },

    /// The module or optimizer at hand is not the one that was saved.
    #[error(
        "`{name}` of {checkpoint} does not fit: {}; build the module and the optimizer as they were when it was saved",
        joined(mismatches)
    )]
    Mismatch {
        /// The part.
        name: String,
        /// The checkpoint.
        checkpoint: String,
        /// Every difference, by path.
        mismatches: Vec<Mismatch>,
    },

    /// The random state could not be taken or restored.
    #[error(transparent)]
    Random(#[from] crate::error::Error),

    /// A record or value could not be turned into bytes or back.
    #[error("`{name}` cannot be {action}: {reason}")]
    Value {
        /// The part.
        name: String,
        /// `saved` or `restored`.
        action: &'static str,
        /// What the serializer said.
        reason: String,
    },
}

/// A difference between what was saved and what is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the parameter, buffer, flag or state.
    pub path: String,
    /// What differs.
    pub difference: Difference,
}

/// What differs between something saved and its like at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// It was not saved.
    NotSaved,
    /// It was saved, and is not there now.
    NotThere,
    /// One is a float tensor, say, and the other a flag.
    Kind {
        /// What was saved.
        saved: &'static str,
        /// What is there.
        present: &'static str,
    },
    /// The shapes differ.
    Shape {
        /// The shape saved.
        saved: Shape,
        /// The shape at hand.
        present: Shape,
    },
    /// The dtypes differ.
    DType {
        /// The dtype saved.
        saved: DType,
        /// The dtype at hand.
        present: DType,
    },
    /// One requires gradients and the other is frozen.
    Trainable {
        /// Whether the one saved required gradients.
        saved: bool,
    },
    /// A flag of the module is set in one and not in the other.
    Flag {
        /// The flag saved.
        saved: bool,
    },
    /// It had not been initialised, so its values were to come from random numbers still to be drawn.
    Initialised,
    /// It shares its identity with another parameter in one, and not in the other.
    Tied {
        /// The first parameter of the same identity when it was saved.
        saved: Option<String>,
        /// The first parameter of the same identity now.
        present: Option<String>,
    },
    /// Loaded into the optimizer and read back, it has another value.
    Value,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.path)?;
        match &self.difference {
            Difference::NotSaved => write!(f, "was not saved"),
            Difference::NotThere => write!(f, "was saved, and is not there now"),
            Difference::Kind { saved, present } => write!(f, "was a {saved}, and is a {present}"),
            Difference::Shape { saved, present } => write!(f, "was {:?}, and is {:?}", &saved[..], &present[..]),
            Difference::DType { saved, present } => write!(f, "was {}, and is {}", saved.name(), present.name()),
            Difference::Trainable { saved: true } => write!(f, "was trainable, and is frozen"),
            Difference::Trainable { saved: false } => write!(f, "was frozen, and is trainable"),
            Difference::Flag { saved: true } => write!(f, "was set, and is not"),
            Difference::Flag { saved: false } => write!(f, "was not set, and is"),
            Difference::Initialised => write!(f, "was not initialised, and is; restore before its first use"),
            Difference::Tied { saved, present } => {
                let with = |other: &Option<String>| match other {
                    Some(path) => format!("tied to `{path}`"),
                    None => "not tied".to_owned(),
                };
                write!(f, "was {}, and is {}", with(saved), with(present))
            }
            Difference::Value => write!(f, "does not come back as it was saved"),
        }
    }
}

fn holder_name(holder: Option<u32>) -> String {
    match holder {
        Some(id) if id == std::process::id() => "this process".to_owned(),
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    }
}

fn tensor(path: Option<&str>) -> String {
    path.map_or_else(|| "a tensor".to_owned(), |path| format!("`{path}`"))
}

/// `a; b; c`.
pub(super) fn joined(items: &[impl fmt::Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
