//! Runs of element-wise operations, as one kernel.
//!
//! A run takes f32 operations whose results have one shape. The kernel family promises that sharing a kernel changes no
//! bit, so where a run begins and ends, which Burn decides by what it has cached, does not matter.

use super::interpret::taken;
use super::rerun::{Work, operands};
use crate::catalogue;
use crate::error::{Error, Refusal};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::{BoolStore, DType, Shape};
use burn_cubecl::kernel::untile;
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::elementwise::{
    Binary, Comparison, Condition, Instruction, Logic, Operands, Program, Unary, Value, run,
};
use burn_fusion::stream::{Context, ScalarId};
use burn_ir::{
    BackendIr, BaseOperationIr, BinaryOpIr, BoolOperationIr, FloatOperationIr, NumericOperationIr, OperationIr,
    ScalarIr, ScalarOpIr, TensorHandle, TensorId, TensorIr, TensorStatus, UnaryOpIr,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Element-wise operations in Burn's relative form, and the program that computes them.
#[derive(Clone)]
pub(super) struct Run {
    program: Arc<Program>,
    /// The relative shape of every result.
    shape: Shape,
    floats: Vec<TensorIr>,
    conditions: Vec<TensorIr>,
    /// The placeholders of the scalar operands.
    scalars: Vec<ScalarId>,
    /// What each tensor of the run is to the program.
    places: HashMap<TensorId, Place>,
    /// Results that live on after the run, in program order.
    results: Vec<(TensorId, Place)>,
    condition_dtype: Option<DType>,
    max_tensors: usize,
    /// The operations' methods, for what the program is told of a refusal.
    methods: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Float(Value),
    Condition(Condition),
}

impl Run {
    /// An empty run whose results have the shape of `operation`'s; a kernel on the device binds `max_tensors`.
    pub(super) fn new(operation: &OperationIr, max_tensors: usize) -> Option<Self> {
        let shape = operation.outputs().next()?.shape.clone();
        let mut run = Self {
            program: Arc::default(),
            shape,
            floats: Vec::new(),
            conditions: Vec::new(),
            scalars: Vec::new(),
            places: HashMap::new(),
            results: Vec::new(),
            condition_dtype: None,
            max_tensors,
            methods: Vec::new(),
        };
        run.take(operation).then_some(run)
    }

    /// Takes `operation` into the run, or returns false and leaves the run as it was.
    pub(super) fn take(&mut self, operation: &OperationIr) -> bool {
        if let OperationIr::Drop(tensor) = operation {
            self.results.retain(|(id, _)| *id != tensor.id);
            return true;
        }
        let mut extended = self.clone();
        let taken = extended.translate(operation).is_some()
            && extended.floats.len() + extended.conditions.len() + extended.results.len() <= self.max_tensors;
        if taken {
            *self = extended;
        }
        taken
    }

    /// Closes the run: what lives on after it becomes the outputs of the program.
    pub(super) fn finish(mut self) -> Self {
        let program = Arc::make_mut(&mut self.program);
        for (_, place) in &self.results {
            match place {
                Place::Float(Value::Result(index)) => program.output_float(*index),
                Place::Condition(Condition::Result(index)) => program.output_condition(*index),
                Place::Float(_) | Place::Condition(_) => unreachable!("results are results of instructions"),
            }
        }
        self
    }

    fn translate(&mut self, operation: &OperationIr) -> Option<()> {
        let method = catalogue::operation(operation);
        if !catalogue::FUSED.contains(&method) {
            return None;
        }
        self.methods.push(method);
        use {BaseOperationIr as Base, FloatOperationIr as Float, NumericOperationIr as Numeric};
        match operation {
            OperationIr::NumericFloat(DType::F32, operation) => match operation {
                Numeric::Add(ir) => self.binary(ir, Binary::Add),
                Numeric::Sub(ir) => self.binary(ir, Binary::Subtract),
                Numeric::Mul(ir) => self.binary(ir, Binary::Multiply),
                Numeric::Div(ir) => self.binary(ir, Binary::Divide),
                Numeric::AddScalar(ir) => self.scalar(ir, Binary::Add),
                Numeric::SubScalar(ir) => self.scalar(ir, Binary::Subtract),
                Numeric::MulScalar(ir) => self.scalar(ir, Binary::Multiply),
                Numeric::DivScalar(ir) => self.scalar(ir, Binary::Divide),
                Numeric::Abs(ir) => self.unary(ir, Unary::Absolute),
                Numeric::Neg(ir) => self.unary(ir, Unary::Negate),
                Numeric::Greater(ir) => self.compare(ir, Comparison::Greater),
                Numeric::GreaterEqual(ir) => self.compare(ir, Comparison::GreaterEqual),
                Numeric::Lower(ir) => self.compare(ir, Comparison::Less),
                Numeric::LowerEqual(ir) => self.compare(ir, Comparison::LessEqual),
                Numeric::GreaterElem(ir) => self.compare_scalar(ir, Comparison::Greater),
                Numeric::GreaterEqualElem(ir) => self.compare_scalar(ir, Comparison::GreaterEqual),
                Numeric::LowerElem(ir) => self.compare_scalar(ir, Comparison::Less),
                Numeric::LowerEqualElem(ir) => self.compare_scalar(ir, Comparison::LessEqual),
                _ => None,
            },
            OperationIr::Float(DType::F32, operation) => match operation {
                Float::Exp(ir) => self.unary(ir, Unary::Exponential),
                Float::Log(ir) => self.unary(ir, Unary::Logarithm),
                Float::Sqrt(ir) => self.unary(ir, Unary::SquareRoot),
                Float::Tanh(ir) => self.unary(ir, Unary::HyperbolicTangent),
                Float::Recip(ir) => self.unary(ir, Unary::Reciprocal),
                _ => None,
            },
            OperationIr::BaseFloat(operation) => match operation {
                Base::Equal(ir) => self.compare(ir, Comparison::Equal),
                Base::EqualElem(ir) => self.compare_scalar(ir, Comparison::Equal),
                Base::MaskWhere(ir) => {
                    let mask = self.condition_of(&ir.mask)?;
                    let (masked, kept) = (self.float_of(&ir.value)?, self.float_of(&ir.tensor)?);
                    self.float(&ir.out, Instruction::Select(mask, masked, kept))
                }
                Base::MaskFill(ir) => {
                    let mask = self.condition_of(&ir.mask)?;
                    let (masked, kept) = (self.scalar_of(&ir.value)?, self.float_of(&ir.tensor)?);
                    self.float(&ir.out, Instruction::Select(mask, masked, kept))
                }
                _ => None,
            },
            OperationIr::Bool(operation) => match operation {
                BoolOperationIr::IntoFloat(ir) => {
                    let mask = self.condition_of(&ir.input)?;
                    self.float(&ir.out, Instruction::Indicator(mask))
                }
                BoolOperationIr::Not(ir) => {
                    let mask = self.condition_of(&ir.input)?;
                    self.condition(&ir.out, Instruction::Not(mask))
                }
                BoolOperationIr::And(ir) => self.logic(ir, Logic::And),
                BoolOperationIr::Or(ir) => self.logic(ir, Logic::Or),
                _ => None,
            },
            _ => None,
        }
    }

    fn unary(&mut self, ir: &UnaryOpIr, function: Unary) -> Option<()> {
        let x = self.float_of(&ir.input)?;
        self.float(&ir.out, Instruction::Unary(function, x))
    }

    fn binary(&mut self, ir: &BinaryOpIr, function: Binary) -> Option<()> {
        let (a, b) = (self.float_of(&ir.lhs)?, self.float_of(&ir.rhs)?);
        self.float(&ir.out, Instruction::Binary(function, a, b))
    }

    fn scalar(&mut self, ir: &ScalarOpIr, function: Binary) -> Option<()> {
        let (a, b) = (self.float_of(&ir.lhs)?, self.scalar_of(&ir.rhs)?);
        self.float(&ir.out, Instruction::Binary(function, a, b))
    }

    fn compare(&mut self, ir: &BinaryOpIr, comparison: Comparison) -> Option<()> {
        let (a, b) = (self.float_of(&ir.lhs)?, self.float_of(&ir.rhs)?);
        self.condition(&ir.out, Instruction::Compare(comparison, a, b))
    }

    fn compare_scalar(&mut self, ir: &ScalarOpIr, comparison: Comparison) -> Option<()> {
        let (a, b) = (self.float_of(&ir.lhs)?, self.scalar_of(&ir.rhs)?);
        self.condition(&ir.out, Instruction::Compare(comparison, a, b))
    }

    fn logic(&mut self, ir: &BinaryOpIr, logic: Logic) -> Option<()> {
        let (a, b) = (self.condition_of(&ir.lhs)?, self.condition_of(&ir.rhs)?);
        self.condition(&ir.out, Instruction::Logic(logic, a, b))
    }

    /// Adds an instruction whose result is the float tensor `out`.
    fn float(&mut self, out: &TensorIr, instruction: Instruction) -> Option<()> {
        if out.dtype != DType::F32 || out.shape != self.shape {
            return None;
        }
        let place = Place::Float(Arc::make_mut(&mut self.program).float(instruction));
        self.result(out, place)
    }

    /// Adds an instruction whose result is the bool tensor `out`.
    fn condition(&mut self, out: &TensorIr, instruction: Instruction) -> Option<()> {
        self.agree_on(out.dtype)?;
        if out.shape != self.shape {
            return None;
        }
        let place = Place::Condition(Arc::make_mut(&mut self.program).condition(instruction));
        self.result(out, place)
    }

    fn result(&mut self, out: &TensorIr, place: Place) -> Option<()> {
        self.places.insert(out.id, place);
        self.results.push((out.id, place));
        Some(())
    }

    fn float_of(&mut self, tensor: &TensorIr) -> Option<Value> {
        if tensor.dtype != DType::F32 {
            return None;
        }
        match self.place_of(tensor) {
            Some(Place::Float(value)) => Some(value),
            Some(Place::Condition(_)) => None,
            None => {
                let value = Value::Input(self.floats.len());
                self.floats.push(tensor.clone());
                self.places.insert(tensor.id, Place::Float(value));
                Some(value)
            }
        }
    }

    fn condition_of(&mut self, tensor: &TensorIr) -> Option<Condition> {
        self.agree_on(tensor.dtype)?;
        match self.place_of(tensor) {
            Some(Place::Condition(condition)) => Some(condition),
            Some(Place::Float(_)) => None,
            None => {
                let condition = Condition::Input(self.conditions.len());
                self.conditions.push(tensor.clone());
                self.places.insert(tensor.id, Place::Condition(condition));
                Some(condition)
            }
        }
    }

    /// The place of a tensor the run has met; notes that `tensor` may be its last use.
    fn place_of(&mut self, tensor: &TensorIr) -> Option<Place> {
        let place = *self.places.get(&tensor.id)?;
        if tensor.status == TensorStatus::ReadWrite {
            self.results.retain(|(id, _)| *id != tensor.id);
            let operands = self.floats.iter_mut().chain(&mut self.conditions);
            operands.filter(|operand| operand.id == tensor.id).for_each(|operand| operand.status = tensor.status);
        }
        Some(place)
    }

    fn scalar_of(&mut self, scalar: &ScalarIr) -> Option<Value> {
        let ScalarIr::UInt(placeholder) = *scalar else { return None };
        self.scalars.push(ScalarId { value: placeholder });
        Some(Value::Scalar(self.scalars.len() - 1))
    }

    /// All bool tensors of a run are stored alike, as 0 and 1 in an unsigned integer.
    fn agree_on(&mut self, dtype: DType) -> Option<()> {
        match dtype {
            DType::Bool(BoolStore::U8 | BoolStore::U32)
                if self.condition_dtype.is_none_or(|agreed| agreed == dtype) =>
            {
                self.condition_dtype = Some(dtype);
                Some(())
            }
            _ => None,
        }
    }

    /// Why the kernel cannot run on the tensors of `context`, which Burn has checked against each other already.
    pub(super) fn refused(&self, device: &CubeDevice, context: &Context<CubeFusionHandle>) -> Option<Error> {
        let shape = self.global_shape(context)?;
        if u32::try_from(shape.num_elements()).is_ok() {
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

    /// The run as the program knows it.
    pub(super) fn work(&self, context: &Context<CubeFusionHandle>) -> Work {
        let global = |id: &TensorId| context.tensors[id].clone();
        Work {
            operation: self.methods.join(", "),
            inputs: self.floats.iter().chain(&self.conditions).map(|operand| global(&operand.id)).collect(),
            outputs: self.results.iter().map(|(id, _)| global(id)).collect(),
        }
    }

    /// The shape of the results in this invocation; `None` where nothing lives on.
    fn global_shape<'a>(&self, context: &'a Context<CubeFusionHandle>) -> Option<&'a Shape> {
        self.results.first().map(|(id, _)| &context.tensors[id].shape)
    }

    /// Runs the program on the tensors of `context`. Returns whether a kernel was launched.
    ///
    /// # Panics
    ///
    /// When the kernel refuses the operands, which [`refused`](Self::refused) tells beforehand.
    pub(super) fn run(&self, device: &CubeDevice, context: &mut Context<CubeFusionHandle>) -> bool {
        let Some(shape) = self.global_shape(context).cloned() else { return false };
        let client = device.client();
        let scalars = self.scalars.iter().map(|id| scalar(context.scalars[id])).collect();
        let floats = self.floats.iter().map(|operand| take(operand, context)).collect();
        let conditions = self.conditions.iter().map(|operand| take(operand, context)).collect();
        let condition_dtype = self.condition_dtype.unwrap_or(DType::Bool(BoolStore::U32));
        let operands = Operands { floats, conditions, scalars };
        let results = run(&client, &self.program, &shape, operands, dtype_to_elem_type(condition_dtype))
            .unwrap_or_else(|error| panic!("{} on {device:?}: {error}", self.methods.join(", ")));
        let (mut floats, mut conditions) = (results.floats.into_iter(), results.conditions.into_iter());
        for (id, place) in &self.results {
            let (result, dtype) = match place {
                Place::Float(_) => (floats.next(), DType::F32),
                Place::Condition(_) => (conditions.next(), condition_dtype),
            };
            let handle = result.expect("as many results as outputs").handle;
            let tensor = CubeTensor::new_contiguous(client.clone(), device.clone(), shape.clone(), handle, dtype);
            let global = context.tensors[id].id;
            context.handles.register_handle(global, tensor.into());
        }
        shape.num_elements() > 0
    }
}

/// The operand of a kernel behind the relative tensor `operand`.
fn take(operand: &TensorIr, context: &mut Context<CubeFusionHandle>) -> cubecl::std::tensor::TensorHandle {
    let global = context.tensors[&operand.id].clone();
    let shape = global.shape.clone();
    let handle = taken(&TensorIr { status: operand.status, ..global }, context);
    untile(CubeBackend::float_tensor(TensorHandle { handle, shape })).into()
}

/// A scalar operand, rounded to f32.
fn scalar(scalar: ScalarIr) -> f32 {
    match scalar {
        ScalarIr::Float(value) => value as f32,
        ScalarIr::Int(value) => value as f32,
        ScalarIr::UInt(value) => value as f32,
        ScalarIr::Bool(value) => f32::from(u8::from(value)),
    }
}
