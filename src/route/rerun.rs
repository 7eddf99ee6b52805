//! Running an operation several times on the same operands ([`Determinism::rerun`](crate::Determinism::rerun)).

use crate::error::{self, Error, index_of};
use crate::random::repeatable;
use crate::settings::determinism;
use crate::violation::violated;
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps, QTensorOps};
use burn_backend::{DType, TensorData, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::stream::Context;
use burn_ir::{BackendIr, TensorHandle, TensorId, TensorIr};

/// What runs, with tensors as the program knows them.
pub(super) struct Work {
    /// The methods, separated by commas.
    pub operation: String,
    pub inputs: Vec<TensorIr>,
    pub outputs: Vec<TensorIr>,
}

/// Runs `body` as often as the settings say, and leaves the results of the first time in `context`.
///
/// # Panics
///
/// When a later run gives other bits, unless the settings let violations pass.
pub(super) fn repeated(
    device: &CubeDevice,
    context: &mut Context<CubeFusionHandle>,
    work: impl FnOnce(&Context<CubeFusionHandle>) -> Work,
    mut body: impl FnMut(&mut Context<CubeFusionHandle>),
) {
    let runs = determinism().runs;
    if runs < 2 {
        return body(context);
    }
    let work = work(context);
    // A second handle on each operand: a run consumes the first one, and operations write in place only into tensors
    // with one handle.
    let operands: Vec<_> = { work.inputs.iter() }.filter_map(|tensor| held(tensor, context)).collect();
    let mut draws = Vec::new();
    repeatable(&mut draws, || body(context));
    // Nothing is written where an operand carries an error.
    let results: Vec<_> = { work.outputs.iter() }.filter_map(|tensor| held(tensor, context)).collect();
    let first: Vec<_> = { work.outputs.iter() }.filter_map(|tensor| data(tensor, context)).collect();
    for run in 2..=runs {
        register(&operands, context);
        repeatable(&mut draws, || body(context));
        let again = { work.outputs.iter() }.filter_map(|tensor| data(tensor, context));
        let differing = { first.iter().zip(again) }.find_map(|(first, again)| difference(first, &again));
        if let Some(difference) = differing {
            violated(&difference.error(run, &work, device));
        }
    }
    register(&results, context);
}

type Held = (TensorId, CubeFusionHandle);

fn held(tensor: &TensorIr, context: &Context<CubeFusionHandle>) -> Option<Held> {
    context.handles.get_handle_ref(&tensor.id).map(|handle| (tensor.id, handle.clone()))
}

fn register(held: &[Held], context: &mut Context<CubeFusionHandle>) {
    for (id, handle) in held {
        context.handles.register_handle(*id, handle.clone());
    }
}

/// The elements of a tensor that was written.
///
/// # Panics
///
/// When the device cannot read them back.
pub(super) fn data(tensor: &TensorIr, context: &Context<CubeFusionHandle>) -> Option<TensorData> {
    let (_, handle) = held(tensor, context)?;
    let handle = TensorHandle { handle, shape: tensor.shape.clone() };
    let data = match tensor.dtype {
        DType::QFloat(_) => read_sync(CubeBackend::q_into_data(CubeBackend::quantized_tensor(handle))),
        dtype if dtype.is_float() => read_sync(CubeBackend::float_into_data(CubeBackend::float_tensor(handle))),
        dtype if dtype.is_bool() => read_sync(CubeBackend::bool_into_data(CubeBackend::bool_tensor(handle))),
        _ => read_sync(CubeBackend::int_into_data(CubeBackend::int_tensor(handle))),
    };
    Some(data.unwrap_or_else(|error| panic!("reading a result to compare it: {error}")))
}

/// The first element in which two results differ.
#[derive(Debug, PartialEq)]
struct Difference {
    dtype: DType,
    shape: burn_backend::Shape,
    index: Vec<usize>,
    first: String,
    again: String,
}

fn difference(first: &TensorData, again: &TensorData) -> Option<Difference> {
    // The values of a quantized tensor are packed, and its scales follow them: they are compared byte by byte.
    let (shape, size) = match first.dtype() {
        DType::QFloat(_) => ([first.as_bytes().len()].into(), 1),
        dtype => (first.shape().clone(), dtype.size()),
    };
    let mut elements = { first.as_bytes().chunks(size) }.zip(again.as_bytes().chunks(size));
    let position = elements.position(|(first, again)| first != again)?;
    let bits = |data: &TensorData| {
        let bytes = data.as_bytes()[position * size..][..size].iter().rev();
        bytes.fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    };
    let (first_bits, again_bits) = (bits(first), bits(again));
    let index = index_of(position, &shape);
    Some(Difference { dtype: first.dtype(), shape, index, first: first_bits, again: again_bits })
}

impl Difference {
    fn error(self, run: u32, work: &Work, device: &CubeDevice) -> Error {
        let Self { dtype, shape, index, first, again } = self;
        Error::NotRepeatable {
            operation: work.operation.clone().into(),
            operands: operands(&work.inputs),
            device: format!("{device:?}"),
            shape,
            dtype,
            index,
            run,
            first,
            again,
        }
    }
}

/// Shapes and dtypes, `[2, 3] f32, [3] i32`.
pub(super) fn operands<'a>(inputs: impl IntoIterator<Item = &'a TensorIr>) -> String {
    error::operands(inputs.into_iter().map(|input| (&input.shape[..], input.dtype)))
}

#[cfg(test)]
mod tests {
    use super::difference;
    use burn_backend::TensorData;

    #[test]
    fn the_first_difference_in_row_major_order() {
        let one = TensorData::new(vec![0f32, 1.0, 2.0, 3.0, f32::NAN, 5.0], [2, 3]);
        assert_eq!(difference(&one, &one.clone()), None, "NaN has bits like any other value");
        let other = TensorData::new(vec![0f32, 1.0, 2.0, 3.0, f32::NAN, -5.0], [2, 3]);
        let found = difference(&one, &other).expect("one element differs");
        assert_eq!((found.index, found.first.as_str(), found.again.as_str()), (vec![1, 2], "0x40a00000", "0xc0a00000"));
        let (plus, minus) = (TensorData::new(vec![0f32], [1]), TensorData::new(vec![-0f32], [1]));
        assert!(difference(&plus, &minus).is_some(), "zeros differ in their sign");
        let scalar = |value: i64| TensorData::new::<i64, [usize; 0]>(vec![value], []);
        let (scalar, other) = (scalar(1), scalar(2));
        assert_eq!(difference(&scalar, &other).expect("they differ").index, Vec::<usize>::new());
        let empty = TensorData::new(Vec::<f32>::new(), [0, 3]);
        assert_eq!(difference(&empty, &empty.clone()), None);
    }
}
