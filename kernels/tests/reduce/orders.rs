//! The order of the contract, whatever the axes and the layout.

use super::*;

#[test]
fn another_order_gives_other_bits() {
    let differs = |n: usize| {
        let values = random_values(n as u64, n);
        let chain = values.iter().fold(0.0, |a, &x| a + x);
        let blocks: f32 = values.chunks(64).map(|c| c.iter().sum::<f32>()).sum();
        let sum = reference::sum(&values);
        sum.to_bits() != chain.to_bits() && sum.to_bits() != blocks.to_bits()
    };
    assert!(differs(4096) && differs(300_000), "the inputs of the other tests do not show a wrong order");
}

#[test]
fn every_set_of_axes_and_layout_matches_the_reference() {
    let client = client();
    for shape in [vec![5, 3], vec![1, 130], vec![67, 4], vec![3, 1, 5], vec![9, 70, 13], vec![4, 3, 7, 9]] {
        let values = random_values(shape.len() as u64, shape.iter().product());
        for set in 0u32..1 << shape.len() {
            let axes: Vec<usize> = (0..shape.len()).filter(|i| set >> i & 1 == 1).collect();
            let want: Vec<f32> = outputs_of(&values, &shape, &axes).iter().map(|x| reference::sum(x)).collect();
            let result: Vec<usize> =
                shape.iter().enumerate().map(|(i, &size)| if axes.contains(&i) { 1 } else { size }).collect();
            for input in [upload(&client, &values, &shape, F32), scattered(&client, &values, &shape)] {
                let got = reduce::sum(&client, input, &axes).unwrap();
                assert_eq!(got.shape().to_vec(), result);
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

#[test]
fn broadcast_input_is_read_through_its_strides() {
    let client = client();
    let values = random_values(3, 70);
    let handle = client.create_from_slice(bytemuck::cast_slice(&values));
    let input = TensorHandle::new(handle, vec![100usize, 70], vec![0usize, 1], F32);
    let got = reduce::sum(&client, input.clone(), &[0]).unwrap();
    let want: Vec<f32> = values.iter().map(|&x| reference::sum(&[x; 100])).collect();
    assert_bits(&download(&client, got), &want);
    let got = reduce::sum(&client, input, &[0, 1]).unwrap();
    assert_bits(&download(&client, got), &[reference::sum(&values.repeat(100))]);
}

#[test]
fn products_and_means_match_the_reference() {
    let client = client();
    for n in [1, 64, 65, 4097] {
        let values: Vec<f32> = random_values(n as u64, n).iter().map(|x| 1.0 + x / 64.0).collect();
        let got = reduce::prod(&client, upload(&client, &values, &[n], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[reference::prod(&values)]);
        let got = reduce::mean(&client, upload(&client, &values, &[n], F32), &[0]).unwrap();
        assert_bits(&download(&client, got), &[reference::mean(&values)]);
    }
}

#[test]
fn ten_runs_give_one_result() {
    let client = client();
    let values = random_values(8, 1 << 20);
    let input = upload(&client, &values, &[1 << 20], F32);
    let runs: Vec<u32> =
        (0..10).map(|_| download::<u32>(&client, reduce::sum(&client, input.clone(), &[0]).unwrap())[0]).collect();
    assert_eq!(runs, vec![reference::sum(&values).to_bits(); 10]);
}

/// Every element is in at most 63 additions of its column, 63 of its block, and as many again per further pass: with
/// p passes |error| <= 126 p u sum|x| / (1 - 126 p u), u = 2^-24.
#[test]
fn error_is_within_the_bound_of_the_order() {
    for n in LENGTHS {
        let values = random_values(n as u64 + 100, n);
        let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
        let magnitude: f64 = values.iter().map(|&x| f64::from(x.abs())).sum();
        let additions = 126.0 * (1..).find(|&p| (BLOCK as usize).pow(p) >= n).map_or(1.0, f64::from);
        let bound = additions * 2f64.powi(-24) / (1.0 - additions * 2f64.powi(-24)) * magnitude;
        let error = (f64::from(reference::sum(&values)) - exact).abs();
        assert!(error <= bound, "n = {n}: error {error:e}, bound {bound:e}");
    }
}

#[test]
fn axes_join_where_their_strides_do() {
    let batch_norm = View::of(&[64, 32, 28, 28], &[25_088, 784, 28, 1], &[true, false, true, true]).unwrap();
    assert_eq!((batch_norm.outputs, batch_norm.axis, batch_norm.axis_inner), (32, 50_176, 784));
    assert_eq!((batch_norm.axis_outer_stride, batch_norm.axis_stride, batch_norm.inner_stride), (25_088, 1, 784));
    let everything = View::of(&[2, 1, 3], &[3, 7, 1], &[true; 3]).unwrap();
    assert_eq!((everything.outputs, everything.axis, everything.axis_inner), (1, 6, 6));
    let alternating = [true, false, true, false, true];
    assert_eq!(View::of(&[2, 2, 2, 2, 2], &[16, 8, 4, 2, 1], &alternating), None);
}
