//! Findings of the checks: collected by kind and kernel, told once each.

use crate::settings::{Findings, settings};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The status of a process whose kernels had findings.
pub const STATUS: i32 = 97;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An access outside every buffer of the launch.
    Memory,
    /// A read of bytes that nobody wrote since their allocation.
    Initialisation,
    /// Two threads of a block at one address without a barrier between them, at least one of them writing.
    ThreadRace,
    /// Two blocks of a launch at one address, at least one of them writing.
    BlockRace,
    /// A barrier that not every thread of the block reaches.
    Barrier,
    /// A write to what the kernel declares as written by nothing.
    Constant,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memcheck",
            Self::Initialisation => "initcheck",
            Self::ThreadRace => "racecheck (threads)",
            Self::BlockRace => "racecheck (blocks)",
            Self::Barrier => "synccheck",
            Self::Constant => "restrictcheck",
        })
    }
}

/// A kind of finding in a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// The kernel's name, or the driver's function.
    pub kernel: String,
    /// The first occurrence: block, thread, buffer, byte offset.
    pub first: String,
    /// How often it occurred.
    pub count: u64,
}

fn all() -> MutexGuard<'static, BTreeMap<(Kind, String), Finding>> {
    static ALL: Mutex<BTreeMap<(Kind, String), Finding>> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a finding; `first` makes its text, the first time.
pub fn add(kind: Kind, kernel: &str, first: impl FnOnce() -> String) {
    let mut all = all();
    if let Some(known) = all.get_mut(&(kind, kernel.to_string())) {
        known.count += 1;
        return;
    }
    let finding = Finding { kind, kernel: kernel.to_string(), first: first(), count: 1 };
    let line = format!("cuda-emulator: {kind}: kernel `{kernel}`: {}\n", finding.first);
    match &settings().findings {
        Findings::Keep => {}
        Findings::Fail => eprint!("{line}"),
        Findings::File(path) => append(path, &line),
    }
    all.insert((kind, kernel.to_string()), finding);
}

/// The findings in a kernel so far, in the order of [`Kind`].
pub fn findings_of(kernel: &str) -> Vec<Finding> {
    all().values().filter(|finding| finding.kernel == kernel).cloned().collect()
}

/// At the end of a process: tells how often each finding occurred. Whether the process is to fail.
pub fn finish() -> bool {
    let all = all();
    let mut lines = String::new();
    for Finding { kind, kernel, count, .. } in all.values() {
        lines.push_str(&format!("cuda-emulator: {kind}: kernel `{kernel}`: {count} times\n"));
    }
    match &settings().findings {
        Findings::Keep => false,
        Findings::Fail => {
            eprint!("{lines}");
            !all.is_empty()
        }
        Findings::File(path) => {
            append(path, &lines);
            false
        }
    }
}

fn append(path: &Path, lines: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
        eprintln!("cuda-emulator: cannot write CUDA_EMULATOR_REPORT={}: {error}\n{lines}", path.display());
    }
}
