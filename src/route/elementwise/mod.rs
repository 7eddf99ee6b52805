//! Element-wise fusion: a sequence of element-wise operations as one kernel.
//!
//! A sequence takes operations of f32, of one half type, of i32 and of bools whose results have one shape. It may end in a sum,
//! a product or a mean of one of them, or of one whose axes were [moved](super::moved). It may reduce rows of floats,
//! along the last axis, and go on with what is one value a row, in a kernel of [`rows`](burn_deterministic_kernels::rows) where
//! that has room for the row. It updates rows at [one index each](indexed), and in a kernel of rows reads them there. It
//! [assigns slices](assigned) of one axis. The kernel families promise that sharing a kernel changes no bit, so where a
//! sequence begins and ends, which Burn decides by what it has cached, does not matter.

mod assigned;
mod donated;
mod each;
mod indexed;
mod inlined;
mod means;
mod reduced;
mod run;

pub(super) use donated::Inner;
pub(super) use each::{run_each, work_of_each};

use super::moved::Moved;
use super::reductions::{finds_first, row_reduction};
use crate::backend::adapters::elementwise::half;
use crate::catalogue::{self, Fused, Kind, fused};
use burn_backend::DType::{BF16, F16, F32, I32};
use burn_backend::{BoolStore, DType, Shape};
use burn_cubecl_fusion::CubeFusionHandle;
use burn_deterministic_kernels::elementwise::{
    Binary, Comparison, Condition, Extent, Half, Instruction, IntBinary, Program, Value,
};
use burn_deterministic_kernels::reduce;
use burn_deterministic_kernels::rows::RowProgram;
use burn_deterministic_kernels::subnormals;
use burn_fusion::stream::{Context, ScalarId};
use burn_ir::{
    BaseOperationIr, FloatOperationIr, IrVisitorMut, NumericOperationIr, OperationIr, ScalarIr, TensorId, TensorIr,
    TensorStatus,
};
use cubecl::client::Client;
use std::collections::HashMap;
use std::sync::Arc;

/// Element-wise operations in Burn's relative form, and the program that computes them.
#[derive(Clone)]
pub(super) struct Sequence {
    program: Arc<Program>,
    /// The relative shape of every result, and the first of them.
    shape: Shape,
    first: TensorId,
    words: Vec<TensorIr>,
    conditions: Vec<TensorIr>,
    scalars: Vec<ScalarOperand>,
    /// The operand or result of the program that each tensor of the sequence is.
    places: HashMap<TensorId, Place>,
    /// Results that live on after the sequence, in program order.
    results: Vec<(TensorId, Place, DType)>,
    condition_dtype: Option<DType>,
    /// The half type of its tensors, where it has some.
    half: Option<Half>,
    max_tensors: usize,
    reduction: Option<Reduction>,
    /// What one of its results, or its one operand, is moved to.
    moved: Option<Moved>,
    /// Whether it may reduce rows and go on, and assign slices.
    takes_rows: bool,
    /// The relative shape of what is one value a row, once it has met some.
    row: Option<Shape>,
    /// Results of other shapes, which broadcast to the sequence's, where it computes such for each of its elements.
    inlined: Option<Vec<TensorId>>,
    /// The operation that each index of the program's is of.
    indexed: Vec<Indexed>,
    /// The slices of each window of the program's.
    assigned: Vec<Assigned>,
    /// The tensor to which a slice is [assigned](Self::assigns_own) by itself.
    own: Option<TensorId>,
    /// The words, by their index, in whose memory results may be written.
    donated: Vec<usize>,
    /// The program in a kernel of rows, once the sequence is closed, where it has one value a row of something.
    rows: Option<RowProgram>,
    /// The operations' methods, for error texts.
    methods: Vec<&'static str>,
    /// Whether all results are written, also those that nothing needs after the sequence: they are recorded.
    writes_all: bool,
}

/// Operations in order: the indices of each part's, and the sequence that they are, or none where they run one after the other.
pub(super) type Parts = Vec<(Vec<usize>, Option<Sequence>)>;

/// The reduction that a sequence ends with.
#[derive(Clone, Debug)]
struct Reduction {
    /// The result of the program's that is reduced; `None` where there is no program.
    word: Option<usize>,
    /// Whether what is reduced is the one operand.
    is_operand: bool,
    axes: Vec<usize>,
    /// The results, which are not of the sequence's shape: one, or a sum and a mean.
    outs: Vec<(reduce::Operation, TensorId)>,
}

/// The first operation with an index of the program's.
#[derive(Clone, Debug)]
struct Indexed {
    /// Its method.
    method: &'static str,
    /// Its operands.
    operands: Vec<TensorId>,
    /// Its index, among the words.
    index: usize,
    /// Its result.
    out: TensorId,
}

/// A slice that is assigned.
#[derive(Clone, Debug)]
struct Assigned {
    /// Its ranges, as placeholders of Burn's.
    ranges: Vec<usize>,
    slice: TensorId,
}

/// A scalar operand.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ScalarOperand {
    /// What the program gave in place of the placeholder, in the dtype of the operation.
    Given(ScalarId, DType),
    /// These bits.
    Bits(u32),
    /// The first place of a range, by its placeholder, along an axis of a tensor.
    Start(usize, TensorId, usize),
    /// The length of an axis of a tensor.
    Length(TensorId, usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Word(Value),
    Condition(Condition),
    /// A word operand that is assigned to a slice.
    Slice,
}

impl Sequence {
    /// A sequence that begins with `operation`; a kernel on the device binds `max_tensors`. Where it `takes_rows`, it reduces
    /// rows and goes on, and assigns slices.
    pub(super) fn new(operation: &OperationIr, max_tensors: usize, takes_rows: bool) -> Option<Self> {
        // What is reduced or moved does not have the sequence's shape, but the operand has.
        let is_other = row_reduction(operation).is_some() || finds_first(operation) || Moved::by(operation).is_some();
        let first = if takes_rows && is_other { operation.inputs().next()? } else { operation.outputs().next()? };
        let mut sequence = Self::empty(first.shape.clone(), first.id, max_tensors, takes_rows);
        sequence.take(operation).then_some(sequence)
    }

    /// A sequence of no operation yet, of the shape of the tensor `first`.
    fn empty(shape: Shape, first: TensorId, max_tensors: usize, takes_rows: bool) -> Self {
        Self {
            program: Arc::default(),
            shape,
            first,
            words: Vec::new(),
            conditions: Vec::new(),
            scalars: Vec::new(),
            places: HashMap::new(),
            results: Vec::new(),
            condition_dtype: None,
            half: None,
            max_tensors,
            reduction: None,
            moved: None,
            takes_rows,
            row: None,
            inlined: None,
            indexed: Vec::new(),
            assigned: Vec::new(),
            own: None,
            donated: Vec::new(),
            rows: None,
            methods: Vec::new(),
            writes_all: false,
        }
    }

    /// The same operations, in this order of their indices, in sequences that end where they reduce, and no sequence for those that
    /// run by themselves then.
    pub(super) fn parts(
        &self,
        operations: &[OperationIr],
        order: impl IntoIterator<Item = usize>,
        writes_all: bool,
    ) -> Parts {
        let mut parts: Parts = Vec::new();
        for index in order {
            let operation = &operations[index];
            if let Some((indices, Some(part))) = parts.last_mut()
                && part.take(operation)
            {
                indices.push(index);
                continue;
            }
            let part = Self::new(operation, self.max_tensors, false).map(|part| Self { writes_all, ..part });
            match (parts.last_mut(), &part) {
                (Some((indices, None)), None) => indices.push(index),
                _ => parts.push((vec![index], part)),
            }
        }
        parts.into_iter().map(|(indices, part)| (indices, part.map(Self::finish))).collect()
    }

    /// Whether `operation` may run before the sequence's: it reads no result of the sequence, and leaves its operands as they
    /// are. A product has the sequence's shape: another one's result is not read here, and it may share a launch with those that follow.
    pub(super) fn can_run_before(&self, operation: &OperationIr) -> bool {
        let is_left = |input: &TensorIr| match self.places.get(&input.id) {
            None => true,
            Some(Place::Word(Value::Input(_)) | Place::Condition(Condition::Input(_)) | Place::Slice) => {
                input.status != TensorStatus::ReadWrite
            }
            Some(_) => false,
        };
        let is_product = matches!(operation, OperationIr::Float(_, FloatOperationIr::Matmul(_)));
        let may_be_read = !is_product || operation.outputs().all(|out| out.shape == self.shape);
        let is_open = self.reduction.is_none() && self.moved.is_none();
        is_pure(operation) && may_be_read && is_open && operation.inputs().all(is_left)
    }

    /// Takes `operation` into the sequence, or returns false and leaves the sequence as it was.
    pub(super) fn take(&mut self, operation: &OperationIr) -> bool {
        if let OperationIr::Drop(tensor) = operation {
            if !self.writes_all {
                self.results.retain(|(id, ..)| *id != tensor.id);
                self.reduction.take_if(|reduction| {
                    reduction.outs.retain(|(_, out)| *out != tensor.id);
                    reduction.outs.is_empty()
                });
            }
            return true;
        }
        let mut extended = self.clone();
        let taken = extended.translate(operation).is_some() && extended.tensors() <= self.max_tensors;
        if taken {
            *self = extended;
        }
        taken
    }

    /// What a kernel binds: flags where it checks indices; a reduction reads one tensor more in its later passes, and writes one, or a sum
    /// and a mean.
    pub(super) fn tensors(&self) -> usize {
        let reduced = self.reduction.as_ref().map_or(0, |reduction| 1 + reduction.outs.len());
        let flags = usize::from(!self.indexed.is_empty());
        self.words.len() + self.conditions.len() + self.results.len() + reduced + flags
    }

    /// Closes the sequence: what lives on after it becomes the outputs of the program.
    pub(super) fn finish(mut self) -> Self {
        let program = Arc::make_mut(&mut self.program);
        for (_, place, dtype) in &self.results {
            match place {
                Place::Word(Value::Result(index)) => match half(*dtype) {
                    Some(half) => program.output_half(*index, half),
                    None => program.output_word(*index),
                },
                Place::Condition(Condition::Result(index)) => program.output_condition(*index),
                Place::Word(_) | Place::Condition(_) | Place::Slice => {
                    unreachable!("results are results of instructions")
                }
            }
        }
        if let Some(word) = self.reduction.as_ref().and_then(|reduction| reduction.word) {
            program.reduce(word);
        }
        if let Some(row) = &self.row {
            let is_row = |operand: &TensorIr| operand.shape.last() == row.last();
            let [words, conditions] = [&self.words, &self.conditions].map(|list| list.iter().map(is_row).collect());
            self.rows = Some(RowProgram::new(self.program.clone(), words, conditions));
        }
        self
    }

    /// Whether one kernel has room for the rows, where it reduces some, and the slices are parts as it assigns them.
    pub(super) fn fits(&self, client: &Client, context: &Context<CubeFusionHandle>) -> bool {
        if !self.fits_slices(context) {
            return false;
        }
        let length = context.tensors[&self.first].shape.last().copied().unwrap_or(0);
        // What compiles a kernel takes too long for a whole row of operations that keep subnormal numbers.
        let fits = |rows: &RowProgram| self.needs_rows() && !subnormals::is_kept(client) && rows.fits(client, length);
        self.rows.as_ref().is_none_or(fits)
    }

    /// Adds what the operation computes, if the catalogue says that it [fuses](fused).
    fn translate(&mut self, operation: &OperationIr) -> Option<()> {
        // Nothing comes after a reduction, or a slice that is assigned by itself.
        if self.reduction.is_some() || self.own.is_some() {
            return None;
        }
        let method = catalogue::operation(operation);
        if self.moved.is_some() || Moved::by(operation).is_some() {
            return self.moves(operation);
        }
        let meaning = fused(method)?;
        if !matches!(meaning, Fused::Reduction(_) | Fused::SliceAssign) {
            self.widen(operation);
        }
        self.methods.push(method);
        let (inputs, scalars): (Vec<_>, _) = (operation.inputs().collect(), scalars(operation));
        let out = operation.outputs().next()?;
        match meaning {
            Fused::Unary(function) => {
                let dtype = float_of(inputs.first()?)?;
                let [x] = self.words(&inputs, &scalars, dtype)?;
                self.float(out, dtype, Instruction::Unary(function, x))
            }
            Fused::Binary(function) => {
                let dtype = float_of(inputs.first()?)?;
                let [a, b] = self.words(&inputs, &scalars, dtype)?;
                self.float(out, dtype, Instruction::Binary(function, a, b))
            }
            Fused::PowerOfNumber => {
                let [x] = self.words(&inputs, &[], F32)?;
                let [exponent] = self.words(&[], &scalars, F32)?;
                self.word(out, F32, Instruction::Binary(Binary::Power, x, exponent))
            }
            Fused::Clamp => {
                let dtype = float_of(inputs.first()?)?;
                let [x] = self.words(&inputs, &[], dtype)?;
                // Limits are f32, as by itself.
                let [min, max] = self.words(&[], &scalars, F32)?;
                let clamped = Arc::make_mut(&mut self.program).clamp(x, min, max);
                match half(dtype) {
                    Some(half) => self.word(out, dtype, Instruction::Unary(half.rounding(), clamped)),
                    None => self.tensor(out, dtype, clamped),
                }
            }
            Fused::Cast => {
                let (from, to) = (float_of(inputs.first()?)?, float_of(out)?);
                if from == to {
                    return self.rename(inputs.first()?, out);
                }
                // Widening is exact: what it gives is a number of the type that it comes from.
                let half = half(to).or(half(from))?;
                let [x] = self.words(&inputs, &scalars, from)?;
                self.word(out, to, Instruction::Unary(half.rounding(), x))
            }
            Fused::Int(function) => {
                let [a, b] = self.words(&inputs, &scalars, I32)?;
                self.word(out, I32, Instruction::IntBinary(function, a, b))
            }
            Fused::IntNegate => {
                let (zero, [x]) = (self.bits(0), self.words(&inputs, &scalars, I32)?);
                self.word(out, I32, Instruction::IntBinary(IntBinary::Subtract, zero, x))
            }
            Fused::IntNot => {
                let ([x], ones) = (self.words(&inputs, &scalars, I32)?, self.bits(u32::MAX));
                self.word(out, I32, Instruction::IntBinary(IntBinary::Xor, x, ones))
            }
            Fused::Compare(kind, comparison) => {
                let dtype = kind.dtype(inputs.first()?)?;
                let [a, b] = self.words(&inputs, &scalars, dtype)?;
                self.condition(out, comparing(dtype, comparison, a, b))
            }
            Fused::Mask(kind) => {
                let [kept, mask, masked @ ..] = &inputs[..] else { return None };
                let dtype = kind.dtype(kept)?;
                let mask = self.condition_of(mask)?;
                let [masked] = self.words(masked, &scalars, dtype)?;
                let kept = self.word_of(kept, dtype)?;
                self.word(out, dtype, Instruction::Select(mask, masked, kept))
            }
            Fused::Logic(logic) => {
                let [a, b] = self.conditions(&inputs)?;
                self.condition(out, Instruction::Logic(logic, a, b))
            }
            Fused::Not => {
                let [mask] = self.conditions(&inputs)?;
                self.condition(out, Instruction::Not(mask))
            }
            Fused::FloatToInt => {
                let dtype = float_of(inputs.first()?)?;
                let [x] = self.words(&inputs, &scalars, dtype)?;
                self.word(out, I32, Instruction::ToInt(x))
            }
            Fused::IntToFloat => {
                let [x] = self.words(&inputs, &scalars, I32)?;
                self.float(out, float_of(out)?, Instruction::ToFloat(x))
            }
            Fused::BoolToFloat => {
                let [mask] = self.conditions(&inputs)?;
                self.word(out, float_of(out)?, Instruction::Indicator(mask))
            }
            Fused::BoolToInt => {
                let [mask] = self.conditions(&inputs)?;
                self.word(out, I32, Instruction::IntIndicator(mask))
            }
            Fused::Fill(kind) => {
                let dtype = kind.dtype(out)?;
                let extent = if self.takes_row(&out.shape) { Extent::Rows } else { Extent::Elements };
                let value = self.filling(operation, dtype)?;
                self.word(out, dtype, Instruction::Fill(value, extent))
            }
            Fused::SliceAssign => self.assign(operation),
            Fused::Gather => self.gather(method, operation),
            Fused::Scatter => self.scatter(method, operation),
            Fused::WithIndex(end) => self.first_with_index(end, operation),
            // Of one element each, and -0 is its own sum. A mean is divided, as in a kernel of its own.
            Fused::Reduction(
                reduction @ (reduce::Operation::Sum | reduce::Operation::Prod | reduce::Operation::Mean),
            ) if out.shape == inputs.first()?.shape => {
                let dtype = float_of(inputs.first()?)?;
                let [x] = self.words(&inputs, &[], dtype)?;
                match reduction {
                    reduce::Operation::Mean => {
                        let one = self.bits(1f32.to_bits());
                        self.float(out, dtype, Instruction::Binary(Binary::Divide, x, one))
                    }
                    _ => self.word(out, dtype, Instruction::IntBinary(IntBinary::Or, x, x)),
                }
            }
            Fused::Reduction(reduction) => match row_reduction(operation) {
                Some(row_reduction) if self.takes_rows => self.reduce_rows(row_reduction, inputs.first()?, out),
                // A kernel of rows ends in no other reduction.
                _ if self.needs_rows() => None,
                // Of an empty axis it is refused, which concerns no other operation where it runs by itself.
                _ if matches!(reduction, reduce::Operation::Max | reduce::Operation::Min) => None,
                _ => self.end_with(reduction, operation, inputs.first()?, out),
            },
        }
    }

    /// What `operation` gives every element.
    fn filling(&mut self, operation: &OperationIr, dtype: DType) -> Option<Value> {
        use BaseOperationIr as Base;
        match operation {
            OperationIr::BaseFloat(Base::Zeros(_)) | OperationIr::BaseInt(Base::Zeros(_)) => Some(self.bits(0)),
            OperationIr::BaseFloat(Base::Ones(_)) => Some(self.bits(1f32.to_bits())),
            OperationIr::BaseInt(Base::Ones(_)) => Some(self.bits(1)),
            OperationIr::NumericFloat(_, NumericOperationIr::Full(full))
            | OperationIr::NumericInt(_, NumericOperationIr::Full(full)) => self.scalar_of(&full.value, dtype),
            _ => None,
        }
    }

    /// Adds an instruction whose result, rounded to `dtype`, is the float tensor `out`.
    fn float(&mut self, out: &TensorIr, dtype: DType, instruction: Instruction) -> Option<()> {
        let program = Arc::make_mut(&mut self.program);
        let exact = program.word(instruction);
        let word = half(dtype).map_or(exact, |half| program.rounded(exact, half));
        self.tensor(out, dtype, word)
    }

    /// Adds an instruction whose result is the tensor `out` of `dtype`.
    fn word(&mut self, out: &TensorIr, dtype: DType, instruction: Instruction) -> Option<()> {
        let word = Arc::make_mut(&mut self.program).word(instruction);
        self.tensor(out, dtype, word)
    }

    /// Makes a word of the program the tensor `out` of `dtype`.
    fn tensor(&mut self, out: &TensorIr, dtype: DType, word: Value) -> Option<()> {
        if out.dtype != dtype {
            return None;
        }
        self.agree_on_half(dtype)?;
        self.result(out, Place::Word(word))
    }

    /// Makes a result the tensor `out` too: an operand by itself is not worth a copy.
    fn rename(&mut self, input: &TensorIr, out: &TensorIr) -> Option<()> {
        let Place::Word(result @ Value::Result(_)) = self.place_of(input)? else { return None };
        self.tensor(out, input.dtype, result)
    }

    /// Adds an instruction whose result is the bool tensor `out`.
    fn condition(&mut self, out: &TensorIr, instruction: Instruction) -> Option<()> {
        self.agree_on(out.dtype)?;
        let place = Place::Condition(Arc::make_mut(&mut self.program).condition(instruction));
        self.result(out, place)
    }

    fn result(&mut self, out: &TensorIr, place: Place) -> Option<()> {
        if out.shape != self.shape && !self.takes_row(&out.shape) && !self.inlines(out) {
            return None;
        }
        self.places.insert(out.id, place);
        self.results.push((out.id, place, out.dtype));
        Some(())
    }

    /// The operands, tensors before scalars, if there are `N` of this dtype.
    fn words<const N: usize>(
        &mut self,
        tensors: &[&TensorIr],
        scalars: &[ScalarIr],
        dtype: DType,
    ) -> Option<[Value; N]> {
        let mut words = Vec::with_capacity(N);
        for tensor in tensors {
            words.push(self.word_of(tensor, dtype)?);
        }
        for scalar in scalars {
            words.push(self.scalar_of(scalar, dtype)?);
        }
        words.try_into().ok()
    }

    /// The operands, if there are `N` bool tensors.
    fn conditions<const N: usize>(&mut self, tensors: &[&TensorIr]) -> Option<[Condition; N]> {
        let conditions: Option<Vec<_>> = tensors.iter().map(|tensor| self.condition_of(tensor)).collect();
        conditions?.try_into().ok()
    }

    fn word_of(&mut self, tensor: &TensorIr, dtype: DType) -> Option<Value> {
        if tensor.dtype != dtype {
            return None;
        }
        self.agree_on_half(dtype)?;
        match self.place_of(tensor) {
            Some(Place::Word(value)) => Some(value),
            Some(Place::Condition(_) | Place::Slice) => None,
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
            Some(Place::Word(_) | Place::Slice) => None,
            None => {
                let condition = Condition::Input(self.conditions.len());
                self.conditions.push(tensor.clone());
                self.places.insert(tensor.id, Place::Condition(condition));
                Some(condition)
            }
        }
    }

    /// The place of a tensor the sequence has met; notes that `tensor` may be its last use.
    fn place_of(&mut self, tensor: &TensorIr) -> Option<Place> {
        let place = *self.places.get(&tensor.id)?;
        if tensor.status == TensorStatus::ReadWrite {
            if !self.writes_all {
                self.results.retain(|(id, ..)| *id != tensor.id);
            }
            let operands = self.words.iter_mut().chain(&mut self.conditions);
            operands.filter(|operand| operand.id == tensor.id).for_each(|operand| operand.status = tensor.status);
        }
        Some(place)
    }

    fn scalar_of(&mut self, scalar: &ScalarIr, dtype: DType) -> Option<Value> {
        let ScalarIr::UInt(placeholder) = *scalar else { return None };
        Some(Value::Scalar(self.scalar(ScalarOperand::Given(ScalarId { value: placeholder }, dtype))))
    }

    fn bits(&mut self, bits: u32) -> Value {
        Value::Scalar(self.scalar(ScalarOperand::Bits(bits)))
    }

    /// The index of a scalar operand.
    fn scalar(&mut self, scalar: ScalarOperand) -> usize {
        let known = self.scalars.iter().position(|other| *other == scalar);
        known.unwrap_or_else(|| {
            self.scalars.push(scalar);
            self.scalars.len() - 1
        })
    }

    /// All tensors of half types are of one.
    fn agree_on_half(&mut self, dtype: DType) -> Option<()> {
        let Some(half) = half(dtype) else { return Some(()) };
        (*self.half.get_or_insert(half) == half).then_some(())
    }

    /// All bool tensors of a sequence are stored alike, as 0 and 1 in an unsigned integer.
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
}

/// Whether `operation` computes nothing and leaves its operand as it is: it moves elements, or names them anew.
pub(super) fn is_move(operation: &OperationIr) -> bool {
    use BaseOperationIr::{Cast, Expand, Permute, Reshape, Slice, SwapDims};
    match operation {
        OperationIr::BaseFloat(Cast(cast)) => cast.input.dtype == cast.out.dtype,
        OperationIr::BaseFloat(base) | OperationIr::BaseInt(base) | OperationIr::BaseBool(base) => {
            matches!(base, Reshape(_) | SwapDims(_) | Permute(_) | Expand(_) | Slice(_))
        }
        _ => false,
    }
}

/// Whether `operation` is a move, a product or a reduction: it draws nothing, checks no indices, and leaves its operands as they are.
pub(super) fn is_pure(operation: &OperationIr) -> bool {
    use NumericOperationIr::{MeanDim, ProdDim, SumDim, SumDims};
    match operation {
        operation if is_move(operation) => true,
        // Of f32, which no guarantee refuses: what is refused concerns the whole block.
        OperationIr::Float(_, FloatOperationIr::Matmul(_)) => operation.inputs().all(|input| input.dtype == F32),
        OperationIr::NumericFloat(F32, SumDim(_) | SumDims(_) | ProdDim(_) | MeanDim(_)) => true,
        _ => false,
    }
}

/// The type of a float tensor that kernels compute.
fn float_of(tensor: &TensorIr) -> Option<DType> {
    matches!(tensor.dtype, F32 | F16 | BF16).then_some(tensor.dtype)
}

impl Kind {
    /// The dtype of a tensor of this kind, if a sequence takes it.
    fn dtype(self, tensor: &TensorIr) -> Option<DType> {
        match self {
            Self::Float => float_of(tensor),
            Self::Int => (tensor.dtype == I32).then_some(I32),
        }
    }
}

/// The scalar operands of an operation.
fn scalars(operation: &OperationIr) -> Vec<ScalarIr> {
    struct Scalars(Vec<ScalarIr>);
    impl IrVisitorMut for Scalars {
        fn visit_scalar_mut(&mut self, scalar: &mut ScalarIr) {
            self.0.push(*scalar);
        }
    }
    let mut scalars = Scalars(Vec::new());
    operation.clone().visit_mut(&mut scalars);
    scalars.0
}

fn comparing(dtype: DType, comparison: Comparison, a: Value, b: Value) -> Instruction {
    match dtype {
        I32 => Instruction::CompareInt(comparison, a, b),
        _ => Instruction::Compare(comparison, a, b),
    }
}
