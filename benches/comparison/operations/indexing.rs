//! Reading and updating by index, and moving elements.

use super::{Rows, both, floats, indices};
use crate::table::Target::AtLeast;
use burn_backend::Slice;
use burn_backend::ops::{FloatTensorOps, ModuleOps};
use burn_backend::tensor::IndexingUpdateOp::Add;

pub fn compare(rows: &mut Rows<'_>) {
    for (name, length) in
        [("scatter-add of 2^20 values into 64 rows", 64), ("scatter-add of 2^20 values into 2^18 rows", 1 << 18)]
    {
        let (tensor, at, values) = (floats([length]), indices([1 << 20], length), floats([1 << 20]));
        let scatter = both!(B => B::float_scatter(0, tensor.clone(), at.clone(), values.clone(), Add));
        rows.aim(name, AtLeast(1.0), scatter);
    }
    let (tensor, at, values) = (floats([1024, 1000]), indices([1024, 1000], 1000), floats([1024, 1000]));
    let scatter = both!(B => B::float_scatter(1, tensor.clone(), at.clone(), values.clone(), Add));
    rows.aim("scatter-add within rows (gather's gradient), 1024 x 1000", AtLeast(1.0), scatter);
    rows.add("gather within rows, 1024 x 1000", both!(B => B::float_gather(1, tensor.clone(), at.clone())));

    let (weight, words, gradient) = (floats([10_000, 64]), indices([64, 128], 10_000), floats([64, 128, 64]));
    let embedding = both!(B => B::embedding_backward(weight.clone(), gradient.clone(), words.clone()));
    rows.aim("embedding gradient, 8192 words of 10000, width 64", AtLeast(1.0), embedding);
    rows.add("embedding, 8192 words of 10000, width 64", both!(B => B::embedding(weight.clone(), words.clone())));

    let (tensor, at, values) = (floats([10_000, 64]), indices([8192], 10_000), floats([8192, 64]));
    let update = both!(B => B::float_select_assign(tensor.clone(), 0, at.clone(), values.clone(), Add));
    rows.aim("adding 8192 rows (select's gradient), 10000 x 64", AtLeast(1.0), update);
    rows.add("selecting 8192 rows, 10000 x 64", both!(B => B::float_select(tensor.clone(), 0, at.clone())));
    let (tensor, at) = (floats([256, 1024]), indices([4096], 1024));
    rows.add("selecting 4096 columns, 256 x 1024", both!(B => B::float_select(tensor.clone(), 1, at.clone())));

    let (tensor, at, values) = (floats([512, 512, 16]), indices([16_384, 2], 512), floats([16_384, 16]));
    let update = both!(B => B::float_scatter_nd(tensor.clone(), at.clone(), values.clone(), Add));
    rows.aim("scatter_nd adding 16384 slices of 16", AtLeast(1.0), update);
    rows.add("gather_nd of 16384 slices of 16", both!(B => B::float_gather_nd(tensor.clone(), at.clone())));

    let (a, b) = (floats([1024, 1024]), floats([1024, 1024]));
    rows.add("joining two 1024 x 1024 by columns", both!(B => B::float_cat(vec![a.clone(), b.clone()], 1)));
    let part = floats([512, 512]);
    rows.add("repeating 512 x 512 four times", both!(B => B::float_repeat_dim(part.clone(), 0, 4)));
    let inside = || [Slice::from(256..768), Slice::from(256..768)];
    let assign = both!(B => B::float_slice_assign(a.clone(), &inside(), part.clone()));
    rows.add("slice assigned, 512 x 512 into 1024 x 1024", assign);
    rows.add("flip of 1024 x 1024", both!(B => B::float_flip(a.clone(), &[0, 1])));
}
