//! Where two modules differ, to the bit.

use crate::error::{Error, index_of};
use crate::module::{self, Content, Entry};
use burn_backend::{DType, Shape, TensorData, bf16, f16};
use burn_core::module::Module;
use core::fmt;
use std::collections::VecDeque;

/// Compares every parameter and buffer of two modules, matched by path, bit for bit.
///
/// A NaN equals only one with the same payload and sign, and zeros differ in their sign. As in
/// [`digest`](crate::digest()), running states count with their last update, parameters that are not initialised stay
/// so (two of one kind and shape are equal), and ids and flags take no part. Both modules are copied to the host.
///
/// ```
/// # use burn::nn::LinearConfig;
/// # use burn::prelude::*;
/// # let device = Device::flex();
/// # let (first, second) = (LinearConfig::new(2, 3).init(&device), LinearConfig::new(2, 3).init(&device));
/// let comparison = burn_deterministic::compare(&first, &second)?;
/// assert!(comparison.is_equal(), "{comparison}");
/// # Ok::<(), burn_deterministic::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Unreadable`] when a tensor cannot be read, with its path and the error that its operations left on it.
pub fn compare<M: Module, N: Module>(first: &M, second: &N) -> Result<Comparison, Error> {
    let (mut entries, mut others) = (Vec::new(), VecDeque::new());
    module::read("the first module", first, |entry| entries.push(entry))?;
    module::read("the second module", second, |entry| others.push_back(entry))?;
    let mut comparison = Comparison { tensors: 0, elements: 0, differences: Vec::new() };
    for Entry { path, content } in entries {
        let other = others.iter().position(|other| other.path == path).and_then(|at| others.remove(at));
        comparison.add(path, Some(content), other.map(|other| other.content));
    }
    for Entry { path, content } in others {
        comparison.add(path, None, Some(content));
    }
    Ok(comparison)
}

/// What [`compare`] found. `Display` names the first [`SHOWN`](Self::SHOWN) differences, each on a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Parameters and buffers that at least one of the modules has.
    pub tensors: usize,
    /// Elements compared: those of tensors that have values, one dtype and one shape in both modules.
    pub elements: usize,
    /// Each tensor that differs: in the order in which the first module visits them, then those only the second one has.
    pub differences: Vec<TensorDifference>,
}

/// A parameter or buffer that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorDifference {
    /// The path, `encoder.0.weight`.
    pub path: String,
    /// What differs.
    pub difference: Difference,
}

/// In what two tensors differ.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// The second module has no parameter at this path.
    OnlyInFirst,
    /// The first module has no parameter at this path.
    OnlyInSecond,
    /// Dtype or shape differ, or only one is initialised: of the first, and of the second.
    Form([Form; 2]),
    /// Elements differ.
    Elements(ElementDifference),
}

/// Dtype and shape of a parameter or buffer. `Display` prints `f32 [3, 2]`, or `uninitialised float [3, 2]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// It has values.
    Initialised {
        /// Their dtype.
        dtype: DType,
        /// Its shape.
        shape: Shape,
    },
    /// Its initialiser has not run.
    Uninitialised {
        /// `float`, `int` or `bool`.
        kind: &'static str,
        /// The shape it will have.
        shape: Shape,
    },
}

/// The elements in which two tensors of one dtype and shape differ.
///
/// A distance in ULP counts the steps from one representable number to the next, of which -0 to +0 is one. There is none
/// where either is a NaN, nor where elements are not floats. The values of a quantized tensor are packed, with its scales
/// after them: its elements here are bytes, its shape the number of bytes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ElementDifference {
    /// The dtype of both.
    pub dtype: DType,
    /// The shape of both.
    pub shape: Shape,
    /// The first position, in row-major order, where the bits differ.
    pub index: Vec<usize>,
    /// The values there, as Rust's `Debug` prints them.
    pub values: [String; 2],
    /// Their bits, `0x3f800000`.
    pub bits: [String; 2],
    /// Their distance in ULP.
    pub ulp: Option<u64>,
    /// How many elements differ.
    pub differing: usize,
    /// The largest distance in ULP among them.
    pub largest_ulp: Option<u64>,
    /// The largest absolute difference among them, in units of the elements, rounded to f64. `None` where all that differ are
    /// NaN in one tensor or in both, and for elements that are no numbers: booleans, and bytes of quantized tensors.
    pub largest: Option<f64>,
    /// How many elements of the tensors are 0, 1, 2 to 3, 4 to 7, ... ULP apart; empty where elements are not floats. Those
    /// that differ and are NaN in one tensor or in both are not among them.
    pub histogram: Vec<usize>,
    /// How many of those that differ are NaN in one tensor or in both.
    pub nan: usize,
}

impl Comparison {
    /// The number of differences that `Display` names.
    pub const SHOWN: usize = 8;

    /// Whether the modules have the same paths, dtypes, shapes and bits.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }

    /// The first difference, in the order in which the first module visits its tensors.
    pub fn first(&self) -> Option<&TensorDifference> {
        self.differences.first()
    }

    fn add(&mut self, path: String, first: Option<Content>, second: Option<Content>) {
        self.tensors += 1;
        let difference = match (first, second) {
            (Some(_), None) => Some(Difference::OnlyInFirst),
            (None, _) => Some(Difference::OnlyInSecond),
            (Some(first), Some(second)) => {
                let forms = [&first, &second].map(Form::of);
                match (first, second) {
                    _ if forms[0] != forms[1] => Some(Difference::Form(forms)),
                    (Content::Values(first), Content::Values(second)) => {
                        self.elements += first.num_elements();
                        Difference::between(&first, &second)
                    }
                    (Content::Uninitialised { .. }, _) | (_, Content::Uninitialised { .. }) => None,
                }
            }
        };
        self.differences.extend(difference.map(|difference| TensorDifference { path, difference }));
    }
}

impl Difference {
    /// Compares two tensors: dtype, shape and every bit.
    pub fn between(first: &TensorData, second: &TensorData) -> Option<Self> {
        let forms = [first, second].map(Form::of_data);
        if forms[0] != forms[1] {
            return Some(Self::Form(forms));
        }
        ElementDifference::between(first, second).map(Self::Elements)
    }
}

impl Form {
    fn of_data(data: &TensorData) -> Self {
        Self::Initialised { dtype: data.dtype(), shape: data.shape().clone() }
    }

    fn of(content: &Content) -> Self {
        match content {
            Content::Values(data) => Self::of_data(data),
            Content::Uninitialised { kind, shape } => Self::Uninitialised { kind, shape: shape.clone() },
        }
    }
}

impl ElementDifference {
    /// Compares two tensors of one dtype and shape.
    fn between(first: &TensorData, second: &TensorData) -> Option<Self> {
        let (first_bytes, second_bytes) = (first.as_bytes(), second.as_bytes());
        if first_bytes == second_bytes {
            return None;
        }
        let dtype = first.dtype();
        let (shape, size) = match dtype {
            DType::QFloat(_) => ([first_bytes.len()].into(), 1),
            dtype => (first.shape().clone(), dtype.size()),
        };
        let bits = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let pairs = first_bytes.chunks(size).zip(second_bytes.chunks(size));
        let pairs = pairs.map(|(first, second)| [bits(first), bits(second)]);
        let mut differing = pairs.enumerate().filter(|(_, [first, second])| first != second).peekable();
        let (position, pair) = *differing.peek()?;
        let mut found = Self {
            dtype,
            index: index_of(position, &shape),
            shape,
            values: pair.map(|bits| value(dtype, bits)),
            bits: pair.map(|bits| format!("{bits:#0width$x}", width = 2 + 2 * size)),
            ulp: distance(dtype, pair),
            differing: 0,
            largest_ulp: None,
            largest: None,
            histogram: Vec::new(),
            nan: 0,
        };
        for (_, pair) in differing {
            found.differing += 1;
            found.nan += usize::from(pair.iter().any(|bits| is_nan(dtype, *bits)));
            if let Some(difference) = absolute(dtype, pair) {
                found.largest = Some(found.largest.map_or(difference, |largest| largest.max(difference)));
            }
            if let Some(distance) = distance(dtype, pair) {
                found.largest_ulp = found.largest_ulp.max(Some(distance));
                found.count(distance);
            }
        }
        if infinity(dtype).is_some() {
            let equal = found.shape.num_elements() - found.differing;
            found.histogram.resize(found.histogram.len().max(1), 0);
            found.histogram[0] = equal;
        }
        Some(found)
    }

    /// Counts two elements at a distance of 1 ULP or more.
    fn count(&mut self, distance: u64) {
        let bin = 1 + distance.ilog2() as usize;
        self.histogram.resize(self.histogram.len().max(bin + 1), 0);
        self.histogram[bin] += 1;
    }
}

/// The bits of positive infinity of a float type: greater magnitudes are NaN.
fn infinity(dtype: DType) -> Option<u64> {
    match dtype {
        DType::F16 => Some(f16::INFINITY.to_bits().into()),
        DType::BF16 => Some(bf16::INFINITY.to_bits().into()),
        DType::F32 | DType::Flex32 => Some(f32::INFINITY.to_bits().into()),
        DType::F64 => Some(f64::INFINITY.to_bits()),
        _ => None,
    }
}

/// The bits without the sign, and whether it is set.
fn magnitude(dtype: DType, bits: u64) -> (u64, bool) {
    let sign = 1 << (8 * dtype.size() - 1);
    (bits & !sign, bits & sign != 0)
}

fn is_nan(dtype: DType, bits: u64) -> bool {
    infinity(dtype).is_some_and(|infinity| magnitude(dtype, bits).0 > infinity)
}

/// The distance of two numbers in ULP.
fn distance(dtype: DType, pair: [u64; 2]) -> Option<u64> {
    infinity(dtype)?;
    if pair.iter().any(|bits| is_nan(dtype, *bits)) {
        return None;
    }
    // The bits of neighbours of one sign differ by 1, whether or not their exponents do.
    let [(first, first_sign), (second, second_sign)] = pair.map(|bits| magnitude(dtype, bits));
    Some(if first_sign == second_sign { first.abs_diff(second) } else { first + second + 1 })
}

/// The absolute difference of two numbers; `None` where one is NaN, and for elements that are no numbers.
fn absolute(dtype: DType, pair: [u64; 2]) -> Option<f64> {
    let floats = |[first, second]: [f64; 2]| Some((first - second).abs()).filter(|difference| !difference.is_nan());
    let integers = |[first, second]: [i128; 2]| Some(first.abs_diff(second) as f64);
    match dtype {
        DType::F64 => floats(pair.map(f64::from_bits)),
        DType::F32 | DType::Flex32 => floats(pair.map(|bits| f32::from_bits(bits as u32).into())),
        DType::F16 => floats(pair.map(|bits| f16::from_bits(bits as u16).into())),
        DType::BF16 => floats(pair.map(|bits| bf16::from_bits(bits as u16).into())),
        DType::I64 => integers(pair.map(|bits| (bits as i64).into())),
        DType::I32 => integers(pair.map(|bits| (bits as i32).into())),
        DType::I16 => integers(pair.map(|bits| (bits as i16).into())),
        DType::I8 => integers(pair.map(|bits| (bits as i8).into())),
        DType::U64 | DType::U32 | DType::U16 | DType::U8 => integers(pair.map(i128::from)),
        DType::Bool(_) | DType::QFloat(_) => None,
    }
}

/// An element as text.
fn value(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::F64 => format!("{:?}", f64::from_bits(bits)),
        DType::F32 | DType::Flex32 => format!("{:?}", f32::from_bits(bits as u32)),
        DType::F16 => format!("{:?}", f16::from_bits(bits as u16)),
        DType::BF16 => format!("{:?}", bf16::from_bits(bits as u16)),
        DType::I64 => (bits as i64).to_string(),
        DType::I32 => (bits as i32).to_string(),
        DType::I16 => (bits as i16).to_string(),
        DType::I8 => (bits as i8).to_string(),
        DType::Bool(_) => (bits != 0).to_string(),
        DType::U64 | DType::U32 | DType::U16 | DType::U8 | DType::QFloat(_) => bits.to_string(),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tensors, elements, differences } = self;
        if self.is_equal() {
            return write!(f, "all {tensors} tensors have the same bits ({elements} elements)");
        }
        write!(f, "{} of {tensors} tensors differ", differences.len())?;
        for difference in differences.iter().take(Self::SHOWN) {
            write!(f, "\n{difference}")?;
        }
        match differences.len().saturating_sub(Self::SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl fmt::Display for TensorDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path, self.difference)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyInFirst => write!(f, "only in the first"),
            Self::OnlyInSecond => write!(f, "only in the second"),
            Self::Form([first, second]) => write!(f, "{first} in the first, {second} in the second"),
            Self::Elements(elements) => elements.fmt(f),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initialised { dtype, shape } => write!(f, "{} {:?}", dtype.name(), &shape[..]),
            Self::Uninitialised { kind, shape } => write!(f, "uninitialised {kind} {:?}", &shape[..]),
        }
    }
}

impl fmt::Display for ElementDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dtype, shape, index, values: [first, second], bits: [first_bits, second_bits], .. } = self;
        let elements = if matches!(dtype, DType::QFloat(_)) { "bytes" } else { "elements" };
        let (differing, all) = (self.differing, shape.num_elements());
        write!(f, "{differing} of {all} {elements} of {} {:?} differ", dtype.name(), &shape[..])?;
        if let Some(largest) = self.largest_ulp {
            write!(f, ", by at most {largest} ULP")?;
        }
        if self.nan > 0 {
            write!(f, ", {} of them NaN in one or both", self.nan)?;
        }
        write!(f, "; the first at {index:?}: {first} ({first_bits}) and {second} ({second_bits})")?;
        match self.ulp {
            Some(ulp) => write!(f, ", {ulp} ULP apart"),
            None => Ok(()),
        }
    }
}
