//! A custom operation that writes where it should read.

use super::programs::STEP;
use super::{compared, first, read, recorded};
use crate::closed_world::custom::{FloatTensor, read as values, upload};
use crate::process::{Folder, Program, report};
use burn_backend::ExecutionError;
use burn_backend::ops::FloatTensorOps;
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic::{Determinism, enable_op_determinism, promise_deterministic, step};
use burn_deterministic_recording::Record;
use burn_deterministic_recording::diff::{Cause, Owner};
use burn_fusion::Fusion;
use burn_fusion::custom::{CustomOpIr, HandleContainer, Operation, OperationIr, StreamId, TensorIr};
use cubecl::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

const ID: &str = "tests::overwrite";

/// Twice its operand, of whose first element it then makes `written`.
#[derive(Debug)]
struct Overwrite {
    ir: CustomOpIr,
    written: Option<f32>,
}

impl Operation<FusionCubeRuntime> for Overwrite {
    fn execute(&self, handles: &mut HandleContainer<CubeFusionHandle>) -> Result<(), ExecutionError> {
        let input = handles.get_float_tensor::<CubeBackend>(&self.ir.inputs[0]);
        let output = CubeBackend::float_add(input.clone(), input.clone());
        if let Some(written) = self.written {
            // SAFETY: one unit writes the first element, which the tensor has.
            unsafe {
                overwrite::launch_unchecked(
                    &input.client,
                    CubeCount::Static(1, 1, 1),
                    CubeDim::new_1d(1),
                    BufferArg::from_raw_parts(input.handle.clone(), 1),
                    written,
                );
            }
        }
        handles.register_float_tensor::<CubeBackend>(&self.ir.outputs[0].id, output);
        Ok(())
    }
}

#[cube(launch_unchecked)]
fn overwrite(tensor: &mut [f32], value: f32) {
    tensor[0] = value;
}

fn overwriting(input: FloatTensor, written: Option<f32>) -> FloatTensor {
    let client = input.client.clone();
    let output = TensorIr::uninit(client.create_empty_handle(), input.shape.clone(), input.dtype);
    let ir = CustomOpIr::new(ID, &[input.into_ir()], &[output]);
    let operation = Overwrite { ir: ir.clone(), written };
    client.register(StreamId::current(), OperationIr::Custom(ir), operation).remove(0)
}

/// At one step the operation writes the time into the tensor that it should only read.
pub fn overwritten() {
    promise_deterministic(ID, "it adds").expect("determinism is not enabled yet");
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos();
    let mut weights = upload(vec![0.5; 8], [8]);
    for number in 0..6 {
        let _step = step(number);
        let doubled = overwriting(weights.clone(), (number == STEP).then_some(now as f32));
        weights = Fusion::<CubeBackend>::float_mul(weights, doubled);
    }
    report("first", values(weights).expect("it was promised")[0]);
}

/// Its own result agrees, and so does the result of every other operation but the one that reads what it has overwritten.
#[test]
fn a_custom_operation_that_overwrites_its_operand_is_named() {
    let programs = [(); 2].map(|()| Program::new("overwritten"));
    let comparison = compared(programs, "operations");
    let (cause, operation, step) = first(&comparison);
    assert_eq!((operation, step), (ID, Some(STEP)), "{comparison:?}");
    assert!(matches!(cause, Cause::Kernel(Owner::Program)), "{cause:?}");
}

#[test]
fn what_an_operand_holds_is_recorded_before_and_after() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    recorded(Program::new("overwritten"), &file, "operations").run();
    let mut before = None;
    let mut kept = Vec::new();
    for record in read(file).records {
        let Record::Operation(operation) = record else { continue };
        if operation.name == ID {
            let [after] = operation.operands_after[..] else { panic!("one operand: {operation:?}") };
            kept.push(after.is_some() && after == before);
        } else {
            assert!(operation.operands_after.is_empty(), "{operation:?}");
            before = operation.outputs[0].digest;
        }
    }
    assert_eq!(kept, [true, true, true, false, true, true]);
}
