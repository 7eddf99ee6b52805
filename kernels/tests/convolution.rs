//! Convolution kernels against their references.

use crate::harness::*;
use burn_deterministic_kernels::arithmetic::multiply_add_of;
use burn_deterministic_kernels::convolution::*;

#[test]
fn smoke() {
    let client = client();
    let fma = multiply_add_of(&client);
    let params = ConvolutionParams { stride: [2, 1], padding: [(1, 1), (0, 2)], dilation: [1, 2], groups: 2 };
    let (xs, ws) = ([3, 4, 7, 6], [6, 2, 3, 2]);
    let x = random_values(1, xs.iter().product());
    let w = random_values(2, ws.iter().product());
    let bias = random_values(3, 6);
    let g = Geometry::new("test", &xs, &ws, &params).unwrap();
    let os = g.output_shape(2);
    let dy = random_values(4, os.iter().product());
    let up = |v: &[f32], s: &[usize]| upload(&client, v, s, F32);
    let y = forward(&client, up(&x, &xs), up(&w, &ws), Some(up(&bias, &[6])), &params).unwrap();
    assert_bits(&download(&client, y), &reference::forward(&g, fma, &x, &w, Some(&bias)));
    let y = input_gradient(&client, up(&dy, &os), up(&w, &ws), &xs, &params).unwrap();
    assert_bits(&download(&client, y), &reference::input_gradient(&g, fma, &dy, &w, None));
    let y = weight_gradient(&client, up(&x, &xs), up(&dy, &os), &ws, &params).unwrap();
    assert_bits(&download(&client, y), &reference::weight_gradient(&g, fma, &x, &dy));
}
