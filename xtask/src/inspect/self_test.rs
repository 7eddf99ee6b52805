//! Whether the checks see what they are for: kernels with one fault each.

use std::path::Path;

use anyhow::{Result, ensure};

use super::analysis::Analysis;
use super::cases::Kernel;
use super::checks::Kind;
use super::device::DEVICES;
use super::nvrtc::Compiler;
use super::tools::Tools;

/// A kernel and what it has to be reported for.
const FAULTS: [(&str, &str, &[Kind]); 10] = [
    ("atomic", include_str!("faults/atomic.cu"), &[Kind::Atomic]),
    ("shuffle", include_str!("faults/shuffle.cu"), &[Kind::Warp]),
    ("approximate", include_str!("faults/approximate.cu"), &[Kind::Approximate, Kind::Assembly]),
    ("reciprocal", include_str!("faults/reciprocal.cu"), &[Kind::Approximate, Kind::Assembly]),
    ("assembly", include_str!("faults/assembly.cu"), &[Kind::Assembly]),
    ("contraction", include_str!("faults/contraction.cu"), &[Kind::Contraction]),
    ("contraction_in_function", include_str!("faults/contraction_in_function.cu"), &[Kind::Contraction]),
    ("spill", include_str!("faults/spill.cu"), &[Kind::Spill]),
    ("stack", include_str!("faults/stack.cu"), &[Kind::Stack]),
    ("sound", include_str!("faults/sound.cu"), &[]),
];

/// Compiles each kernel for each device.
///
/// # Errors
///
/// Where a fault is not reported, or something that is none.
pub fn run(tools: &Tools, folder: &Path) -> Result<()> {
    let compiler = Compiler::new(tools, &folder.join("cache"), &folder.join("self-test"))?;
    for (entry, source, fault) in FAULTS {
        for device in &DEVICES {
            let (entry, source) = (entry.to_owned(), source.to_owned());
            let kernel = Kernel { entry, source, threads: 256, shared: 0 };
            let findings = Analysis::of(&compiler, &kernel, device)?.findings;
            let kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
            let (entry, on) = (&kernel.entry, device.architecture);
            ensure!(kinds == fault, "{entry} on {on}: want {fault:?}, got {findings:?}");
            for finding in findings {
                eprintln!("{entry} on {on}: {}, {}", finding.kind, finding.detail);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Tools, run};
    use crate::{skip::skip, workspace};

    #[test]
    fn planted_faults_are_reported() {
        // A test lies one folder deeper than the program.
        let profile = workspace::target().unwrap();
        let folder = profile.parent().unwrap().join("inspect");
        match Tools::kept(&folder.join("tools")) {
            Some(tools) => run(&tools, &folder).unwrap(),
            None => skip("NVRTC is not there: `cargo xtask inspect --self-test` fetches it"),
        }
    }
}
