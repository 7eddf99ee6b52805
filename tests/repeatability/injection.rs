//! Gradients under random gradients of the results: first that another order of summation gives other bits, then that
//! every run gives the same ones, whatever else the machine does.

use crate::accuracy::differentiable::upstream;
use crate::bits::assert_same;
use crate::operations::{self, Operation};
use crate::repeatability::stress::{Stress, beside_others};
use burn::prelude::*;
use burn::tensor::Transaction;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const REPEATS: usize = if cfg!(feature = "heavy") { 1000 } else { 50 };

/// As many gradients of the results, each with its share of the repeats.
const SEEDS: u64 = 2;

/// Whether the terms of some element of a gradient, added one after another, have a sum that depends on their order.
fn order_matters(operation: &Operation, upstream: &[f64], seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let gradients = (0..operation.operands.len()).flat_map(|operand| operation.exact().terms(operand, upstream));
    let sum = |terms: &[f32]| terms.iter().fold(0.0, |sum, term| sum + term);
    let depends = |terms: Vec<f64>| {
        let mut terms: Vec<f32> = terms.into_iter().map(|term| term as f32).collect();
        let first = sum(&terms);
        (0..5).any(|_| {
            terms.shuffle(&mut rng);
            sum(&terms).to_bits() != first.to_bits()
        })
    };
    gradients.into_iter().any(depends)
}

/// Registers the results, and the gradient of each operand.
fn gradients(
    operation: &Operation,
    upstream: &TensorData,
    device: &Device,
    stress: &mut Option<Stress>,
    reads: Transaction,
) -> Transaction {
    let mut strike = |tensor: &Tensor<1>| {
        if let Some(stress) = stress {
            stress.strike(&tensor.clone().inner());
        }
    };
    let load = |values: &TensorData| Tensor::<1>::from_data(values.clone(), device).require_grad();
    let operands: Vec<_> = operation.operands.iter().map(load).collect();
    strike(&operands[0]);
    let results = operation.run(&operands);
    strike(&results);
    let weights = Tensor::<1>::from_data(upstream.clone(), device);
    let gradients = (results.clone() * weights).sum().backward();
    let gradients = operands.iter().map(|operand| operand.grad(&gradients).expect("every operand takes part"));
    gradients.fold(reads.register(results.inner()), |reads, gradient| {
        strike(&Tensor::from_inner(gradient.clone()));
        reads.register(gradient)
    })
}

/// An operation's name without its options, of an interpolation with its mode.
fn variety(name: &str) -> &str {
    let end = if name.starts_with("interpolate") { name.find(", to") } else { name.find(", ") };
    &name[..end.unwrap_or(name.len())]
}

fn repeat(group: &[Operation]) {
    let device = crate::deterministic_device();
    let autodiff = device.clone().autodiff();
    let sums = |operation: &&Operation| {
        let exact = operation.exact();
        (0..operation.operands.len()).any(|operand| exact.most_terms(operand) > 2)
    };
    // Of the variants of an operation, the default suite repeats the first that sums.
    let mut repeated = HashSet::new();
    let mut operations: Vec<&Operation> = Vec::new();
    for operation in group.iter().filter(sums) {
        if repeated.insert(variety(&operation.name)) || cfg!(feature = "heavy") {
            operations.push(operation);
        }
    }
    assert!(!operations.is_empty(), "no operation of the group sums anything");
    for seed in 1..=SEEDS {
        let upstreams = operations.iter().map(|operation| upstream(seed, operation.exact().results.len()));
        let upstreams: Vec<_> = upstreams.collect();
        for (operation, upstream) in operations.iter().zip(&upstreams) {
            let upstream: Vec<f64> = upstream.iter().copied().map(f64::from).collect();
            assert!(order_matters(operation, &upstream, seed), "{}: any order would do", operation.name);
        }
        let upstreams: Vec<_> = upstreams.into_iter().map(|values| TensorData::from(&values[..])).collect();
        let run = |stress: &mut Option<Stress>| {
            let each = operations.iter().zip(&upstreams);
            let read = |reads, (operation, upstream): (&&Operation, &TensorData)| {
                gradients(operation, upstream, &autodiff, stress, reads)
            };
            each.fold(Transaction::default(), read).execute()
        };
        let names = operations.iter().flat_map(|operation| {
            (0..=operation.operands.len()).map(|tensor| format!("{}, tensor {tensor}", operation.name))
        });
        let names: Vec<_> = names.collect();
        let first = run(&mut None);
        assert_eq!(first.len(), names.len());
        beside_others(&device, || {
            let mut stress = Some(Stress::new(seed, &device));
            for repeat in 1..REPEATS.div_ceil(SEEDS as usize) {
                for ((first, again), name) in first.iter().zip(&run(&mut stress)).zip(&names) {
                    assert_same(&format!("{name}, seed {seed}, repeat {repeat}"), first, again);
                }
            }
        });
    }
}

macro_rules! repeat {
    ($($test:ident: $group:ident;)*) => {
        $(#[test]
        fn $test() {
            repeat(&operations::$group);
        })*
    };
}

operations::for_each_group!(repeat);
