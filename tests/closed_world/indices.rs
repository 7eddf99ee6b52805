//! Indices outside their axis: nothing is read or written there, and the program is told.

use crate::process::Program;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp;
use burn_backend::ops::{FloatTensorOps, IntTensorOps};
use burn_backend::{Backend, TensorData, read_sync};
use burn_cubecl::CubeBackend;
use burn_deterministic::{Determinism, Deterministic, enable_op_determinism, random_state, set_random_seed};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn matrix(device: &Device) -> Tensor<2> {
    Tensor::from_data([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device)
}

/// Requires that the read of `tensor` tells of an index, and that what comes after it works.
fn assert_told<const D: usize>(tensor: impl Fn() -> Tensor<D>, operation: &str, what: &str) {
    let device = tensor().device();
    // What was just made is of no interest here.
    let _ = tensor().try_into_data();
    let text = tensor().try_into_data().expect_err("an index is outside").to_string();
    let (operation, sum) = (format!("`{operation}` (operands ["), matrix(&device).sum());
    for part in [operation.as_str(), what, "correct the index"] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    let panic = catch_unwind(AssertUnwindSafe(|| tensor().into_data())).expect_err("a plain read panics");
    let panic = panic.downcast_ref::<String>().expect("with a text");
    assert!(panic.contains(what), "{panic}\nlacks\n{what}");
    assert_eq!(sum.into_scalar::<f32>(), 21.0);
}

pub fn told() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = |indices: &[i32]| Tensor::<1, Int>::from_data(TensorData::from(indices), &device);
    let grid = |indices: [[i32; 2]; 2]| Tensor::<2, Int>::from_data(indices, &device);
    let x = || matrix(&device);
    let y = || Tensor::<2>::ones([2, 2], &device);
    let add = || IndexingUpdateOp::Add;
    assert_told(|| x().select(0, rows(&[0, 3])), "float_select", "index 3, at [1] of its indices, for an axis of 3");
    assert_told(|| x().select(1, rows(&[-1])), "float_select", "index -1, at [0] of its indices, for an axis of 2");
    assert_told(|| x().gather(0, grid([[0, 1], [7, 9]])), "float_gather", "index 7, at [1, 0]");
    assert_told(|| x().scatter(0, grid([[0, 1], [2, 3]]), y(), add()), "float_scatter", "index 3, at [1, 1]");
    assert_told(|| x().select_assign(0, rows(&[4, 5]), y(), add()), "float_select_assign", "index 4, at [0]");
    assert_told(
        || x().gather_nd::<2, 1>(grid([[2, 1], [1, 2]])),
        "float_gather_nd",
        "index 2, at [1, 1] of its indices, for an axis of 2",
    );
    assert_told(
        || x().scatter_nd::<2, 1>(grid([[3, 1], [1, 1]]), Tensor::ones([2], &device), add()),
        "float_scatter_nd",
        "index 3, at [0, 0] of its indices, for an axis of 3",
    );
    // One index a row, in a kernel with other operations: of short rows, of rows longer than a kernel has, and of a result that
    // nothing needs.
    let column = |indices: [[i32; 1]; 3]| Tensor::<2, Int>::from_data(indices, &device);
    let read = || (x() * 2.0).gather(1, column([[0], [1], [5]])) + 1.0;
    assert_told(read, "float_gather", "index 5, at [2, 0] of its indices, for an axis of 2");
    assert_told(|| two_reads(&device), "float_gather", "index 2, at [1, 0] of its indices, for an axis of 2");
    let weighted = |columns: usize| {
        let at_class = Tensor::<2>::zeros([3, columns], &device).scatter(
            1,
            column([[1], [-2], [0]]),
            x().slice(s![.., 0..1]),
            add(),
        );
        let weighted = at_class * Tensor::<2>::ones([3, columns], &device);
        weighted.clone() - weighted.sum_dim(1)
    };
    assert_told(|| weighted(2), "float_scatter", "index -2, at [1, 0] of its indices, for an axis of 2");
    assert_told(|| weighted(5000), "float_scatter", "index -2, at [1, 0] of its indices, for an axis of 5000");
    let beside = || {
        drop(Tensor::<2>::zeros([3, 2], &device).scatter(1, column([[1], [0], [9]]), x().slice(s![.., 0..1]), add()));
        x() * 2.0
    };
    assert_told(beside, "float_scatter", "index 9, at [2, 0]");
    // What is computed from it, by operations of each kind.
    assert_told(|| (x().select(0, rows(&[3])) * 2.0 + 1.0).sum(), "float_select", "index 3");
    assert_told(|| x().select(0, rows(&[3])).matmul(y()) + 1.0, "float_select", "index 3");
    let ints = Tensor::<1, Int>::from_data([1, 2], &device).select(0, rows(&[2]));
    let text = ints.try_into_data().expect_err("an index is outside").to_string();
    assert!(text.contains("`int_select`"), "{text}");
    let inside = x().select(0, rows(&[2, 0])).into_data().try_to_vec::<f32>().expect("f32");
    assert_eq!(inside, [5.0, 6.0, 1.0, 2.0]);
}

/// The program is told once, and other tensors can still be read.
pub fn told_once() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let before = matrix(&device) + 1.0;
    let rows = Tensor::<1, Int>::from_data([0, 3], &device);
    let chosen = matrix(&device).select(0, rows);
    let doubled = chosen.clone() * 2.0;
    doubled.try_into_data().expect_err("an index is outside");
    chosen.try_into_data().expect_err("the operation's own result carries the error");
    assert_eq!(before.clone().sum().into_scalar::<f32>(), 27.0);
    assert_eq!(before.into_data().try_to_vec::<f32>().expect("f32"), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    device.sync().expect("it was told before");
}

/// What was issued between an operation with an index outside and the read that is told of it, and has nothing to do with either,
/// can still be read. What is issued next to an operation on a tensor that carries an error carries it too.
pub fn told_alone() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = Tensor::<1, Int>::from_data([0, 3], &device);
    let chosen = matrix(&device).select(0, rows);
    let square = matrix(&device).transpose();
    let product = square.clone().matmul(matrix(&device));
    (chosen.clone() * 2.0).try_into_data().expect_err("an index is outside");
    let beside = square.clone().matmul(matrix(&device));
    (chosen * 3.0).try_into_data().expect_err("it depends on the first one");
    beside.try_into_data().expect_err("it is of the same block");
    for product in [product, square.matmul(matrix(&device))] {
        assert_eq!(product.into_data().try_to_vec::<f32>().expect("f32"), [35.0, 44.0, 44.0, 56.0]);
    }
}

/// A program that never waits for what it computes last is told after a while.
pub fn told_late() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = Tensor::<1, Int>::from_data([0, 3], &device);
    // The flags of 1024 are read together.
    let results: Vec<_> = (0..2100).map(|_| matrix(&device).select(0, rows.clone()).sum()).collect();
    let failed = results.into_iter().filter(|result| result.clone().try_into_data().is_err()).count();
    // Of the last ones nobody asks, and Burn reads what is computed without a word to the backend.
    assert!((2048..=2100).contains(&failed), "{failed} of 2100");
}

/// What depends on an index outside carries the error in whatever block it was computed, of however many operations that got one, and
/// nothing else does.
pub fn told_of_all() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = |indices: [i32; 2]| Tensor::<1, Int>::from_data(indices, &device);
    let [inside, outside, far] = [[0, 1], [0, 3], [4, 0]].map(rows);
    let told = |tensor: Tensor<2>| {
        let text = tensor.try_into_data().expect_err("it depends on an index outside").to_string();
        assert!(text.contains("index 3, at [1]"), "{text}");
    };
    let is =
        |tensor: Tensor<2>, values: [f32; 4]| assert_eq!(tensor.into_data().try_to_vec::<f32>(), Ok(values.into()));
    let weights = || Tensor::<2>::from_data([[1.0, 0.0], [0.0, 2.0]], &device);
    // A selection does not wait for the next operation but one: these are several blocks. In the last one something else is newest.
    let before = matrix(&device).select(0, inside.clone());
    let scale = weights();
    let chosen = matrix(&device).select(0, outside.clone());
    let again = chosen.clone().select(0, inside.clone());
    let product = again.clone().matmul(scale.clone());
    let scale = scale * 3.0;
    let second = matrix(&device).select(0, inside.clone());
    let around = before.clone() + second;
    let beside = matrix(&device).select(0, inside.clone());
    let loss = again.clone() * 2.0;
    let other = Tensor::<1>::ones([5], &device) * 2.0;
    told(loss);
    drop(other);
    told(again.clone().exp());
    for tensor in [chosen, again, product] {
        told(tensor);
    }
    is(before, [1.0, 2.0, 3.0, 4.0]);
    is(around, [2.0, 4.0, 6.0, 8.0]);
    is(scale, [3.0, 0.0, 0.0, 6.0]);
    is(beside, [1.0, 2.0, 3.0, 4.0]);
    // Two operations, whose flags are read together.
    let [a, b] = [outside, far].map(|indices| matrix(&device).select(0, indices));
    let c = a.clone() + 1.0;
    told(c);
    told(a);
    told(b.clone());
    told(b.transpose());
    is(weights(), [1.0, 0.0, 0.0, 2.0]);
}

/// Where the indices of operations before it fill what is kept.
pub fn told_without_its_index() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let column = || Tensor::<1>::from_data([1.0, 2.0, 3.0], &device);
    let indices = |value: i32| Tensor::<1, Int>::full([1 << 20], value, &device);
    let inside: Vec<_> = (0..16).map(|_| column().select(0, indices(1)).sum()).collect();
    let text = column().select(0, indices(3)).sum().try_into_data().expect_err("an index is outside").to_string();
    for part in ["`float_select` (operands [3] f32, [1048576] i32", "the index is not known", "read a result before"] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    for sum in inside {
        assert_eq!(sum.into_scalar::<f32>(), (2 << 20) as f32);
    }
    assert_told(|| column().select(0, indices(3)), "float_select", "index 3, at [0]");
}

/// Two reads at one index a row, in one kernel, of which the second has an index outside.
fn two_reads(device: &Device) -> Tensor<2> {
    let [inside, outside] =
        [[[0], [1], [0]], [[1], [2], [0]]].map(|indices| Tensor::<2, Int>::from_data(indices, device));
    let doubled = matrix(device) * 2.0;
    doubled.clone().gather(1, inside) + doubled.gather(1, outside)
}

/// Behind as many flags as are read together with theirs, and behind one more: 1024 are.
pub fn told_among_many() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = Tensor::<1, Int>::from_data([0, 2], &device);
    for before in [1022, 1023] {
        let sums: Vec<_> = (0..before).map(|_| matrix(&device).select(0, rows.clone()).sum()).collect();
        let text = two_reads(&device).try_into_data().expect_err("an index is outside").to_string();
        assert!(text.contains("index 2, at [1, 0]"), "{text}");
        for sum in sums {
            assert_eq!(sum.into_scalar::<f32>(), 14.0, "{before} before");
        }
    }
}

/// Gradients of an embedding: the backward pass scatters at the same indices.
pub fn told_in_training() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default().autodiff();
    let weights = Tensor::<2>::ones([4, 3], &device).require_grad();
    let tokens = Tensor::<2, Int>::from_data([[0, 4], [1, 2]], &device);
    let loss = burn::tensor::module::embedding(weights.clone(), tokens).sum();
    let gradients = loss.backward();
    let gradient = weights.grad(&gradients).expect("the weights took part");
    let text = gradient.try_into_data().expect_err("a token is outside").to_string();
    assert!(text.contains("got the index 4"), "{text}");
}

#[test]
fn a_read_tells_of_an_index() {
    Program::new("told").run();
}

#[test]
fn it_tells_once_and_loses_nothing_else() {
    Program::new("told_once").run();
}

#[test]
fn what_has_nothing_to_do_with_an_index_outside_can_be_read() {
    Program::new("told_alone").run();
}

#[test]
fn it_tells_without_a_wait_too() {
    Program::new("told_late").run();
}

#[test]
fn nothing_that_depends_on_an_index_outside_is_read_as_data() {
    Program::new("told_of_all").run();
}

#[test]
fn it_tells_of_the_second_of_two_among_many() {
    Program::new("told_among_many").run();
}

#[test]
fn it_tells_where_indices_are_not_kept() {
    Program::new("told_without_its_index").run();
}

#[test]
fn an_embedding_tells() {
    Program::new("told_in_training").run();
}

/// Below the tensor API every read and every sync tells.
#[test]
fn the_backend_itself_tells_at_the_next_read_or_sync() {
    type B = Deterministic<CubeBackend>;
    crate::deterministic_device();
    let device = crate::cube_device();
    let x = || B::float_from_data(TensorData::from([1.0f32, 2.0]), &device);
    let at = |index: i32| B::int_from_data(TensorData::from([index]), &device);
    let chosen = B::float_select(x(), 0, at(2));
    let unrelated = x();
    let text = read_sync(B::float_into_data(unrelated.clone())).expect_err("the next read").to_string();
    assert!(text.contains("`float_select`") && text.contains("index 2, at [0]"), "{text}");
    read_sync(B::float_into_data(unrelated)).expect("it told").assert_eq(&TensorData::from([1.0f32, 2.0]), true);
    read_sync(B::float_into_data(chosen)).expect("zero").assert_eq(&TensorData::from([0f32]), true);
    let _ = B::float_select(x(), 0, at(-1));
    let text = B::sync(&device).expect_err("the next sync").to_string();
    assert!(text.contains("index -1"), "{text}");
    B::sync(&device).expect("it told");
    let _ = B::float_select(x(), 0, at(1));
    B::sync(&device).expect("the index is inside");
}

/// Threads that end without a read, the second one where another thread has left spare flags.
pub fn told_by_another_thread() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    // The selection runs when the next operation comes.
    let selects = |row: i32, reads: bool| {
        let device = device.clone();
        let thread = std::thread::spawn(move || {
            let next = matrix(&device).select(0, Tensor::<1, Int>::from_data([0, row], &device)) + 1.0;
            if reads {
                next.into_data();
            }
            // What is kept for the thread is dropped after its end.
            set_random_seed(1);
        });
        thread.join().expect("no index is told to the thread that has it");
    };
    set_random_seed(2);
    let sum = || matrix(&device).sum();
    for flags_are_spare in [false, true] {
        if flags_are_spare {
            selects(1, true);
        }
        selects(3, false);
        let text = sum().try_into_data().expect_err("a thread that cannot tell any more got an index").to_string();
        assert!(text.contains("`float_select`") && text.contains("index 3"), "{text}");
        assert_eq!(sum().into_scalar::<f32>(), 21.0, "it is told once");
    }
}

#[test]
fn an_index_of_a_thread_that_has_ended_is_told() {
    Program::new("told_by_another_thread").run();
}

/// A checkpoint, or a random state, runs what waits, and is not told instead of the program.
pub fn told_after_a_state_is_taken() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = Tensor::<1, Int>::from_data([0, 3], &device);
    let chosen = matrix(&device).select(0, rows).sum();
    let unread = matrix(&device) + 1.0;
    random_state().expect("the device runs");
    let text = matrix(&device).sum().try_into_data().expect_err("an index is outside").to_string();
    assert!(text.contains("`float_select`"), "{text}");
    drop((chosen, unread));
}

#[test]
fn taking_a_state_takes_no_error() {
    Program::new("told_after_a_state_is_taken").run();
}

/// A run of operations as long as one kernel takes, for which nobody waits.
pub fn not_told_by_a_full_run() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let rows = Tensor::<1, Int>::from_data([0, 3], &device);
    let chosen = matrix(&device).select(0, rows);
    let mut run = matrix(&device);
    for _ in 0..64 {
        run = run + 1.0;
    }
    // Another shape: a run of its own.
    let other = Tensor::<1>::ones([5], &device) * 2.0;
    other.try_into_data().expect_err("this is the first read");
    run.try_into_data().expect("it has nothing to do with the index");
    drop(chosen);
}

/// Where several kernels are queued, what depends on the index is told of, and what is read last.
pub fn told_in_groups() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let column = || Tensor::<2>::from_data([[1.0], [2.0], [4.0]], &device);
    let square = || matrix(&device).slice(s![.., 0..2]);
    let indices = || Tensor::<2, Int>::from_data([[0], [5], [1]], &device);
    let told = |tensor: Tensor<2>| {
        let text = tensor.try_into_data().expect_err("an index is outside").to_string();
        assert!(text.contains("index 5, at [1, 0]") || text.contains("index 3, at [1]"), "{text}");
    };
    // One value a row, before and behind what scatters.
    let v = column().exp();
    let scattered = Tensor::<2>::zeros([3, 2], &device).scatter(1, indices(), v.clone(), IndexingUpdateOp::Add);
    let r = scattered * square();
    let t = v.sqrt();
    told(r);
    drop(t.try_into_data());
    // The index is of an operation before.
    let chosen = matrix(&device).select(0, Tensor::<1, Int>::from_data([0, 3], &device));
    let v = column().exp();
    let r = square() * v.clone();
    let t = v.sqrt();
    told(r);
    drop((t.try_into_data(), chosen));
    // Behind it goes on what has nothing to do with it.
    let a = Tensor::<1>::ones([5], &device) + 1.0;
    let scattered = Tensor::<2>::zeros([3, 2], &device).scatter(1, indices(), column() * 2.0, IndexingUpdateOp::Add);
    let r = scattered * square();
    let a = a * 2.0;
    told(r);
    let _ = a.clone().try_into_data();
    assert_eq!(matrix(&device).sum().into_scalar::<f32>(), 21.0);
}

#[test]
fn several_kernels_tell_of_an_index() {
    Program::new("told_in_groups").run();
}

#[test]
fn a_full_run_is_not_a_wait() {
    Program::new("not_told_by_a_full_run").run();
}
