//! Sources in the order of the contract, by every plan, whatever the strides and the repetition.

use super::*;

#[test]
fn scatter_add_matches_reference() {
    let client = client();
    for rows in [1, 2, 17, 64] {
        for positions in [1, 2, 15, 16, 17, 1023, 1024, 1025, 2048, 2049, 4097] {
            check_scatter(&client, [1, rows, 1], positions, Update::Add);
        }
    }
    for shape in [[3, 5, 7], [1, 10, 33], [128, 10, 1], [2, 1, 64], [5, 64, 1], [130, 12, 1]] {
        for positions in [1, 7, 100] {
            check_scatter(&client, shape, positions, Update::Add);
        }
    }
    // Several blocks of several columns.
    for shape in [[1, 256, 1], [1, 257, 1], [3, 10, 1], [1, 7, 5], [2, 3, 4]] {
        check_scatter(&client, shape, 5000, Update::Add);
    }
    // Many rows, and more cubes along an axis than one grid has: a cube has 256 rows of one line.
    check_scatter(&client, [1, 70_001, 1], 30_011, Update::Add);
    check_scatter(&client, [66_000, 129, 1], 1, Update::Add);
}

/// Lines with indices of their own, which their columns share.
#[test]
fn lines_match_reference() {
    let client = client();
    for (shape @ [lines, rows, inner], positions) in [([3, 40, 4], 5000), ([2, 7, 5], 2100), ([5, 300, 1], 1500)] {
        let (tensor, values) = (random_values(4, lines * rows * inner), random_values(5, lines * positions * inner));
        let indices = random_indices(6, lines * positions, rows);
        let per_value: Vec<i32> = indices.iter().flat_map(|&index| vec![index; inner]).collect();
        let want = reference::scatter(shape, &tensor, &wide(&per_value), &values, |a, b| a + b);
        for plan in Plan::candidates(&problem(shape, positions, Indexed::Batch, Update::Add)) {
            let got = scatter::update(
                &client,
                Addressing::Batches,
                Operands {
                    tensor: upload(&client, &tensor, &shape, F32),
                    indices: upload(&client, &indices, &[lines, positions], I32),
                    values: upload(&client, &values, &[lines, positions, inner], F32),
                },
                Update::Add,
                Some(plan),
            );
            println!("lines {shape:?} of {positions} by {plan:?}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}

/// Rows of eight elements whose distances are and are not multiples of four, and rows that are one row: plans that read four
/// elements at a time give the bits of those that read one.
#[test]
fn rows_apart_match_reference() {
    let client = client();
    let (rows, positions, inner) = (30, 2100, 8);
    let indices = random_indices(6, positions, rows);
    for distance in [8, 12, 13, 0] {
        let apart = |seed: u64, length: usize| {
            let memory = random_values(seed, (length - 1) * distance + inner);
            let values = (0..length * inner).map(|at| memory[at / inner * distance + at % inner]).collect::<Vec<f32>>();
            let handle = upload(&client, &memory, &[memory.len()], F32).handle;
            (values, TensorHandle::new(handle, vec![length, inner], vec![distance, 1], F32))
        };
        let ((tensor, tensor_view), (values, values_view)) = (apart(4, rows), apart(5, positions));
        let want = reference::select_assign([1, rows, inner], &tensor, &wide(&indices), &values, |a, b| a + b);
        for plan in Plan::candidates(&problem([1, rows, inner], positions, Indexed::Position, Update::Add)) {
            println!("rows {distance} apart by {plan:?}");
            let index = upload(&client, &indices, &[positions], I32);
            let (tensor, values) = (tensor_view.clone(), values_view.clone());
            let got = scatter::update(
                &client,
                Addressing::Rows { dim: 0 },
                Operands { tensor, indices: index, values },
                Update::Add,
                Some(plan),
            );
            assert_bits(&download(&client, got.unwrap()), &want);
        }
        let want: Vec<f32> = (0..positions * inner)
            .map(|at| {
                usize::try_from(indices[at / inner])
                    .ok()
                    .filter(|&row| row < rows)
                    .map_or(0.0, |row| tensor[row * inner + at % inner])
            })
            .collect();
        let index = upload(&client, &indices, &[positions], I32);
        assert_bits(&download(&client, gather::select(&client, 0, tensor_view, index, None).unwrap()), &want);
    }
}

#[test]
fn every_update_matches_reference() {
    let client = client();
    for update in NUMERIC {
        check_scatter(&client, [3, 5, 2], 70, update);
        check_scatter(&client, [1, 2, 1], 200, update);
        check_scatter(&client, [1, 2, 3], 2100, update);
        check_rows(&client, [2, 30, 4], &random_indices(7, 2100, 30), update);
    }
}

#[test]
fn select_assign_matches_reference() {
    let client = client();
    // Rows of 4, 8 and 64 are read in vectors of four.
    let cases = [
        ([1, 10, 64], 100),
        ([3, 7, 5], 64),
        ([2, 100, 33], 4099),
        ([1, 3, 2], 9000),
        ([3, 300, 8], 9000),
        ([1, 1000, 3], 100),
        ([4, 1000, 1], 7),
        ([2, 60_000, 1], 14_000),
        ([2, 60_000, 4], 14_000),
    ];
    for (shape @ [_, rows, _], positions) in cases {
        // All in the first hundred rows, so that the rows of the largest case have many sources.
        check_rows(&client, shape, &random_indices(6, positions, rows.min(100)), Update::Add);
    }
}

/// Rows whose sources are of one block, just fill it, or are one more, among sources of others; runs as long as the
/// shortest that has a total of its own, and one shorter; one row with nearly all sources.
#[test]
fn rows_of_whole_blocks_match_reference() {
    let client = client();
    for (shape, lengths) in [
        ([1, 40, 1], &[0, 1, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025, 2048, 2049][..]),
        ([1, 40, 4], &[1023, 1024, 1025, 15, 16, 17][..]),
        ([2, 40, 3], &[1024, 1, 1025, 2049][..]),
        ([1, 300_000, 1], &[69_000, 1000][..]),
    ] {
        let follow: Vec<i32> = lengths.iter().enumerate().flat_map(|(row, &n)| vec![row as i32; n]).collect();
        let positions = follow.len();
        assert!(!positions.is_multiple_of(7919));
        // A stride without a factor in common visits each once.
        let mixed: Vec<i32> = (0..positions).map(|at| follow[at * 7919 % positions]).collect();
        for indices in [follow, mixed] {
            check_rows(&client, shape, &indices, Update::Add);
        }
    }
}

/// More sources than the windows of 16 hold in one launch's bound, so that shorter runs have totals.
#[test]
fn one_row_of_many_sources_matches_reference() {
    let client = client();
    let positions = (1 << 21) + 77;
    let rows = 300;
    // One in seven is for another row: runs of one row are cut everywhere.
    let indices: Vec<i32> = (0..positions).map(|p| if p % 7 == 0 { (p / 7 % rows) as i32 } else { 299 }).collect();
    check_rows(&client, [1, rows, 1], &indices, Update::Add);
}

#[test]
fn scatter_nd_and_gather_nd_match_reference() {
    let client = client();
    let shape = [4, 5, 6];
    let tensor = random_values(9, 120);
    for (parts, tuples) in [(1, 3), (2, 50), (3, 700), (2, 5000)] {
        let width: usize = shape[parts..].iter().product();
        let values = random_values(10, tuples * width);
        let indices = random_indices(11, tuples * parts, 4);
        let keys = reference::tuple_rows(&shape[..parts], &wide(&indices));
        let index = || upload(&client, &indices, &[tuples, parts], I32);
        let values_shape: Vec<usize> = [tuples].iter().chain(&shape[parts..]).copied().collect();

        let rows = shape[..parts].iter().product();
        let add = |a, b| a + b;
        let want = reference::scatter_nd(&shape[..parts], width, &tensor, &wide(&indices), &values, add);
        for plan in Plan::candidates(&problem([1, rows, width], tuples, Indexed::Position, Update::Add)) {
            let values = upload(&client, &values, &values_shape, F32);
            let tensor = upload(&client, &tensor, &shape, F32);
            let got = scatter::update(
                &client,
                Addressing::Tuples,
                Operands { tensor, indices: index(), values },
                Update::Add,
                Some(plan),
            );
            println!("{tuples} tuples of {parts} by {plan:?}");
            assert_bits(&download(&client, got.unwrap()), &want);
        }

        let row = |key: &Option<usize>| match key {
            Some(row) => tensor[row * width..(row + 1) * width].to_vec(),
            None => vec![0.0; width],
        };
        let want: Vec<f32> = keys.iter().flat_map(row).collect();
        let got = gather::gather_nd(&client, upload(&client, &tensor, &shape, F32), index(), None).unwrap();
        assert_eq!(got.shape().to_vec(), values_shape);
        assert_bits(&download(&client, got), &want);
    }
}

#[test]
fn strides_do_not_change_bits() {
    let client = client();
    // One block and several.
    for sources in [150, 5000] {
        let (rows, inner) = (6, 4);
        let (tensor, values) = (random_values(17, rows * inner), random_values(18, sources * inner));
        let line = random_indices(19, sources, rows);
        let repeated: Vec<i32> = line.iter().flat_map(|&index| [index; 4]).collect();
        let update = |plan, tensor, indices, values| {
            let got = scatter::update(
                &client,
                Addressing::Elements { dim: 0 },
                Operands { tensor, indices, values },
                Update::Add,
                Some(plan),
            );
            download::<f32>(&client, got.unwrap())
        };
        let transpose = |data: &[f32], rows: usize| -> TensorHandle {
            let swapped: Vec<f32> = (0..data.len()).map(|e| data[e % rows * inner + e / rows]).collect();
            let handle = upload(&client, &swapped, &[inner, rows], F32).handle;
            TensorHandle::new(handle, vec![rows, inner], vec![1, rows], F32)
        };
        let every_third = |data: &[f32], rows: usize| -> TensorHandle {
            let spread: Vec<f32> = data.iter().flat_map(|&x| [x, f32::NAN, f32::NAN]).collect();
            let handle = upload(&client, &spread, &[spread.len()], F32).handle;
            TensorHandle::new(handle, vec![rows, inner], vec![3 * inner, 3], F32)
        };
        for plan in Plan::candidates(&problem([1, rows, inner], sources, Indexed::Value, Update::Add)) {
            let index = || upload(&client, &repeated, &[sources, inner], I32);
            let plain = |data: &[f32], rows| upload(&client, data, &[rows, inner], F32);
            let want = update(plan, plain(&tensor, rows), index(), plain(&values, sources));
            let broadcast = TensorHandle::new(
                upload(&client, &line, &[sources], I32).handle,
                vec![sources, inner],
                vec![1usize, 0],
                I32,
            );
            assert_bits(&update(plan, transpose(&tensor, rows), broadcast, transpose(&values, sources)), &want);
            assert_bits(&update(plan, every_third(&tensor, rows), index(), every_third(&values, sources)), &want);
        }
    }
}

#[test]
fn repeats_give_one_result_where_order_matters() {
    let client = client();
    let sources = 1 << 16;
    // Privatised, and sorted.
    for rows in [64, 1000] {
        let (tensor, values) = (random_values(21, rows), random_values(22, sources));
        let indices = random_indices(23, sources, rows);
        let add =
            |indices: &[i64], values: &[f32]| reference::scatter([1, rows, 1], &tensor, indices, values, |a, b| a + b);
        let want = add(&wide(&indices), &values);
        let (mut late_first, mut turned) = (values.clone(), wide(&indices));
        late_first.reverse();
        turned.reverse();
        let other = add(&turned, &late_first);
        assert!(want.iter().zip(&other).any(|(a, b)| a.to_bits() != b.to_bits()), "the order shows on this input");

        let tensor = upload(&client, &tensor, &[rows], F32);
        let index = upload(&client, &indices, &[sources], I32);
        let values = upload(&client, &values, &[sources], F32);
        for _ in 0..10 {
            let operands = [tensor.clone(), index.clone(), values.clone()];
            let got = updated(&client, Addressing::Elements { dim: 0 }, operands, Update::Add);
            assert_bits(&download(&client, got.unwrap()), &want);
        }
    }
}

/// A software driver ends a shader's loops after 65535 iterations: the last source must count all the same.
#[test]
fn the_last_of_many_sources_of_one_row_counts() {
    let client = client();
    let sources = 100_000;
    let mut values = vec![1.0f32; sources];
    values[sources - 1] = 1e6;
    for (update, want) in [(Update::Add, 1_099_999.0), (Update::Assign, 1e6), (Update::Max, 1e6)] {
        let tensor = upload(&client, &[0.0f32], &[1], F32);
        let values = upload(&client, &values, &[sources], F32);
        let indices = upload(&client, &vec![0i32; sources], &[sources], I32);
        let tuples = upload(&client, &vec![0i32; sources], &[sources, 1], I32);
        for (addressing, indices) in [
            (Addressing::Elements { dim: 0 }, &indices),
            (Addressing::Rows { dim: 0 }, &indices),
            (Addressing::Tuples, &tuples),
        ] {
            let got = updated(&client, addressing, [tensor.clone(), indices.clone(), values.clone()], update);
            assert_eq!(download::<f32>(&client, got.unwrap()), [want], "{update:?}");
        }
    }
}

#[test]
fn sums_are_close_to_exact() {
    let client = client();
    let (rows, sources) = (5, 40_000);
    let values = random_values(24, sources);
    let indices = random_indices(25, sources, rows);
    let operands = [
        upload(&client, &vec![0f32; rows], &[rows], F32),
        upload(&client, &indices, &[sources], I32),
        upload(&client, &values, &[sources], F32),
    ];
    let got = updated(&client, Addressing::Elements { dim: 0 }, operands, Update::Add);
    let got: Vec<f32> = download(&client, got.unwrap());
    for (row, &sum) in got.iter().enumerate() {
        let mine = || (0..sources).filter(|&s| indices[s] == row as i32).map(|s| f64::from(values[s]));
        let (exact, magnitude) = (mine().sum::<f64>(), mine().map(f64::abs).sum::<f64>());
        // A value passes at most 1023 additions in its block, 39 in the chain of 40 blocks, and the one to the tensor;
        // each rounds by at most half an ulp.
        let bound = (1023.0 + 39.0 + 1.0) * f64::from(f32::EPSILON) / 2.0 * magnitude;
        let error = (f64::from(sum) - exact).abs();
        assert!(error <= bound, "row {row}: {sum} is {error:e} from {exact}, allowed {bound:e}");
    }
}
