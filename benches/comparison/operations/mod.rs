//! Single operations, below the tensor API, so that neither fusion nor the route takes part: `CubeBackend`, whose
//! kernels Burn has tuned by then, against `Deterministic<CubeBackend>`.

mod convolution;
mod elementwise;
mod indexing;
mod layers;
mod matmul;
mod ordering;
mod pooling;
mod random;
mod reduction;
mod resampling;

use crate::agreement::{Agreement, disagreement};
use crate::device::default_device;
use crate::measure::{elapsed, medians};
use crate::table::{Table, Target};
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::{Backend, DType, FloatDType, TensorData, TensorMetadata, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
use burn_deterministic::set_random_seed;
use burn_deterministic_kernels::device::Machine;
use cubecl::ir::{ElemType, FloatKind};

/// The same work on plain Burn and on burn-deterministic.
struct Ways<'a>([Box<dyn Fn() -> Vec<CubeTensor> + 'a>; 2]);

/// An expression in the backend `$backend`, on both backends.
macro_rules! both {
    ($backend:ident => $work:expr) => {
        $crate::operations::Ways([
            {
                type $backend = burn_cubecl::CubeBackend;
                Box::new(|| $crate::operations::Results::list($work))
            },
            {
                type $backend = burn_deterministic::Deterministic<burn_cubecl::CubeBackend>;
                Box::new(|| $crate::operations::Results::list($work))
            },
        ])
    };
}
use both;

/// What an operation returns.
trait Results {
    fn list(self) -> Vec<CubeTensor>;
}

impl Results for CubeTensor {
    fn list(self) -> Vec<CubeTensor> {
        vec![self]
    }
}

impl Results for (CubeTensor, CubeTensor) {
    fn list(self) -> Vec<CubeTensor> {
        vec![self.0, self.1]
    }
}

impl Results for Vec<CubeTensor> {
    fn list(self) -> Vec<CubeTensor> {
        self
    }
}

/// Where the families add their rows.
struct Rows<'a> {
    table: &'a mut Table,
    samples: usize,
    device: CubeDevice,
}

impl Rows<'_> {
    /// A row of work whose results are the same but for rounding.
    fn add(&mut self, name: &'static str, ways: Ways<'_>) {
        self.compare(name, None, Agreement::Elements, ways);
    }

    /// A row with a target.
    fn aim(&mut self, name: &'static str, target: Target, ways: Ways<'_>) {
        self.compare(name, Some(target), Agreement::Elements, ways);
    }

    /// A row of work whose results are random.
    fn draw(&mut self, name: &'static str, ways: Ways<'_>) {
        self.compare(name, None, Agreement::Mean, ways);
    }

    fn compare(&mut self, name: &'static str, target: Option<Target>, agreement: Agreement, ways: Ways<'_>) {
        if !self.table.wants(name) {
            return;
        }
        eprintln!("{name}..");
        let results = ways.0.each_ref().map(|way| way().into_iter().map(|tensor| read(name, tensor)).collect());
        if let Some(disagreement) = disagreement(agreement, &results) {
            return self.table.not_comparable(name, disagreement);
        }
        let times = medians(self.samples, |way, runs| {
            elapsed(|| {
                for _ in 0..runs {
                    ways.0[way]();
                }
                CubeBackend::sync(&self.device).expect("the device has done its work");
            })
        });
        self.table.operation(name, times, target);
    }
}

pub fn compare(table: &mut Table, samples: usize) {
    set_random_seed(812);
    let mut rows = Rows { table, samples, device: default_device() };
    for family in [
        matmul::compare,
        convolution::compare,
        pooling::compare,
        resampling::compare,
        layers::compare,
        reduction::compare,
        ordering::compare,
        indexing::compare,
        elementwise::compare,
        random::compare,
    ] {
        family(&mut rows);
        // What one family has queued and allocated is not to slow the next one down; and the process must not end while a
        // driver compiles.
        CubeBackend::sync(&rows.device).expect("the device has done its work");
        CubeBackend::memory_cleanup(&rows.device);
    }
}

fn read(name: &str, tensor: CubeTensor) -> TensorData {
    let data = match tensor.dtype() {
        DType::Bool(_) => read_sync(CubeBackend::bool_into_data(tensor)),
        dtype if dtype.is_float() => read_sync(CubeBackend::float_into_data(tensor)),
        _ => read_sync(CubeBackend::int_into_data(tensor)),
    };
    data.expect(name)
}

/// Values from -1 to 2, so that long sums stay away from zero.
pub fn floats<const N: usize>(shape: [usize; N]) -> CubeTensor {
    let values = scrambled(shape.iter().product()).map(|bits| (bits >> 8) as f32 / (1 << 24) as f32 * 3.0 - 1.0);
    CubeBackend::float_from_data(TensorData::new(values.collect::<Vec<_>>(), shape), &default_device())
}

/// The same in f16, on a GPU that has the type: a software driver would compute them for minutes.
pub fn halves<const N: usize>(shape: [usize; N]) -> Option<CubeTensor> {
    let client = default_device().client();
    let has_f16 = client.properties().supports_type(ElemType::Float(FloatKind::F16));
    let is_offered = has_f16 && Machine::of(&client) == Machine::Gpu;
    is_offered.then(|| CubeBackend::float_cast(floats(shape), FloatDType::F16))
}

/// Indices below `bound`.
pub fn indices<const N: usize>(shape: [usize; N], bound: usize) -> CubeTensor {
    let values = scrambled(shape.iter().product()).map(|bits| ((u64::from(bits) * bound as u64) >> 32) as i32);
    integers(values, shape)
}

fn integers<const N: usize>(values: impl Iterator<Item = i32>, shape: [usize; N]) -> CubeTensor {
    CubeBackend::int_from_data(TensorData::new(values.collect::<Vec<_>>(), shape), &default_device())
}

/// 32 bits for each of `count` elements, without a pattern.
pub fn scrambled(count: usize) -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9u32;
    (0..count).map(move |_| {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    })
}
