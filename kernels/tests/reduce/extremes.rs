//! Extremes, and where they are.

use super::*;

#[test]
fn zeros_are_ordered_by_sign_whatever_their_order() {
    let client = client();
    for values in [[-0.0f32, 0.0], [0.0, -0.0]] {
        let got = reduce::max(&client, upload(&client, &values, &[2], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[0.0]);
        let got = reduce::min(&client, upload(&client, &values, &[2], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[-0.0]);
    }
}

#[test]
fn indices_match_the_reference_under_every_plan() {
    let client = client();
    // The last three can be read in vectors of four: a row or so of a block, one block, and two with a short one behind.
    let shapes: [(&[usize], usize); 9] = [
        (&[2], 0),
        (&[1000, 3], 0),
        (&[5, 1], 1),
        (&[4, 130], 1),
        (&[3, 64, 9], 1),
        (&[70_001], 0),
        (&[17, 68], 1),
        (&[2, 3, 4096], 2),
        (&[2, 8192 + 72], 1),
    ];
    for (shape, axis) in shapes {
        for (ties, with_nan) in [(false, false), (true, false), (true, true)] {
            let mut values = with_specials(random_values(axis as u64, shape.iter().product()), with_nan);
            if ties {
                values.iter_mut().for_each(|x| *x = x.clamp(-0.01, 0.01));
            }
            for (end, reference) in
                [(Extreme::Max, reference::argmax as fn(&[f32]) -> Option<usize>), (Extreme::Min, reference::argmin)]
            {
                let rows = outputs_of(&values, shape, &[axis]);
                let want: Vec<i32> = rows.iter().map(|x| reference(x).unwrap() as i32).collect();
                let want_values: Vec<f32> = rows.iter().zip(&want).map(|(row, &i)| row[i as usize]).collect();
                for plan in plans(shape, &[axis], Kind::Search) {
                    let input = upload(&client, &values, shape, F32);
                    let (_, got) = search(&client, end, input.clone(), axis, I32, false, Some(plan)).unwrap();
                    assert_equal(&download::<i32>(&client, got), &want);
                    let (found, got) = search(&client, end, input, axis, I32, true, Some(plan)).unwrap();
                    assert_equal(&download::<i32>(&client, got), &want);
                    assert_bits(&download(&client, found), &want_values);
                }
            }
        }
    }
}

/// llvmpipe ends the loops of a shader after 65535 iterations: the last element must be seen all the same.
#[test]
fn an_extreme_at_the_end_of_a_long_axis_is_found() {
    let client = client();
    let mut values = vec![0.0f32; 200_000];
    values[199_999] = 1.0;
    for plan in plans(&[200_000], &[0], Kind::Search) {
        let input = upload(&client, &values, &[200_000], F32);
        let (_, got) = search(&client, Extreme::Max, input, 0, I32, false, Some(plan)).unwrap();
        assert_equal(&download::<i32>(&client, got), &[199_999]);
    }
}

#[test]
fn indices_come_in_the_type_asked_for() {
    let client = client();
    let input = upload(&client, &[3i32, 9, 9, -4], &[2, 2], I32);
    let (_, got) = search(&client, Extreme::Max, input.clone(), 1, U32, false, None).unwrap();
    assert_equal(&download::<u32>(&client, got), &[1, 0]);
    let (values, got) = search(&client, Extreme::Min, input.clone(), 0, I32, true, None).unwrap();
    assert_equal(&download::<i32>(&client, got), &[0, 1]);
    assert_equal(&download::<i32>(&client, values), &[3, -4]);
    if client.properties().supports_type(I64) {
        let (_, got) = search(&client, Extreme::Min, input.clone(), 1, I64, false, None).unwrap();
        assert_equal(&download::<i64>(&client, got), &[0, 1]);
    } else {
        skip("the device has no i64");
    }
    let refused = search(&client, Extreme::Max, input, 1, F32, false, None);
    assert!(matches!(refused, Err(KernelError::Dtype { dtype: F32, .. })));
}

#[test]
fn an_axis_longer_than_the_index_type_counts_is_refused() {
    let client = client();
    let narrow = [ElemType::Int(IntKind::I8), U8, ElemType::Int(IntKind::I16), ElemType::UInt(UIntKind::U16)];
    let mut tested = 0;
    for (index, counts) in narrow.into_iter().zip([1 << 7, 1 << 8, 1 << 15, 1 << 16]) {
        if !client.properties().supports_type(index) {
            continue;
        }
        let zeros = |n: usize| upload(&client, &vec![0f32; n], &[n], F32);
        let argmax = |n: usize| search(&client, Extreme::Max, zeros(n), 0, index, false, None);
        argmax(counts).expect("an axis as long as the type counts");
        let refused = argmax(counts + 1).expect_err("an index may wrap").to_string();
        let reason = format!("indices as {index} count {counts} elements, and the axis has {}", counts + 1);
        assert!(refused.ends_with(&reason), "{refused}");
        tested += 1;
    }
    if tested == 0 {
        skip("the device has no integers of less than 32 bits");
    }
}
