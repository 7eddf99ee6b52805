//! NVRTC, the compiler that CubeCL hands its CUDA C++ to, without a GPU.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use anyhow::{Context, Result, bail, ensure};
use libloading::Library;

use super::device::Device;
use super::tools::{self, Tools};

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Handle) -> c_int;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

/// NVRTC and nvdisasm.
pub struct Compiler {
    library: Library,
    includes: [PathBuf; 2],
    disassembler: PathBuf,
    /// The cubin that nvdisasm reads.
    scratch: PathBuf,
    /// What was compiled before, by a hash of source and options.
    cache: PathBuf,
}

/// A compiled kernel.
pub struct Compiled {
    /// What the compiler and its assembler said.
    pub log: String,
    /// The machine code, as nvdisasm prints it.
    pub listing: String,
}

/// Whether the compiler may make a multiply-add of a product and a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contraction {
    /// As CubeCL compiles: NVRTC contracts unless told not to.
    Allowed,
    /// `-fmad=false`
    Forbidden,
}

impl Compiler {
    /// Loads NVRTC. What is compiled is kept in `cache`; `scratch` is for one compiler alone.
    pub fn new(tools: &Tools, cache: &Path, scratch: &Path) -> Result<Self> {
        // SAFETY: NVRTC's own initialisers run, which it documents no conditions for.
        let library =
            unsafe { Library::new(&tools.nvrtc) }.with_context(|| format!("loading {}", tools.nvrtc.display()))?;
        for folder in [cache, scratch] {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        Ok(Self {
            library,
            includes: tools.includes.clone(),
            disassembler: tools.nvdisasm.clone(),
            scratch: scratch.join("kernel.cubin"),
            cache: cache.to_owned(),
        })
    }

    /// Compiles a source for a device with the options that CubeCL gives, and disassembles it.
    ///
    /// # Errors
    ///
    /// Where the source does not compile, with NVRTC's log.
    pub fn compile(&self, source: &str, device: &Device, contraction: Contraction) -> Result<Compiled> {
        // CubeCL's options (cubecl-cuda, `compile_to_ptx`), and the assembler's report.
        let mut options = vec![
            format!("--gpu-architecture={}", device.target),
            "-lineinfo".to_owned(),
            "--ptxas-options=-v".to_owned(),
        ];
        options.extend(self.includes.iter().map(|folder| format!("--include-path={}", folder.display())));
        if contraction == Contraction::Forbidden {
            options.push("-fmad=false".to_owned());
        }
        let mut hasher = DefaultHasher::new();
        (tools::PINS, source, &options).hash(&mut hasher);
        let kept = self.cache.join(format!("{:016x}", hasher.finish()));
        let [log_file, listing_file] = ["log", "sass"].map(|extension| kept.with_extension(extension));
        if let (Ok(log), Ok(listing)) = (fs::read_to_string(&log_file), fs::read_to_string(&listing_file)) {
            return Ok(Compiled { log, listing });
        }
        let (log, cubin) = self.cubin(source, &options)?;
        fs::write(&self.scratch, cubin).with_context(|| format!("writing {}", self.scratch.display()))?;
        let listing = self.disassemble()?;
        // The log last: both are there, or what there is does not count.
        for (path, text) in [(&listing_file, &listing), (&log_file, &log)] {
            fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(Compiled { log, listing })
    }

    fn disassemble(&self) -> Result<String> {
        let output = Command::new(&self.disassembler).arg("-c").arg(&self.scratch).output();
        let output = output.with_context(|| format!("starting {}", self.disassembler.display()))?;
        ensure!(output.status.success(), "nvdisasm failed: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).context("nvdisasm wrote something else than text")
    }

    /// The log and the machine code of a source.
    fn cubin(&self, source: &str, options: &[String]) -> Result<(String, Vec<u8>)> {
        let source = CString::new(source).context("the source of a kernel contains a zero byte")?;
        let options: Vec<_> = options.iter().map(|option| CString::new(option.as_str())).collect::<Result<_, _>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let program = Program::new(&self.library, &source)?;
        // SAFETY: the symbol has this type in nvrtc.h; the options are as many strings, which live.
        let status = unsafe {
            let compile = self.library.get::<Compile>(b"nvrtcCompileProgram\0")?;
            compile(program.handle, options.len() as c_int, options.as_ptr())
        };
        let log = program.read(b"nvrtcGetProgramLogSize\0", b"nvrtcGetProgramLog\0")?;
        let log = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().into_owned()).unwrap_or_default();
        if status != 0 {
            bail!("NVRTC refuses a kernel (error {status}): {log}");
        }
        let cubin = program.read(b"nvrtcGetCUBINSize\0", b"nvrtcGetCUBIN\0")?;
        Ok((log, cubin))
    }
}

/// A source in NVRTC's hands.
struct Program<'a> {
    library: &'a Library,
    handle: Handle,
}

impl<'a> Program<'a> {
    fn new(library: &'a Library, source: &CStr) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: the symbol has this type in nvrtc.h; the source is a string, and no header is given.
        let status = unsafe {
            let create = library.get::<Create>(b"nvrtcCreateProgram\0")?;
            create(&mut handle, source.as_ptr(), ptr::null(), 0, ptr::null(), ptr::null())
        };
        ensure!(status == 0, "NVRTC takes no source (error {status})");
        Ok(Self { library, handle })
    }

    /// What a pair of NVRTC's functions gives: one the size, one the bytes.
    fn read(&self, size_of: &[u8], get: &[u8]) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the symbols have these types in nvrtc.h; the buffer has the bytes that the first asks for.
        unsafe {
            let status = self.library.get::<Size>(size_of)?(self.handle, &mut size);
            ensure!(status == 0, "NVRTC gives no size (error {status})");
            let mut bytes = vec![0u8; size];
            let status = self.library.get::<Get>(get)?(self.handle, bytes.as_mut_ptr().cast());
            ensure!(status == 0, "NVRTC gives no result (error {status})");
            Ok(bytes)
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the symbol has this type in nvrtc.h; the program is destroyed once.
        unsafe {
            if let Ok(destroy) = self.library.get::<Destroy>(b"nvrtcDestroyProgram\0") {
                destroy(&mut self.handle);
            }
        }
    }
}
