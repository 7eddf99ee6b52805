//! How far results are from exact ones, in f32, against double precision.
//!
//! An error is counted in units in the last place (ULP) of what the result is made of: the larger of the result and the
//! sum of its absolute terms. For a sum the terms are the summands. For any other result `y(x)` they are
//! `|x * dy/dx|` for each element `x` of the operands, which is what an error of `x` in its last place would make of
//! the result; for a gradient, the absolute values of the products that it adds up. So an operation is not blamed for
//! digits that cancel, nor excused by them.
//!
//! Every operation meets the bound of its kind, or has an entry in [`table`]. An entry that is no longer needed, or
//! allows twice what is measured, fails.

mod arithmetic;
pub mod differentiable;
mod functions;
mod grids;
mod halves;
mod reductions;
mod specials;
mod table;

use crate::driver;
use std::collections::BTreeMap;
use table::Entry;

/// The drivers that the table has columns for; another one has to meet the larger bound.
#[derive(Clone, Copy, PartialEq)]
enum Driver {
    Lavapipe,
    SwiftShader,
    Other,
}

impl Driver {
    fn of_this_machine() -> Self {
        let name = driver::name();
        match (name.contains("llvmpipe Mesa 22.3.6"), name.contains("SwiftShader")) {
            (true, _) => Self::Lavapipe,
            (_, true) => Self::SwiftShader,
            _ => Self::Other,
        }
    }
}

/// The distance of two f32 values whose size is `value`'s.
fn ulp(value: f64) -> f64 {
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2f64.powi(exponent.max(-126) - 23)
}

/// The error of `got` for a result that is exactly `exact` and made of `terms` in all.
fn error(got: f32, exact: f64, terms: f64) -> f64 {
    let nearest = exact as f32;
    match nearest.is_finite() && got.is_finite() {
        true => (f64::from(got) - exact).abs() / ulp(terms.max(exact.abs())),
        false if got == nearest || (got.is_nan() && nearest.is_nan()) => 0.0,
        false => f64::INFINITY,
    }
}

/// The largest errors, by operation.
struct Measured {
    table: &'static [Entry],
    worst: BTreeMap<String, Worst>,
}

/// The largest error of an operation, in units of its bound.
struct Worst {
    ulps: f64,
    bound: f64,
    place: String,
}

impl Measured {
    fn new(table: &'static [Entry]) -> Self {
        Self { table, worst: BTreeMap::new() }
    }

    /// Notes an error of `operation`, which may be `bound` where the table has no entry.
    fn note(&mut self, operation: &str, bound: f64, ulps: f64, place: impl FnOnce() -> String) {
        let worst = self.worst.get(operation);
        if worst.is_none_or(|worst| ulps / bound > worst.ulps / worst.bound) {
            self.worst.insert(operation.to_owned(), Worst { ulps, bound, place: place() });
        }
    }

    /// Requires the bounds, and that each entry for an operation that was measured is needed.
    fn conclude(self) {
        let driver = Driver::of_this_machine();
        let mut complaints = Vec::new();
        let mut needs = vec![(0.0f64, 1.0); self.table.len()];
        for (operation, Worst { ulps, bound, place }) in &self.worst {
            println!("{operation}: {ulps:.2} ULP of {bound:.2}, {place}");
            let entry = self.table.iter().position(|entry| entry.covers(operation));
            let allowed = entry.and_then(|entry| self.table[entry].allowed(driver)).unwrap_or(*bound);
            if ulps.is_nan() || *ulps > allowed {
                let why = entry.map_or("", |entry| self.table[entry].why);
                complaints
                    .push(format!("{operation} has an error of {ulps:.2} ULP, not {allowed:.2} ({why}): {place}"));
            }
            if let Some(entry) = entry
                && *ulps >= needs[entry].0
            {
                needs[entry] = (*ulps, *bound);
            }
        }
        for (entry, (measured, bound)) in self.table.iter().zip(needs) {
            let known = driver != Driver::Other && self.worst.keys().any(|operation| entry.covers(operation));
            if let Some(allowed) = entry.allowed(driver).filter(|_| known) {
                let name = entry.operation;
                match measured <= bound {
                    true => complaints.push(format!("{name} meets {bound:.2} ULP ({measured:.2}): remove its entry")),
                    false if measured < allowed / 2.0 => {
                        complaints.push(format!("{name} has {measured:.2} ULP: tighten its entry of {allowed:.2}"))
                    }
                    false => {}
                }
            }
        }
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }
}

#[test]
fn a_table_is_as_tight_as_it_can_be() {
    let entry = |operation, ulps| Entry::new(operation, [Some(ulps); 2], "it is allowed to be");
    let (needed, loose, needless) = (entry("a", 4.0), entry("b", 10.0), entry("c", 2.0));
    let table: &'static [Entry] = vec![needed, loose, needless].leak();
    let conclude = |ulps: [f64; 4]| {
        let mut measured = Measured::new(table);
        for (operation, ulps) in ["a, of 3", "b", "c", "d"].iter().zip(ulps) {
            measured.note(operation, 1.0, ulps, String::new);
        }
        std::panic::catch_unwind(|| measured.conclude()).map_err(|text| *text.downcast::<String>().expect("a message"))
    };
    assert_eq!(conclude([3.0, 6.0, 1.5, 0.9]), Ok(()));
    let complaint = |ulps| conclude(ulps).expect_err("something is wrong");
    assert!(
        complaint([4.1, 6.0, 1.5, 0.9]).starts_with("a, of 3 has an error of 4.10 ULP, not 4.00 (it is allowed to be)")
    );
    assert!(complaint([3.0, 6.0, 1.5, 1.1]).starts_with("d has an error of 1.10 ULP, not 1.00"));
    assert!(complaint([3.0, 6.0, 1.5, f64::NAN]).starts_with("d has an error of NaN"));
    if Driver::of_this_machine() != Driver::Other {
        assert!(complaint([3.0, 4.9, 1.5, 0.9]).starts_with("b has 4.90 ULP: tighten"));
        assert!(complaint([3.0, 6.0, 0.9, 0.9]).starts_with("c meets 1.00 ULP (0.90): remove"));
    }
}

#[test]
fn errors_are_counted_in_last_places() {
    assert_eq!(error(1.0, 1.0, 1.0), 0.0);
    assert_eq!(error(1.0 + f32::EPSILON, 1.0, 0.0), 1.0);
    assert_eq!(error(1.0 + f32::EPSILON, 1.0, 4.0), 0.25);
    assert_eq!(error(2.0, 2.0 + f64::from(f32::EPSILON), 0.0), 0.5);
    assert_eq!(error(f32::INFINITY, f64::from(f32::MAX) * 2.0, 1.0), 0.0);
    assert_eq!(error(f32::MAX, f64::INFINITY, 1.0), f64::INFINITY);
    assert_eq!(error(f32::NAN, 1.0, 1.0), f64::INFINITY);
    assert_eq!(error(f32::from_bits(3), 0.0, 0.0), 3.0);
}
