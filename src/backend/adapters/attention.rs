//! Scaled dot-product attention: `softmax(Q K^T scale + bias) V`.

use super::{Output, operand, run};
use crate::backend::Deterministic;
use burn_backend::ops::attention::attention_fallback;
use burn_backend::ops::{AttentionModuleOptions, ModuleOps};
use burn_backend::{Shape, TensorMetadata};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::attention::{self, Params};

/// The tensors of attention.
pub(in crate::backend) struct Operands {
    /// Q, `[batch, heads, queries, width]`.
    pub query: CubeTensor,
    /// K, `[batch, heads, keys, width]`.
    pub key: CubeTensor,
    /// V, `[batch, heads, keys, columns]`.
    pub value: CubeTensor,
    /// Bool, true where a query does not see a key; broadcasts to `[batch, heads, queries, keys]`.
    pub mask: Option<CubeTensor>,
    /// Added to the scores; broadcasts to `[batch, heads, queries, keys]`.
    pub bias: Option<CubeTensor>,
}

impl Operands {
    fn all(&self) -> Vec<&CubeTensor> {
        [&self.query, &self.key, &self.value].into_iter().chain(&self.mask).chain(&self.bias).collect()
    }

    fn of_kernel(&self) -> attention::Operands {
        attention::Operands {
            query: operand(&self.query),
            key: operand(&self.key),
            value: operand(&self.value),
            mask: self.mask.as_ref().map(operand),
            bias: self.bias.as_ref().map(operand),
        }
    }
}

/// Attention in one kernel, or in its steps one by one where the kernel does not take it: the same bits.
pub(in crate::backend) fn attention(operands: Operands, options: AttentionModuleOptions) -> CubeTensor {
    let AttentionModuleOptions { scale, softcap, is_causal } = options;
    let client = operands.query.device.client();
    // Burn's own body says what is wrong with a cap.
    if softcap.is_some_and(|cap| cap.is_nan() || cap <= 0.0) || !operands.of_kernel().fit(&client) {
        let Operands { query, key, value, mask, bias } = operands;
        return attention_fallback::<Deterministic<CubeBackend>>(query, key, value, mask, bias, options);
    }
    let [batch, heads, queries, width] = operands.query.shape().dims();
    let params = Params {
        scale: scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt()) as f32,
        softcap: softcap.map(|cap| cap as f32),
        causal: is_causal,
    };
    let columns = operands.value.shape()[3];
    run(
        "attention",
        &operands.all(),
        Output::like(&operands.query, Shape::new([batch, heads, queries, columns])),
        |client| attention::attention(client, operands.of_kernel(), params),
        || {
            let Operands { query, key, value, mask, bias } = &operands;
            let [query, key, value] = [query, key, value].map(Clone::clone);
            CubeBackend::attention(query, key, value, mask.clone(), bias.clone(), options)
        },
    )
}
