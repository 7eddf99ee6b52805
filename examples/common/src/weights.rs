//! A module's weights as files, and where two such folders first differ.

use anyhow::{Context, Result, bail, ensure};
use burn::module::{Module, ModuleVisitor, Param};
use burn::prelude::*;
use burn::tensor::DType;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// The first bytes of NumPy's format, version 1.0.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// NumPy has an element begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// Writes every parameter and buffer of `module` to `folder`, which is emptied first: `conv1.weight.npy` and so on, as
/// `numpy.load` reads them.
///
/// # Errors
///
/// When a tensor cannot be read or a file not be written, and for dtypes other than f32, i32 and i64.
pub fn save_weights<M: Module>(module: &M, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut writer = Writer { folder, path: Vec::new(), outcome: Ok(()) };
    module.visit(&mut writer);
    writer.outcome
}

struct Writer<'a> {
    folder: &'a Path,
    path: Vec<String>,
    outcome: Result<()>,
}

impl Writer<'_> {
    fn tensor(&mut self, data: Result<TensorData, impl std::error::Error + Send + Sync + 'static>) {
        if self.outcome.is_ok() {
            let name = self.path.join(".");
            let path = self.folder.join(format!("{name}.npy"));
            self.outcome = data
                .map_err(anyhow::Error::from)
                .and_then(|data| fs::write(path, npy(&data)?).map_err(anyhow::Error::from))
                .with_context(|| format!("saving {name}"));
        }
    }
}

impl ModuleVisitor for Writer<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.tensor(param.val().try_into_data());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.tensor(param.val().try_into_data());
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

fn npy(data: &TensorData) -> Result<Vec<u8>> {
    let kind = match data.dtype() {
        DType::F32 => "<f4",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        other => bail!("no NumPy name for {other:?} is known here"),
    };
    let shape: String = data.shape().iter().map(|length| format!("{length}, ")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    let length = (MAGIC.len() + 2 + header.len() + 1).next_multiple_of(ALIGNMENT) - MAGIC.len() - 2;
    header = format!("{header:<width$}\n", width = length - 1);
    let mut file = MAGIC.to_vec();
    file.extend((length as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data.as_bytes());
    Ok(file)
}

/// Where two trainings' weights differ first, in the order of the tensors' names.
#[derive(Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only one of them has this tensor.
    Missing(String),
    /// The tensor has another shape or dtype, as its headers say.
    Header {
        /// The tensor's name.
        tensor: String,
        /// The headers.
        headers: [String; 2],
    },
    /// An element has other bits.
    Element {
        /// The tensor's name.
        tensor: String,
        /// The element's position in row-major order.
        index: usize,
        /// The element's bits.
        bits: [u32; 2],
        /// How many elements of the tensor differ.
        elements: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(tensor) => write!(f, "only one of them has {tensor}"),
            Self::Header { tensor, headers: [one, other] } => write!(f, "{tensor}: {one} and {other}"),
            Self::Element { tensor, index, bits: [one, other], elements } => write!(
                f,
                "{tensor}[{index}]: {one:#010x} ({:e}) and {other:#010x} ({:e}), {} ULP apart; {elements} elements of \
                 this tensor differ",
                f32::from_bits(*one),
                f32::from_bits(*other),
                ulps(*one, *other),
            ),
        }
    }
}

/// The number of floats from one to the other; -0 and 0 are one apart.
fn ulps(one: u32, other: u32) -> u64 {
    let rank = |bits: u32| {
        let magnitude = i64::from(bits & 0x7fff_ffff);
        if bits >> 31 == 0 { magnitude } else { -1 - magnitude }
    };
    rank(one).abs_diff(rank(other))
}

/// The first difference between two folders that [`save_weights`] wrote.
///
/// # Errors
///
/// When a folder or a file cannot be read, and for files of another kind.
pub fn first_difference(one: &Path, other: &Path) -> Result<Option<Difference>> {
    let names = [file_names(one)?, file_names(other)?];
    ensure!(!names[0].is_empty(), "{} holds no weights", one.display());
    if let Some(name) = names[0].symmetric_difference(&names[1]).next() {
        return Ok(Some(Difference::Missing(name.clone())));
    }
    for name in &names[0] {
        let [one, other] = [read(&one.join(name))?, read(&other.join(name))?];
        let tensor = name.trim_end_matches(".npy").to_owned();
        if one.0 != other.0 {
            return Ok(Some(Difference::Header { tensor, headers: [one.0, other.0] }));
        }
        let mut differing = one.1.iter().zip(&other.1).enumerate().filter(|(_, (one, other))| one != other);
        if let Some((index, (one, other))) = differing.next() {
            let bits = [*one, *other];
            return Ok(Some(Difference::Element { tensor, index, bits, elements: 1 + differing.count() }));
        }
    }
    Ok(None)
}

fn file_names(folder: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// A file's header and its elements, in words of 32 bits.
fn read(path: &Path) -> Result<(String, Vec<u32>)> {
    let file = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let parts = file.strip_prefix(MAGIC).and_then(|rest| {
        let (length, rest) = rest.split_first_chunk::<2>()?;
        rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
    });
    let (header, elements) = parts.with_context(|| format!("{} is no NumPy file", path.display()))?;
    let (words, rest) = elements.as_chunks::<4>();
    ensure!(rest.is_empty(), "{} ends amid an element", path.display());
    let header = String::from_utf8_lossy(header).trim_end().to_owned();
    Ok((header, words.iter().map(|word| u32::from_le_bytes(*word)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_floats() {
        assert_eq!(ulps(1.0f32.to_bits(), 1.0f32.to_bits() + 3), 3);
        assert_eq!(ulps(0, 0x8000_0000), 1);
        assert_eq!(ulps(1, 0x8000_0001), 3);
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let data = TensorData::new(vec![1.0f32, -0.0, f32::NAN], [1, 3]);
        let file = npy(&data).expect("f32 is known");
        assert_eq!(file.len() % ALIGNMENT, 12);
        let path = std::env::temp_dir().join(format!("weights-{}.npy", std::process::id()));
        fs::write(&path, file).expect("a temporary file");
        let (header, elements) = read(&path).expect("a NumPy file");
        fs::remove_file(path).expect("it was there");
        assert_eq!(header, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3,), }");
        assert_eq!(elements, [1.0f32.to_bits(), 0x8000_0000, f32::NAN.to_bits()]);
    }
}
