//! How this crate was compiled.

use burn_deterministic_recording::Environment;
use cubecl_environment::persistence::Namespace;
use std::path::Path;

/// The version of the Burn crates that Cargo.toml pins.
pub(crate) const BURN: &str = "0.22.1";

/// Features of this crate that choose kernels, with whether each is on.
const FEATURES: [(&str, bool); 8] = [
    ("autotune", cfg!(feature = "autotune")),
    ("cuda", cfg!(feature = "cuda")),
    ("cuda-nvrtc", cfg!(feature = "cuda-nvrtc")),
    ("metal", cfg!(feature = "metal")),
    ("rocm", cfg!(feature = "rocm")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("webgpu", cfg!(feature = "webgpu")),
    ("wgpu", cfg!(feature = "wgpu")),
];

/// The version of this crate; behind a `+` the commit, where Cargo has it from a Git repository: `0.1.0+4931e51`. Of a path or a
/// vendored copy no commit is known.
pub(crate) fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        Some(commit) => format!("{version}+{commit}"),
        None => version.to_owned(),
    }
}

/// The commit of a package in this folder, where that is one of Cargo's checkouts: `~/.cargo/git/checkouts/NAME-HASH/COMMIT`. Its first 7
/// digits: how many Cargo gives differs from machine to machine.
fn commit(folder: &Path) -> Option<&str> {
    let commit = folder.file_name()?.to_str()?;
    let is_checkout = folder.parent()?.parent()?.ends_with("git/checkouts");
    let commit = commit.get(..7).filter(|_| commit.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    is_checkout.then_some(commit)
}

pub(super) fn facts() -> Environment {
    let mut facts = Environment::new();
    facts.set("burn-deterministic", version());
    facts.set("burn", BURN);
    facts.set("cubecl", cubecl());
    facts.set("compiler", env!("BURN_DETERMINISTIC_COMPILER"));
    facts.set("target", env!("BURN_DETERMINISTIC_TARGET"));
    facts.set("profile", env!("BURN_DETERMINISTIC_PROFILE"));
    let features: Vec<&str> = FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    facts.set("features", features.join(" "));
    facts
}

/// The version of CubeCL that is compiled in, which Cargo.toml does not pin: CubeCL tells it in the places of its caches
/// (`cubecl/0.11.3/..`) only.
fn cubecl() -> String {
    let namespace = Namespace::new("version");
    namespace.as_str().split('/').nth(1).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_those_of_cargos_checkouts() {
        let of = |folder: &'static str| commit(Path::new(folder));
        assert_eq!(of("/home/me/.cargo/git/checkouts/burn-deterministic-55f4bb5b2a1f0c36/4931e51"), Some("4931e51"));
        assert_eq!(
            of("/home/me/.cargo/git/checkouts/burn-deterministic-55f4bb5b2a1f0c36"),
            None,
            "the folder of the commits"
        );
        assert_eq!(of("/home/me/burn-deterministic"), None);
        assert_eq!(of("/home/me/vendor/4931e51"), None);
    }

    #[test]
    fn versions_are_those_of_the_build() {
        let lock = include_str!("../../Cargo.lock");
        let facts = facts();
        for name in ["burn", "cubecl", "burn-deterministic"] {
            let version = facts.get(name).expect("every build has versions");
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{name} {version}");
        }
        let compiler = facts.get("compiler").expect("a compiler");
        assert!(compiler.starts_with("rustc 1."), "{compiler}");
        assert!(facts.get("target").is_some_and(|target| target.contains(std::env::consts::ARCH)));
    }
}
