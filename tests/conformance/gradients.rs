//! Gradients, with everything kept for the backward pass and with recomputation.

use super::{Case, at, check, positive, x};
use crate::bits;
use burn::prelude::*;
use burn::tensor::activation::*;
use burn::tensor::module::{ctc_loss, embedding, max_pool2d};
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{EinsumOperand, IndexingUpdateOp, s};

/// The result of `f`, and the gradient of each leaf under a gradient without a pattern.
fn gradients<const D: usize>(
    device: &Device,
    leaves: &[TensorData],
    f: impl Fn(&[Tensor<1>]) -> Tensor<D>,
) -> Vec<TensorData> {
    let mut results = Vec::new();
    let autodiff = device.clone().autodiff();
    for device in [autodiff.clone(), autodiff.gradient_checkpointing()] {
        let leaves: Vec<Tensor<1>> =
            leaves.iter().map(|values| Tensor::from_data(values.clone(), &device).require_grad()).collect();
        let result = f(&leaves);
        let upstream = Tensor::from_data(bits::floats(result.dims()), &device);
        results.push(result.clone().into_data());
        let gradients = (result * upstream).sum().backward();
        results.extend(leaves.iter().map(|leaf| leaf.grad(&gradients).expect("every leaf takes part").into_data()));
    }
    results
}

fn values(length: usize) -> TensorData {
    bits::floats([length])
}

fn given(values: &[f32]) -> TensorData {
    TensorData::new(values.to_vec(), [values.len()])
}

fn ints<const D: usize>(values: &[i32], shape: [usize; D], like: &Tensor<1>) -> Tensor<D, Int> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &like.device())
}

/// An update of a row, of elements, and of blocks, with values that lose, tie and win against what is there.
fn scatter_nd(device: &Device, update: IndexingUpdateOp) -> Vec<TensorData> {
    let data = given(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let mut results = gradients::<2>(device, &[data.clone(), given(&[1.0, 5.0, 10.0])], |v| {
        let row = ints(&[1], [1, 1], &v[0]);
        v[0].clone().reshape([3, 3]).scatter_nd(row, v[1].clone().reshape([1, 3]), update)
    });
    results.extend(gradients::<2>(device, &[data, given(&[10.0, 1.0])], |v| {
        v[0].clone().reshape([3, 3]).scatter_nd(ints(&[0, 1, 2, 0], [2, 2], &v[0]), v[1].clone(), update)
    }));
    results
}

fn einsum<const D: usize>(equation: &str, operands: impl IntoIterator<Item = EinsumOperand>) -> Tensor<D> {
    Tensor::einsum(equation, operands)
}

const INDEXED: &[Case] = &[
    ("gather", |d| {
        gradients(d, &[values(12)], |v| {
            v[0].clone().reshape([4, 3]).gather(0, ints(&[2, 1, 0, 3, 3, 3], [2, 3], &v[0]))
        })
    }),
    ("scatter", |d| {
        gradients(d, &[values(6), values(4)], |v| {
            let source = v[1].clone().reshape([2, 2]);
            let at = ints(&[2, 2, 0, 1], [2, 2], &v[0]);
            v[0].clone().reshape([2, 3]).scatter(1, at, source, IndexingUpdateOp::Add)
        })
    }),
    ("scatter_nd, Add", |d| scatter_nd(d, IndexingUpdateOp::Add)),
    ("scatter_nd, Assign", |d| scatter_nd(d, IndexingUpdateOp::Assign)),
    ("scatter_nd, Mul", |d| scatter_nd(d, IndexingUpdateOp::Mul)),
    ("scatter_nd, Max", |d| scatter_nd(d, IndexingUpdateOp::Max)),
    ("scatter_nd, Min", |d| scatter_nd(d, IndexingUpdateOp::Min)),
    ("gather_nd", |d| {
        gradients::<1>(d, &[values(9)], |v| {
            v[0].clone().reshape([3, 3]).gather_nd(ints(&[0, 1, 1, 0, 0, 1], [3, 2], &v[0]))
        })
    }),
    ("select", |d| {
        gradients(d, &[values(20)], |v| v[0].clone().reshape([4, 5]).select(1, ints(&[1, 0, 4, 4], [4], &v[0])))
    }),
    ("select_assign", |d| {
        gradients(d, &[values(6), values(6)], |v| {
            let source = v[1].clone().reshape([3, 2]);
            v[0].clone().reshape([3, 2]).select_assign(0, ints(&[1, 1, 0], [3], &v[0]), source, IndexingUpdateOp::Add)
        })
    }),
    ("mask_select of nothing", |d| {
        gradients(d, &[values(3)], |v| v[0].clone().mask_select(v[0].clone().greater_elem(9.0)).sum())
    }),
    ("mask_select", |d| {
        gradients(d, &[given(&[1.0, -1.0, 2.0])], |v| v[0].clone().mask_select(v[0].clone().greater_elem(0.0)))
    }),
    ("embedding", |d| {
        gradients(d, &[values(1)], |v| embedding(v[0].clone().reshape([1, 1]), ints(&[0; 9], [3, 3], &v[0])))
    }),
    ("slices", |d| {
        gradients(d, &[values(20), values(6)], |v| {
            let tensor = v[0].clone().reshape([4, 5]).slice_assign(s![..;-2, 0..5;2], v[1].clone().reshape([2, 3]));
            tensor.slice(s![-3.., ..;-2])
        })
    }),
    ("unfold", |d| gradients::<3>(d, &[values(21)], |v| v[0].clone().reshape([7, 3]).unfold(0, 3, 2))),
];

const TIES: [f32; 12] = [1.0, 5.0, 5.0, 2.0, 7.0, -1.0, 7.0, 0.0, 3.0, 3.0, 3.0, 3.0];

macro_rules! ties {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        let of = |dim| gradients(d, &[given(&TIES)], |v| v[0].clone().reshape([3, 4]).$name(dim));
        [of(0), of(1)].concat()
    })),*] };
}

const ORDERED: &[Case] = ties![max_dim min_dim max_abs_dim cummax cummin cumsum cumprod prod_dim];

const MORE_ORDERED: &[Case] = &[
    ("max_dim_with_indices", |d| {
        gradients(d, &[given(&TIES)], |v| v[0].clone().reshape([3, 4]).max_dim_with_indices(1).0)
    }),
    ("max", |d| gradients(d, &[given(&TIES)], |v| v[0].clone().max() + v[0].clone().min())),
    ("sort", |d| gradients(d, &[values(21)], |v| v[0].clone().reshape([3, 7]).sort_descending(1))),
    ("topk", |d| gradients(d, &[values(28)], |v| v[0].clone().reshape([1, 7, 4]).topk(2, 1))),
    ("prod with zeros", |d| {
        gradients(d, &[given(&[1.0, 0.0, 0.0, 2.0, 2.0, 2.0, 3.0, 3.0, 0.0])], |v| {
            v[0].clone().reshape([3, 3]).prod_dim(0)
        })
    }),
    ("max_pool2d of equal elements", |d| {
        gradients(d, &[given(&[1.0; 25])], |v| {
            let options = MaxPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
            max_pool2d(v[0].clone().reshape([1, 1, 5, 5]), options)
        })
    }),
];

const PRODUCTS: &[Case] = &[
    ("matmul, broadcast", |d| {
        gradients(d, &[values(120), values(60)], |v| {
            v[0].clone().reshape([4, 2, 3, 5]).matmul(v[1].clone().reshape([1, 2, 5, 6]))
        })
    }),
    ("einsum of a product", |d| {
        gradients(d, &[values(6), values(12)], |v| {
            einsum::<2>("ik,kj->ij", [v[0].clone().reshape([2, 3]).into(), v[1].clone().reshape([3, 4]).into()])
        })
    }),
    ("einsum of a diagonal", |d| {
        gradients(d, &[values(12)], |v| einsum::<1>("iji->j", [v[0].clone().reshape([2, 3, 2]).into()]))
    }),
    ("einsum of three", |d| {
        gradients(d, &[values(2), values(2), values(2)], |v| {
            einsum::<1>("i,i,i->", [v[0].clone().into(), v[1].clone().into(), v[2].clone().into()])
        })
    }),
    ("einsum over broadcast axes", |d| {
        gradients(d, &[values(8), values(4)], |v| {
            let operands = [v[0].clone().reshape([2, 2, 2]).into(), v[1].clone().reshape([2, 2]).into()];
            einsum::<1>("...i,...i->", operands)
        })
    }),
    ("powf with zeros", |d| gradients(d, &[given(&[0.0, 2.0, -3.0])], |v| v[0].clone().powf_scalar(2.0))),
    ("expand", |d| gradients(d, &[values(3)], |v| v[0].clone().reshape([1, 3, 1]).expand([5, -1, 3, 2]))),
    ("broadcast against nothing", |d| {
        let device = d.clone().autodiff();
        let some = x([2, 1], &device).require_grad();
        let result = some.clone() * Tensor::zeros([2, 0], &device);
        let gradients = result.clone().sum().backward();
        vec![result.into_data(), some.grad(&gradients).expect("it takes part").into_data()]
    }),
];

const CLASSIFICATION: &[Case] = &[
    ("ctc_loss of different lengths, blank last", |d| {
        gradients(d, &[values(48)], |v| {
            let log_probabilities = log_softmax(v[0].clone().reshape([6, 2, 4]), 2);
            let [targets, inputs] = [ints(&[1, 1, 0, 1], [2, 2], &v[0]), ints(&[6, 5, 0, 0], [2, 2], &v[0])];
            let lengths = inputs.slice(s![0..1, ..]).reshape([2]);
            ctc_loss(log_probabilities, targets, lengths, ints(&[2, 1], [2], &v[0]), 3)
        })
    }),
    ("ctc_loss of no target", |d| {
        gradients(d, &[given(&[0.0; 6])], |v| {
            let log_probabilities = log_softmax(v[0].clone().reshape([3, 1, 2]), 2);
            let [target, length] = [ints(&[0], [1, 1], &v[0]), ints(&[0], [1, 1], &v[0])];
            ctc_loss(log_probabilities, target, ints(&[3], [1], &v[0]), length.reshape([1]), 0)
        })
    }),
];

const GRAPHS: &[Case] = &[
    ("a shared intermediate", |d| {
        gradients(d, &[values(4), values(4)], |v| {
            let [a, b] = [0, 1].map(|leaf: usize| v[leaf].clone().reshape([2, 2]));
            let product = a.clone().matmul(b.clone());
            let masked = product.clone().mask_where(a.clone().greater_elem(0.0), b.clone());
            (masked.clone() * product.exp() + masked.matmul(a)) * 0.5 + b
        })
    }),
    ("there and back again", |d| {
        gradients(d, &[values(3)], |v| {
            let there = (v[0].clone() * v[0].clone()).to_device(&Device::flex().autodiff());
            (there.clone() * there).to_device(&v[0].device()) + v[0].clone()
        })
    }),
    ("a long chain", |d| {
        gradients(d, &[values(16)], |v| {
            let chain = |x: Tensor<1>, step: usize| (x * 0.9 + 0.1 * (step % 3) as f32).tanh();
            (0..100).fold(v[0].clone(), chain)
        })
    }),
    ("a leaf that is used again", |d| {
        let device = d.clone().autodiff();
        let leaf = positive([4], &device).require_grad();
        let gradient = |scale: f32| {
            let gradients = (leaf.clone() * leaf.clone() * scale).sum().backward();
            leaf.grad(&gradients).expect("it takes part").into_data()
        };
        vec![gradient(2.0), gradient(3.0)]
    }),
    ("constants of another thread", |d| {
        gradients(d, &[values(40)], |v| {
            let (leaf, device) = (v[0].clone(), v[0].device());
            let elsewhere = std::thread::spawn(move || leaf.select(0, at([6], 40, &device)) * 2.0);
            elsewhere.join().expect("the other thread does not panic") + v[0].clone().slice(s![0..6])
        })
    }),
];

#[test]
fn gradients_at_indices() {
    check(INDEXED);
}

#[test]
fn gradients_of_ties() {
    check(ORDERED);
    check(MORE_ORDERED);
}

#[test]
fn gradients_of_products() {
    check(PRODUCTS);
}

#[test]
fn gradients_of_classifications() {
    check(CLASSIFICATION);
}

#[test]
fn gradients_of_graphs() {
    check(GRAPHS);
}
