//! Differentiable operations of Burn's tensor API, each with operands to run it on, and their exact results and
//! derivatives: what [`accuracy`](crate::accuracy) measures and [`injection`](crate::repeatability::injection) repeats.

mod elements;
mod layers;
mod losses;
mod places;
mod reductions;
mod sampling;
mod windows;

use crate::bits::floats;
use burn::prelude::*;
use burn::tensor::FloatDType;
use std::sync::{LazyLock, OnceLock};

/// An operation on vectors, which are its operands and its results in row-major order.
type Function = Box<dyn Fn(&[Tensor<1>]) -> Tensor<1> + Send + Sync>;

/// An operation, and operands that show what it does.
pub struct Operation {
    pub name: String,
    pub operands: Vec<TensorData>,
    function: Function,
    reference: Option<Function>,
    is_linear: bool,
    exact: OnceLock<Exact>,
}

/// The results in double precision, and how they depend on the operands.
pub struct Exact {
    pub results: Vec<f64>,
    /// For each operand, and each result, the derivatives with respect to the operand's elements.
    pub jacobians: Vec<Vec<Vec<f64>>>,
}

impl Operation {
    /// An operation on operands of these lengths with values from -2 to 2.
    fn new(
        name: impl Into<String>,
        lengths: &[usize],
        function: impl Fn(&[Tensor<1>]) -> Tensor<1> + Send + Sync + 'static,
    ) -> Self {
        let operands = lengths.iter().enumerate().map(|(number, &length)| operand(number, length)).collect();
        Self {
            name: name.into(),
            operands,
            function: Box::new(function),
            reference: None,
            is_linear: false,
            exact: OnceLock::new(),
        }
    }

    /// With what computes the same on Burn's CPU backend, which lacks the operation.
    fn reference(mut self, function: impl Fn(&[Tensor<1>]) -> Tensor<1> + Send + Sync + 'static) -> Self {
        self.reference = Some(Box::new(function));
        self
    }

    /// Linear in its one operand: its derivatives are its results for unit vectors, on a backend without its gradient.
    fn linear(mut self) -> Self {
        assert_eq!(self.operands.len(), 1, "{}", self.name);
        self.is_linear = true;
        self
    }

    pub fn run(&self, operands: &[Tensor<1>]) -> Tensor<1> {
        (self.function)(operands)
    }

    /// What is exact but for roundings of double precision; computed once.
    pub fn exact(&self) -> &Exact {
        self.exact.get_or_init(|| {
            let function = self.reference.as_ref().unwrap_or(&self.function);
            let operands: Vec<_> = self.operands.iter().map(|values| double(values.clone())).collect();
            let results = doubles(function(&operands));
            let jacobians = match self.is_linear {
                true => vec![columns(function, &operands[0], results.len())],
                false => rows(function, &operands, results.len()),
            };
            Exact { results, jacobians }
        })
    }
}

/// The derivatives of each of `count` results, by a gradient each that is one there and zero elsewhere.
fn rows(function: &Function, operands: &[Tensor<1>], count: usize) -> Vec<Vec<Vec<f64>>> {
    let mut jacobians = vec![Vec::with_capacity(count); operands.len()];
    for result in 0..count {
        let operands: Vec<_> =
            operands.iter().map(|values| Tensor::from_inner(values.clone()).detach().require_grad()).collect();
        let mut gradients = function(&operands).slice(result..result + 1).backward();
        for (operand, rows) in operands.iter().zip(&mut jacobians) {
            rows.push(doubles(operand.grad_remove(&mut gradients).expect("every operand takes part")));
        }
    }
    jacobians
}

/// The derivatives of a linear function, by its results for unit vectors.
fn columns(function: &Function, operand: &Tensor<1>, count: usize) -> Vec<Vec<f64>> {
    let length = operand.dims()[0];
    let mut rows = vec![vec![0.0; length]; count];
    for place in 0..length {
        let unit = Tensor::<1, Int>::arange(0..length as i64, &operand.device()).equal_elem(place as i64);
        let unit = unit.float().cast(FloatDType::F64);
        for (row, value) in rows.iter_mut().zip(doubles(function(&[unit]))) {
            row[place] = value;
        }
    }
    rows
}

impl Exact {
    /// The most terms that an element of a gradient is a sum of: of three or more, the order can matter.
    pub fn most_terms(&self, operand: usize) -> usize {
        let count = |terms: Vec<f64>| {
            let largest = terms.iter().fold(0.0, |largest: f64, term| largest.max(term.abs()));
            // Smaller ones are lost in any order.
            terms.iter().filter(|term| term.abs() > largest * 2f64.powi(-16)).count()
        };
        let upstream = vec![1.0; self.results.len()];
        self.terms(operand, &upstream).into_iter().map(count).max().unwrap_or(0)
    }

    /// The terms of the gradient of each element of an operand under a gradient of the results, in the results' order.
    pub fn terms(&self, operand: usize, upstream: &[f64]) -> Vec<Vec<f64>> {
        let rows = &self.jacobians[operand];
        let length = rows.first().map_or(0, Vec::len);
        let terms = |place: usize| rows.iter().zip(upstream).map(move |(row, upstream)| row[place] * upstream);
        (0..length).map(|place| terms(place).filter(|&term| term != 0.0).collect()).collect()
    }
}

/// Values from -2 to 2 unlike those of the other operands.
pub fn operand(number: usize, length: usize) -> TensorData {
    let values = floats([length + 1000 * number]).try_to_vec::<f32>().expect("f32");
    TensorData::new(values[1000 * number..].to_vec(), [length])
}

/// The same values in double precision on Burn's CPU backend.
pub fn double(values: TensorData) -> Tensor<1> {
    Tensor::<1>::from_data(values, &Device::flex()).cast(FloatDType::F64)
}

pub fn doubles<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().convert::<f64>().try_into_vec().expect("f64")
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let elements = tensor.shape().num_elements();
    tensor.reshape([elements])
}

/// Indices below `bound` with duplicates, on the device of `tensor`.
fn at<const D: usize>(shape: [usize; D], bound: usize, tensor: &Tensor<1>) -> Tensor<D, Int> {
    Tensor::from_data(crate::bits::indices(shape, bound), &tensor.device())
}

macro_rules! groups {
    ($($name:ident: $($function:path),+;)*) => {
        $(pub static $name: LazyLock<Vec<Operation>> = LazyLock::new(|| [$($function()),+].into_iter().flatten().collect());)*
    };
}

groups! {
    CONVOLUTIONS: layers::convolutions, layers::transposed_convolutions;
    DEFORMABLE: layers::deformable_convolutions;
    POOLS: windows::average_pools, windows::maximum_pools, windows::windows;
    RESIZING: sampling::interpolations;
    SAMPLING: sampling::grid_samples;
    LAYERS: layers::normalisations, layers::attentions, layers::products;
    REDUCTIONS: reductions::reductions, reductions::scans, reductions::softmaxes;
    PLACES: places::lookups, places::updates, places::moves, places::ordered;
    ELEMENTS: elements::broadcast, elements::activations;
    LOSSES: losses::losses;
}

/// Hands the groups to a macro, each with the name of its test.
macro_rules! for_each_group {
    ($then:ident) => {
        $then! {
            convolutions: CONVOLUTIONS;
            deformable_convolutions: DEFORMABLE;
            pools: POOLS;
            resizing: RESIZING;
            sampling: SAMPLING;
            layers: LAYERS;
            reductions: REDUCTIONS;
            places: PLACES;
            elements: ELEMENTS;
            losses: LOSSES;
        }
    };
}

pub(crate) use for_each_group;
