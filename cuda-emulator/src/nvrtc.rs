//! The functions of libnvrtc that cudarc calls. What it gets for PTX is the path of a compiled library, and on a second line the
//! file in which the source was recorded, if it was.

use crate::compile::compile;
use crate::record;
use crate::settings::{Settings, settings};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;

const SUCCESS: c_int = 0;
const COMPILATION: c_int = 6;

/// In place of a path where nothing is compiled.
pub const NOTHING: &[u8] = b"cuda-emulator: nothing";

struct Program {
    source: String,
    ptx: CString,
    log: CString,
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    // SAFETY: the caller gives places for both.
    unsafe {
        *major = 12;
        *minor = 9;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetErrorString(code: c_int) -> *const c_char {
    match code {
        SUCCESS => c"NVRTC_SUCCESS",
        COMPILATION => c"NVRTC_ERROR_COMPILATION (CUDA emulator)",
        _ => c"an NVRTC error (CUDA emulator)",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcCreateProgram(
    program: *mut *mut c_void,
    source: *const c_char,
    _name: *const c_char,
    _headers: c_int,
    _texts: *const *const c_char,
    _names: *const *const c_char,
) -> c_int {
    // SAFETY: the caller gives a string and a place for the handle.
    unsafe {
        let source = CStr::from_ptr(source).to_string_lossy().into_owned();
        let made = Program { source, ptx: CString::default(), log: CString::default() };
        *program = Box::into_raw(Box::new(made)).cast();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcDestroyProgram(program: *mut *mut c_void) -> c_int {
    // SAFETY: the handle is one of `nvrtcCreateProgram`, and the caller gives it up.
    drop(unsafe { Box::from_raw((*program).cast::<Program>()) });
    SUCCESS
}

/// # Safety
///
/// The handle is one of `nvrtcCreateProgram`, and no one else uses it during the call.
unsafe fn program<'a>(program: *mut c_void) -> &'a mut Program {
    // SAFETY: the caller's promise.
    unsafe { &mut *program.cast() }
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcCompileProgram(handle: *mut c_void, _options: c_int, _texts: *const *const c_char) -> c_int {
    // SAFETY: NVRTC's contract is that of `program`.
    let program = unsafe { program(handle) };
    match ptx(&program.source, &settings()) {
        Ok(ptx) => {
            program.ptx = ptx;
            SUCCESS
        }
        Err(log) => {
            let log = format!("cuda-emulator: {log}").replace('\0', " ");
            program.log = CString::new(log).expect("NULs were replaced");
            COMPILATION
        }
    }
}

/// Records and compiles a source.
fn ptx(source: &str, settings: &Settings) -> Result<CString, String> {
    let recorded = record::source(source, settings)?.unwrap_or_default();
    let mut ptx = match settings.null {
        true => NOTHING.to_vec(),
        false => compile(source, settings)?.into_os_string().into_vec(),
    };
    ptx.push(b'\n');
    ptx.extend(recorded.into_bytes());
    CString::new(ptx).map_err(|_| "the path of a compiled kernel has a NUL".to_owned())
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetProgramLogSize(handle: *mut c_void, size: *mut usize) -> c_int {
    // SAFETY: NVRTC's contract is that of `program`, and the caller gives a place for the size.
    unsafe { *size = program(handle).log.as_bytes_with_nul().len() };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetProgramLog(handle: *mut c_void, out: *mut c_char) -> c_int {
    // SAFETY: the caller gives as many bytes as `nvrtcGetProgramLogSize` said.
    unsafe { copy(&program(handle).log, out) }
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetPTXSize(handle: *mut c_void, size: *mut usize) -> c_int {
    // SAFETY: NVRTC's contract is that of `program`, and the caller gives a place for the size.
    unsafe { *size = program(handle).ptx.as_bytes_with_nul().len() };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetPTX(handle: *mut c_void, out: *mut c_char) -> c_int {
    // SAFETY: the caller gives as many bytes as `nvrtcGetPTXSize` said.
    unsafe { copy(&program(handle).ptx, out) }
}

/// # Safety
///
/// `out` has room for the text and its NUL.
unsafe fn copy(text: &CStr, out: *mut c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { out.copy_from_nonoverlapping(text.as_ptr(), text.to_bytes_with_nul().len()) };
    SUCCESS
}
