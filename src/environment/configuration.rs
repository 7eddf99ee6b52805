//! Configuration files and environment variables that choose devices, drivers, kernels or schedules.

use burn_deterministic_recording::Environment;
use burn_std::config::{BurnConfig, RuntimeConfig};
use cubecl::config::CubeClRuntimeConfig;
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

/// Starts of the names of variables that can change bits.
const PREFIXES: [&str; 13] = [
    "BURN_", "CUBECL_", "CUDA_", "GALLIVM_", "HIP_", "HSA_", "LP_", "MESA_", "MTL_", "NVIDIA_", "ROCR_", "VK_", "WGPU_",
];

/// Starts of the names of those among them that cannot: this crate's own, which choose what is recorded or tested, and where
/// something is written or cached.
const IRRELEVANT: [&str; 12] = [
    "BURN_DETERMINISTIC_",
    "BURN_FUSION_LOG",
    "BURN_REMOTE_LOG",
    "CUBECL_DEBUG_",
    "CUBECL_CUDA_DUMP_",
    "CUDA_CACHE_",
    "CUDA_EMULATOR_CACHE",
    "CUDA_EMULATOR_COUNT",
    "CUDA_EMULATOR_REPORT",
    "CUDA_EMULATOR_SOURCES",
    "MESA_SHADER_CACHE_",
    "NVIDIA_DRIVER_CAPABILITIES",
];

pub(super) fn facts() -> Environment {
    let mut facts = Environment::new();
    if let Ok(folder) = env::current_dir() {
        set_files(&mut facts, &folder);
    }
    let variables = env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    for (name, value) in variables.filter(|(name, _)| decides(name)) {
        facts.set(format!("variable {name}"), value.to_string_lossy());
    }
    facts
}

/// Words in the names of variables that hold secrets, which belong in no file that people share: `NVIDIA_API_KEY`.
const SECRETS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/// Whether a variable of this name can change bits.
fn decides(name: &str) -> bool {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    starts(&PREFIXES) && !starts(&IRRELEVANT) && !SECRETS.iter().any(|word| name.contains(word))
}

/// The files in `folder` and above it that Burn and CubeCL look for. Each takes the nearest with a section for it; all are
/// noted, under their paths from `folder`, so that equal folders in different places are equal.
fn set_files(facts: &mut Environment, folder: &Path) {
    let sections = CubeClRuntimeConfig::section_file_names().iter().map(|(name, _)| *name);
    let names = BurnConfig::file_names().iter().chain(CubeClRuntimeConfig::file_names()).copied().chain(sections);
    let names: BTreeSet<&str> = names.collect();
    let mut upward = PathBuf::new();
    for folder in folder.ancestors() {
        for name in &names {
            if let Ok(bytes) = std::fs::read(folder.join(name)) {
                let hash = blake3::hash(&bytes).to_hex();
                facts.set(upward.join(name).to_string_lossy().replace('\\', "/"), format!("BLAKE3 {}", &hash[..32]));
            }
        }
        upward.push("..");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_choose_devices_decide_and_those_of_recordings_do_not() {
        for name in ["BURN_DEVICE", "CUDA_VISIBLE_DEVICES", "VK_DRIVER_FILES", "CUDA_EMULATOR_SEED", "LP_NUM_THREADS"] {
            assert!(decides(name), "{name}");
        }
        for name in [
            "NVIDIA_API_KEY",
            "BURN_CENTRAL_TOKEN",
            "BURN_DETERMINISTIC_RECORD",
            "HOSTNAME",
            "RUST_LOG",
            "CUBECL_DEBUG_LOG",
            "MY_CUDA_",
            "PWD",
        ] {
            assert!(!decides(name), "{name}");
        }
    }

    #[test]
    fn files_above_the_working_folder_are_noted_by_their_contents() {
        let root = tempfile::tempdir().expect("a folder for the test");
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("a folder in it");
        let facts = || {
            let mut facts = Environment::new();
            set_files(&mut facts, &inner);
            facts
        };
        let none = facts();
        std::fs::write(inner.join("cubecl.toml"), "a").expect("a file");
        std::fs::write(root.path().join("burn.toml"), "b").expect("a file");
        let noted: Vec<_> = none.differences(&facts()).into_iter().map(|found| (found.name, found.second)).collect();
        let value = |text: &str| Some(format!("BLAKE3 {}", &blake3::hash(text.as_bytes()).to_hex()[..32]));
        assert_eq!(noted, [("../../burn.toml".to_owned(), value("b")), ("cubecl.toml".to_owned(), value("a"))]);
    }
}
