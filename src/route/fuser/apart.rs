//! The groups of a block with several: see [`schedule`](crate::route::schedule).

use crate::catalogue::is_free;
use crate::route::elementwise::{is_move, is_pure};
use crate::route::groups::Group;
use crate::route::merged::Open;
use crate::route::work::Work;
use burn_ir::OperationIr;

/// Whether `operation` may run before a sequence: a move, a product or a reduction, or a free.
pub(super) fn is_lead(operation: &OperationIr) -> bool {
    is_pure(operation) || is_free(operation)
}

/// The groups of a block of the operations `all`, which were opened and [merged](crate::route::merged). A kernel binds `max_tensors`.
pub(super) fn groups(opened: Vec<Open>, all: &[OperationIr], max_tensors: usize) -> Vec<Group> {
    let is_one = opened.len() == 1;
    let of_open = |(index, open): (usize, Open)| {
        let groups = match is_one {
            true => Group::all_of(open.sequence, all, open.operations, open.before, open.after),
            false => apart(open, all, max_tensors),
        };
        groups.into_iter().map(move |group| group.of_sequence(index))
    };
    opened.into_iter().enumerate().flat_map(of_open).collect()
}

/// The groups of `open`, of some operations of `all`: each product and each reduction that runs before its sequence is one by itself, and
/// so is each move beside such, so that other groups may run between.
fn apart(open: Open, all: &[OperationIr], max_tensors: usize) -> Vec<Group> {
    let Open { mut operations, sequence, mut before, after, .. } = open;
    let leads = if before.iter().any(|&index| !is_move(&all[index]) && !is_free(&all[index])) {
        operations.retain(|index| !before.contains(index));
        core::mem::take(&mut before)
    } else {
        vec![]
    };
    let lead = |index: usize| Group::lead(all, index, max_tensors);
    let others = Group::all_of(sequence, all, operations, before, after);
    let others = others.into_iter().flat_map(|group| {
        match matches!(group.work, Work::Operations) && group.operations.iter().all(|&index| is_lead(&all[index])) {
            true => group.operations.into_iter().map(lead).collect(),
            false => vec![group],
        }
    });
    leads.into_iter().map(lead).chain(others).collect()
}
