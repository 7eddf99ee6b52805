//! The device side: one kernel, compiled for a program.

use super::cube::Cube;
use super::phases::{Kept, Origin, Phase, Phases, accumulates_place};
use crate::dtype::key::{KeyFor, float_key};
use crate::elementwise::{Evaluated, Form, Inputs, Outputs, RowReduction, Value, evaluate, mask, word};
use crate::quotient::Quotients;
use crate::reduce::{self, lift, lower, step};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use std::sync::Arc;

/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowForm {
    pub form: Form,
    pub phases: Arc<Phases>,
    pub cube: Cube,
}

/// What a program reads of one element, or of the row.
#[derive(CubeType)]
struct Operands {
    words: Sequence<u32>,
    masks: Sequence<bool>,
}

/// Computes the rows of a program, of `length` elements each. Sets `flags[numbers[i]]` where index operand `i` is no place in
/// a row.
///
/// Units along X take the elements of a row, those along Y other rows. A unit has the elements `x`, `x + units`, .. of its row,
/// which are one column of the columns order or, of a row of at most as many elements as there are units, one element.
#[cube(launch_unchecked)]
pub fn compute_rows<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    outputs: &mut Outputs<B, F, N>,
    flags: ComptimeOption<&mut [u32]>,
    numbers: Sequence<u32>,
    rows: u32,
    length: u32,
    #[comptime] form: RowForm,
    #[define(B, F)] _dtypes: [ElemType; 2],
) {
    let phases = comptime!(form.phases.clone());
    let cube = comptime!(form.cube);
    let row = CUBE_POS as u32 * comptime!(cube.rows) + UNIT_POS_Y;
    let is_inside = row < rows;
    // Units of no row read the first one, and write nothing.
    let base = select(is_inside, row * length, 0u32);
    let of_row = row_operands::<B, F, N>(inputs, base, comptime!(form.clone()));
    let mut scalars = Sequence::<u32>::new();
    #[unroll]
    for i in 0..inputs.scalars.len() {
        scalars.push(inputs.scalars[i]);
    }
    let mut lists = Shared::<[u32]>::new_slice(comptime!((cube.pitch * cube.rows) as usize * phases.lists.max(1)));
    let mut columns =
        Shared::<[u32]>::new_slice(comptime!((cube.units * cube.rows) as usize * phases.most_accumulators()));
    let mut totals = Shared::<[u32]>::new_slice(comptime!(cube.rows as usize * phases.most_accumulators()));
    // In the order of phases.
    let mut reduced = Sequence::<u32>::new();
    if is_inside && UNIT_POS_X == 0 {
        check_indices(flags, &numbers, &of_row, length, comptime!(form.clone()));
    }

    #[unroll]
    for p in 0..comptime!(phases.phases.len()) {
        let phase = comptime!(phases.phases[p].clone());
        let count = comptime!(phase.accumulators());
        let given = row_values(&of_row, &scalars, &reduced, inputs.zero, p, comptime!(form.clone()));
        let mut chains = Array::<u32>::new(comptime!(count.max(1)));
        #[unroll]
        for i in 0..count {
            chains[i] = 0u32;
        }
        if comptime!(phase.has_elements()) && is_inside {
            let mut at = UNIT_POS_X;
            while at < length {
                let first = at == UNIT_POS_X;
                let of_element =
                    element_operands::<B, F, N>(inputs, &of_row, &lists, base, at, p, comptime!(form.clone()));
                let known = element_values(&given, &lists, at, p, comptime!(form.clone()));
                let results = evaluate(
                    &of_element.words,
                    &of_element.masks,
                    &scalars,
                    &known,
                    at,
                    &Sequence::new(),
                    inputs.zero,
                    comptime!(form.form.program.clone()),
                    comptime!(phase.part_of_elements()),
                    comptime!(form.form.quotients),
                );
                keep(&mut lists, &of_element, &results, at, comptime!(phase.clone()), comptime!(form.clone()));
                let place = (base + at) as usize;
                #[unroll]
                for i in 0..comptime!(phase.word_outputs.len()) {
                    let (output, index) = comptime!(phase.word_outputs[i]);
                    let buffer = outputs.words.index_mut(output);
                    buffer[place] = Vector::new(results.words[index]);
                }
                #[unroll]
                for i in 0..comptime!(phase.half_outputs.len()) {
                    let (output, index) = comptime!(phase.half_outputs[i]);
                    let buffer = outputs.halves.index_mut(output);
                    buffer[place] = Vector::new(F::cast_from(f32::reinterpret(results.words[index])));
                }
                #[unroll]
                for i in 0..comptime!(phase.condition_outputs.len()) {
                    let (output, index) = comptime!(phase.condition_outputs[i]);
                    let buffer = outputs.conditions.index_mut(output);
                    buffer[place] = Vector::new(select(results.conditions[index], B::from_int(1), B::from_int(0)));
                }
                #[unroll]
                for i in 0..comptime!(phase.chains.len()) {
                    let chain = comptime!(phase.chains[i]);
                    let (reduction, a) = comptime!((chain.reduction, chain.accumulator));
                    let value = reduced_value(&of_element, &results, comptime!(chain.value));
                    if comptime!(accumulates_place(reduction)) {
                        let b = comptime!(a + 1);
                        let wins = first || precedes(value, at, chains[a], chains[b], reduction);
                        chains[a] = select(wins, value, chains[a]);
                        chains[b] = select(wins, at, chains[b]);
                    } else {
                        let next = lifted(value, reduction);
                        chains[a] = select(first, next, stepped(chains[a], next, reduction));
                    }
                }
                at += comptime!(cube.units);
            }
        }
        if comptime!(count > 0) {
            let parts = comptime!(cube.units * count as u32) * UNIT_POS_Y;
            #[unroll]
            for i in 0..count {
                columns[(parts + comptime!(cube.units * i as u32) + UNIT_POS_X) as usize] = chains[i];
            }
            sync_cube();
            if UNIT_POS_X == 0 {
                let present = min(length, comptime!(cube.units));
                let first_total = UNIT_POS_Y * comptime!(count as u32);
                #[unroll]
                for i in 0..comptime!(phase.chains.len()) {
                    let chain = comptime!(phase.chains[i]);
                    let (reduction, a) = comptime!((chain.reduction, chain.accumulator as u32));
                    let first = parts + comptime!(cube.units * a);
                    let mut total = columns[first as usize];
                    if comptime!(accumulates_place(reduction)) {
                        let first_place = first + comptime!(cube.units);
                        let mut place = columns[first_place as usize];
                        for c in 1..present {
                            let (next, at) = (columns[(first + c) as usize], columns[(first_place + c) as usize]);
                            let wins = precedes(next, at, total, place, reduction);
                            total = select(wins, next, total);
                            place = select(wins, at, place);
                        }
                        totals[(first_total + a) as usize] = total;
                        totals[(first_total + comptime!(a + 1)) as usize] = place;
                    } else {
                        for c in 1..present {
                            total = stepped(total, columns[(first + c) as usize], reduction);
                        }
                        totals[(first_total + a) as usize] =
                            lowered(total, length, reduction, comptime!(form.form.quotients));
                    }
                }
            }
            sync_cube();
            #[unroll]
            for i in 0..comptime!(phase.reductions.len()) {
                let accumulator = comptime!(phase.reductions[i].1 as u32);
                reduced.push(totals[(UNIT_POS_Y * comptime!(count as u32) + accumulator) as usize]);
            }
        }
    }
    if is_inside && UNIT_POS_X == 0 {
        let last = comptime!(phases.phases.len() - 1);
        let results = row_values(&of_row, &scalars, &reduced, inputs.zero, last, comptime!(form.clone()));
        #[unroll]
        for i in 0..comptime!(phases.row_words.len()) {
            let (output, index) = comptime!(phases.row_words[i]);
            let buffer = outputs.words.index_mut(output);
            buffer[row as usize] = Vector::new(results.words[index]);
        }
        #[unroll]
        for i in 0..comptime!(phases.row_halves.len()) {
            let (output, index) = comptime!(phases.row_halves[i]);
            let buffer = outputs.halves.index_mut(output);
            buffer[row as usize] = Vector::new(F::cast_from(f32::reinterpret(results.words[index])));
        }
        #[unroll]
        for i in 0..comptime!(phases.row_conditions.len()) {
            let (output, index) = comptime!(phases.row_conditions[i]);
            let buffer = outputs.conditions.index_mut(output);
            buffer[row as usize] = Vector::new(select(results.conditions[index], B::from_int(1), B::from_int(0)));
        }
    }
    keep_subnormals();
}

/// Sets the flag of each index operand that is no place in a row of `length`.
#[cube]
fn check_indices(
    flags: ComptimeOption<&mut [u32]>,
    numbers: &Sequence<u32>,
    of_row: &Operands,
    length: u32,
    #[comptime] form: RowForm,
) {
    #[comptime]
    if let ComptimeOption::Some(flags) = flags {
        #[unroll]
        for i in 0..numbers.len() {
            let index = comptime!(form.form.program.indices()[i]);
            // As an unsigned number a negative index is beyond every row.
            if of_row.words[index] >= length {
                flags[numbers[i] as usize] = 1u32;
            }
        }
    };
}

/// Word operand `i` at an element.
#[cube]
fn read_word<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    element: u32,
    #[comptime] i: usize,
    #[comptime] form: RowForm,
) -> u32 {
    word::<B, F, N>(inputs, element, 0u32, i, comptime!(form.form.clone())).extract(0usize)
}

/// Bool operand `i` at an element.
#[cube]
fn read_mask<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    element: u32,
    #[comptime] i: usize,
    #[comptime] form: RowForm,
) -> bool {
    mask::<B, F, N>(inputs, element, i, comptime!(form.form.clone())).extract(0usize) != B::from_int(0)
}

/// The operands of one value a row; zeros for others.
#[cube]
fn row_operands<B: Int, F: Float, N: Size>(inputs: &Inputs<B, F, N>, base: u32, #[comptime] form: RowForm) -> Operands {
    let mut words = Sequence::<u32>::new();
    #[unroll]
    for i in 0..comptime!(form.phases.row_inputs.len()) {
        if comptime!(form.phases.row_inputs[i]) {
            words.push(read_word::<B, F, N>(inputs, base, i, comptime!(form.clone())));
        } else {
            words.push(0u32.runtime());
        }
    }
    let mut masks = Sequence::<bool>::new();
    #[unroll]
    for i in 0..comptime!(form.phases.row_masks.len()) {
        if comptime!(form.phases.row_masks[i]) {
            masks.push(read_mask::<B, F, N>(inputs, base, i, comptime!(form.clone())));
        } else {
            masks.push(false.runtime());
        }
    }
    Operands { words, masks }
}

/// The results of instructions of one value a row that phase `p` knows; anything for others.
#[cube]
fn row_values(
    of_row: &Operands,
    scalars: &Sequence<u32>,
    reduced: &Sequence<u32>,
    zero: u32,
    #[comptime] p: usize,
    #[comptime] form: RowForm,
) -> Evaluated {
    let phase = comptime!(form.phases.phases[p].clone());
    let mut given = Evaluated::nothing();
    #[unroll]
    for i in 0..comptime!(phase.words.len()) {
        let place = comptime!(form.phases.place_of_reduction(i, p));
        match place {
            Some(place) => given.words.push(reduced[place]),
            None => given.words.push(0u32.runtime()),
        }
    }
    #[unroll]
    for _ in 0..comptime!(phase.conditions.len()) {
        given.conditions.push(false.runtime());
    }
    evaluate(
        &of_row.words,
        &of_row.masks,
        scalars,
        &given,
        0u32,
        &Sequence::new(),
        zero,
        comptime!(form.form.program.clone()),
        comptime!(phase.part_of_row()),
        comptime!(form.form.quotients),
    )
}

/// What phase `p` reads of the operands at element `at` of its row.
#[cube]
fn element_operands<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    of_row: &Operands,
    lists: &Shared<[u32]>,
    base: u32,
    at: u32,
    #[comptime] p: usize,
    #[comptime] form: RowForm,
) -> Operands {
    let phase = comptime!(form.phases.phases[p].clone());
    let mut words = Sequence::<u32>::new();
    #[unroll]
    for i in 0..comptime!(phase.inputs.len()) {
        let origin = comptime!(phase.inputs[i]);
        match origin {
            Origin::Row => words.push(of_row.words[i]),
            Origin::Memory => words.push(read_word::<B, F, N>(inputs, base + at, i, comptime!(form.clone()))),
            Origin::Kept(list) => words.push(lists[place(at, list, comptime!(form.cube))]),
            Origin::Absent => words.push(0u32.runtime()),
        }
    }
    let mut masks = Sequence::<bool>::new();
    #[unroll]
    for i in 0..comptime!(phase.masks.len()) {
        let origin = comptime!(phase.masks[i]);
        match origin {
            Origin::Row => masks.push(of_row.masks[i]),
            Origin::Memory => masks.push(read_mask::<B, F, N>(inputs, base + at, i, comptime!(form.clone()))),
            Origin::Kept(list) => masks.push(lists[place(at, list, comptime!(form.cube))] != 0u32),
            Origin::Absent => masks.push(false.runtime()),
        }
    }
    Operands { words, masks }
}

/// The results of instructions that phase `p` reads at element `at` of its row.
#[cube]
fn element_values(
    of_row: &Evaluated,
    lists: &Shared<[u32]>,
    at: u32,
    #[comptime] p: usize,
    #[comptime] form: RowForm,
) -> Evaluated {
    let phase = comptime!(form.phases.phases[p].clone());
    let mut known = Evaluated::nothing();
    #[unroll]
    for i in 0..comptime!(phase.words.len()) {
        let origin = comptime!(phase.words[i]);
        match origin {
            Origin::Kept(list) => known.words.push(lists[place(at, list, comptime!(form.cube))]),
            _ => known.words.push(of_row.words[i]),
        }
    }
    #[unroll]
    for i in 0..comptime!(phase.conditions.len()) {
        let origin = comptime!(phase.conditions[i]);
        match origin {
            Origin::Kept(list) => known.conditions.push(lists[place(at, list, comptime!(form.cube))] != 0u32),
            _ => known.conditions.push(of_row.conditions[i]),
        }
    }
    known
}

/// Keeps what later phases read of element `at`.
#[cube]
fn keep(
    lists: &mut Shared<[u32]>,
    operands: &Operands,
    results: &Evaluated,
    at: u32,
    #[comptime] phase: Phase,
    #[comptime] form: RowForm,
) {
    #[unroll]
    for i in 0..comptime!(phase.kept.len()) {
        let (kept, list) = comptime!(phase.kept[i]);
        let place = place(at, list, comptime!(form.cube));
        match kept {
            Kept::Input(index) => lists[place] = operands.words[index],
            Kept::Mask(index) => lists[place] = select(operands.masks[index], 1u32, 0u32),
            Kept::Word(index) => lists[place] = results.words[index],
            Kept::Condition(index) => lists[place] = select(results.conditions[index], 1u32, 0u32),
        }
    }
}

/// The place of element `at` of the unit's row in a list.
#[cube]
fn place(at: u32, #[comptime] list: usize, #[comptime] cube: Cube) -> usize {
    (UNIT_POS_Y * comptime!(cube.pitch) + at + comptime!(cube.pitch * cube.rows * list as u32)) as usize
}

/// The value of an element that is reduced.
#[cube]
fn reduced_value(operands: &Operands, results: &Evaluated, #[comptime] value: Value) -> u32 {
    match value {
        Value::Input(index) => operands.words[index],
        Value::Result(index) => results.words[index],
        Value::Scalar(_) => comptime!(unreachable!("a scalar is one value a row")),
    }
}

/// The operation of [`reduce`](crate::reduce) that this is.
fn operation(reduction: RowReduction) -> reduce::Operation {
    match reduction {
        RowReduction::Sum => reduce::Operation::Sum,
        RowReduction::Prod => reduce::Operation::Prod,
        RowReduction::Mean => reduce::Operation::Mean,
        RowReduction::Max => reduce::Operation::Max,
        RowReduction::Min => reduce::Operation::Min,
        RowReduction::FirstMax | RowReduction::FirstMin | RowReduction::ArgMax | RowReduction::ArgMin => {
            unreachable!("{reduction:?} accumulates places")
        }
        RowReduction::Or => unreachable!("{reduction:?} is of bits"),
    }
}

/// Whether the element `bits` at `place` comes before the one `others` at `other_place`: it is further out, or as far and has
/// the lower place. Zeros are equal, and a NaN, of which all are equal, is beyond all numbers.
#[cube]
fn precedes(bits: u32, place: u32, others: u32, other_place: u32, #[comptime] reduction: RowReduction) -> bool {
    let end = comptime!(match reduction {
        RowReduction::FirstMin => KeyFor::Minimum,
        _ => KeyFor::Maximum,
    });
    let key = float_key::<f32, i32>(f32::reinterpret(bits), end, true);
    let other = float_key::<f32, i32>(f32::reinterpret(others), end, true);
    let is_further = if comptime!(matches!(end, KeyFor::Minimum)) { key < other } else { key > other };
    is_further || (key == other && place < other_place)
}

/// Whether elements are compared by their keys.
fn compares(reduction: RowReduction) -> bool {
    matches!(reduction, RowReduction::Max | RowReduction::Min)
}

/// The accumulator of one element.
#[cube]
fn lifted(bits: u32, #[comptime] reduction: RowReduction) -> u32 {
    if comptime!(compares(reduction)) {
        u32::reinterpret(lift::<f32, i32>(f32::reinterpret(bits), comptime!(operation(reduction))))
    } else {
        bits
    }
}

/// One step of a chain of accumulators.
#[cube]
fn stepped(chain: u32, next: u32, #[comptime] reduction: RowReduction) -> u32 {
    if comptime!(reduction == RowReduction::Or) {
        chain | next
    } else if comptime!(compares(reduction)) {
        let (chain, next) = (i32::reinterpret(chain), i32::reinterpret(next));
        u32::reinterpret(step::<i32>(chain, next, comptime!(operation(reduction))))
    } else {
        let (chain, next) = (f32::reinterpret(chain), f32::reinterpret(next));
        u32::reinterpret(step::<f32>(chain, next, comptime!(operation(reduction))))
    }
}

/// The word of the accumulator of `length` elements.
#[cube]
fn lowered(total: u32, length: u32, #[comptime] reduction: RowReduction, #[comptime] quotients: Quotients) -> u32 {
    if comptime!(reduction == RowReduction::Or) {
        total
    } else if comptime!(compares(reduction)) {
        let operation = comptime!(operation(reduction));
        u32::reinterpret(lower::<i32, f32>(i32::reinterpret(total), 0i32, operation, quotients))
    } else {
        let (total, divisor) = (f32::reinterpret(total), f32::cast_from(length));
        u32::reinterpret(lower::<f32, f32>(total, divisor, comptime!(operation(reduction)), quotients))
    }
}
