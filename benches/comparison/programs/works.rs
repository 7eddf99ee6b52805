//! What the programs compute.

use burn::module::{ModuleMapper, Param};
use burn::nn::attention::{MhaInput, MultiHeadAttentionConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNormConfig, GroupNormConfig, LayerNormConfig, LstmConfig, RmsNormConfig};
use burn::prelude::*;
use burn::tensor::activation::{gelu, log_softmax, softmax};
use burn::tensor::{FloatDType, IndexingUpdateOp, TensorData};

/// One run.
pub type Program = Box<dyn Fn() -> Vec<Box<dyn Values>>>;

/// A tensor of any rank.
pub trait Values {
    fn values(&self) -> Vec<f32>;
}

impl<const D: usize> Values for Tensor<D> {
    fn values(&self) -> Vec<f32> {
        self.clone().into_data().iter().collect()
    }
}

/// Prepares a program on a device.
pub type Prepare = fn(&Device) -> Program;

/// Programs, by their names.
pub const WORKS: &[(&str, Prepare)] = &[
    ("chain of 8 element-wise operations on 2^20 elements", |device| {
        let (x, y) = (floats([1 << 20], device), floats([1 << 20], device));
        Box::new(move || {
            let z = (x.clone() * y.clone() + 1.0).tanh() * x.clone();
            results([((z - y.clone()).abs() + 0.5).sqrt() / (y.clone() * y.clone() + 1.0)])
        })
    }),
    ("chain with a row broadcast to 1024 x 1024, then its sum", |device| {
        let (x, row) = (floats([1024, 1024], device), floats([1, 1024], device));
        Box::new(move || results([gelu(x.clone() * row.clone() + row.clone()).sum_dim(1)]))
    }),
    ("chain of 6 int and bool operations on 2^20 elements", |device| {
        let x = floats([1 << 20], device);
        let whole = (x.clone() * 100.0).int();
        Box::new(move || {
            let mask = (whole.clone() * 3 + 7).greater_elem(50).bool_and(whole.clone().lower_elem(90));
            results([x.clone().mask_fill(mask, 0.0)])
        })
    }),
    ("variance of rows, 1024 x 1024", |device| {
        let x = floats([1024, 1024], device);
        Box::new(move || results([x.clone().var(1)]))
    }),
    ("softmax with gradient, 1024 x 1000", |device| {
        gradients([floats([1024, 1000], device)], |[x]| (softmax(x.clone(), 1) * x.detach()).sum())
    }),
    ("softmax of bf16 with gradient, 1024 x 1000", |device| {
        let x = floats([1024, 1000], device).cast(FloatDType::BF16);
        gradients([x], |[x]| (softmax(x.clone(), 1) * x.detach()).sum())
    }),
    ("cross entropy with gradient, 1024 x 1000", |device| {
        let loss = CrossEntropyLossConfig::new().init(&device.clone().autodiff());
        let labels = classes([1024], 1000, &device.clone().autodiff());
        gradients([floats([1024, 1000], device)], move |[x]| loss.forward(x, labels.clone()))
    }),
    ("log_softmax with gradient, 1024 x 1000", |device| {
        gradients([floats([1024, 1000], device)], |[x]| (log_softmax(x.clone(), 1) * x.detach()).sum())
    }),
    ("layer norm with gradients, 1024 x 512", |device| {
        let norm = LayerNormConfig::new(512).init(&device.clone().autodiff());
        gradients([floats([1024, 512], device)], move |[x]| (norm.forward(x.clone()) * x.detach()).sum())
    }),
    ("RMS norm with gradients, 1024 x 512", |device| {
        let norm = RmsNormConfig::new(512).init(&device.clone().autodiff());
        gradients([floats([1024, 512], device)], move |[x]| (norm.forward(x.clone()) * x.detach()).sum())
    }),
    ("group norm with gradients, 16 x 32 x 28 x 28 in 8", |device| {
        let norm = GroupNormConfig::new(8, 32).init(&device.clone().autodiff());
        gradients([floats([16, 32, 28, 28], device)], move |[x]| (norm.forward(x.clone()) * x.detach()).sum())
    }),
    ("batch norm in training with gradients, 16 x 32 x 28 x 28", |device| {
        let norm = BatchNormConfig::new(32).init(&device.clone().autodiff());
        gradients([floats([16, 32, 28, 28], device)], move |[x]| (norm.forward(x.clone()) * x.detach()).sum())
    }),
    ("multi-head attention with gradients, 8 x 64 x 128, 8 heads", |device| {
        let layer = MultiHeadAttentionConfig::new(128, 8).with_dropout(0.0).init(&device.clone().autodiff());
        // The weights are random, and not the same on both sides.
        let layer = layer.map(&mut Alike);
        gradients([floats([8, 64, 128], device)], move |[x]| layer.forward(MhaInput::self_attn(x)).context.sum())
    }),
    ("LSTM with gradients, 16 sequences of 32, width 64", |device| {
        let layer = LstmConfig::new(64, 64, true).init(&device.clone().autodiff()).map(&mut Alike);
        gradients([floats([16, 32, 64], device)], move |[x]| layer.forward(x, None).0.sum())
    }),
    ("cumulative sum with gradient, 512 x 512", |device| {
        gradients([floats([512, 512], device)], |[x]| (x.clone().cumsum(1) * x.detach()).sum())
    }),
    ("cumulative product with gradient, 512 x 64", |device| {
        gradients([floats([512, 64], device) * 0.1 + 1.0], |[x]| (x.clone().cumprod(1) * x.detach()).sum())
    }),
    ("cumulative maximum with gradient, 512 x 512", |device| {
        gradients([floats([512, 512], device)], |[x]| (x.clone().cummax(1) * x.detach()).sum())
    }),
    ("sort with gradient, 1024 x 256, Burn on the host", |device| {
        gradients([floats([1024, 256], device)], |[x]| (x.clone().sort(1) * x.detach()).sum())
    }),
    ("maximum of rows with gradient, 1024 x 1000", |device| {
        gradients([floats([1024, 1000], device)], |[x]| x.max_dim(1).sum())
    }),
    ("gather with gradient, 1024 x 1000", |device| {
        let at = classes([1024, 1000], 1000, &device.clone().autodiff());
        gradients([floats([1024, 1000], device)], move |[x]| (x.clone().gather(1, at.clone()) * x.detach()).sum())
    }),
    ("select with gradient, 8192 rows of 10000 x 64", |device| {
        let at = classes([8192], 10_000, &device.clone().autodiff());
        gradients([floats([10_000, 64], device)], move |[x]| x.select(0, at.clone()).powf_scalar(2.0).sum())
    }),
    ("scatter with gradients, 1024 x 1000", |device| {
        let at = classes([1024, 1000], 1000, &device.clone().autodiff());
        let operands = [floats([1024, 1000], device), floats([1024, 1000], device)];
        gradients(operands, move |[x, values]| {
            let weights = x.clone().detach();
            (x.scatter(1, at.clone(), values, IndexingUpdateOp::Add) * weights).sum()
        })
    }),
];

/// The gradients of the operands of a function that returns one element.
fn gradients<const N: usize, const D: usize>(
    operands: [Tensor<D>; N],
    function: impl Fn([Tensor<D>; N]) -> Tensor<1> + 'static,
) -> Program {
    Box::new(move || {
        let operands = operands.each_ref().map(|operand| Tensor::from_inner(operand.clone()).require_grad());
        let gradients = function(operands.clone()).backward();
        results(operands.map(|operand| operand.grad(&gradients).expect("each operand takes part")))
    })
}

fn results<const N: usize, const D: usize>(tensors: [Tensor<D>; N]) -> Vec<Box<dyn Values>> {
    tensors.into_iter().map(|tensor| Box::new(tensor) as Box<dyn Values>).collect()
}

/// Values from -1 to 2.
fn floats<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let values = crate::operations::scrambled(shape.iter().product());
    let values = values.map(|bits| (bits >> 8) as f32 / (1 << 24) as f32 * 3.0 - 1.0).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Indices below `bound`.
fn classes<const D: usize>(shape: [usize; D], bound: usize, device: &Device) -> Tensor<D, Int> {
    let values = crate::operations::scrambled(shape.iter().product());
    let values = values.map(|bits| ((u64::from(bits) * bound as u64) >> 32) as i32).collect::<Vec<_>>();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Gives every parameter small values that depend on its shape alone.
#[derive(Default)]
struct Alike;

impl ModuleMapper for Alike {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        parameter.map(|tensor| floats(tensor.dims(), &tensor.device()) * 0.05)
    }
}
