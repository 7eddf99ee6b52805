//! Layers and their gradients through the tensor API: the values that Burn's CPU backend gives, and one result in ten
//! runs.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device;
use burn::prelude::*;
use burn::tensor::module::*;
use burn::tensor::ops::*;
use burn::tensor::{IntDType, activation};

/// Ten in all.
const REPEATS: usize = 9;

/// The largest difference from the CPU's value, relative to the largest magnitude of the tensor. Both sum up to about a
/// thousand products of f32 in orders of their own: 2^10 roundings of 2^-24 each.
const TOLERANCE: f32 = 1.0 / 16384.0;

/// What is differentiated: operands as vectors, and a vector of results.
type Module<'a> = &'a dyn Fn(&[Tensor<1>]) -> Tensor<1>;

/// Values unlike those of the other operands.
fn operand(number: usize, length: usize) -> TensorData {
    let values = floats([length + 1000 * number]).try_to_vec::<f32>().expect("f32");
    TensorData::new(values[1000 * number..].to_vec(), [length])
}

/// The results, and the gradient of each operand under a gradient of the results that has no pattern.
fn run(device: &Device, operands: &[TensorData], module: Module) -> Vec<TensorData> {
    let device = device.clone().autodiff();
    let operands: Vec<Tensor<1>> =
        operands.iter().map(|values| Tensor::from_data(values.clone(), &device).require_grad()).collect();
    let results = module(&operands);
    let upstream = Tensor::from_data(operand(9, results.dims()[0]), &device);
    let gradients = (results.clone() * upstream).sum().backward();
    let gradients = operands.iter().map(|operand| operand.grad(&gradients).expect("every operand takes part"));
    let gradients: Vec<_> = gradients.map(|gradient| gradient.into_data()).collect();
    [results.into_data()].into_iter().chain(gradients).collect()
}

/// Compares with the CPU, and with itself.
#[track_caller]
fn check(name: &str, lengths: &[usize], module: Module) {
    let operands: Vec<_> = lengths.iter().enumerate().map(|(number, &length)| operand(number, length)).collect();
    check_on(name, &operands, module);
}

#[track_caller]
fn check_on(name: &str, operands: &[TensorData], module: Module) {
    let device = deterministic_device();
    let ours = run(&device, operands, module);
    for (place, (ours, expected)) in ours.iter().zip(run(&Device::flex(), operands, module)).enumerate() {
        assert_close(&format!("{name}, tensor {place}"), ours, &expected);
    }
    one_result(name, &ours, || run(&device, operands, module));
}

fn one_result(name: &str, first: &[TensorData], again: impl Fn() -> Vec<TensorData>) {
    for repeat in 1..=REPEATS {
        for (place, (first, again)) in first.iter().zip(&again()).enumerate() {
            assert_same(&format!("{name}, tensor {place}, repeat {repeat}"), first, again);
        }
    }
}

#[track_caller]
fn assert_close(what: &str, got: &TensorData, expected: &TensorData) {
    assert_within(TOLERANCE, what, got, expected);
}

#[track_caller]
fn assert_within(tolerance: f32, what: &str, got: &TensorData, expected: &TensorData) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    let [got, expected] = [got, expected].map(|data| data.clone().try_to_vec::<f32>().expect("f32"));
    let largest = expected.iter().filter(|x| x.is_finite()).fold(0.0f32, |largest, x| largest.max(x.abs()));
    assert!(largest > 0.0, "{what}: nothing to compare");
    for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let close = match expected.is_finite() {
            true => (got - expected).abs() <= tolerance * largest,
            false => got.is_nan() == expected.is_nan() && (got.is_nan() || got == expected),
        };
        assert!(close, "{what}, element {at}: {got}, on the CPU {expected}, the largest {largest}");
    }
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let elements = tensor.shape().num_elements();
    tensor.reshape([elements])
}

#[test]
fn convolutions() {
    check("conv1d", &[2 * 4 * 11, 6 * 2 * 3, 6], &|x| {
        let options = ConvOptions::new([2], [1], [2], 2);
        flat(conv1d(x[0].clone().reshape([2, 4, 11]), x[1].clone().reshape([6, 2, 3]), Some(x[2].clone()), options))
    });
    check("conv2d", &[2 * 4 * 7 * 8, 6 * 2 * 3 * 2, 6], &|x| {
        let options = ConvOptions::new([2, 1], [1, 0], [1, 2], 2);
        let (input, weight) = (x[0].clone().reshape([2, 4, 7, 8]), x[1].clone().reshape([6, 2, 3, 2]));
        flat(conv2d(input, weight, Some(x[2].clone()), options))
    });
    check("conv3d", &[2 * 2 * 4 * 5 * 4, 4 * 2 * 8, 4], &|x| {
        let options = ConvOptions::new([1, 2, 1], [1, 0, 1], [1, 1, 2], 1);
        let (input, weight) = (x[0].clone().reshape([2, 2, 4, 5, 4]), x[1].clone().reshape([4, 2, 2, 2, 2]));
        flat(conv3d(input, weight, Some(x[2].clone()), options))
    });
}

#[test]
fn transposed_convolutions() {
    check("conv_transpose1d", &[2 * 4 * 6, 4 * 3 * 3, 6], &|x| {
        let options = ConvTransposeOptions::new([2], [1], [1], [2], 2);
        let (input, weight) = (x[0].clone().reshape([2, 4, 6]), x[1].clone().reshape([4, 3, 3]));
        flat(conv_transpose1d(input, weight, Some(x[2].clone()), options))
    });
    check("conv_transpose2d", &[2 * 4 * 4 * 5, 4 * 3 * 3 * 2, 6], &|x| {
        let options = ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 2], 2);
        let (input, weight) = (x[0].clone().reshape([2, 4, 4, 5]), x[1].clone().reshape([4, 3, 3, 2]));
        flat(conv_transpose2d(input, weight, Some(x[2].clone()), options))
    });
    check("conv_transpose3d", &[2 * 3 * 3 * 2 * 4, 3 * 2 * 8, 2], &|x| {
        let options = ConvTransposeOptions::new([1, 2, 2], [0, 1, 0], [0, 1, 0], [1, 1, 2], 1);
        let (input, weight) = (x[0].clone().reshape([2, 3, 3, 2, 4]), x[1].clone().reshape([3, 2, 2, 2, 2]));
        flat(conv_transpose3d(input, weight, Some(x[2].clone()), options))
    });
}

#[test]
fn deformable_convolutions() {
    for (weight_groups, offset_groups) in [(1, 1), (2, 1), (1, 2), (2, 4)] {
        let options = || DeformConvOptions::new([2, 1], [1, 0], [1, 2], weight_groups, offset_groups);
        let places = offset_groups * 6 * 4 * 4;
        let weights = 4 / weight_groups * 6 * 4;
        let name = format!("deform_conv2d, {weight_groups} and {offset_groups} groups");
        check(&name, &[2 * 4 * 7 * 6, 2 * places * 2, weights, 2 * places, 4], &|x| {
            flat(deform_conv2d(
                x[0].clone().reshape([2, 4, 7, 6]),
                x[1].clone().reshape([2, offset_groups * 12, 4, 4]),
                x[2].clone().reshape([4, 4 / weight_groups, 3, 2]),
                Some(x[3].clone().reshape([2, offset_groups * 6, 4, 4])),
                Some(x[4].clone()),
                options(),
            ))
        });
    }
    check("deform_conv2d without mask and bias", &[2 * 6 * 5, 18 * 6 * 5, 3 * 2 * 9], &|x| {
        let options = DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1);
        let (input, offset) = (x[0].clone().reshape([1, 2, 6, 5]), x[1].clone().reshape([1, 18, 6, 5]));
        flat(deform_conv2d(input, offset, x[2].clone().reshape([3, 2, 3, 3]), None, None, options))
    });
}

#[test]
fn average_pools() {
    for (include, ceil) in [(true, false), (false, false), (true, true), (false, true)] {
        let pool = |sizes| AvgPoolOptions { count_include_pad: include, ceil_mode: ceil, ..sizes };
        check(&format!("avg_pool1d, {include}, {ceil}"), &[2 * 3 * 11], &|x| {
            let options = AvgPoolOptions::new([3]).with_stride([2]).with_padding([1]);
            let options = AvgPoolOptions { count_include_pad: include, ceil_mode: ceil, ..options };
            flat(avg_pool1d(x[0].clone().reshape([2, 3, 11]), options))
        });
        check(&format!("avg_pool2d, {include}, {ceil}"), &[2 * 3 * 8 * 7], &|x| {
            let options = AvgPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 0]);
            flat(avg_pool2d(x[0].clone().reshape([2, 3, 8, 7]), pool(options)))
        });
    }
    check("adaptive_avg_pool1d", &[2 * 3 * 11], &|x| flat(adaptive_avg_pool1d(x[0].clone().reshape([2, 3, 11]), 4)));
    for size in [[3, 5], [1, 1], [7, 6]] {
        check(&format!("adaptive_avg_pool2d, {size:?}"), &[2 * 3 * 7 * 6], &|x| {
            flat(adaptive_avg_pool2d(x[0].clone().reshape([2, 3, 7, 6]), size))
        });
    }
    check("adaptive_avg_pool3d", &[2 * 2 * 5 * 4 * 6], &|x| {
        flat(adaptive_avg_pool3d(x[0].clone().reshape([2, 2, 5, 4, 6]), [2, 3, 4]))
    });
}

#[test]
fn maximum_pools() {
    for (dilation, ceil) in [(1, false), (2, false), (1, true)] {
        check(&format!("max_pool1d, {dilation}, {ceil}"), &[2 * 3 * 14], &|x| {
            let options = MaxPoolOptions::new([3]).with_stride([2]).with_padding([1]);
            let options = options.with_dilation([dilation]).with_ceil_mode(ceil);
            flat(max_pool1d(x[0].clone().reshape([2, 3, 14]), options))
        });
        // Windows overlap, so an element has several gradients to add.
        check(&format!("max_pool2d, {dilation}, {ceil}"), &[2 * 3 * 9 * 8], &|x| {
            let options = MaxPoolOptions::new([3, 3]).with_stride([1, 2]).with_padding([1, 1]);
            let options = options.with_dilation([dilation, 1]).with_ceil_mode(ceil);
            flat(max_pool2d(x[0].clone().reshape([2, 3, 9, 8]), options))
        });
    }
    let options = || MaxPoolOptions::new([3, 2]).with_stride([1, 1]).with_padding([1, 1]);
    let indices = |device: &Device| {
        let input = Tensor::<4>::from_data(floats([2, 3, 6, 5]), device);
        max_pool2d_with_indices(input, options()).1.cast(IntDType::I32).into_data()
    };
    let ours = indices(&deterministic_device());
    assert_same("indices of max_pool2d", &indices(&Device::flex()), &ours);
}

/// Burn leaves open which element a window with a NaN in it names, and backends differ: one result is what is asked for.
#[test]
fn maximum_pools_of_nan_have_one_result() {
    let device = deterministic_device();
    let mut values = floats([96]).try_to_vec::<f32>().expect("f32");
    for at in [0, 7, 8, 50, 51, 95] {
        values[at] = f32::NAN;
    }
    let operands = [TensorData::new(values, [96])];
    let module: Module = &|x| {
        let options = MaxPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
        flat(max_pool2d(x[0].clone().reshape([1, 2, 6, 8]), options))
    };
    let first = run(&device, &operands, module);
    one_result("max_pool2d of NaN", &first, || run(&device, &operands, module));
}

#[test]
fn windows() {
    check("unfold4d", &[2 * 3 * 7 * 6], &|x| {
        let options = UnfoldOptions::new([2, 1], [1, 0], [1, 2]);
        flat(unfold4d(x[0].clone().reshape([2, 3, 7, 6]), [3, 2], options))
    });
    check("fold4d", &[2 * 12 * 30], &|x| {
        let options = UnfoldOptions::new([1, 1], [0, 0], [1, 1]);
        flat(fold4d(x[0].clone().reshape([2, 12, 30]), [6, 7], [2, 2], options))
    });
}

const SIZES: [[usize; 2]; 3] = [[9, 13], [3, 2], [5, 1]];

fn resized(x: &Tensor<1>, size: [usize; 2], mode: InterpolateMode, align_corners: bool) -> Tensor<1> {
    let options = InterpolateOptions::new(mode).with_align_corners(align_corners).with_output_size(size);
    flat(interpolate(x.clone().reshape([2, 3, 5, 4]), options))
}

#[test]
fn interpolations() {
    for (size, align) in SIZES.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        for mode in [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Bicubic] {
            check(&format!("interpolate to {size:?}, {mode:?}, {align}"), &[120], &|x| {
                resized(&x[0], size, mode.clone(), align)
            });
        }
    }
}

/// Resizing is linear: for a gradient `g` of its result, the sum of `resize(x) * g` is that of `x * gradient(g)`. The
/// CPU backend lacks some of these gradients.
#[test]
fn interpolation_gradients_are_the_transposed_operation() {
    let modes = [
        InterpolateMode::Nearest,
        InterpolateMode::NearestExact,
        InterpolateMode::Bilinear,
        InterpolateMode::Bicubic,
        InterpolateMode::Lanczos3,
    ];
    for (size, align) in SIZES.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        for mode in &modes {
            let module: Module = &|x| resized(&x[0], size, mode.clone(), align);
            let input = operand(0, 120);
            let device = deterministic_device();
            let results = run(&device, std::slice::from_ref(&input), module);
            let dot = |a: &TensorData, b: &TensorData| {
                let [a, b] = [a, b].map(|data| data.clone().try_to_vec::<f32>().expect("f32"));
                assert_eq!(a.len(), b.len());
                let terms = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b));
                terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
            };
            let upstream = operand(9, 6 * size[0] * size[1]);
            let ((forward, magnitude), (backward, _)) = (dot(&results[0], &upstream), dot(&input, &results[1]));
            let what = format!("interpolate to {size:?}, {mode:?}, {align}: {forward} and {backward} of {magnitude}");
            let tolerance = if matches!(mode, InterpolateMode::Lanczos3) { 1.0 / 512.0 } else { f64::from(TOLERANCE) };
            assert!(magnitude > 1.0 && (forward - backward).abs() < tolerance * magnitude, "{what}");
            one_result(&what, &results, || run(&device, std::slice::from_ref(&input), module));
            if matches!(mode, InterpolateMode::Lanczos3) {
                let resize = |device: &Device| module(&[Tensor::from_data(input.clone(), device)]).into_data();
                // Burn's kernel for the forward pass calls the driver's sine, which may be wrong by 2^-11.
                assert_within(1.0 / 512.0, &what, &resize(&device), &resize(&Device::flex()));
            }
        }
    }
}

#[test]
fn grid_samples() {
    let paddings = [GridSamplePaddingMode::Zeros, GridSamplePaddingMode::Border, GridSamplePaddingMode::Reflection];
    for (padding, align) in paddings.into_iter().flat_map(|padding| [(padding, false), (padding, true)]) {
        let options = |mode| GridSampleOptions::new(mode).with_padding_mode(padding).with_align_corners(align);
        check(&format!("grid_sample_2d, {padding:?}, {align}"), &[2 * 3 * 5 * 4, 2 * 6 * 7 * 2], &|x| {
            let (input, grid) = (x[0].clone().reshape([2, 3, 5, 4]), x[1].clone().reshape([2, 6, 7, 2]));
            flat(input.grid_sample_2d(grid, options(InterpolateMode::Bilinear)))
        });
        let sampled = |device: &Device, mode| {
            let input = Tensor::<4>::from_data(floats([2, 3, 5, 4]), device);
            let grid = Tensor::<1>::from_data(operand(1, 168), device).reshape([2, 6, 7, 2]);
            input.grid_sample_2d(grid, options(mode)).into_data()
        };
        // The CPU backend knows one more mode, and burn-autodiff does not.
        let device = deterministic_device();
        let ours = sampled(&device, InterpolateMode::Nearest);
        assert_same("nearest", &sampled(&Device::flex(), InterpolateMode::Nearest), &ours);
        for mode in [InterpolateMode::NearestExact, InterpolateMode::Bicubic, InterpolateMode::Lanczos3] {
            let first = [sampled(&device, mode.clone())];
            one_result(&format!("{mode:?}"), &first, || vec![sampled(&device, mode.clone())]);
        }
    }
}

/// With corners aligned, a grid of the places of `interpolate`'s outputs is `interpolate`.
#[test]
fn grid_samples_of_a_regular_grid_are_interpolations() {
    let device = deterministic_device();
    let places = (0..9 * 13).flat_map(|n| [(n % 13) as f32 / 6.0 - 1.0, (n / 13) as f32 / 4.0 - 1.0]);
    let grid = TensorData::new(places.collect::<Vec<f32>>(), [1, 9, 13, 2]);
    for mode in [InterpolateMode::Bilinear, InterpolateMode::Bicubic] {
        let input = Tensor::<4>::from_data(floats([1, 3, 5, 4]), &device);
        let options = GridSampleOptions::new(mode.clone())
            .with_padding_mode(GridSamplePaddingMode::Border)
            .with_align_corners(true);
        let sampled = input.clone().grid_sample_2d(Tensor::from_data(grid.clone(), &device), options);
        let options = InterpolateOptions::new(mode.clone()).with_output_size([9, 13]);
        let resized = interpolate(input, options);
        assert_close(&format!("{mode:?}"), &sampled.into_data(), &resized.into_data());
    }
}

#[test]
fn normalisations() {
    check("layer_norm", &[4 * 5 * 12, 12, 12], &|x| {
        flat(layer_norm(x[0].clone().reshape([4, 5, 12]), x[1].clone(), Some(x[2].clone()), 1e-5))
    });
    check("batch_norm_train", &[6 * 5 * 7, 5, 5], &|x| {
        flat(batch_norm_train(x[0].clone().reshape([6, 5, 7]), x[1].clone(), x[2].clone(), 1e-5).output)
    });
    check("batch_norm", &[6 * 5 * 7, 5, 5, 5, 5], &|x| {
        let variance = x[4].clone().abs() + 0.5;
        flat(batch_norm(x[0].clone().reshape([6, 5, 7]), x[1].clone(), x[2].clone(), x[3].clone(), variance, 1e-5))
    });
}

#[test]
fn attentions() {
    for causal in [false, true] {
        check(&format!("attention, {causal}"), &[2 * 3 * 7 * 8, 2 * 3 * 7 * 8, 2 * 3 * 7 * 5, 2 * 3 * 7 * 7], &|x| {
            let options = AttentionModuleOptions { is_causal: causal, softcap: Some(3.0), ..Default::default() };
            let mask = Tensor::<4, Int>::from_data(indices([2, 3, 7, 7], 3), &x[0].device()).equal_elem(2);
            // No query is left without a key.
            let eye = Tensor::<2, Int>::eye(7, &x[0].device()).equal_elem(1).bool_not().unsqueeze::<4>();
            flat(attention(
                x[0].clone().reshape([2, 3, 7, 8]),
                x[1].clone().reshape([2, 3, 7, 8]),
                x[2].clone().reshape([2, 3, 7, 5]),
                Some(mask.bool_and(eye.expand([2, 3, 7, 7]))),
                Some(x[3].clone().reshape([2, 3, 7, 7])),
                options,
            ))
        });
    }
}

#[test]
fn connectionist_temporal_classification() {
    check("ctc_loss", &[12 * 3 * 5], &|x| {
        let device = x[0].device();
        let ints = |values: Vec<i32>| {
            let length = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [length]), &device)
        };
        let log_probs = activation::log_softmax(x[0].clone().reshape([12, 3, 5]), 2);
        let targets = ints(vec![1, 2, 2, 4, 3, 1, 1, 1, 4, 3, 0, 0]).reshape([3, 4]);
        ctc_loss(log_probs, targets, ints(vec![12, 10, 11]), ints(vec![4, 4, 2]), 0)
    });
}

#[test]
fn products() {
    check("cross", &[5 * 3 * 4, 5 * 3 * 4], &|x| {
        flat(x[0].clone().reshape([5, 3, 4]).cross(x[1].clone().reshape([5, 3, 4]), 1))
    });
    check("linear", &[5 * 6 * 9, 9 * 7, 7], &|x| {
        flat(linear(x[0].clone().reshape([5, 6, 9]), x[1].clone().reshape([9, 7]), Some(x[2].clone())))
    });
    check("embedding", &[11 * 6], &|x| {
        let at = Tensor::<2, Int>::from_data(indices([8, 20], 11), &x[0].device());
        flat(embedding(x[0].clone().reshape([11, 6]), at))
    });
}
