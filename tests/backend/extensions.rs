//! burn-signal's transforms and burn-linalg's decomposition, which reach Burn's stream as custom operations.

use crate::bits::floats;
use crate::closed_world::custom::{FloatTensor, read, upload};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{ExecutionError, read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_fusion::Fusion;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation, OperationIr, ScalarIr, StreamId, TensorIr};
use std::f64::consts::PI;

type Stream = Fusion<CubeBackend>;

/// What burn-signal would run, where the route did not know the operation.
#[derive(Debug)]
struct Unreachable;

impl Operation<FusionCubeRuntime> for Unreachable {
    fn execute(&self, _: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        panic!("the route has a kernel of its own")
    }
}

/// Registers the operation as burn-signal does: axis, whether a length is given, and the length.
fn register(
    id: &'static str,
    inputs: Vec<FloatTensor>,
    results: usize,
    axis: usize,
    n: Option<usize>,
) -> Vec<FloatTensor> {
    let (client, dtype) = (inputs[0].client.clone(), inputs[0].dtype);
    let mut shape = inputs[0].shape.clone();
    shape[axis] = match id {
        "signal::rfft" => n.unwrap_or(shape[axis]) / 2 + 1,
        _ => n.unwrap_or((shape[axis] - 1) * 2),
    };
    let inputs: Vec<TensorIr> = inputs.into_iter().map(|input| input.into_ir()).collect();
    let outputs: Vec<TensorIr> =
        (0..results).map(|_| TensorIr::uninit(client.create_empty_handle(), shape.clone(), dtype)).collect();
    let length = [ScalarIr::Bool(n.is_some()), ScalarIr::UInt(n.unwrap_or_default() as u64)];
    let scalars = [ScalarIr::UInt(axis as u64)].into_iter().chain(length).collect();
    let ir = CustomOpIr::with_scalars(id, &inputs, &outputs, scalars);
    client.register(StreamId::current(), OperationIr::Custom(ir), Unreachable)
}

fn rfft(signal: FloatTensor, axis: usize, n: Option<usize>) -> [FloatTensor; 2] {
    register("signal::rfft", vec![signal], 2, axis, n).try_into().expect("two parts")
}

fn irfft([real, imaginary]: [FloatTensor; 2], axis: usize, n: Option<usize>) -> FloatTensor {
    register("signal::irfft", vec![real, imaginary], 1, axis, n).remove(0)
}

fn values(tensor: FloatTensor) -> Vec<f32> {
    read(tensor).expect("a transform is no refused operation")
}

fn signal(length: usize) -> Vec<f32> {
    floats([length]).try_to_vec::<f32>().expect("f32")
}

/// The sum that defines it.
fn assert_spectrum(signal: &[f32], n: usize, real: &[f32], imaginary: &[f32]) {
    assert_eq!((real.len(), imaginary.len()), (n / 2 + 1, n / 2 + 1));
    for k in 0..=n / 2 {
        let terms = signal.iter().take(n).enumerate().map(|(i, &value)| {
            let angle = -2.0 * PI * (i * k % n) as f64 / n as f64;
            [f64::from(value) * angle.cos(), f64::from(value) * angle.sin()]
        });
        let [re, im] = terms.fold([0.0, 0.0], |sum, term| [sum[0] + term[0], sum[1] + term[1]]);
        let close = |got: f32, want: f64| (f64::from(got) - want).abs() < 1e-4;
        assert!(
            close(real[k], re) && close(imaginary[k], im),
            "bin {k} of {n}: {} {} {re} {im}",
            real[k],
            imaginary[k]
        );
    }
}

#[test]
fn transforms_of_signals_and_back() {
    let _enabled = crate::deterministic_device();
    // One block of Burn's cache serves all lengths.
    for (length, n) in [(16, None), (16, Some(8)), (16, Some(32)), (13, Some(16)), (1, None), (2, None), (64, Some(1))]
    {
        let line = signal(length);
        let size = n.unwrap_or(length);
        let parts = rfft(upload(line.clone(), [length]), 0, n);
        let [real, imaginary] = parts.clone().map(values);
        assert_spectrum(&line, size, &real, &imaginary);
        let back = values(irfft(parts, 0, Some(size)));
        let padded = line.iter().copied().chain(std::iter::repeat(0.0));
        assert!(back.iter().zip(padded).all(|(got, want)| (got - want).abs() < 1e-5), "{length}, {n:?}: {back:?}");
    }
}

#[test]
fn transforms_along_any_axis_of_any_layout() {
    let _enabled = crate::deterministic_device();
    let line = signal(4 * 8 * 3);
    let tensor = upload(line.clone(), [4, 8, 3]);
    // What is transposed has its axis where the other one was.
    let along = [rfft(tensor.clone(), 1, None), rfft(Stream::float_swap_dims(tensor, 1, 2), 2, None)];
    let [middle, last] = along.map(|parts| parts.map(values));
    for (batch, column) in (0..4).flat_map(|batch| (0..3).map(move |column| (batch, column))) {
        let signal: Vec<f32> = (0..8).map(|k| line[(batch * 8 + k) * 3 + column]).collect();
        let part = |part: usize| (0..5).map(|k| middle[part][(batch * 5 + k) * 3 + column]).collect::<Vec<_>>();
        assert_spectrum(&signal, 8, &part(0), &part(1));
        for part in 0..2 {
            for k in 0..5 {
                let (here, there) =
                    (middle[part][(batch * 5 + k) * 3 + column], last[part][(batch * 3 + column) * 5 + k]);
                assert_eq!(here.to_bits(), there.to_bits());
            }
        }
    }
}

#[test]
fn transforms_give_one_result() {
    let _enabled = crate::deterministic_device();
    let line = signal(5 * 256);
    let run = || {
        let parts = rfft(upload(line.clone(), [5, 256]), 1, None);
        let back = irfft(parts.clone(), 1, None);
        let [real, imaginary] = parts;
        [real, imaginary, back].map(|part| values(part).iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    };
    let first = run();
    assert!((0..20).all(|_| run() == first));
}

#[test]
fn transforms_of_a_signal_do_not_depend_on_its_batch() {
    let _enabled = crate::deterministic_device();
    let bits = |part: FloatTensor| values(part).iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let lines = signal(64 * 256);
    let transform = |line: &[f32]| {
        let parts = rfft(upload(line.to_vec(), [line.len() / 256, 256]), 1, None);
        let back = irfft(parts.clone(), 1, None);
        let [real, imaginary] = parts;
        [real, imaginary, back].map(bits)
    };
    let all = transform(&lines);
    for (first, size) in [(0, 1), (63, 1), (0, 2), (5, 7), (31, 33)] {
        for (got, all) in transform(&lines[first * 256..][..size * 256]).iter().zip(&all) {
            let length = all.len() / 64;
            assert_eq!(*got, all[first * length..][..size * length], "{size} signals from {first}");
        }
    }
}

/// Stands in for burn-linalg's code: reads a matrix, and uploads three.
#[derive(Debug)]
struct OnTheHost(CustomOpIr);

impl Operation<FusionCubeRuntime> for OnTheHost {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        let matrix =
            read_sync(CubeBackend::float_into_data(handles.get_float_tensor::<CubeBackend>(&self.0.inputs[0])))?;
        for output in &self.0.outputs {
            let data = CubeBackend::float_from_data(matrix.clone(), &crate::cube_device());
            handles.register_float_tensor::<CubeBackend>(&output.id, data);
        }
        Ok(())
    }
}

#[test]
fn a_decomposition_on_the_host_runs_as_it_is() {
    let _enabled = crate::deterministic_device();
    let matrix = Stream::float_mul_scalar(upload(signal(6), [2, 3]), 2.0.into());
    let (client, shape, dtype) = (matrix.client.clone(), matrix.shape.clone(), matrix.dtype);
    let outputs: Vec<TensorIr> =
        (0..3).map(|_| TensorIr::uninit(client.create_empty_handle(), shape.clone(), dtype)).collect();
    let scalars = vec![ScalarIr::UInt(30), ScalarIr::Bool(false)];
    let ir = CustomOpIr::with_scalars("linalg::svd", &[matrix.into_ir()], &outputs, scalars);
    let factors = client.register(StreamId::current(), OperationIr::Custom(ir.clone()), OnTheHost(ir));
    let doubled: Vec<f32> = signal(6).iter().map(|value| value * 2.0).collect();
    assert!(factors.into_iter().all(|factor| values(factor) == doubled));
}

#[test]
fn a_length_that_is_no_power_of_two_is_refused() {
    let _enabled = crate::deterministic_device();
    let refused = rfft(upload(signal(6), [6]), 0, None);
    let text = read(refused[0].clone()).expect_err("there is no such transform").to_string();
    assert!(text.contains("`signal::rfft` was refused"), "{text}");
}
