//! What indices name: gathers, updates, the check of indices.

use crate::case::{self, Case, F32, FLOATS, I32, destination, tensor};
use burn_deterministic_kernels::digest::launch;
use burn_deterministic_kernels::gather::{gather, gather_nd, select};
use burn_deterministic_kernels::index_check::{Flags, check};
use burn_deterministic_kernels::scatter::{Addressing, Operands, Update, update};
use cubecl::ir::ElemType;

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = FLOATS.into_iter().flat_map(gathers).collect();
    cases.extend(FLOATS.into_iter().flat_map(updates));
    let (rows, count) = ([4096, 64], 1 << 16);
    cases.push(updated("assign of rows", rows, count, Update::Assign, F32));
    cases.push(updated("maxima of rows", rows, count, Update::Max, F32));
    // Few sources, and more than one block of them: their keys are ranked.
    cases.push(updated("assign of some rows", rows, 2000, Update::Assign, F32));
    let indices = 1 << 20;
    cases.push(Case::new("index_check", "check", I32, format!("[{indices}]")).elements(indices).runs(move |client| {
        check(client, case::indices(client, &[indices], 4096), &[4096], Flags::new(client, 64).flag(0))
    }));
    cases.push(
        Case::new("digest", "launch", F32, format!("[{indices}]"))
            .elements(indices)
            .runs(move |client| launch(client, vec![tensor(client, &[indices], F32)], None).map(drop)),
    );
    let tuples = [indices, 2];
    cases.push(Case::new("index_check", "check of tuples", I32, format!("{tuples:?}")).elements(2 * indices).runs(
        move |client| check(client, case::indices(client, &tuples, 64), &[64, 64], Flags::new(client, 64).flag(0)),
    ));
    cases
}

fn gathers(dtype: ElemType) -> Vec<Case> {
    let (table, count) = ([50_257, 768], 8192);
    let moved = count * table[1];
    let rows = Case::new("gather", "rows of a table", dtype, format!("{count} of {table:?}"));
    let (lines, kept) = ([8192, 1024], [8192, 128]);
    let elements = Case::new("gather", "elements", dtype, format!("{kept:?} of {lines:?} along 1"));
    let picked = kept[0] * kept[1];
    let tuples = Case::new("gather", "by tuples", dtype, format!("[{count}, 1] of {table:?}"));
    vec![
        rows.elements(2 * moved).indices(count).runs(move |client| {
            select(client, 0, tensor(client, &table, dtype), case::indices(client, &[count], table[0]), None)
        }),
        elements.elements(2 * picked).indices(picked).runs(move |client| {
            gather(client, 1, tensor(client, &lines, dtype), case::indices(client, &kept, lines[1]), None)
        }),
        tuples.elements(2 * moved).indices(count).runs(move |client| {
            gather_nd(client, tensor(client, &table, dtype), case::indices(client, &[count, 1], table[0]), None)
        }),
    ]
}

/// Updates for each plan: few, few destinations, rows too wide for a cube to sort, many destinations with few and many sources.
fn updates(dtype: ElemType) -> Vec<Case> {
    let sums = |label, tensor, count| updated(label, tensor, count, Update::Add, dtype);
    let (lines, kept) = ([8192, 1024], [8192, 128]);
    let (all, moved): (usize, usize) = (lines.iter().product(), kept.iter().product());
    let elements = Case::new("scatter", "sums of elements", dtype, format!("{kept:?} into {lines:?} along 1"));
    let (table, count) = ([50_257, 768], 8192);
    let tuples = Case::new("scatter", "sums by tuples", dtype, format!("[{count}, 1] into {table:?}"));
    vec![
        sums("sums of few", [16, 64], 32),
        sums("sums into few rows", [16, 64], 1 << 16),
        sums("sums of wide rows", [16, 1 << 14], 64),
        sums("sums of rows", [50_257, 768], 8192),
        sums("sums of some rows", [4096, 64], 1024),
        sums("sums of numbers", [1 << 18, 1], 1 << 20),
        elements.flops(moved).elements(2 * all + moved).indices(moved).runs(move |client| {
            let [indices, values] = [case::indices(client, &kept, lines[1]), tensor(client, &kept, dtype)];
            let operands = Operands { tensor: destination(client, &lines, dtype), indices, values };
            update(client, Addressing::Elements { dim: 1 }, operands, Update::Add, None)
        }),
        tuples.flops(count * table[1]).elements((2 * table[0] + count) * table[1]).indices(count).runs(move |client| {
            let [indices, values] =
                [case::indices(client, &[count, 1], table[0]), tensor(client, &[count, table[1]], dtype)];
            let operands = Operands { tensor: destination(client, &table, dtype), indices, values };
            update(client, Addressing::Tuples, operands, Update::Add, None)
        }),
    ]
}

fn updated(label: &str, rows: [usize; 2], count: usize, kind: Update, dtype: ElemType) -> Case {
    let values = count * rows[1];
    let case = Case::new("scatter", label, dtype, format!("{count} into {rows:?}"));
    let case = case.flops(values).elements(2 * rows[0] * rows[1] + values).indices(count);
    case.runs(move |client| {
        let [indices, values] = [case::indices(client, &[count], rows[0]), tensor(client, &[count, rows[1]], dtype)];
        let operands = Operands { tensor: destination(client, &rows, dtype), indices, values };
        update(client, Addressing::Rows { dim: 0 }, operands, kind, None)
    })
}
