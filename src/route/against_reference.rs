//! Comparing operations with their plain-Rust references
//! ([`Determinism::check_against_reference`](crate::Determinism::check_against_reference)).

use super::custom::{self, Known};
use super::quantized;
use super::rerun::{data, operands};
use crate::catalogue;
use crate::check;
use crate::error::{Error, index_of};
use crate::panic;
use crate::random::repeatable;
use crate::reference::{Host, NotChecked, Reference, not_checked, tensor_of};
use crate::settings::determinism;
use crate::violation::violated;
use burn_backend::ops::IntTensorOps;
use burn_backend::{DType, TensorData, TensorMetadata};
use burn_cubecl::CubeDevice;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{BaseOperationIr, CustomOpIr, HandleKind, IrVisitorMut, OperationIr, TensorId, TensorIr, TensorStatus};
use burn_router::TensorInterpreter;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Operations so far.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// Runs `body`, which runs `operations`, given in global form, and compares what they leave with the references where
/// it is their turn.
///
/// # Panics
///
/// When a result has other bits, unless the settings let violations pass.
pub(super) fn checked(
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
    operations: impl FnOnce(&Context<CubeFusionHandle>) -> Vec<OperationIr>,
    body: impl FnOnce(&mut Context<CubeFusionHandle>),
) {
    let every = determinism().reference;
    if every == 0 {
        return body(context);
    }
    let operations = operations(context);
    let dropped = dropped(&operations);
    let operations: Vec<OperationIr> =
        operations.into_iter().filter(catalogue::computes).map(keeping_operands).collect();
    match is_turn(operations.len(), every) {
        true => compared(device, context, &operations, &dropped, body),
        false => body(context),
    }
}

/// The results that nothing needs: those that the operations drop, and those that only such a result was computed of.
fn dropped(operations: &[OperationIr]) -> BTreeSet<TensorId> {
    let mut dropped = BTreeSet::new();
    for operation in operations.iter().rev() {
        if let OperationIr::Drop(tensor) = operation {
            dropped.insert(tensor.id);
        } else if is_for_nobody(operation, &dropped) {
            let last = operation.inputs().filter(|input| input.status == TensorStatus::ReadWrite);
            dropped.extend(last.map(|input| input.id));
        }
    }
    dropped
}

/// Whether an operation has results, all of which are `dropped`.
fn is_for_nobody(operation: &OperationIr, dropped: &BTreeSet<TensorId>) -> bool {
    operation.outputs().next().is_some() && operation.outputs().all(|output| dropped.contains(&output.id))
}

/// Runs `body`, which runs `operations`, and compares what they leave with the references. Some results are `dropped`.
fn compared(
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
    operations: &[OperationIr],
    dropped: &BTreeSet<TensorId>,
    body: impl FnOnce(&mut Context<CubeFusionHandle>),
) {
    // Before the body: it may write in place.
    let tensors = operands_of(operations, context).into_iter();
    let mut tensors: Tensors = tensors.map(|(id, data)| (id, Host::from_data(&data, device))).collect();
    let mut draws = Vec::new();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| repeatable(&mut draws, || body(context)))) {
        operations.iter().for_each(|of| check::count_unchecked(catalogue::name(of), "refused, or failed".to_owned()));
        resume_unwind(payload);
    }
    let mut operation = 0;
    let result = repeatable(&mut draws, || {
        catch_unwind(AssertUnwindSafe(|| {
            for (number, next) in operations.iter().enumerate() {
                operation = number;
                evaluate(next, device, &mut tensors);
            }
        }))
    });
    if let Err(payload) = result {
        // A reference that fails says nothing about the device: the program goes on, and is told.
        let reason = match payload.downcast::<NotChecked>() {
            Ok(reason) => reason.0.to_owned(),
            Err(payload) => format!("{FAILED}: {}", panic::text(&*payload).unwrap_or("a panic")),
        };
        return count_unchecked(operations, operation, &reason);
    }
    let mut compared = BTreeSet::new();
    let mut found = None;
    for (number, operation) in operations.iter().enumerate() {
        for output in operation.outputs() {
            // Nothing is written where an operand carries an error, or where nobody needs it.
            let Some(data) = data(output, context) else { continue };
            compared.insert(output.id);
            let difference = difference(&Host::from_data(&data, device), &tensors[&output.id]);
            found = found.or_else(|| difference.map(|difference| difference.error(operations, number, device)));
        }
    }
    // What a result that was compared depends on was checked with it. What was computed for nobody is not counted.
    for operation in operations.iter().rev() {
        if operation.outputs().any(|output| compared.contains(&output.id)) {
            compared.extend(operation.inputs().map(|input| input.id));
            check::count_checked(catalogue::name(operation));
        } else if !is_for_nobody(operation, dropped) {
            check::count_unchecked(catalogue::name(operation), "no result of it was left to compare".to_owned());
        }
    }
    if let Some(error) = found {
        check::note_difference(&error);
        violated(&error);
    }
}

/// Counts operations that do not come to be checked, where the process checks.
pub(super) fn not_reached<'a>(operations: impl IntoIterator<Item = &'a OperationIr>) {
    if determinism().reference > 0 {
        let computing = operations.into_iter().filter(|operation| catalogue::computes(operation));
        computing.for_each(|of| check::count_unchecked(catalogue::name(of), "refused".to_owned()));
    }
}

/// How the reason begins why an operation was not checked whose reference failed.
const FAILED: &str = "the reference failed";

/// What the references have computed, and their operands.
type Tensors = BTreeMap<TensorId, Host>;

/// Whether one of the next so many operations is to be checked.
fn is_turn(operations: usize, every: u32) -> bool {
    let operations = operations as u64;
    let before = OPERATIONS.fetch_add(operations, Ordering::Relaxed);
    has_turn(before..before + operations, every.into())
}

/// Whether one of the operations with these numbers is to be checked: of each `every` that follow each other one, at a
/// place that varies. At the same place it would be the same operation of each step of a training.
fn has_turn(mut numbers: Range<u64>, every: u64) -> bool {
    // The first output of SplitMix64 from the seed `window`.
    let place = |window: u64| {
        let z = window.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % every
    };
    numbers.any(|number| number % every == place(number / every))
}

/// `operation`, which frees no operand.
fn keeping_operands(mut operation: OperationIr) -> OperationIr {
    struct Keep;
    impl IrVisitorMut for Keep {
        fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
            tensor.status = TensorStatus::ReadOnly;
        }
    }
    operation.visit_mut(&mut Keep);
    operation
}

/// What the operations read and do not write themselves.
fn operands_of(operations: &[OperationIr], context: &Context<CubeFusionHandle>) -> BTreeMap<TensorId, TensorData> {
    let mut operands = BTreeMap::new();
    let mut written = Vec::new();
    for operation in operations.iter().filter(|operation| !quantized::takes_part(operation)) {
        for input in operation.inputs() {
            if !written.contains(&input.id) && !operands.contains_key(&input.id) {
                operands.extend(data(input, context).map(|data| (input.id, data)));
            }
        }
        written.extend(operation.outputs().map(|output| output.id));
    }
    operands
}

/// Computes an operation by its reference.
///
/// # Panics
///
/// With [`NotChecked`] where it has none.
fn evaluate(operation: &OperationIr, device: &CubeDevice, tensors: &mut Tensors) {
    let operand = |tensor: &TensorIr| match tensors.get(&tensor.id) {
        Some(tensor) => tensor.clone(),
        None => not_checked("an operand that carries an error"),
    };
    match operation {
        operation if quantized::takes_part(operation) => not_checked("refused under `GpuToGpu`"),
        OperationIr::Custom(custom) => match custom::known(custom) {
            Some(known @ (Known::Forward { .. } | Known::Inverse { .. })) => {
                let operands: Vec<Host> = custom.inputs.iter().map(operand).collect();
                register(custom, transformed(known, &operands), tensors);
            }
            Some(Known::OnTheHost) => not_checked("computed on the host"),
            None => not_checked("a custom operation that was promised"),
        },
        // burn-router's interpreter has no arm for it.
        OperationIr::BaseInt(BaseOperationIr::Cast(cast)) => {
            let output = Reference::int_cast(operand(&cast.input), cast.out.dtype.into());
            tensors.insert(cast.out.id, output);
        }
        operation => {
            let mut interpreter = TensorInterpreter::<Reference>::new(device.clone());
            for input in operation.inputs() {
                interpreter.register_tensor_to_device(input.id, kind(operand(input)));
            }
            interpreter.register_op(operation.clone());
            for output in operation.outputs() {
                let tensor = tensor_of(interpreter.get_tensor_handle(output));
                tensors.insert(output.id, tensor);
            }
        }
    }
}

fn register(custom: &CustomOpIr, results: Vec<Host>, tensors: &mut Tensors) {
    tensors.extend(custom.outputs.iter().map(|output| output.id).zip(results));
}

/// A Fourier transform.
fn transformed(known: Known, operands: &[Host]) -> Vec<Host> {
    match (known, operands) {
        (Known::Forward { axis, n }, [signal]) => signal.spectrum(axis, n).into(),
        (Known::Inverse { axis, n }, [real, imaginary]) => vec![real.of_spectrum(imaginary, axis, n)],
        _ => unreachable!("a known operation has as many operands as its transform"),
    }
}

fn kind(tensor: Host) -> HandleKind<Reference> {
    match tensor.dtype() {
        dtype if dtype.is_float() => HandleKind::Float(tensor),
        dtype if dtype.is_bool() => HandleKind::Bool(tensor),
        _ => HandleKind::Int(tensor),
    }
}

/// Counts operations of which one has no reference.
fn count_unchecked(operations: &[OperationIr], without: usize, reason: &str) {
    for (number, operation) in operations.iter().enumerate() {
        let reason = match number == without {
            true => reason.to_owned(),
            false => format!("shares a kernel with `{}`", catalogue::name(&operations[without])),
        };
        check::count_unchecked(catalogue::name(operation), reason);
    }
}

/// The first element in which a device and the reference differ, its bits on both.
#[derive(Debug, PartialEq)]
struct Difference {
    tensor: Host,
    index: Vec<usize>,
    got: String,
    expected: String,
}

fn difference(got: &Host, expected: &Host) -> Option<Difference> {
    let dtype = expected.dtype();
    if (got.shape(), got.dtype()) != (expected.shape(), dtype) {
        let spelled = |tensor: &Host| format!("a tensor {:?} {}", &tensor.shape()[..], tensor.dtype().name());
        let (got, tensor, expected) = (spelled(got), expected.clone(), spelled(expected));
        return Some(Difference { index: vec![], got, expected, tensor });
    }
    let agree = |&(&a, &b): &(&u64, &u64)| a == b || (is_nan(dtype, a) && is_nan(dtype, b));
    let mut elements = got.bits().iter().zip(expected.bits());
    let position = elements.position(|pair| !agree(&pair))?;
    let index = index_of(position, &expected.shape());
    let spelled = |tensor: &Host| format!("0x{:0width$x}", tensor.bits()[position], width = 2 * dtype.size());
    Some(Difference { index, got: spelled(got), expected: spelled(expected), tensor: expected.clone() })
}

/// Whether these are the bits of a NaN.
fn is_nan(dtype: DType, bits: u64) -> bool {
    let infinity = match dtype {
        DType::F32 => 0x7f80_0000,
        DType::F16 => 0x7c00,
        DType::BF16 => 0x7f80,
        DType::F64 => 0x7ff0 << 48,
        _ => return false,
    };
    // Without the sign.
    bits & !(1 << (8 * dtype.size() - 1)) > infinity
}

impl Difference {
    /// The error of the operation of this number.
    fn error(self, operations: &[OperationIr], number: usize, device: &CubeDevice) -> Error {
        let name = catalogue::name(&operations[number]);
        let others: Vec<_> = { operations.iter().enumerate() }
            .filter(|(other, _)| *other != number)
            .map(|(_, operation)| catalogue::name(operation))
            .collect();
        let operation = match others.is_empty() {
            true => name.to_owned(),
            false => format!("{name}, in one kernel with {}", others.join(", ")),
        };
        let dtype = self.tensor.dtype();
        Error::NotReference {
            operation,
            operands: operands(operations[number].inputs()),
            device: format!("{device:?}"),
            shape: self.tensor.shape(),
            dtype,
            index: self.index,
            got: self.got,
            expected: self.expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, difference, has_turn};
    use burn_backend::TensorData;
    use burn_cubecl::CubeDevice;

    fn host(values: &[f32]) -> Host {
        Host::from_data(&TensorData::new(values.to_vec(), [1, values.len()]), &CubeDevice::default())
    }

    #[test]
    fn one_bit_is_a_difference_and_the_bits_of_a_nan_are_none() {
        let difference = |one: &[f32], other: &[f32]| difference(&host(one), &host(other));
        let nans = [0x7fc0_0000, 0xffc1_2345].map(f32::from_bits);
        assert_eq!(difference(&[1.0, nans[0]], &[1.0, nans[1]]), None);
        for (one, other) in [(0.0, -0.0), (1.0, 1.0 + f32::EPSILON), (f32::NAN, f32::INFINITY)] {
            let found = difference(&[1.0, one], &[1.0, other]).expect("they differ");
            assert_eq!((found.index, found.got), (vec![0, 1], format!("0x{:08x}", one.to_bits())));
        }
    }

    #[test]
    fn one_operation_of_three_has_its_turn() {
        let turns: Vec<u64> = (0..3000).filter(|&number| has_turn(number..number + 1, 3)).collect();
        assert_eq!(turns.iter().map(|number| number / 3).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        for place in 0..3 {
            let count = turns.iter().filter(|&number| number % 3 == place).count();
            assert!((250..420).contains(&count), "{count} of 1000 at place {place}");
        }
        assert!((0..100).all(|number| has_turn(number..number + 1, 1)));
        assert!((0..100).all(|number| has_turn(number..number + 5, 3)), "three that follow each other have one");
        assert!(!has_turn(7..7, 1), "nothing computes");
    }

    #[test]
    fn another_shape_is_a_difference() {
        let found = difference(&host(&[1.0]), &host(&[1.0, 2.0])).expect("they differ");
        assert_eq!((found.got.as_str(), found.expected.as_str()), ("a tensor [1, 1] f32", "a tensor [1, 2] f32"));
    }
}

/// A device whose result is one bit off.
#[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
mod planted {
    use super::compared;
    use crate::backend::Deterministic;
    use crate::check::reference_check;
    use burn_backend::ops::FloatTensorOps;
    use burn_backend::{DType, TensorData, read_sync};
    use burn_cubecl::{CubeBackend, CubeDevice};
    use burn_cubecl_fusion::CubeFusionHandle;
    use burn_deterministic_kernels::function::reference::exponential::exp;
    use burn_fusion::stream::Context;
    use burn_ir::{
        BackendIr, FloatOperationIr, HandleContainer, OperationIr, TensorHandle, TensorId, TensorIr, TensorStatus,
        UnaryOpIr,
    };
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    type B = Deterministic<CubeBackend>;

    fn tensor(id: u64) -> TensorIr {
        TensorIr { id: TensorId::new(id), shape: [2, 3].into(), status: TensorStatus::ReadOnly, dtype: DType::F32 }
    }

    /// Exponentials, of which the bits of element 4 are changed by this mask.
    fn exponentials(mask: u32, context: &mut Context<CubeFusionHandle>, device: &CubeDevice) {
        let handle = context.handles.get_handle_ref(&TensorId::new(1)).expect("an operand").clone();
        let result = B::float_exp(B::float_tensor(TensorHandle { handle, shape: [2, 3].into() }));
        let result = read_sync(B::float_into_data(result)).expect("it can be read");
        let mut values = result.try_to_vec::<f32>().expect("f32");
        values[4] = f32::from_bits(values[4].to_bits() ^ mask);
        let wrong = B::float_from_data(TensorData::new(values, [2, 3]), device);
        context.handles.register_handle(TensorId::new(2), B::float_tensor_handle(wrong));
    }

    #[test]
    fn is_named() {
        let device = CubeDevice::default();
        let mut context = Context {
            tensors: Default::default(),
            handles: HandleContainer::new(),
            scalars: Default::default(),
            shapes_relative2global: Default::default(),
            ranges: Vec::new(),
        };
        let operand = B::float_from_data(TensorData::new(vec![0f32, 1.0, -1.0, 0.5, 2.0, -7.0], [2, 3]), &device);
        context.handles.register_handle(TensorId::new(1), B::float_tensor_handle(operand));
        let unary = UnaryOpIr { input: tensor(1), out: tensor(2) };
        let operations = [OperationIr::Float(DType::F32, FloatOperationIr::Exp(unary))];
        compared(&device, &mut context, &operations, &BTreeSet::new(), |context| {
            exponentials(0, context, &device);
        });
        assert_eq!(reference_check().different, None);
        let planted = || {
            compared(&device, &mut context, &operations, &BTreeSet::new(), |context| {
                exponentials(1, context, &device);
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(planted)).expect_err("one bit is off");
        let text = payload.downcast::<String>().expect("a text");
        let right = exp(2.0).to_bits();
        let wrong = right ^ 1;
        for part in [
            "`float_exp` (operands [2, 3] f32; device ",
            &format!("{device:?}"),
            &format!("0x{wrong:08x} at [1, 1] of [2, 3] f32, where the reference has 0x{right:08x}"),
        ] {
            assert!(text.contains(part), "{text}\nlacks\n{part}");
        }
        assert_eq!(reference_check().different, Some(*text));
    }
}
