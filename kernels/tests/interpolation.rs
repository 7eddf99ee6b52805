//! The gradient of resizing against its reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::coarsening;
use burn_deterministic_kernels::interpolation::plan::Plan;
use burn_deterministic_kernels::interpolation::weights::Filter;
use burn_deterministic_kernels::interpolation::{input_gradient, reference};
use cubecl::ir::{ElemType, FloatKind};
use cubecl::std::tensor::TensorHandle;
use half::f16;

const FILTERS: [Filter; 5] = [Filter::Nearest, Filter::NearestExact, Filter::Linear, Filter::Cubic, Filter::Lanczos3];

#[track_caller]
fn check(batch: usize, channels: usize, input: [usize; 2], output: [usize; 2], filter: Filter, align_corners: bool) {
    println!("{input:?} from {output:?}, {filter:?}, {align_corners}");
    let client = client();
    let values = random_values(1, batch * channels * output[0] * output[1]);
    let shape = [batch, channels, output[0], output[1]];
    let want = reference::input_gradient(&values, input, output, filter, align_corners);
    let input_shape = [batch, channels, input[0], input[1]];
    let gradient = upload(&client, &values, &shape, F32);
    // An empty gradient says nothing of how many images there are.
    let want = if values.is_empty() { vec![0.0; input_shape.iter().product()] } else { want };
    let mut plans = vec![None, Some(Plan::Separable)];
    if matches!(filter, Filter::Nearest | Filter::NearestExact) {
        plans.extend([1, 2, 7].map(|span| Some(Plan::Joint(coarsening::Plan { span }))));
    }
    for plan in plans {
        let got = input_gradient(&client, gradient.clone(), &input_shape, filter, align_corners, plan);
        let got = got.expect("a gradient");
        assert_eq!(got.shape()[..], input_shape, "{plan:?}");
        assert_bits(&download::<f32>(&client, got), &want);
    }
    // The same memory with rows and columns swapped is another gradient.
    let [_, _, rows, columns] = shape;
    let gradient = upload(&client, &values, &[batch, channels, columns, rows], F32);
    let strides = vec![channels * rows * columns, rows * columns, 1, rows];
    let swapped = TensorHandle::new(gradient.handle, shape.to_vec(), strides, F32);
    let in_order: Vec<f32> = (0..values.len())
        .map(|n| {
            let (image, row, column) = (n / (rows * columns), n / columns % rows, n % columns);
            values[image * rows * columns + column * rows + row]
        })
        .collect();
    let want = reference::input_gradient(&in_order, input, output, filter, align_corners);
    let got = input_gradient(&client, swapped, &input_shape, filter, align_corners, None).expect("a gradient");
    if !values.is_empty() {
        assert_bits(&download(&client, got), &want);
    }
}

#[test]
fn filters_and_sizes_match_reference() {
    for (filter, align_corners) in FILTERS.into_iter().flat_map(|filter| [(filter, false), (filter, true)]) {
        check(2, 3, [5, 4], [9, 13], filter, align_corners);
        check(1, 2, [16, 33], [7, 8], filter, align_corners);
        check(3, 1, [1, 6], [4, 6], filter, align_corners);
        check(1, 1, [2, 3], [1, 1], filter, align_corners);
    }
}

#[test]
fn half_types_round_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    let values: Vec<f16> = random_values(1, 9 * 13).into_iter().map(f16::from_f32).collect();
    let widened: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
    for filter in FILTERS {
        let gradient = upload(&client, &values, &[1, 1, 9, 13], dtype);
        let got = input_gradient(&client, gradient, &[1, 1, 4, 5], filter, false, None).expect("a gradient");
        let want = reference::input_gradient(&widened, [4, 5], [9, 13], filter, false);
        assert_eq!(download::<f16>(&client, got), want.into_iter().map(f16::from_f32).collect::<Vec<_>>());
    }
}

#[test]
fn empty_operands() {
    check(0, 3, [4, 4], [8, 8], Filter::Linear, false);
    check(2, 3, [4, 4], [0, 8], Filter::Linear, false);
}

#[test]
fn infinities_stay_where_they_are_read() {
    let client = client();
    let mut values = vec![1.0f32; 8 * 8];
    values[0] = f32::INFINITY;
    values[63] = f32::NAN;
    let gradient = upload(&client, &values, &[1, 1, 8, 8], F32);
    let got = input_gradient(&client, gradient, &[1, 1, 4, 4], Filter::Linear, false, None).expect("a gradient");
    let got = download::<f32>(&client, got);
    assert!(got[0].is_infinite() && got[15].is_nan());
    assert!((0..16).filter(|n| ![0, 1, 4, 5, 10, 11, 14, 15].contains(n)).all(|n| got[n].is_finite()), "{got:?}");
}

#[test]
fn more_elements_than_one_axis_of_a_grid_holds() {
    check(1, 1, [4096, 4097], [3, 2], Filter::Linear, true);
}

#[test]
fn an_input_that_too_many_outputs_read_is_refused() {
    let client = client();
    let gradient = upload(&client, &vec![0.0f32; 60_001], &[1, 1, 1, 60_001], F32);
    let refused = input_gradient(&client, gradient, &[1, 1, 1, 1], Filter::Linear, false, None);
    let Err(KernelError::Shape { reason, .. }) = refused else { panic!("a chain too long for a launch was taken") };
    assert!(reason.contains("60001 outputs of an axis read one input, want at most 60000"), "{reason}");
    check(1, 1, [1, 1], [1, 60_000], Filter::Cubic, false);
}
