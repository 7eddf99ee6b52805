//! The emulator as a program sees it: the functions of libcuda and libnvrtc.

#![allow(dead_code, reason = "each test uses a part")]

use cuda_emulator::{Findings, Settings, with_settings};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

unsafe extern "C" {
    fn nvrtcCreateProgram(
        program: *mut *mut c_void,
        source: *const c_char,
        name: *const c_char,
        headers: c_int,
        texts: *const c_void,
        names: *const c_void,
    ) -> c_int;
    fn nvrtcCompileProgram(program: *mut c_void, options: c_int, texts: *const c_void) -> c_int;
    fn nvrtcGetProgramLogSize(program: *mut c_void, size: *mut usize) -> c_int;
    fn nvrtcGetProgramLog(program: *mut c_void, log: *mut c_char) -> c_int;
    fn nvrtcGetPTXSize(program: *mut c_void, size: *mut usize) -> c_int;
    fn nvrtcGetPTX(program: *mut c_void, ptx: *mut c_char) -> c_int;
    fn nvrtcDestroyProgram(program: *mut *mut c_void) -> c_int;
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGetCount(count: *mut c_int) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int;
    fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int;
    fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> c_int;
    fn cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int) -> c_int;
    fn cuMemAlloc_v2(address: *mut u64, length: usize) -> c_int;
    fn cuMemFree_v2(address: u64) -> c_int;
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, length: usize, stream: *mut c_void) -> c_int;
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, length: usize, stream: *mut c_void) -> c_int;
    fn cuMemsetD8Async(to: u64, value: u8, length: usize, stream: *mut c_void) -> c_int;
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) -> c_int;
    fn cuStreamSynchronize(stream: *mut c_void) -> c_int;
    fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, flags: c_uint) -> c_int;
    fn cuEventCreate(event: *mut *mut c_void, flags: c_uint) -> c_int;
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int;
    fn cuEventDestroy_v2(event: *mut c_void) -> c_int;
    fn cuLaunchKernel(
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
        extra: *mut *mut c_void,
    ) -> c_int;
}

/// A launch of kernel `name` of a source, on an input and an output that lie side by side in one allocation, as CubeCL's do.
pub struct Run<'a> {
    pub source: &'a str,
    pub name: &'a str,
    pub blocks: u32,
    pub threads: u32,
    /// Bytes.
    pub shared: u32,
    pub input: &'a [f32],
    /// Elements.
    pub output: usize,
}

/// Settings of a test's own; the cache is shared with other runs.
pub fn settings(seed: Option<u64>, check: bool) -> Settings {
    Settings { seed, check, null: false, findings: Findings::Keep, ..Settings::from_environment() }
}

/// What `cuInit` returns, and the number of devices.
pub fn devices(settings: Settings) -> (c_int, c_int) {
    let mut count = -1;
    // SAFETY: each call gets a place for its result.
    with_settings(settings, || unsafe {
        let status = cuInit(0);
        assert_eq!(cuDeviceGetCount(&mut count), 0);
        (status, count)
    })
}

/// The device of an ordinal, or the status.
pub fn device(ordinal: c_int) -> Result<c_int, c_int> {
    let mut device = -1;
    // SAFETY: the call gets a place for its result.
    let status = unsafe { cuDeviceGet(&mut device, ordinal) };
    if status == 0 { Ok(device) } else { Err(status) }
}

/// A device's identifier on the PCI bus, or the status.
pub fn bus_id(device: c_int) -> Result<String, c_int> {
    let mut id = [0u8; 13];
    // SAFETY: the call gets a place of the length that it is told.
    let status = unsafe { cuDeviceGetPCIBusId(id.as_mut_ptr().cast(), id.len() as c_int, device) };
    if status != 0 {
        return Err(status);
    }
    let text = CStr::from_bytes_until_nul(&id).expect("a text ends in NUL");
    Ok(text.to_str().expect("it is ASCII").to_owned())
}

/// A device's context, or the status.
pub fn context(device: c_int) -> Result<*mut c_void, c_int> {
    let mut context = ptr::null_mut();
    // SAFETY: the call gets a place for its result.
    let status = unsafe { cuDevicePrimaryCtxRetain(&mut context, device) };
    if status == 0 { Ok(context) } else { Err(status) }
}

/// The status of a change of the thread's context.
pub fn set_context(context: *mut c_void) -> c_int {
    // SAFETY: the emulator follows no context's handle.
    unsafe { cuCtxSetCurrent(context) }
}

/// The thread's context.
pub fn current_context() -> *mut c_void {
    let mut context = ptr::dangling_mut::<u8>().cast();
    // SAFETY: the call gets a place for its result.
    assert_eq!(unsafe { cuCtxGetCurrent(&mut context) }, 0);
    context
}

/// The address of new memory of the device.
pub fn device_memory(length: usize) -> u64 {
    let mut address = 0;
    // SAFETY: the call gets a place for its result.
    assert_eq!(unsafe { cuMemAlloc_v2(&mut address, length) }, 0);
    address
}

/// Frees what `device_memory` gave.
pub fn free(address: u64) {
    // SAFETY: the caller gives it up.
    assert_eq!(unsafe { cuMemFree_v2(address) }, 0);
}

/// A stream; by default the default stream.
pub struct Stream(*mut c_void);

/// A place in a stream.
pub struct Event(*mut c_void);

impl Default for Stream {
    fn default() -> Self {
        Self(ptr::null_mut())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is one of `cuEventCreate`.
        assert_eq!(unsafe { cuEventDestroy_v2(self.0) }, 0);
    }
}

impl Stream {
    pub fn new() -> Self {
        let mut stream = ptr::null_mut();
        // SAFETY: the call gets a place for its result.
        assert_eq!(unsafe { cuStreamCreate(&mut stream, 0) }, 0);
        Self(stream)
    }

    /// Sets each of `length` bytes to a value.
    pub fn set(&self, address: u64, value: u8, length: usize) {
        // SAFETY: the memory is of `device_memory`.
        assert_eq!(unsafe { cuMemsetD8Async(address, value, length, self.0) }, 0);
    }

    /// Bytes of the device.
    pub fn copy<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut copied = [0; N];
        // SAFETY: the memory is of `device_memory`, and the call returns when the bytes are there: the host's are not page-locked.
        assert_eq!(unsafe { cuMemcpyDtoHAsync_v2(copied.as_mut_ptr().cast(), address, N, self.0) }, 0);
        copied
    }

    /// The place behind what it has been given.
    pub fn record(&self) -> Event {
        let mut event = ptr::null_mut();
        // SAFETY: the call gets a place for its result, and the event is of it.
        unsafe {
            assert_eq!(cuEventCreate(&mut event, 0), 0);
            assert_eq!(cuEventRecord(event, self.0), 0);
        }
        Event(event)
    }

    /// Lets the stream wait for a place of another one.
    pub fn wait(&self, event: &Event) {
        // SAFETY: the event is one of `cuEventCreate`.
        assert_eq!(unsafe { cuStreamWaitEvent(self.0, event.0, 0) }, 0);
    }

    /// The status of all that it has been given.
    pub fn synchronize(&self) -> c_int {
        // SAFETY: the stream is one of `cuStreamCreate`.
        unsafe { cuStreamSynchronize(self.0) }
    }
}

fn log(program: *mut c_void) -> String {
    let mut size = 0;
    // SAFETY: the program is compiled, and the buffer has as many bytes as NVRTC says.
    unsafe {
        nvrtcGetProgramLogSize(program, &mut size);
        let mut log = vec![0u8; size];
        nvrtcGetProgramLog(program, log.as_mut_ptr().cast());
        log.pop();
        String::from_utf8(log).expect("a log is UTF-8")
    }
}

/// The results of an expression of `x`, an element of the input, and `i`, its index; of type unsigned or float.
pub fn evaluate(settings: Settings, name: &str, expression: &str, input: &[f32]) -> Vec<u32> {
    let source = format!(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\ntypedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t; typedef int int32_t; typedef unsigned int uint32_t; typedef long long int64_t;\n\
         extern \"C\" __global__ void {name}(float const* input, unsigned* output, unsigned lengths) {{\n\
         unsigned i = blockIdx.x; float x = input[i]; output[i] = {expression}; }}"
    );
    let run =
        Run { source: &source, name, blocks: input.len() as u32, threads: 1, shared: 0, input, output: input.len() };
    run.with(settings).unwrap_or_else(|log| panic!("{log}")).0
}

impl Run<'_> {
    /// The output's bits after the launch, and the launch's status; or the compiler's log.
    pub fn with(&self, settings: Settings) -> Result<(Vec<u32>, c_int), String> {
        with_settings(settings, || {
            // SAFETY: the arguments are those of the kernels in `faults`: input, output, and the lengths of both.
            unsafe { self.run(false) }
        })
    }

    /// As `with`, with the output in the input's place.
    pub fn in_place(&self, settings: Settings) -> Result<(Vec<u32>, c_int), String> {
        assert_eq!(self.input.len(), self.output);
        // SAFETY: as in `with`.
        with_settings(settings, || unsafe { self.run(true) })
    }

    /// As `with`, with the settings of the environment; as a program, which initialises the driver.
    pub fn as_the_environment_says(&self) -> Result<(Vec<u32>, c_int), String> {
        // SAFETY: as in `with`.
        unsafe {
            assert_eq!(cuInit(0), 0);
            self.run(false)
        }
    }

    unsafe fn run(&self, in_place: bool) -> Result<(Vec<u32>, c_int), String> {
        let function = Function::load(self.source, self.name)?;
        // SAFETY: each call gets what CUDA asks for; memory has the lengths given.
        unsafe {
            let mut input = 0;
            assert_eq!(cuMemAlloc_v2(&mut input, 4 * (self.input.len() + self.output)), 0);
            let mut output = if in_place { input } else { input + 4 * self.input.len() as u64 };
            cuMemcpyHtoDAsync_v2(input, self.input.as_ptr().cast(), size_of_val(self.input), ptr::null_mut());
            let mut lengths = [self.input.len() as u32, self.output as u32];
            let mut arguments =
                [ptr::from_mut(&mut input).cast(), ptr::from_mut(&mut output).cast(), lengths.as_mut_ptr().cast()];
            let status = function.launch([self.blocks, 1, 1], [self.threads, 1, 1], self.shared, &mut arguments);
            let mut got = vec![0u32; self.output];
            cuMemcpyDtoHAsync_v2(got.as_mut_ptr().cast(), output, 4 * self.output, ptr::null_mut());
            cuMemFree_v2(input);
            Ok((got, status))
        }
    }
}

/// How many parameters kernel `name` of a source declares.
fn parameters(source: &str, name: &str) -> usize {
    let (_, declared) = source.split_once(&format!(" {name}(")).expect("the source has the kernel");
    let (list, _) = declared.split_once(')').expect("a list of parameters ends");
    if list.trim().is_empty() { 0 } else { list.split(',').count() }
}

/// A kernel, compiled and loaded.
pub struct Function {
    handle: *mut c_void,
    parameters: usize,
}

impl Function {
    /// Kernel `name` of a source, compiled with the settings of the calling thread; or the compiler's log.
    pub fn load(source: &str, name: &str) -> Result<Self, String> {
        let parameters = parameters(source, name);
        let source = CString::new(source).expect("a source has no NUL");
        let name = CString::new(name).expect("a name has no NUL");
        let (mut program, mut module, mut function) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: each call gets what CUDA asks for.
        unsafe {
            nvrtcCreateProgram(&mut program, source.as_ptr(), ptr::null(), 0, ptr::null(), ptr::null());
            if nvrtcCompileProgram(program, 0, ptr::null()) != 0 {
                return Err(log(program));
            }
            let mut size = 0;
            nvrtcGetPTXSize(program, &mut size);
            let mut ptx = vec![0u8; size];
            nvrtcGetPTX(program, ptx.as_mut_ptr().cast());
            nvrtcDestroyProgram(&mut program);
            assert_eq!(cuModuleLoadData(&mut module, ptx.as_ptr().cast()), 0);
            assert_eq!(cuModuleGetFunction(&mut function, module, name.as_ptr()), 0);
        }
        Ok(Self { handle: function, parameters })
    }

    /// The status of the request for so many bytes of shared memory a block.
    pub fn ask_for_shared(&self, bytes: c_int) -> c_int {
        const MAX_DYNAMIC_SHARED: c_int = 8;
        // SAFETY: the function is loaded.
        unsafe { cuFuncSetAttribute(self.handle, MAX_DYNAMIC_SHARED, bytes) }
    }

    /// The status of a launch. A launch reads an argument for each parameter of the kernel, so that their number must
    /// agree.
    ///
    /// # Safety
    ///
    /// `arguments` are of the types of the kernel's parameters.
    pub unsafe fn launch(&self, grid: [u32; 3], block: [u32; 3], shared: u32, arguments: &mut [*mut c_void]) -> c_int {
        assert_eq!(arguments.len(), self.parameters, "arguments, and parameters of the kernel");
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, block);
        let (stream, extra) = (ptr::null_mut(), ptr::null_mut());
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            cuLaunchKernel(
                self.handle,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared,
                stream,
                arguments,
                extra,
            )
        }
    }
}
