//! Which operations share a block, and a group.

use super::{MAX_OPERATIONS, MAX_OPERATIONS_OF_GROUPS, MAX_OPERATIONS_OF_PRODUCTS, Open, RouteFuser, reduced_in_place};
use burn_backend::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_fusion::{FuserStatus, OperationFuser};
use burn_ir::{
    BaseOperationIr, BinaryOpIr, FloatOperationIr, IrVisitorMut, MatmulOpIr, NumericOperationIr, OperationIr,
    ReduceDimOpIr, ReduceOpIr, SelectOpIr, ShapeOpIr, SwapDimsOpIr, TensorId, TensorIr, TensorStatus,
};

pub(super) fn tensor(id: u64) -> TensorIr {
    let (id, shape) = (TensorId::new(id), Shape::new([1, 2]));
    TensorIr { id, shape, status: TensorStatus::ReadOnly, dtype: DType::F32 }
}

fn product(lhs: u64, rhs: u64, out: u64) -> OperationIr {
    let product = MatmulOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
    OperationIr::Float(DType::F32, FloatOperationIr::Matmul(product))
}

pub(super) fn swap(input: u64, out: u64) -> OperationIr {
    let swap = SwapDimsOpIr { input: tensor(input), out: tensor(out), dim1: 0, dim2: 1 };
    OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap))
}

pub(super) fn reshape(input: u64, out: u64) -> OperationIr {
    OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input: tensor(input), out: tensor(out) }))
}

pub(super) fn sum(lhs: u64, rhs: u64, out: u64) -> OperationIr {
    let sum = BinaryOpIr { lhs: tensor(lhs), rhs: tensor(rhs), out: tensor(out) };
    OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
}

fn select(out: u64) -> OperationIr {
    let indices = TensorIr { dtype: DType::I32, ..tensor(91) };
    let select = SelectOpIr { tensor: tensor(90), dim: 0, indices, out: tensor(out) };
    OperationIr::BaseFloat(BaseOperationIr::Select(select))
}

/// The groups that the operations open, and how many operations are taken.
pub(super) fn opened(operations: &[OperationIr]) -> (Vec<Open>, usize) {
    let mut fuser = RouteFuser {
        device: CubeDevice::default(),
        max_tensors: 16,
        operations: Vec::new(),
        groups: Vec::new(),
        group: Open::default(),
        closed: false,
    };
    operations.iter().for_each(|operation| fuser.fuse(operation));
    assert_eq!(fuser.status() == FuserStatus::Closed, fuser.len() < operations.len());
    let groups = fuser.close();
    let has_place = |group: &Open| {
        group.sequence.is_some() || group.reduces.is_some() || group.before.is_empty() && group.after.is_empty()
    };
    assert!(groups.iter().all(has_place));
    (groups, fuser.len())
}

/// How many operations each group of a block has.
fn groups(operations: &[OperationIr]) -> Vec<usize> {
    let (groups, count) = opened(operations);
    let mut all: Vec<_> = groups.iter().flat_map(|group| group.operations.clone()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..count), "each is in one group");
    groups.into_iter().map(|group| group.operations.len()).collect()
}

/// How many of the operations the first group of a block takes, and the group.
fn first(operations: &[OperationIr]) -> (usize, Open) {
    (groups(operations)[0], opened(operations).0.swap_remove(0))
}

/// How many of the operations the first group takes, and which of these run before a sequence.
fn block(operations: &[OperationIr]) -> (usize, Vec<usize>) {
    let (count, group) = first(operations);
    assert_eq!(group.after, [0; 0]);
    (count, group.before)
}

/// How many of the operations the first group takes, and which of these run before a sequence and after it.
fn around(operations: &[OperationIr]) -> (usize, [Vec<usize>; 2]) {
    let (count, group) = first(operations);
    (count, [group.before, group.after])
}

/// `operation`, with the last use of its operands.
pub(super) fn last(mut operation: OperationIr) -> OperationIr {
    struct Last;
    impl IrVisitorMut for Last {
        fn visit_tensor_mut(&mut self, tensor: &mut TensorIr) {
            tensor.status = TensorStatus::ReadWrite;
        }
    }
    operation.visit_mut(&mut Last);
    operation
}

#[test]
fn products_and_moves_lead_a_sequence_and_run_before_it() {
    assert_eq!(block(&[product(0, 1, 2), reshape(3, 4), sum(2, 4, 5), select(6)]), (3, vec![0, 1]));
    assert_eq!(block(&[swap(0, 1), product(2, 1, 3), sum(3, 4, 5)]), (3, vec![0, 1]), "what only moves is no sequence");
    let freed = OperationIr::Drop(tensor(0));
    assert_eq!(block(&[product(0, 1, 2), freed, sum(2, 4, 5), product(6, 7, 8)]), (4, vec![0, 1, 3]));
    assert_eq!(block(&[product(0, 1, 2), product(2, 3, 4), select(5)]), (2, vec![]), "no sequence at all");
}

#[test]
fn moves_of_results_run_after_the_sequence_which_goes_on() {
    let heads = |product_of: u64, bias: u64| {
        [
            product(0, 1, product_of),
            sum(product_of, 90, bias),
            last(reshape(bias, bias + 1)),
            last(swap(bias + 1, bias + 2)),
        ]
    };
    let operations = [&heads(2, 10)[..], &heads(3, 20), &heads(4, 30), &[product(12, 22, 40)]].concat();
    assert_eq!(around(&operations), (12, [vec![0, 4, 8], vec![2, 3, 6, 7, 10, 11]]));
    let read = [sum(0, 1, 2), reshape(2, 3), sum(2, 4, 5), sum(5, 3, 6)];
    assert_eq!(around(&read), (3, [vec![], vec![1]]), "what reads a moved result comes later");
    assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), product(3, 4, 5)]), (2, [vec![], vec![1]]));
    assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), product(4, 5, 6)]), (3, [vec![2], vec![1]]));
    assert_eq!(around(&[sum(0, 1, 2), reshape(2, 3), last(sum(2, 4, 5))]), (2, [vec![], vec![1]]), "taken away");
    assert_eq!(around(&[sum(0, 1, 2), swap(2, 3)]), (2, [vec![], vec![1]]));
}

#[test]
fn an_operand_is_moved_away_after_the_sequence() {
    assert_eq!(around(&[sum(0, 1, 2), last(reshape(0, 3)), sum(2, 4, 5)]), (3, [vec![], vec![1]]));
    assert_eq!(around(&[sum(0, 1, 2), reshape(0, 3), sum(3, 4, 5)]), (3, [vec![1], vec![]]), "it lives on");
}

#[test]
fn axes_of_a_result_are_moved_after_the_sequence_where_no_reduction_follows() {
    let moved = last(swap(2, 3));
    assert_eq!(around(&[sum(0, 1, 2), moved.clone()]), (2, [vec![], vec![1]]));
    assert_eq!(around(&[sum(0, 1, 2), moved.clone(), last(reshape(3, 4))]), (3, [vec![], vec![1, 2]]));
    let operations = [sum(0, 1, 2), moved.clone(), product(5, 6, 7), sum(7, 1, 8), last(swap(8, 9))];
    assert_eq!(around(&operations), (5, [vec![2], vec![1, 4]]));
    assert_eq!(around(&[sum(0, 1, 2), moved, product(3, 6, 7)]), (2, [vec![], vec![1]]));
}

#[test]
fn what_is_reduced_and_not_read_leaves_nothing_to_after_it() {
    let shaped = |id, shape: &[usize]| TensorIr { shape: Shape::from(shape.to_vec()), ..tensor(id) };
    let moved = SwapDimsOpIr { input: shaped(0, &[2, 3, 4]), out: shaped(1, &[3, 2, 4]), dim1: 0, dim2: 1 };
    let flat = ShapeOpIr { input: shaped(1, &[3, 2, 4]), out: shaped(2, &[3, 8]) };
    let mean = ReduceDimOpIr { input: shaped(2, &[3, 8]), out: shaped(3, &[3, 0]), axis: 1, accumulator_len: 1 };
    let operations = [
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(moved)),
        last(OperationIr::BaseFloat(BaseOperationIr::Reshape(flat))),
        last(OperationIr::NumericFloat(DType::F32, NumericOperationIr::MeanDim(mean))),
        last(OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr {
            input: shaped(0, &[2, 3, 4]),
            out: shaped(4, &[6, 4]),
        }))),
        OperationIr::Drop(shaped(3, &[3, 0])),
        reshape(5, 6),
        sum(6, 7, 8),
    ];
    assert_eq!(around(&operations[..4]), (4, [vec![], vec![3]]));
    assert_eq!(around(&operations), (7, [(0..6).collect(), vec![]]), "each runs once");
}

#[test]
fn axes_that_may_be_reduced_end_the_block() {
    assert_eq!(around(&[sum(0, 1, 2), last(reshape(2, 3)), swap(3, 4)]), (2, [vec![], vec![1]]));
    assert_eq!(around(&[sum(0, 1, 2), last(reshape(2, 3)), last(swap(3, 4))]), (3, [vec![], vec![1, 2]]));
}

#[test]
fn what_runs_after_a_sequence_is_in_program_order() {
    let operations = [sum(0, 1, 2), sum(0, 1, 5), reshape(5, 6), last(swap(2, 3)), reshape(6, 7), sum(0, 1, 8)];
    assert_eq!(around(&operations), (6, [vec![], vec![2, 3, 4]]));
}

#[test]
fn what_a_move_reads_or_writes_is_freed_after_it() {
    let freed = |id| OperationIr::Drop(tensor(id));
    let operations = [sum(0, 1, 2), reshape(2, 3), freed(0), freed(2), freed(3), sum(4, 5, 6)];
    assert_eq!(around(&operations), (6, [vec![], vec![1, 3, 4]]));
    let moved = [sum(0, 1, 2), last(swap(2, 3)), freed(3), sum(4, 5, 6)];
    assert_eq!(around(&moved), (4, [vec![], vec![1, 2]]));
}

#[test]
fn a_block_ends() {
    let after: Vec<_> = (2..80).map(|n| last(reshape(n, n + 1))).collect();
    assert_eq!(around(&[&[sum(0, 1, 2)][..], &after].concat()).0, MAX_OPERATIONS);
}

#[test]
fn as_many_run_before_as_a_sequence_has() {
    let moves = |count| (0..count).map(|n| swap(n, n + 1));
    assert_eq!(block(&moves(70).collect::<Vec<_>>()).0, MAX_OPERATIONS + 1);
    let sums = (60..130).map(|n| {
        let lhs = TensorIr { status: TensorStatus::ReadWrite, ..tensor(n) };
        let sum = BinaryOpIr { lhs, rhs: tensor(200), out: tensor(n + 1) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
    });
    let (count, before) = block(&moves(60).chain(sums).collect::<Vec<_>>());
    assert_eq!((count, before.len()), (60 + MAX_OPERATIONS, 60));
}

#[test]
fn what_computes_reads_a_result_of_the_block() {
    assert_eq!(block(&[product(0, 1, 2), product(3, 4, 5)]), (1, vec![]));
    assert_eq!(block(&[product(0, 1, 2), sum(3, 4, 5)]), (1, vec![]));
    assert_eq!(block(&[swap(0, 1), sum(3, 4, 5)]), (1, vec![]));
    assert_eq!(block(&[product(0, 1, 2), swap(3, 4), product(5, 6, 7)]), (2, vec![]));
    assert_eq!(block(&[product(0, 1, 2), swap(3, 4), sum(2, 4, 7)]), (3, vec![0, 1]));
}

#[test]
fn other_operations_run_by_themselves() {
    let freed = OperationIr::Drop(tensor(90));
    assert_eq!(block(&[select(0), freed, sum(0, 1, 2)]), (2, vec![]));
    assert_eq!(block(&[select(0), product(0, 1, 2)]), (1, vec![]));
    assert_eq!(block(&[product(0, 1, 2), select(3)]), (1, vec![]));
    assert_eq!(block(&[sum(0, 1, 2), select(3)]), (1, vec![]));
}

#[test]
fn a_reduction_that_a_sequence_has_no_room_for_begins_a_group_with_what_it_reduces() {
    let total = |input| {
        let out = TensorIr { shape: Shape::new([1]), ..tensor(60) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sum(ReduceOpIr { input: tensor(input), out }))
    };
    let update: Vec<_> = (0..20).map(|n| last(sum(n, 90, n + 1))).collect();
    let followed_by = |others: &[OperationIr]| groups(&[&update[..], others].concat());
    assert_eq!(groups(&[sum(50, 50, 51), last(total(51))]), [2], "room for it");
    assert_eq!(followed_by(&[sum(50, 50, 51), last(total(51))]), [20, 2]);
    assert_eq!(followed_by(&[sum(50, 50, 51), last(total(51)), sum(70, 71, 72)]), [20, 2, 1]);
    let moved = [last(reshape(20, 21)), sum(50, 50, 51), last(total(51))];
    assert_eq!(followed_by(&moved), [21, 2]);
    let (opened, _) = opened(&[&update[..], &moved].concat());
    assert_eq!((&opened[0].after[..], &opened[1].before[..], &opened[1].after[..]), (&[20][..], &[][..], &[][..]));
    assert_eq!(followed_by(&[sum(50, 20, 51), last(total(51))]), [21], "it reads a result of the sequence");
    assert_eq!(followed_by(&[sum(50, 50, 51), sum(50, 50, 52), last(total(51))]), [22], "not the last");
    let after = [sum(50, 50, 51), last(reshape(50, 52)), last(total(51))];
    assert_eq!(followed_by(&after), [22], "what moves its operand away runs after it");
}

#[test]
fn an_operation_joins_the_group_that_it_reads_a_result_of() {
    let column = |id| TensorIr { shape: Shape::new([2, 1]), ..tensor(id) };
    let sum_of = |lhs, rhs, out| {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: column(out) }))
    };
    let (rows, columns) = (sum(0, 1, 2), sum_of(column(3), column(4), 5));
    let then = |others: &[OperationIr]| groups(&[&[rows.clone(), columns.clone()], others].concat());
    assert_eq!(then(&[sum(2, 0, 6)]), [2, 1]);
    assert_eq!(then(&[last(sum(2, 0, 6)), sum(6, 6, 7), sum_of(column(5), column(4), 8)]), [3, 2]);
    assert_eq!(then(&[sum(2, 5, 6)]), [1, 1, 1], "it reads a result of the group between");
    assert_eq!(then(&[sum(9, 0, 6)]), [1, 1, 1], "it reads no result");
    assert_eq!(then(&[last(sum(2, 4, 6))]), [1, 1, 1], "it takes away an operand of the group between");
    let moved = [rows.clone(), reshape(2, 9), columns.clone()];
    assert_eq!(groups(&[&moved[..], &[sum(2, 0, 6)]].concat()), [3, 1]);
    assert_eq!(groups(&[&moved[..], &[last(sum(2, 0, 6))]].concat()), [2, 1, 1], "it takes away what is moved");
    assert_eq!(groups(&[&moved[..], &[sum(9, 0, 6)]].concat()), [2, 1, 1], "it reads what is moved after");
    let many: Vec<_> = (100..198).map(|n| last(sum(if n == 100 { 2 } else { n }, 90, n + 1))).collect();
    let behind = groups(&[&[rows, columns][..], &many].concat());
    assert_eq!(behind, [MAX_OPERATIONS, 1, 98 - (MAX_OPERATIONS - 1)], "it is full");
}

#[test]
fn a_sequence_behind_frees_is_of_their_block() {
    let freed = OperationIr::Drop(tensor(90));
    assert_eq!(block(&[freed.clone(), sum(0, 1, 2), sum(2, 1, 3)]), (3, vec![0]));
    assert_eq!(
        block(&[freed.clone(), freed.clone(), swap(0, 1), product(1, 2, 3), sum(3, 4, 5)]),
        (5, (0..4).collect())
    );
    assert_eq!(block(&[freed.clone(), product(0, 1, 2), sum(2, 4, 5)]), (3, vec![0, 1]));
    assert_eq!(block(&[freed, select(0)]), (1, vec![]));
}

#[test]
fn groups_of_other_shapes_follow_each_other() {
    let column = |id| TensorIr { shape: Shape::new([2, 1]), ..tensor(id) };
    let sum_of_columns = |lhs, rhs, out| {
        let sum = BinaryOpIr { lhs: column(lhs), rhs: column(rhs), out: column(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
    };
    let (rows, columns) = (sum(0, 1, 2), sum_of_columns(3, 4, 5));
    assert_eq!(groups(&[rows.clone(), columns.clone(), sum(6, 7, 8)]), [1, 1, 1]);
    assert_eq!(groups(&[rows.clone(), reshape(2, 9), sum(9, 0, 10), columns.clone()]), [2, 1, 1]);
    let freed = OperationIr::Drop(tensor(2));
    assert_eq!(groups(&[rows.clone(), columns.clone(), freed, columns.clone()]), [2, 2]);
    assert_eq!(groups(&[rows.clone(), select(9)]), [1]);
    assert_eq!(groups(&[select(9), rows.clone()]), [1], "a failure of what checks concerns what is behind it");
    assert_eq!(groups(&[rows.clone(), swap(90, 91)]), [2], "after it, or before");
    let many: Vec<_> =
        (0..MAX_OPERATIONS_OF_GROUPS + 9).map(|n| if n % 2 == 0 { rows.clone() } else { columns.clone() }).collect();
    assert_eq!(groups(&many).len(), MAX_OPERATIONS_OF_GROUPS);
}

#[test]
fn products_and_reductions_are_groups_between_others() {
    let column = |id| TensorIr { shape: Shape::new([2, 1]), ..tensor(id) };
    let sum_of_columns = |lhs, rhs, out| {
        let sum = BinaryOpIr { lhs: column(lhs), rhs: column(rhs), out: column(out) };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(sum))
    };
    let (rows, columns) = (sum(0, 1, 2), sum_of_columns(3, 4, 5));
    let reduction = ReduceDimOpIr { input: tensor(2), out: tensor(9), axis: 0, accumulator_len: 1 };
    let reduction = OperationIr::NumericFloat(DType::F32, NumericOperationIr::SumDim(reduction));
    assert_eq!(groups(&[product(0, 1, 2), sum(2, 1, 3), columns.clone()]), [2, 1]);
    assert_eq!(groups(&[rows.clone(), columns.clone(), product(6, 7, 8)]), [1, 1, 1], "of another shape");
    assert_eq!(groups(&[rows.clone(), product(2, 1, 9), sum(9, 2, 10)]), [1, 2], "of a result");
    assert_eq!(groups(&[product(0, 1, 8), product(2, 3, 9), columns.clone(), reduction, rows.clone()]), [1, 1, 2, 1]);
    let layer = |first| [product(first, 90, first + 1), sum_of_columns(3, 4, 5), sum(first + 1, 91, first + 2)];
    let many: Vec<_> = (0..60).flat_map(|n| layer(10 * n)).collect();
    assert_eq!(opened(&many).1, MAX_OPERATIONS_OF_PRODUCTS);
}

/// The gradients of a batch norm: what is moved is taken by its last reduction, and so is the tensor 2.
fn gradients() -> Vec<OperationIr> {
    let full = |id| TensorIr { shape: Shape::new([2, 3, 4]), ..tensor(id) };
    let flat = |id| TensorIr { shape: Shape::new([3, 8]), ..tensor(id) };
    let row = |id| TensorIr { shape: Shape::new([3, 0]), ..tensor(id) };
    let wide = |id| TensorIr { shape: Shape::new([0, 3, 0]), ..tensor(id) };
    let taken = |tensor| TensorIr { status: TensorStatus::ReadWrite, ..tensor };
    let sum = |lhs, rhs, out| {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: full(out) }))
    };
    let swap = |input, out| {
        let out = TensorIr { shape: Shape::new([3, 2, 4]), ..tensor(out) };
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(SwapDimsOpIr { input, out, dim1: 0, dim2: 1 }))
    };
    let reshape = |input, out| OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input: taken(input), out }));
    let reduced = |reduce: fn(ReduceDimOpIr) -> NumericOperationIr, input, out| {
        let reduction = ReduceDimOpIr { input, out: row(out), axis: 1, accumulator_len: 1 };
        OperationIr::NumericFloat(DType::F32, reduce(reduction))
    };
    let moved = |id| TensorIr { shape: Shape::new([3, 2, 4]), ..tensor(id) };
    vec![
        sum(full(0), full(1), 2),
        sum(full(2), full(1), 3),
        swap(full(2), 4),
        reshape(moved(4), flat(5)),
        sum(full(2), full(3), 6),
        swap(taken(full(6)), 7),
        reshape(moved(7), flat(8)),
        reduced(NumericOperationIr::SumDim, flat(5), 9),
        reduced(NumericOperationIr::SumDim, flat(8), 10),
        reduced(NumericOperationIr::MeanDim, taken(flat(8)), 11),
        reshape(row(11), wide(12)),
        reduced(NumericOperationIr::MeanDim, taken(flat(5)), 13),
        reshape(row(13), wide(14)),
        sum(taken(full(2)), wide(14), 15),
    ]
}

/// The operations of each group, once what is moved is reduced in place; and whether they are a sequence.
fn in_place(operations: &[OperationIr]) -> Vec<(Vec<usize>, bool)> {
    let (groups, count) = opened(operations);
    assert_eq!(count, operations.len());
    let groups = reduced_in_place(groups, operations, 16);
    groups.into_iter().map(|group| (group.operations, group.sequence.is_some())).collect()
}

#[test]
fn reductions_of_a_moved_tensor_are_a_group() {
    let (groups, count) = opened(&gradients());
    let operations: Vec<_> = groups.iter().map(|group| group.operations.clone()).collect();
    assert_eq!((operations, count), (vec![(0..7).collect(), vec![7, 11, 12], vec![8, 9, 10], vec![13]], 14));
    let reduces: Vec<_> = groups.iter().map(|group| group.reduces.map(|tensor| tensor.value())).collect();
    assert_eq!(reduces, [None, Some(5), Some(8), None]);
    assert_eq!((&groups[1].after[..], &groups[2].after[..]), (&[12][..], &[10][..]));
}

#[test]
fn reductions_of_a_moved_tensor_that_a_sequence_reads_are_of_the_sequence() {
    let [swap, reshape] = [2, 3].map(|index| gradients()[index].clone());
    let flat = |id| TensorIr { shape: Shape::new([3, 8]), ..tensor(id) };
    let row = |id| TensorIr { shape: Shape::new([3, 0]), ..tensor(id) };
    let sum = |lhs, rhs, out: TensorIr| {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out }))
    };
    let mean = {
        let reduction = ReduceDimOpIr { input: flat(5), out: row(31), axis: 1, accumulator_len: 1 };
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::MeanDim(reduction))
    };
    let before = [swap, reshape];
    let read = [sum(flat(5), flat(5), flat(30)), mean.clone(), sum(flat(30), row(31), flat(32))];
    assert_eq!(groups(&[&before[..], &read].concat()), [5]);
    // Behind another sequence: a reader of the tensor, or of the mean.
    let other = [gradients()[0].clone(), gradients()[1].clone()];
    for reader in [sum(flat(5), row(31), flat(32)), sum(row(31), row(31), row(32))] {
        assert_eq!(groups(&[&other[..], &before, &[mean.clone(), reader]].concat()), [4, 2]);
    }
}

#[test]
fn a_moved_tensor_that_nothing_else_reads_is_reduced_without_a_copy() {
    let all = [(vec![0, 1], true), (vec![2, 3, 7, 11, 12], true), (vec![4, 5, 6, 8, 9, 10], true), (vec![13], true)];
    assert_eq!(in_place(&gradients()), all);
    // Of a gradient from another block, what is multiplied is computed there too.
    let all = [(vec![1, 2, 6, 10, 11], true), (vec![0, 3, 4, 5, 7, 8, 9], true), (vec![12], true)];
    assert_eq!(in_place(&gradients()[1..]), all);
}

#[test]
fn axes_that_are_swapped_and_not_joined_are_reduced_without_a_copy() {
    let full = |id| TensorIr { shape: Shape::new([2, 3]), ..tensor(id) };
    let taken = |tensor| TensorIr { status: TensorStatus::ReadWrite, ..tensor };
    let swapped = |id| TensorIr { shape: Shape::new([3, 2]), ..tensor(id) };
    let row = |id| TensorIr { shape: Shape::new([3, 0]), ..tensor(id) };
    let sum = |lhs, rhs, out| {
        OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out: full(out) }))
    };
    let reduced = |reduce: fn(ReduceDimOpIr) -> NumericOperationIr, input, out| {
        let reduction = ReduceDimOpIr { input, out: row(out), axis: 1, accumulator_len: 1 };
        OperationIr::NumericFloat(DType::F32, reduce(reduction))
    };
    let wide = |id| TensorIr { shape: Shape::new([0, 3]), ..tensor(id) };
    let swap = SwapDimsOpIr { input: full(2), out: swapped(4), dim1: 0, dim2: 1 };
    let operations = [
        sum(full(0), full(1), 2),
        sum(full(2), full(1), 3),
        OperationIr::BaseFloat(BaseOperationIr::SwapDims(swap)),
        reduced(NumericOperationIr::SumDim, swapped(4), 5),
        reduced(NumericOperationIr::MeanDim, taken(swapped(4)), 6),
        OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input: taken(row(6)), out: wide(7) })),
        sum(taken(full(2)), wide(7), 8),
    ];
    assert_eq!(in_place(&operations), [(vec![0, 1], true), (vec![2, 3, 4, 5], true), (vec![6], true)]);
    // What reads the moved tensor and its mean is a sequence of rows with the mean, though that is reshaped between.
    let difference = BinaryOpIr { lhs: taken(swapped(4)), rhs: row(6), out: swapped(9) };
    let reads = OperationIr::NumericFloat(DType::F32, NumericOperationIr::Sub(difference));
    let mean = reduced(NumericOperationIr::MeanDim, swapped(4), 6);
    let reshape = OperationIr::BaseFloat(BaseOperationIr::Reshape(ShapeOpIr { input: row(6), out: wide(7) }));
    let (groups, _) = opened(&[&operations[..3], &[mean, reshape, reads]].concat());
    assert_eq!(groups.iter().map(|group| group.operations.clone()).collect::<Vec<_>>(), [vec![0, 1, 2], vec![3, 4, 5]]);
    assert!(groups[1].sequence.is_some() && groups[1].after == [4] && groups[1].reduces.is_none());
}

#[test]
fn a_moved_tensor_that_something_else_needs_is_copied() {
    let flat = |id| TensorIr { shape: Shape::new([3, 8]), ..tensor(id) };
    let full = |id| TensorIr { shape: Shape::new([2, 3, 4]), ..tensor(id) };
    let sum =
        |lhs, rhs, out| OperationIr::NumericFloat(DType::F32, NumericOperationIr::Add(BinaryOpIr { lhs, rhs, out }));
    let copied = [(vec![0, 1, 2, 3], true), (vec![7, 11, 12], false)];
    let first = |operations: &[OperationIr]| in_place(operations)[..2].to_vec();
    // It lives on.
    let mut operations = gradients();
    let OperationIr::NumericFloat(_, NumericOperationIr::MeanDim(mean)) = &mut operations[11] else { unreachable!() };
    mean.input.status = TensorStatus::ReadOnly;
    assert_eq!(first(&operations), copied);
    // Another operation reads it.
    let mut operations = gradients();
    operations.push(sum(flat(5), flat(5), flat(20)));
    assert_eq!(first(&operations), copied);
    // What is moved is taken away before.
    let mut operations = gradients();
    operations[4] = sum(TensorIr { status: TensorStatus::ReadWrite, ..full(2) }, full(3), full(6));
    assert!(in_place(&operations).contains(&(vec![7, 11, 12], false)));
    // What is multiplied is freed before: the product is written.
    let mut operations = gradients();
    operations.insert(7, OperationIr::Drop(full(3)));
    assert_eq!(in_place(&operations)[..1], [(vec![0, 1, 4, 7], true)]);
}
