//! Checks for indices outside their axis, which updates and reads leave out without a word.
//!
//! A check sets a flag in a buffer of flags, which the caller reads later. [Reads](crate::gather) set it in their own kernel, and so do
//! [updates](crate::scatter) that read each index where they compute; for the others [`check`] is a launch beside theirs. Every unit
//! that sets a flag writes the same word: the order of their writes does not matter.

use crate::KernelError;
use crate::buffer::words_arg;
use crate::grid::grid;
use crate::index::{Tuples, row_of};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::server::{Handle, ServerError};
use cubecl::std::tensor::TensorHandle;

/// Flags on the device, all of them clear at first.
pub struct Flags {
    handle: Handle,
    length: usize,
}

impl Flags {
    /// `length` clear flags.
    pub fn new(client: &Client, length: usize) -> Self {
        Self { handle: client.create_from_slice(&vec![0; length * size_of::<u32>()]), length }
    }

    /// How many flags there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Flag `number`.
    ///
    /// # Panics
    ///
    /// When there is no such flag.
    pub fn flag(&self, number: usize) -> Flag<'_> {
        assert!(number < self.length, "flag {number} of {}", self.length);
        Flag { flags: self, number: number as u32 }
    }

    /// Which flags are set. Waits for the checks that were launched before.
    ///
    /// # Errors
    ///
    /// When the device cannot tell.
    pub fn read(&self, client: &Client) -> Result<Vec<bool>, ServerError> {
        let bytes = client.read_one(self.handle.clone())?;
        Ok(bytes.chunks(size_of::<u32>()).take(self.length).map(|word| word != [0; 4]).collect())
    }
}

/// One flag, for one operation.
#[derive(Clone, Copy)]
pub struct Flag<'a> {
    flags: &'a Flags,
    number: u32,
}

impl Flag<'_> {
    /// The buffer of all flags.
    pub(crate) fn buffer(self) -> BufferArg {
        words_arg(&self.flags.handle, self.flags.length)
    }

    /// Whether both are in one buffer.
    pub(crate) fn is_beside(self, other: Self) -> bool {
        core::ptr::eq(self.flags, other.flags)
    }

    /// Its place in the buffer.
    pub(crate) fn number(self) -> u32 {
        self.number
    }
}

/// Sets a flag if an index is outside its axis: negative, or at least the axis' size.
///
/// With one size every index of `indices[..]` is for an axis of that size. With `k` sizes `indices[.., k]` are tuples,
/// whose part `j` is for an axis of size `sizes[j]`.
///
/// # Errors
///
/// Indices that no update and no read takes either.
pub fn check(client: &Client, indices: TensorHandle, sizes: &[usize], flag: Flag<'_>) -> Result<(), KernelError> {
    const KERNEL: &str = "index_check::check";
    let indices = Tuples::new(client, KERNEL, indices, sizes)?;
    if indices.count == 0 {
        return Ok(());
    }
    let width = if sizes.len() == 1 { indices.view.axis_vector_width(indices.count) } else { 1 };
    let units = indices.count / width;
    let (count, dim) = grid(units);
    // SAFETY: units stop at the number of tuples, or of vectors of them where a tuple is one index and they are adjacent;
    // the view covers every part of each, and the flag is in the buffer.
    unsafe {
        check_kernel::launch_unchecked(
            client,
            count,
            dim,
            width,
            indices.view.buffer(),
            flag.buffer(),
            units as u32,
            indices.stride,
            indices.part_stride,
            indices.sizes(),
            flag.number(),
            indices.view.dtype,
        );
    }
    Ok(())
}

/// The row-major position of the first index that [`check`] would find.
pub fn first_outside(indices: &[i64], sizes: &[usize]) -> Option<usize> {
    let is_outside = |index: i64, size: usize| usize::try_from(index).map_or(true, |index| index >= size);
    let parts = sizes.iter().cycle();
    indices.iter().zip(parts).position(|(&index, &size)| is_outside(index, size))
}

/// Sets `flags[flag]`, where there are flags. Every unit that does writes the same word.
#[cube]
pub(crate) fn raise(flags: ComptimeOption<&mut [u32]>, flag: u32) {
    #[comptime]
    if let ComptimeOption::Some(flags) = flags {
        flags[flag as usize] = 1u32;
    };
}

/// One unit a tuple of `indices[units, parts]`, or a vector of indices of one size: sets `flags[flag]` if a part is
/// outside its size.
#[cube(launch_unchecked)]
fn check_kernel<I: Int, N: Size>(
    indices: &[Vector<I, N>],
    flags: &mut [u32],
    units: u32,
    stride: u32,
    part_stride: u32,
    sizes: Sequence<u32>,
    flag: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let mut outside = false;
    #[unroll]
    for part in 0..sizes.len() {
        let size = sizes[part];
        let index = indices[(unit * stride + comptime!(part as u32) * part_stride) as usize];
        #[unroll]
        for lane in 0..N::value() {
            outside = outside || row_of::<I>(index.extract(lane), size) == size;
        }
    }
    if outside {
        flags[flag as usize] = 1u32;
    }
    keep_subnormals();
}

#[cfg(test)]
mod tests {
    use super::first_outside;

    #[test]
    fn the_first_in_row_major_order() {
        assert_eq!(first_outside(&[0, 4, 2], &[5]), None);
        assert_eq!(first_outside(&[0, 5, -1], &[5]), Some(1));
        assert_eq!(first_outside(&[0, 0, -1], &[5]), Some(2));
        assert_eq!(first_outside(&[], &[0]), None);
        assert_eq!(first_outside(&[0], &[0]), Some(0));
        // Tuples: the second part is for a longer axis.
        assert_eq!(first_outside(&[1, 6, 1, 7], &[2, 7]), Some(3));
        assert_eq!(first_outside(&[1, 6, 2, 7], &[2, 7]), Some(2));
        assert_eq!(first_outside(&[i64::MAX], &[usize::MAX]), None);
        assert_eq!(first_outside(&[i64::MIN], &[usize::MAX]), Some(0));
    }
}
