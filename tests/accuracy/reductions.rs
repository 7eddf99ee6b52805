//! Reductions, scans, softmaxes and products of rows: of every length that a loop, a block or a grid may get wrong, and
//! wherever the rows lie.

use super::Measured;
use super::table::{self, Entry};
use crate::bits::floats;
use burn::prelude::*;
use burn::tensor::activation::{log_softmax, softmax};

/// Rows and their length: one, primes, powers of two and their neighbours, more than 65,535 of either.
const SHAPES: &[[usize; 2]] = &[
    [3, 1],
    [3, 2],
    [2, 7],
    [3, 31],
    [2, 63],
    [2, 64],
    [2, 65],
    [1, 127],
    [3, 128],
    [1, 257],
    [2, 1021],
    [2, 1024],
    [1, 1025],
    [1, 4095],
    [2, 4096],
    [1, 4097],
    [1, 65_535],
    [1, 65_536],
    [1, 70_001],
    [70_001, 3],
];

/// The exact results of a row, and the sizes of what each is made of.
pub(super) type Results = Vec<(f64, f64)>;

pub(super) struct Reduction {
    pub(super) name: &'static str,
    pub(super) ours: fn(Tensor<2>) -> Tensor<2>,
    pub(super) exact: fn(&[f64]) -> Results,
    /// What is taken of the values from -2 to 2.
    pub(super) operand: fn(f32) -> f32,
}

fn size(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Numbers that bf16 has too.
fn weights(count: usize) -> Vec<f32> {
    let numbers = floats([count]).try_into_vec::<f32>().expect("f32");
    numbers.into_iter().map(|number| (number * 64.0).round() / 64.0).collect()
}

/// The shares of a row, and the sum they are shares of, of powers relative to the largest.
fn shares(row: &[f64]) -> (Vec<f64>, f64) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|value| (value - largest).exp()).collect();
    let sum = powers.iter().sum::<f64>();
    (powers.into_iter().map(|power| power / sum).collect(), largest + sum.ln())
}

pub(super) const REDUCTIONS: &[Reduction] = &[
    Reduction { name: "sum", ours: |x| x.sum_dim(1), exact: |row| vec![(row.iter().sum(), size(row))], operand: |x| x },
    Reduction {
        name: "sum of positive numbers",
        ours: |x| x.sum_dim(1),
        exact: |row| vec![(row.iter().sum(), size(row))],
        operand: f32::abs,
    },
    Reduction {
        name: "mean",
        ours: |x| x.mean_dim(1),
        exact: |row| vec![(mean(row), size(row) / row.len() as f64)],
        operand: |x| x,
    },
    Reduction {
        name: "product",
        ours: |x| x.prod_dim(1),
        exact: |row| {
            let product = row.iter().product::<f64>();
            vec![(product, row.len() as f64 * product.abs())]
        },
        // Near 1 on both sides, so that no product overflows.
        operand: |x| if x < 0.0 { 1.0 / (1.0 - x / 64.0) } else { 1.0 + x / 64.0 },
    },
    Reduction {
        name: "variance",
        ours: |x| x.var_bias(1),
        exact: |row| {
            let mean = mean(row);
            let count = row.len() as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            vec![(variance, row.iter().map(|x| (2.0 * (x - mean) * x).abs()).sum::<f64>() / count)]
        },
        operand: |x| x + 1.0,
    },
    Reduction {
        name: "euclidean norm",
        ours: |x| x.square().sum_dim(1).sqrt(),
        exact: |row| {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            vec![(norm, norm)]
        },
        operand: |x| x,
    },
    Reduction {
        name: "softmax",
        ours: |x| softmax(x, 1),
        exact: |row| {
            let (shares, _) = shares(row);
            let middle = shares.iter().zip(row).map(|(share, x)| share * x.abs()).sum::<f64>();
            shares.iter().zip(row).map(|(&share, x)| (share, share * (x.abs() + middle))).collect()
        },
        operand: |x| x * 3.0,
    },
    Reduction {
        name: "log_softmax",
        ours: |x| log_softmax(x, 1),
        exact: |row| {
            let (shares, log) = shares(row);
            let middle = shares.iter().zip(row).map(|(share, x)| share * x.abs()).sum::<f64>();
            row.iter().map(|x| (x - log, x.abs() + middle)).collect()
        },
        operand: |x| x * 3.0,
    },
    Reduction {
        name: "cumulative sum",
        ours: |x| x.cumsum(1),
        exact: |row| {
            let add = |(sum, size): &mut (f64, f64), x: &f64| {
                (*sum, *size) = (*sum + x, *size + x.abs());
                Some((*sum, *size))
            };
            row.iter().scan((0.0, 0.0), add).collect()
        },
        operand: |x| x,
    },
    Reduction {
        name: "cumulative product",
        ours: |x| x.cumprod(1),
        exact: |row| {
            let multiply = |product: &mut f64, (place, x): (usize, &f64)| {
                *product *= x;
                Some((*product, (place + 1) as f64 * product.abs()))
            };
            row.iter().enumerate().scan(1.0, multiply).collect()
        },
        operand: |x| if x < 0.0 { 1.0 / (1.0 - x / 64.0) } else { 1.0 + x / 64.0 },
    },
    Reduction {
        name: "matrix product",
        ours: |x| {
            let weights = TensorData::from(weights(x.dims()[1]).as_slice());
            let weights = Tensor::<1>::from_data(weights, &x.device()).cast(x.dtype()).unsqueeze_dim::<2>(1);
            x.matmul(weights.repeat_dim(1, 3)).slice_dim(1, 1..2)
        },
        exact: |row| {
            let terms: Vec<f64> = row.iter().zip(weights(row.len())).map(|(x, weight)| x * f64::from(weight)).collect();
            vec![(terms.iter().sum(), size(&terms))]
        },
        operand: |x| x,
    },
];

/// A pairwise sum of `count` terms rounds each of them as often as the tree is high, and half an ULP each time.
fn bound(count: usize) -> f64 {
    1.0 + (count as f64).log2() / 2.0
}

/// The same rows, where they were uploaded, as columns, in the middle of something larger, and every other one.
fn layouts(rows: &[f32], shape: [usize; 2], device: &Device) -> Vec<(&'static str, Tensor<2>)> {
    let rows = Tensor::<2>::from_data(TensorData::new(rows.to_vec(), shape), device);
    let uploaded = |tensor: Tensor<2>| Tensor::<2>::from_data(tensor.into_data(), device);
    let margin = |tensor: &Tensor<2>, dim| uploaded(Tensor::cat(vec![tensor.clone() + 1.0, tensor.clone()], dim));
    vec![
        ("uploaded", rows.clone()),
        ("transposed", uploaded(rows.clone().transpose()).transpose()),
        ("sliced", margin(&rows, 0).slice_dim(0, shape[0]..2 * shape[0])),
        ("sliced columns", margin(&rows, 1).slice_dim(1, shape[1]..2 * shape[1])),
    ]
}

#[test]
fn rows_of_every_length() {
    let device = crate::deterministic_device();
    let mut measured = Measured::new(table::REDUCTIONS);
    for &Reduction { name, ours, exact, operand } in REDUCTIONS {
        for &shape in SHAPES {
            let values = floats(shape).try_into_vec::<f32>().expect("f32").into_iter().map(operand).collect::<Vec<_>>();
            let exact: Vec<(f64, f64)> = values
                .chunks(shape[1])
                .flat_map(|row| exact(&row.iter().copied().map(f64::from).collect::<Vec<_>>()))
                .collect();
            let mut first: Option<Vec<f32>> = None;
            for (layout, operand) in layouts(&values, shape, &device) {
                let results = ours(operand).into_data().try_into_vec::<f32>().expect("f32");
                assert_eq!(results.len(), exact.len(), "{name} of {shape:?}, {layout}");
                for (place, (&got, &(wanted, terms))) in results.iter().zip(&exact).enumerate() {
                    let place = || format!("{layout} {shape:?}, result {place}: {got} for {wanted}");
                    measured.note(name, bound(shape[1]), super::error(got, wanted, terms), place);
                }
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                let first = first.get_or_insert_with(|| results.clone());
                assert!(bits(first) == bits(&results), "{name} of {shape:?} has other bits where it lies {layout}");
            }
        }
        // A row that lies there once, and counts as often as it is repeated.
        let row = Tensor::<2>::from_data(floats([1, 65]), &device);
        let (once, expanded) = (ours(row.clone().repeat_dim(0, 9)), ours(row.expand([9, 65])));
        crate::bits::assert_same(name, &once.into_data(), &expanded.into_data());
    }
    measured.conclude();
}

#[test]
fn reductions_of_nothing() {
    let device = crate::deterministic_device();
    let empty = || Tensor::<2>::zeros([3, 0], &device);
    let values = |tensor: Tensor<2>| tensor.into_data().try_into_vec::<f32>().expect("f32");
    assert_eq!(values(empty().sum_dim(1)), [0.0; 3]);
    assert_eq!(values(empty().prod_dim(1)), [1.0; 3]);
    assert!(values(empty().mean_dim(1)).iter().all(|mean| mean.is_nan()));
    assert_eq!(values(empty().matmul(Tensor::zeros([0, 2], &device))), [0.0; 6]);
    assert!(values(empty().cumsum(1)).is_empty());
}

#[test]
fn entries_are_about_reductions() {
    let known = |entry: &Entry| REDUCTIONS.iter().any(|reduction| reduction.name == entry.operation);
    assert!(table::REDUCTIONS.iter().all(known));
}
