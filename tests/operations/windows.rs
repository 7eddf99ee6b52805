//! Pools, and windows as columns.

use super::{Operation, flat};
use burn::tensor::module::*;
use burn::tensor::ops::*;

pub fn average_pools() -> Vec<Operation> {
    let mut operations = Vec::new();
    for (include, ceil) in [(true, false), (false, false), (true, true), (false, true)] {
        operations.push(Operation::new(format!("avg_pool1d, {include}, {ceil}"), &[2 * 3 * 11], move |x| {
            let options = AvgPoolOptions::new([5]).with_stride([2]).with_padding([1]);
            let options = AvgPoolOptions { count_include_pad: include, ceil_mode: ceil, ..options };
            flat(avg_pool1d(x[0].clone().reshape([2, 3, 11]), options))
        }));
        operations.push(Operation::new(format!("avg_pool2d, {include}, {ceil}"), &[2 * 3 * 8 * 7], move |x| {
            let options = AvgPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 0]);
            let options = AvgPoolOptions { count_include_pad: include, ceil_mode: ceil, ..options };
            flat(avg_pool2d(x[0].clone().reshape([2, 3, 8, 7]), options))
        }));
    }
    operations.push(Operation::new("adaptive_avg_pool1d", &[2 * 3 * 11], |x| {
        flat(adaptive_avg_pool1d(x[0].clone().reshape([2, 3, 11]), 4))
    }));
    for size in [[3, 5], [1, 1], [7, 6]] {
        operations.push(Operation::new(format!("adaptive_avg_pool2d, {size:?}"), &[2 * 3 * 7 * 6], move |x| {
            flat(adaptive_avg_pool2d(x[0].clone().reshape([2, 3, 7, 6]), size))
        }));
    }
    operations.push(Operation::new("adaptive_avg_pool3d", &[2 * 2 * 5 * 4 * 6], |x| {
        flat(adaptive_avg_pool3d(x[0].clone().reshape([2, 2, 5, 4, 6]), [2, 3, 4]))
    }));
    operations
}

pub fn maximum_pools() -> Vec<Operation> {
    let mut operations = Vec::new();
    for (dilation, ceil) in [(1, false), (2, false), (1, true)] {
        // Windows overlap, so an element has several gradients to add.
        operations.push(Operation::new(format!("max_pool1d, {dilation}, {ceil}"), &[2 * 3 * 14], move |x| {
            let options = MaxPoolOptions::new([4]).with_stride([1]).with_padding([1]);
            let options = options.with_dilation([dilation]).with_ceil_mode(ceil);
            flat(max_pool1d(x[0].clone().reshape([2, 3, 14]), options))
        }));
        operations.push(Operation::new(format!("max_pool2d, {dilation}, {ceil}"), &[2 * 3 * 9 * 8], move |x| {
            let options = MaxPoolOptions::new([3, 3]).with_stride([1, 2]).with_padding([1, 1]);
            let options = options.with_dilation([dilation, 1]).with_ceil_mode(ceil);
            flat(max_pool2d(x[0].clone().reshape([2, 3, 9, 8]), options))
        }));
    }
    operations
}

pub fn windows() -> Vec<Operation> {
    vec![
        Operation::new("unfold4d", &[2 * 3 * 7 * 6], |x| {
            let options = UnfoldOptions::new([2, 1], [1, 0], [1, 2]);
            flat(unfold4d(x[0].clone().reshape([2, 3, 7, 6]), [3, 2], options))
        }),
        Operation::new("fold4d", &[2 * 12 * 30], |x| {
            let options = UnfoldOptions::new([1, 1], [0, 0], [1, 1]);
            flat(fold4d(x[0].clone().reshape([2, 12, 30]), [6, 7], [2, 2], options))
        }),
        Operation::new("unfold", &[3 * 40], |x| flat(x[0].clone().reshape([3, 40]).unfold::<3, _>(1, 7, 2))),
    ]
}
