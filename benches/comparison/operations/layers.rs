//! Layers that are one operation each: activations over an axis, attention, CTC. Norms are in `programs`.

use super::{Rows, both, floats, indices, integers};
use burn_backend::ops::{ActivationOps, AttentionModuleOptions, IntTensorOps, ModuleOps};
use burn_cubecl::CubeBackend;

pub fn compare(rows: &mut Rows<'_>) {
    let logits = floats([1024, 1000]);
    rows.add("softmax, 1024 x 1000", both!(B => B::softmax(logits.clone(), 1)));
    rows.add("log_softmax, 1024 x 1000", both!(B => B::log_softmax(logits.clone(), 1)));

    let heads = || floats([4, 8, 128, 64]);
    let (query, key, value) = (heads(), heads(), heads());
    let attention = both!(B => {
        B::attention(query.clone(), key.clone(), value.clone(), None, None, AttentionModuleOptions::default())
    });
    rows.add("attention, 4 x 8 heads, 128 x 64", attention);
    let causal = || AttentionModuleOptions { is_causal: true, ..Default::default() };
    let attention = both!(B => B::attention(query.clone(), key.clone(), value.clone(), None, None, causal()));
    rows.add("attention, causal, 4 x 8 heads, 128 x 64", attention);
    // Twice as many scores as are computed together.
    let heads = || floats([1, 16, 1024, 64]);
    let (query, key, value) = (heads(), heads(), heads());
    let attention = both!(B => {
        B::attention(query.clone(), key.clone(), value.clone(), None, None, AttentionModuleOptions::default())
    });
    rows.add("attention, 16 heads, 1024 x 64", attention);

    let (steps, batch, classes, length) = (64, 32, 32, 16);
    let scores = CubeBackend::log_softmax(floats([steps, batch, classes]), 2);
    // Class 0 is the blank.
    let targets = CubeBackend::int_add_scalar(indices([batch, length], classes - 1), 1.into());
    let lengths = |length: usize| integers((0..batch).map(|_| length as i32), [batch]);
    let (inputs, lengths) = (lengths(steps), lengths(length));
    let gradient = floats([batch]);
    let loss = both!(B => B::ctc_loss(scores.clone(), targets.clone(), inputs.clone(), lengths.clone(), 0));
    rows.add("ctc loss, 64 steps, 32 sequences", loss);
    let backward = both!(B => B::ctc_loss_backward(
        scores.clone(), targets.clone(), inputs.clone(), lengths.clone(), gradient.clone(), 0
    ));
    rows.add("ctc loss gradient, 64 steps, 32 sequences", backward);
}
