//! NaN, zeros, subnormal numbers, empty operands, and refusals.

use super::*;

/// Subnormal numbers, which a device may flush where it computes: whatever it makes of them, every plan makes the same.
#[test]
fn subnormal_numbers_are_the_same_by_every_plan() {
    let client = client();
    let (rows, positions) = (10, 5000);
    let mut values = vec![-0.0f32; positions];
    // A subnormal value alone, among others of -0, as the last of a block, and several.
    for (position, value) in [(7, -1e-41), (1023, 2e-41), (1024, 3e-41), (2050, 1e-41), (2060, 1e-40), (4999, -3e-42)] {
        values[position] = value;
    }
    let indices: Vec<i32> = (0..positions as i32).map(|p| if p == 7 { 9 } else { p % 5 }).collect();
    let tensor = [1e-40f32, -1e-41, -0.0, 0.0, 1.0, 1e-40, -1e-41, -0.0, 0.0, 1e-40];
    let results =
        Plan::candidates(&problem([1, rows, 1], positions, Indexed::Position, Update::Add)).into_iter().map(|plan| {
            let (tensor, values) =
                (upload(&client, &tensor, &[rows], F32), upload(&client, &values, &[positions], F32));
            let index = upload(&client, &indices, &[positions], I32);
            let got = scatter::update(
                &client,
                Addressing::Rows { dim: 0 },
                Operands { tensor, indices: index, values },
                Update::Add,
                Some(plan),
            );
            (plan, download::<f32>(&client, got.unwrap()))
        });
    let results: Vec<_> = results.collect();
    for (plan, got) in &results {
        println!("{plan:?} and {:?}", results[0].0);
        assert_bits(got, &results[0].1);
    }
}

/// The bits of a row that no source names, or that only -0 is added to, are kept.
#[test]
fn sums_into_few_rows_keep_what_they_do_not_change() {
    let client = client();
    let sources = 5000;
    let signalling = f32::from_bits(0xff81_2345);
    let tensor = [-0.0, 0.0, signalling, signalling, 1.0, -0.0, 2.0];
    // Rows 0 to 2 have no source, 3 and 4 sources of -0, 5 one of +0, 6 one of NaN.
    let (indices, mut values): (Vec<i32>, _) = ((0..sources).map(|s| 3 + s % 2).collect(), vec![-0.0f32; 5000]);
    let mut indices = indices;
    (indices[600], values[600]) = (5, 0.0);
    (indices[4999], values[4999]) = (6, f32::NAN);
    for plan in Plan::candidates(&problem([1, 7, 1], 5000, Indexed::Value, Update::Add)) {
        let got = scatter::update(
            &client,
            Addressing::Elements { dim: 0 },
            Operands {
                tensor: upload(&client, &tensor, &[7], F32),
                indices: upload(&client, &indices, &[5000], I32),
                values: upload(&client, &values, &[5000], F32),
            },
            Update::Add,
            Some(plan),
        );
        let got: Vec<f32> = download(&client, got.unwrap());
        println!("{plan:?}");
        assert_bits(&got[..6], &[-0.0, 0.0, signalling, signalling, 1.0, 0.0]);
        assert!(got[6].is_nan());
    }
}

#[test]
fn min_and_max_define_nan_and_signed_zero() {
    let client = client();
    let specials = [0.0, -0.0, f32::NAN, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY];
    // Every ordered pair of values onto every starting value.
    let mut tensor = Vec::new();
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for &start in &specials {
        for &first in &specials {
            for &second in &specials {
                indices.extend([tensor.len() as i32; 2]);
                values.extend([first, second]);
                tensor.push(start);
            }
        }
    }
    for update in [Update::Min, Update::Max] {
        let want = reference::scatter([1, tensor.len(), 1], &tensor, &wide(&indices), &values, combine(update));
        let left_fold: Vec<f32> = (0..tensor.len())
            .map(|at| values[2 * at..2 * at + 2].iter().fold(tensor[at], |left, &right| combine(update)(left, right)))
            .collect();
        assert_bits(&want, &left_fold);
        let operands = [
            upload(&client, &tensor, &[tensor.len()], F32),
            upload(&client, &indices, &[indices.len()], I32),
            upload(&client, &values, &[values.len()], F32),
        ];
        let got = updated(&client, Addressing::Elements { dim: 0 }, operands, update);
        assert_bits(&download(&client, got.unwrap()), &want);
    }
}

#[test]
fn empty_operands_are_copies() {
    let client = client();
    let tensor = random_values(20, 6);
    let empty = |shape: &[usize], dtype| TensorHandle::new_contiguous(shape.to_vec(), client.empty(4), dtype);
    let whole = || upload(&client, &tensor, &[2, 3], F32);
    let add = |addressing, operands| updated(&client, addressing, operands, Update::Add);
    let elements = Addressing::Elements { dim: 1 };
    let got = add(elements, [whole(), empty(&[2, 0], I32), empty(&[2, 0], F32)]);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let got = add(Addressing::Rows { dim: 0 }, [whole(), empty(&[0], I32), empty(&[0, 3], F32)]);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let got = add(Addressing::Tuples, [whole(), empty(&[0, 1], I32), empty(&[0, 3], F32)]);
    assert_bits(&download(&client, got.unwrap()), &tensor);
    let index = || upload(&client, &[0, 1], &[2, 1], I32);
    let got = add(elements, [empty(&[2, 0], F32), index(), whole_column(&client)]);
    assert_eq!(got.unwrap().shape().to_vec(), [2, 0]);
    // Every index is outside an axis of length zero.
    let got = gather::gather(&client, 1, empty(&[2, 0], F32), index(), None);
    assert_bits(&download(&client, got.unwrap()), &[0.0, 0.0]);
    let got = gather::select(&client, 0, whole(), empty(&[0], I32), None).unwrap();
    assert_eq!(got.shape().to_vec(), [0, 3]);
}

#[test]
fn refusals_say_what_does_not_fit() {
    let client = client();
    let floats = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
    let index = |shape: &[usize]| upload(&client, &vec![0i32; shape.iter().product()], shape, I32);
    let text = |addressing, operands| updated(&client, addressing, operands, Update::Add).unwrap_err().to_string();
    let (elements, rows) = (Addressing::Elements { dim: 0 }, Addressing::Rows { dim: 0 });
    let got = text(elements, [floats(&[3, 2]), index(&[5, 2]), floats(&[4, 2])]);
    assert_eq!(got, "scatter::scatter: indices [5, 2] for values [4, 2], want indices of shape [4, 2]");
    let got = text(elements, [floats(&[3, 2]), index(&[4, 1]), floats(&[4, 1])]);
    assert_eq!(got, "scatter::scatter: values [4, 1] into tensor [3, 2] along axis 0, want equal other axes");
    let got = text(rows, [floats(&[3]), index(&[5]), floats(&[4])]);
    assert!(got.contains("indices [5] for values [4], want indices of shape [4]"), "{got}");
    let got = text(Addressing::Tuples, [floats(&[3]), index(&[5, 2]), floats(&[5])]);
    assert!(got.contains("want a last axis of 1 to 1 index parts"), "{got}");
    let got = text(elements, [floats(&[3]), floats(&[4]), floats(&[4])]);
    assert!(got.contains("index and count with i32, i64 or u32"), "{got}");
}

/// An index outside its axis sets the flag, wherever it stands, by every plan; indices inside set none, and neither does an update
/// without a check.
#[test]
fn an_index_outside_sets_the_flag() {
    let client = client();
    let ([outer, rows, inner], positions) = ([2, 5, 3], 1500);
    let plans = |indexed| Plan::candidates(&problem([outer, rows, inner], positions, indexed, Update::Add));
    let of_values = (Addressing::Elements { dim: 1 }, vec![outer, positions, inner], plans(Indexed::Value));
    let of_rows = (Addressing::Rows { dim: 1 }, vec![positions], plans(Indexed::Position));
    let of_batches = (Addressing::Batches, vec![outer, positions], plans(Indexed::Batch));
    for (addressing, shape, plans) in [of_values, of_rows, of_batches] {
        assert!(plans.len() > 3, "{addressing:?}: {plans:?}");
        let count = shape.iter().product::<usize>();
        let inside: Vec<i32> = (0..count).map(|at| (at % rows) as i32).collect();
        let flags = Flags::new(&client, 5 * plans.len());
        let mut want = Vec::new();
        for plan in plans.into_iter().map(Some) {
            for outside in [
                None,
                Some((0, -1)),
                Some((count / 2, rows as i32)),
                Some((count - 1, i32::MIN)),
                Some((1100, i32::MAX)),
            ] {
                let mut indices = inside.clone();
                if let Some((at, index)) = outside {
                    indices[at] = index;
                }
                let operands = || Operands {
                    tensor: upload(&client, &vec![1f32; outer * rows * inner], &[outer, rows, inner], F32),
                    indices: upload(&client, &indices, &shape, I32),
                    values: upload(
                        &client,
                        &random_values(7, outer * positions * inner),
                        &[outer, positions, inner],
                        F32,
                    ),
                };
                let flag = flags.flag(want.len());
                let got = scatter::update_checked(&client, addressing, operands(), Update::Add, plan, flag);
                let unchecked = scatter::update(&client, addressing, operands(), Update::Add, plan);
                assert_bits(&download(&client, got.unwrap()), &download::<f32>(&client, unchecked.unwrap()));
                want.push(outside.is_some());
            }
        }
        assert_eq!(flags.read(&client).expect("the flags can be read"), want, "{addressing:?}");
    }
}

/// Each part of a tuple has an axis of its own, and no update of nothing goes unchecked.
#[test]
fn tuples_and_updates_of_nothing_are_checked() {
    let client = client();
    let flags = Flags::new(&client, 8);
    let mut want = Vec::new();
    let mut check = |tensor: &[usize], indices: &[i32], by: &[usize], values: &[usize], outside: bool| {
        let zeros = |shape: &[usize]| upload(&client, &vec![0f32; shape.iter().product()], shape, F32);
        let operands =
            Operands { tensor: zeros(tensor), indices: upload(&client, indices, by, I32), values: zeros(values) };
        let flag = flags.flag(want.len());
        scatter::update_checked(&client, Addressing::Tuples, operands, Update::Add, None, flag).expect("an update");
        want.push(outside);
    };
    check(&[2, 7, 3], &[1, 6, 0, 2], &[2, 2], &[2, 3], false);
    check(&[2, 7, 3], &[1, 6, 2, 0], &[2, 2], &[2, 3], true);
    check(&[2, 7, 3], &[1, 7, 0, 0], &[2, 2], &[2, 3], true);
    check(&[7, 3], &[6, 0], &[2, 1], &[2, 3], false);
    check(&[7, 3], &[6, 7], &[2, 1], &[2, 3], true);
    check(&[7, 3], &[-1, 0], &[2, 1], &[2, 3], true);
    check(&[7, 0], &[0, 7], &[2, 1], &[2, 0], true);
    check(&[7, 0], &[0, 6], &[2, 1], &[2, 0], false);
    assert_eq!(flags.read(&client).expect("the flags can be read"), want);
    // Operands that are refused have no sizes.
    for addressing in [Addressing::Elements { dim: 2 }, Addressing::Rows { dim: 9 }, Addressing::Tuples] {
        assert_eq!(addressing.sizes(&[7, 3], &[2, 3]), [0; 0], "{addressing:?}");
    }
    assert_eq!(Addressing::Tuples.sizes(&[7, 3], &[]), [0; 0]);
    assert_eq!(Addressing::Tuples.sizes(&[7, 3], &[4, 2]), [7, 3]);
}
