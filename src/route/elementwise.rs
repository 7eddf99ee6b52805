//! Runs of element-wise operations, as one kernel.
//!
//! A run takes f32, i32 and bool operations whose results have one shape, and may end in a sum, a product or a mean of one
//! of them. The kernel families promise that sharing a kernel changes no bit, so where a run begins and ends, which Burn
//! decides by what it has cached, does not matter.

use super::interpret::taken;
use super::rerun::{Work, operands};
use crate::catalogue;
use crate::error::{Error, Refusal};
use burn_backend::DType::{F32, I32};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::{BoolStore, DType, Scalar, Shape};
use burn_cubecl::kernel::untile;
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::elementwise::{
    Binary, Comparison, Condition, Instruction, IntBinary, Logic, Operands, Program, Unary, Value, run,
};
use burn_deterministic_kernels::reduce;
use burn_fusion::stream::{Context, ScalarId};
use burn_ir::{
    BackendIr, BaseOperationIr, BinaryOpIr, BoolOperationIr, FloatOperationIr, IntOperationIr, NumericOperationIr,
    OperationIr, ScalarIr, ScalarOpIr, TensorHandle, TensorId, TensorIr, TensorStatus, UnaryOpIr,
};
use cubecl::prelude::InputScalar;
use std::collections::HashMap;
use std::sync::Arc;

/// Instructions of a program that is folded: a kernel of a fold has many copies of it.
const MAX_FOLDED: usize = 16;

/// Element-wise operations in Burn's relative form, and the program that computes them.
#[derive(Clone)]
pub(super) struct Run {
    program: Arc<Program>,
    /// The relative shape of every result, and the first of them.
    shape: Shape,
    first: TensorId,
    words: Vec<TensorIr>,
    conditions: Vec<TensorIr>,
    scalars: Vec<ScalarOperand>,
    /// What each tensor of the run is to the program.
    places: HashMap<TensorId, Place>,
    /// Results that live on after the run, in program order.
    results: Vec<(TensorId, Place, DType)>,
    condition_dtype: Option<DType>,
    max_tensors: usize,
    fold: Option<Fold>,
    /// The operations' methods, for what the program is told of a refusal.
    methods: Vec<&'static str>,
}

/// The reduction that a run ends with.
#[derive(Clone, Debug)]
struct Fold {
    operation: reduce::Operation,
    /// The result of the program's that is folded.
    word: usize,
    axes: Vec<usize>,
    /// The result, which is not of the run's shape.
    out: TensorId,
}

/// A scalar operand.
#[derive(Clone, Copy, Debug)]
enum ScalarOperand {
    /// What the program gave in place of the placeholder, in the dtype of the operation.
    Given(ScalarId, DType),
    /// These bits.
    Bits(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Word(Value),
    Condition(Condition),
}

impl Run {
    /// An empty run whose results have the shape of `operation`'s; a kernel on the device binds `max_tensors`.
    pub(super) fn new(operation: &OperationIr, max_tensors: usize) -> Option<Self> {
        let first = operation.outputs().next()?;
        let mut run = Self {
            program: Arc::default(),
            shape: first.shape.clone(),
            first: first.id,
            words: Vec::new(),
            conditions: Vec::new(),
            scalars: Vec::new(),
            places: HashMap::new(),
            results: Vec::new(),
            condition_dtype: None,
            max_tensors,
            fold: None,
            methods: Vec::new(),
        };
        run.take(operation).then_some(run)
    }

    /// Takes `operation` into the run, or returns false and leaves the run as it was.
    pub(super) fn take(&mut self, operation: &OperationIr) -> bool {
        if let OperationIr::Drop(tensor) = operation {
            self.results.retain(|(id, ..)| *id != tensor.id);
            self.fold.take_if(|fold| fold.out == tensor.id);
            return true;
        }
        let mut extended = self.clone();
        let taken = extended.translate(operation).is_some() && extended.tensors() <= self.max_tensors;
        if taken {
            *self = extended;
        }
        taken
    }

    /// What a kernel binds: a fold reads one tensor more in its later passes, and writes one.
    fn tensors(&self) -> usize {
        let folded = if self.fold.is_some() { 2 } else { 0 };
        self.words.len() + self.conditions.len() + self.results.len() + folded
    }

    /// Closes the run: what lives on after it becomes the outputs of the program.
    pub(super) fn finish(mut self) -> Self {
        let program = Arc::make_mut(&mut self.program);
        for (_, place, _) in &self.results {
            match place {
                Place::Word(Value::Result(index)) => program.output_word(*index),
                Place::Condition(Condition::Result(index)) => program.output_condition(*index),
                Place::Word(_) | Place::Condition(_) => unreachable!("results are results of instructions"),
            }
        }
        if let Some(fold) = &self.fold {
            program.fold(fold.word);
        }
        self
    }

    fn translate(&mut self, operation: &OperationIr) -> Option<()> {
        let method = catalogue::operation(operation);
        if !catalogue::FUSED.contains(&method) && !catalogue::FOLDED.contains(&method) {
            return None;
        }
        // Nothing comes after a fold.
        if self.fold.is_some() {
            return None;
        }
        self.methods.push(method);
        match operation {
            OperationIr::NumericFloat(F32, operation) => self.float_numeric(operation),
            OperationIr::NumericInt(I32, operation) => self.int_numeric(operation),
            OperationIr::Float(F32, operation) => self.float(operation),
            OperationIr::Int(operation) => self.int(operation),
            OperationIr::BaseFloat(operation) => self.base(operation, F32),
            OperationIr::BaseInt(operation) => self.base(operation, I32),
            OperationIr::BaseBool(operation) => self.base_bool(operation),
            OperationIr::Bool(operation) => self.bool(operation),
            _ => None,
        }
    }

    fn float_numeric(&mut self, operation: &NumericOperationIr) -> Option<()> {
        use NumericOperationIr as Numeric;
        match operation {
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
            Numeric::Sum(ir) => self.fold(reduce::Operation::Sum, &ir.input, None, &ir.out),
            Numeric::SumDim(ir) => self.fold(reduce::Operation::Sum, &ir.input, Some(&[ir.axis]), &ir.out),
            Numeric::SumDims(ir) => self.fold(reduce::Operation::Sum, &ir.input, Some(&ir.axes), &ir.out),
            Numeric::Prod(ir) => self.fold(reduce::Operation::Prod, &ir.input, None, &ir.out),
            Numeric::ProdDim(ir) => self.fold(reduce::Operation::Prod, &ir.input, Some(&[ir.axis]), &ir.out),
            Numeric::Mean(ir) => self.fold(reduce::Operation::Mean, &ir.input, None, &ir.out),
            Numeric::MeanDim(ir) => self.fold(reduce::Operation::Mean, &ir.input, Some(&[ir.axis]), &ir.out),
            _ => self.order(operation, F32),
        }
    }

    fn int_numeric(&mut self, operation: &NumericOperationIr) -> Option<()> {
        use NumericOperationIr as Numeric;
        match operation {
            Numeric::Add(ir) => self.whole(ir, IntBinary::Add),
            Numeric::Sub(ir) => self.whole(ir, IntBinary::Subtract),
            Numeric::Mul(ir) => self.whole(ir, IntBinary::Multiply),
            Numeric::AddScalar(ir) => self.whole_scalar(ir, IntBinary::Add),
            Numeric::SubScalar(ir) => self.whole_scalar(ir, IntBinary::Subtract),
            Numeric::MulScalar(ir) => self.whole_scalar(ir, IntBinary::Multiply),
            Numeric::Neg(ir) => {
                let (zero, x) = (self.bits(0), self.word_of(&ir.input, I32)?);
                self.word(&ir.out, I32, Instruction::IntBinary(IntBinary::Subtract, zero, x))
            }
            _ => self.order(operation, I32),
        }
    }

    fn float(&mut self, operation: &FloatOperationIr) -> Option<()> {
        use FloatOperationIr as Float;
        match operation {
            Float::Exp(ir) => self.unary(ir, Unary::Exponential),
            Float::Log(ir) => self.unary(ir, Unary::Logarithm),
            Float::Sqrt(ir) => self.unary(ir, Unary::SquareRoot),
            Float::Tanh(ir) => self.unary(ir, Unary::HyperbolicTangent),
            Float::Recip(ir) => self.unary(ir, Unary::Reciprocal),
            Float::Sin(ir) => self.unary(ir, Unary::Sine),
            Float::Cos(ir) => self.unary(ir, Unary::Cosine),
            Float::Erf(ir) => self.unary(ir, Unary::Erf),
            Float::Floor(ir) => self.unary(ir, Unary::Floor),
            Float::Ceil(ir) => self.unary(ir, Unary::Ceiling),
            Float::Round(ir) => self.unary(ir, Unary::Round),
            Float::Trunc(ir) => self.unary(ir, Unary::Truncate),
            Float::IntoInt(ir) => {
                let x = self.word_of(&ir.input, F32)?;
                self.word(&ir.out, I32, Instruction::ToInt(x))
            }
            _ => None,
        }
    }

    fn int(&mut self, operation: &IntOperationIr) -> Option<()> {
        use IntOperationIr as Int;
        match operation {
            Int::IntoFloat(ir) => {
                let x = self.word_of(&ir.input, I32)?;
                self.word(&ir.out, F32, Instruction::ToFloat(x))
            }
            Int::BitwiseAnd(ir) => self.whole(ir, IntBinary::And),
            Int::BitwiseOr(ir) => self.whole(ir, IntBinary::Or),
            Int::BitwiseXor(ir) => self.whole(ir, IntBinary::Xor),
            Int::BitwiseAndScalar(ir) => self.whole_scalar(ir, IntBinary::And),
            Int::BitwiseOrScalar(ir) => self.whole_scalar(ir, IntBinary::Or),
            Int::BitwiseXorScalar(ir) => self.whole_scalar(ir, IntBinary::Xor),
            Int::BitwiseNot(ir) => {
                let (x, ones) = (self.word_of(&ir.input, I32)?, self.bits(u32::MAX));
                self.word(&ir.out, I32, Instruction::IntBinary(IntBinary::Xor, x, ones))
            }
            _ => None,
        }
    }

    /// What float and int operations have in common.
    fn base(&mut self, operation: &BaseOperationIr, dtype: DType) -> Option<()> {
        use BaseOperationIr as Base;
        match operation {
            Base::Equal(ir) => self.compare(ir, dtype, Comparison::Equal),
            Base::EqualElem(ir) => self.compare_scalar(ir, dtype, Comparison::Equal),
            Base::MaskWhere(ir) => {
                let mask = self.condition_of(&ir.mask)?;
                let (masked, kept) = (self.word_of(&ir.value, dtype)?, self.word_of(&ir.tensor, dtype)?);
                self.word(&ir.out, dtype, Instruction::Select(mask, masked, kept))
            }
            Base::MaskFill(ir) => {
                let mask = self.condition_of(&ir.mask)?;
                let (masked, kept) = (self.scalar_of(&ir.value, dtype)?, self.word_of(&ir.tensor, dtype)?);
                self.word(&ir.out, dtype, Instruction::Select(mask, masked, kept))
            }
            _ => None,
        }
    }

    fn base_bool(&mut self, operation: &BaseOperationIr) -> Option<()> {
        match operation {
            BaseOperationIr::NotEqual(ir) => self.logic(ir, Logic::Xor),
            _ => None,
        }
    }

    fn bool(&mut self, operation: &BoolOperationIr) -> Option<()> {
        match operation {
            BoolOperationIr::IntoFloat(ir) => {
                let mask = self.condition_of(&ir.input)?;
                self.word(&ir.out, F32, Instruction::Indicator(mask))
            }
            BoolOperationIr::IntoInt(ir) => {
                let mask = self.condition_of(&ir.input)?;
                self.word(&ir.out, I32, Instruction::IntIndicator(mask))
            }
            BoolOperationIr::Not(ir) => {
                let mask = self.condition_of(&ir.input)?;
                self.condition(&ir.out, Instruction::Not(mask))
            }
            BoolOperationIr::And(ir) => self.logic(ir, Logic::And),
            BoolOperationIr::Or(ir) => self.logic(ir, Logic::Or),
            BoolOperationIr::Xor(ir) => self.logic(ir, Logic::Xor),
        }
    }

    /// Comparisons by size.
    fn order(&mut self, operation: &NumericOperationIr, dtype: DType) -> Option<()> {
        use NumericOperationIr as Numeric;
        match operation {
            Numeric::Greater(ir) => self.compare(ir, dtype, Comparison::Greater),
            Numeric::GreaterEqual(ir) => self.compare(ir, dtype, Comparison::GreaterEqual),
            Numeric::Lower(ir) => self.compare(ir, dtype, Comparison::Less),
            Numeric::LowerEqual(ir) => self.compare(ir, dtype, Comparison::LessEqual),
            Numeric::GreaterElem(ir) => self.compare_scalar(ir, dtype, Comparison::Greater),
            Numeric::GreaterEqualElem(ir) => self.compare_scalar(ir, dtype, Comparison::GreaterEqual),
            Numeric::LowerElem(ir) => self.compare_scalar(ir, dtype, Comparison::Less),
            Numeric::LowerEqualElem(ir) => self.compare_scalar(ir, dtype, Comparison::LessEqual),
            _ => None,
        }
    }

    /// Ends the run with the reduction of one of its results over `axes`, or all of them.
    fn fold(
        &mut self,
        operation: reduce::Operation,
        input: &TensorIr,
        axes: Option<&[usize]>,
        out: &TensorIr,
    ) -> Option<()> {
        // An operand alone is not worth a kernel of its own: the reduction by itself has one that is compiled already.
        let &Place::Word(Value::Result(word)) = self.places.get(&input.id)? else { return None };
        let short = self.program.instructions().len() <= MAX_FOLDED;
        if !short || input.dtype != F32 || out.dtype != F32 || input.shape != self.shape {
            return None;
        }
        self.place_of(input)?;
        let axes = axes.map_or_else(|| (0..self.shape.num_dims()).collect(), <[usize]>::to_vec);
        self.fold = Some(Fold { operation, word, axes, out: out.id });
        Some(())
    }

    fn unary(&mut self, ir: &UnaryOpIr, function: Unary) -> Option<()> {
        let x = self.word_of(&ir.input, F32)?;
        self.word(&ir.out, F32, Instruction::Unary(function, x))
    }

    fn binary(&mut self, ir: &BinaryOpIr, function: Binary) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, F32)?, self.word_of(&ir.rhs, F32)?);
        self.word(&ir.out, F32, Instruction::Binary(function, a, b))
    }

    fn scalar(&mut self, ir: &ScalarOpIr, function: Binary) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, F32)?, self.scalar_of(&ir.rhs, F32)?);
        self.word(&ir.out, F32, Instruction::Binary(function, a, b))
    }

    fn whole(&mut self, ir: &BinaryOpIr, function: IntBinary) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, I32)?, self.word_of(&ir.rhs, I32)?);
        self.word(&ir.out, I32, Instruction::IntBinary(function, a, b))
    }

    fn whole_scalar(&mut self, ir: &ScalarOpIr, function: IntBinary) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, I32)?, self.scalar_of(&ir.rhs, I32)?);
        self.word(&ir.out, I32, Instruction::IntBinary(function, a, b))
    }

    fn compare(&mut self, ir: &BinaryOpIr, dtype: DType, comparison: Comparison) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, dtype)?, self.word_of(&ir.rhs, dtype)?);
        self.condition(&ir.out, comparing(dtype, comparison, a, b))
    }

    fn compare_scalar(&mut self, ir: &ScalarOpIr, dtype: DType, comparison: Comparison) -> Option<()> {
        let (a, b) = (self.word_of(&ir.lhs, dtype)?, self.scalar_of(&ir.rhs, dtype)?);
        self.condition(&ir.out, comparing(dtype, comparison, a, b))
    }

    fn logic(&mut self, ir: &BinaryOpIr, logic: Logic) -> Option<()> {
        let (a, b) = (self.condition_of(&ir.lhs)?, self.condition_of(&ir.rhs)?);
        self.condition(&ir.out, Instruction::Logic(logic, a, b))
    }

    /// Adds an instruction whose result is the tensor `out` of `dtype`.
    fn word(&mut self, out: &TensorIr, dtype: DType, instruction: Instruction) -> Option<()> {
        if out.dtype != dtype || out.shape != self.shape {
            return None;
        }
        let place = Place::Word(Arc::make_mut(&mut self.program).word(instruction));
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
        self.results.push((out.id, place, out.dtype));
        Some(())
    }

    fn word_of(&mut self, tensor: &TensorIr, dtype: DType) -> Option<Value> {
        if tensor.dtype != dtype {
            return None;
        }
        match self.place_of(tensor) {
            Some(Place::Word(value)) => Some(value),
            Some(Place::Condition(_)) => None,
            None => {
                let value = Value::Input(self.words.len());
                self.words.push(tensor.clone());
                self.places.insert(tensor.id, Place::Word(value));
                Some(value)
            }
        }
    }

    fn condition_of(&mut self, tensor: &TensorIr) -> Option<Condition> {
        self.agree_on(tensor.dtype)?;
        match self.place_of(tensor) {
            Some(Place::Condition(condition)) => Some(condition),
            Some(Place::Word(_)) => None,
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
            self.results.retain(|(id, ..)| *id != tensor.id);
            let operands = self.words.iter_mut().chain(&mut self.conditions);
            operands.filter(|operand| operand.id == tensor.id).for_each(|operand| operand.status = tensor.status);
        }
        Some(place)
    }

    fn scalar_of(&mut self, scalar: &ScalarIr, dtype: DType) -> Option<Value> {
        let ScalarIr::UInt(placeholder) = *scalar else { return None };
        self.scalars.push(ScalarOperand::Given(ScalarId { value: placeholder }, dtype));
        Some(Value::Scalar(self.scalars.len() - 1))
    }

    fn bits(&mut self, bits: u32) -> Value {
        self.scalars.push(ScalarOperand::Bits(bits));
        Value::Scalar(self.scalars.len() - 1)
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
            inputs: self.words.iter().chain(&self.conditions).map(|operand| global(&operand.id)).collect(),
            outputs: self.outputs().map(global).collect(),
        }
    }

    /// What lives on after the run.
    fn outputs(&self) -> impl Iterator<Item = &TensorId> {
        self.results.iter().map(|(id, ..)| id).chain(self.fold.iter().map(|fold| &fold.out))
    }

    /// The shape of the results in this invocation, but for a fold's; `None` where nothing lives on.
    fn global_shape(&self, context: &Context<CubeFusionHandle>) -> Option<Shape> {
        self.outputs().next()?;
        // Any of the operations has it, whether its result lives on or not.
        Some(context.tensors[&self.first].shape.clone())
    }

    /// Runs the program on the tensors of `context`. Returns whether a kernel was launched.
    ///
    /// # Panics
    ///
    /// When the kernel refuses the operands, which [`refused`](Self::refused) tells beforehand.
    pub(super) fn run(&self, device: &CubeDevice, context: &mut Context<CubeFusionHandle>) -> bool {
        let Some(shape) = self.global_shape(context) else { return false };
        let client = device.client();
        let scalars = self.scalars.iter().map(|scalar| scalar.bits(context)).collect();
        let words = self.words.iter().map(|operand| take(operand, context)).collect();
        let conditions = self.conditions.iter().map(|operand| take(operand, context)).collect();
        let condition_dtype = self.condition_dtype.unwrap_or(DType::Bool(BoolStore::U32));
        let operands = Operands { words, conditions, scalars };
        let dtype = dtype_to_elem_type(condition_dtype);
        let results = match &self.fold {
            None => run(&client, &self.program, &shape, operands, dtype).map(|results| (results, None)),
            Some(Fold { operation, axes, .. }) => {
                let input =
                    reduce::Computed { program: &self.program, shape: &shape, operands, condition_dtype: dtype };
                reduce::fold_program(&client, *operation, input, axes).map(|(results, folded)| (results, Some(folded)))
            }
        };
        let (results, folded) =
            results.unwrap_or_else(|error| panic!("{} on {device:?}: {error}", self.methods.join(", ")));
        let (mut words, mut conditions) = (results.words.into_iter(), results.conditions.into_iter());
        for (id, place, dtype) in &self.results {
            let result = match place {
                Place::Word(_) => words.next(),
                Place::Condition(_) => conditions.next(),
            };
            let handle = result.expect("as many results as outputs").handle;
            let tensor = CubeTensor::new_contiguous(client.clone(), device.clone(), shape.clone(), handle, *dtype);
            let global = context.tensors[id].id;
            context.handles.register_handle(global, tensor.into());
        }
        if let (Some(fold), Some(folded)) = (&self.fold, folded) {
            let out = &context.tensors[&fold.out];
            let (global, shape) = (out.id, out.shape.clone());
            let tensor = CubeTensor::new_contiguous(client, device.clone(), shape, folded.handle, F32);
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

impl ScalarOperand {
    /// # Panics
    ///
    /// When the number is no i32, as it does in the operation by itself.
    fn bits(self, context: &Context<CubeFusionHandle>) -> u32 {
        match self {
            Self::Given(id, F32) => float(context.scalars[&id]).to_bits(),
            Self::Given(id, dtype) => {
                let scalar = InputScalar::new(Scalar::from(context.scalars[&id]), dtype_to_elem_type(dtype));
                u32::from_ne_bytes(scalar.as_bytes().try_into().expect("a word has four bytes"))
            }
            Self::Bits(bits) => bits,
        }
    }
}

/// A scalar operand, rounded to f32.
fn float(scalar: ScalarIr) -> f32 {
    match scalar {
        ScalarIr::Float(value) => value as f32,
        ScalarIr::Int(value) => value as f32,
        ScalarIr::UInt(value) => value as f32,
        ScalarIr::Bool(value) => f32::from(u8::from(value)),
    }
}

fn comparing(dtype: DType, comparison: Comparison, a: Value, b: Value) -> Instruction {
    match dtype {
        I32 => Instruction::CompareInt(comparison, a, b),
        _ => Instruction::Compare(comparison, a, b),
    }
}
