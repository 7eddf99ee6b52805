//! How pools are launched: in one launch, or in several that continue each other, where a unit's walk is long.

use super::axis::{Lengths, Windows};
use super::kernel::{self, Form, LayoutLaunch, Piece};
use crate::buffer::{unwritten, words, words_arg};
use crate::dtype::{F32, U32};
use crate::grid::{MAX_ITERATIONS, axis_grids};
use crate::known_answer;
use crate::quotient::Quotients;
use crate::tables::Tables;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;

/// Steps of a walk in one launch: one more iteration leaves the loop.
const STEPS: usize = MAX_ITERATIONS - 1;

/// The pieces of a walk of so many steps, with their first step and the one behind their last.
fn pieces(steps: usize) -> impl Iterator<Item = (Piece, u32, u32)> {
    let count = steps.div_ceil(STEPS).max(1);
    (0..count).map(move |n| {
        let piece = Piece { first: n == 0, last: n + 1 == count };
        (piece, (n * STEPS) as u32, ((n + 1) * STEPS).min(steps) as u32)
    })
}

/// What the pieces of a walk hand on, of as many elements as the result has.
fn handed_on(client: &Client, result: &TensorHandle, steps: usize, dtype: ElemType) -> TensorHandle {
    let elements = if steps > STEPS { result.shape().iter().product() } else { 1 };
    unwritten(client, vec![elements], dtype)
}

/// The layout of `[entries, channels, rows, columns]`, or with planes before the rows.
fn layout(tensor: &TensorHandle) -> LayoutLaunch {
    let strides: Vec<u32> = tensor.strides().iter().map(|&stride| stride as u32).collect();
    let channels = tensor.shape()[1] as u32;
    let (entry, channel) = (strides[0], strides[1]);
    match strides[2..] {
        [plane, row, column] => LayoutLaunch::new(channels, entry, channel, plane, row, column),
        _ => LayoutLaunch::new(channels, entry, channel, 0, strides[2], strides[3]),
    }
}

fn buffer(tensor: &TensorHandle) -> BufferArg {
    tensor.clone().into_arg().into_buffer_arg()
}

/// Tables of [shared](Windows::Shared) windows, by what they hold.
static SHARED: Tables<Vec<u32>, [Handle; 1]> = Tables::new();

/// The axes of an average pool, of images without planes, or with them.
pub(super) struct Averages {
    pub(super) axes: [Lengths; 3],
    pub(super) windows: Windows,
    pub(super) in_planes: bool,
    /// That of the axes.
    pub(super) table: Vec<u32>,
}

impl Averages {
    /// The averages of the windows of `source`, of `shape`, or if this is the `gradient` those of its pixels.
    pub(super) fn launch(
        &self,
        client: &Client,
        source: &TensorHandle,
        shape: Vec<usize>,
        accumulator: ElemType,
        gradient: bool,
    ) -> TensorHandle {
        let output = unwritten(client, shape, source.dtype);
        let [depth, height, width] = &self.axes;
        let images = output.shape()[0] * output.shape()[1];
        let extent = |axis: &Lengths| if gradient { axis.pixels } else { axis.windows };
        let longest = if gradient { Lengths::most_windows } else { Lengths::most_pixels };
        let steps = self.axes.iter().map(|axis| longest(axis, &self.table, self.windows)).product();
        let sums = handed_on(client, &output, steps, accumulator);
        let table = match self.table[..] {
            [] => words(client, 1),
            _ => {
                let upload = || [client.create_from_slice(bytemuck::cast_slice(&self.table))];
                let [buffer] = SHARED.get(client, self.table.clone(), upload);
                buffer
            }
        };
        let quotients = if accumulator == F32 { known_answer::quotients(client) } else { Quotients::Device };
        for (piece, from, to) in pieces(steps) {
            let form = Form { windows: self.windows, in_planes: self.in_planes, gradient, piece, quotients };
            for (count, dim, unit) in axis_grids(images * extent(depth), extent(height), extent(width)) {
                // SAFETY: a unit that exists owns an element of the output, and of the sums where there are several
                // pieces. It reads the table at windows and pixels of its axes, and the source at pixels of a window, or at
                // windows of a pixel, all of which exist.
                unsafe {
                    kernel::averages::launch_unchecked(
                        client,
                        count,
                        dim,
                        buffer(source),
                        words_arg(&table, self.table.len().max(1)),
                        buffer(&sums),
                        buffer(&output),
                        layout(source),
                        depth.launch(),
                        height.launch(),
                        width.launch(),
                        unit,
                        from,
                        to,
                        form,
                        [source.dtype, accumulator],
                    );
                }
            }
        }
        output
    }
}

/// The maxima of windows of `taps` of `input`, of `shape`, and if there is a type for them their indices.
pub(super) fn maxima(
    client: &Client,
    input: &TensorHandle,
    shape: Vec<usize>,
    [height, width]: [Lengths; 2],
    taps: [usize; 2],
    key: ElemType,
    index: Option<ElemType>,
) -> (TensorHandle, Option<TensorHandle>) {
    let output = unwritten(client, shape.clone(), input.dtype);
    let indices = match index {
        Some(dtype) => unwritten(client, shape, dtype),
        None => unwritten(client, vec![1], U32),
    };
    let images = output.shape()[0] * output.shape()[1];
    let steps = taps[0] * taps[1];
    let found = handed_on(client, &output, steps, U32);
    for (piece, from, to) in pieces(steps) {
        for (count, dim, unit) in axis_grids(images, height.windows, width.windows) {
            // SAFETY: a unit that exists owns an element of the output, of the indices if they are asked for, and of what
            // was found where there are several pieces. It reads pixels inside the image only.
            unsafe {
                kernel::maxima::launch_unchecked(
                    client,
                    count,
                    dim,
                    buffer(input),
                    buffer(&found),
                    buffer(&output),
                    buffer(&indices),
                    layout(input),
                    height.launch(),
                    width.launch(),
                    unit,
                    taps[1] as u32,
                    from,
                    to,
                    piece,
                    index.is_some(),
                    [input.dtype, key, indices.dtype],
                );
            }
        }
    }
    (output, index.map(|_| indices))
}

/// The gradients of the pixels of `shape` by maxima with these indices.
pub(super) fn maximum_gradients(
    client: &Client,
    gradient: &TensorHandle,
    indices: &TensorHandle,
    shape: Vec<usize>,
    [height, width]: [Lengths; 2],
    accumulator: ElemType,
) -> TensorHandle {
    let output = unwritten(client, shape, gradient.dtype);
    let images = output.shape()[0] * output.shape()[1];
    let steps = [height, width].iter().map(|axis| axis.most_windows(&[], Windows::Strided)).product();
    let sums = handed_on(client, &output, steps, accumulator);
    for (piece, from, to) in pieces(steps) {
        for (count, dim, unit) in axis_grids(images, height.pixels, width.pixels) {
            // SAFETY: a unit that exists owns an element of the output, and of the sums where there are several pieces. It
            // reads the gradient and the indices at windows that exist.
            unsafe {
                kernel::maximum_gradients::launch_unchecked(
                    client,
                    count,
                    dim,
                    buffer(gradient),
                    buffer(indices),
                    buffer(&sums),
                    buffer(&output),
                    layout(gradient),
                    layout(indices),
                    height.launch(),
                    width.launch(),
                    unit,
                    from,
                    to,
                    piece,
                    [gradient.dtype, indices.dtype, accumulator],
                );
            }
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::{STEPS, pieces};
    use std::iter::once;

    #[test]
    fn pieces_continue_each_other() {
        for steps in [0, 1, STEPS, STEPS + 1, 3 * STEPS] {
            let all: Vec<_> = pieces(steps).collect();
            let ends: Vec<u32> = once(0).chain(all.iter().map(|(.., to)| *to)).collect();
            assert!(all.iter().zip(&ends).all(|((_, from, to), end)| from == end && (to - from) as usize <= STEPS));
            assert_eq!(ends.last(), Some(&(steps as u32)));
            let inner = |(n, (piece, ..)): (usize, &(super::Piece, u32, u32))| {
                (piece.first, piece.last) == (n == 0, n + 1 == all.len())
            };
            assert!(all.iter().enumerate().all(inner), "{steps}");
        }
    }
}
