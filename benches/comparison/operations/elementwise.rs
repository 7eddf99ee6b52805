//! Element by element, one operation a kernel: bools, ints, masks, functions and quantized values. Chains of them are in
//! `programs`, since they share kernels above the tensor API only.

use super::{Rows, both, floats, indices};
use burn_backend::BoolStore::U32;
use burn_backend::FloatDType::F32;
use burn_backend::ops::{ActivationOps, BoolTensorOps, FloatTensorOps, IntTensorOps, QTensorOps};
use burn_backend::quantization::QuantScheme;
use burn_cubecl::CubeBackend;

pub fn compare(rows: &mut Rows<'_>) {
    let (a, b) = (floats([1 << 20]), floats([1 << 20]));
    rows.add("addition of 2^20 elements", both!(B => B::float_add(a.clone(), b.clone())));
    let row = floats([1, 1024]);
    let matrix = floats([1024, 1024]);
    rows.add("addition of a row to 1024 x 1024", both!(B => B::float_add(matrix.clone(), row.clone())));
    rows.add("exponential of 2^20 elements", both!(B => B::float_exp(a.clone())));
    rows.add("hyperbolic tangent of 2^20 elements", both!(B => B::float_tanh(a.clone())));
    rows.add("gelu of 2^20 elements", both!(B => B::gelu(a.clone())));
    rows.add("relu of 2^20 elements", both!(B => B::relu(a.clone())));

    let mask = CubeBackend::float_greater_elem(a.clone(), 0.5.into(), U32);
    rows.add("comparison of 2^20 elements", both!(B => B::float_greater(a.clone(), b.clone(), U32)));
    rows.add("mask_where on 2^20 elements", both!(B => B::float_mask_where(a.clone(), mask.clone(), b.clone())));
    rows.add("mask_fill on 2^20 elements", both!(B => B::float_mask_fill(a.clone(), mask.clone(), 1.into())));
    rows.add("bool_not of 2^20 elements", both!(B => B::bool_not(mask.clone())));

    let (a, b) = (indices([1 << 20], 1000), indices([1 << 20], 1000));
    rows.add("int multiplication of 2^20 elements", both!(B => B::int_mul(a.clone(), b.clone())));
    rows.add("int to float, 2^20 elements", both!(B => B::int_into_float(a.clone(), F32)));

    let scheme = QuantScheme::default();
    let quantized = CubeBackend::quantize_dynamic(matrix.clone(), &scheme);
    rows.add("dequantize 1024 x 1024", both!(B => B::dequantize(quantized.clone(), F32)));
    let round_trip = both!(B => B::dequantize(B::quantize_dynamic(matrix.clone(), &scheme), F32));
    rows.add("quantize_dynamic and dequantize 1024 x 1024", round_trip);
}
