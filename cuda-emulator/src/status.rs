//! What the functions of libcuda return: `CUresult`.

use std::ffi::c_int;

pub const SUCCESS: c_int = 0;
pub const INVALID_VALUE: c_int = 1;
pub const OUT_OF_MEMORY: c_int = 2;
pub const NO_DEVICE: c_int = 100;
pub const INVALID_DEVICE: c_int = 101;
pub const INVALID_CONTEXT: c_int = 201;
pub const FILE_NOT_FOUND: c_int = 301;
pub const NOT_FOUND: c_int = 500;
pub const ILLEGAL_ADDRESS: c_int = 700;
pub const MISALIGNED_ADDRESS: c_int = 716;
