//! Pools against their references.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::pool::*;
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::prelude::Client;
use cubecl::std::tensor::TensorHandle;

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Windows of one stride, padding and dilation along both axes.
fn window(kernel_size: [usize; 2], stride: usize, padding: usize, dilation: usize) -> Window {
    Window { kernel_size, stride: [stride; 2], padding: [padding; 2], dilation: [dilation; 2] }
}

/// An image, windows and how many there are: the number of a mode that rounds up is larger by one, and so is one that goes
/// past the padding.
fn cases() -> Vec<([usize; 2], Window, [usize; 2])> {
    vec![
        ([1, 1], window([1, 1], 1, 0, 1), [1, 1]),
        ([6, 8], window([2, 2], 2, 0, 1), [3, 4]),
        ([7, 5], window([3, 3], 1, 1, 1), [7, 5]),
        ([7, 9], window([3, 2], 2, 1, 1), [4, 5]),
        // Rounded up: the last windows end past the padding.
        ([7, 8], window([2, 3], 2, 0, 1), [4, 4]),
        ([6, 6], window([3, 3], 2, 1, 1), [4, 4]),
        // Pixels between the windows that no window has.
        ([9, 10], window([2, 1], 4, 0, 1), [2, 3]),
        // A padding larger than a window: some have no pixel.
        ([2, 3], window([2, 2], 1, 3, 1), [7, 8]),
        ([4, 4], window([1, 1], 3, 2, 1), [4, 4]),
        ([40, 67], window([5, 7], 3, 2, 1), [13, 22]),
        // One axis: a signal is an image of one column.
        ([70, 1], Window { kernel_size: [9, 1], stride: [2, 1], padding: [3, 0], dilation: [1, 1] }, [34, 1]),
    ]
}

/// Those of maxima: the same, and with gaps between the pixels of a window.
fn maximum_cases() -> Vec<([usize; 2], Window, [usize; 2])> {
    let dilated = [
        ([9, 8], window([3, 2], 1, 1, 2), [7, 8]),
        ([9, 9], window([2, 3], 2, 2, 3), [5, 4]),
        ([3, 3], window([2, 2], 1, 4, 5), [6, 6]),
    ];
    cases().into_iter().chain(dilated).collect()
}

/// The type of a tensor's floats.
#[derive(Clone, Copy, Debug)]
enum Type {
    Single,
    Half(Half),
}

impl Type {
    /// Those the device has.
    fn all() -> Vec<Self> {
        let mut types = vec![Self::Single];
        for half in HALVES {
            match client().properties().supports_type(half.dtype) {
                true => types.push(Self::Half(half)),
                false => skip(format_args!("the device has no {}", half.dtype)),
            }
        }
        types
    }

    fn rounded(self, values: &[f32]) -> Vec<f32> {
        match self {
            Self::Single => values.to_vec(),
            Self::Half(half) => half.rounded(values),
        }
    }

    /// In row-major order, and for f32 also with channels that are closest in memory, and with gaps.
    fn layouts(self, client: &Client, values: &[f32], shape: &[usize]) -> Vec<TensorHandle> {
        match self {
            Self::Single => vec![
                upload(client, values, shape, F32),
                channels_last(client, values, shape),
                scattered(3, client, values, shape),
            ],
            Self::Half(half) => vec![half.upload(client, values, shape)],
        }
    }

    fn download(self, client: &Client, tensor: TensorHandle) -> Vec<f32> {
        match self {
            Self::Single => download(client, tensor),
            Self::Half(half) => half.download(client, tensor),
        }
    }

    /// The bits of the reference, but for those of a NaN.
    #[track_caller]
    fn assert(self, client: &Client, got: TensorHandle, shape: &[usize], want: &[f32]) {
        assert_eq!(got.shape()[..], *shape);
        let canonical =
            |values: Vec<f32>| values.into_iter().map(|x| if x.is_nan() { NAN } else { x }).collect::<Vec<_>>();
        assert_bits(&canonical(self.download(client, got)), &canonical(self.rounded(want)));
    }
}

/// `[batch, channels, ..]` in memory as `[batch, .., channels]`.
fn channels_last(client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
    let (channels, area) = (shape[1], shape[2..].iter().product::<usize>());
    let memory: Vec<f32> = (0..values.len())
        .map(|n| values[n / (channels * area) * channels * area + n % channels * area + n / channels % area])
        .collect();
    let mut strides = vec![0; shape.len()];
    let mut stride = channels;
    for axis in (2..shape.len()).rev() {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    (strides[0], strides[1]) = (stride, 1);
    TensorHandle::new(upload(client, &memory, &[values.len()], F32).handle, shape.to_vec(), strides, F32)
}

/// Whether quotients are those of the host.
fn divides(client: &Client) -> bool {
    let divides = divides_like_the_host(client);
    if !divides {
        skip("the device's quotients are not correctly rounded");
    }
    divides
}

#[test]
fn averages_match_the_reference() {
    let client = client();
    if !divides(&client) {
        return;
    }
    for (image, window, windows) in cases() {
        for (dtype, counts) in Type::all().into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
            println!("{image:?}, {window:?}, {windows:?}, {dtype:?}, padding counted: {counts}");
            let (input, output) = ([2, 3, image[0], image[1]], [2, 3, windows[0], windows[1]]);
            let x = dtype.rounded(&random_values(1, input.iter().product()));
            let want = reference::average(&x, image, windows, &window, counts);
            for x in dtype.layouts(&client, &x, &input) {
                dtype.assert(&client, average(&client, x, windows, &window, counts).expect("runs"), &output, &want);
            }
            let dy = dtype.rounded(&random_values(2, output.iter().product()));
            let want = reference::average_gradient(&dy, image, windows, &window, counts);
            for dy in dtype.layouts(&client, &dy, &output) {
                let got = average_gradient(&client, dy, image, &window, counts).expect("runs");
                dtype.assert(&client, got, &input, &want);
            }
        }
    }
}

fn check_adaptive<const N: usize>(pixels: [usize; N], windows: [usize; N]) {
    let client = client();
    let of_three = |lengths: &[usize]| {
        let mut three = [1; 3];
        three[3 - N..].copy_from_slice(lengths);
        three
    };
    let (input, output) = ([&[2, 3], &pixels[..]].concat(), [&[2, 3], &windows[..]].concat());
    for dtype in Type::all() {
        println!("{pixels:?} to {windows:?}, {dtype:?}");
        let x = dtype.rounded(&random_values(3, input.iter().product()));
        let want = reference::adaptive(&x, of_three(&pixels), of_three(&windows));
        for x in dtype.layouts(&client, &x, &input) {
            dtype.assert(&client, adaptive_average(&client, x, windows).expect("runs"), &output, &want);
        }
        let dy = dtype.rounded(&random_values(4, output.iter().product()));
        let want = reference::adaptive_gradient(&dy, of_three(&pixels), of_three(&windows));
        for dy in dtype.layouts(&client, &dy, &output) {
            dtype.assert(&client, adaptive_average_gradient(&client, dy, pixels).expect("runs"), &input, &want);
        }
    }
}

#[test]
fn adaptive_averages_match_the_reference() {
    if !divides(&client()) {
        return;
    }
    for (pixels, windows) in [
        ([1, 1], [1, 1]),
        ([7, 6], [3, 4]),
        ([7, 6], [1, 1]),
        // More windows than pixels.
        ([2, 3], [5, 4]),
        ([40, 67], [13, 33]),
        ([300, 1], [7, 1]),
    ] {
        check_adaptive(pixels, windows);
    }
    for (pixels, windows) in [([5, 4, 6], [2, 3, 4]), ([3, 1, 2], [1, 1, 1]), ([2, 9, 3], [4, 2, 3])] {
        check_adaptive(pixels, windows);
    }
}

/// The maxima of every case with values in which every rule shows, and their gradients.
#[test]
fn maxima_match_the_reference() {
    let client = client();
    for (image, window, windows) in maximum_cases() {
        let (input, output) = ([2, 3, image[0], image[1]], [2, 3, windows[0], windows[1]]);
        let count: usize = input.iter().product();
        let mut ties: Vec<f32> = random_values(5, count).iter().map(|x| x.round()).collect();
        let mut infinite = random_values(6, count);
        let mut specials = random_values(7, count);
        for (n, special) in
            [-0.0, 0.0, NAN, -INF, -NAN, INF, 0.0, -0.0, f32::MIN].into_iter().cycle().take(count).enumerate()
        {
            specials[n] = if n % 5 == 3 { specials[n] } else { special };
            infinite[n] = if n % 7 == 0 { f32::MIN } else { -INF };
            ties[n] = if n % 4 == 0 { special.max(-1.0) } else { ties[n] };
        }
        for (dtype, x) in Type::all().into_iter().flat_map(|dtype| {
            [random_values(8, count), ties.clone(), infinite.clone(), specials.clone()]
                .map(|x| (dtype, dtype.rounded(&x)))
        }) {
            println!("{image:?}, {window:?}, {windows:?}, {dtype:?}");
            let (want, places) = reference::maximum(&x, image, windows, &window);
            let named: Vec<i32> = places.iter().map(|&index| index as i32).collect();
            for x in dtype.layouts(&client, &x, &input) {
                let got = maximum(&client, x.clone(), windows, &window).expect("runs");
                dtype.assert(&client, got, &output, &want);
                let (got, indices) = maximum_with_indices(&client, x, windows, &window, I32).expect("runs");
                dtype.assert(&client, got, &output, &want);
                assert_eq!(indices.shape()[..], output);
                assert_eq!(download::<i32>(&client, indices), named);
            }
            let dy = dtype.rounded(&random_values(9, output.iter().product()));
            let want = reference::maximum_gradient(&dy, &places, image, windows, &window);
            for dy in dtype.layouts(&client, &dy, &output) {
                let indices = upload(&client, &named, &output, I32);
                let got = maximum_gradient(&client, dy, indices, image, &window).expect("runs");
                dtype.assert(&client, got, &input, &want);
            }
        }
    }
}

/// What the rules say, spelled out: a driver's maximum has other results.
#[test]
fn maxima_of_nan_infinity_and_zeros() {
    let client = client();
    let row = Window { kernel_size: [1, 3], stride: [1, 3], padding: [0, 0], dilation: [1, 1] };
    let other_nan = f32::from_bits(0xffc0_1234);
    for (x, value, index) in [
        ([1.0, NAN, 2.0], NAN, 1),
        ([INF, NAN, other_nan], NAN, 1),
        ([other_nan, NAN, INF], NAN, 0),
        ([-INF, -INF, -INF], -INF, 0),
        ([-INF, f32::MIN, -INF], f32::MIN, 1),
        ([-0.0, 0.0, -1.0], -0.0, 0),
        ([-1.0, 0.0, -0.0], 0.0, 1),
        ([3.0, 3.0, 3.0], 3.0, 0),
    ] {
        let up = || upload(&client, &x, &[1, 1, 1, 3], F32);
        let (got, indices) = maximum_with_indices(&client, up(), [1, 1], &row, I32).expect("runs");
        Type::Single.assert(&client, got, &[1, 1, 1, 1], &[value]);
        assert_eq!(download::<i32>(&client, indices), [index], "{x:?}");
        Type::Single.assert(&client, maximum(&client, up(), [1, 1], &row).expect("runs"), &[1, 1, 1, 1], &[value]);
    }
}

/// A sum begins with +0: a driver that leaves it out gives -0.
#[test]
fn averages_of_zeros_are_positive() {
    let client = client();
    let square = window([2, 2], 2, 0, 1);
    let zeros = || upload(&client, &[-0.0f32; 16], &[1, 1, 4, 4], F32);
    for got in [
        average(&client, zeros(), [2, 2], &square, true),
        average_gradient(&client, zeros(), [8, 8], &square, true),
        adaptive_average(&client, zeros(), [2, 1]),
        adaptive_average_gradient(&client, zeros(), [5, 4]),
        maximum_gradient(&client, zeros(), upload(&client, &[0i32; 16], &[1, 1, 4, 4], I32), [8, 8], &square),
    ] {
        assert!(download::<f32>(&client, got.expect("runs")).iter().all(|x| x.to_bits() == 0));
    }
}

/// A term divided before it is added is rounded: one that a compiler joins with the sum is not.
#[test]
fn another_order_gives_other_bits() {
    let client = client();
    if !divides(&client) {
        return;
    }
    let square = window([3, 3], 1, 1, 1);
    let x = random_values(10, 400);
    let want = reference::average(&x, [20, 20], [20, 20], &square, false);
    let backwards: Vec<f32> = x.iter().rev().copied().collect();
    let mut turned = reference::average(&backwards, [20, 20], [20, 20], &square, false);
    turned.reverse();
    assert_ne!(want, turned, "the order of a window shows");
    let gradient = reference::average_gradient(&x, [20, 20], [20, 20], &square, false);
    let mut turned = reference::average_gradient(&backwards, [20, 20], [20, 20], &square, false);
    turned.reverse();
    assert_ne!(gradient, turned, "the order of the windows of a pixel shows");
}

/// Longer sums than a launch takes, in pieces that continue each other.
#[test]
fn long_windows() {
    let client = client();
    if !divides(&client) {
        return;
    }
    let image = [251, 480];
    let (input, whole) = ([1, 1, image[0], image[1]], window(image, 1, 0, 1));
    let mut x = random_values(11, image[0] * image[1]);
    let up = |x: &[f32]| upload(&client, x, &input, F32);
    let want = reference::average(&x, image, [1, 1], &whole, true);
    Type::Single.assert(&client, average(&client, up(&x), [1, 1], &whole, true).expect("runs"), &[1, 1, 1, 1], &want);
    let want = reference::adaptive(&x, [1, image[0], image[1]], [1, 2, 1]);
    Type::Single.assert(&client, adaptive_average(&client, up(&x), [2, 1]).expect("runs"), &[1, 1, 2, 1], &want);
    // The planes of a volume.
    let volume = [1, 1, 2, image[0], image[1] / 2];
    let want = reference::adaptive(&x, [2, image[0], image[1] / 2], [1, 1, 1]);
    let got = adaptive_average(&client, upload(&client, &x, &volume, F32), [1, 1, 1]).expect("runs");
    Type::Single.assert(&client, got, &[1, 1, 1, 1, 1], &want);
    for half in Type::all().into_iter().skip(1) {
        let x = half.rounded(&x);
        let want = reference::average(&x, image, [1, 1], &whole, true);
        let got = average(&client, half.layouts(&client, &x, &input).remove(0), [1, 1], &whole, true).expect("runs");
        half.assert(&client, got, &[1, 1, 1, 1], &want);
    }
    // The largest one is in the first piece, or in the last one; or there is none at all.
    for largest in [Some(17), Some(image[0] * image[1] - 5), None] {
        match largest {
            Some(at) => x[at] = 9.0 + at as f32,
            None => x.fill(-INF),
        }
        let (want, place) = reference::maximum(&x, image, [1, 1], &whole);
        let (got, index) = maximum_with_indices(&client, up(&x), [1, 1], &whole, I32).expect("runs");
        Type::Single.assert(&client, got, &[1, 1, 1, 1], &want);
        assert_eq!(download::<i32>(&client, index), [place[0] as i32]);
        Type::Single.assert(&client, maximum(&client, up(&x), [1, 1], &whole).expect("runs"), &[1, 1, 1, 1], &want);
    }
    // One pixel in each of these windows.
    let (pixels, wide) = ([1, 3], Window { padding: [image[0] - 1, image[1] - 1], ..whole });
    let windows = [image[0], image[1]];
    let dy = random_values(12, windows[0] * windows[1]);
    let shape = [1, 1, windows[0], windows[1]];
    let want = reference::average_gradient(&dy, pixels, windows, &wide, true);
    let got = average_gradient(&client, upload(&client, &dy, &shape, F32), pixels, &wide, true).expect("runs");
    Type::Single.assert(&client, got, &[1, 1, 1, 3], &want);
    let places: Vec<usize> = (0..dy.len()).map(|n| n % 3).collect();
    let named: Vec<i32> = places.iter().map(|&place| place as i32).collect();
    let want = reference::maximum_gradient(&dy, &places, pixels, windows, &wide);
    let (dy, indices) = (upload(&client, &dy, &shape, F32), upload(&client, &named, &shape, I32));
    let got = maximum_gradient(&client, dy, indices, pixels, &wide).expect("runs");
    Type::Single.assert(&client, got, &[1, 1, 1, 3], &want);
}

#[test]
fn indices_of_every_type() {
    let client = client();
    let square = window([2, 2], 2, 0, 1);
    let x = random_values(13, 2 * 4 * 6);
    let (_, places) = reference::maximum(&x, [4, 6], [2, 3], &square);
    let dy = random_values(14, 12);
    let want = reference::maximum_gradient(&dy, &places, [4, 6], [2, 3], &square);
    let int = ElemType::Int;
    for dtype in [int(IntKind::I8), int(IntKind::I16), I32, int(IntKind::I64), ElemType::UInt(UIntKind::U32)] {
        if !client.properties().supports_type(dtype) {
            skip(format_args!("the device has no {dtype}"));
            continue;
        }
        let up = upload(&client, &x, &[1, 2, 4, 6], F32);
        let (_, indices) = maximum_with_indices(&client, up, [2, 3], &square, dtype).expect("runs");
        assert_eq!(indices.dtype, dtype);
        let dy = upload(&client, &dy, &[1, 2, 2, 3], F32);
        let got = maximum_gradient(&client, dy, indices, [4, 6], &square).expect("runs");
        Type::Single.assert(&client, got, &[1, 2, 4, 6], &want);
    }
    // No pixel's, and one that the window does not reach over.
    let indices = upload(&client, &[-1i32, 24, i32::MIN, 23, i32::MAX, 0], &[1, 1, 2, 3], I32);
    let dy = upload(&client, &[1.0f32; 6], &[1, 1, 2, 3], F32);
    let got = maximum_gradient(&client, dy, indices, [4, 6], &square).expect("runs");
    assert_eq!(download::<f32>(&client, got), [0.0; 24]);
}

#[test]
fn doubles() {
    let client = client();
    let dtype = ElemType::Float(cubecl::ir::FloatKind::F64);
    let key = ElemType::Int(IntKind::I64);
    if ![dtype, key].into_iter().all(|dtype| client.properties().supports_type(dtype)) {
        return skip("the device has no f64, or no i64");
    }
    let square = window([2, 2], 2, 0, 1);
    let values = [1.0f64, -2.0, 0.5, f64::NAN, 4.0, 2.5, -0.0, 0.0];
    let up = || upload(&client, &values, &[1, 1, 2, 4], dtype);
    let averages = download::<f64>(&client, average(&client, up(), [1, 2], &square, true).expect("runs"));
    assert!(averages[0] == 1.375 && averages[1].is_nan(), "{averages:?}");
    let (maxima, indices) = maximum_with_indices(&client, up(), [1, 2], &square, I32).expect("runs");
    let maxima = download::<f64>(&client, maxima);
    assert!(maxima[0] == 4.0 && maxima[1].is_nan(), "{maxima:?}");
    assert_eq!(download::<i32>(&client, indices.clone()), [4, 3]);
    let dy = || upload(&client, &[3.0f64, 5.0], &[1, 1, 1, 2], dtype);
    let got = maximum_gradient(&client, dy(), indices, [2, 4], &square).expect("runs");
    assert_eq!(download::<f64>(&client, got), [0.0, 0.0, 0.0, 5.0, 3.0, 0.0, 0.0, 0.0]);
    let got = average_gradient(&client, dy(), [2, 4], &square, true).expect("runs");
    assert_eq!(download::<f64>(&client, got), [0.75, 0.75, 1.25, 1.25, 0.75, 0.75, 1.25, 1.25]);
}

#[test]
fn more_images_than_one_axis_of_a_grid_holds() {
    let client = client();
    let images = 16_777_217;
    let x: Vec<f32> = (0..images).map(|n| n as f32).collect();
    let pixel = window([1, 1], 1, 0, 1);
    let got = maximum(&client, upload(&client, &x, &[1, images, 1, 1], F32), [1, 1], &pixel).expect("runs");
    assert_bits(&download(&client, got), &x);
}

#[test]
fn nothing_and_refusals() {
    let client = client();
    let up = |shape: &[usize]| upload(&client, &vec![0.0f32; shape.iter().product()], shape, F32);
    let square = window([2, 2], 2, 0, 1);
    assert_eq!(average(&client, up(&[0, 3, 4, 4]), [2, 2], &square, true).expect("runs").shape()[..], [0, 3, 2, 2]);
    assert_eq!(maximum(&client, up(&[2, 0, 4, 4]), [2, 2], &square).expect("runs").shape()[..], [2, 0, 2, 2]);
    assert_eq!(adaptive_average(&client, up(&[0, 3, 4, 4]), [2, 2]).expect("runs").shape()[..], [0, 3, 2, 2]);
    let is_shape = |refused: Result<TensorHandle, KernelError>| matches!(refused, Err(KernelError::Shape { .. }));
    let is_argument = |refused: Result<TensorHandle, KernelError>| matches!(refused, Err(KernelError::Argument { .. }));
    // Ranks, images without a pixel, operands that differ.
    assert!(is_shape(average(&client, up(&[3, 4, 4]), [2, 2], &square, true)));
    assert!(is_shape(average(&client, up(&[1, 1, 0, 4]), [1, 1], &square, true)));
    assert!(is_shape(maximum(&client, up(&[1, 1, 0, 4]), [1, 1], &square)));
    assert!(is_shape(adaptive_average(&client, up(&[1, 1, 0, 4]), [1, 1])));
    assert!(is_shape(adaptive_average(&client, up(&[1, 1, 4, 4]), [1, 1, 1])));
    let indices = upload(&client, &[0i32; 2], &[1, 1, 1, 2], I32);
    assert!(is_shape(maximum_gradient(&client, up(&[1, 1, 2, 2]), indices, [4, 4], &square)));
    // What no index reaches, or no type counts.
    let far = Window { stride: [1 << 31, 2], ..square };
    assert!(is_shape(maximum(&client, up(&[1, 1, 4, 4]), [2, 2], &far)));
    assert!(is_shape(maximum(&client, up(&[1, 1, 4, 4]), [1 << 16, 1 << 16], &square)));
    let bytes = ElemType::Int(IntKind::I8);
    if client.properties().supports_type(bytes) {
        let refused = maximum_with_indices(&client, up(&[1, 1, 12, 12]), [6, 6], &square, bytes);
        assert!(matches!(refused, Err(KernelError::Index { counts: 128, length: 144, .. })));
    }
    // Windows that are none.
    assert!(is_argument(maximum(&client, up(&[1, 1, 4, 4]), [2, 2], &Window { stride: [0, 2], ..square })));
    assert!(is_argument(average(&client, up(&[1, 1, 4, 4]), [2, 2], &Window { kernel_size: [0, 2], ..square }, true)));
    assert!(is_argument(average(&client, up(&[1, 1, 4, 4]), [2, 2], &Window { dilation: [2, 2], ..square }, true)));
    let ints = upload(&client, &[0i32; 16], &[1, 1, 4, 4], I32);
    assert!(matches!(maximum(&client, ints, [2, 2], &square), Err(KernelError::Dtype { .. })));
}
