//! Kernels compiled by g++, kept in a folder by the hash of their source, the header, the compiler with its options, and the
//! processor.

use crate::count;
use crate::settings::{Arithmetic, Settings};
use crate::source::{translate, with_quotients_by_reciprocals};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const HEADER: &str = include_str!("../include/cuda_emulator.h");

/// An element of a local array that nothing was assigned to holds a pattern, as new memory does, in place of what lay there.
const OPTIONS: &[&str] = &[
    "-std=c++17",
    "-O2",
    "-w",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-ftrivial-auto-var-init=pattern",
    "-march=native",
];

/// What arithmetic is compiled to. CUDA's compiler knows that a grid is narrower than 2^31, so that a zero which kernels take from its
/// width hides nothing from it: neither does it from a planted fault.
fn arithmetic(arithmetic: Arithmetic) -> Result<&'static [&'static str], String> {
    match arithmetic {
        Arithmetic::AsWritten | Arithmetic::Flushed | Arithmetic::Approximate => Ok(&["-ffp-contract=off"]),
        Arithmetic::Contracted | Arithmetic::Fast if !compiler()?.split_whitespace().any(|flag| flag == "fma") => {
            Err("contracted and fast arithmetic need a processor with fused multiply-add".to_owned())
        }
        Arithmetic::Contracted => {
            Ok(&["-ffp-contract=fast", "-DCUDA_EMULATOR_FMA_IS_A_SUM", "-DCUDA_EMULATOR_NARROW_GRID"])
        }
        Arithmetic::Reassociated => Ok(&[
            "-ffp-contract=off",
            "-fassociative-math",
            "-fno-signed-zeros",
            "-fno-trapping-math",
            "-DCUDA_EMULATOR_NARROW_GRID",
        ]),
        Arithmetic::Ampere => {
            Ok(&["-ffp-contract=off", "-DCUDA_EMULATOR_TENSOR_TERMS=8", "-DCUDA_EMULATOR_TENSOR_BITS=24"])
        }
        Arithmetic::Volta => {
            Ok(&["-ffp-contract=off", "-DCUDA_EMULATOR_TENSOR_TERMS=4", "-DCUDA_EMULATOR_TENSOR_BITS=23"])
        }
        Arithmetic::Fast => Ok(&["-ffast-math", "-DCUDA_EMULATOR_FMA_IS_A_SUM", "-DCUDA_EMULATOR_NARROW_GRID"]),
    }
}

/// With these g++ calls a function before each access to memory.
const CHECKED: &[&str] = &["-fsanitize=thread", "-DCUDA_EMULATOR_CHECK"];

/// The library of a source. Processes may compile the same source at once: each writes files of its own, and the last rename wins.
///
/// # Errors
///
/// What is not emulated, the compiler's log, or why the folder cannot be written.
pub fn compile(source: &str, settings: &Settings) -> Result<PathBuf, String> {
    let translated = match settings.arithmetic {
        Arithmetic::Approximate => with_quotients_by_reciprocals(&translate(source)?),
        _ => translate(source)?,
    };
    let checked = if settings.check { CHECKED } else { &[] };
    let options = [OPTIONS, arithmetic(settings.arithmetic)?, checked].concat();
    let key = [compiler()?, HEADER, &translated, &options.join(" ")].iter().fold(
        blake3::Hasher::new(),
        |mut hasher, part| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
            hasher
        },
    );
    let key = &key.finalize().to_hex()[..32];
    let library = settings.cache.join(format!("{key}.so"));
    if library.exists() {
        count::add(&count::CACHED, 1);
        return Ok(library);
    }
    let folder = &settings.cache;
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    static COMPILED: AtomicU64 = AtomicU64::new(0);
    let own = format!("{key}.{}.{}", process::id(), COMPILED.fetch_add(1, Ordering::Relaxed));
    let files = Files { folder: folder.join(own) };
    fs::create_dir(&files.folder).map_err(|error| format!("cannot create {}: {error}", files.folder.display()))?;
    for (name, text) in [("cuda_emulator.h", HEADER), ("kernel.cpp", &translated)] {
        fs::write(files.folder.join(name), text).map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    run(&files.folder, &[&options[..], &["-c", "kernel.cpp", "-o", "kernel.o"]].concat())?;
    // Linked by itself: with -fsanitize=thread g++ would add the sanitizer's own library.
    run(&files.folder, &["-shared", "kernel.o", "-o", "kernel.so"])?;
    let moved = fs::rename(files.folder.join("kernel.so"), &library);
    moved.map_err(|error| format!("cannot write {}: {error}", library.display()))?;
    // The source stays beside the library, to be read.
    let _ = fs::rename(files.folder.join("kernel.cpp"), library.with_extension("cpp"));
    count::add(&count::COMPILED, 1);
    Ok(library)
}

/// A folder that is removed at the end.
struct Files {
    folder: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("g++").args(arguments).current_dir(folder).output().map_err(cannot_run)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// What the compiler says of itself, and for which processor it compiles (`-march=native`): machines may share the folder.
fn compiler() -> Result<&'static str, String> {
    static VERSION: OnceLock<Result<String, String>> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let output = Command::new("g++").arg("--version").output().map_err(cannot_run)?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let processors =
            fs::read_to_string("/proc/cpuinfo").map_err(|error| format!("reading /proc/cpuinfo: {error}"))?;
        Ok(version + processor(&processors))
    });
    version.as_deref().map_err(Clone::clone)
}

/// What the first processor can do, one line of `/proc/cpuinfo`.
fn processor(processors: &str) -> &str {
    processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default()
}

fn cannot_run(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no g++ to compile CUDA kernels for the CPU: install GCC 12 or later".into(),
        _ => format!("cannot run g++: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::processor;

    #[test]
    fn a_processor_is_known_by_what_it_can_do() {
        let two = "processor\t: 0\nflags\t\t: fpu sse avx2\n\nprocessor\t: 1\nflags\t\t: fpu sse avx2\n";
        assert_eq!(processor(two), "flags\t\t: fpu sse avx2");
        assert_ne!(processor(&two.replace(" avx2", "")), processor(two));
    }
}
