//! Resizing and its gradient against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::coarsening;
use burn_deterministic_kernels::interpolation::plan::Plan;
use burn_deterministic_kernels::interpolation::weights::Filter;
use burn_deterministic_kernels::interpolation::{input_gradient, reference, resize};
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

#[track_caller]
fn check_resize(batch: usize, channels: usize, input: [usize; 2], output: [usize; 2], filter: Filter, align: bool) {
    println!("{input:?} to {output:?}, {filter:?}, {align}");
    let client = client();
    let [height, width] = input;
    let values = random_values(2, batch * channels * height * width);
    let want = reference::resize(&values, input, output, filter, align);
    let shape = [batch, channels, height, width];
    for plan in [None, Some(1), Some(2), Some(batch * channels)] {
        let plan = plan.map(|span| coarsening::Plan { span });
        let image = upload(&client, &values, &shape, F32);
        let got = resize(&client, image, output, filter, align, plan).expect("an image");
        assert_eq!(got.shape()[..], [batch, channels, output[0], output[1]], "{plan:?}");
        assert_bits(&download::<f32>(&client, got), &want);
    }
    // The same pixels, stored column by column and image after image of each channel.
    let place = |n: usize| {
        let (image, row, column) = (n / (height * width), n / width % height, n % width);
        let (entry, channel) = (image / channels, image % channels);
        ((channel * batch + entry) * width + column) * height + row
    };
    let mut memory = vec![f32::NAN; values.len()];
    values.iter().enumerate().for_each(|(n, &value)| memory[place(n)] = value);
    let strides = vec![width * height, batch * width * height, 1, height];
    let stored = TensorHandle::new(upload(&client, &memory, &[memory.len()], F32).handle, shape.to_vec(), strides, F32);
    let got = resize(&client, stored, output, filter, align, None).expect("an image");
    assert_bits(&download::<f32>(&client, got), &want);
}

#[test]
fn resized_images_match_their_reference() {
    for (filter, align_corners) in FILTERS.into_iter().flat_map(|filter| [(filter, false), (filter, true)]) {
        check_resize(2, 3, [5, 4], [9, 13], filter, align_corners);
        check_resize(1, 2, [16, 33], [7, 8], filter, align_corners);
        check_resize(3, 1, [1, 6], [4, 6], filter, align_corners);
        check_resize(1, 1, [2, 3], [1, 1], filter, align_corners);
    }
}

/// A sum begins with +0, which a compiler must not leave out.
#[test]
fn an_image_of_negative_zeros_is_resized_to_positive_ones() {
    let client = client();
    for filter in FILTERS {
        let zeros = [-0.0f32; 12];
        let got = resize(&client, upload(&client, &zeros, &[1, 1, 3, 4], F32), [5, 7], filter, false, None);
        let want = reference::resize(&zeros, [3, 4], [5, 7], filter, false);
        assert_bits(&download::<f32>(&client, got.expect("an image")), &want);
        assert!(matches!(filter, Filter::Nearest | Filter::NearestExact) || want.iter().all(|x| x.to_bits() == 0));
    }
}

/// Of a chain of products some sums round differently if products are not rounded, or taps are added in another order.
#[test]
fn another_order_gives_other_bits_of_a_resized_image() {
    let (input, output) = ([16, 16], [33, 29]);
    let values = random_values(2, 256);
    let want = reference::resize(&values, input, output, Filter::Cubic, false);
    let turned: Vec<f32> = (0..256).map(|n| values[n % 16 * 16 + n / 16]).collect();
    let down_first = reference::resize(&turned, input, [29, 33], Filter::Cubic, false);
    let turned_back: Vec<f32> = (0..want.len()).map(|n| down_first[n % 29 * 33 + n / 29]).collect();
    assert_ne!(want, turned_back);
}

#[test]
fn nearest_filters_move_every_bit() {
    let client = client();
    let special = [0x8000_0000u32, 0x7f80_0000, 0xffc1_2345, 0x7fa0_0001, 0x0000_0001, 0x3f80_0000];
    for filter in [Filter::Nearest, Filter::NearestExact] {
        let image = upload(&client, &special, &[1, 1, 2, 3], F32);
        let got = resize(&client, image, [4, 6], filter, false, None).expect("an image");
        let want: Vec<u32> = (0..24).map(|n| special[n / 12 * 3 + n % 6 / 2]).collect();
        assert_eq!(download::<u32>(&client, got), want, "{filter:?}");
    }
}

#[test]
fn resized_half_types_round_once() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return skip(format_args!("the device has no {dtype}"));
    }
    let values: Vec<f16> = random_values(1, 4 * 5).into_iter().map(f16::from_f32).collect();
    let widened: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
    for filter in FILTERS {
        let image = upload(&client, &values, &[1, 1, 4, 5], dtype);
        let got = resize(&client, image, [9, 13], filter, false, None).expect("an image");
        let want = reference::resize(&widened, [4, 5], [9, 13], filter, false);
        assert_eq!(download::<f16>(&client, got), want.into_iter().map(f16::from_f32).collect::<Vec<_>>());
    }
}

#[test]
fn a_resized_infinity_stays_where_it_is_read() {
    let client = client();
    // Taps after the last one read that one again: times a weight of zero it would be NaN.
    let mut values = vec![1.0f32; 16];
    values[15] = f32::INFINITY;
    for filter in [Filter::Linear, Filter::Cubic, Filter::Lanczos3] {
        let want = reference::resize(&values, [4, 4], [4, 4], filter, true);
        let image = upload(&client, &values, &[1, 1, 4, 4], F32);
        let got = download::<f32>(&client, resize(&client, image, [4, 4], filter, true, None).expect("an image"));
        let is_same = |(got, want): (&f32, &f32)| got == want || got.is_nan() && want.is_nan();
        assert!(got.iter().zip(&want).all(is_same), "{filter:?}: {got:?}, want {want:?}");
    }
    let image = upload(&client, &values, &[1, 1, 4, 4], F32);
    let got = download::<f32>(&client, resize(&client, image, [5, 5], Filter::Linear, false, None).expect("an image"));
    assert_eq!(got[24], f32::INFINITY);
    assert!(got[..18].iter().all(|value| value.is_finite()), "{got:?}");
}

#[test]
fn images_that_cannot_be_resized_are_refused() {
    let client = client();
    let sized = |shape: &[usize], size| {
        let image = upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
        resize(&client, image, size, Filter::Cubic, false, None)
    };
    assert_eq!(sized(&[2, 0, 3, 3], [5, 5]).expect("no images").shape()[..], [2, 0, 5, 5]);
    assert_eq!(sized(&[2, 1, 3, 3], [0, 5]).expect("no rows").shape()[..], [2, 1, 0, 5]);
    for (shape, wanted) in [(vec![1, 1, 0, 4], "no pixels"), (vec![1, 4, 4], "four axes")] {
        let Err(KernelError::Shape { reason, .. }) = sized(&shape, [2, 2]) else { panic!("{shape:?} was resized") };
        assert!(reason.contains(wanted), "{reason}");
    }
}

/// The tables of weights stay on the device, also for other threads, and make room for those of other sizes.
#[test]
fn tables_that_are_kept_are_those_of_their_sizes() {
    let values = random_values(3, 6 * 7);
    let resized = |size: [usize; 2]| {
        let client = client();
        let image = upload(&client, &values, &[1, 1, 6, 7], F32);
        let got = resize(&client, image, size, Filter::Cubic, false, None).expect("an image");
        assert_bits(&download::<f32>(&client, got), &reference::resize(&values, [6, 7], size, Filter::Cubic, false));
    };
    for rows in (1..80).chain([3, 79, 1]) {
        resized([rows, 4]);
    }
    std::thread::scope(|scope| {
        for size in [[3, 4], [79, 4], [3, 4]] {
            let resized = &resized;
            scope.spawn(move || (0..5).for_each(|_| resized(size)));
        }
    });
}
