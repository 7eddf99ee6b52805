//! Attention in parts: the scores of some batches, some heads, or some queries of a head, at a time, so that memory for them
//! does not grow with their numbers.

use burn_backend::ops::AttentionModuleOptions;
use burn_backend::ops::attention::attention_fallback;
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, BoolDType, Shape, Slice, TensorMetadata, get_or_init_device_settings};
use core::ops::Range;

/// Scores that are computed together: 32 MiB of f32. The second-level cache of a large GPU holds them, and their products
/// occupy all of its multiprocessors.
const SCORES: usize = 1 << 23;

/// The fewest queries that are computed together, where they have more scores than that.
const FEWEST: usize = 16;

/// The axis of queries: Q and the result are `[batch, heads, queries, _]`, mask and bias `[batch, heads, queries, keys]`.
const QUERIES: usize = 2;

/// The operands of attention: Q, K, V, mask and bias.
#[derive(Clone)]
pub(super) struct Operands<B: Backend> {
    pub(super) query: FloatTensor<B>,
    pub(super) key: FloatTensor<B>,
    pub(super) value: FloatTensor<B>,
    pub(super) mask: Option<BoolTensor<B>>,
    pub(super) bias: Option<FloatTensor<B>>,
}

impl<B: Backend> Operands<B> {
    /// Batches, heads, queries and keys. An operand's axis of 1 is broadcast.
    fn extents(&self) -> [usize; 4] {
        let (query, key) = (self.query.shape(), self.key.shape());
        let (mask, bias) = (self.mask.as_ref().map(|mask| mask.shape()), self.bias.as_ref().map(|bias| bias.shape()));
        let shapes = [Some(query.clone()), Some(key.clone()), Some(self.value.shape()), mask, bias];
        let length =
            |axis: usize| shapes.iter().flatten().map(|shape| shape[axis]).find(|&length| length != 1).unwrap_or(1);
        let [batches, heads] = [0, 1].map(length);
        [batches, heads, query[QUERIES], key[2]]
    }

    /// How many batches, heads of a batch, and queries of a head are computed together: whole batches if they fit, then
    /// whole heads, whose keys and values are read once.
    pub(super) fn together(&self) -> [usize; 3] {
        let [_, heads, queries, keys] = self.extents();
        match [heads * queries * keys, queries * keys].map(|scores| SCORES / scores.max(1)) {
            [0, 0] => [1, 1, (SCORES / keys).max(FEWEST)],
            [0, fitting] => [1, fitting, queries],
            [fitting, _] => [fitting, heads, queries],
        }
    }
}

/// The operands of some batches, heads or queries.
fn part_of<B: Backend>(operands: &Operands<B>, axis: usize, range: &Range<usize>) -> Operands<B> {
    let floats = |tensor: &FloatTensor<B>| sliced(tensor, axis, range, B::float_slice);
    let of_keys = |tensor: &FloatTensor<B>| if axis == QUERIES { tensor.clone() } else { floats(tensor) };
    Operands {
        query: floats(&operands.query),
        key: of_keys(&operands.key),
        value: of_keys(&operands.value),
        mask: operands.mask.as_ref().map(|mask| sliced(mask, axis, range, B::bool_slice)),
        bias: operands.bias.as_ref().map(floats),
    }
}

/// A range of an axis, or all of one that has length 1: that is broadcast.
fn sliced<T: TensorMetadata>(tensor: &T, axis: usize, range: &Range<usize>, slice: fn(T, &[Slice]) -> T) -> T {
    match tensor.shape()[axis] {
        0 | 1 => tensor.clone(),
        _ => slice(tensor.clone(), &slices(&[(axis, range)])),
    }
}

/// Ranges of some of four axes, and all of the others.
fn slices(ranges: &[(usize, &Range<usize>)]) -> [Slice; 4] {
    let mut slices = [Slice::full(); 4];
    for (axis, range) in ranges {
        slices[*axis] = Slice::from((*range).clone());
    }
    slices
}

fn whole<B: Backend>(operands: Operands<B>, options: AttentionModuleOptions) -> FloatTensor<B> {
    let Operands { query, key, value, mask, bias } = operands;
    attention_fallback::<B>(query, key, value, mask, bias, options)
}

/// Attention, of so many batches, heads and queries at a time. The bits are those of the whole: no operation reads another
/// query.
pub(super) fn in_parts<B: Backend>(
    operands: Operands<B>,
    options: AttentionModuleOptions,
    together: [usize; 3],
) -> FloatTensor<B> {
    let extents = operands.extents();
    if (0..together.len()).all(|axis| extents[axis] <= together[axis]) {
        return whole::<B>(operands, options);
    }
    let [batches, heads, queries, _] = extents;
    let future = (options.is_causal && together[QUERIES] < queries).then(|| future_of::<B>(&operands, extents));
    let options = AttentionModuleOptions { is_causal: options.is_causal && future.is_none(), ..options };
    let ranges = |axis: usize| {
        let starts = (0..extents[axis]).step_by(together[axis]);
        starts.map(move |first| first..extents[axis].min(first + together[axis]))
    };
    let (shape, dtype) = (Shape::new([batches, heads, queries, operands.value.shape()[3]]), operands.query.dtype());
    let mut result = B::float_empty(shape, &operands.query.device(), dtype.into());
    for batches in ranges(0) {
        let of_batches = part_of::<B>(&operands, 0, &batches);
        for heads in ranges(1) {
            let of_heads = part_of::<B>(&of_batches, 1, &heads);
            for queries in ranges(QUERIES) {
                let mut part = part_of::<B>(&of_heads, QUERIES, &queries);
                if let Some(future) = &future {
                    let extents = part.extents();
                    part.mask = Some(with_future::<B>(part.mask.take(), future, extents, &queries));
                }
                let slices = slices(&[(0, &batches), (1, &heads), (QUERIES, &queries)]);
                result = B::float_slice_assign(result, &slices, whole::<B>(part, options));
            }
        }
    }
    result
}

/// Which keys come after a query: `j > i + keys - queries` of key `j` and query `i`.
struct Future<B: Backend> {
    /// `i + keys - queries`, `[1, 1, queries, 1]`.
    last: IntTensor<B>,
    /// `j`, `[1, 1, 1, keys]`.
    keys: IntTensor<B>,
    dtype: BoolDType,
}

/// In the type of the operands' mask, if there is one.
fn future_of<B: Backend>(operands: &Operands<B>, [_, _, queries, keys]: [usize; 4]) -> Future<B> {
    let device = operands.query.device();
    let dtypes = get_or_init_device_settings::<B>(&device);
    let index = |range: Range<i64>, shape: [usize; 4]| {
        B::int_reshape(B::int_arange(range, &device, dtypes.int_dtype), Shape::new(shape))
    };
    let offset = keys as i64 - queries as i64;
    Future {
        last: index(offset..keys as i64, [1, 1, queries, 1]),
        keys: index(0..keys as i64, [1, 1, 1, keys]),
        dtype: operands.mask.as_ref().map_or(dtypes.bool_dtype, |mask| mask.dtype().into()),
    }
}

/// `mask`, and where a key comes after one of these queries. `[batch, heads, queries, keys]`.
fn with_future<B: Backend>(
    mask: Option<BoolTensor<B>>,
    future: &Future<B>,
    extents: [usize; 4],
    queries: &Range<usize>,
) -> BoolTensor<B> {
    let last = B::int_slice(future.last.clone(), &slices(&[(QUERIES, queries)]));
    let whole = |mask: BoolTensor<B>| B::bool_expand(mask, Shape::new(extents));
    let future = whole(B::int_lower(last, future.keys.clone(), future.dtype));
    match mask {
        Some(mask) => B::bool_or(whole(mask), future),
        None => future,
    }
}

#[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
mod tests {
    use super::*;
    use crate::backend::Deterministic;
    use burn_backend::ops::{BoolTensorOps, FloatTensorOps};
    use burn_backend::{FloatDType, TensorData, read_sync};
    use burn_cubecl::{CubeBackend, CubeDevice};

    type Ours = Deterministic<CubeBackend>;

    fn floats(shape: [usize; 4], seed: u32) -> FloatTensor<Ours> {
        let count = shape.iter().product::<usize>() as u32;
        let values = (0..count).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 8) as f32);
        let values: Vec<f32> = values.map(|value| value / (1 << 22) as f32 - 2.0).collect();
        Ours::float_from_data(TensorData::new(values, shape), &CubeDevice::default())
    }

    fn hidden(shape: [usize; 4]) -> BoolTensor<Ours> {
        let count = shape.iter().product::<usize>();
        let values: Vec<bool> = (0..count).map(|i| i % 3 == 1).collect();
        let device = CubeDevice::default();
        let dtype = get_or_init_device_settings::<Ours>(&device).bool_dtype;
        Ours::bool_from_data(TensorData::new(values, shape).convert_dtype(dtype.into()), &device)
    }

    fn words(tensor: FloatTensor<Ours>) -> (Shape, Vec<u32>) {
        let shape = tensor.shape();
        let data = read_sync(Ours::float_into_data(tensor)).expect("it is computed");
        (shape, data.try_into_vec::<f32>().expect("f32").into_iter().map(f32::to_bits).collect())
    }

    #[test]
    fn parts_are_batches_then_heads_then_queries() {
        let together = |[batch, heads, queries, keys]: [usize; 4]| {
            let [query, key] = [queries, keys].map(|length| floats([batch, heads, length, 1], 1));
            Operands::<Ours> { query, value: key.clone(), key, mask: None, bias: None }.together()
        };
        assert_eq!(together([4, 8, 128, 128]), [64, 8, 128]);
        assert_eq!(together([3, 16, 1024, 1024]), [1, 8, 1024]);
        assert_eq!(together([1, 1, 4096, 4096]), [1, 1, 2048]);
        assert_eq!(together([1, 2, 20, 1 << 20]), [1, 1, 16]);
    }

    #[test]
    fn parts_have_the_bits_of_the_whole() {
        let [batch, heads, queries, keys, width] = [2, 3, 7, 5, 4];
        let operands = |mask: Option<[usize; 4]>, bias: Option<[usize; 4]>, key_heads: usize| Operands::<Ours> {
            query: floats([batch, heads, queries, width], 1),
            key: floats([batch, key_heads, keys, width], 2),
            value: floats([batch, key_heads, keys, 6], 3),
            mask: mask.map(hidden),
            bias: bias.map(|shape| floats(shape, 4)),
        };
        let full = [batch, heads, queries, keys];
        let cases = [
            (None, None, heads),
            (Some(full), Some(full), heads),
            (Some([1, 1, queries, keys]), Some([1, heads, 1, keys]), heads),
            (Some([batch, 1, 1, keys]), None, 1),
            (Some([1, 1, 1, keys]), Some([1, 1, queries, 1]), heads),
        ];
        for is_causal in [false, true] {
            for (mask, bias, key_heads) in cases {
                let scale = (key_heads == 1).then_some(0.3);
                let options = AttentionModuleOptions { is_causal, softcap: Some(3.0), scale };
                let of = |together| words(in_parts(operands(mask, bias, key_heads), options, together));
                let whole = of([usize::MAX; 3]);
                assert_eq!(whole.0, Shape::new([batch, heads, queries, 6]));
                assert!(whole.1.iter().any(|&word| word != whole.1[0]), "the values differ");
                // One query at a time, two and a last one alone, all but one; heads, and batches.
                for together in [[1, 1, 1], [1, 1, 2], [2, 3, 6], [1, 2, 7], [1, 3, 7]] {
                    assert_eq!(of(together), whole, "{together:?} of {mask:?} {bias:?} {is_causal}");
                }
            }
        }
    }

    #[test]
    fn parts_of_half_types_have_the_bits_of_the_whole() {
        let half = |tensor| Ours::float_cast(tensor, FloatDType::F16);
        let operands = || Operands::<Ours> {
            query: half(floats([2, 2, 5, 4], 1)),
            key: half(floats([2, 2, 6, 4], 2)),
            value: half(floats([2, 2, 6, 3], 3)),
            mask: None,
            bias: None,
        };
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        let of = |together| words(Ours::float_cast(in_parts(operands(), options, together), FloatDType::F32));
        assert_eq!(of([1, 1, 2]), of([2, 2, 5]));
    }

    #[test]
    fn extents_of_0_and_operands_with_more_batches_than_queries() {
        let of = |[batch, queries, keys]: [usize; 3], together| {
            let operands = Operands::<Ours> {
                query: floats([1, 2, queries, 4], 1),
                key: floats([1, 2, keys, 4], 2),
                value: floats([batch, 2, keys, 3], 3),
                mask: Some(hidden([1, 1, queries, keys])),
                bias: None,
            };
            let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
            words(in_parts(operands, options, together))
        };
        for extents in [[3, 4, 5], [1, 0, 5]] {
            let whole = of(extents, [usize::MAX; 3]);
            assert_eq!(whole.0, Shape::new([extents[0], 2, extents[1], 3]));
            assert_eq!(of(extents, [1, 1, 2]), whole, "{extents:?}");
        }
    }
}
