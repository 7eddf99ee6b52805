//! Digests of 128 bits of the elements of tensors.
//!
//! # Order contract
//!
//! The elements of a tensor in row-major order, as they lie in memory, are a sequence of little-endian words of 32 bits, the
//! last one filled with zeros. With `mix` the finalizer of MurmurHash3 (A. Appleby, public domain), all sums modulo 2^32
//! and `K` the constants of [`reference`], word `i` of value `x` has four terms
//!
//! ```text
//! m      = mix(i ^ K[0])
//! t[0]   = mix(x + m)
//! t[l]   = t[0] rotate_left(m, 8 l)       l = 1, 2, 3
//! digest[l] = sum of t[l] over all words + mix(number of bytes ^ K[l])
//! ```
//!
//! Sums of integers have no order, so a plan may split the words in any way. `t[0]` is a bijection of `x` at every `i`: two
//! tensors of one size that differ in one word have different digests. Lanes 1 to 3 weigh its values by place, as multilinear
//! hashing does (J. L. Carter, M. N. Wegman, Universal classes of hash functions, 1979): a difference in two words is missed with
//! a probability of 2^-49 at most, by the two places, and one in many words with about 2^-128. It is no cryptographic hash:
//! who wants two tensors of one digest can make them.
//!
//! Shapes and dtypes take no part.
//!
//! # Layout
//!
//! `launch` takes up to [`most_tensors`] tensors. A cube sums the terms of a part of the words of one tensor: cube `x` of `X` has
//! the vectors `256 (x + X j) + u`, `j = 0, 1, ..`, for unit `u`; a vector is [`width`] words, 1 or 4. `partials[tensors, X, 4]` are u32, or
//! `partials[tensors, X, 256, 4]` by a [plan] under which cubes do not add their units' sums; the host sums them.

mod kernel;
pub mod plan;
pub mod reference;

use crate::KernelError;
use crate::buffer::{words, words_arg};
use crate::copy;
use crate::device::{self, Machine};
use crate::planned::require_plan;
use crate::view::{checked_elements, is_contiguous};
use cubecl::ir::UIntKind;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;
use plan::{MAX_VECTORS, UNITS};
pub use plan::{Plan, Problem};
use reference::{LANES, finish};

const KERNEL: &str = "digest";

/// Words of a vector, where a unit reads more than one at once.
const VECTOR: usize = 4;

/// Tensors of a launch at most, on a device that binds so many buffers.
const MAX_TENSORS: usize = 16;

/// Bindings of a launch besides its tensors: the result, the metadata and the scalars.
const OTHER_BINDINGS: usize = 3;

/// Digests on the device, in parts.
#[derive(Debug)]
pub struct Partials {
    /// u32 `[tensors, parts, 4]`.
    handle: Handle,
    /// The bytes of each tensor.
    bytes: Vec<u64>,
    /// Sums of each tensor.
    parts: usize,
}

/// Bytes of a tensor at most: more may be more vectors a unit than any plan takes.
pub const MAX_BYTES: usize = MAX_VECTORS * size_of::<u32>();

/// The words that a unit reads at once of a tensor of so many bytes: 4 if they fill whole vectors of 4, else 1.
pub fn width(bytes: usize) -> usize {
    if bytes.is_multiple_of(VECTOR * size_of::<u32>()) { VECTOR } else { 1 }
}

/// How many tensors [`launch`] takes: a power of two.
pub fn most_tensors(client: &Client) -> usize {
    let bindings = client.properties().hardware.max_bindings as usize;
    1 << bindings.saturating_sub(OTHER_BINDINGS).clamp(1, MAX_TENSORS).ilog2()
}

/// Launches the digests of `tensors` by `plan`, or by the one that [`plan::plan`] chooses; no plan changes them. Waits for
/// nothing. A tensor that is not contiguous is copied. Four words are read at once if all tensors have that [`width`].
///
/// # Errors
///
/// [`KernelError::Shape`] for a tensor of more than [`MAX_BYTES`], [`KernelError::Device`] when the device has no cubes of
/// [`UNITS`](crate::grid::UNITS) units, [`KernelError::Plan`] for a plan that does not apply.
///
/// # Panics
///
/// Without tensors, and with more than [`most_tensors`].
pub fn launch(client: &Client, tensors: Vec<TensorHandle>, plan: Option<Plan>) -> Result<Partials, KernelError> {
    assert!((1..=most_tensors(client)).contains(&tensors.len()), "digests of {} tensors in a launch", tensors.len());
    device::require_units(client, KERNEL, UNITS as u32)?;
    let word = ElemType::UInt(UIntKind::U32);
    let (mut inputs, mut lengths, mut masks) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
    let sizes = tensors.iter().map(|tensor| tensor.shape().iter().product::<usize>() * tensor.dtype.size());
    let width = sizes.map(width).min().expect("there is a tensor");
    let (mut bytes, mut longest, mut first) = (Vec::new(), 0, None);
    for tensor in tensors {
        let elements = checked_elements(KERNEL, tensor.shape())?;
        let size = elements * tensor.dtype.size();
        if size > MAX_BYTES {
            let reason = format!("{:?} has {size} bytes, more than {MAX_BYTES}", tensor.shape());
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
        let length = size.div_ceil(size_of::<u32>());
        let handle = match elements {
            // A kernel binds no empty buffer, and reads nothing of this one.
            0 => words(client, width),
            _ if is_contiguous(tensor.shape(), tensor.strides()) => tensor.handle,
            _ => copy::dense(client, tensor).handle,
        };
        first.get_or_insert_with(|| handle.clone());
        inputs.push(TensorHandle::new_contiguous(vec![length.max(width)], handle, word).into_arg());
        lengths.push((length / width) as u32);
        masks.push(match size % size_of::<u32>() {
            0 => u32::MAX,
            rest => (1u32 << (8 * rest)) - 1,
        });
        bytes.push(size as u64);
        longest = longest.max(length);
    }
    // A kernel for each power of two, in place of one for each number of tensors. No cube reads what is added.
    let added = bytes.len().next_power_of_two() - bytes.len();
    for _ in 0..added {
        inputs.push(
            TensorHandle::new_contiguous(vec![width], first.clone().expect("there is a tensor"), word).into_arg(),
        );
        lengths.push(0u32);
        masks.push(0u32);
    }
    let problem = Problem { vectors: longest / width };
    let plan = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(client)));
    require_plan(KERNEL, &plan, plan.refuses(&problem))?;
    let parts = plan.parts();
    let partials = bytes.len() * parts * LANES;
    let handle = words(client, partials);
    // SAFETY: a unit reads vectors below the length of its tensor; a buffer of fewer bytes than its words have is
    // allocated in whole words, and a tensor that is read in vectors of 4 has whole ones. Unit 0 to 3 of a cube write the cube's four places of `partials`, or each unit its own four.
    unsafe {
        kernel::digest::launch_unchecked(
            client,
            CubeCount::Static(plan.cubes as u32, bytes.len() as u32, 1),
            CubeDim::new_1d(UNITS as u32),
            width,
            inputs,
            words_arg(&handle, partials),
            lengths,
            masks,
            plan.adds,
        );
    }
    Ok(Partials { handle, bytes, parts })
}

impl Partials {
    /// What to read from the device, for [`digests`](Self::digests).
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The digest of each tensor, from the bytes of [`handle`](Self::handle).
    pub fn digests(&self, partials: &[u8]) -> Vec<[u32; LANES]> {
        let words: Vec<u32> =
            partials.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect();
        let tensors = words.chunks_exact(self.parts * LANES).zip(&self.bytes);
        tensors
            .map(|(parts, &bytes)| {
                let sum =
                    |lane: usize| parts.iter().skip(lane).step_by(LANES).fold(0u32, |sum, &x| sum.wrapping_add(x));
                finish([0, 1, 2, 3].map(sum), bytes)
            })
            .collect()
    }
}
