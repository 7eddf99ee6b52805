//! How the cost of our operations grows with the number of elements: `cargo xtask bench growth`.

use crate::device::default_device;
use crate::measure::{elapsed, medians};
use crate::operations::{floats, indices};
use burn_backend::ops::{ActivationOps, ConvOptions, FloatTensorOps, ModuleOps};
use burn_backend::tensor::IndexingUpdateOp::Add;
use burn_backend::{Backend, Distribution, FloatDType::F32, Shape};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_deterministic::{Deterministic, set_random_seed};
use std::time::Duration;

type Here = Deterministic<CubeBackend>;
type Run = Box<dyn Fn() -> CubeTensor>;

/// log2 of the numbers of elements.
const SIZES: [u32; 5] = [16, 18, 20, 22, 24];

/// Above this exponent, from the second size to the last, growth counts as worse than its order: the first one is mostly
/// what a launch costs.
const TOLERANCE: f64 = 1.15;

/// What the cost is to grow with.
#[derive(Clone, Copy)]
enum Order {
    Linear,
    /// n log n
    Sorting,
}

impl Order {
    fn of(self, elements: f64) -> f64 {
        match self {
            Self::Linear => elements,
            Self::Sorting => elements * elements.log2(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Linear => "n",
            Self::Sorting => "n log n",
        }
    }
}

/// Prepares work on n elements.
type Prepare = fn(usize) -> Run;

/// Work by its name, how its cost grows, and the work.
const WORKS: [(&str, Order, Prepare); 17] = [
    ("addition", Order::Linear, |n| {
        let x = floats([n]);
        Box::new(move || Here::float_add(x.clone(), x.clone()))
    }),
    ("sum", Order::Linear, |n| {
        let x = floats([n]);
        Box::new(move || Here::float_sum(x.clone()))
    }),
    ("sum of columns, 1024 wide", Order::Linear, |n| {
        let x = floats([n / 1024, 1024]);
        Box::new(move || Here::float_sum_dim(x.clone(), 0))
    }),
    ("maximum of rows of 1024", Order::Linear, |n| {
        let x = floats([n / 1024, 1024]);
        Box::new(move || Here::float_max_dim(x.clone(), 1))
    }),
    ("cumulative sum", Order::Linear, |n| {
        let x = floats([n]);
        Box::new(move || Here::float_cumsum(x.clone(), 0))
    }),
    ("softmax of rows of 1024", Order::Linear, |n| {
        let x = floats([n / 1024, 1024]);
        Box::new(move || Here::softmax(x.clone(), 1))
    }),
    ("sort", Order::Sorting, |n| {
        let x = floats([n]);
        Box::new(move || Here::float_sort(x.clone(), 0, false))
    }),
    ("sort of rows of 256", Order::Linear, |n| {
        let x = floats([n / 256, 256]);
        Box::new(move || Here::float_sort(x.clone(), 1, false))
    }),
    ("10 largest", Order::Linear, |n| {
        let x = floats([n]);
        Box::new(move || Here::float_topk(x.clone(), 0, 10))
    }),
    ("scatter-add into 64 rows", Order::Linear, |n| scatter(n, 64)),
    ("scatter-add into n / 4 rows", Order::Linear, |n| scatter(n, n / 4)),
    ("gather", Order::Linear, |n| {
        let (x, at) = (floats([n]), indices([n], n));
        Box::new(move || Here::float_gather(0, x.clone(), at.clone()))
    }),
    ("matrix-vector product, 1024 columns", Order::Linear, |n| {
        let (matrix, vector) = (floats([n / 1024, 1024]), floats([1024, 1]));
        Box::new(move || Here::float_matmul(matrix.clone(), vector.clone()))
    }),
    ("matmul by 256 x 64", Order::Linear, |n| {
        let (left, right) = (floats([n / 256, 256]), floats([256, 64]));
        Box::new(move || Here::float_matmul(left.clone(), right.clone()))
    }),
    ("conv2d of 16 x 16 x 16, 3 x 3", Order::Linear, |n| {
        let (x, weight) = (floats([n / 4096, 16, 16, 16]), floats([16, 16, 3, 3]));
        let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        Box::new(move || Here::conv2d(x.clone(), weight.clone(), None, options()))
    }),
    ("conv2d weight gradient", Order::Linear, |n| {
        let (x, weight) = (floats([n / 4096, 16, 16, 16]), floats([16, 16, 3, 3]));
        let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        Box::new(move || Here::conv2d_weight_backward(x.clone(), weight.clone(), x.clone(), options()))
    }),
    ("normal random numbers", Order::Linear, |n| {
        let normal = Distribution::Normal(0.0, 1.0);
        Box::new(move || Here::float_random(Shape::new([n]), normal, &default_device(), F32))
    }),
];

fn scatter(n: usize, length: usize) -> Run {
    let (tensor, at, values) = (floats([length]), indices([n], length), floats([n]));
    Box::new(move || Here::float_scatter(0, tensor.clone(), at.clone(), values.clone(), Add))
}

/// Prints a row for each work: times, nanoseconds an element, exponents from size to size, and whether the cost grows as
/// it is to.
pub fn print(samples: usize) {
    set_random_seed(812);
    let device = default_device();
    let heads = SIZES.map(|size| format!("2^{size}")).join(" | ");
    println!("| work | {heads} | ns an element | exponents | grows with |");
    println!("|---|{}---|---|---|", "---|".repeat(SIZES.len()));
    for (name, order, prepare) in WORKS {
        eprintln!("{name}..");
        let works = SIZES.map(|size| prepare(1 << size));
        // The sizes take turns, so that what else the machine does meets all of them.
        let times: [Duration; SIZES.len()] = medians(samples, |size, runs| {
            elapsed(|| {
                (0..runs).for_each(|_| drop(works[size]()));
                Here::sync(&device).expect("the device has done its work");
            })
        });
        drop(works);
        Here::memory_cleanup(&device);
        let elements = SIZES.map(|size| f64::from(size).exp2());
        let an_element = [0, 1, 2, 3, 4].map(|at: usize| times[at].as_secs_f64() * 1e9 / elements[at]);
        // 1 where twice the work of this order takes twice the time.
        let exponent = |from: usize, to: usize| {
            let grown = (times[to].as_secs_f64() / times[from].as_secs_f64()).ln();
            grown / (order.of(elements[to]) / order.of(elements[from])).ln()
        };
        let exponents = [1, 2, 3, 4].map(|to: usize| exponent(to - 1, to));
        let verdict = if exponent(1, 4) <= TOLERANCE { "" } else { ", **exceeded**" };
        println!(
            "| {name} | {} | {} | {} | {}{verdict} |",
            times.map(|time| format!("{time:.1?}")).join(" | "),
            an_element.map(|time| format!("{time:.2}")).join(", "),
            exponents.map(|exponent| format!("{exponent:.2}")).join(", "),
            order.name(),
        );
    }
}
