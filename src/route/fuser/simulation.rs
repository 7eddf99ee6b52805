//! Whether the groups of a block run when what they read is there.

use super::apart::groups;
use super::reduced_in_place;
use super::tests::{last, opened, reshape, sum, swap, tensor};
use crate::catalogue::is_free;
use crate::route::groups::{Group, Groups, Kind};
use crate::route::merged::merged;
use crate::route::products::Lead;
use crate::route::schedule::{MOST_ELEMENTS, MOST_ELEMENTS_OF_ONE, MOST_HELD, Size, Step, steps};
use burn_backend::{DType, Shape};
use burn_ir::{
    BaseOperationIr, BinaryOpIr, FloatOperationIr, IrVisitorMut, MatmulOpIr, NumericOperationIr, OperationIr,
    ReduceDimOpIr, ReduceOpIr, SwapDimsOpIr, TensorId, TensorIr, TensorStatus,
};
use std::collections::HashSet;

/// The tensors that are there while the groups of a block run.
struct Tensors<'a> {
    operations: &'a [OperationIr],
    there: HashSet<TensorId>,
    /// Whether frees run in their place, as in a block of one group.
    frees: bool,
}

impl Tensors<'_> {
    /// Takes what `indices` read of other operations, as a kernel of these binds it.
    fn bind(&mut self, indices: &[usize]) {
        let computed: Vec<_> = indices.iter().flat_map(|&index| self.operations[index].outputs()).collect();
        for &index in indices.iter().filter(|&&index| !is_free(&self.operations[index])) {
            for input in self.operations[index].inputs() {
                if computed.iter().any(|out| out.id == input.id) {
                    continue;
                }
                assert!(self.there.contains(&input.id), "{:?} is read: {:?}", input.id, self.operations);
            }
        }
        let operations = indices.iter().map(|&index| &self.operations[index]).filter(|operation| !is_free(operation));
        let taken = operations.flat_map(OperationIr::inputs).filter(|input| input.status == TensorStatus::ReadWrite);
        taken.for_each(|input| {
            self.there.remove(&input.id);
        });
    }

    fn run_each(&mut self, indices: impl IntoIterator<Item = usize>) {
        for index in indices {
            match &self.operations[index] {
                OperationIr::Drop(tensor) if self.frees => {
                    self.there.remove(&tensor.id);
                }
                operation if is_free(operation) => {}
                operation => {
                    self.bind(&[index]);
                    self.there.extend(operation.outputs().map(|out| out.id));
                }
            }
        }
    }
}

/// Runs the groups of a block as a block does, and checks that each tensor is there when it is read. `size` is that of a group that
/// shares launches.
fn simulate(operations: &[OperationIr], size: impl Fn(usize) -> Option<Size>) {
    let merged = merged(reduced_in_place(opened(operations).0, operations, 16), operations, true);
    let groups = Groups::new(operations, groups(merged, operations, 16));
    let shares = |index: usize| !matches!(groups.all[index].kind, Kind::Moves | Kind::Other);
    let steps = match groups.all.len() {
        // As a block of one group runs it.
        1 => vec![Step { groups: vec![0], frees: vec![] }],
        _ => steps(&groups, |index| if shares(index) { size(index) } else { None }),
    };
    let written: HashSet<_> = operations.iter().flat_map(OperationIr::outputs).map(|out| out.id).collect();
    let read = operations.iter().filter(|operation| !is_free(operation)).flat_map(OperationIr::inputs);
    let there = read.map(|input| input.id).filter(|id| !written.contains(id)).collect();
    let mut tensors = Tensors { operations, there, frees: groups.all.len() == 1 };
    let mut ran = Vec::new();
    for Step { groups: indices, frees } in steps {
        let all: Vec<_> = indices.iter().map(|&index| &groups.all[index]).collect();
        ran.extend(all.iter().flat_map(|group| group.operations.iter().copied()));
        let together = || all.iter().filter_map(|group| group.together());
        for lead in together().flat_map(|of| &of.leads) {
            match lead {
                Lead::Operation(index) => tensors.run_each([*index]),
                Lead::Products(indices) => tensors.run_each(indices.iter().copied()),
            }
        }
        match all[..] {
            [group] if group.together().is_none() => tensors.run_each(group.operations.iter().copied()),
            [Group { kind: Kind::Product(_), .. }, ..] => {
                let indices = || all.iter().flat_map(|group| group.operations.iter().copied());
                indices().for_each(|index| tensors.bind(&[index]));
                tensors.there.extend(indices().flat_map(|index| operations[index].outputs()).map(|out| out.id));
            }
            _ => {
                for group in &all {
                    tensors.bind(group.side_by_side());
                }
                let sequences = all.iter().filter_map(|group| match group.together() {
                    Some(together) => Some(&together.sequence),
                    None => group.shared(),
                });
                tensors.there.extend(sequences.flat_map(|sequence| sequence.outputs()).copied());
            }
        }
        tensors.run_each(together().flat_map(|of| of.after.iter().copied()));
        frees.iter().flat_map(|&index| operations[index].nodes()).for_each(|node| {
            tensors.there.remove(&node.id);
        });
    }
    ran.sort_unstable();
    assert!(ran.into_iter().eq(0..operations.len()), "each runs once");
}

/// All groups that share launches are put off.
fn small(_: usize) -> Option<Size> {
    Some(Size { elements: 1, held: 1 })
}

#[test]
fn what_runs_before_or_after_a_sequence_takes_nothing_from_others() {
    let row = |id| TensorIr { shape: Shape::new([0, 2]), ..tensor(id) };
    let square = BinaryOpIr { lhs: row(1), rhs: row(1), out: row(3) };
    let square = OperationIr::NumericFloat(DType::F32, NumericOperationIr::Mul(square));
    simulate(&[sum(0, 90, 2), square, last(swap(0, 4))], small);
    let total = ReduceOpIr { input: tensor(2), out: TensorIr { shape: Shape::new([0]), ..tensor(3) } };
    let total = last(OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(total)));
    simulate(&[sum(0, 0, 2), total, reshape(0, 4), last(sum(0, 91, 5))], small);
}

#[test]
fn what_is_freed_before_a_sequence_is_not_read_by_one_that_it_is_merged_with() {
    let square = |id| TensorIr { shape: Shape::new([1, 1]), ..tensor(id) };
    let product = MatmulOpIr { lhs: square(7), rhs: square(8), out: square(9) };
    let product = OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product));
    let with_product =
        BinaryOpIr { lhs: tensor(2), rhs: TensorIr { shape: Shape::new([1, 2]), ..square(9) }, out: tensor(3) };
    let with_product = OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(with_product));
    simulate(&[sum(0, 1, 2), product, last(OperationIr::Drop(tensor(0))), with_product], small);
}

/// Operations on matrices of four shapes, of which some have their last use, and some are freed.
fn random_operations(seed: u64) -> Vec<OperationIr> {
    let mut state = seed;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % bound
    };
    let matrix = |id: u64, shape: [usize; 2]| TensorIr { shape: Shape::new(shape), ..tensor(id) };
    let mut known: Vec<TensorIr> = Vec::new();
    for (id, shape) in [[1, 2], [2, 1], [1, 1], [2, 2], [0, 2]].into_iter().enumerate() {
        known.extend([matrix(2 * id as u64, shape), matrix(2 * id as u64 + 1, shape)]);
    }
    let mut operations = Vec::new();
    while operations.len() < 40 {
        let lhs = known[below(known.len())].clone();
        let [rows, columns] = [lhs.shape[0], lhs.shape[1]];
        let id = known.len() as u64 + 100;
        let like = |shape: [usize; 2]| known.iter().filter(move |other| other.shape[..] == shape).cloned();
        let (operation, out) = match below(7) {
            0..3 => {
                let others: Vec<_> = like([rows, columns]).chain(like([0, columns])).collect();
                let (rhs, out) = (others[below(others.len())].clone(), matrix(id, [rows, columns]));
                let sum = BinaryOpIr { lhs, rhs, out: out.clone() };
                (OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum)), out)
            }
            3 => {
                let others: Vec<_> = [1, 2].into_iter().flat_map(|to| like([columns, to])).collect();
                if others.is_empty() {
                    continue;
                }
                let rhs = others[below(others.len())].clone();
                let out = matrix(id, [rows, rhs.shape[1]]);
                let product = MatmulOpIr { lhs, rhs, out: out.clone() };
                (OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product)), out)
            }
            4 => {
                let out = matrix(id, [columns, rows]);
                let swap = SwapDimsOpIr { input: lhs, out: out.clone(), dim1: 0, dim2: 1 };
                (OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap)), out)
            }
            axis => {
                let axis = axis - 5;
                let mut shape = [rows, columns];
                shape[axis] = 0;
                let out = matrix(id, shape);
                let reduction = ReduceDimOpIr { input: lhs, out: out.clone(), axis, accumulator_len: 1 };
                (OperationIr::NumericFloat(DType::F32, NumericOperationIr::SumDim(reduction)), out)
            }
        };
        known.push(out);
        operations.push(operation);
    }
    let mut all = Vec::new();
    let mut frees: Vec<TensorId> = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let is_last =
            |id: TensorId| !operations[index + 1..].iter().flat_map(OperationIr::inputs).any(|other| other.id == id);
        struct LastUses(Vec<TensorId>);
        impl IrVisitorMut for LastUses {
            fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
                if self.0.contains(&tensor.id) {
                    tensor.status = TensorStatus::ReadWrite;
                }
            }
        }
        let ids: Vec<_> = operation.inputs().map(|input| input.id).collect();
        let mut last_uses = LastUses(Vec::new());
        // Of an operand that is read twice Burn takes the second one alone.
        for &id in ids.iter().filter(|&&id| is_last(id) && ids.iter().filter(|&&other| other == id).count() == 1) {
            match below(3) {
                0 => last_uses.0.push(id),
                1 => frees.push(id),
                _ => {}
            }
        }
        let mut operation = operation.clone();
        operation.visit_mut(&mut last_uses);
        all.push(operation);
        if below(2) == 0 {
            all.extend(
                frees
                    .drain(..)
                    .map(|id| OperationIr::Drop(TensorIr { id, status: TensorStatus::ReadWrite, ..tensor(0) })),
            );
        }
    }
    all
}

#[test]
fn random_blocks_run_each_operation_when_its_operands_are_there() {
    let sizes = [1, MOST_ELEMENTS / 2, MOST_ELEMENTS_OF_ONE].map(|elements| Size { elements, held: elements });
    let sizes = [sizes[0], sizes[1], sizes[2], Size { elements: 1, held: MOST_HELD / 2 }];
    for seed in 0..900 {
        let mut operations = &random_operations(seed)[..];
        let size = |index: usize| sizes.get((index * 7 + seed as usize) % 5).copied();
        while !operations.is_empty() {
            let (block, rest) = operations.split_at(opened(operations).1);
            simulate(block, small);
            simulate(block, size);
            operations = rest;
        }
    }
}
