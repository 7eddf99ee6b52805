//! Custom operations of backend extensions: refused by name, or run on the program's word.

use crate::process::{Program, report};
use burn_backend::ops::FloatTensorOps;
use burn_backend::{ExecutionError, Shape, TensorData, read_sync};
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic::{Determinism, Error, OnViolation, enable_op_determinism, promise_deterministic, promises};
use burn_fusion::Fusion;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation, OperationIr, StreamId, TensorIr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Burn's own backend on CubeCL devices, which every `Tensor` is on.
type Stream = Fusion<CubeBackend>;

pub type FloatTensor = burn_backend::tensor::FloatTensor<Stream>;

const ID: &str = "tests::drift";

/// Adds one to each element, and to the last one also `drift` times the number of earlier calls.
#[derive(Debug)]
struct Drift {
    ir: CustomOpIr,
    drift: f32,
    calls: Arc<AtomicU32>,
}

impl Operation<FusionCubeRuntime> for Drift {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        let input = handles.get_float_tensor::<CubeBackend>(&self.ir.inputs[0]);
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut steps = vec![1.0; self.ir.inputs[0].shape.num_elements()];
        if let Some(last) = steps.last_mut() {
            *last += self.drift * calls as f32;
        }
        let steps = TensorData::new(steps, self.ir.inputs[0].shape.clone());
        let steps = CubeBackend::float_from_data(steps, &crate::cube_device());
        // In place, if nobody else holds the input.
        let output = CubeBackend::float_add(input, steps);
        handles.register_float_tensor::<CubeBackend>(&self.ir.outputs[0].id, output);
        Ok(())
    }
}

/// The custom operation on `input`, and a count of its calls.
pub fn drifting(input: FloatTensor, drift: f32) -> (FloatTensor, Arc<AtomicU32>) {
    drifting_after(input, drift, 0)
}

/// The same after so many earlier calls.
pub fn drifting_after(input: FloatTensor, drift: f32, calls: u32) -> (FloatTensor, Arc<AtomicU32>) {
    let (client, calls) = (input.client.clone(), Arc::new(AtomicU32::new(calls)));
    let output = TensorIr::uninit(client.create_empty_handle(), input.shape.clone(), input.dtype);
    let ir = CustomOpIr::new(ID, &[input.into_ir()], &[output]);
    let operation = Drift { ir: ir.clone(), drift, calls: calls.clone() };
    let mut outputs = client.register(StreamId::current(), OperationIr::Custom(ir), operation);
    (outputs.remove(0), calls)
}

pub fn upload<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FloatTensor {
    Stream::float_from_data(TensorData::new(values, Shape::from(shape)), &crate::cube_device())
}

pub fn read(tensor: FloatTensor) -> Result<Vec<f32>, ExecutionError> {
    let data = read_sync(Stream::float_into_data(tensor))?;
    Ok(data.try_to_vec::<f32>().expect("f32"))
}

pub fn promise() {
    promise_deterministic(ID, "each element is one sum").expect("determinism is not enabled yet");
}

pub fn unknown_custom() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let input = upload(vec![1.0, 2.0], [1, 2]);
    let (output, calls) = drifting(input.clone(), 0.0);
    let dependent = Stream::float_sum(output.clone());
    for refused in [&dependent, &output, &dependent] {
        let text = read(refused.clone()).expect_err("nobody knows the operation").to_string();
        for part in ["`tests::drift` was refused", "[1, 2] f32", "custom operation", "`promise_deterministic`"] {
            assert!(text.contains(part), "{text}\nlacks\n{part}");
        }
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(read(input).expect("it took part in nothing that ran"), [1.0, 2.0]);
}

pub fn warned_custom() {
    let settings = Determinism::default().on_violation(OnViolation::Warn);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    let (output, _) = drifting(upload(vec![1.0, 2.0], [2]), 0.0);
    assert_eq!(read(output).expect("it is let pass"), [2.0, 3.0]);
    assert!(promises().is_empty());
}

pub fn promised_custom() {
    promise();
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let too_late = promise_deterministic("tests::other", "it is not asked for").expect_err("too late");
    assert_eq!(too_late, Error::PromisedTooLate { operation: "tests::other".to_owned() });
    report("too late", too_late);
    let input = upload(vec![1.0, 2.0], [2]);
    let (output, calls) = drifting(Stream::float_mul_scalar(input, 3.0.into()), 0.0);
    let (output, _) = drifting(output, 0.0);
    let dependent = Stream::float_sum(output.clone());
    assert_eq!(read(output).expect("it was promised"), [5.0, 8.0]);
    assert_eq!(read(dependent).expect("it was promised"), [13.0]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let [promise] = &promises()[..] else { panic!("one promise was made") };
    assert_eq!((promise.operation.as_str(), promise.uses), (ID, 2));
    assert_eq!(promise.reason, "each element is one sum");
}

#[test]
fn a_custom_operation_is_refused_by_name() {
    Program::new("unknown_custom").run();
}

#[test]
fn warn_lets_a_custom_operation_pass() {
    let output = Program::new("warned_custom").run();
    assert!(output.stderr().contains("`tests::drift` was refused"), "{output}");
}

#[test]
fn a_promised_custom_operation_runs_and_is_counted() {
    let output = Program::new("promised_custom").run();
    output.assert_quiet();
    assert!(output.reported("too late").contains("`tests::other` was promised too late"), "{output}");
}
