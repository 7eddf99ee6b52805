//! Adapters: from Burn's tensors to the operands of the kernels and back. One file a kernel family.
//!
//! A function of these files runs one kernel of burn-deterministic-kernels, gives its result the shape and dtype that
//! Burn expects, and turns the kernel's error into a refusal. Its arguments are the name of the operation, the kernel
//! where there is a choice, the arguments of Burn's method, and the inner backend's method `plain`.

pub(crate) mod convolution;
pub(super) mod ctc;
pub(crate) mod deform_convolution;
pub(crate) mod dependents;
pub(crate) mod elementwise;
pub(crate) mod fourier;
pub(crate) mod indices;
pub(crate) mod matmul;
pub(super) mod pool;
pub(crate) mod random;
pub(super) mod reduce;
pub(crate) mod resample;
pub(super) mod scan;
pub(crate) mod scatter;
pub(crate) mod sort;
pub(super) mod windows;

use super::refused::{describe, poison, refuse, refused};
use crate::context::{self, in_method, on_the_stream};
use crate::error::{Error, Refusal};
use crate::known_answer;
use crate::settings::{Guarantee, determinism};
use burn_backend::cubecl::dtype_to_storage_type;
use burn_backend::{DType, Shape};
use burn_cubecl::{CubeDevice, kernel::untile, tensor::CubeTensor};
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, Products};
use burn_deterministic_kernels::matmul::tensor_cores::sums;
use cubecl::client::Client;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::std::tensor::TensorHandle;

/// What an operation makes: one tensor, or several.
trait Outputs {
    /// What its kernels make.
    type Results;
    /// What Burn gets.
    type Tensors;

    fn device(&self) -> &CubeDevice;

    /// The tensors, of what the kernels made.
    fn of(self, client: &Client, results: Self::Results) -> Self::Tensors;

    /// The tensors, if the operation is refused.
    fn poisoned(self, error: &Error) -> Self::Tensors;
}

/// One tensor. It gives a kernel's result its shape and dtype: the kernels keep reduced axes and know no booleans.
#[derive(Clone)]
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
}

impl Outputs for Output {
    type Results = TensorHandle;
    type Tensors = CubeTensor;

    fn device(&self) -> &CubeDevice {
        &self.device
    }

    fn of(self, client: &Client, result: TensorHandle) -> CubeTensor {
        CubeTensor::new_contiguous(client.clone(), self.device, self.shape, result.handle, self.dtype)
    }

    fn poisoned(self, error: &Error) -> CubeTensor {
        poison(error, &self.device, self.shape, self.dtype)
    }
}

impl Outputs for (Output, Output) {
    type Results = (TensorHandle, TensorHandle);
    type Tensors = (CubeTensor, CubeTensor);

    fn device(&self) -> &CubeDevice {
        &self.0.device
    }

    fn of(self, client: &Client, results: Self::Results) -> Self::Tensors {
        (self.0.of(client, results.0), self.1.of(client, results.1))
    }

    fn poisoned(self, error: &Error) -> Self::Tensors {
        (self.0.poisoned(error), self.1.poisoned(error))
    }
}

/// Runs kernels, or refuses `operation` for the kernels' reason, or for the device's arithmetic.
///
/// `plain` runs the operation on the inner backend.
fn run<O: Outputs>(
    operation: &'static str,
    operands: &[&CubeTensor],
    outputs: O,
    kernels: impl FnOnce(&Client) -> Result<O::Results, KernelError>,
    plain: impl FnOnce() -> O::Tensors,
) -> O::Tensors {
    let device = outputs.device();
    // On the stream the block has asked.
    if !on_the_stream()
        && let Err(error) = known_answer::of(device)
    {
        return refused(error.clone(), plain, |error| outputs.poisoned(error));
    }
    if determinism().guarantee == Guarantee::GpuToGpu && operands.iter().any(|operand| operand.dtype == DType::F64) {
        let why = (
            "f64 is not among the types whose bits are equal on every device",
            "cast to f32, or ask for `Guarantee::RunToRun`",
        );
        return refuse(operation, operands, why, plain, |error| outputs.poisoned(error));
    }
    let client = device.client();
    match kernels(&client) {
        Ok(results) => outputs.of(&client, results),
        Err(error) => {
            let refusal = refusal(operation, operands, device, error);
            refused(refusal.into(), plain, |error| outputs.poisoned(error))
        }
    }
}

/// How chains of products are added on a device, by the guarantee in force.
///
/// A multiply-add that rounds twice is the rounded product and the sum that every device has, in fewer instructions.
fn products(device: &CubeDevice) -> Products {
    let rounds_twice =
        || known_answer::of(device).as_ref().is_ok_and(|arithmetic| arithmetic.multiply_add == MultiplyAdd::Unfused);
    match determinism().guarantee {
        Guarantee::GpuToGpu if !rounds_twice() => Products::Rounded,
        Guarantee::GpuToGpu | Guarantee::RunToRun => Products::Native,
    }
}

/// Whether products and convolutions of this type run on the device's tensor cores. Their bits are those of some generations of GPUs.
fn are_on_tensor_cores(client: &Client, dtype: DType) -> Result<bool, KernelError> {
    let settings = determinism();
    let kind = match dtype {
        DType::F16 => FloatKind::F16,
        DType::BF16 => FloatKind::BF16,
        DType::F32 if settings.tensor_float_32 => FloatKind::F32,
        _ => return Ok(false),
    };
    if settings.guarantee != Guarantee::RunToRun {
        return Ok(false);
    }
    // What is launched to ask the device is no part of the operation that asks first.
    context::scoped(|context| &mut context.launches, None, || sums(client, ElemType::Float(kind)))
        .map(|sums| sums.is_some())
}

/// The operand of a kernel. Kernels read any strides, and rows where Burn keeps storage tiles.
fn operand(tensor: &CubeTensor) -> TensorHandle {
    into_handle(in_method(|| untile(tensor.clone())))
}

/// The tensor as a kernel takes it. Burn's own conversion copies the handle and the shape.
pub(crate) fn into_handle(tensor: CubeTensor) -> TensorHandle {
    TensorHandle { handle: tensor.handle, metadata: tensor.meta, dtype: dtype_to_storage_type(tensor.dtype) }
}

/// The refusal for a kernel's error.
fn refusal(operation: &'static str, operands: &[&CubeTensor], device: &CubeDevice, error: KernelError) -> Refusal {
    let (reason, remedy) = match error {
        KernelError::Dtype { kernel, dtype, remedy } => {
            (format!("{kernel} has no fixed-order version for {dtype}"), remedy)
        }
        KernelError::Device { kernel, what, needs, has } => {
            (format!("{kernel} needs {needs} {what}, the device has {has}"), "use another device or driver")
        }
        KernelError::Index { .. } => (error.to_string(), "use indices of a larger type: i32, or i64"),
        KernelError::Argument { .. } => (error.to_string(), "change the argument"),
        KernelError::Failed { kernel, reason, remedy } => (format!("{kernel}: {reason}"), remedy),
        error => (error.to_string(), "check the operands' shapes, or split them into smaller ones"),
    };
    let device = format!("{device:?}");
    Refusal { operation: operation.into(), operands: describe(operands), device, reason, remedy: remedy.to_owned() }
}
