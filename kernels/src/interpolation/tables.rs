//! The weights of an axis on a device.

use super::weights::{AxisWeights, Filter, Windows};
use crate::buffer::words_arg;
use crate::tables::{Table, Tables};
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// What the weights of an axis depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub input: usize,
    pub output: usize,
    pub filter: Filter,
    pub align_corners: bool,
    /// The type of the chains.
    pub accumulator: ElemType,
}

/// [`AxisWeights`] on a device.
#[derive(Clone)]
pub(super) struct ByInput {
    buffers: [Handle; 3],
    lengths: [usize; 3],
    /// The most outputs that read one input.
    pub longest: usize,
}

/// [`Windows`] on a device.
#[derive(Clone)]
pub(super) struct ByOutput {
    buffers: [Handle; 2],
    lengths: [usize; 2],
}

impl Table for ByInput {
    fn buffers(&self) -> &[Handle] {
        &self.buffers
    }
}

impl Table for ByOutput {
    fn buffers(&self) -> &[Handle] {
        &self.buffers
    }
}

static BY_INPUT: Tables<Axis, ByInput> = Tables::new();
static BY_OUTPUT: Tables<Axis, ByOutput> = Tables::new();

impl ByInput {
    pub(super) fn of(client: &Client, axis: Axis) -> Self {
        BY_INPUT.get(client, axis, || {
            let table = AxisWeights::new(axis.input, axis.output, axis.filter, axis.align_corners);
            let (first, weights) = (words(client, &table.first), axis.upload(client, &table.weights));
            Self {
                longest: table.longest(),
                lengths: [table.offsets.len(), table.first.len(), table.weights.len()],
                buffers: [words(client, &table.offsets), first, weights],
            }
        })
    }

    pub(super) fn offsets(&self) -> BufferArg {
        words_arg(&self.buffers[0], self.lengths[0])
    }

    pub(super) fn first(&self) -> BufferArg {
        words_arg(&self.buffers[1], self.lengths[1])
    }

    pub(super) fn weights(&self) -> BufferArg {
        // SAFETY: the buffer is made with this length.
        unsafe { BufferArg::from_raw_parts(self.buffers[2].clone(), self.lengths[2]) }
    }
}

impl ByOutput {
    pub(super) fn of(client: &Client, axis: Axis) -> Self {
        BY_OUTPUT.get(client, axis, || {
            let table = Windows::new(axis.input, axis.output, axis.filter, axis.align_corners);
            let inputs = table.inputs.as_flattened();
            Self {
                lengths: [inputs.len(), table.weights.len()],
                buffers: [words(client, inputs), axis.upload(client, &table.weights)],
            }
        })
    }

    pub(super) fn inputs(&self) -> BufferArg {
        words_arg(&self.buffers[0], self.lengths[0])
    }

    pub(super) fn weights(&self) -> BufferArg {
        // SAFETY: the buffer is made with this length.
        unsafe { BufferArg::from_raw_parts(self.buffers[1].clone(), self.lengths[1]) }
    }
}

impl Axis {
    /// Weights, rounded to the type of the chains.
    fn upload(&self, client: &Client, weights: &[f64]) -> Handle {
        match self.accumulator {
            ElemType::Float(FloatKind::F64) => bytes(client, bytemuck::cast_slice(weights)),
            _ => {
                let rounded: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
                bytes(client, bytemuck::cast_slice(&rounded))
            }
        }
    }
}

fn words(client: &Client, words: &[u32]) -> Handle {
    bytes(client, bytemuck::cast_slice(words))
}

/// A buffer of these bytes; of some where there are none, since a kernel binds no empty buffer.
fn bytes(client: &Client, bytes: &[u8]) -> Handle {
    client.create_from_slice(if bytes.is_empty() { &[0; 8] } else { bytes })
}
