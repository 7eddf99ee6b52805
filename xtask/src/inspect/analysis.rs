//! What becomes of each kernel on each device.

use std::thread;

use anyhow::{Context, Result};

use super::cases::Kernel;
use super::checks::{self, Finding};
use super::device::{DEVICES, Device, Occupancy};
use super::mix::{Accesses, mix};
use super::nvrtc::{Compiler, Contraction};
use super::resources::Resources;
use super::sass::Listing;

/// A kernel on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// What a thread and a block need.
    pub resources: Resources,
    /// Bytes of shared memory of a block, with what the launch adds.
    pub shared: u32,
    /// Blocks that a multiprocessor holds.
    pub occupancy: Occupancy,
    /// How wide it reads and writes.
    pub accesses: Accesses,
    /// The instructions of the hot loop, and how many; nothing for a kernel without loops.
    pub hot_loop: Option<(usize, String)>,
    /// What may not be there.
    pub findings: Vec<Finding>,
}

impl Analysis {
    /// Compiles a kernel for a device and looks at the result.
    pub fn of(compiler: &Compiler, kernel: &Kernel, device: &Device) -> Result<Self> {
        let Kernel { entry, source, threads, shared } = kernel;
        let named = || format!("compiling {entry} for {}", device.architecture);
        let compiled = compiler.compile(source, device, Contraction::Allowed).with_context(named)?;
        let listing = Listing::parse(&compiled.listing);
        let resources = Resources::parse(&compiled.log, entry)?;
        let mut findings = checks::instructions(&listing, source);
        findings.extend(checks::resources(&resources));
        let is_fused = |opcode: &&str| listing.count(opcode) > 0;
        if ["FFMA", "DFMA", "HFMA2"].iter().any(is_fused) {
            let forbidden = compiler.compile(source, device, Contraction::Forbidden).with_context(named)?;
            findings.extend(checks::contraction(&listing, &Listing::parse(&forbidden.listing)));
        }
        let shared = shared + resources.shared;
        Ok(Self {
            resources,
            shared,
            occupancy: device.occupancy(*threads, resources.registers, shared),
            accesses: Accesses::of(listing.instructions()),
            hot_loop: listing.hot_loop().map(|body| (body.len(), mix(body))),
            findings,
        })
    }
}

/// Each kernel on each of [`DEVICES`], with as many compilers side by side as there are.
pub fn analyse(compilers: &[Compiler], kernels: &[&Kernel]) -> Result<Vec<[Analysis; DEVICES.len()]>> {
    let on_all = |compiler: &Compiler, kernel: &Kernel| {
        let [first, second] = &DEVICES;
        Ok([Analysis::of(compiler, kernel, first)?, Analysis::of(compiler, kernel, second)?])
    };
    let share = |compiler: usize| kernels.iter().skip(compiler).step_by(compilers.len());
    let shares = thread::scope(|scope| {
        let workers: Vec<_> = (0..compilers.len())
            .map(|index| scope.spawn(move || share(index).map(|kernel| on_all(&compilers[index], kernel)).collect()))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<Vec<_>>>| worker.join().expect("a worker ends");
        workers.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    let mut shares: Vec<_> = shares.into_iter().map(Vec::into_iter).collect();
    let count = shares.len();
    Ok((0..kernels.len()).map(|index| shares[index % count].next().expect("a result for each kernel")).collect())
}
