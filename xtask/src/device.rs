//! Which device the children of this process compute on: what is compiled, and the variables that lead to it.
//!
//! In this order: what `--device` says; what the user's variables say; an NVIDIA GPU with its CUDA driver; and then Vulkan
//! (module `vulkan`).

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};
use clap::Args;

use crate::environment::Environment;
use crate::runtime::{LLVM_FEATURES, Runtime};
use crate::system::{Gpu, System, has_nvrtc, is_emulator};
use crate::{emulator, llvm, vulkan, workspace};

/// What the user says of the device.
#[derive(Args, Clone, Copy, Debug)]
pub struct Wanted {
    /// The device to compute on; without it, the best that is found
    #[arg(long, value_enum)]
    device: Option<Runtime>,

    /// Orders of blocks and threads to run under, with `--device emulator`: ascending, then shuffled by seeds 1, 2, ..
    #[arg(long, default_value_t = 1, requires = "device", value_parser = clap::value_parser!(u32).range(1..))]
    schedules: u32,

    /// Have CubeCL's LLVM compile CUDA kernels in place of NVRTC: untested, nobody has run what it makes on a GPU
    #[arg(long)]
    llvm: bool,
}

/// Options of `cargo xtask driver`.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    wanted: Wanted,

    /// Take SwiftShader, unpacked into the target folder, whatever else the machine has (Debian, no root needed)
    #[arg(long, conflicts_with_all = ["device", "llvm"])]
    swiftshader: bool,
}

/// A device, found.
#[derive(Clone, Debug)]
pub struct Device {
    runtime: Runtime,
    /// What compiles its kernels, if they are CUDA's.
    compiler: Compiler,
    /// Variables for the programs that compute on it.
    environment: Environment,
    schedules: u32,
}

/// What compiles CUDA kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    /// NVIDIA's, of the CUDA toolkit.
    Nvrtc,
    /// CubeCL's, which its build script fetches.
    Llvm,
}

impl Wanted {
    /// This device, under one schedule.
    pub fn device(runtime: Runtime) -> Self {
        Self { device: Some(runtime), schedules: 1, llvm: false }
    }

    /// Whether the user leaves the choice.
    pub fn is_any(self) -> bool {
        self.device.is_none()
    }
}

impl Device {
    /// A device with one schedule, which `environment` leads to; Burn takes its runtime where several are compiled in.
    pub fn new(runtime: Runtime, mut environment: Environment) -> Self {
        environment.set("BURN_DEVICE", runtime.burn_device());
        Self { runtime, compiler: Compiler::Nvrtc, environment, schedules: 1 }
    }

    /// The one feature set of tests, examples and benches on this device, so that one build serves all of them.
    pub fn features(&self) -> String {
        let features = match self.compiler {
            Compiler::Nvrtc => self.runtime.features(),
            Compiler::Llvm => LLVM_FEATURES,
        };
        format!("{features},autotune")
    }

    /// Whether CubeCL's LLVM is left out of its builds.
    fn is_without_llvm(&self) -> bool {
        self.compiler == Compiler::Nvrtc && self.runtime.is_without_llvm()
    }

    /// The variables for programs under each schedule, with the schedule's name where there are several.
    pub fn schedules(&self) -> Vec<(Option<String>, Environment)> {
        let shuffled = (1..self.schedules).map(|seed| {
            let mut environment = self.environment.clone();
            environment.set("CUDA_EMULATOR_SEED", seed.to_string());
            (Some(format!("shuffled by seed {seed}")), environment)
        });
        let ascending = (self.schedules > 1).then(|| "ascending".to_owned());
        std::iter::once((ascending, self.environment.clone())).chain(shuffled).collect()
    }

    /// The same device, under so many schedules.
    pub fn under(self, schedules: u32) -> Self {
        Self { schedules, ..self }
    }

    /// The device by its name.
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// A Cargo command that builds for this device: of the whole workspace, because of fewer packages Cargo takes fewer of
    /// Burn's features, and compiles Burn once more.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = workspace::cargo(subcommand);
        command.args(["--workspace", "--features", &self.features()]);
        if self.is_without_llvm() {
            // CubeCL's build scripts then fetch nothing; `build.rs` lets the linker do without it.
            command.env("DOCS_RS", "1");
        }
        command
    }
}

/// Prints the variables that the other commands hand to their children.
pub fn run(options: &Options) -> Result<ExitCode> {
    let device = match options.swiftshader {
        true => Device::new(Runtime::Wgpu, vulkan::swiftshader()?),
        false => find(options.wanted)?,
    };
    let without_llvm = if device.is_without_llvm() { "DOCS_RS=1 " } else { "" };
    eprintln!(
        "build in this repository with `{without_llvm}cargo build --release --workspace --features {}`",
        device.features()
    );
    for line in device.environment.export_lines() {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds a device, installing a software driver where there is none, and says in one line which it is and why.
pub fn find(wanted: Wanted) -> Result<Device> {
    let system = System::probe();
    let runtime = choose(wanted, &system)?;
    let mut device = match runtime {
        Runtime::Wgpu | Runtime::Vulkan => {
            // Hidden from CUDA by CUDA_VISIBLE_DEVICES a device would crash NVIDIA's Vulkan driver; BURN_DEVICE chooses.
            Device::new(runtime, vulkan::find()?)
        }
        Runtime::Cuda => {
            let library = system.cuda.as_deref().unwrap_or_else(|| "libcuda.so.1".as_ref());
            eprintln!("device: NVIDIA GPU, CUDA driver {}", library.display());
            let compiler = compiler(wanted, has_nvrtc(), llvm::is_there)?;
            eprintln!("CUDA kernels: compiled by {}", compiler.described());
            Device { compiler, ..Device::new(runtime, Environment::default()) }
        }
        Runtime::Emulator => {
            eprintln!("device: the processor, CUDA emulator");
            Device::new(runtime, emulator::prepare()?)
        }
        Runtime::Rocm => {
            eprintln!("device: AMD GPU, ROCm");
            Device::new(runtime, Environment::default())
        }
        Runtime::Metal => {
            eprintln!("device: Apple GPU, Metal");
            Device::new(runtime, Environment::default())
        }
    };
    device.schedules = wanted.schedules;
    Ok(device)
}

impl Compiler {
    /// Its name, the feature of the workspace that takes it, and what is known of it.
    fn described(self) -> &'static str {
        match self {
            Self::Nvrtc => "NVRTC (feature `cuda-nvrtc`)",
            Self::Llvm => "CubeCL's LLVM (feature `cuda`), which nobody has tried on a GPU",
        }
    }
}

/// The compiler of CUDA kernels: NVRTC, which tests have run with, unless the user asks for the other.
fn compiler(wanted: Wanted, has_nvrtc: bool, has_llvm: impl FnOnce() -> bool) -> Result<Compiler> {
    match wanted.llvm {
        false if has_nvrtc => Ok(Compiler::Nvrtc),
        false => bail!(
            "CUDA kernels: there is no NVRTC (libnvrtc.so) to compile them: install the CUDA toolkit, and have \
             LD_LIBRARY_PATH name the folder of its libraries, such as /usr/local/cuda/lib64; or take another device, such \
             as `--device wgpu`, or CubeCL's LLVM by `--llvm`, which nobody has tried on a GPU"
        ),
        true if has_llvm() => Ok(Compiler::Llvm),
        true => bail!(
            "--llvm: CubeCL's LLVM is not in ~/.cache/tracel, and cannot be fetched from {}: connect this machine to the \
             network, or install the CUDA toolkit and leave `--llvm` out",
            llvm::RELEASES
        ),
    }
}

/// The runtime for what the user wants, or for what the machine has.
fn choose(wanted: Wanted, system: &System) -> Result<Runtime> {
    let Wanted { device: wanted, schedules, llvm } = wanted;
    if schedules > 1 && wanted != Some(Runtime::Emulator) {
        bail!("--schedules: only the emulator has an order of blocks and threads to choose; add `--device emulator`");
    }

    let is_emulated = system.cuda.as_deref().is_some_and(is_emulator);
    let found = || {
        let nvidia = system.gpus.contains(&Gpu::Nvidia) && system.cuda.is_some() && !is_emulated;
        if nvidia && system.user_choice.is_none() { Runtime::Cuda } else { Runtime::Wgpu }
    };
    if llvm && wanted.unwrap_or_else(found) != Runtime::Cuda {
        bail!("--llvm: it compiles kernels for CUDA on an NVIDIA GPU only; add `--device cuda`, or leave it out");
    }
    let Some(wanted) = wanted else { return Ok(found()) };
    let missing = match wanted {
        Runtime::Cuda if system.cuda.is_none() => {
            "there is no CUDA driver (libcuda.so.1): install NVIDIA's driver for the GPU"
        }
        Runtime::Cuda if is_emulated => "LD_LIBRARY_PATH leads to the CUDA emulator: take its folder out",
        Runtime::Rocm if system.rocm.is_none() => "there is no ROCm (libamdhip64.so): install it",
        Runtime::Metal if system.os != "macos" => "Metal is on macOS only",
        _ => return Ok(wanted),
    };
    bail!("--device {}: {missing}, or leave `--device` out", wanted.burn_device())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::HAS_EMULATOR;

    const ANY: Wanted = Wanted { device: None, schedules: 1, llvm: false };

    fn machine(gpus: Vec<Gpu>, cuda: bool) -> System {
        let cuda = cuda.then(|| "/usr/lib/libcuda.so.1".into());
        System { os: "linux", user_choice: None, loader: true, drivers: Vec::new(), gpus, cuda, rocm: None }
    }

    fn chosen(system: &System) -> Runtime {
        choose(ANY, system).expect("there is always one")
    }

    #[test]
    fn an_nvidia_gpu_with_its_driver_is_taken_by_cuda() {
        assert_eq!(chosen(&machine(vec![Gpu::Nvidia], true)), Runtime::Cuda);
        assert_eq!(chosen(&machine(vec![Gpu::Nvidia], false)), Runtime::Wgpu);
        assert_eq!(chosen(&machine(Vec::new(), true)), Runtime::Wgpu);
    }

    #[test]
    fn the_user_comes_first() {
        let nvidia = machine(vec![Gpu::Nvidia], true);
        assert_eq!(choose(Wanted::device(Runtime::Vulkan), &nvidia).expect("any machine"), Runtime::Vulkan);
        let variable = System { user_choice: Some("VK_DRIVER_FILES"), ..nvidia };
        assert_eq!(chosen(&variable), Runtime::Wgpu);
    }

    #[test]
    fn burn_takes_the_runtime_where_several_are_compiled_in() {
        let lines = Device::new(Runtime::Wgpu, Environment::default()).environment.export_lines();
        assert_eq!(lines, ["export BURN_DEVICE='wgpu'"]);
    }

    #[test]
    fn what_is_wanted_and_missing_is_an_error_that_names_it() {
        let bare = machine(Vec::new(), false);
        for (wanted, missing) in
            [(Runtime::Cuda, "libcuda.so.1"), (Runtime::Rocm, "libamdhip64.so"), (Runtime::Metal, "macOS")]
        {
            let error = choose(Wanted::device(wanted), &bare).expect_err("it is missing").to_string();
            assert!(error.contains(missing) && error.contains(wanted.burn_device()), "{error}");
        }
    }

    #[test]
    fn nvrtc_compiles_kernels_wherever_it_is_and_llvm_where_it_is_asked_for() {
        let llvm = Wanted { llvm: true, ..Wanted::device(Runtime::Cuda) };
        let chosen =
            |wanted, has_nvrtc, has_llvm| compiler(wanted, has_nvrtc, || has_llvm).map_err(|error| error.to_string());
        for has_llvm in [false, true] {
            assert_eq!(chosen(ANY, true, has_llvm), Ok(Compiler::Nvrtc));
            let error = chosen(ANY, false, has_llvm).expect_err("LLVM is not asked for");
            assert!(error.contains("install the CUDA toolkit") && error.contains("--llvm"), "{error}");
            assert_eq!(chosen(llvm, has_llvm, true), Ok(Compiler::Llvm));
        }
        let error = chosen(llvm, true, false).expect_err("it cannot be fetched");
        assert!(error.starts_with("--llvm: ") && error.contains("connect this machine"), "{error}");
    }

    #[test]
    fn llvm_is_for_cuda() {
        let (bare, nvidia) = (machine(Vec::new(), false), machine(vec![Gpu::Nvidia], true));
        let with_llvm = |device, system| choose(Wanted { device, schedules: 1, llvm: true }, system);
        assert_eq!(with_llvm(None, &nvidia).expect("there is a GPU"), Runtime::Cuda);
        assert_eq!(with_llvm(Some(Runtime::Cuda), &nvidia).expect("there is a GPU"), Runtime::Cuda);
        for (device, system) in [(None, &bare), (Some(Runtime::Vulkan), &nvidia), (Some(Runtime::Emulator), &nvidia)] {
            let error = with_llvm(device, system).expect_err("nothing of it is compiled by LLVM").to_string();
            assert!(error.starts_with("--llvm: ") && error.contains("--device cuda"), "{error}");
        }
    }

    #[test]
    fn a_build_has_the_runtimes_feature_and_autotune() {
        let spelled = |device: &Device| workspace::arguments(&device.cargo("build"));
        let vulkan = Device::new(Runtime::Vulkan, Environment::default());
        assert_eq!(spelled(&vulkan), "build --workspace --features vulkan,autotune");
        let nvrtc = Device::new(Runtime::Cuda, Environment::default());
        let llvm = Device { compiler: Compiler::Llvm, ..nvrtc.clone() };
        assert_eq!(spelled(&llvm), "build --workspace --features cuda,autotune");
        let emulator = Device::new(Runtime::Emulator, Environment::default());
        assert_eq!(spelled(&emulator), "build --workspace --features wgpu,cuda-nvrtc,autotune");
        if HAS_EMULATOR {
            let software = Device::new(Runtime::Wgpu, Environment::default());
            assert_eq!(software.features(), emulator.features(), "one build for all of them");
            assert_eq!(nvrtc.features(), emulator.features(), "one build for all of them");
        }
        let skips_llvm = |device: &Device| device.cargo("build").get_envs().any(|(name, _)| name == "DOCS_RS");
        assert!(skips_llvm(&nvrtc) && skips_llvm(&emulator) && !skips_llvm(&vulkan) && !skips_llvm(&llvm));
    }

    #[test]
    fn schedules_are_the_emulators() {
        let three = |device| Wanted { device, schedules: 3, llvm: false };
        assert!(choose(three(None), &machine(Vec::new(), false)).is_err());
        assert!(choose(three(Some(Runtime::Cuda)), &machine(vec![Gpu::Nvidia], true)).is_err());
        assert!(choose(three(Some(Runtime::Emulator)), &machine(Vec::new(), false)).is_ok());
        let emulator = Device::new(Runtime::Emulator, Environment::default()).under(3);
        let lines: Vec<_> = emulator.schedules().iter().map(|(_, environment)| environment.export_lines()).collect();
        let seeds: Vec<_> = lines.iter().map(|lines| &lines[1..]).collect();
        assert_eq!(
            seeds,
            [&[][..], &["export CUDA_EMULATOR_SEED='1'".to_owned()], &["export CUDA_EMULATOR_SEED='2'".to_owned()]]
        );
    }
}
