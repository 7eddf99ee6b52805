//! Counts of a process.

use crate::settings::{Counts, settings};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

pub static LAUNCHES: AtomicU64 = AtomicU64::new(0);
pub static COMPILED: AtomicU64 = AtomicU64::new(0);
pub static CACHED: AtomicU64 = AtomicU64::new(0);
pub static TO_DEVICE: AtomicU64 = AtomicU64::new(0);
pub static TO_HOST: AtomicU64 = AtomicU64::new(0);
pub static ON_DEVICE: AtomicU64 = AtomicU64::new(0);
pub static BARRIERS: AtomicU64 = AtomicU64::new(0);
pub static READ: AtomicU64 = AtomicU64::new(0);
pub static WRITTEN: AtomicU64 = AtomicU64::new(0);

const NAMES: [(&str, &AtomicU64); 9] = [
    ("launches", &LAUNCHES),
    ("kernels compiled", &COMPILED),
    ("kernels from the cache", &CACHED),
    ("bytes copied to the device", &TO_DEVICE),
    ("bytes copied to the host", &TO_HOST),
    ("bytes copied on the device", &ON_DEVICE),
    ("barriers of a block", &BARRIERS),
    ("bytes read by kernels (where checked)", &READ),
    ("bytes written by kernels (where checked)", &WRITTEN),
];

pub fn add(count: &AtomicU64, n: u64) {
    count.fetch_add(n, Ordering::Relaxed);
}

/// Writes the counts where the settings say, one a line: the number, a tab, and what is counted.
pub fn write() {
    let Some(place) = settings().count.clone() else { return };
    let mut lines = String::new();
    for (name, count) in NAMES {
        let _ = writeln!(lines, "{}\t{name}", count.load(Ordering::Relaxed));
    }
    match place {
        Counts::Stderr => eprint!("{lines}"),
        Counts::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(&path);
            if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
                eprintln!("cuda-emulator: cannot write CUDA_EMULATOR_COUNT={}: {error}", path.display());
            }
        }
    }
}
