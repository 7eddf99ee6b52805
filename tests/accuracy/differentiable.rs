//! The operations of [`operations`](crate::operations) and their gradients.

use super::Measured;
use super::table::OPERATIONS;
use crate::operations::{self, Operation, doubles};
use burn::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A gradient of the results without a pattern, of mixed magnitudes: a sum of a few depends on its order.
pub fn upstream(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-2.0f32..2.0) * 2f32.powi(-rng.random_range(0..8))).collect()
}

/// Sixteen roundings of what a result is made of.
const BOUND: f64 = 8.0;

/// Elements with fewer bits than this below the largest of their tensor count as if they had them: layers mix their
/// elements, and what cancels in one of them is not looked at alone.
const CANCELLED: f64 = 1.0 / 16.0;

/// The largest of what the elements are made of, as far as it counts for all of them.
fn floor(terms: &[f64]) -> f64 {
    CANCELLED * terms.iter().copied().fold(0.0, f64::max)
}

/// The sizes of the terms that a result is made of, in all.
fn terms_of_result(operation: &Operation, place: usize) -> f64 {
    let terms = operation.exact().jacobians.iter().zip(&operation.operands).map(|(rows, operand)| {
        let values = operand.clone().try_into_vec::<f32>().expect("f32");
        rows[place].iter().zip(values).map(|(slope, value)| (slope * f64::from(value)).abs()).sum::<f64>()
    });
    terms.sum()
}

fn measure(group: &[Operation]) {
    let device = crate::deterministic_device().autodiff();
    let mut measured = Measured::new(OPERATIONS);
    for operation in group {
        let exact = operation.exact();
        for seed in 1..=2 {
            let load = |values: &TensorData| Tensor::<1>::from_data(values.clone(), &device).require_grad();
            let operands: Vec<_> = operation.operands.iter().map(load).collect();
            let results = operation.run(&operands);
            let upstream = upstream(seed, exact.results.len());
            let weights = Tensor::<1>::from_data(TensorData::new(upstream.clone(), [upstream.len()]), &device);
            let gradients = (results.clone() * weights).sum().backward();

            let results = results.into_data().try_into_vec::<f32>().expect("f32");
            assert_eq!(results.len(), exact.results.len(), "{}", operation.name);
            let terms: Vec<f64> = (0..results.len()).map(|place| terms_of_result(operation, place)).collect();
            for (place, (&got, &wanted)) in results.iter().zip(&exact.results).enumerate() {
                let ulps = super::error(got, wanted, terms[place].max(floor(&terms)));
                measured.note(&operation.name, BOUND, ulps, || format!("result {place}: {got} for {wanted}"));
            }

            let upstream: Vec<f64> = upstream.into_iter().map(f64::from).collect();
            let name = format!("gradient of {}", operation.name);
            for (number, operand) in operands.iter().enumerate() {
                let got = doubles(operand.grad(&gradients).expect("every operand takes part"));
                let terms = exact.terms(number, &upstream);
                assert_eq!(got.len(), terms.len(), "{name}");
                let sizes: Vec<f64> = terms.iter().map(|terms| terms.iter().map(|term| term.abs()).sum()).collect();
                for (place, (got, terms)) in got.into_iter().zip(terms).enumerate() {
                    let wanted = terms.iter().sum::<f64>();
                    let ulps = super::error(got as f32, wanted, sizes[place].max(floor(&sizes)));
                    let place = || format!("operand {number}, element {place}: {got} for {wanted}");
                    measured.note(&name, BOUND, ulps, place);
                }
            }
        }
    }
    measured.conclude();
}

macro_rules! measure {
    ($($test:ident: $group:ident;)*) => {
        $(#[test]
        fn $test() {
            measure(&operations::$group);
        })*

        /// An entry about an operation that there is not would never be asked for.
        #[test]
        fn entries_are_about_operations() {
            let groups = [$(&operations::$group),*];
            let names: Vec<_> = groups.iter().flat_map(|group| group.iter()).map(|operation| &operation.name).collect();
            for entry in OPERATIONS {
                let name = entry.operation.strip_prefix("gradient of ").unwrap_or(entry.operation);
                let known = names.iter().any(|known| known.as_str() == name || known.starts_with(&format!("{name}, ")));
                assert!(known, "there is no operation `{name}`");
            }
        }
    };
}

operations::for_each_group!(measure);
