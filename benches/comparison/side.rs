//! A process of its own for each side: determinism is enabled once a process, before the first tensor operation.

use anyhow::{Context, Result};
use burn::prelude::*;
use burn_deterministic::{Determinism, enable_op_determinism, set_random_seed};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// Which of the two computes.
#[derive(Clone, Copy, ValueEnum)]
pub enum Side {
    Burn,
    Here,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Burn => "burn",
            Self::Here => "here",
        }
    }

    /// The device in a process that has done nothing else.
    pub fn enter(self, seed: u64) -> Result<Device> {
        if let Self::Here = self {
            enable_op_determinism(Determinism::default())?;
            set_random_seed(seed);
        }
        let device = Device::default();
        if let Self::Burn = self {
            device.seed(seed);
        }
        Ok(device)
    }

    /// This program in a new process that finds no cache of the driver's or of CubeCL's, with `task` for this side.
    pub fn command(self, task: &str, caches: &EmptyFolder) -> Result<Command> {
        let mut command = Command::new(env::current_exe().context("finding this program's own path")?);
        command
            .args([task, self.name()])
            // CubeCL's cache lies in the target folder of the package it runs in, or else in the user's cache folder.
            .current_dir(&caches.0)
            .envs(
                ["MESA_SHADER_CACHE_DIR", "XDG_CACHE_HOME", "__GL_SHADER_DISK_CACHE_PATH", "CUDA_CACHE_PATH"]
                    .map(|name| (name, &caches.0)),
            )
            .stderr(Stdio::inherit());
        Ok(command)
    }
}

/// A folder that is removed when dropped.
pub struct EmptyFolder(PathBuf);

impl EmptyFolder {
    pub fn new() -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("burn-deterministic-bench-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        // What is left in the temporary folder does no harm.
        let _ = fs::remove_dir_all::<&Path>(&self.0);
    }
}
