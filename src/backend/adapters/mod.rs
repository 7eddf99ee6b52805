//! Adapters: from Burn's tensors to the operands of the kernels and back. One file a kernel family.
//!
//! A function of these files runs one kernel of burn-deterministic-kernels, gives its result the shape and dtype that Burn
//! expects, and turns the kernel's error into a refusal. Its arguments are the name of the operation, the kernel where
//! there is a choice, the arguments of Burn's method, and the inner backend's method `plain`.

pub(super) mod convolution;
pub(super) mod ctc;
pub(super) mod deform_convolution;
pub(crate) mod fourier;
pub(crate) mod indices;
pub(super) mod matmul;
pub(super) mod random;
pub(super) mod reduce;
pub(super) mod resample;
pub(super) mod scan;
pub(super) mod scatter;
pub(super) mod sort;
pub(super) mod windows;

use super::refused::{describe, poison, refused};
use crate::context::in_method;
use crate::error::{Error, Refusal};
use crate::known_answer;
use burn_backend::{DType, Shape};
use burn_cubecl::{CubeDevice, kernel::untile, tensor::CubeTensor};
use burn_deterministic_kernels::KernelError;
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// The tensor an operation makes.
struct Output {
    device: CubeDevice,
    shape: Shape,
    dtype: DType,
}

impl Output {
    /// A tensor of `shape` with the device and dtype of `operand`.
    fn like(operand: &CubeTensor, shape: Shape) -> Self {
        Self { device: operand.device.clone(), shape, dtype: operand.dtype }
    }

    /// The tensor, from what a kernel made.
    fn of(self, client: &Client, result: TensorHandle) -> CubeTensor {
        CubeTensor::new_contiguous(client.clone(), self.device, self.shape, result.handle, self.dtype)
    }

    /// The tensor, if the operation is refused.
    fn poisoned(self, error: &Error) -> CubeTensor {
        poison(error, &self.device, self.shape, self.dtype)
    }
}

/// Runs a kernel, or refuses `operation` for the kernel's reason.
///
/// The kernel's result takes the shape and dtype of `output`: the kernels keep reduced axes and know no booleans.
/// `plain` runs the operation on the inner backend.
fn run(
    operation: &'static str,
    operands: &[&CubeTensor],
    output: Output,
    kernel: impl FnOnce(&Client) -> Result<TensorHandle, KernelError>,
    plain: impl FnOnce() -> CubeTensor,
) -> CubeTensor {
    let device = output.device.clone();
    let [result] = run_all(operation, operands, &device, [output], |client| kernel(client).map(|r| [r]), || [plain()]);
    result
}

/// [`run`] for a kernel with several results.
fn run_all<const N: usize>(
    operation: &'static str,
    operands: &[&CubeTensor],
    device: &CubeDevice,
    outputs: [Output; N],
    kernel: impl FnOnce(&Client) -> Result<[TensorHandle; N], KernelError>,
    plain: impl FnOnce() -> [CubeTensor; N],
) -> [CubeTensor; N] {
    if let Err(error) = known_answer::of(device) {
        return refused(error, plain, |error| outputs.map(|output| output.poisoned(error)));
    }
    let client = device.client();
    match kernel(&client) {
        Ok(results) => {
            let mut results = results.into_iter();
            outputs.map(|output| output.of(&client, results.next().expect("as many results as outputs")))
        }
        Err(error) => {
            let refusal = refusal(operation, operands, device, error);
            refused(refusal.into(), plain, |error| outputs.map(|output| output.poisoned(error)))
        }
    }
}

/// The operand of a kernel. Kernels read any strides, and rows where Burn keeps storage tiles.
fn operand(tensor: &CubeTensor) -> TensorHandle {
    in_method(|| untile(tensor.clone())).into()
}

/// The refusal for a kernel's error.
fn refusal(operation: &'static str, operands: &[&CubeTensor], device: &CubeDevice, error: KernelError) -> Refusal {
    let (reason, remedy) = match error {
        KernelError::Dtype { kernel, dtype, remedy } => {
            (format!("{kernel} has no fixed-order version for {dtype}"), remedy)
        }
        KernelError::Device { .. } => (error.to_string(), "run it on another device"),
        KernelError::Argument { .. } => (error.to_string(), "change the argument"),
        error => (error.to_string(), "check the operands' shapes, or split them into smaller ones"),
    };
    let device = format!("{device:?}");
    Refusal { operation: operation.into(), operands: describe(operands), device, reason, remedy: remedy.to_owned() }
}
