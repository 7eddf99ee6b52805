//! Fourier transforms of real signals.
//!
//! # Order contract
//!
//! A transform of `n` values, `n` a power of two, is Stockham's autosort algorithm, radix 2, decimation in time (C. Van
//! Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, section 1.7). For `m` = 1, 2, 4, .., `n / 2`
//! it combines transforms of `m` values to transforms of `2 m`:
//!
//! ```text
//! w = the rounded cosine and sine of 2 pi j / (2 m), the sine negated in the forward direction
//! t.re = -w.im * b.im + w.re * b.re;  t.im = w.im * b.re + w.re * b.im
//!     where a = x[q, j], b = x[q + n / (2 m), j] with x of shape [n / m, m]
//! y[q, j] = a + t;  y[q, j + m] = a - t              y of shape [n / (2 m), 2 m], 0 <= q < n / (2 m), 0 <= j < m
//! ```
//!
//! Every product is rounded before it is added. [`forward`] pads the signal with +0
//! to `n` values, has imaginary parts of +0, and gives the first `n / 2 + 1` values. [`inverse`] pads the half spectrum
//! with +0 to `n / 2 + 1` values, mirrors and conjugates it for the second half, and gives the real parts, each
//! multiplied by `1 / n`. Half types are computed in f32, with one rounding at the end.
//!
//! The cosines and sines are computed on the host, in f64 by their series: [`twiddles`].
//!
//! # Cost
//!
//! Lines of 2 to 4096 values (2048 in f64) are transformed in shared memory, in one launch without scratch memory. Others, and
//! all where kernels [keep](crate::subnormals) subnormal numbers by many operations, take `log2(n) + 2` launches, one more
//! forward, and four copies of the lines in f32 (f64 for f64). Operands that are not dense are copied before. The table of
//! cosines and sines is kept on the device.

mod kernel;
mod line_kernel;
mod plan;
pub mod reference;
mod twiddles;

pub use plan::Plan;
pub use twiddles::twiddles;

use crate::KernelError;
use crate::buffer::{dense, unwritten};
use crate::device::{require_shared_memory, require_units};
use crate::dtype::float_accumulator;
use crate::grid::{UNITS, cubes, grid};
use crate::planned::require_plan;
use crate::subnormals;
use crate::tables::Tables;
use crate::view::{addressable, require_shape};
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;
use line_kernel::LineVariant;
use plan::lines_of_cube;

/// From time to frequency, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Direction {
    Forward,
    Inverse,
}

/// The first `n / 2 + 1` values of the spectrum of a real signal along `axis`: real and imaginary parts.
///
/// The signal is cut to its first `n` values, or padded with zeros. No plan changes a bit; without one it is chosen.
///
/// # Errors
///
/// Refuses an `n` that is not a power of two, more than 2^30 elements, element types the device does not compute, and a plan
/// that [does not apply](Plan::refuses).
pub fn forward(
    client: &Client,
    signal: TensorHandle,
    axis: usize,
    n: usize,
    plan: Option<Plan>,
) -> Result<[TensorHandle; 2], KernelError> {
    const KERNEL: &str = "fourier::forward";
    let transform = Transform::new(client, KERNEL, &[&signal], axis, n)?;
    if transform.plan(KERNEL, plan)? == Plan::Lines {
        return transform.by_lines(KERNEL, signal, None);
    }
    let lines = transform.spread(signal, None);
    let lines = transform.combined(lines, Direction::Forward);
    let dtype = transform.dtype;
    Ok([0, 1].map(|part| transform.collected(&lines[part], n / 2 + 1, 1.0, dtype)))
}

/// The real signal of `n` values along `axis` of a spectrum in the form of [`forward`]'s.
///
/// The spectrum is cut to its first `n / 2 + 1` values, or padded with zeros. The imaginary parts of values `0` and `n
/// / 2` do not count.
///
/// # Errors
///
/// As [`forward`], and for parts of different shapes.
pub fn inverse(
    client: &Client,
    real: TensorHandle,
    imaginary: TensorHandle,
    axis: usize,
    n: usize,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "fourier::inverse";
    require_shape(KERNEL, "imaginary part", imaginary.shape(), real.shape())?;
    let transform = Transform::new(client, KERNEL, &[&real, &imaginary], axis, n)?;
    if transform.plan(KERNEL, plan)? == Plan::Lines {
        return transform.by_lines(KERNEL, real, Some(imaginary)).map(|[signal, _]| signal);
    }
    let lines = transform.spread(real, Some(imaginary));
    let [real, _] = transform.combined(lines, Direction::Inverse);
    Ok(transform.collected(&real, n, 1.0 / n as f32, transform.dtype))
}

/// The tables for transforms of so many values, in the type in which they are computed.
static TWIDDLES: Tables<(usize, ElemType), [Handle; 1]> = Tables::new();

/// Transforms of `n` values for each line of a tensor `[outer, axis, inner]`.
struct Transform<'a> {
    client: &'a Client,
    shape: Vec<usize>,
    axis: usize,
    n: usize,
    dtype: ElemType,
    accumulator: ElemType,
}

impl<'a> Transform<'a> {
    fn new(
        client: &'a Client,
        kernel: &'static str,
        operands: &[&TensorHandle],
        axis: usize,
        n: usize,
    ) -> Result<Self, KernelError> {
        let shape = operands[0].shape().to_vec();
        if axis >= shape.len() {
            let reason = format!("axis {axis} of {shape:?}");
            return Err(KernelError::Argument { kernel, reason });
        }
        if !n.is_power_of_two() {
            let reason = format!("a transform of {n} values, want a power of two");
            return Err(KernelError::Argument { kernel, reason });
        }
        let complex = [&shape[..axis], &[n, 2], &shape[axis + 1..]].concat();
        addressable(kernel, &[&complex])?;
        let accumulator = float_accumulator(client, kernel, operands)?;
        require_units(client, kernel, UNITS)?;
        Ok(Self { client, axis, n, dtype: operands[0].dtype, accumulator, shape })
    }

    fn inner(&self) -> usize {
        self.shape[self.axis + 1..].iter().product()
    }

    /// How many transforms there are.
    fn lines(&self) -> usize {
        self.shape[..self.axis].iter().product::<usize>() * self.inner()
    }

    /// The plan of the caller's choice, or the chosen one. Without lines nothing is launched by any.
    fn plan(&self, kernel: &'static str, plan: Option<Plan>) -> Result<Plan, KernelError> {
        if self.lines() == 0 {
            return Ok(Plan::Stages);
        }
        let size = self.accumulator.size();
        let plan = plan.unwrap_or_else(|| Plan::of(self.n, size, subnormals::is_kept(self.client)));
        require_plan(kernel, &plan, plan.refuses(self.n, size))?;
        Ok(plan)
    }

    /// The operand's parts, dense. Of a signal the second one is bound, and not read.
    fn dense(&self, real: TensorHandle, imaginary: Option<TensorHandle>) -> [TensorHandle; 2] {
        let dense = |part: TensorHandle| match part.shape().iter().product::<usize>() {
            // There is nothing to read, but a buffer has to be bound.
            0 => unwritten(self.client, vec![1], self.dtype),
            _ => dense(self.client, part),
        };
        let real = dense(real);
        let imaginary = imaginary.map_or_else(|| real.clone(), dense);
        [real, imaginary]
    }

    /// The transforms of the lines in shared memory: the first `n / 2 + 1` values of a spectrum, or the values of a signal, and
    /// no second part.
    fn by_lines(
        &self,
        kernel: &'static str,
        real: TensorHandle,
        imaginary: Option<TensorHandle>,
    ) -> Result<[TensorHandle; 2], KernelError> {
        let inverse = imaginary.is_some();
        let mut shape = self.shape.clone();
        shape[self.axis] = if inverse { self.n } else { self.n / 2 + 1 };
        let second = if inverse { vec![1] } else { shape.clone() };
        let parts = [shape.clone(), second].map(|shape| unwritten(self.client, shape, self.dtype));
        let lines = lines_of_cube(self.n);
        require_shared_memory(self.client, kernel, lines * self.n * 2 * self.accumulator.size())?;
        let table = TWIDDLES.get(self.client, (self.n, self.accumulator), || self.twiddles());
        let [real, imaginary] = self.dense(real, imaginary);
        let count = self.lines().div_ceil(lines);
        let factor = if inverse { 1.0 / self.n as f32 } else { 1.0 };
        // SAFETY: a cube below `count` reads values below the length of lines clamped to the last one, pairs of the table, and
        // writes the elements of its own lines; places in shared memory are below `lines * n` by construction.
        unsafe {
            line_kernel::transform::launch_unchecked(
                self.client,
                cubes(count),
                CubeDim::new_1d(UNITS),
                real.into_arg().into_buffer_arg(),
                imaginary.into_arg().into_buffer_arg(),
                BufferArg::from_raw_parts(table[0].clone(), self.n),
                parts[0].clone().into_arg().into_buffer_arg(),
                parts[1].clone().into_arg().into_buffer_arg(),
                self.shape[self.axis] as u32,
                shape[self.axis] as u32,
                self.inner() as u32,
                self.lines() as u32,
                factor,
                count as u32,
                LineVariant { n: self.n as u32, lines: lines as u32, inverse },
                [self.dtype, self.accumulator],
            );
        }
        Ok(parts)
    }

    fn parts(&self) -> [TensorHandle; 2] {
        [(); 2].map(|()| unwritten(self.client, vec![self.lines(), self.n], self.accumulator))
    }

    /// The operand's lines as two tensors `[lines, n]`, real and imaginary, padded, and mirrored if it is a half
    /// spectrum.
    fn spread(&self, real: TensorHandle, imaginary: Option<TensorHandle>) -> [TensorHandle; 2] {
        let parts = self.parts();
        let units = self.lines() * self.n;
        if units == 0 {
            return parts;
        }
        let length = self.shape[self.axis];
        let mirrored = imaginary.is_some();
        let [real, imaginary] = self.dense(real, imaginary);
        let [to_real, to_imaginary] = &parts;
        let (count, dim) = grid(units);
        // SAFETY: a unit below `units` owns an element of both parts, and reads its line's values below `length`.
        unsafe {
            kernel::spread::launch_unchecked(
                self.client,
                count,
                dim,
                real.into_arg().into_buffer_arg(),
                imaginary.into_arg().into_buffer_arg(),
                to_real.clone().into_arg().into_buffer_arg(),
                to_imaginary.clone().into_arg().into_buffer_arg(),
                length as u32,
                self.inner() as u32,
                self.n as u32,
                units as u32,
                mirrored,
                [self.dtype, self.accumulator],
            );
        }
        parts
    }

    /// The transforms of the lines.
    fn combined(&self, mut lines: [TensorHandle; 2], direction: Direction) -> [TensorHandle; 2] {
        let units = self.lines() * (self.n / 2);
        if units == 0 {
            return lines;
        }
        let table = TWIDDLES.get(self.client, (self.n, self.accumulator), || self.twiddles());
        let mut m = 1;
        while m < self.n {
            let combined = self.parts();
            let [real, imaginary] = lines;
            let (count, dim) = grid(units);
            // SAFETY: a unit below `units` reads two values of its line and one of the table's pairs, and owns two
            // values of the result's line.
            unsafe {
                kernel::combine::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    real.into_arg().into_buffer_arg(),
                    imaginary.into_arg().into_buffer_arg(),
                    BufferArg::from_raw_parts(table[0].clone(), self.n),
                    combined[0].clone().into_arg().into_buffer_arg(),
                    combined[1].clone().into_arg().into_buffer_arg(),
                    m as u32,
                    self.n as u32,
                    units as u32,
                    direction == Direction::Inverse,
                    self.accumulator,
                );
            }
            lines = combined;
            m *= 2;
        }
        lines
    }

    fn twiddles(&self) -> [Handle; 1] {
        let table = twiddles(self.n);
        [match self.accumulator {
            ElemType::Float(FloatKind::F64) => self.client.create_from_slice(bytemuck::cast_slice(&table)),
            _ => {
                let rounded: Vec<f32> = table.iter().map(|&w| w as f32).collect();
                self.client.create_from_slice(bytemuck::cast_slice(&rounded))
            }
        }]
    }

    /// The first `length` values of each line, along the axis of the operand.
    fn collected(&self, lines: &TensorHandle, length: usize, factor: f32, dtype: ElemType) -> TensorHandle {
        let mut shape = self.shape.clone();
        shape[self.axis] = length;
        let units = self.lines() * length;
        let output = unwritten(self.client, shape, dtype);
        if units == 0 {
            return output;
        }
        let (count, dim) = grid(units);
        // SAFETY: a unit below `units` owns an element of the output, and reads a value of its line below `length`,
        // which is at most `n`, or 1 where the line has one.
        unsafe {
            kernel::collect::launch_unchecked(
                self.client,
                count,
                dim,
                lines.clone().into_arg().into_buffer_arg(),
                output.clone().into_arg().into_buffer_arg(),
                length as u32,
                self.inner() as u32,
                self.n as u32,
                factor,
                units as u32,
                [dtype, self.accumulator],
            );
        }
        output
    }
}
