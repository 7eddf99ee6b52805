//! The terms of a block of chains, as all columns of a cube meet them: where each lies in the source, and in the weight.

use super::kernel::{Spatial, Taps};
use super::plan::{RING, SHARE, WINDOW};
use cubecl::prelude::*;

/// A block of the chains of a cube.
#[derive(CubeType)]
pub(super) struct Block {
    /// Its first term in the chain, and how many it has.
    pub begin: u32,
    pub terms: u32,
    /// The taps that all columns of the cube meet.
    pub d: Taps,
    pub h: Taps,
    pub w: Taps,
    /// Channels of the source that a tap meets, and elements from each to the next.
    pub channels: u32,
    pub channel_stride: u32,
    /// Elements from each position of the source to the next.
    pub strides: Spatial,
    /// Where the group's weights begin, as [`Terms::weights`] counts; the taps, and the steps of a weight that is not packed.
    pub first_weight: u32,
    pub taps: Spatial,
    pub steps: WeightSteps,
}

/// Elements from each part of a weight to the next.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct WeightSteps {
    pub group: u32,
    /// Channels that are computed.
    pub channel: u32,
    /// Channels of the source.
    pub source: u32,
    pub taps: Spatial,
}

/// What a column adds to the place of a term: a batch entry and a target position.
#[derive(CubeType)]
pub(super) struct Column {
    /// The element of the source at its first tap and the group's first channel.
    pub base: u32,
    /// The position of its first tap. One before the source's begin wraps.
    pub position: Spatial,
}

#[cube]
impl Column {
    /// Whether the term at `place` lies in a source of these lengths.
    fn meets(&self, place: Vector<u32, Const<4>>, lengths: &Spatial, #[comptime] inside: [bool; 3]) -> bool {
        let position = Spatial {
            d: self.position.d + place.extract(1usize),
            h: self.position.h + place.extract(2usize),
            w: self.position.w + place.extract(3usize),
        };
        position.exists(lengths, inside)
    }
}

/// Terms of a block, found window by window. A window is read after the next barrier, until the one after it is found.
#[derive(CubeType)]
pub(super) struct Terms {
    /// From a column's first tap on: elements of the source, then positions along depth, height and width, all modulo 2^32.
    places: Shared<[Vector<u32, Const<4>>]>,
    /// Rows of a [packed](super::tiled_kernel::pack_weight) weight; or elements of the first channel.
    weights: Shared<[u32]>,
}

#[cube]
impl Terms {
    pub fn new() -> Terms {
        Terms {
            places: Shared::new_slice(comptime!(RING as usize)),
            weights: Shared::new_slice(comptime!(RING as usize)),
        }
    }

    /// Finds the window that begins at term `first` of a block that has terms. Past the block's end its last terms are repeated.
    pub fn find(
        &mut self,
        block: &Block,
        first: u32,
        #[comptime] units: u32,
        #[comptime] whole: bool,
        #[comptime] packed: bool,
    ) {
        // Where a fetch of several terms begins.
        let last = block.terms - comptime!(if whole { SHARE } else { 1 });
        #[unroll]
        for f in 0..comptime!(WINDOW / units) {
            let nth = first + f * units + UNIT_POS;
            let term = block.begin + select(nth < block.terms, nth, last);
            let tap = term / block.channels;
            let channel = term - tap * block.channels;
            let at = Spatial { d: block.d.count, h: block.h.count, w: block.w.count }.split(tap);
            let (d, h, w) = (block.d.ahead(at.d), block.h.ahead(at.h), block.w.ahead(at.w));
            let mut place = Vector::<u32, Const<4>>::new(d);
            place.insert(
                0usize,
                channel * block.channel_stride + d * block.strides.d + h * block.strides.h + w * block.strides.w,
            );
            place.insert(2usize, h);
            place.insert(3usize, w);
            self.places[(nth % RING) as usize] = place;
            let (d, h, w) = (block.d.tap(at.d), block.h.tap(at.h), block.w.tap(at.w));
            let of_group = if comptime!(packed) {
                ((d * block.taps.h + h) * block.taps.w + w) * block.channels + channel
            } else {
                let steps = &block.steps;
                channel * steps.source + d * steps.taps.d + h * steps.taps.h + w * steps.taps.w
            };
            self.weights[(nth % RING) as usize] = block.first_weight + of_group;
        }
    }

    /// Where the weights of term `nth` of the block lie: a row, or an element.
    pub fn weights(&self, nth: u32) -> u32 {
        self.weights[(nth % RING) as usize]
    }
}

/// Fetches [`SHARE`] terms of a column from `nth` of the block on, a multiple of as many; +0 where a tap lies outside the
/// source.
///
/// They are not converted here: that would wait for them, which products are to hide.
#[cube]
pub(super) fn fetch<E: Float>(
    terms: &Terms,
    source: &Tensor<E>,
    next: &mut Array<E>,
    column: &Column,
    nth: u32,
    channel_stride: u32,
    lengths: &Spatial,
    #[comptime] inside: [bool; 3],
    #[comptime] whole: bool,
) {
    let at = nth % RING;
    #[unroll]
    for i in 0..SHARE {
        next[i as usize] = E::new(0.0);
    }
    if comptime!(whole) {
        let place = terms.places[at as usize];
        if column.meets(place, lengths, inside) {
            let first = column.base + place.extract(0usize);
            #[unroll]
            for i in 0..SHARE {
                next[i as usize] = source[(first + i * channel_stride) as usize];
            }
        }
    } else {
        #[unroll]
        for i in 0..SHARE {
            let place = terms.places[(at + i) as usize];
            if column.meets(place, lengths, inside) {
                next[i as usize] = source[(column.base + place.extract(0usize)) as usize];
            }
        }
    }
}
