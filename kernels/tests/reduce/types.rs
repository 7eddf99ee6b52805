//! Half types, doubles and integers.

use super::*;

#[test]
fn half_floats_are_summed_in_f32_and_rounded_once() {
    let client = client();
    if !client.properties().supports_type(F16) {
        return skip("the device has no f16");
    }
    for n in [1, 65, 5000] {
        let values: Vec<half::f16> = random_values(n as u64, n).into_iter().map(half::f16::from_f32).collect();
        let wide: Vec<f32> = values.iter().map(|x| x.to_f32()).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[n], F16), &[0]).unwrap();
        let want = half::f16::from_f32(reference::sum(&wide));
        assert_equal(&download::<u16>(&client, got), &[want.to_bits()]);
        let got = reduce::max(&client, upload(&client, &values, &[n], F16), &[0]).unwrap();
        let want = half::f16::from_f32(reference::max(&wide).unwrap());
        assert_equal(&download::<u16>(&client, got), &[want.to_bits()]);
    }
}

#[test]
fn doubles_are_their_own_accumulator() {
    let client = client();
    if !client.properties().supports_type(F64) {
        return skip("the device has no f64");
    }
    let values: Vec<f64> = random_values(5, 5000).into_iter().map(|x| f64::from(x) * 1.1).collect();
    let got = reduce::sum(&client, upload(&client, &values, &[5000], F64), &[0]).unwrap();
    let want = reference::reduce(&values, |a, b| a + b).unwrap();
    assert_equal(&download::<u64>(&client, got), &[want.to_bits()]);
    let got = reduce::min(&client, upload(&client, &values, &[5000], F64), &[0]).unwrap();
    let want = values.iter().copied().min_by(f64::total_cmp).unwrap();
    assert_equal(&download::<u64>(&client, got), &[want.to_bits()]);
}

#[test]
fn integers_wrap_and_divide() {
    let client = client();
    let values: Vec<i32> = random_values(6, 5000).iter().map(|x| x.to_bits() as i32).collect();
    let input = upload(&client, &values, &[5000], I32);
    let sum = values.iter().fold(0i32, |a, &x| a.wrapping_add(x));
    let prod = values.iter().fold(1i32, |a, &x| a.wrapping_mul(x | 1));
    let odd: Vec<i32> = values.iter().map(|x| x | 1).collect();
    let max_abs = *values.iter().map(|x| x.wrapping_abs()).max().as_ref().unwrap();
    let of = |tensor| download::<i32>(&client, tensor)[0];
    assert_eq!(of(reduce::sum(&client, input.clone(), &[0]).unwrap()), sum);
    assert_eq!(of(reduce::prod(&client, upload(&client, &odd, &[5000], I32), &[0]).unwrap()), prod);
    assert_eq!(of(reduce::mean(&client, input.clone(), &[0]).unwrap()), sum / 5000);
    assert_eq!(of(reduce::max(&client, input.clone(), &[0]).unwrap()), *values.iter().max().unwrap());
    assert_eq!(of(reduce::min(&client, input.clone(), &[0]).unwrap()), *values.iter().min().unwrap());
    assert_eq!(of(reduce::max_abs(&client, input, &[0]).unwrap()), max_abs);
    let negative = upload(&client, &[-7i32, 0], &[2], I32);
    assert_eq!(of(reduce::mean(&client, negative, &[0]).unwrap()), -3);
}

#[test]
fn other_integer_types_where_the_device_has_them() {
    let client = client();
    if client.properties().supports_type(I64) {
        let values: Vec<i64> = (0..5000).map(|i: i64| (i - 2500) * 0x1234_5678_9abc).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[5000], I64), &[0]).unwrap();
        assert_equal(&download::<i64>(&client, got), &[values.iter().sum()]);
    } else {
        skip("the device has no i64");
    }
    if client.properties().supports_type(U8) {
        let values: Vec<u8> = (0..5000).map(|i| (i * 7) as u8).collect();
        let got = reduce::sum(&client, upload(&client, &values, &[5000], U8), &[0]).unwrap();
        assert_equal(&download::<u8>(&client, got), &[values.iter().fold(0, |a, &x| a.wrapping_add(x))]);
    } else {
        skip("the device has no u8");
    }
}
