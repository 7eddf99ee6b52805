//! f16 and bf16, where the device has them: functions of every number up to 8, and reductions, which accumulate in f32 and round
//! once. An ULP is the half type's.

use super::Measured;
use super::functions::{ALL, Function, terms};
use super::reductions::{REDUCTIONS, Reduction};
use super::table::{BF16, Entry, F16};
use crate::bits::floats;
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::{DType, FloatDType};

/// A reduction is one of the two nearest numbers.
const REDUCTION: f64 = 1.0;

/// A function may be rounded a few times.
const FUNCTION: f64 = 2.0;

/// The largest operand, so that what a formula computes on the way to its result does not overflow.
const LARGEST: f32 = 8.0;

/// Rows and their length.
const SHAPES: &[[usize; 2]] = &[[3, 1], [3, 31], [2, 64], [2, 65], [2, 1021], [1, 1025], [1, 4097]];

struct Half {
    dtype: DType,
    float: FloatDType,
    /// Bits of the mantissa.
    digits: i32,
    /// The exponent of the smallest normal number.
    smallest: i32,
    /// Bits of an f32 that this type does not have.
    unused: u32,
    table: &'static [Entry],
}

const HALVES: [Half; 2] = [
    Half { dtype: DType::F16, float: FloatDType::F16, digits: 10, smallest: -14, unused: 13, table: F16 },
    Half { dtype: DType::BF16, float: FloatDType::BF16, digits: 7, smallest: -126, unused: 16, table: BF16 },
];

impl Half {
    /// The error of `got` for a result that is exactly `exact` and made of `terms` in all.
    fn error(&self, got: f32, exact: f64, terms: f64) -> f64 {
        let size = terms.max(exact.abs()).max(2f64.powi(self.smallest));
        let error = (f64::from(got) - exact).abs() / 2f64.powi(size.log2().floor() as i32 - self.digits);
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// Whether drivers may take a result for zero, or it is nearly too large for the type.
    fn is_extreme(&self, exact: f64) -> bool {
        exact != 0.0 && !(2f64.powi(self.smallest + 4)..2f64.powi(15)).contains(&exact.abs())
    }

    /// Every number of the type whose absolute value is normal and at most [`LARGEST`].
    fn numbers(&self) -> impl Iterator<Item = f32> {
        let [first, last] = [2f32.powi(self.smallest), LARGEST].map(|number| number.to_bits() >> self.unused);
        let unused = self.unused;
        (first..=last).map(move |bits| f32::from_bits(bits << unused)).flat_map(|number| [number, -number])
    }

    fn upload<const D: usize>(&self, values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
        Tensor::<D>::from_data(TensorData::new(values.to_vec(), shape), device).cast(self.float)
    }

    fn download<const D: usize>(&self, tensor: Tensor<D>) -> Vec<f32> {
        assert_eq!(tensor.dtype(), self.dtype);
        tensor.into_data().convert::<f32>().try_into_vec().expect("converted to f32")
    }

    fn measure_functions(&self, measured: &mut Measured, device: &Device) {
        for &Function { name, ours, exact, domain, within } in ALL {
            let values: Vec<f32> = self.numbers().filter(|&x| domain(x.into())).collect();
            let results = self.download(ours(self.upload(&values, [values.len()], device)));
            for (&x, got) in values.iter().zip(results) {
                let wanted = exact(x.into());
                if !self.is_extreme(wanted) {
                    let ulps = self.error(got, wanted, terms(exact, x.into()).max(within(x.into())));
                    measured.note(name, FUNCTION, ulps, || format!("of {x:e}: {got:e} for {wanted:e}"));
                }
            }
        }
    }

    fn measure_reductions(&self, measured: &mut Measured, device: &Device) {
        for (&Reduction { name, ours, exact, operand }, &shape) in
            REDUCTIONS.iter().flat_map(|reduction| SHAPES.iter().map(move |s| (reduction, s)))
        {
            let values: Vec<f32> = floats(shape).try_into_vec::<f32>().expect("f32").into_iter().map(operand).collect();
            let rows = self.upload(&values, shape, device);
            let values = self.download(rows.clone());
            let exact =
                values.chunks(shape[1]).flat_map(|row| exact(&row.iter().copied().map(f64::from).collect::<Vec<_>>()));
            for (place, (got, (wanted, terms))) in self.download(ours(rows)).into_iter().zip(exact).enumerate() {
                if !self.is_extreme(wanted) {
                    let place = || format!("{shape:?}, result {place}: {got} for {wanted}");
                    measured.note(name, REDUCTION, self.error(got, wanted, terms), place);
                }
            }
        }
    }
}

#[test]
fn functions_and_reductions() {
    let device = crate::deterministic_device();
    for half in HALVES {
        if !device.supports_dtype(half.dtype) {
            skip(format_args!("the device has no {:?}", half.dtype));
            continue;
        }
        let mut measured = Measured::new(half.table);
        half.measure_functions(&mut measured, &device);
        half.measure_reductions(&mut measured, &device);
        measured.conclude();
    }
}

#[test]
fn entries_are_about_functions_and_reductions() {
    let names: Vec<_> = ALL.iter().map(|f| f.name).chain(REDUCTIONS.iter().map(|reduction| reduction.name)).collect();
    assert!(F16.iter().chain(BF16).all(|entry| names.contains(&entry.operation)));
}
