//! Sorting with Burn's tensor API, against the host, and the same each time.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device as device;
use burn::prelude::*;
use burn_backend::ops::IntTensorOps;
use burn_backend::read_sync;
use burn_cubecl::CubeBackend;
use burn_deterministic::Deterministic;

/// A line's indices in descending order, equal elements by ascending index.
fn descending<T: PartialOrd>(line: &[T]) -> Vec<i32> {
    let mut at: Vec<usize> = (0..line.len()).collect();
    at.sort_by(|&a, &b| line[b].partial_cmp(&line[a]).expect("no NaN"));
    at.into_iter().map(|at| at as i32).collect()
}

fn ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i32> {
    tensor.into_data().try_into_vec().expect("i32")
}

#[test]
fn the_largest_with_their_indices_lowest_first_among_equals() {
    // 10,000 values below 50: nearly all have equals.
    let data = indices([40, 250], 50);
    let host: Vec<i32> = data.clone().try_into_vec().expect("i32");
    let want: Vec<i32> = host.chunks(250).flat_map(|line| descending(line)[..7].to_vec()).collect();
    let values: Vec<i32> = want.iter().enumerate().map(|(n, &at)| host[n / 7 * 250 + at as usize]).collect();
    let x = Tensor::<2, Int>::from_data(data, &device());
    let (largest, at) = x.clone().topk_with_indices(7, 1);
    assert_eq!((ints(largest), ints(at)), (values.clone(), want.clone()));
    assert_eq!((ints(x.clone().topk(7, 1)), ints(x.clone().argtopk(7, 1))), (values.clone(), want.clone()));
    let (largest, at) = x.float().topk_with_indices(7, 1);
    assert_eq!((ints(largest.int()), ints(at)), (values, want));
}

#[test]
fn a_long_axis_is_sorted_whole() {
    const LONG: usize = 70_000;
    let data = floats([LONG]);
    let host: Vec<f32> = data.clone().try_into_vec().expect("f32");
    let mut sorted = host.clone();
    sorted.sort_by(f32::total_cmp);
    let values = |x: Tensor<1>| x.into_data().try_into_vec::<f32>().expect("f32");
    let x = Tensor::<1>::from_data(data, &device());
    assert_eq!(values(x.clone().sort(0)), sorted);
    let (falling, at) = x.clone().sort_descending_with_indices(0);
    sorted.reverse();
    assert_eq!(values(falling), sorted);
    let there: Vec<f32> = ints(at).into_iter().map(|at| host[at as usize]).collect();
    assert_eq!(there, sorted);
    let rising: Vec<f32> = ints(x.clone().argsort(0)).into_iter().map(|at| host[at as usize]).collect();
    assert!(rising.is_sorted());
    // All of them: the descending order, on the device.
    let (falling, at) = x.topk_with_indices(LONG, 0);
    assert_eq!((values(falling), ints(at)), (sorted, descending(&host)));
}

#[test]
fn below_the_tensor_api_every_sort_is_stable() {
    type Direct = Deterministic<CubeBackend>;
    device();
    for [lines, length] in [[50, 40], [2, 5000]] {
        let data = indices([lines, length], 50);
        let host: Vec<i32> = data.clone().try_into_vec().expect("i32");
        let x = || Direct::int_from_data(data.clone(), &crate::cube_device());
        let read = |tensor| read_sync(Direct::int_into_data(tensor)).expect("it is read").try_into_vec::<i32>();
        let falling: Vec<i32> = host.chunks(length).flat_map(descending).collect();
        assert_eq!(read(Direct::int_argsort(x(), 1, true)).expect("i32"), falling);
        let negated: Vec<i32> = host.iter().map(|value| -value).collect();
        let rising: Vec<i32> = negated.chunks(length).flat_map(descending).collect();
        let (_, at) = Direct::int_sort_with_indices(x(), 1, false);
        assert_eq!(read(at).expect("i32"), rising);
    }
}

#[test]
fn repeats_give_one_result() {
    let x = Tensor::<2>::from_data(floats([30, 5000]), &device());
    let run = || {
        let (sorted, at) = x.clone().sort_descending_with_indices(1);
        let (largest, of_largest) = x.clone().topk_with_indices(600, 1);
        [sorted.into_data(), at.into_data(), largest.into_data(), of_largest.into_data()]
    };
    let first = run();
    for repeat in 0..5 {
        for (first, again) in first.iter().zip(run()) {
            assert_same(&format!("repeat {repeat}"), first, &again);
        }
    }
}

#[test]
fn gradients_go_to_the_elements_that_were_moved() {
    let device = device().autodiff();
    let x = Tensor::<1>::from_data([3.0f32, 1.0, 3.0, 5.0, 1.0], &device).require_grad();
    let weights = Tensor::<1>::from_data([1.0f32, 2.0, 4.0], &device);
    let gradients = (x.clone().topk(3, 0) * weights).sum().backward();
    let gradient = x.grad(&gradients).expect("x took part").into_data().try_into_vec::<f32>().expect("f32");
    assert_eq!(gradient, [2.0, 0.0, 4.0, 1.0, 0.0]);
}
