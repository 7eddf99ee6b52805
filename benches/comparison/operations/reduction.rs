//! Reductions and cumulative operations.

use super::{Rows, Ways, both, floats, indices};
use crate::table::Target::AtLeast;
use burn_backend::IntDType::I32;
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_cubecl::CubeBackend;
use burn_deterministic::Deterministic;

pub fn compare(rows: &mut Rows<'_>) {
    let x = floats([1 << 24]);
    rows.aim("sum of 2^24 elements", AtLeast(0.8), both!(B => B::float_sum(x.clone())));
    // Burn's sum of all is wrong on llvmpipe, which leaves a loop after 65535 rounds: this way its loops are short.
    let x = floats([4096, 4096]);
    let sum = Ways([
        Box::new(|| vec![CubeBackend::float_sum(CubeBackend::float_sum_dim(x.clone(), 1))]),
        Box::new(|| vec![Deterministic::<CubeBackend>::float_sum(x.clone())]),
    ]);
    rows.aim("sum of 2^24 elements, Burn in two steps", AtLeast(0.8), sum);
    rows.add("sum of rows, 4096 x 4096", both!(B => B::float_sum_dim(x.clone(), 1)));
    rows.add("sum of columns, 4096 x 4096", both!(B => B::float_sum_dim(x.clone(), 0)));

    let x = floats([64, 256, 256]);
    rows.add("sum over the middle axis, 64 x 256 x 256", both!(B => B::float_sum_dim(x.clone(), 1)));
    let x = floats([2048, 2048]);
    rows.add("mean of rows, 2048 x 2048", both!(B => B::float_mean_dim(x.clone(), 1)));
    rows.add("product of rows, 2048 x 2048", both!(B => B::float_prod_dim(x.clone(), 1)));
    rows.add("maximum of rows, 2048 x 2048", both!(B => B::float_max_dim(x.clone(), 1)));
    rows.add("maximum of columns, 2048 x 2048", both!(B => B::float_max_dim(x.clone(), 0)));
    rows.add("maximum of 2^22 elements", both!(B => B::float_max(x.clone())));
    rows.add("argmax of rows, 2048 x 2048", both!(B => B::float_argmax(x.clone(), 1, I32)));
    rows.add("argmax of columns, 2048 x 2048", both!(B => B::float_argmax(x.clone(), 0, I32)));
    let with_indices = both!(B => B::float_max_dim_with_indices(x.clone(), 1, I32));
    rows.add("maximum of rows with indices, 2048 x 2048", with_indices);
    let whole = indices([2048, 2048], 1000);
    rows.add("int sum of rows, 2048 x 2048", both!(B => B::int_sum_dim(whole.clone(), 1)));
    let truths = CubeBackend::float_greater_elem(x.clone(), 1.9999.into(), burn_backend::BoolStore::U32);
    rows.add("any of rows, 2048 x 2048", both!(B => B::bool_any_dim(truths.clone(), 1)));

    let x = floats([1024, 1024]);
    rows.add("cumulative sum of rows, 1024 x 1024", both!(B => B::float_cumsum(x.clone(), 1)));
    rows.add("cumulative maximum of columns, 1024 x 1024", both!(B => B::float_cummax(x.clone(), 0)));
    let x = floats([1 << 15]);
    rows.add("cumulative sum of 2^15 elements", both!(B => B::float_cumsum(x.clone(), 0)));
}
