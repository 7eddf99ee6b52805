//! The kernels of every case, from the example `gpu_plans` on the CUDA emulator, which keeps what it is given to compile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::cases::Case;
use crate::device::Device;
use crate::environment::Environment;
use crate::runtime::Runtime;
use crate::{emulator, workspace};

/// The example.
const EXAMPLE: &str = "gpu_plans";

/// A program of the example, and the variables that lead it to the emulator.
pub struct Program {
    path: PathBuf,
    environment: Environment,
}

impl Program {
    /// Builds the emulator, and the example where no built one is given.
    pub fn new(built: Option<&Path>) -> Result<Self> {
        let environment = emulator::prepare()?;
        if let Some(path) = built {
            return Ok(Self { path: path.to_owned(), environment });
        }
        let mut build = Device::new(Runtime::Emulator, environment.clone()).cargo("build");
        workspace::succeed(build.args(["--release", "--example", EXAMPLE]))?;
        let path = workspace::target()?.join("release/examples").join(EXAMPLE);
        Ok(Self { path, environment })
    }

    /// Every case, with its launches, through files under `folder`.
    pub fn cases(&self, folder: &Path) -> Result<Vec<Case>> {
        let list = self.run(&[], &[])?;
        let list = String::from_utf8(list.stdout).context("the list of cases is no text")?;
        let mut cases = list.lines().map(Case::parse).collect::<Result<Vec<_>>>()?;
        ensure!(!cases.is_empty(), "{} lists no case", self.path.display());
        for (index, case) in cases.iter_mut().enumerate() {
            // A process for each case: CubeCL compiles a kernel once in each, so that every case has all of its own.
            let sources = folder.join(index.to_string());
            if sources.exists() {
                fs::remove_dir_all(&sources).with_context(|| format!("removing {}", sources.display()))?;
            }
            fs::create_dir_all(&sources).with_context(|| format!("creating {}", sources.display()))?;
            self.run(&[&case.name], &[("CUDA_EMULATOR_SOURCES", &sources)])?;
            case.read_launches(&sources)?;
        }
        Ok(cases)
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &Path)]) -> Result<Output> {
        let mut command = Command::new(&self.path);
        self.environment.apply(&mut command);
        command.args(arguments).envs(variables.iter().copied()).env("CUDA_EMULATOR_NULL", "1");
        let spelled = workspace::spelled(&command);
        let output = command.output().with_context(|| format!("starting {spelled}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{spelled} failed: {}\n{said}", output.status);
        Ok(output)
    }
}
