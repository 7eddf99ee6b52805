//! Sorting and the largest elements.

use super::{Rows, both, floats};
use burn_backend::IntDType::I32;
use burn_backend::ops::FloatTensorOps;

pub fn compare(rows: &mut Rows<'_>) {
    let x = floats([1 << 20]);
    rows.add("sort of 2^20 elements, Burn on the host", both!(B => B::float_sort(x.clone(), 0, false)));
    let x = floats([100_000, 8]);
    rows.add("sort of rows, 100000 x 8, Burn on the host", both!(B => B::float_sort(x.clone(), 1, false)));
    let x = floats([1024, 256]);
    rows.add("argsort of rows, 1024 x 256, Burn on the host", both!(B => B::float_argsort(x.clone(), 1, false, I32)));
    let x = floats([1024, 1000]);
    rows.add("top 5 of rows, 1024 x 1000", both!(B => B::float_topk(x.clone(), 1, 5)));
    let x = floats([1 << 15]);
    rows.add("top 100 of 2^15 elements", both!(B => B::float_topk(x.clone(), 0, 100)));
}
