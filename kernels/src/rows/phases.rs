//! The phases of a program that reduces rows: what lies between two reductions.

use crate::elementwise::{Condition, Extent, Instruction, Part, Program, RowReduction, Value};
use std::hash::{Hash, Hasher};

/// Where a unit has a value from that a phase reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It is one value a row.
    Row,
    /// It is an operand, which this phase reads from memory.
    Memory,
    /// An earlier phase has kept it in this list of shared memory.
    Kept(usize),
    /// The phase does not read it.
    Absent,
}

/// What a phase does with each element of a row, and which reductions it ends with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Word operands.
    pub inputs: Vec<Origin>,
    /// Bool operands.
    pub masks: Vec<Origin>,
    /// Words of instructions, of those that the phase does not compute.
    pub words: Vec<Origin>,
    /// Conditions of instructions, likewise.
    pub conditions: Vec<Origin>,
    /// What it keeps for later phases, with the list that each goes to.
    pub kept: Vec<(Kept, usize)>,
    /// Instructions of one value a row whose operands exist, but for reductions.
    pub of_row: Vec<bool>,
    /// Instructions of each element.
    pub of_elements: Vec<bool>,
    /// The word outputs that it writes: the index of the output, and that of the word.
    pub word_outputs: Vec<(usize, usize)>,
    /// The half outputs that it writes, likewise.
    pub half_outputs: Vec<(usize, usize)>,
    /// The condition outputs that it writes.
    pub condition_outputs: Vec<(usize, usize)>,
    /// What its chains accumulate.
    pub chains: Vec<Chain>,
    /// Its reductions: the index of the word, and the accumulator that is it.
    pub reductions: Vec<(usize, usize)>,
}

/// What a chain accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The reduction; that of the first element at an end accumulates its place too.
    pub reduction: RowReduction,
    /// What it reduces.
    pub value: Value,
    /// Its accumulator, among those of the phase; the place has the next one.
    pub accumulator: usize,
}

impl Phase {
    /// The instructions of one value a row.
    pub fn part_of_row(&self) -> Part {
        Part::Of(self.of_row.clone())
    }

    /// The instructions of each element.
    pub fn part_of_elements(&self) -> Part {
        Part::Of(self.of_elements.clone())
    }

    /// Whether it does something with each element.
    pub fn has_elements(&self) -> bool {
        let outputs = [&self.word_outputs, &self.half_outputs, &self.condition_outputs];
        !self.chains.is_empty() || !self.kept.is_empty() || outputs.iter().any(|outputs| !outputs.is_empty())
    }

    /// How many accumulators its chains have.
    pub fn accumulators(&self) -> usize {
        self.chains.iter().map(|chain| 1 + usize::from(accumulates_place(chain.reduction))).sum()
    }

    /// Adds a reduction whose result is word `index`; that of an element at an end and of its place share a chain.
    fn reduce(&mut self, index: usize, reduction: RowReduction, value: Value) {
        let (reduction, offset) = match reduction {
            RowReduction::ArgMax => (RowReduction::FirstMax, 1),
            RowReduction::ArgMin => (RowReduction::FirstMin, 1),
            reduction => (reduction, 0),
        };
        let is_same = |chain: &&Chain| (chain.reduction, chain.value) == (reduction, value);
        let accumulator = match self.chains.iter().find(is_same) {
            Some(chain) => chain.accumulator,
            None => {
                let accumulator = self.accumulators();
                self.chains.push(Chain { reduction, value, accumulator });
                accumulator
            }
        };
        self.reductions.push((index, accumulator + offset));
    }
}

/// Whether a chain of this reduction accumulates the element and its place.
pub fn accumulates_place(reduction: RowReduction) -> bool {
    matches!(reduction, RowReduction::FirstMax | RowReduction::FirstMin)
}

/// A value of each element that a later phase reads too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// A word operand.
    Input(usize),
    /// A bool operand.
    Mask(usize),
    /// The word of an instruction.
    Word(usize),
    /// The condition of an instruction.
    Condition(usize),
}

/// A program in phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phases {
    /// In order. A phase has the instructions that need the reductions of the one before.
    pub phases: Vec<Phase>,
    /// Lists of shared memory, of one word for each element of a row.
    pub lists: usize,
    /// Word operands of one value a row.
    pub row_inputs: Vec<bool>,
    /// Bool operands of one value a row.
    pub row_masks: Vec<bool>,
    /// Word outputs of one value a row: the index of the output, and that of the word.
    pub row_words: Vec<(usize, usize)>,
    /// Half outputs of one value a row, likewise.
    pub row_halves: Vec<(usize, usize)>,
    /// Condition outputs of one value a row.
    pub row_conditions: Vec<(usize, usize)>,
}

/// They follow from the program, which a kernel is looked up by, and from which operands have one value a row.
impl Hash for Phases {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.row_inputs.hash(state);
        self.row_masks.hash(state);
    }
}

/// A value of a program.
#[derive(Clone, Copy)]
struct Known {
    /// The first phase that can read it.
    phase: usize,
    /// Whether it is one value a row.
    is_row: bool,
    /// Whether it follows from the element's place and from what is one value a row: each phase that reads it computes it.
    is_of_place: bool,
}

impl Known {
    /// Whether a phase that reads it has it from memory, or from an earlier phase.
    fn is_kept(self) -> bool {
        !self.is_row && !self.is_of_place
    }
}

/// All values of a program, and from which phase to which each is needed.
struct Lives {
    words: Vec<Known>,
    conditions: Vec<Known>,
    /// The phases that read a value of each element: the first and the last. A value of an instruction begins with its own phase.
    of: Vec<(Kept, usize, usize)>,
}

impl Lives {
    fn note(&mut self, kept: Kept, phase: usize) {
        match self.of.iter_mut().find(|(other, ..)| *other == kept) {
            Some((_, first, last)) => (*first, *last) = ((*first).min(phase), (*last).max(phase)),
            None => self.of.push((kept, phase, phase)),
        }
    }
}

impl Phases {
    /// The most accumulators that a phase has, at least 1.
    pub fn most_accumulators(&self) -> usize {
        self.phases.iter().map(Phase::accumulators).max().unwrap_or(0).max(1)
    }

    /// The place of word `index` among the reductions of phases before `phase`, in order, if it is one of them.
    pub fn place_of_reduction(&self, index: usize, phase: usize) -> Option<usize> {
        self.phases[..phase].iter().flat_map(|phase| &phase.reductions).position(|(word, _)| *word == index)
    }

    /// Whether the memory of word operand `operand` may have the output that is `word`: a unit has read each of its elements, which
    /// are of that operand alone, when it writes that element of the output.
    pub fn may_overwrite(&self, word: usize, operand: usize) -> bool {
        let read = self.phases.iter().position(|phase| phase.inputs[operand] == Origin::Memory);
        let writes =
            |phase: &Phase| phase.word_outputs.iter().chain(&phase.half_outputs).any(|(_, other)| *other == word);
        read.zip(self.phases.iter().position(writes)).is_some_and(|(read, written)| read <= written)
    }

    /// The phases of `program`, some of whose operands have one value a row.
    ///
    /// # Panics
    ///
    /// When it reduces what is one value a row.
    pub fn of(program: &Program, row_inputs: Vec<bool>, row_masks: Vec<bool>) -> Self {
        let mut lives = Lives { words: Vec::new(), conditions: Vec::new(), of: Vec::new() };
        // The phase of each instruction, and whether it is one value a row.
        let mut instructions = Vec::new();
        for &instruction in program.instructions() {
            let (values, conditions) = instruction.operands();
            let word = |value: &Value| match *value {
                Value::Input(index) => Known { phase: 0, is_row: row_inputs[index], is_of_place: false },
                Value::Scalar(_) => Known { phase: 0, is_row: true, is_of_place: false },
                Value::Result(index) => lives.words[index],
            };
            let condition = |value: &Condition| match *value {
                Condition::Input(index) => Known { phase: 0, is_row: row_masks[index], is_of_place: false },
                Condition::Result(index) => lives.conditions[index],
            };
            let operands: Vec<_> = values.iter().map(word).chain(conditions.iter().map(condition)).collect();
            let phase = operands.iter().map(|operand| operand.phase).max().unwrap_or(0);
            let is_row = operands.iter().all(|operand| operand.is_row);
            let known = match instruction {
                Instruction::Reduce(..) => {
                    assert!(!is_row, "{instruction:?} reduces one value a row");
                    Known { phase: phase + 1, is_row: true, is_of_place: false }
                }
                Instruction::Fill(_, Extent::Elements) | Instruction::Place => {
                    assert!(is_row, "{instruction:?} fills a row with what is not one value of it");
                    Known { phase, is_row: false, is_of_place: true }
                }
                _ => {
                    let is_of_place = !is_row && operands.iter().all(|operand| operand.is_row || operand.is_of_place);
                    Known { phase, is_row, is_of_place }
                }
            };
            if !is_row {
                let of_elements = |value: &Value| match *value {
                    Value::Input(index) if !row_inputs[index] => Some(Kept::Input(index)),
                    Value::Result(index) if lives.words[index].is_kept() => Some(Kept::Word(index)),
                    _ => None,
                };
                let flags_of_elements = |value: &Condition| match *value {
                    Condition::Input(index) if !row_masks[index] => Some(Kept::Mask(index)),
                    Condition::Result(index) if lives.conditions[index].is_kept() => Some(Kept::Condition(index)),
                    _ => None,
                };
                let read: Vec<_> = { values.iter().filter_map(of_elements) }
                    .chain(conditions.iter().filter_map(flags_of_elements))
                    .collect();
                read.into_iter().for_each(|kept| lives.note(kept, phase));
            }
            match instruction.is_word() {
                true => lives.words.push(known),
                false => lives.conditions.push(known),
            }
            instructions.push(known);
        }
        for (index, word) in lives.words.clone().iter().enumerate().filter(|(_, word)| word.is_kept()) {
            lives.note(Kept::Word(index), word.phase);
        }
        for (index, condition) in lives.conditions.clone().iter().enumerate().filter(|(_, known)| known.is_kept()) {
            lives.note(Kept::Condition(index), condition.phase);
        }
        let count = instructions.iter().map(|known| known.phase + 1).max().unwrap_or(1);
        let (lists, places) = lists_of(&lives.of);
        let phases =
            (0..count).map(|phase| lives.phase(program, phase, &instructions, &places, &row_inputs, &row_masks));
        let of_row = |outputs: &[usize], values: &[Known]| -> Vec<_> {
            outputs.iter().copied().enumerate().filter(|(_, index)| values[*index].is_row).collect()
        };
        Self {
            phases: phases.collect(),
            lists,
            row_words: of_row(program.word_outputs(), &lives.words),
            row_halves: of_row(program.half_outputs(), &lives.words),
            row_conditions: of_row(program.condition_outputs(), &lives.conditions),
            row_inputs,
            row_masks,
        }
    }
}

/// A list of shared memory for each value that a later phase than its first reads, and how many lists there are. A phase reads
/// all that it reads of an element before it keeps something, so the last one to read a list can be the first to write it.
fn lists_of(lives: &[(Kept, usize, usize)]) -> (usize, Vec<(Kept, usize)>) {
    let mut kept: Vec<_> = lives.iter().filter(|(_, first, last)| first < last).collect();
    kept.sort_by_key(|(_, first, _)| *first);
    let mut free_from: Vec<usize> = Vec::new();
    let places = kept.into_iter().map(|&(kept, first, last)| {
        let list = free_from.iter().position(|&free| free <= first).unwrap_or_else(|| {
            free_from.push(0);
            free_from.len() - 1
        });
        free_from[list] = last;
        (kept, list)
    });
    let places = places.collect();
    (free_from.len(), places)
}

impl Lives {
    fn phase(
        &self,
        program: &Program,
        phase: usize,
        instructions: &[Known],
        places: &[(Kept, usize)],
        row_inputs: &[bool],
        row_masks: &[bool],
    ) -> Phase {
        let life =
            |kept: Kept| self.of.iter().find(|(other, ..)| *other == kept).map(|&(_, first, last)| (first, last));
        let list = |kept: Kept| places.iter().find(|(other, _)| *other == kept).map(|&(_, list)| list);
        let operand = |kept: Kept, is_row: bool| match life(kept) {
            _ if is_row => Origin::Row,
            Some((first, _)) if first == phase => Origin::Memory,
            Some((first, last)) if first < phase && phase <= last => Origin::Kept(list(kept).expect("it is kept")),
            _ => Origin::Absent,
        };
        let result = |kept: Kept, known: &Known| match life(kept) {
            _ if known.is_row && known.phase <= phase => Origin::Row,
            Some((first, last)) if first < phase && phase <= last => Origin::Kept(list(kept).expect("it is kept")),
            _ => Origin::Absent,
        };
        let outputs = |outputs: &[usize], values: &[Known]| -> Vec<_> {
            let here = |index: usize| !values[index].is_row && values[index].phase == phase;
            outputs.iter().copied().enumerate().filter(|(_, index)| here(*index)).collect()
        };
        let is_reduction = |index: usize| matches!(program.instructions()[index], Instruction::Reduce(..));
        let chosen = |is_chosen: &dyn Fn(usize, &Known) -> bool| -> Vec<bool> {
            instructions.iter().enumerate().map(|(index, known)| is_chosen(index, known)).collect()
        };
        let words = { program.instructions().iter() }.filter(|instruction| instruction.is_word());
        let reductions = words.enumerate().filter_map(|(index, instruction)| match *instruction {
            Instruction::Reduce(reduction, value) if self.words[index].phase == phase + 1 => {
                Some((index, reduction, value))
            }
            _ => None,
        });
        let mut this = Phase {
            inputs: (0..row_inputs.len()).map(|i| operand(Kept::Input(i), row_inputs[i])).collect(),
            masks: (0..row_masks.len()).map(|i| operand(Kept::Mask(i), row_masks[i])).collect(),
            words: { self.words.iter().enumerate() }.map(|(i, known)| result(Kept::Word(i), known)).collect(),
            conditions: { self.conditions.iter().enumerate() }
                .map(|(i, known)| result(Kept::Condition(i), known))
                .collect(),
            kept: places.iter().copied().filter(|(kept, _)| life(*kept).is_some_and(|life| life.0 == phase)).collect(),
            of_row: chosen(&|index, known| known.is_row && known.phase <= phase && !is_reduction(index)),
            of_elements: chosen(&|_, known| match known.is_of_place {
                true => known.phase <= phase,
                false => !known.is_row && known.phase == phase,
            }),
            word_outputs: outputs(program.word_outputs(), &self.words),
            half_outputs: outputs(program.half_outputs(), &self.words),
            condition_outputs: outputs(program.condition_outputs(), &self.conditions),
            ..Phase::default()
        };
        reductions.for_each(|(index, reduction, value)| this.reduce(index, reduction, value));
        this
    }
}
