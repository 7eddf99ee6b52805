//! Indexed reads against what the indices name. Those by tuples are checked with the updates by tuples.

use crate::harness::*;
use crate::scatter::random_indices;
use burn_deterministic_kernels::scatter;

#[test]
fn gather_and_select_read_what_indices_name() {
    let client = client();
    for ([outer, rows, inner], sources) in [([1, 5, 1], 9), ([3, 10, 4], 1), ([2, 7, 33], 20), ([70_000, 3, 1], 2)] {
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
        assert_bits(&download(&client, scatter::gather(&client, 1, tensor_handle(), index).unwrap()), &want);

        let line = &indices[..sources];
        let want: Vec<f32> = (0..indices.len()).map(|e| read(at(e).0, line[at(e).1], at(e).2)).collect();
        let index = upload(&client, line, &[sources], I32);
        assert_bits(&download(&client, scatter::select(&client, 1, tensor_handle(), index).unwrap()), &want);
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
        let got = scatter::select(&client, dim, upload(&client, &tensor, &shape, I32), indices).unwrap();
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
