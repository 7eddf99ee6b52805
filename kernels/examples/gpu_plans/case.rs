//! A launch of a family on operands of one shape and type.

use burn_deterministic_kernels::KernelError;
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;
use std::cell::RefCell;
use std::collections::HashMap;

pub const F32: ElemType = ElemType::Float(FloatKind::F32);
pub const F16: ElemType = ElemType::Float(FloatKind::F16);
pub const BF16: ElemType = ElemType::Float(FloatKind::BF16);
pub const I32: ElemType = ElemType::Int(IntKind::I32);
pub const I64: ElemType = ElemType::Int(IntKind::I64);

/// The types that trainings compute in.
pub const FLOATS: [ElemType; 3] = [F32, F16, BF16];

/// What a case does.
type Action = Box<dyn Fn(&Client) -> Result<(), KernelError>>;

pub struct Case {
    /// The module in `kernels/src`.
    family: &'static str,
    /// What it is a case of.
    label: String,
    dtype: ElemType,
    /// Sizes of the operands.
    pub shape: String,
    /// Operations on floats that define the result, a multiply-add being two.
    pub flops: usize,
    /// Bytes of the operands and the results.
    pub bytes: usize,
    action: Action,
}

impl Case {
    /// A case that moves and computes nothing yet.
    pub fn new(family: &'static str, label: impl Into<String>, dtype: ElemType, shape: impl Into<String>) -> Self {
        let action: Action = Box::new(|_| Ok(()));
        Self { family, label: label.into(), dtype, shape: shape.into(), flops: 0, bytes: 0, action }
    }

    /// With so many operations.
    pub fn flops(self, flops: usize) -> Self {
        Self { flops, ..self }
    }

    /// With so many elements, of the case's type, in operands and results.
    pub fn elements(self, elements: usize) -> Self {
        Self { bytes: self.bytes + elements * self.dtype.size(), ..self }
    }

    /// With so many indices.
    pub fn indices(self, indices: usize) -> Self {
        Self { bytes: self.bytes + indices * I32.size(), ..self }
    }

    /// With what it does.
    pub fn runs<T>(self, action: impl Fn(&Client) -> Result<T, KernelError> + 'static) -> Self {
        Self { action: Box::new(move |client| action(client).map(|_| ())), ..self }
    }

    /// `family/label dtype`
    pub fn name(&self) -> String {
        format!("{}/{} {}", self.family, self.label, spelled(self.dtype))
    }

    /// Does it.
    pub fn launch(&self, client: &Client) -> Result<(), KernelError> {
        (self.action)(client)
    }
}

fn spelled(dtype: ElemType) -> &'static str {
    match dtype {
        F32 => "f32",
        F16 => "f16",
        BF16 => "bf16",
        I32 => "i32",
        I64 => "i64",
        _ => panic!("no case has {dtype:?}"),
    }
}

thread_local! {
    /// Operands of the present case, by their elements, type and bound, so that a case that is launched often uploads once.
    static UPLOADED: RefCell<HashMap<(usize, ElemType, usize), Handle>> = RefCell::new(HashMap::new());
}

/// Frees the operands of a case.
pub fn forget_operands() {
    UPLOADED.take();
}

/// A contiguous tensor of numbers without a pattern: floats from 1/2 to 1 and from -1 to -1/2, integers below 2^31.
pub fn tensor(client: &Client, shape: &[usize], dtype: ElemType) -> TensorHandle {
    uploaded(client, shape, dtype, 1 << 31)
}

/// A contiguous tensor of indices below `bound`, without a pattern.
pub fn indices(client: &Client, shape: &[usize], bound: usize) -> TensorHandle {
    uploaded(client, shape, I32, bound)
}

/// A contiguous tensor whose elements nobody wrote, for an update to write into.
pub fn destination(client: &Client, shape: &[usize], dtype: ElemType) -> TensorHandle {
    let elements: usize = shape.iter().product();
    TensorHandle::new_contiguous(shape.to_vec(), client.empty((elements * dtype.size()).max(1)), dtype)
}

/// The transpose of a contiguous tensor of two axes.
pub fn transposed(client: &Client, [rows, columns]: [usize; 2], dtype: ElemType) -> TensorHandle {
    let handle = tensor(client, &[columns, rows], dtype).handle;
    TensorHandle::new(handle, vec![rows, columns], vec![1, rows], dtype)
}

fn uploaded(client: &Client, shape: &[usize], dtype: ElemType, bound: usize) -> TensorHandle {
    let elements = shape.iter().product();
    let handle = UPLOADED.with_borrow_mut(|uploaded| {
        let key = (elements, dtype, bound);
        uploaded.entry(key).or_insert_with(|| client.create_from_slice(&numbers(elements, dtype, bound))).clone()
    });
    TensorHandle::new_contiguous(shape.to_vec(), handle, dtype)
}

/// The bytes of so many numbers.
fn numbers(count: usize, dtype: ElemType, bound: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9u32;
    let mut bytes = Vec::with_capacity(count.max(1) * dtype.size());
    for _ in 0..count.max(1) {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        // The exponent of 1/2 under a random sign and mantissa.
        let half = |exponent: u16, others: u16| (exponent | (state as u16 & others)).to_le_bytes();
        match dtype {
            F32 => bytes.extend((0x3f00_0000 | (state & 0x807f_ffff)).to_le_bytes()),
            F16 => bytes.extend(half(0x3800, 0x83ff)),
            BF16 => bytes.extend(half(0x3f00, 0x807f)),
            I32 => bytes.extend((((u64::from(state) * bound as u64) >> 32) as u32).to_le_bytes()),
            I64 => bytes.extend(((u64::from(state) * bound as u64) >> 32).to_le_bytes()),
            _ => panic!("no case has {dtype:?}"),
        }
    }
    bytes
}
