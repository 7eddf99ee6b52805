//! Upload, download and comparison by bits.

use crate::device::default_device;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, Products};
use burn_deterministic_kernels::known_answer::{self, Answers, Arithmetic, Rounding};
use burn_deterministic_kernels::subnormals::keep;
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::{bf16, f16};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Once;

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const I32: ElemType = ElemType::Int(IntKind::I32);

/// Both ways to add a product.
pub const PRODUCTS: [Products; 2] = [Products::Native, Products::Rounded];

/// The device that the tests run on. Its kernels keep subnormal numbers, whatever it does by itself.
///
/// Under the checks of cuda-emulator or of compute-sanitizer each buffer is an allocation of its own, but small results of one
/// element-wise kernel, which share one: they know which bytes nobody wrote since an allocation, not since CubeCL cut a buffer
/// from one.
pub fn client() -> Client {
    let client = default_device().client();
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| value == "1");
    if ["CUDA_EMULATOR_CHECK", "BURN_DETERMINISTIC_DEDICATED"].iter().any(is_set) {
        // SAFETY: the mode is that of this thread's stream, which the other threads' tests do not use.
        unsafe { client.allocation_mode(cubecl::MemoryAllocationMode::Dedicated) };
    }
    static KEEPS: Once = Once::new();
    KEEPS.call_once(|| {
        // One that is wrong in something else has its answers read by the tests of known_answer.
        if known_answer::judge(&answers_of(&client)).is_ok_and(|arithmetic| arithmetic.takes_subnormals_for_zero()) {
            keep(&client).expect("no kernel has been compiled");
        }
    });
    client
}

fn answers_of(client: &Client) -> Answers {
    known_answer::ask(client).expect("the device answers")
}

/// What the kernels compute.
fn arithmetic_of(client: &Client) -> Arithmetic {
    let answers = known_answer::ask_kept(client, &answers_of(client)).expect("the device answers");
    known_answer::judge(&answers).expect("the device's arithmetic is right")
}

/// Whether the device takes subnormal numbers for zero by itself.
pub fn takes_subnormals_for_zero(client: &Client) -> bool {
    let arithmetic = known_answer::judge(&answers_of(client)).expect("the device's arithmetic is right");
    arithmetic.takes_subnormals_for_zero()
}

/// How the device rounds `fma(a, b, c)`.
pub fn multiply_add_of(client: &Client) -> MultiplyAdd {
    arithmetic_of(client).multiply_add
}

/// Whether quotients and square roots have the host's bits: not where they are a device's own and it flushes subnormal numbers.
pub fn divides_like_the_host(client: &Client) -> bool {
    let Arithmetic { division, square_root, .. } = arithmetic_of(client);
    ![division, square_root].contains(&Rounding::Approximate)
}

/// A contiguous device tensor of any plain element type.
pub fn upload<T: bytemuck::Pod>(client: &Client, values: &[T], shape: &[usize], dtype: ElemType) -> TensorHandle {
    assert_eq!(values.len(), shape.iter().product::<usize>());
    TensorHandle::new_contiguous(shape.to_vec(), client.create_from_slice(bytemuck::cast_slice(values)), dtype)
}

/// `values` of `shape` in memory of another order and with gaps: axes are stored in reverse, elements of the first one
/// `step` apart, with a gap after each line.
pub fn scattered(step: usize, client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
    let mut strides = vec![0; shape.len()];
    let mut extent = step;
    for (stride, size) in strides.iter_mut().zip(shape) {
        *stride = extent;
        extent *= size + 1;
    }
    let mut memory = vec![f32::NAN; extent];
    for (n, &value) in values.iter().enumerate() {
        let (mut rest, mut at) = (n, 0);
        for (size, stride) in shape.iter().zip(&strides).rev() {
            at += rest % size * stride;
            rest /= size;
        }
        memory[at] = value;
    }
    TensorHandle::new(upload(client, &memory, &[extent], F32).handle, shape.to_vec(), strides, F32)
}

/// The elements of a contiguous device tensor.
pub fn download<T: bytemuck::Pod>(client: &Client, tensor: TensorHandle) -> Vec<T> {
    let elements = tensor.shape().iter().product::<usize>();
    let bytes = client.read_one_unchecked_tensor(tensor.into_copy_descriptor());
    bytemuck::pod_collect_to_vec::<u8, T>(&bytes[..elements * size_of::<T>()])
}

/// Panics with the first differing index and both bit patterns.
#[track_caller]
pub fn assert_bits(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "length");
    if let Some(i) = (0..got.len()).find(|&i| got[i].to_bits() != want[i].to_bits()) {
        panic!(
            "element {i} of {}: got {:?} ({:#010x}), want {:?} ({:#010x})",
            got.len(),
            got[i],
            got[i].to_bits(),
            want[i],
            want[i].to_bits()
        );
    }
}

/// Values in (-2, 2) of mixed magnitude, so that every reordering shows; the seed is part of any failure.
pub fn random_values(seed: u64, len: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len)
        .map(|_| {
            let magnitude = 2f32.powi(-((rng.next_u32() % 12) as i32));
            (rng.random::<f32>() * 4.0 - 2.0) * magnitude
        })
        .collect()
}

/// A half type, on the host: its numbers are f32s that it holds.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    pub dtype: ElemType,
    /// The nearest of its numbers, ties to even, and its bits.
    encode: fn(f32) -> u16,
    decode: fn(u16) -> f32,
}

pub const HALVES: [Half; 2] = [
    Half {
        dtype: ElemType::Float(FloatKind::F16),
        encode: |value| f16::from_f32(value).to_bits(),
        decode: |bits| f16::from_bits(bits).to_f32(),
    },
    Half {
        dtype: ElemType::Float(FloatKind::BF16),
        encode: |value| bf16::from_f32(value).to_bits(),
        decode: |bits| bf16::from_bits(bits).to_f32(),
    },
];

impl Half {
    pub fn round(&self, value: f32) -> f32 {
        (self.decode)((self.encode)(value))
    }

    pub fn rounded(&self, values: &[f32]) -> Vec<f32> {
        values.iter().map(|&value| self.round(value)).collect()
    }

    pub fn upload(&self, client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
        let bits: Vec<u16> = values.iter().map(|&value| (self.encode)(value)).collect();
        upload(client, &bits, shape, self.dtype)
    }

    pub fn download(&self, client: &Client, tensor: TensorHandle) -> Vec<f32> {
        download::<u16>(client, tensor).into_iter().map(self.decode).collect()
    }
}
