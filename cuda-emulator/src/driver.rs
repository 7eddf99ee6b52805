//! The functions of libcuda that cudarc and CubeCL call.

use crate::grid::{self, Launch};
use crate::memory::{self, CAPACITY};
use crate::module::{Index, Kernel, Module, Parameter};
use crate::nvrtc::NOTHING;
use crate::queue;
use crate::record::{self, Extent, Recorded};
use crate::report::{self, Kind};
use crate::settings::settings;
use crate::status::{
    FILE_NOT_FOUND, ILLEGAL_ADDRESS, INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, MISALIGNED_ADDRESS, NO_DEVICE,
    NOT_FOUND, OUT_OF_MEMORY, SUCCESS,
};
use crate::{count, exit};
use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

const NAME: &CStr = c"CUDA emulator on the CPU (sm_90)";

/// Writes a result to where the caller wants it.
pub fn give<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: CUDA's contract: the caller gives a place for each result.
    unsafe { place.write(value) };
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int {
    let text = match error {
        SUCCESS => c"CUDA_SUCCESS",
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        FILE_NOT_FOUND => c"CUDA_ERROR_FILE_NOT_FOUND",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        MISALIGNED_ADDRESS => c"CUDA_ERROR_MISALIGNED_ADDRESS",
        _ => return INVALID_VALUE,
    };
    give(name, text.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(error: c_int, text: *mut *const c_char) -> c_int {
    let said = match error {
        SUCCESS => c"no error",
        INVALID_VALUE => c"invalid argument, or memory that is not allocated (CUDA emulator)",
        OUT_OF_MEMORY => c"out of memory (CUDA emulator: 16 GiB)",
        NO_DEVICE => {
            c"no device (CUDA emulator: CUDA_VISIBLE_DEVICES does not begin with a device that exists, or names one twice)"
        }
        INVALID_DEVICE => {
            c"invalid device ordinal (CUDA emulator: CUDA_EMULATOR_DEVICES and CUDA_VISIBLE_DEVICES give the number of devices)"
        }
        INVALID_CONTEXT => c"not a context of a device that is visible (CUDA emulator)",
        FILE_NOT_FOUND => c"the compiled kernel cannot be loaded (CUDA emulator: see standard error)",
        NOT_FOUND => c"the library has no such kernel (CUDA emulator: see standard error)",
        ILLEGAL_ADDRESS => c"an access outside every buffer (CUDA emulator: see its finding)",
        MISALIGNED_ADDRESS => c"a pointer that its type's alignment does not divide (CUDA emulator: see its finding)",
        _ => return INVALID_VALUE,
    };
    give(text, said.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> c_int {
    exit::prepare();
    if settings().visible.is_empty() { NO_DEVICE } else { SUCCESS }
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    give(version, 12090)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    give(count, settings().visible.len() as c_int)
}

/// Calls `body` with the number of a device that programs see by its ordinal.
fn with_device(ordinal: c_int, body: impl FnOnce(usize) -> c_int) -> c_int {
    let settings = settings();
    let number = usize::try_from(ordinal).ok().and_then(|ordinal| settings.visible.get(ordinal));
    number.map_or(INVALID_DEVICE, |number| body(*number))
}

/// A device's handle is its ordinal.
#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    with_device(ordinal, |_| give(device, ordinal))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> c_int {
    with_device(device, |_| copy_text(NAME, name, length))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_int {
    with_device(device, |number| {
        let text = CString::new(format!("0000:{number:02x}:00.0")).expect("it has no NUL");
        copy_text(&text, id, length)
    })
}

fn copy_text(text: &CStr, out: *mut c_char, length: c_int) -> c_int {
    let bytes = text.to_bytes_with_nul();
    if usize::try_from(length).is_ok_and(|length| bytes.len() <= length) {
        // SAFETY: the caller gives `length` bytes.
        unsafe { out.copy_from_nonoverlapping(text.as_ptr(), bytes.len()) };
        SUCCESS
    } else {
        INVALID_VALUE
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    with_device(device, |_| give(bytes, CAPACITY))
}

/// The most threads of a block, and along its axes.
const MAX_THREADS: u32 = 1024;
const MAX_BLOCK: Index = Index { x: 1024, y: 1024, z: 64 };

/// The most blocks along the axes of a grid.
const MAX_GRID: Index = Index { x: 0x7FFF_FFFF, y: 0xFFFF, z: 0xFFFF };

/// Bytes of shared memory of a block, and of one whose function asks for more.
const SHARED: u32 = 48 << 10;
const MAX_SHARED: u32 = 227 << 10;

/// Those of an H100, as far as CubeCL asks.
#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_int {
    let is = match attribute {
        1 => MAX_THREADS as c_int,
        2 => MAX_BLOCK.x as c_int,
        3 => MAX_BLOCK.y as c_int,
        4 => MAX_BLOCK.z as c_int,
        5 => MAX_GRID.x as c_int,
        6 => MAX_GRID.y as c_int,
        7 => MAX_GRID.z as c_int,
        8 => SHARED as c_int,
        10 => 32,   // Threads of a warp.
        16 => 132,  // Multiprocessors.
        39 => 2048, // Threads of a multiprocessor.
        75 => 9,    // Compute capability 9.0.
        76 => 0,
        81 => 228 << 10, // Shared memory of a multiprocessor.
        97 => MAX_SHARED as c_int,
        _ => {
            eprintln!("cuda-emulator: cuDeviceGetAttribute: attribute {attribute} is not emulated");
            return INVALID_VALUE;
        }
    };
    with_device(device, |_| give(value, is))
}

thread_local! {
    /// The thread's current context; null where it has none.
    static CURRENT: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// The handle of the context of a device, which has nothing behind it.
fn context_of(device: c_int) -> *mut c_void {
    ptr::without_provenance_mut(device as usize + 1)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int {
    with_device(device, |_| give(context, context_of(device)))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    with_device(device, |_| SUCCESS)
}

/// Null leaves the thread without a context.
#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    let mut devices = 0..settings().visible.len() as c_int;
    if !context.is_null() && !devices.any(|device| context_of(device) == context) {
        return INVALID_CONTEXT;
    }
    CURRENT.set(context);
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int {
    give(context, CURRENT.get())
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> c_int {
    queue::wait_for_all()
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> c_int {
    give(least, 0);
    give(greatest, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    give(free, CAPACITY);
    give(total, CAPACITY)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(address: *mut u64, length: usize) -> c_int {
    match memory::allocate(length, settings().check) {
        Some(at) => give(address, at as u64),
        None => OUT_OF_MEMORY,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(address: *mut u64, length: usize, _stream: *mut c_void) -> c_int {
    cuMemAlloc_v2(address, length)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    match queue::wait_for_all() {
        SUCCESS => free(address),
        error => error,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> c_int {
    queue::give(stream as usize, move || free(address))
}

fn free(address: u64) -> c_int {
    if address == 0 || memory::free(address as usize) { SUCCESS } else { INVALID_VALUE }
}

/// Page-locked memory of the host: written by whom it may be, it is not checked.
#[unsafe(no_mangle)]
extern "C" fn cuMemAllocHost_v2(address: *mut *mut c_void, length: usize) -> c_int {
    match memory::allocate(length, false) {
        Some(at) => give(address, at as *mut c_void),
        None => OUT_OF_MEMORY,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: *mut c_void) -> c_int {
    cuMemFree_v2(address as u64)
}

/// Whether the device has `length` bytes at an address; where not, a finding says so.
fn allocated(function: &str, address: u64, length: usize) -> bool {
    let remaining = memory::remaining(address as usize).unwrap_or(0);
    if length > remaining {
        report::add(Kind::Memory, function, || {
            format!("{length} bytes at {address:#x}, of which {remaining} are allocated")
        });
    }
    length <= remaining
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, length: usize, stream: *mut c_void) -> c_int {
    if !allocated("cuMemcpyHtoDAsync", to, length) {
        return INVALID_VALUE;
    }
    let is_kept = !queue::has(stream as usize) || memory::remaining(from as usize).is_some();
    // SAFETY: the caller gives `length` bytes.
    let copied = (!is_kept).then(|| unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec());
    let from = from as usize;
    queue::give(stream as usize, move || {
        let from = copied.as_ref().map_or(from as *const u8, |copied| copied.as_ptr());
        // SAFETY: the device has `length` bytes there; the caller keeps as many, or they are copied.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from, length) };
        memory::mark_written(to as usize, length);
        count::add(&count::TO_DEVICE, length as u64);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, length: usize, stream: *mut c_void) -> c_int {
    if !allocated("cuMemcpyDtoHAsync", from, length) {
        return INVALID_VALUE;
    }
    let (to, is_page_locked) = (to as usize, memory::remaining(to as usize).is_some());
    let given = queue::give(stream as usize, move || {
        if let Some(at) = memory::first_unwritten(from as usize, length) {
            let what = || format!("byte {at} of {length} that the host reads was not written since its allocation");
            report::add(Kind::Initialisation, "cuMemcpyDtoHAsync", what);
        }
        // SAFETY: the device has `length` bytes there, and the caller room for as many.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, length) };
        count::add(&count::TO_HOST, length as u64);
        SUCCESS
    });
    if given == SUCCESS && !is_page_locked { queue::wait_for_stream(stream as usize) } else { given }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, length: usize, stream: *mut c_void) -> c_int {
    if !allocated("cuMemcpyDtoDAsync", to, length) || !allocated("cuMemcpyDtoDAsync", from, length) {
        return INVALID_VALUE;
    }
    queue::give(stream as usize, move || {
        // SAFETY: the device has `length` bytes at both.
        unsafe { (to as *mut u8).copy_from(from as *const u8, length) };
        let written = memory::written(from as usize, length).expect("they are allocated");
        memory::set_written(to as usize, &written);
        count::add(&count::ON_DEVICE, length as u64);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, value: u8, length: usize, stream: *mut c_void) -> c_int {
    if !allocated("cuMemsetD8Async", to, length) {
        return INVALID_VALUE;
    }
    queue::give(stream as usize, move || {
        // SAFETY: the device has `length` bytes there.
        unsafe { (to as *mut u8).write_bytes(value, length) };
        memory::mark_written(to as usize, length);
        SUCCESS
    })
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Copy2D {
    from_x: usize,
    from_y: usize,
    from_type: c_int,
    from_host: *const c_void,
    from_device: u64,
    from_array: *mut c_void,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_type: c_int,
    to_host: *mut c_void,
    to_device: u64,
    to_array: *mut c_void,
    to_pitch: usize,
    width: usize,
    height: usize,
}

const HOST: c_int = 1;
const DEVICE: c_int = 2;

/// Row by row.
#[unsafe(no_mangle)]
extern "C" fn cuMemcpy2DAsync_v2(copy: *const Copy2D, stream: *mut c_void) -> c_int {
    // SAFETY: the caller gives a description.
    let copy = unsafe { &*copy };
    for row in 0..copy.height {
        let from = (copy.from_y + row) * copy.from_pitch + copy.from_x;
        let to = (copy.to_y + row) * copy.to_pitch + copy.to_x;
        let result = match (copy.from_type, copy.to_type) {
            (HOST, DEVICE) => {
                let from = copy.from_host.wrapping_byte_add(from);
                cuMemcpyHtoDAsync_v2(copy.to_device + to as u64, from, copy.width, stream)
            }
            (DEVICE, HOST) => {
                let to = copy.to_host.wrapping_byte_add(to);
                cuMemcpyDtoHAsync_v2(to, copy.from_device + from as u64, copy.width, stream)
            }
            (DEVICE, DEVICE) => {
                let (to, from) = (copy.to_device + to as u64, copy.from_device + from as u64);
                cuMemcpyDtoDAsync_v2(to, from, copy.width, stream)
            }
            _ => INVALID_VALUE,
        };
        if result != SUCCESS {
            return result;
        }
    }
    SUCCESS
}

/// What a module's handle points to.
struct Loaded {
    /// The file in which its source was recorded.
    file: Option<String>,
    /// Nothing where kernels are not run.
    module: Option<Module>,
}

/// What a function's handle points to.
struct Function {
    recorded: Recorded,
    /// Bytes of shared memory that a launch may ask for.
    shared: AtomicU32,
    /// Nothing where kernels are not run.
    kernel: Option<Kernel>,
}

/// `image` is what `nvrtcGetPTX` gave. Modules stay loaded.
#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int {
    // SAFETY: the caller gives the text of `nvrtcGetPTX`.
    let image = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
    let mut lines = image.splitn(2, |byte| *byte == b'\n');
    let (path, file) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let file = (!file.is_empty()).then(|| String::from_utf8_lossy(file).into_owned());
    let loaded = (path != NOTHING).then(|| Module::load(Path::new(OsStr::from_bytes(path)))).transpose();
    match loaded {
        Ok(loaded) => give(module, Box::into_raw(Box::new(Loaded { file, module: loaded })).cast()),
        Err(error) => {
            eprintln!("cuda-emulator: cuModuleLoadData: {error}");
            FILE_NOT_FOUND
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_module: *mut c_void) -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> c_int {
    // SAFETY: the module is one of `cuModuleLoadData`, and the caller gives a name.
    let (loaded, name) = unsafe { (&*module.cast::<Loaded>(), CStr::from_ptr(name).to_string_lossy()) };
    match loaded.module.as_ref().map(|module| module.kernel(&name)).transpose() {
        Ok(kernel) => {
            let recorded = Recorded { file: loaded.file.clone(), name: name.into_owned() };
            let made = Function { recorded, shared: AtomicU32::new(SHARED), kernel };
            give(function, Box::into_raw(Box::new(made)).cast())
        }
        Err(error) => {
            eprintln!("cuda-emulator: cuModuleGetFunction: {error}");
            NOT_FOUND
        }
    }
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: c_int = 8;

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int) -> c_int {
    // SAFETY: the function is one of `cuModuleGetFunction`.
    let Function { shared, .. } = unsafe { &*function.cast::<Function>() };
    match (attribute, u32::try_from(value)) {
        (MAX_DYNAMIC_SHARED, Ok(bytes)) if bytes <= MAX_SHARED => {
            shared.store(bytes, Ordering::Relaxed);
            SUCCESS
        }
        (MAX_DYNAMIC_SHARED, _) => INVALID_VALUE,
        _ => {
            eprintln!("cuda-emulator: cuFuncSetAttribute: attribute {attribute} is not emulated");
            INVALID_VALUE
        }
    }
}

/// Whether an extent has something, and along each axis no more than the most.
fn fits(extent: Index, most: Index) -> bool {
    extent.size() > 0 && extent.x <= most.x && extent.y <= most.y && extent.z <= most.z
}

/// Whether every pointer of a launch is as aligned as its type; where not, a finding says so. A GPU traps at the first
/// access.
///
/// # Safety
///
/// `arguments` are those of a launch of `kernel`.
unsafe fn aligned(kernel: &Kernel, arguments: *mut *mut c_void) -> bool {
    let mut is_aligned = true;
    for (i, parameter) in kernel.parameters.iter().enumerate().filter(|(_, parameter)| parameter.pointee != 0) {
        // SAFETY: a pointer parameter's argument is an address of a pointer.
        let address = unsafe { *(*arguments.add(i)).cast::<u64>() } as usize;
        if !address.is_multiple_of(parameter.alignment) {
            is_aligned = false;
            let Parameter { name, alignment, .. } = parameter;
            let what = || format!("`{name}` is the address {address:#x}, and its type is aligned to {alignment} bytes");
            report::add(Kind::Memory, &kernel.name, what);
        }
    }
    is_aligned
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: *mut c_void,
    arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    // SAFETY: the function is one of `cuModuleGetFunction`.
    let Function { recorded, shared: allowed, kernel } = unsafe { &*function.cast::<Function>() };
    let grid = Index { x: grid_x, y: grid_y, z: grid_z };
    let block = Index { x: block_x, y: block_y, z: block_z };
    let is_shape = fits(grid, MAX_GRID) && fits(block, MAX_BLOCK) && block.size() <= u64::from(MAX_THREADS);
    if !is_shape || shared > allowed.load(Ordering::Relaxed) {
        return INVALID_VALUE;
    }
    let extent = Extent { blocks: grid.size(), threads: block.size(), shared };
    if let Err(error) = record::launch(recorded, &extent, &settings()) {
        eprintln!("cuda-emulator: cuLaunchKernel: {error}");
        return FILE_NOT_FOUND;
    }
    // SAFETY: the caller gives the kernel's arguments.
    if !kernel.as_ref().is_none_or(|kernel| unsafe { aligned(kernel, arguments) }) {
        return MISALIGNED_ADDRESS;
    }
    if !queue::has(stream as usize) {
        // SAFETY: as above.
        return unsafe { run(kernel.as_ref(), grid, block, shared as usize, arguments) };
    }
    // SAFETY: as above.
    let mut copies = kernel.as_ref().map_or_else(Vec::new, |kernel| unsafe { copied(kernel, arguments) });
    let function = function as usize;
    queue::give(stream as usize, move || {
        // SAFETY: as above; functions stay, as modules do.
        let Function { kernel, .. } = unsafe { &*(function as *const Function) };
        let mut arguments: Vec<*mut c_void> = copies.iter_mut().map(|copy| copy.as_mut_ptr().cast()).collect();
        // SAFETY: these are copies of the arguments.
        unsafe { run(kernel.as_ref(), grid, block, shared as usize, arguments.as_mut_ptr()) }
    })
}

/// Copies of the arguments of a launch, as aligned as any.
///
/// # Safety
///
/// `arguments` are those of a launch of `kernel`.
unsafe fn copied(kernel: &Kernel, arguments: *mut *mut c_void) -> Vec<Vec<u128>> {
    let copy = |(i, parameter): (usize, &Parameter)| {
        let mut copy = vec![0u128; parameter.size.div_ceil(size_of::<u128>())];
        // SAFETY: the argument has the size of its parameter.
        unsafe {
            copy.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping((*arguments.add(i)).cast::<u8>(), parameter.size)
        };
        copy
    };
    kernel.parameters.iter().enumerate().map(copy).collect()
}

/// Runs a launch, or counts it where it does not run.
///
/// # Safety
///
/// `arguments` are those of a launch of `kernel`.
unsafe fn run(kernel: Option<&Kernel>, grid: Index, block: Index, shared: usize, arguments: *mut *mut c_void) -> c_int {
    let launched = || count::LAUNCHES.load(Ordering::Relaxed);
    let kernel = kernel.filter(|_| settings().run.is_none_or(|most| launched() < most));
    let Some(kernel) = kernel else {
        if settings().run == Some(launched()) {
            eprintln!("cuda-emulator: no launch runs from here on (CUDA_EMULATOR_RUN); results are what was in memory");
        }
        count::add(&count::LAUNCHES, 1);
        return SUCCESS;
    };
    // SAFETY: the caller's promise.
    let result = unsafe { grid::launch(&Launch { kernel, grid, block, shared, arguments }) };
    if result.is_ok() { SUCCESS } else { ILLEGAL_ADDRESS }
}
