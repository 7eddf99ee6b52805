//! A compiled kernel in the process.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::path::Path;

/// A place in a grid, or its extent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

impl Index {
    /// How many places an extent has, at most 2^64 - 1.
    pub fn size(self) -> u64 {
        (u64::from(self.x) * u64::from(self.y)).saturating_mul(u64::from(self.z))
    }

    /// Place `number` of an extent, x first.
    pub fn place(self, number: u64) -> Self {
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        Self { x: (number % x) as c_uint, y: (number / x % y) as c_uint, z: (number / x / y) as c_uint }
    }
}

/// `EmulatorState` of cuda_emulator.h.
#[repr(C)]
pub struct State {
    pub thread: Index,
    pub block: Index,
    pub block_size: Index,
    pub grid_size: Index,
    pub shared: *mut u8,
    pub context: *mut c_void,
    pub barrier: Option<unsafe extern "C" fn(*mut c_void, c_uint)>,
    pub access: Option<unsafe extern "C" fn(*mut c_void, *const c_void, c_ulong, c_uint)>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// Its own size, in bytes.
    pub size: usize,
    /// The size of what it points to, in bytes; 0 where it is no pointer.
    pub pointee: usize,
    /// What an address of it is a multiple of.
    pub alignment: usize,
    /// Whether it is `T const* __restrict__`: a GPU may read what it points to from a cache that sees no write of the launch.
    pub constant: bool,
}

/// A kernel of a loaded library, which stays loaded.
pub struct Kernel {
    pub name: String,
    pub parameters: Vec<Parameter>,
    /// Whether its source has barriers.
    pub barriers: bool,
    pub run: unsafe extern "C" fn(*mut *mut c_void),
    pub state: *mut State,
    /// The library's addresses.
    pub image: (usize, usize),
    length: unsafe extern "C" fn(*mut *mut c_void, c_ulong) -> c_ulong,
}

impl Kernel {
    /// The elements of the buffer that pointer parameter `i` names, where the launch says it (CubeCL's `info`).
    ///
    /// # Safety
    ///
    /// `arguments` are those of a launch of this kernel.
    pub unsafe fn length(&self, arguments: *mut *mut c_void, i: usize) -> Option<usize> {
        // SAFETY: the caller's promise.
        let length = unsafe { (self.length)(arguments, i as c_ulong) };
        (length != c_ulong::MAX).then_some(length as usize)
    }
}

/// A loaded library of kernels.
pub struct Module {
    library: Library,
}

impl Module {
    /// Loads a library that [`compile`](crate::compile::compile) made.
    pub fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: the library is g++'s, from a translated kernel: loading it runs no code of its own.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        library.map(|library| Self { library }).map_err(|error| error.to_string())
    }

    /// Kernel `name` of the library.
    pub fn kernel(&self, name: &str) -> Result<Kernel, String> {
        // SAFETY: the types below are those of cuda_emulator.h, against which every library is compiled. The library is not
        // unloaded as long as the process lives: modules are leaked by the driver.
        unsafe {
            let library = &self.library;
            let error = |error: libloading::Error| error.to_string();
            let list = |what: &str| {
                let names = library.get::<*const c_char>(format!("emulator_{what}_{name}")).map_err(error)?.into_raw();
                let names = CStr::from_ptr(names.cast::<c_char>()).to_string_lossy();
                let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
                Ok::<Vec<String>, String>(names.collect())
            };
            let (names, constants) = (list("names")?, list("constants")?);
            let of_pointees: unsafe extern "C" fn(*mut c_ulong) =
                *library.get(format!("emulator_pointees_{name}")).map_err(error)?;
            let mut pointees: Vec<[c_ulong; 3]> = vec![[0; 3]; names.len()];
            of_pointees(pointees.as_mut_ptr().cast());
            let parameters = names.into_iter().zip(pointees);
            let image: unsafe extern "C" fn(*mut *const u8, *mut *const u8) =
                *library.get("emulator_image").map_err(error)?;
            let (mut begin, mut end) = (std::ptr::null(), std::ptr::null());
            image(&mut begin, &mut end);
            Ok(Kernel {
                name: name.to_string(),
                parameters: parameters
                    .map(|(name, [pointee, alignment, size])| Parameter {
                        constant: constants.contains(&name),
                        name,
                        size: size as usize,
                        pointee: pointee as usize,
                        alignment: alignment as usize,
                    })
                    .collect(),
                barriers: *library.get::<*const c_int>("emulator_barriers").map_err(error)?.into_raw().cast::<c_int>()
                    != 0,
                run: *library.get(format!("emulator_run_{name}")).map_err(error)?,
                state: library.get::<*mut State>("emulator_state").map_err(error)?.into_raw().cast(),
                image: (begin as usize, end as usize),
                length: *library.get(format!("emulator_length_{name}")).map_err(error)?,
            })
        }
    }
}
