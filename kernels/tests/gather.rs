//! Indexed reads against what the indices name. Those by tuples are checked with the updates by tuples.

use crate::harness::*;
use crate::scatter::random_indices;
use crate::skip::skip;
use burn_deterministic_kernels::gather;
use burn_deterministic_kernels::index_check::Flags;
use cubecl::ir::{ElemType, IntKind};
use cubecl::std::tensor::TensorHandle;

const I64: ElemType = ElemType::Int(IntKind::I64);

#[test]
fn gather_and_select_read_what_indices_name() {
    let client = client();
    // Some are multiples of four along the axis or the inner one, some do not.
    let cases = [
        ([1, 5, 1], 9),
        ([3, 10, 1], 8),
        ([3, 10, 4], 1),
        ([2, 7, 33], 20),
        ([2, 7, 12], 5),
        ([70_000, 3, 1], 2),
        ([70_000, 3, 1], 4),
    ];
    for ([outer, rows, inner], sources) in cases {
        let tensor = random_values(12, outer * rows * inner);
        let tensor_handle = || upload(&client, &tensor, &[outer, rows, inner], F32);
        let read = |line: usize, index: i32, lane: usize| match usize::try_from(index) {
            Ok(row) if row < rows => tensor[(line * rows + row) * inner + lane],
            _ => 0.0,
        };
        let at = |e: usize| (e / inner / sources, e / inner % sources, e % inner);

        let indices = random_indices(13, outer * sources * inner, rows);
        let want: Vec<f32> = (0..indices.len()).map(|e| read(at(e).0, indices[e], at(e).2)).collect();
        let index = upload(&client, &indices, &[outer, sources, inner], I32);
        assert_bits(&download(&client, gather::gather(&client, 1, tensor_handle(), index, None).unwrap()), &want);

        let line = &indices[..sources];
        let want: Vec<f32> = (0..indices.len()).map(|e| read(at(e).0, line[at(e).1], at(e).2)).collect();
        let index = upload(&client, line, &[sources], I32);
        assert_bits(&download(&client, gather::select(&client, 1, tensor_handle(), index, None).unwrap()), &want);
    }
}

/// By slices and by elements, in vectors and one by one, also where the result has no element.
#[test]
fn an_index_outside_sets_the_flag_of_its_read() {
    let client = client();
    let cases = [([3, 10, 4], 8), ([3, 10, 1], 8), ([2, 7, 3], 5), ([1, 6, 0], 4)];
    for ([outer, rows, inner], sources) in cases {
        let tensor = upload(&client, &vec![1.0f32; outer * rows * inner], &[outer, rows, inner], F32);
        for outside in [None, Some(-1), Some(rows as i32), Some(i32::MAX), Some(i32::MIN)] {
            let flags = Flags::new(&client, 4);
            let mut line: Vec<i32> = (0..sources as i32).map(|source| source % rows as i32).collect();
            line[sources - 2] = outside.unwrap_or(0);
            let index = upload(&client, &line, &[sources], I32);
            gather::select(&client, 1, tensor.clone(), index, Some(flags.flag(1))).unwrap();
            let tuples: Vec<i32> = line.iter().flat_map(|&row| [0, row]).collect();
            let index = upload(&client, &tuples, &[sources, 2], I32);
            gather::gather_nd(&client, tensor.clone(), index, Some(flags.flag(2))).unwrap();
            let each: Vec<i32> = line.iter().flat_map(|&row| vec![row; inner]).collect();
            let index = upload(&client, &each.repeat(outer), &[outer, sources, inner], I32);
            gather::gather(&client, 1, tensor.clone(), index, Some(flags.flag(3))).unwrap();
            let is_outside = outside.is_some();
            // A gather of nothing has no index.
            let want = [false, is_outside, is_outside, is_outside && inner > 0];
            assert_eq!(flags.read(&client).expect("flags"), want, "{outside:?} into {rows} rows of {inner}");
        }
    }
}

/// A grid takes 65535 cubes along an axis: of 32 elements of a wide row, of one line of many.
#[test]
fn tensors_of_more_cubes_than_a_grid_takes() {
    let client = client();
    for shape in [[2, 1, 2_200_000], [66_000, 129, 1]] {
        let [outer, rows, inner] = shape;
        let tensor: Vec<i32> = (0..(outer * rows * inner) as i32).collect();
        let dim = if inner > 1 { 0 } else { 1 };
        let rows = shape[dim];
        let reversed: Vec<i32> = (0..rows as i32).rev().collect();
        let indices = upload(&client, &reversed, &[rows], I32);
        let got = gather::select(&client, dim, upload(&client, &tensor, &shape, I32), indices, None).unwrap();
        let got: Vec<i32> = download(&client, got);
        let lane = shape[dim + 1..].iter().product::<usize>();
        let source = |at: usize| {
            let (line, row, lane_at) = (at / lane / rows, at / lane % rows, at % lane);
            (line * rows + rows - 1 - row) * lane + lane_at
        };
        let wrong = (0..got.len()).find(|&at| got[at] != tensor[source(at)]);
        assert_eq!(wrong, None, "{shape:?} along {dim}");
    }
}

/// Views that can be read in vectors of four, and those that cannot; 64-bit indices of which each is outside as a whole or not.
#[test]
fn layouts_and_types_of_indices_do_not_change_what_is_read() {
    let client = client();
    let (lines, rows, sources) = (6, 8, 12);
    let tensor = random_values(14, lines * 16);
    let indices = random_indices(15, lines * 16, rows);
    for distance in [12, 13, 16] {
        let (tensor_at, index_at) =
            (|line: usize, row: usize| line * distance + row, |l: usize, s: usize| l * distance + s);
        let places = || (0..lines).flat_map(|line| (0..sources).map(move |source| (line, source)));
        let read = |line, index: i32| match usize::try_from(index) {
            Ok(row) if row < rows => tensor[tensor_at(line, row)],
            _ => 0.0,
        };
        let want: Vec<f32> = places().map(|(line, source)| read(line, indices[index_at(line, source)])).collect();
        let view = |data: TensorHandle, length: usize| {
            TensorHandle::new(data.handle, vec![lines, length], vec![distance, 1usize], data.dtype)
        };
        let from = || view(upload(&client, &tensor, &[lines * 16], F32), rows);
        let index = view(upload(&client, &indices, &[lines * 16], I32), sources);
        assert_bits(&download(&client, gather::gather(&client, 1, from(), index, None).unwrap()), &want);
        // The same from the other axis, where neighbours lie apart.
        let turned = |handle: TensorHandle, length: usize| {
            TensorHandle::new(handle.handle, vec![length, lines], vec![1usize, distance], handle.dtype)
        };
        let want: Vec<f32> = (0..sources * lines).map(|e| want[e % lines * sources + e / lines]).collect();
        let from = turned(upload(&client, &tensor, &[lines * 16], F32), rows);
        let index = turned(upload(&client, &indices, &[lines * 16], I32), sources);
        assert_bits(&download(&client, gather::gather(&client, 0, from, index, None).unwrap()), &want);
    }
    // One index for all of a line, and a line of indices for each.
    let want: Vec<f32> = (0..lines * sources).map(|e| tensor[e / sources * 16 + 3]).collect();
    let from = || {
        TensorHandle::new(upload(&client, &tensor, &[lines * 16], F32).handle, vec![lines, rows], vec![16usize, 1], F32)
    };
    let three = TensorHandle::new(upload(&client, &[3], &[1], I32).handle, vec![lines, sources], vec![0usize, 0], I32);
    assert_bits(&download(&client, gather::gather(&client, 1, from(), three, None).unwrap()), &want);
    if client.properties().supports_type(I64) {
        let wide: Vec<i64> = indices.iter().map(|&i| i64::from(i) + if i % 3 == 0 { 1 << 32 } else { 0 }).collect();
        let seen = |e: usize| usize::try_from(wide[e]).ok().filter(|&row| row < rows);
        let want: Vec<f32> = (0..lines * 12).map(|e| seen(e).map_or(0.0, |row| tensor[e / 12 * 16 + row])).collect();
        let index = upload(&client, &wide[..lines * 12], &[lines, 12], I64);
        assert_bits(&download(&client, gather::gather(&client, 1, from(), index, None).unwrap()), &want);
    } else {
        skip("the device has no i64");
    }
}
