//! The bundle's folder: its programs, compressed by xz, and what they need.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use crate::stage::Program;

/// The folder in which this program lies, and that of a run's results.
pub struct Folders {
    bundle: PathBuf,
    results: PathBuf,
}

impl Folders {
    /// Makes `results` with a folder for programs, caches and the logs of the present stage.
    pub fn new(bundle: PathBuf, results: PathBuf) -> Result<Self> {
        let folders = Self { bundle, results };
        let work = folders.work();
        if work.exists() {
            fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))?;
        }
        let logs = work.join("logs");
        fs::create_dir_all(&logs).with_context(|| format!("creating {}", logs.display()))?;
        // Programs run in another folder.
        let results = fs::canonicalize(&folders.results).context("finding the folder of the results")?;
        Ok(Self { results, ..folders })
    }

    /// The digests that trainings ended with when they were recorded.
    pub fn goldens(&self) -> PathBuf {
        self.bundle.join("goldens.json")
    }

    /// What the bundle was made of.
    pub fn about(&self) -> String {
        let path = self.bundle.join("about.txt");
        fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
    }

    /// The folder for what is left at the end: a few files, because some machines give back no more.
    pub fn results(&self) -> &Path {
        &self.results
    }

    /// The digests of this run.
    pub fn recorded(&self) -> PathBuf {
        self.results.join("goldens.json")
    }

    pub fn log(&self, name: &str) -> PathBuf {
        self.work().join("logs").join(format!("{name}.txt"))
    }

    /// Appends the logs of a stage to the one file that is left of them.
    pub fn gather_logs(&self, stage: &str) -> Result<()> {
        let path = self.results.join("logs.txt");
        let all = File::options().create(true).append(true).open(&path);
        let mut all = all.with_context(|| format!("opening {}", path.display()))?;
        let folder = self.work().join("logs");
        let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        let mut logs =
            entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().context("reading a folder")?;
        logs.sort_unstable();
        for log in logs {
            let name = log.file_stem().unwrap_or_default().display().to_string();
            let text = fs::read(&log).with_context(|| format!("reading {}", log.display()))?;
            write!(all, "\n==== {stage}: {name}\n\n")
                .and_then(|()| all.write_all(&text))
                .with_context(|| format!("writing {}", path.display()))?;
            fs::remove_file(&log).with_context(|| format!("removing {}", log.display()))?;
        }
        Ok(())
    }

    /// Where programs run and leave their caches.
    pub fn work(&self) -> PathBuf {
        self.results.join("work")
    }

    /// A program, unpacked where it was not yet.
    pub fn program(&self, program: Program) -> Result<PathBuf> {
        let path = self.work().join(program.name());
        if !path.exists() {
            unpack(&self.bundle.join("programs").join(format!("{}.xz", program.name())), &path)?;
        }
        Ok(path)
    }
}

fn unpack(packed: &Path, program: &Path) -> Result<()> {
    println!("  unpacking {}", packed.display());
    let source = File::open(packed).with_context(|| format!("opening {}", packed.display()))?;
    // Under another name until it is whole.
    let part = program.with_extension("part");
    let mut target = BufWriter::new(File::create(&part).with_context(|| format!("creating {}", part.display()))?);
    lzma_rs::xz_decompress(&mut BufReader::new(source), &mut target)
        .map_err(|error| anyhow!("unpacking {}: {error:?}; copy the bundle again", packed.display()))?;
    drop(target.into_inner().with_context(|| format!("writing {}", part.display()))?);
    fs::set_permissions(&part, fs::Permissions::from_mode(0o755)).context("making a program executable")?;
    fs::rename(&part, program).with_context(|| format!("renaming {}", part.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_end_in_one_file() {
        let folder = std::env::temp_dir().join(format!("bundle-{}-logs", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let gather = |stage: &str| {
            let folders = Folders::new(folder.clone(), folder.join("results")).expect("a temporary folder");
            fs::write(folders.log(stage), format!("said by {stage}\n")).expect("a temporary folder");
            folders.gather_logs(stage).expect("a temporary folder");
        };
        gather("kernels");
        gather("suite");
        let text = fs::read_to_string(folder.join("results/logs.txt")).expect("it was written");
        assert_eq!(text, "\n==== kernels: kernels\n\nsaid by kernels\n\n==== suite: suite\n\nsaid by suite\n");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_damaged_program_is_an_error_that_names_it() {
        let folder = std::env::temp_dir().join(format!("bundle-{}-programs", std::process::id()));
        fs::create_dir_all(folder.join("programs")).expect("a temporary folder");
        fs::write(folder.join("programs/suite.xz"), "no archive").expect("a temporary folder");
        let folders = Folders::new(folder.clone(), folder.join("results")).expect("a temporary folder");
        let error = format!("{:#}", folders.program(Program::Suite).expect_err("it is damaged"));
        assert!(error.contains("suite.xz") && error.contains("copy the bundle again"), "{error}");
        assert!(!folders.work().join("suite").exists());
        let _ = fs::remove_dir_all(&folder);
    }
}
