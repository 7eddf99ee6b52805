//! The contents of the messages of a step. All begin with the number of the step.

use crate::shards::terms::Layout;
use crate::shards::transfer::Copied;
use burn_backend::{DType, TensorData};

/// Sums of consecutive shards: the first, how many, and the tensors.
pub(crate) type Node = (usize, usize, Copied);

/// Contents to be sent.
pub(crate) struct Contents(pub(crate) Vec<u8>);

impl Contents {
    pub(crate) fn of_step(step: u64) -> Self {
        Self(step.to_le_bytes().to_vec())
    }

    pub(crate) fn number(mut self, number: usize) -> Self {
        self.put_number(number);
        self
    }

    pub(crate) fn digest(mut self, digest: &[u8; 32]) -> Self {
        self.0.extend(digest);
        self
    }

    pub(crate) fn numbers(mut self, numbers: &[usize]) -> Self {
        self.put_number(numbers.len());
        numbers.iter().for_each(|number| self.put_number(*number));
        self
    }

    pub(crate) fn nodes(mut self, nodes: &[Node], layout: &Layout) -> Self {
        self.put_number(nodes.len());
        for (first, length, copied) in nodes {
            self = self.number(*first).number(*length).tensors(copied, layout);
        }
        self
    }

    /// The tensors of a model, each after its place in it.
    pub(crate) fn tensors(mut self, copied: &Copied, layout: &Layout) -> Self {
        let there = layout.ids().enumerate().filter_map(|(place, id)| Some((place, copied.get(id)?)));
        self.put_number(there.clone().count());
        for (place, data) in there {
            self.put_number(place);
            self.put_tensor(data);
        }
        self
    }

    pub(crate) fn tensor(mut self, data: &TensorData) -> Self {
        self.put_tensor(data);
        self
    }

    fn put_number(&mut self, number: usize) {
        self.0.extend((number as u64).to_le_bytes());
    }

    fn put_tensor(&mut self, data: &TensorData) {
        self.0.push(code(data.dtype()));
        self.put_number(data.shape().num_dims());
        data.shape().iter().for_each(|dimension| self.put_number(*dimension));
        self.0.extend(data.as_bytes());
    }
}

/// The types of floats, by their codes.
const DTYPES: [DType; 5] = [DType::F64, DType::F32, DType::Flex32, DType::F16, DType::BF16];

/// The code of another type, which no message may have.
fn code(dtype: DType) -> u8 {
    DTYPES.iter().position(|known| *known == dtype).map_or(u8::MAX, |code| code as u8)
}

/// Bytes of a message besides those of its tensors' elements and dimensions.
const NUMBERS: u64 = 1 << 12;

/// The bytes that the contents of a message with sums of `nodes` nodes of a model may have.
pub(crate) fn limit(layout: &Layout, nodes: usize, shards: usize) -> u64 {
    // Of the widest type.
    let of_tensor = |shape: &[usize]| {
        let elements = shape.iter().fold(8_u64, |product, size| product.saturating_mul(*size as u64));
        elements.saturating_add(8 * shape.len() as u64 + 32)
    };
    let of_node = layout.shapes().fold(32_u64, |sum, shape| sum.saturating_add(of_tensor(shape)));
    let numbers = NUMBERS + 16 * shards as u64;
    of_node.saturating_mul(nodes as u64).saturating_add(numbers)
}

/// The bytes that the contents of a message about the samples of shards may have.
pub(crate) fn limit_of_samples(shards: usize) -> u64 {
    NUMBERS + 8 * shards as u64
}

/// Contents that have come, from which each function takes what comes next; errors are texts.
pub(crate) struct Taken<'a>(&'a [u8]);

impl<'a> Taken<'a> {
    /// Of a message whose step has been compared.
    pub(crate) fn behind_the_step(contents: &'a [u8]) -> Self {
        Self(contents.get(8..).unwrap_or_default())
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| format!("it ends {count} bytes too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<usize, String> {
        let number = u64::from_le_bytes(self.bytes(8)?.try_into().expect("eight bytes"));
        usize::try_from(number).map_err(|_| format!("{number} is no number of this process"))
    }

    pub(crate) fn digest(&mut self) -> Result<[u8; 32], String> {
        Ok(self.bytes(32)?.try_into().expect("32 bytes"))
    }

    /// At most `most` numbers.
    pub(crate) fn numbers(&mut self, most: usize) -> Result<Vec<usize>, String> {
        let count = self.count(most)?;
        (0..count).map(|_| self.number()).collect()
    }

    fn count(&mut self, most: usize) -> Result<usize, String> {
        let count = self.number()?;
        if count > most { Err(format!("{count} of something of which there are {most} at most")) } else { Ok(count) }
    }

    /// Nodes of some of the shards `of`, ascending.
    pub(crate) fn nodes(
        &mut self,
        of: std::ops::Range<usize>,
        mut tensors: impl FnMut(&mut Self) -> Result<Copied, String>,
    ) -> Result<Vec<Node>, String> {
        let count = self.count(of.len())?;
        let mut free = of.start;
        let mut nodes = Vec::new();
        for _ in 0..count {
            let (first, length) = (self.number()?, self.number()?);
            let is_node = length.is_power_of_two() && first.is_multiple_of(length);
            if !is_node || first < free || length > of.end.saturating_sub(first) {
                return Err(format!("a sum of {length} shards from {first} on, of {of:?}"));
            }
            free = first + length;
            nodes.push((first, length, tensors(self)?));
        }
        Ok(nodes)
    }

    /// Tensors of a model.
    pub(crate) fn tensors(&mut self, layout: &Layout) -> Result<Copied, String> {
        let all: Vec<_> = layout.ids().zip(layout.shapes()).collect();
        let mut copied = Copied::default();
        for _ in 0..self.count(all.len())? {
            let place = self.number()?;
            let (id, shape) = all.get(place).ok_or_else(|| format!("parameter {place} of {}", all.len()))?;
            let data = self.tensor()?;
            if data.shape()[..] != **shape {
                return Err(format!("a gradient {:?} of parameter {place} {shape:?}", &data.shape()[..]));
            }
            copied.put_in(*id, data);
        }
        Ok(copied)
    }

    pub(crate) fn tensor(&mut self) -> Result<TensorData, String> {
        let code = self.bytes(1)?[0];
        let dtype = *DTYPES.get(usize::from(code)).ok_or_else(|| format!("the type {code} of a tensor"))?;
        let rank = self.count(16)?;
        let shape: Vec<usize> = (0..rank).map(|_| self.number()).collect::<Result<_, _>>()?;
        let bytes = shape.iter().try_fold(dtype.size(), |product, size| product.checked_mul(*size));
        let bytes = bytes.ok_or_else(|| format!("a tensor {shape:?}"))?;
        Ok(TensorData::from_bytes_vec(self.bytes(bytes)?.to_vec(), shape, dtype))
    }

    /// Requires that this was all.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes too many")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(numbers: &[usize]) -> Vec<u8> {
        numbers.iter().fold(Contents::of_step(0), |contents, number| contents.number(*number)).0
    }

    fn nodes(numbers: &[usize], of: std::ops::Range<usize>) -> Result<Vec<(usize, usize)>, String> {
        let contents = contents(numbers);
        let mut taken = Taken::behind_the_step(&contents);
        let nodes = taken.nodes(of, |_| Ok(Copied::default()))?;
        taken.end()?;
        Ok(nodes.into_iter().map(|(first, length, _)| (first, length)).collect())
    }

    #[test]
    fn nodes_are_of_the_tree_and_of_the_shards_of_their_process() {
        assert_eq!(nodes(&[3, 3, 1, 4, 2, 6, 1], 3..7), Ok(vec![(3, 1), (4, 2), (6, 1)]));
        assert_eq!(nodes(&[0], 3..7), Ok(vec![]));
        let wrong = [
            (&[1, 2, 1][..], 3..7),
            (&[1, 6, 2], 3..7),
            (&[1, 3, 2], 0..7),
            (&[1, 3, 3], 0..7),
            (&[1, 3, 0], 0..7),
            (&[2, 4, 2, 5, 1], 0..7),
            (&[2, 4, 1, 3, 1], 0..7),
            (&[5, 0, 1], 3..7),
            (&[1, usize::MAX, 1], 3..7),
            (&[1, 4, 1 << 63], 3..7),
            (&[usize::MAX], 3..7),
            (&[1, 4, 1, 0], 3..7),
            (&[1, 4], 3..7),
            (&[], 3..7),
        ];
        for (numbers, of) in wrong {
            assert!(nodes(numbers, of).is_err(), "{numbers:?}");
        }
    }

    #[test]
    fn tensors_are_as_they_were_and_sizes_are_compared_with_what_is_there() {
        for data in [
            TensorData::from([[1.0_f32, f32::NAN], [-0.0, 4.0]]),
            TensorData::from([1.5_f64]),
            TensorData::from_bytes_vec(Vec::new(), [3, 0], DType::BF16),
        ] {
            let bytes = Contents::of_step(7).tensor(&data).0;
            let mut taken = Taken::behind_the_step(&bytes);
            let read = taken.tensor().expect("a tensor");
            assert_eq!(taken.end(), Ok(()));
            assert_eq!((read.dtype(), &read.shape()[..]), (data.dtype(), &data.shape()[..]));
            assert_eq!(read.as_bytes(), data.as_bytes());
            for end in 8..bytes.len() {
                assert!(Taken::behind_the_step(&bytes[..end]).tensor().is_err(), "{end} bytes");
            }
        }
        let with = |code: u8, numbers: &[usize]| {
            let mut bytes = vec![0; 8];
            bytes.push(code);
            bytes.extend_from_slice(&contents(numbers)[8..]);
            Taken::behind_the_step(&bytes).tensor().map(|_| ())
        };
        assert!(with(1, &[2, 1 << 40, 1 << 40]).expect_err("too many").contains("a tensor [1099511627776, "));
        assert!(with(1, &[1, 1 << 40]).expect_err("not there").contains("too early"));
        assert!(with(1, &[17]).is_err() && with(5, &[0]).is_err() && with(255, &[0]).is_err());
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error() {
        let mut random = blake3::Hasher::new().finalize_xof();
        let mut found = 0;
        for length in 0..3000 {
            let mut bytes = vec![0; 8 + length % 80];
            random.fill(&mut bytes);
            // Mostly small numbers, so that more than the first one is looked at.
            bytes.iter_mut().for_each(|byte| *byte = if *byte < 200 { 0 } else { *byte % 5 });
            let mut taken = Taken::behind_the_step(&bytes);
            found += usize::from(taken.nodes(0..8, |taken| taken.tensor().map(|_| Copied::default())).is_ok());
            let _ = Taken::behind_the_step(&bytes).numbers(4);
        }
        assert!(found > 0, "some are messages");
    }
}
