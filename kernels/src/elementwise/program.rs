//! What an element-wise kernel computes.

use cubecl::ir::{ElemType, FloatKind};

/// A float type of 16 bits. A kernel reads its numbers as f32, which is exact, and writes those that an instruction
/// [rounded](Self::rounding) to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// 5 bits of exponent, 11 digits.
    F16,
    /// 8 bits of exponent, 8 digits.
    Bf16,
}

impl Half {
    /// The half type that this is, if it is one.
    pub fn of(dtype: ElemType) -> Option<Self> {
        match dtype {
            ElemType::Float(FloatKind::F16) => Some(Self::F16),
            ElemType::Float(FloatKind::BF16) => Some(Self::Bf16),
            _ => None,
        }
    }

    /// The type of its elements in memory.
    pub fn dtype(self) -> ElemType {
        match self {
            Self::F16 => ElemType::Float(FloatKind::F16),
            Self::Bf16 => ElemType::Float(FloatKind::BF16),
        }
    }

    /// The function that rounds to it.
    pub fn rounding(self) -> Unary {
        match self {
            Self::F16 => Unary::ToF16,
            Self::Bf16 => Unary::ToBf16,
        }
    }
}

/// Where a word comes from: 32 bits that an instruction reads as an f32 or an i32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A tensor operand.
    Input(usize),
    /// A scalar operand.
    Scalar(usize),
    /// The result of an earlier instruction, counted among those that give a word.
    Result(usize),
}

/// Where a condition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// A bool tensor operand.
    Input(usize),
    /// The result of an earlier condition instruction, counted among condition instructions.
    Result(usize),
}

/// A function of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`
    Negate,
    /// `|x|`
    Absolute,
    /// `1 / x`
    Reciprocal,
    /// The square root.
    SquareRoot,
    /// The [exponential function](crate::function::exponential).
    Exponential,
    /// The natural logarithm.
    Logarithm,
    /// `log(1 + x)`, exact near 0.
    LogarithmOfOnePlus,
    /// The hyperbolic sine.
    HyperbolicSine,
    /// The hyperbolic cosine.
    HyperbolicCosine,
    /// The hyperbolic tangent.
    HyperbolicTangent,
    /// The inverse hyperbolic sine.
    HyperbolicArcSine,
    /// The inverse hyperbolic cosine.
    HyperbolicArcCosine,
    /// The inverse hyperbolic tangent.
    HyperbolicArcTangent,
    /// The [sine](crate::function::trigonometric).
    Sine,
    /// The cosine.
    Cosine,
    /// The tangent.
    Tangent,
    /// The inverse sine.
    ArcSine,
    /// The inverse cosine.
    ArcCosine,
    /// The inverse tangent.
    ArcTangent,
    /// The error function.
    Erf,
    /// The largest integer that is at most `x`.
    Floor,
    /// The smallest integer that is at least `x`.
    Ceiling,
    /// The nearest integer, ties to even.
    Round,
    /// The integer part.
    Truncate,
    /// The nearest f16, ties to even.
    ToF16,
    /// The nearest bf16, ties to even.
    ToBf16,
}

impl Unary {
    /// Whether a quotient or a square root is part of it.
    fn divides(self) -> bool {
        match self {
            Self::Reciprocal
            | Self::SquareRoot
            | Self::HyperbolicTangent
            | Self::HyperbolicArcSine
            | Self::HyperbolicArcCosine
            | Self::HyperbolicArcTangent
            | Self::Tangent
            | Self::ArcSine
            | Self::ArcCosine
            | Self::ArcTangent => true,
            Self::Negate
            | Self::Absolute
            | Self::Exponential
            | Self::Logarithm
            | Self::LogarithmOfOnePlus
            | Self::HyperbolicSine
            | Self::HyperbolicCosine
            | Self::Sine
            | Self::Cosine
            | Self::Erf
            | Self::Floor
            | Self::Ceiling
            | Self::Round
            | Self::Truncate
            | Self::ToF16
            | Self::ToBf16 => false,
        }
    }
}

/// A function of two integers, which wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntBinary {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a & b`
    And,
    /// `a | b`
    Or,
    /// `a ^ b`
    Xor,
    /// `a / b`, cut to an integer; 0 where `b` is 0.
    Divide,
    /// What is left of a division that rounds down, with the sign of `b`; 0 where `b` is 0.
    Remainder,
    /// `a << b`; 0 where `b` is negative, or as many bits as the type has or more.
    ShiftLeft,
    /// `a >> b`, which keeps the sign of `a`; 0, or -1 of a negative `a`, where `b` is negative, or as many bits as the
    /// type has or more.
    ShiftRight,
    /// `a` to the power of `b`; of a negative `b` what 1 divided by the power of `-b` is cut to, and 0 where `a` is 0.
    Power,
}

/// A function of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `a * b`
    Multiply,
    /// `a / b`
    Divide,
    /// `a` to the power of `b`: C99's `pow`.
    Power,
    /// The angle of the point `(b, a)`: C99's `atan2(a, b)`.
    ArcTangent,
    /// What is left of `a` by a division by `b` that rounds down, with the sign of `b`: Python's `%`.
    Remainder,
}

/// A comparison of two floats, false with a NaN, or of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `a == b`
    Equal,
    /// `a > b`
    Greater,
    /// `a >= b`
    GreaterEqual,
    /// `a < b`
    Less,
    /// `a <= b`
    LessEqual,
}

/// A function of two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// `a && b`
    And,
    /// `a || b`
    Or,
    /// `a != b`
    Xor,
}

/// A reduction of the elements of a row, which are those along the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowReduction {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The sum, divided by the number of elements.
    Mean,
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The first element that no other exceeds, bit for bit.
    FirstMax,
    /// The first element that no other is below, bit for bit.
    FirstMin,
    /// The place in the row, an i32, of the element of [`FirstMax`](Self::FirstMax).
    ArgMax,
    /// The place in the row, an i32, of the element of [`FirstMin`](Self::FirstMin).
    ArgMin,
    /// The bitwise or of the words.
    Or,
}

/// Whether each element or each row has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Every element.
    Elements,
    /// Every row, in a program of [`rows`](crate::rows).
    Rows,
}

/// A part of the program's shape: some places along one axis, and all along the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The axis, counted from the last one.
    pub axis: usize,
    /// The scalar operand that is its first place along the axis, a u32.
    pub start: usize,
    /// The scalar operand that is its number of places along the axis, a u32.
    pub length: usize,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// A float of one float.
    Unary(Unary, Value),
    /// A float of two floats.
    Binary(Binary, Value, Value),
    /// An integer of two integers.
    IntBinary(IntBinary, Value, Value),
    /// A float of an integer, rounded to nearest even.
    ToFloat(Value),
    /// An integer of a float, truncated; the nearest i32 of a float beyond them, and 0 of a NaN.
    ToInt(Value),
    /// The word `if condition { a } else { b }`.
    Select(Condition, Value, Value),
    /// The float 1 where the condition holds, else 0.
    Indicator(Condition),
    /// The integer 1 where the condition holds, else 0.
    IntIndicator(Condition),
    /// The same word for every element, or for every row.
    Fill(Value, Extent),
    /// A word of all elements of a row, which is the same for each of them. Only [`rows`](crate::rows) computes it.
    Reduce(RowReduction, Value),
    /// The place of the element along the last axis of the program's shape, an i32.
    Place,
    /// Whether the element lies in this one of the program's [windows](Program::windows).
    Within(usize),
    /// A condition of two floats.
    Compare(Comparison, Value, Value),
    /// A condition of two integers.
    CompareInt(Comparison, Value, Value),
    /// A condition of two conditions.
    Logic(Logic, Condition, Condition),
    /// `!condition`
    Not(Condition),
}

/// Instructions in order, and which of their results are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    instructions: Vec<Instruction>,
    word_outputs: Vec<usize>,
    half_outputs: Vec<usize>,
    half: Option<Half>,
    condition_outputs: Vec<usize>,
    reduced: Option<usize>,
    indices: Vec<usize>,
    windows: Vec<Window>,
    /// The word operand that has elements in each of these alone, where there is one.
    windowed: Vec<Option<usize>>,
    words: usize,
    conditions: usize,
}

impl Program {
    /// Adds an instruction with a word as its result, and names that result.
    ///
    /// # Panics
    ///
    /// When the result of `instruction` is a condition, or it reads a result that does not exist yet.
    pub fn word(&mut self, instruction: Instruction) -> Value {
        assert!(instruction.is_word(), "{instruction:?} has a condition as its result");
        self.push(instruction);
        self.words += 1;
        Value::Result(self.words - 1)
    }

    /// Adds an instruction with a condition as its result, and names that result.
    ///
    /// # Panics
    ///
    /// When the result of `instruction` is a word, or it reads a result that does not exist yet.
    pub fn condition(&mut self, instruction: Instruction) -> Condition {
        assert!(!instruction.is_word(), "{instruction:?} has a word as its result");
        self.push(instruction);
        self.conditions += 1;
        Condition::Result(self.conditions - 1)
    }

    /// Adds `x` within `min ..= max`: `y = if x < min { min } else { x }`, then `if y > max { max } else { y }`. A NaN
    /// stays.
    pub fn clamp(&mut self, x: Value, min: Value, max: Value) -> Value {
        let below = self.condition(Instruction::Compare(Comparison::Less, x, min));
        let raised = self.word(Instruction::Select(below, min, x));
        let above = self.condition(Instruction::Compare(Comparison::Greater, raised, max));
        self.word(Instruction::Select(above, max, raised))
    }

    /// Adds the number of a half type that is nearest to the float `x`.
    pub fn rounded(&mut self, x: Value, half: Half) -> Value {
        self.word(Instruction::Unary(half.rounding(), x))
    }

    /// Adds the element of each row of `x` at the row's index, which is word operand `index`, one i32 a row that is
    /// [checked](Self::indices); 0 where that is no place in the row. `zero` is that word.
    pub fn gather(&mut self, x: Value, index: usize, zero: Value) -> Value {
        let is_there = self.is_at(index);
        let alone = self.word(Instruction::Select(is_there, x, zero));
        self.word(Instruction::Reduce(RowReduction::Or, alone))
    }

    /// Adds `x`, but at the index of each row, as in [`gather`](Self::gather), the sum of `x` and the row's `y`: the other one,
    /// bit for bit, where one is `negative_zero`, which is that word. The sum is rounded to the half type, where there is one.
    pub fn scatter_add(&mut self, x: Value, index: usize, y: Value, negative_zero: Value, half: Option<Half>) -> Value {
        let is_there = self.is_at(index);
        let exact = self.word(Instruction::Binary(Binary::Add, x, y));
        let sum = half.map_or(exact, |half| self.rounded(exact, half));
        let is_zero = |program: &mut Self, value| {
            program.condition(Instruction::CompareInt(Comparison::Equal, value, negative_zero))
        };
        let (keeps_y, keeps_x) = (is_zero(self, x), is_zero(self, y));
        let sum = self.word(Instruction::Select(keeps_y, y, sum));
        let sum = self.word(Instruction::Select(keeps_x, x, sum));
        self.word(Instruction::Select(is_there, sum, x))
    }

    /// Adds whether an element is at the index of its row.
    fn is_at(&mut self, index: usize) -> Condition {
        if !self.indices.contains(&index) {
            self.indices.push(index);
        }
        let place = self.word(Instruction::Place);
        self.condition(Instruction::CompareInt(Comparison::Equal, place, Value::Input(index)))
    }

    /// Adds `x`, but in the window `y`. A word operand `y` has the window's shape, and no other instruction may read it.
    ///
    /// # Panics
    ///
    /// When an instruction before it, or one that is added later, reads that operand.
    pub fn assign(&mut self, x: Value, y: Value, window: Window) -> Value {
        let operand = match y {
            Value::Input(operand) => Some(operand),
            Value::Scalar(_) | Value::Result(_) => None,
        };
        let reads = |instruction: &Instruction| operand.is_some() && instruction.operands().0.contains(&y);
        assert!(!self.instructions.iter().any(reads), "{y:?} is read outside of its window");
        self.windows.push(window);
        let is_within = self.condition(Instruction::Within(self.windows.len() - 1));
        let assigned = self.word(Instruction::Select(is_within, y, x));
        self.windowed.push(operand);
        assigned
    }

    /// Makes what each element is filled with one value a row.
    pub fn fill_rows(&mut self) {
        for instruction in &mut self.instructions {
            if let Instruction::Fill(_, extent) = instruction {
                *extent = Extent::Rows;
            }
        }
    }

    fn push(&mut self, instruction: Instruction) {
        let (values, conditions) = instruction.operands();
        let exists = values.iter().all(|value| !matches!(value, Value::Result(index) if *index >= self.words))
            && conditions.iter().all(|value| !matches!(value, Condition::Result(index) if *index >= self.conditions));
        assert!(exists, "{instruction:?} reads a result that does not exist yet");
        let is_windowed = |value: &Value| matches!(value, Value::Input(operand) if self.window_of(*operand).is_some());
        assert!(!values.iter().any(is_windowed), "{instruction:?} reads an operand outside of its window");
        self.instructions.push(instruction);
    }

    /// How many instructions give a word.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Writes the word `index` to the next word output.
    pub fn output_word(&mut self, index: usize) {
        self.word_outputs.push(index);
    }

    /// Writes the word `index`, a number of this type, to the next half output.
    ///
    /// # Panics
    ///
    /// When another half output has another type.
    pub fn output_half(&mut self, index: usize, half: Half) {
        assert_eq!(*self.half.get_or_insert(half), half, "a program has half outputs of one type");
        self.half_outputs.push(index);
    }

    /// Writes the condition `index` to the next condition output.
    pub fn output_condition(&mut self, index: usize) {
        self.condition_outputs.push(index);
    }

    /// Makes the word `index`, a float, the element of a reduction.
    pub fn reduce(&mut self, index: usize) {
        self.reduced = Some(index);
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The words that are written, in order of output.
    pub fn word_outputs(&self) -> &[usize] {
        &self.word_outputs
    }

    /// The words that are written in the type [`half`](Self::half), in order of output.
    pub fn half_outputs(&self) -> &[usize] {
        &self.half_outputs
    }

    /// The type of half outputs, where there are some.
    pub fn half(&self) -> Option<Half> {
        self.half
    }

    /// The word that is reduced.
    pub fn reduced(&self) -> Option<usize> {
        self.reduced
    }

    /// The word operand that is reduced, if the program copies it, and writes nothing.
    pub fn reduces_operand(&self) -> Option<usize> {
        let writes = self.word_outputs.len() + self.half_outputs.len() + self.condition_outputs.len();
        match self.instructions[..] {
            [Instruction::IntBinary(IntBinary::Or, Value::Input(x), Value::Input(y))]
                if x == y && writes == 0 && self.reduced == Some(0) =>
            {
                Some(x)
            }
            _ => None,
        }
    }

    /// The word operands that are indices of elements of a row. [`rows`](crate::rows) sets a flag for each that has one outside; for
    /// other kernels that is a [check](crate::index_check::check) of its own.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The windows, in order.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The window that word operand `operand` has elements in alone.
    pub(super) fn window_of(&self, operand: usize) -> Option<usize> {
        self.windowed.iter().position(|&windowed| windowed == Some(operand))
    }

    /// The windows, and the word operands that have elements in these alone.
    pub(super) fn windowed(&self) -> impl Iterator<Item = (&Window, Option<usize>)> {
        self.windows.iter().zip(self.windowed.iter().copied())
    }

    /// The axes of windows, counted from the last one, each once.
    pub(super) fn window_axes(&self) -> Vec<usize> {
        let mut axes = Vec::new();
        for window in &self.windows {
            if !axes.contains(&window.axis) {
                axes.push(window.axis);
            }
        }
        axes
    }

    /// Whether an instruction is about rows, and only [`rows`](crate::rows) computes the program.
    pub fn has_rows(&self) -> bool {
        let is_of_rows = |instruction: &Instruction| {
            matches!(instruction, Instruction::Reduce(..) | Instruction::Fill(_, Extent::Rows))
        };
        self.instructions.iter().any(is_of_rows)
    }

    /// Whether an instruction is the place of an element in its row.
    pub(super) fn has_places(&self) -> bool {
        self.instructions.contains(&Instruction::Place)
    }

    /// Whether an instruction divides, or takes a square root.
    pub(super) fn divides(&self) -> bool {
        self.instructions.iter().any(|instruction| match instruction {
            Instruction::Unary(function, _) => function.divides(),
            Instruction::Binary(function, ..) => match function {
                Binary::Divide | Binary::ArcTangent => true,
                Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Power | Binary::Remainder => false,
            },
            Instruction::Reduce(function, _) => *function == RowReduction::Mean,
            _ => false,
        })
    }

    /// The conditions that are written, in order of output.
    pub fn condition_outputs(&self) -> &[usize] {
        &self.condition_outputs
    }
}

impl Instruction {
    /// Whether its result is a word, not a condition.
    pub(crate) fn is_word(&self) -> bool {
        !matches!(self, Self::Within(_) | Self::Compare(..) | Self::CompareInt(..) | Self::Logic(..) | Self::Not(..))
    }

    /// The words and the conditions that it reads.
    pub(crate) fn operands(&self) -> (Vec<Value>, Vec<Condition>) {
        match *self {
            Self::Unary(_, x) | Self::ToFloat(x) | Self::ToInt(x) | Self::Fill(x, _) | Self::Reduce(_, x) => {
                (vec![x], vec![])
            }
            Self::Binary(_, a, b) | Self::IntBinary(_, a, b) | Self::Compare(_, a, b) | Self::CompareInt(_, a, b) => {
                (vec![a, b], vec![])
            }
            Self::Select(condition, a, b) => (vec![a, b], vec![condition]),
            Self::Indicator(condition) | Self::IntIndicator(condition) | Self::Not(condition) => {
                (vec![], vec![condition])
            }
            Self::Logic(_, a, b) => (vec![], vec![a, b]),
            Self::Place | Self::Within(_) => (vec![], vec![]),
        }
    }
}
