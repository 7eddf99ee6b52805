//! A sequence on the tensors of an invocation.

use super::means::{Reduced, results_of_each};
use super::{Indexed, Place, ScalarOperand, Sequence};
use crate::backend::adapters::elementwise::{half, scalar_bits};
use crate::backend::adapters::indices::{Check, flagged_each};
use crate::backend::adapters::into_handle;
use crate::backend::ir;
use crate::error::{Error, Refusal};
use crate::route::handles::operand;
use crate::route::rerun::{Work, operands};
use burn_backend::DType::{BF16, F16, F32};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::{BoolStore, DType, Scalar, Shape};
use burn_cubecl::{CubeDevice, tensor::CubeTensor};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{Call, Operands, Results, run_donated};
use burn_deterministic_kernels::index_check::{Flag, check};
use burn_deterministic_kernels::reduce;
use burn_fusion::stream::Context;
use burn_ir::TensorId;
use cubecl::client::Client;
use cubecl::ir::ElemType;
use cubecl::prelude::InputScalar;
use cubecl::std::tensor::TensorHandle;

impl Sequence {
    /// Why the kernel cannot run on the tensors of `context`, which Burn has checked against each other already.
    pub(in crate::route) fn refused(&self, device: &CubeDevice, context: &Context<CubeFusionHandle>) -> Option<Error> {
        let shape = self.global_shape(context);
        if !self.lives_on() || u32::try_from(shape.num_elements()).is_ok() {
            return None;
        }
        let work = self.work(context);
        let refusal = Refusal {
            operation: work.operation.into(),
            operands: operands(&work.inputs),
            device: format!("{device:?}"),
            reason: format!("{} elements are more than a kernel can number", shape.num_elements()),
            remedy: "split the tensor into smaller ones".to_owned(),
        };
        Some(refusal.into())
    }

    /// Launches the kernels. Returns the results of the program, and of the reduction that it ends with.
    fn compute(
        &self,
        client: &Client,
        shape: &Shape,
        operands: Operands,
        flags: &[Flag<'_>],
    ) -> Result<(Results, Vec<TensorHandle>), KernelError> {
        let condition_dtype = self.condition_type();
        let Some(reduction) = &self.reduction else {
            let results = match &self.rows {
                Some(rows) => rows.run_donated(client, shape, operands, condition_dtype, flags, &self.donated),
                None => run_donated(client, &self.program, shape, operands, condition_dtype, &self.donated),
            };
            return Ok((results?, vec![]));
        };
        let (operation, axes) = (reduction.operation(), &reduction.axes[..]);
        let (results, result) = match reduction.is_operand {
            // As its strides are, and without the program.
            true => {
                let [operand] = operands.words.try_into().expect("one operand, which is moved");
                (Results::default(), reduce::reduce(client, operation, operand, axes, None)?)
            }
            false => {
                let input = Call { program: &self.program, shape, operands, condition_dtype };
                reduce::reduce_program(client, operation, input, axes, None)?
            }
        };
        let mut reduced = results_of_each(client, &[Reduced { reduction, shape, result, mean: None }])?;
        Ok((results, reduced.remove(0)))
    }

    /// The sequence as the program knows it.
    pub(in crate::route) fn work(&self, context: &Context<CubeFusionHandle>) -> Work {
        let global = |id: &TensorId| context.tensors[id].clone();
        Work {
            operation: self.methods.join(", "),
            inputs: self.words.iter().chain(&self.conditions).map(|operand| global(&operand.id)).collect(),
            outputs: self.outputs().map(global).collect(),
        }
    }

    /// What lives on after the sequence.
    pub(in crate::route) fn outputs(&self) -> impl Iterator<Item = &TensorId> {
        let reduced = self.reduction.iter().flat_map(|reduction| &reduction.outs);
        self.results.iter().map(|(id, ..)| id).chain(reduced.map(|(_, out)| out))
    }

    /// Whether something lives on after the sequence.
    pub(super) fn lives_on(&self) -> bool {
        self.outputs().next().is_some()
    }

    /// The shape of the results in this invocation, but for the reduction's.
    pub(super) fn global_shape(&self, context: &Context<CubeFusionHandle>) -> Shape {
        // Any of the operations has it, whether its result lives on or not.
        context.tensors[&self.first].shape.clone()
    }

    /// The number of elements of each result in this invocation, but for the reduction's.
    pub(in crate::route) fn elements(&self, context: &Context<CubeFusionHandle>) -> usize {
        self.global_shape(context).num_elements()
    }

    /// The words that the program reads.
    pub(super) fn word_operands(&self, context: &mut Context<CubeFusionHandle>) -> Vec<CubeTensor> {
        self.words.iter().map(|tensor| operand(tensor, context)).collect()
    }

    /// The operands of the program: `words`, and the others among the tensors of `context`.
    pub(super) fn operands(&self, words: Vec<CubeTensor>, context: &mut Context<CubeFusionHandle>) -> Operands {
        let scalars = self.scalars.iter().map(|scalar| scalar.bits(context)).collect();
        let conditions = self.conditions.iter().map(|tensor| into_handle(operand(tensor, context))).collect();
        Operands { words: words.into_iter().map(into_handle).collect(), conditions, scalars }
    }

    /// Runs the program on the tensors of `context`. Returns whether a kernel was launched.
    ///
    /// # Panics
    ///
    /// When the kernel refuses the operands; [`refused`](Self::refused) checks that first.
    pub(in crate::route) fn run(&self, device: &CubeDevice, context: &mut Context<CubeFusionHandle>) -> bool {
        if !self.lives_on() && self.indexed.is_empty() {
            return false;
        }
        let shape = self.global_shape(context);
        let client = device.client();
        let words = self.word_operands(context);
        let checks = self.indexed.iter().map(|indexed| indexed.check(&words, &shape, context)).collect();
        let indices: Vec<TensorHandle> =
            self.indexed.iter().map(|indexed| into_handle(words[indexed.index].clone())).collect();
        let has_indices = indices.iter().any(|index| !index.shape().contains(&0));
        let operands = self.operands(words, context);
        let results = flagged_each(device, checks, |flags| {
            if self.rows.is_none() || !self.lives_on() {
                // A kernel of rows checks them itself.
                for (index, &flag) in indices.into_iter().zip(flags) {
                    check(&client, index, &shape[shape.num_dims() - 1..], flag)?;
                }
            }
            self.lives_on().then(|| self.compute(&client, &shape, operands, flags)).transpose()
        });
        let results = results.unwrap_or_else(|error| panic!("{} on {device:?}: {error}", self.methods.join(", ")));
        let Some((results, reduced)) = results else { return has_indices };
        self.register(results, reduced, device, context);
        shape.num_elements() > 0
    }

    /// Gives the tensors that live on after the sequence their contents.
    pub(super) fn register(
        &self,
        results: Results,
        reduced: Vec<TensorHandle>,
        device: &CubeDevice,
        context: &mut Context<CubeFusionHandle>,
    ) {
        let client = device.client();
        let (mut words, mut conditions) = (results.words.into_iter(), results.conditions.into_iter());
        let mut halves = results.halves.into_iter();
        for (id, place, dtype) in &self.results {
            let result = match place {
                Place::Word(_) if half(*dtype).is_some() => halves.next(),
                Place::Word(_) => words.next(),
                Place::Condition(_) => conditions.next(),
                Place::Slice => None,
            };
            let result = result.expect("as many results as outputs");
            let out = &context.tensors[id];
            let (global, shape) = (out.id, out.shape.clone());
            assert_eq!(result.shape(), &shape, "the kernel's result, and Burn's shape of it");
            let tensor = CubeTensor::new_contiguous(client.clone(), device.clone(), shape, result.handle, *dtype);
            context.handles.register_handle(global, ir::handle(tensor));
        }
        let outs = self.reduction.iter().flat_map(|reduction| &reduction.outs);
        for ((_, out), reduced) in outs.zip(reduced) {
            let out = &context.tensors[out];
            let (global, shape) = (out.id, out.shape.clone());
            let tensor = CubeTensor::new_contiguous(client.clone(), device.clone(), shape, reduced.handle, F32);
            context.handles.register_handle(global, ir::handle(tensor));
        }
    }

    /// The storage type of the sequence's bool tensors.
    pub(super) fn condition_type(&self) -> ElemType {
        dtype_to_elem_type(self.condition_dtype.unwrap_or(DType::Bool(BoolStore::U32)))
    }
}

impl Indexed {
    /// What is checked, where rows have the last axis of `shape` and the kernel reads `words`.
    fn check(&self, words: &[CubeTensor], shape: &Shape, context: &Context<CubeFusionHandle>) -> Check {
        let operand = |id: &TensorId| (context.tensors[id].shape.clone(), context.tensors[id].dtype);
        Check {
            operation: self.method,
            operands: self.operands.iter().map(operand).collect(),
            indices: words[self.index].clone(),
            sizes: vec![shape[shape.num_dims() - 1]],
            output: Some(context.tensors[&self.out].id),
        }
    }
}

impl ScalarOperand {
    /// # Panics
    ///
    /// When the number is not an i32; the operation by itself panics as well.
    fn bits(self, context: &Context<CubeFusionHandle>) -> u32 {
        match self {
            Self::Given(id, dtype @ (F32 | F16 | BF16)) => scalar_bits(context.scalars[&id].into(), dtype),
            Self::Given(id, dtype) => {
                let scalar = InputScalar::new(Scalar::from(context.scalars[&id]), dtype_to_elem_type(dtype));
                u32::from_ne_bytes(scalar.as_bytes().try_into().expect("a word has four bytes"))
            }
            Self::Bits(bits) => bits,
            Self::Start(range, tensor, axis) => {
                context.ranges[range].to_range(context.tensors[&tensor].shape[axis]).start as u32
            }
            Self::Length(tensor, axis) => context.tensors[&tensor].shape[axis] as u32,
        }
    }
}
