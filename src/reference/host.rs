//! A tensor on the host, and how its elements move.

use super::limits::not_checked;
use burn_backend::{DType, Shape, Slice, TensorData, TensorMetadata};
use burn_cubecl::CubeDevice;
use burn_std::{bf16, f16};
use std::sync::Arc;

/// A tensor on the host: its elements in row-major order, each as its bits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    device: CubeDevice,
    shape: Shape,
    dtype: DType,
    bits: Arc<Vec<u64>>,
}

impl TensorMetadata for Host {
    type Device = CubeDevice;

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> Shape {
        self.shape.clone()
    }

    fn device(&self) -> CubeDevice {
        self.device.clone()
    }

    fn can_mut(&self) -> bool {
        false
    }
}

impl Host {
    /// Of elements in row-major order.
    pub fn new(device: &CubeDevice, shape: impl Into<Shape>, dtype: DType, bits: Vec<u64>) -> Self {
        let shape = shape.into();
        assert_eq!(bits.len(), shape.num_elements(), "as many elements as {shape:?} has");
        Self { device: device.clone(), shape, dtype, bits: Arc::new(bits) }
    }

    /// What a device has, a bool as 0 or 1.
    pub fn from_data(data: &TensorData, device: &CubeDevice) -> Self {
        let dtype = data.dtype();
        let element = |bytes: &[u8]| {
            let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            if dtype.is_bool() { u64::from(bits != 0) } else { bits }
        };
        Self::new(
            device,
            data.shape().clone(),
            dtype,
            data.as_bytes().chunks_exact(dtype.size()).map(element).collect(),
        )
    }

    pub fn into_data(self) -> TensorData {
        let size = self.dtype.size();
        let bytes = self.bits.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(size)).collect();
        TensorData::from_bytes_vec(bytes, self.shape, self.dtype)
    }

    /// Of floats, rounded to the dtype of this tensor.
    pub fn of_floats(&self, shape: impl Into<Shape>, values: impl IntoIterator<Item = f32>) -> Self {
        let bits = values.into_iter().map(|value| rounded(value, self.dtype)).collect();
        Self::new(&self.device, shape, self.dtype, bits)
    }

    /// Of integers, which wrap, in the dtype of this tensor.
    pub fn of_ints(&self, shape: impl Into<Shape>, values: impl IntoIterator<Item = i128>) -> Self {
        let bits = values.into_iter().map(|value| of_int(self.dtype, value)).collect();
        Self::new(&self.device, shape, self.dtype, bits)
    }

    /// Of elements of this dtype, in another shape.
    pub fn of_bits(&self, shape: impl Into<Shape>, bits: Vec<u64>) -> Self {
        Self::new(&self.device, shape, self.dtype, bits)
    }

    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The elements, of f32 or a half type, as f32.
    pub fn floats(&self) -> Vec<f32> {
        floats(self.dtype, &self.bits)
    }

    /// The elements as integers.
    pub fn ints(&self) -> Vec<i128> {
        self.bits.iter().map(|&bits| int(self.dtype, bits)).collect()
    }

    pub fn require_f32(&self) {
        if self.dtype != DType::F32 {
            not_checked("no reference in this type of floats");
        }
    }

    /// A function of each element.
    pub fn map(&self, dtype: DType, function: impl Fn(u64) -> u64) -> Self {
        Self::new(&self.device, self.shape.clone(), dtype, self.bits.iter().copied().map(function).collect())
    }

    /// A function of the elements of two tensors, which broadcast.
    pub fn zip(&self, other: &Self, dtype: DType, function: impl Fn(u64, u64) -> u64) -> Self {
        let shape = self.shape.broadcast(&other.shape).expect("Burn checks that shapes broadcast");
        let (left, right) = (self.expand(&shape), other.expand(&shape));
        let bits = left.bits.iter().zip(right.bits.iter()).map(|(&a, &b)| function(a, b)).collect();
        Self::new(&self.device, shape, dtype, bits)
    }

    /// The elements of `other` where `mask` is set.
    pub fn masked(&self, mask: &Self, other: &Self) -> Self {
        let shape = self.shape.broadcast(&mask.shape).expect("Burn checks that shapes broadcast");
        let (kept, mask, other) = (self.expand(&shape), mask.expand(&shape), other.expand(&shape));
        let chosen = |at: usize| if mask.bits[at] != 0 { other.bits[at] } else { kept.bits[at] };
        self.of_bits(shape, (0..kept.bits.len()).map(chosen).collect())
    }

    pub fn reshape(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    pub fn permute(&self, axes: &[usize]) -> Self {
        let strides = strides(&self.shape);
        let (shape, strides): (Vec<_>, Vec<_>) = axes.iter().map(|&axis| (self.shape[axis], strides[axis])).unzip();
        self.view(shape, &strides, 0)
    }

    pub fn swap_dims(&self, one: usize, other: usize) -> Self {
        let mut axes: Vec<usize> = (0..self.rank()).collect();
        axes.swap(one, other);
        self.permute(&axes)
    }

    pub fn flip(&self, axes: &[usize]) -> Self {
        let reversed = |axis| if axes.contains(&axis) { Slice::new(0, None, -1) } else { Slice::full() };
        self.slice(&(0..self.rank()).map(reversed).collect::<Vec<_>>())
    }

    pub fn expand(&self, shape: &[usize]) -> Self {
        if self.shape[..] == *shape {
            return self.clone();
        }
        let new = shape.len() - self.rank();
        let mut strides = strides(&self.shape);
        { strides.iter_mut().zip(&self.shape[..]) }.filter(|(_, size)| **size == 1).for_each(|(stride, _)| *stride = 0);
        self.view(shape.to_vec(), &[vec![0; new], strides].concat(), 0)
    }

    pub fn slice(&self, slices: &[Slice]) -> Self {
        let Place { shape, strides, offset } = Place::of(&self.shape, slices);
        self.view(shape, &strides, offset)
    }

    pub fn slice_assign(&self, slices: &[Slice], value: &Self) -> Self {
        let Place { shape, strides, offset } = Place::of(&self.shape, slices);
        let mut bits = self.bits.to_vec();
        { positions(&shape, &strides, offset).into_iter().zip(value.bits.iter()) }
            .for_each(|(at, &new)| bits[at] = new);
        self.of_bits(self.shape.clone(), bits)
    }

    /// The windows of `size` elements that start every `step` elements of axis `dim`, each along a new last axis.
    pub fn unfold(&self, dim: usize, size: usize, step: usize) -> Self {
        let (mut shape, mut strides) = (self.shape.to_vec(), strides(&self.shape));
        shape.push(size);
        strides.push(strides[dim]);
        shape[dim] = (shape[dim] + step).saturating_sub(size) / step;
        strides[dim] *= step as isize;
        self.view(shape, &strides, 0)
    }

    pub fn repeat_dim(&self, dim: usize, times: usize) -> Self {
        Self::cat(&vec![self.clone(); times], dim)
    }

    pub fn cat(tensors: &[Self], dim: usize) -> Self {
        let first = &tensors[0];
        let mut shape = first.shape.clone();
        shape[dim] = tensors.iter().map(|tensor| tensor.shape[dim]).sum();
        let mut bits = Vec::with_capacity(shape.num_elements());
        for outer in 0..shape[..dim].iter().product() {
            for tensor in tensors {
                let block: usize = tensor.shape[dim..].iter().product();
                bits.extend_from_slice(&tensor.bits[outer * block..][..block]);
            }
        }
        first.of_bits(shape, bits)
    }

    fn view(&self, shape: Vec<usize>, strides: &[isize], offset: usize) -> Self {
        let bits = positions(&shape, strides, offset).into_iter().map(|at| self.bits[at]).collect();
        self.of_bits(shape, bits)
    }
}

/// Where slices of a tensor lie in it.
struct Place {
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
}

impl Place {
    fn of(shape: &[usize], slices: &[Slice]) -> Self {
        let (mut place, mut offset) = (Self { shape: shape.to_vec(), strides: strides(shape), offset: 0 }, 0);
        for (axis, slice) in slices.iter().enumerate() {
            let range = slice.to_range(shape[axis]);
            place.shape[axis] = slice.output_size(shape[axis]);
            let first = if slice.step < 0 { range.end.saturating_sub(1) } else { range.start };
            offset += first * place.strides[axis] as usize;
            place.strides[axis] *= slice.step;
        }
        Self { offset, ..place }
    }
}

/// Of contiguous elements in row-major order.
fn strides(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<usize>() as isize).collect()
}

/// The positions of a view's elements, in row-major order.
fn positions(shape: &[usize], strides: &[isize], offset: usize) -> Vec<usize> {
    let mut positions = vec![offset as isize];
    for (&size, &stride) in shape.iter().zip(strides) {
        positions = positions.iter().flat_map(|&at| (0..size as isize).map(move |i| at + i * stride)).collect();
    }
    positions.into_iter().map(|at| at as usize).collect()
}

/// The f32 of an element's bits, in f32 or a half type.
pub(super) fn widened(bits: u64, dtype: DType) -> f32 {
    match dtype {
        DType::F32 => f32::from_bits(bits as u32),
        DType::F16 => f16::from_bits(bits as u16).to_f32(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f32(),
        _ => not_checked("no reference in this type of floats"),
    }
}

/// The bits of the nearest float of f32 or a half type.
pub(super) fn rounded(value: f32, dtype: DType) -> u64 {
    match dtype {
        DType::F32 => value.to_bits().into(),
        DType::F16 => f16::from_f32(value).to_bits().into(),
        DType::BF16 => bf16::from_f32(value).to_bits().into(),
        _ => not_checked("no reference in this type of floats"),
    }
}

/// Elements as f32.
pub(super) fn floats(dtype: DType, bits: &[u64]) -> Vec<f32> {
    bits.iter().map(|&bits| widened(bits, dtype)).collect()
}

/// The integer of an element's bits.
pub(super) fn int(dtype: DType, bits: u64) -> i128 {
    match dtype {
        DType::I64 => i128::from(bits as i64),
        DType::I32 => i128::from(bits as i32),
        DType::I16 => i128::from(bits as i16),
        DType::I8 => i128::from(bits as i8),
        _ => i128::from(bits),
    }
}

/// The bits of an integer, which wraps.
pub(super) fn of_int(dtype: DType, value: i128) -> u64 {
    value as u64 & u64::MAX >> (64 - 8 * dtype.size())
}

#[cfg(test)]
mod tests {
    use super::Host;
    use burn_backend::{DType, Slice, TensorData, TensorMetadata};
    use burn_cubecl::CubeDevice;

    fn counted(shape: &[usize]) -> Host {
        let bits = (0..shape.iter().product::<usize>() as u64).collect();
        Host::new(&CubeDevice::default(), shape.to_vec(), DType::U32, bits)
    }

    fn of(tensor: &Host) -> (Vec<usize>, Vec<u64>) {
        (tensor.shape().to_vec(), tensor.bits().to_vec())
    }

    #[test]
    fn elements_move() {
        let x = counted(&[2, 3]);
        assert_eq!(of(&x.swap_dims(0, 1)), (vec![3, 2], vec![0, 3, 1, 4, 2, 5]));
        assert_eq!(of(&x.flip(&[1])), (vec![2, 3], vec![2, 1, 0, 5, 4, 3]));
        assert_eq!(of(&x.slice(&[Slice::new(1, None, 1), Slice::new(0, Some(3), -2)])), (vec![1, 2], vec![5, 3]));
        assert_eq!(of(&counted(&[1, 2]).expand(&[2, 2, 2])), (vec![2, 2, 2], vec![0, 1, 0, 1, 0, 1, 0, 1]));
        assert_eq!(of(&counted(&[5]).unfold(0, 3, 2)), (vec![2, 3], vec![0, 1, 2, 2, 3, 4]));
        assert_eq!(of(&x.repeat_dim(1, 2)), (vec![2, 6], vec![0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]));
        assert_eq!(of(&Host::cat(&[x.clone(), x.clone()], 0)).0, [4, 3]);
        let assigned = x.slice_assign(&[Slice::full(), Slice::new(1, Some(2), 1)], &counted(&[2, 1]));
        assert_eq!(of(&assigned), (vec![2, 3], vec![0, 0, 2, 3, 1, 5]));
        assert_eq!(of(&counted(&[0, 3]).swap_dims(0, 1)), (vec![3, 0], vec![]));
    }

    #[test]
    fn data_comes_back() {
        let device = CubeDevice::default();
        for data in [
            TensorData::new(vec![-1.5f32, f32::NAN], [2]),
            TensorData::new(vec![-1i64, i64::MAX], [1, 2]),
            TensorData::new(vec![-1i8, 7], [2]),
        ] {
            assert_eq!(Host::from_data(&data, &device).into_data().as_bytes(), data.as_bytes());
        }
        assert_eq!(Host::from_data(&TensorData::new(vec![-3i16], [1]), &device).ints(), [-3]);
    }
}
