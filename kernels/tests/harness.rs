//! Upload, download and comparison by bits.

use burn_deterministic_kernels::elementwise::{Instruction, Operands, Program, Unary, Value, run};
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const I32: ElemType = ElemType::Int(IntKind::I32);

/// The device that the tests run on: the default one of the runtime that is compiled in.
///
/// Under the checks of cuda-emulator each buffer is an allocation of its own: they know which bytes nobody wrote since an
/// allocation, not since CubeCL cut a buffer from one.
pub fn client() -> Client {
    let client = cubecl::Device::default().client();
    if std::env::var_os("CUDA_EMULATOR_CHECK").is_some_and(|check| check == "1") {
        // SAFETY: the mode is that of this thread's stream, which the other threads' tests do not use.
        unsafe { client.allocation_mode(cubecl::MemoryAllocationMode::Dedicated) };
    }
    client
}

/// A contiguous device tensor of any plain element type.
pub fn upload<T: bytemuck::Pod>(client: &Client, values: &[T], shape: &[usize], dtype: ElemType) -> TensorHandle {
    assert_eq!(values.len(), shape.iter().product::<usize>());
    TensorHandle::new_contiguous(shape.to_vec(), client.create_from_slice(bytemuck::cast_slice(values)), dtype)
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

/// A function of every value, as the device computes it.
pub fn elementary(client: &Client, function: Unary, values: &[f32]) -> Vec<f32> {
    let mut program = Program::default();
    program.word(Instruction::Unary(function, Value::Input(0)));
    program.output_word(0);
    let words = vec![upload(client, values, &[values.len()], F32)];
    let operands = Operands { words, conditions: vec![], scalars: vec![] };
    let results = run(client, &Arc::new(program), &[values.len()], operands, I32).expect("operands fit");
    download(client, results.words.into_iter().next().expect("one output"))
}
