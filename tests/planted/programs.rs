//! A training with a validation, whose arguments name a fault and `plain`, for Burn's own kernels.

use crate::bits::floats;
use crate::closed_world::custom::{self, FloatTensor};
use crate::process::{arguments, report};
use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::prelude::*;
use burn::tensor::{Distribution, FloatDType, Tensor};
use burn_backend::ExecutionError;
use burn_backend::ops::FloatTensorOps;
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic::{
    Determinism, digest, enable_op_determinism, epoch, initialize, label, observe, promise_deterministic,
    set_random_seed, step,
};
use burn_fusion::Fusion;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation, OperationIr, StreamId, TensorIr};
use burn_ir::TensorStatus;
use cubecl::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Steps of an epoch, which are numbered anew in each.
pub const STEPS: u64 = 4;

/// The epoch and the step at which something is wrong.
pub const WRONG: (u64, u64) = (1, 2);

#[derive(Module, Debug)]
struct Model {
    branches: Vec<Linear>,
    norm: BatchNorm,
    dropout: Dropout,
    head: Linear,
}

fn is(word: &str) -> bool {
    arguments().iter().any(|argument| argument == word)
}

/// Of another value in each run.
fn now() -> u64 {
    u64::from(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos())
}

impl Model {
    fn new(device: &Device) -> Self {
        Self {
            branches: (0..6).map(|_| LinearConfig::new(8, 8).init(device)).collect(),
            norm: BatchNormConfig::new(8).init(device),
            dropout: DropoutConfig::new(if is("dropout") { 0.5 } else { 0.0 }).init(),
            head: LinearConfig::new(8, 4).init(device),
        }
    }

    fn forward(&self, inputs: &Tensor<2>, wrong: bool) -> Tensor<2> {
        let mut order: Vec<usize> = (0..self.branches.len()).collect();
        if wrong && is("hash map") {
            let named: HashMap<String, usize> = order.iter().map(|&index| (format!("branch {index}"), index)).collect();
            order = named.into_values().collect();
        }
        let _label = label("branches");
        let sum = order.iter().map(|&index| self.branches[index].forward(inputs.clone()));
        let sum = sum.reduce(|sum, next| sum + next).expect("six branches");
        self.head.forward(self.dropout.forward(self.norm.forward(sum).tanh()))
    }
}

/// A training with a fault.
pub fn planted() {
    let device = Device::default().autodiff();
    if is("plain") {
        observe().expect("this process has run no tensor operation");
        if !is("unseeded") {
            device.seed(4);
        }
    } else {
        custom::promise();
        enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
        set_random_seed(4);
    }
    let mut model = Model::new(&device);
    if !is("plain") {
        model = initialize(model).expect("a seed is set");
    }
    let mut optimizer = SgdConfig::new().init();
    let mut rate = 1e-2;
    for number in 0..3 {
        let _epoch = epoch(number);
        for index in 0..STEPS {
            let wrong = (number, index) == WRONG;
            let at = |fault: &str| wrong && is(fault);
            let _step = step(index);
            let inputs = inputs(&at, &device);
            let outputs = model.forward(&inputs, wrong);
            let mut loss = outputs.powi_scalar(2).mean();
            if at("scalar") {
                loss = loss * (1.0 + now() as f64 * 1e-15);
            }
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            if at("rate") {
                rate *= 1.0 - now() as f64 * 1e-15;
            }
            model = optimizer.step(rate, model, gradients);
            if at("bit") {
                model = model.map(&mut FlipsOneBit);
            }
        }
        let wrong = number == WRONG.0;
        rate *= 0.9 + f64::from(validate(&model, wrong, &device)) * 1e-3;
    }
    report("digest", digest(&model));
}

fn inputs(at: &dyn Fn(&str) -> bool, device: &Device) -> Tensor<2> {
    let mut values = floats([16, 8]);
    if at("host race") {
        // Two threads add to one number.
        let sum = Arc::new(Mutex::new(0.1f32));
        let threads = [1e8f32, -1e8].map(|value| {
            let sum = sum.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_micros(now() % 3000));
                let mut sum = sum.lock().expect("no thread panics");
                *sum = (*sum + value) * 0.5;
            })
        });
        threads.into_iter().for_each(|thread| thread.join().expect("it adds"));
        values = TensorData::new(vec![*sum.lock().expect("no thread panics"); 16 * 8], [16, 8]);
    }
    let mut inputs = Tensor::<2>::from_data(values, device);
    if at("loader") {
        struct Rows;
        impl Batcher<f32, Tensor<2>> for Rows {
            fn batch(&self, items: Vec<f32>, device: &Device) -> Tensor<2> {
                thread::sleep(Duration::from_micros(now() % 5000));
                Tensor::from_data(TensorData::new(items, [1, 8]), device)
            }
        }
        let rows = InMemDataset::new((0..128).map(|value| value as f32 * 1e-3).collect());
        let loader = DataLoaderBuilder::new(Rows).batch_size(8).num_workers(4).set_device(device.clone());
        let loader = loader.build(rows);
        let rows: Vec<Tensor<2>> = loader.iter().map(|row| row.expect("a row")).collect();
        inputs = inputs + Tensor::cat(rows, 0);
    }
    if at("shuffle") {
        struct Rows;
        impl Batcher<f32, Tensor<2>> for Rows {
            fn batch(&self, items: Vec<f32>, device: &Device) -> Tensor<2> {
                Tensor::from_data(TensorData::new(items, [1, 8]), device)
            }
        }
        let rows = InMemDataset::new((0..128).map(|value| value as f32 * 1e-3).collect());
        let loader = DataLoaderBuilder::new(Rows).batch_size(8).shuffle(now()).set_device(device.clone());
        let loader = loader.build(rows);
        let rows: Vec<Tensor<2>> = loader.iter().map(|row| row.expect("a row")).collect();
        inputs = inputs + Tensor::cat(rows, 0);
    }
    if at("dtype") {
        let dtype = if (now() / 1000).is_multiple_of(2) { FloatDType::F16 } else { FloatDType::F32 };
        inputs = inputs.cast(dtype).cast(FloatDType::F32);
    }
    if at("thread draws") {
        // Each thread has a seed, by the order in which they come.
        let next = Arc::new(Mutex::new(0));
        let threads = [(); 2].map(|()| {
            let (next, device) = (next.clone(), device.clone());
            thread::spawn(move || {
                thread::sleep(Duration::from_micros(now() % 3000));
                let mut next = next.lock().expect("no thread panics");
                *next += 1;
                set_random_seed(*next);
                Tensor::<2>::random([16, 8], Distribution::Default, &device)
            })
        });
        let [one, other] = threads.map(|thread| thread.join().expect("it draws"));
        inputs = inputs + one - other;
    }
    if at("seed") {
        set_random_seed(now());
        inputs = inputs + Tensor::random([16, 8], Distribution::Default, device);
    }
    if at("draws") {
        for _ in 0..now() / 1000 % 2 {
            let _unused = Tensor::<2>::random([16, 8], Distribution::Default, device).sum().into_scalar::<f32>();
        }
        inputs = inputs + Tensor::random([16, 8], Distribution::Default, device);
    }
    inputs
}

/// Mean square of the outputs.
fn validate(model: &Model, wrong: bool, device: &Device) -> f32 {
    let device = device.clone().inner();
    let mut inputs = Tensor::<2>::from_data(floats([8, 8]), &device);
    if wrong && is("validation") {
        inputs = inputs + Tensor::from_data(TensorData::new(vec![now() as f32 * 1e-9; 8], [1, 8]), &device);
    }
    let _label = label("validation");
    model.clone().valid().forward(&inputs, false).powi_scalar(2).mean().into_scalar::<f32>()
}

/// Flips the lowest bit of one element of the weights of the head, in each second run.
struct FlipsOneBit;

impl ModuleMapper for FlipsOneBit {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if param.shape()[..] != [8, 4] {
            return param;
        }
        param.map(|tensor| {
            let device = tensor.device();
            let data = tensor.into_data();
            let mut values = data.try_to_vec::<f32>().expect("f32");
            values[2] = f32::from_bits(values[2].to_bits() ^ (now() / 1000 % 2) as u32);
            Tensor::from_data(TensorData::new(values, data.shape().clone()), &device).require_grad()
        })
    }
}

type Stream = Fusion<CubeBackend>;

/// The custom operation of [`clobbered`].
pub const OVERWRITE: &str = "tests::overwrite";

#[cube(launch_unchecked)]
fn overwrite_kernel(values: &mut [f32], value: f32) {
    values[0] = value;
}

/// Copies its operand, and writes into another tensor.
#[derive(Debug)]
struct Overwrite {
    ir: CustomOpIr,
    victim: TensorIr,
    value: Option<f32>,
}

impl Operation<FusionCubeRuntime> for Overwrite {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        let input = handles.get_float_tensor::<CubeBackend>(&self.ir.inputs[0]);
        let output = CubeBackend::float_add(input.clone(), input);
        handles.register_float_tensor::<CubeBackend>(&self.ir.outputs[0].id, output);
        if let Some(value) = self.value {
            let victim = handles.get_float_tensor::<CubeBackend>(&self.victim);
            // SAFETY: one unit writes one of the elements that the buffer has.
            unsafe {
                overwrite_kernel::launch_unchecked(
                    &victim.client,
                    CubeCount::Static(1, 1, 1),
                    CubeDim::new_1d(1),
                    BufferArg::from_raw_parts(victim.handle.clone(), 8),
                    value,
                );
            }
        }
        Ok(())
    }
}

fn overwriting(input: FloatTensor, victim: &FloatTensor, value: Option<f32>) -> FloatTensor {
    let client = input.client.clone();
    let output = TensorIr::uninit(client.create_empty_handle(), input.shape.clone(), input.dtype);
    let ir = CustomOpIr::new(OVERWRITE, &[input.into_ir()], &[output]);
    let victim =
        TensorIr { id: victim.id, shape: victim.shape.clone(), dtype: victim.dtype, status: TensorStatus::ReadOnly };
    let operation = Overwrite { ir: ir.clone(), victim, value };
    client.register(StreamId::current(), OperationIr::Custom(ir), operation).remove(0)
}

/// On deterministic kernels: a custom operation writes into a tensor that it is not given.
pub fn clobbered() {
    promise_deterministic(OVERWRITE, "it copies").expect("determinism is not enabled yet");
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let mut weights = custom::upload(vec![0.5; 8], [8]);
    for number in 0..STEPS {
        let _step = step(number);
        let hidden = Stream::float_tanh(weights.clone());
        let value = (number == WRONG.1).then(|| now() as f32 * 1e-9);
        let other = overwriting(weights, &hidden, value);
        weights = Stream::float_add(Stream::float_exp(hidden), other);
    }
    report("sum", custom::read(weights).expect("it was promised")[7]);
}
