//! What an element-wise kernel computes.

/// Where a float operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A tensor operand.
    Input(usize),
    /// A scalar operand.
    Scalar(usize),
    /// The result of an earlier float instruction, counted among float instructions.
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
    /// `x`
    Copy,
    /// `-x`
    Negate,
    /// `|x|`
    Absolute,
    /// `1 / x`
    Reciprocal,
    /// The square root.
    SquareRoot,
    /// The exponential function, as the device computes it.
    Exponential,
    /// The natural logarithm, as the device computes it.
    Logarithm,
    /// The hyperbolic tangent, as the device computes it.
    HyperbolicTangent,
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
}

/// A comparison of two floats; with a NaN all but `NotEqual` are false.
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
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// A float of one float.
    Unary(Unary, Value),
    /// A float of two floats.
    Binary(Binary, Value, Value),
    /// `if condition { a } else { b }`
    Select(Condition, Value, Value),
    /// 1.0 where the condition holds, else 0.0.
    Indicator(Condition),
    /// A condition of two floats.
    Compare(Comparison, Value, Value),
    /// A condition of two conditions.
    Logic(Logic, Condition, Condition),
    /// `!condition`
    Not(Condition),
}

/// Instructions in order, and which of their results are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Program {
    instructions: Vec<Instruction>,
    float_outputs: Vec<usize>,
    condition_outputs: Vec<usize>,
    floats: usize,
    conditions: usize,
}

impl Program {
    /// Adds an instruction with a float result, and names that result.
    ///
    /// # Panics
    ///
    /// When the result of `instruction` is a condition, or it reads a result that does not exist yet.
    pub fn float(&mut self, instruction: Instruction) -> Value {
        assert!(instruction.is_float(), "{instruction:?} has a condition as its result");
        self.push(instruction);
        self.floats += 1;
        Value::Result(self.floats - 1)
    }

    /// Adds an instruction with a condition as its result, and names that result.
    ///
    /// # Panics
    ///
    /// When the result of `instruction` is a float, or it reads a result that does not exist yet.
    pub fn condition(&mut self, instruction: Instruction) -> Condition {
        assert!(!instruction.is_float(), "{instruction:?} has a float as its result");
        self.push(instruction);
        self.conditions += 1;
        Condition::Result(self.conditions - 1)
    }

    fn push(&mut self, instruction: Instruction) {
        let (values, conditions) = instruction.operands();
        let exists = values.iter().all(|value| !matches!(value, Value::Result(index) if *index >= self.floats))
            && conditions.iter().all(|value| !matches!(value, Condition::Result(index) if *index >= self.conditions));
        assert!(exists, "{instruction:?} reads a result that does not exist yet");
        self.instructions.push(instruction);
    }

    /// Writes the float result `index` to the next float output.
    pub fn output_float(&mut self, index: usize) {
        self.float_outputs.push(index);
    }

    /// Writes the condition `index` to the next condition output.
    pub fn output_condition(&mut self, index: usize) {
        self.condition_outputs.push(index);
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The float results that are written, in order of output.
    pub fn float_outputs(&self) -> &[usize] {
        &self.float_outputs
    }

    /// The conditions that are written, in order of output.
    pub fn condition_outputs(&self) -> &[usize] {
        &self.condition_outputs
    }
}

impl Instruction {
    fn is_float(&self) -> bool {
        matches!(self, Self::Unary(..) | Self::Binary(..) | Self::Select(..) | Self::Indicator(..))
    }

    fn operands(&self) -> (Vec<Value>, Vec<Condition>) {
        match *self {
            Self::Unary(_, x) => (vec![x], vec![]),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => (vec![a, b], vec![]),
            Self::Select(condition, a, b) => (vec![a, b], vec![condition]),
            Self::Indicator(condition) | Self::Not(condition) => (vec![], vec![condition]),
            Self::Logic(_, a, b) => (vec![], vec![a, b]),
        }
    }
}
