//! Slices that Burn's kernel writes in place: only where no other thread has used a tensor, so these are programs of their own.

use crate::process::{Program, arguments, report};
use crate::{cube_device, deterministic_device};
use burn::tensor::{Slice, TensorData};
use burn_backend::ops::FloatTensorOps;
use burn_backend::read_sync;
use burn_cubecl::CubeBackend;
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::custom::StreamId;
use burn_fusion::{Fusion, FusionTensor};
use std::fmt::Debug;

/// Burn's backend with a stream of operations.
type Streamed = Fusion<CubeBackend>;

type Floats = FusionTensor<FusionCubeRuntime>;

const ROWS: usize = 64;
const COLUMNS: usize = 48;

/// Ones, which an operation has computed.
fn ones() -> Floats {
    let zeros = TensorData::zeros::<f32, _>([ROWS, COLUMNS]);
    settled(Streamed::float_add_scalar(Streamed::float_from_data(zeros, &cube_device()), 1.0.into()))
}

/// The tensor, once the device has computed it, and nothing but it has its memory.
fn settled(tensor: Floats) -> Floats {
    let client = GlobalFusionClient::<FusionCubeRuntime>::load(&cube_device());
    client.sync(|| read_sync(cube_device().client().sync())).expect("the device works");
    tensor
}

/// CubeCL's number of the memory.
fn memory(tensor: &Floats) -> usize {
    let client = GlobalFusionClient::<FusionCubeRuntime>::load(&cube_device());
    let tensor = client.resolve_tensor_float::<CubeBackend>(tensor.clone());
    settled_memory(tensor.handle.memory.descriptor().id.value)
}

fn settled_memory(memory: usize) -> usize {
    read_sync(cube_device().client().sync()).expect("the device works");
    memory
}

fn values(tensor: Floats) -> Vec<f32> {
    read_sync(Streamed::float_into_data(tensor)).expect("the device reads").iter().collect()
}

/// Twos at these rows and columns.
fn assign(tensor: Floats, slices: &[Slice; 2], shape: [usize; 2]) -> Floats {
    let twos = TensorData::new(vec![2f32; shape[0] * shape[1]], shape);
    settled(Streamed::float_slice_assign(tensor, slices, Streamed::float_from_data(twos, &cube_device())))
}

fn assigned(rows: &[usize], columns: &[usize]) -> Vec<f32> {
    let is_two = |row, column| rows.contains(&row) && columns.contains(&column);
    let value = |place: usize| if is_two(place / COLUMNS, place % COLUMNS) { 2.0 } else { 1.0 };
    (0..ROWS * COLUMNS).map(value).collect()
}

/// One axis has a kernel of ours, which copies; two, and every other row, have Burn's.
pub fn assigns_in_one_thread() {
    deterministic_device();
    let all = Slice::full;
    let every: Vec<usize> = (0..COLUMNS).collect();
    let places: [(_, _, &[usize], &[usize]); 3] = [
        ([Slice::from(5..7), all()], [2, COLUMNS], &[5, 6], &every),
        ([Slice::from(5..7), Slice::from(40..43)], [2, 3], &[5, 6], &[40, 41, 42]),
        ([Slice::new(1, Some(7), 3), all()], [2, COLUMNS], &[1, 4], &every),
    ];
    let check = |what: &dyn Debug, before: usize, tensor: Floats, is_same: bool, expected: &[f32]| {
        assert_eq!(memory(&tensor) == before, is_same, "{what:?}");
        assert!(values(tensor) == expected, "{what:?}");
    };
    let before_others = |is_same: bool| {
        for (slices, shape, rows, columns) in &places {
            let tensor = ones();
            let before = memory(&tensor);
            check(slices, before, assign(tensor, slices, *shape), is_same, &assigned(rows, columns));
        }
    };
    before_others(true);
    for (slices, shape, rows, columns) in &places {
        // Another tensor has the memory.
        let tensor = ones();
        let (before, kept) = (memory(&tensor), tensor.clone());
        check(slices, before, assign(tensor, slices, *shape), false, &assigned(rows, columns));
        assert!(values(kept) == assigned(&[], &[]), "{slices:?}");
        // A read of it is yet to be given to the device: Burn's has given its handle up then.
        let tensor = ones();
        let client = GlobalFusionClient::<FusionCubeRuntime>::load(&cube_device());
        let read = client.resolve_tensor_float::<CubeBackend>(tensor.clone()).handle.binding();
        let before = memory(&tensor);
        check(slices, before, assign(tensor, slices, *shape), false, &assigned(rows, columns));
        drop(read);
    }
    // Again and again, as buffers are filled: a large one, whatever was launched and is not yet given to the device.
    const LARGE: usize = 1 << 15;
    let large = Streamed::float_from_data(TensorData::zeros::<f32, _>([LARGE, COLUMNS]), &cube_device());
    let large = settled(Streamed::float_add_scalar(large, 1.0.into()));
    let before = memory(&large);
    let filled = (0..8).fold(large, |large, row| {
        let twos = Streamed::float_from_data(TensorData::new(vec![2f32; COLUMNS], [1, COLUMNS]), &cube_device());
        Streamed::float_slice_assign(large, &[Slice::from(row..row + 1), all()], twos)
    });
    assert_eq!(memory(&filled), before);
    let rows = values(filled);
    let expected = (0..LARGE * COLUMNS).map(|place| if place < 8 * COLUMNS { 2f32 } else { 1.0 });
    assert!(rows.into_iter().eq(expected), "rows of a large tensor");
    // A thread that has used a tensor may read any by Burn, of which nothing here knows; and a stream that has computed, which may have a
    // number of the program's own, and be any thread's.
    match arguments()[0].as_str() {
        "thread" => {
            let shared = ones();
            drop(std::thread::spawn(move || values(shared)).join().expect("the thread reads"));
        }
        _ => drop(StreamId { value: 1 << 40 }.executes(|| values(ones()))),
    }
    before_others(false);
    report("assigned", places.len());
}

#[test]
fn slices_are_written_in_place_while_one_thread_uses_tensors() {
    for second in ["thread", "stream"] {
        let output = Program::new("assigns_in_one_thread").arguments(&[second]).run();
        output.assert_quiet();
        assert_eq!(output.reported("assigned"), "3");
    }
}
