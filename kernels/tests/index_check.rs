//! The check of indices against its reference.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::index_check::{Flags, check, first_outside};
use cubecl::ir::{ElemType, IntKind};
use cubecl::std::tensor::TensorHandle;

const I64: ElemType = ElemType::Int(IntKind::I64);

/// Checks each case with a flag of its own, and reads all flags at once.
fn assert_flags(cases: Vec<(TensorHandle, Vec<i64>, Vec<usize>)>) {
    let client = client();
    let flags = Flags::new(&client, cases.len() + 1);
    for (flag, (indices, _, sizes)) in cases.iter().enumerate() {
        check(&client, indices.clone(), sizes, flags.flag(flag)).expect("indices");
    }
    let raised = flags.read(&client).expect("the flags can be read");
    assert_eq!(raised.len(), flags.length());
    for ((_, indices, sizes), raised) in cases.iter().zip(&raised) {
        let expected = first_outside(indices, sizes).is_some();
        assert_eq!(*raised, expected, "{} indices into {sizes:?}", indices.len());
    }
    assert_eq!(raised.last(), Some(&false), "nobody raises the flag of no check");
}

fn case(indices: &[i32], shape: &[usize], sizes: &[usize]) -> (TensorHandle, Vec<i64>, Vec<usize>) {
    let wide = indices.iter().map(|&index| i64::from(index)).collect();
    (upload(&client(), indices, shape, I32), wide, sizes.to_vec())
}

#[test]
fn one_index_outside_is_enough() {
    let mut cases = vec![case(&[], &[0], &[3]), case(&[0], &[1], &[0]), case(&[0], &[], &[1])];
    for length in [1usize, 2, 7, 255, 256, 257, 70_001] {
        let inside: Vec<i32> = (0..length).map(|place| (place % 5) as i32).collect();
        cases.push(case(&inside, &[length], &[5]));
        cases.push(case(&inside, &[length], &[usize::from(u16::MAX) + 1]));
        for (place, index) in [(0, 5), (length / 2, -1), (length - 1, i32::MAX), (length - 1, i32::MIN)] {
            let mut outside = inside.clone();
            outside[place] = index;
            cases.push(case(&outside, &[length], &[5]));
        }
    }
    assert_flags(cases);
}

#[test]
fn tuples_are_checked_part_by_part() {
    let inside = [0, 6, 2, 1, 0, 0, 1, 3, 2];
    let mut cases = vec![case(&inside, &[3, 3], &[2, 7, 3])];
    for place in 0..inside.len() {
        let mut outside = inside;
        outside[place] = [2, 7, 3][place % 3];
        cases.push(case(&outside, &[3, 3], &[2, 7, 3]));
        // The same number is inside a longer axis.
        cases.push(case(&outside, &[3, 3], &[8, 8, 8]));
    }
    assert_flags(cases);
}

#[test]
fn views_and_wide_indices() {
    let client = client();
    let transposed = |indices: &[i32]| {
        let handle = client.create_from_slice(bytemuck_cast(indices));
        TensorHandle::new(handle, vec![3, 2], vec![1, 3], I32)
    };
    let mut cases = vec![(transposed(&[0, 1, 2, 3, 4, 4]), vec![0, 3, 1, 4, 2, 4], vec![5])];
    cases.push((transposed(&[0, 1, 2, 3, 5, 4]), vec![0, 3, 1, 5, 2, 4], vec![5]));
    cases.push((transposed(&[0, 1, 0, 3, 4, 4]), vec![0, 3, 1, 4, 0, 4], vec![2, 5]));
    cases.push((transposed(&[0, 2, 0, 3, 4, 4]), vec![0, 3, 2, 4, 0, 4], vec![2, 5]));
    if client.properties().supports_type(I64) {
        for index in [4, 5, -1, 1 << 32, (1 << 32) + 1, i64::MIN] {
            let indices = [0i64, index];
            cases.push((upload(&client, &indices, &[2], I64), indices.to_vec(), vec![5]));
        }
    } else {
        skip("the device has no i64");
    }
    assert_flags(cases);
}

fn bytemuck_cast(values: &[i32]) -> &[u8] {
    bytemuck::cast_slice(values)
}
