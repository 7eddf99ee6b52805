//! Single operations, below the tensor API, so that neither fusion nor the route takes part: `CubeBackend`, whose
//! kernels Burn has tuned by then, against `Deterministic<CubeBackend>`.

use crate::measure::medians;
use crate::table::Table;
use crate::table::Target::{self, AtLeast};
use burn_backend::ops::{ActivationOps, ConvOptions, FloatTensorOps, IntTensorOps, ModuleOps};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{Backend, Distribution, FloatDType, Shape, TensorData, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
use burn_deterministic::{Deterministic, set_random_seed};

/// The same work on plain Burn and on burn-deterministic.
struct Ways<'a>([Box<dyn Fn() -> CubeTensor + 'a>; 2]);

/// An expression in the backend `$backend`, on both backends.
macro_rules! both {
    ($backend:ident => $work:expr) => {
        Ways([
            {
                type $backend = CubeBackend;
                Box::new(|| $work)
            },
            {
                type $backend = Deterministic<CubeBackend>;
                Box::new(|| $work)
            },
        ])
    };
}

/// How far the two results may be apart.
enum Agreement {
    /// Every element is the same but for rounding.
    Elements,
    /// The mean is the same, within a hundredth: they are random.
    Mean,
}

pub fn compare(table: &mut Table, samples: usize) {
    let device = CubeDevice::default();
    set_random_seed(812);
    let mut add = |name, target: Option<Target>, agreement, ways: Ways<'_>| {
        if !table.wants(name) {
            return;
        }
        eprintln!("{name}..");
        if let Some(disagreement) = disagreement(name, agreement, &ways) {
            return table.not_comparable(name, disagreement);
        }
        let times = medians(samples, |way, runs| {
            for _ in 0..runs {
                ways.0[way]();
            }
            CubeBackend::sync(&device).expect("the device has done its work");
        });
        table.times(name, times, target);
    };
    use Agreement::{Elements, Mean};

    let (a, b) = (floats([1024, 1024]), floats([1024, 1024]));
    let product = both!(B => B::float_matmul(a.clone(), b.clone()));
    add("matmul 1024 x 1024 x 1024", Some(AtLeast(0.8)), Elements, product);
    let (a, b) = (floats([64, 1600]), floats([1600, 128]));
    add("matmul 64 x 1600 x 128", None, Elements, both!(B => B::float_matmul(a.clone(), b.clone())));

    for (name, rows) in
        [("scatter-add of 2^20 values into 64 rows", 64), ("scatter-add of 2^20 values into 2^18 rows", 1 << 18)]
    {
        let (tensor, indices, values) = (floats([rows]), indices([1 << 20], rows), floats([1 << 20]));
        let scatter = both!(B => {
            B::float_scatter(0, tensor.clone(), indices.clone(), values.clone(), IndexingUpdateOp::Add)
        });
        add(name, Some(AtLeast(1.0)), Elements, scatter);
    }

    let (weight, words, gradient) = (floats([10_000, 64]), indices([64, 128], 10_000), floats([64, 128, 64]));
    let embedding = both!(B => B::embedding_backward(weight.clone(), gradient.clone(), words.clone()));
    add("embedding gradient, 8192 words of 10000, width 64", None, Elements, embedding);

    let x = floats([1 << 24]);
    add("sum of 2^24 elements", Some(AtLeast(0.8)), Elements, both!(B => B::float_sum(x.clone())));
    // Burn's sum of all is wrong on llvmpipe, which leaves a loop after 65535 rounds: this way its loops are short.
    let x = floats([4096, 4096]);
    let sum = [
        Box::new(|| CubeBackend::float_sum(CubeBackend::float_sum_dim(x.clone(), 1))) as Box<dyn Fn() -> CubeTensor>,
        Box::new(|| Deterministic::<CubeBackend>::float_sum(x.clone())),
    ];
    add("sum of 2^24 elements, Burn in two steps", Some(AtLeast(0.8)), Elements, Ways(sum));
    add("sum of rows, 4096 x 4096", None, Elements, both!(B => B::float_sum_dim(x.clone(), 1)));
    add("sum of columns, 4096 x 4096", None, Elements, both!(B => B::float_sum_dim(x.clone(), 0)));

    let x = floats([1024, 1024]);
    add("cumulative sum of rows, 1024 x 1024", None, Elements, both!(B => B::float_cumsum(x.clone(), 1)));
    let x = floats([1 << 15]);
    add("cumulative sum of 2^15 elements", None, Elements, both!(B => B::float_cumsum(x.clone(), 0)));

    let x = floats([1 << 20]);
    add("sort of 2^20 elements, Burn on the host", None, Elements, both!(B => B::float_sort(x.clone(), 0, false)));
    let x = floats([100_000, 8]);
    add("sort of rows, 100000 x 8, Burn on the host", None, Elements, both!(B => B::float_sort(x.clone(), 1, false)));
    let x = floats([1024, 1000]);
    add("top 5 of rows, 1024 x 1000", None, Elements, both!(B => B::float_topk(x.clone(), 1, 5)));
    let x = floats([1 << 15]);
    add("top 100 of 2^15 elements", None, Elements, both!(B => B::float_topk(x.clone(), 0, 100)));

    let (x, weight, gradient) = (floats([16, 32, 28, 28]), floats([64, 32, 3, 3]), floats([16, 64, 28, 28]));
    let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let forward = both!(B => B::conv2d(x.clone(), weight.clone(), None, options()));
    add("conv2d, 16 x 32 x 28 x 28 to 64 channels, 3 x 3", None, Elements, forward);
    let input = both!(B => B::conv2d_x_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    add("conv2d input gradient", None, Elements, input);
    let weights = both!(B => B::conv2d_weight_backward(x.clone(), weight.clone(), gradient.clone(), options()));
    add("conv2d weight gradient", None, Elements, weights);
    let pool = both!(B => B::max_pool2d(gradient.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false));
    add("max_pool2d (forwarded), 16 x 64 x 28 x 28", None, Elements, pool);

    let logits = floats([1024, 1000]);
    add("softmax, 1024 x 1000", None, Elements, both!(B => B::softmax(logits.clone(), 1)));

    let shape = || Shape::new([1 << 20]);
    let mask = both!(B => B::float_random(shape(), Distribution::Bernoulli(0.5), &device, FloatDType::F32));
    add("dropout mask of 2^20 elements", None, Mean, mask);
    let normal = both!(B => B::float_random(shape(), Distribution::Normal(1.0, 1.0), &device, FloatDType::F32));
    add("normal random numbers, 2^20", None, Mean, normal);
}

/// What is wrong with the results, before anything is timed.
fn disagreement(name: &str, agreement: Agreement, ways: &Ways<'_>) -> Option<String> {
    let [burn, here] = ways.0.each_ref().map(|way| read_sync(CubeBackend::float_into_data(way())).expect(name));
    if burn.shape() != here.shape() {
        return Some(format!("Burn computes shape {:?}, burn-deterministic {:?}", burn.shape(), here.shape()));
    }
    let values = |data: &TensorData| data.iter::<f64>().collect::<Vec<_>>();
    let (burn, here) = (values(&burn), values(&here));
    let far = |&(burn, here): &(f64, f64)| {
        // A NaN is near nothing.
        let near = (burn - here).abs() <= 1e-2 + 1e-3 * here.abs();
        !near
    };
    let (burn, here) = match agreement {
        Agreement::Elements => burn.into_iter().zip(here).find(far)?,
        Agreement::Mean => {
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            Some((mean(burn), mean(here))).filter(far)?
        }
    };
    Some(format!("Burn computes {burn}, burn-deterministic {here}"))
}

/// Values from -1 to 2, so that long sums stay away from zero.
fn floats<const N: usize>(shape: [usize; N]) -> CubeTensor {
    let values = scrambled(shape.iter().product()).map(|bits| (bits >> 8) as f32 / (1 << 24) as f32 * 3.0 - 1.0);
    CubeBackend::float_from_data(TensorData::new(values.collect::<Vec<_>>(), shape), &CubeDevice::default())
}

/// Indices below `bound`.
fn indices<const N: usize>(shape: [usize; N], bound: usize) -> CubeTensor {
    let values = scrambled(shape.iter().product()).map(|bits| ((u64::from(bits) * bound as u64) >> 32) as i32);
    CubeBackend::int_from_data(TensorData::new(values.collect::<Vec<_>>(), shape), &CubeDevice::default())
}

/// 32 bits for each of `count` elements, without a pattern.
fn scrambled(count: usize) -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9u32;
    (0..count).map(move |_| {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
}
