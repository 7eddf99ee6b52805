//! Matrix products.

use super::{Rows, both, floats, halves, indices};
use crate::table::Target::AtLeast;
use burn_backend::ops::{FloatTensorOps, IntTensorOps};

pub fn compare(rows: &mut Rows<'_>) {
    let (a, b) = (floats([1024, 1024]), floats([1024, 1024]));
    let product = both!(B => B::float_matmul(a.clone(), b.clone()));
    rows.aim("matmul 1024 x 1024 x 1024", AtLeast(0.8), product);
    let turned = both!(B => B::float_matmul(B::float_swap_dims(a.clone(), 0, 1), b.clone()));
    rows.add("matmul 1024 x 1024 x 1024, left transposed", turned);
    let turned = both!(B => B::float_matmul(a.clone(), B::float_swap_dims(b.clone(), 0, 1)));
    rows.add("matmul 1024 x 1024 x 1024, right transposed", turned);
    let (a, b) = (floats([64, 1600]), floats([1600, 128]));
    rows.add("matmul 64 x 1600 x 128", both!(B => B::float_matmul(a.clone(), b.clone())));
    let (a, b) = (floats([64, 128, 64]), floats([64, 64, 128]));
    rows.add("matmul 64 times 128 x 64 x 128", both!(B => B::float_matmul(a.clone(), b.clone())));
    let (a, b) = (floats([2048, 2048]), floats([2048, 1]));
    rows.add("matrix-vector product, 2048 x 2048", both!(B => B::float_matmul(a.clone(), b.clone())));
    let (a, b) = (floats([1, 2048]), floats([2048, 2048]));
    rows.add("vector-matrix product, 2048 x 2048", both!(B => B::float_matmul(a.clone(), b.clone())));
    let (a, b) = (floats([2048, 1]), floats([1, 2048]));
    rows.add("outer product, 2048 x 2048", both!(B => B::float_matmul(a.clone(), b.clone())));
    let (a, b) = (floats([1, 1 << 20]), floats([1 << 20, 1]));
    rows.add("inner product of 2^20 elements", both!(B => B::float_matmul(a.clone(), b.clone())));
    if let (Some(a), Some(b)) = (halves([4096, 4096]), halves([4096, 4096])) {
        rows.add("matmul 4096 x 4096 x 4096 of f16", both!(B => B::float_matmul(a.clone(), b.clone())));
    }
    let (a, b) = (indices([256, 256], 100), indices([256, 256], 100));
    rows.add("int matmul 256 x 256 x 256", both!(B => B::int_matmul(a.clone(), b.clone())));
}
