//! Digests against their reference.

use crate::harness::*;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::digest::reference::{digest, mix, terms};
use burn_deterministic_kernels::digest::{MAX_BYTES, Plan, Problem, launch, most_tensors, plan::plan, width};
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::std::tensor::TensorHandle;

const U8: ElemType = ElemType::UInt(UIntKind::U8);
const I64: ElemType = ElemType::Int(IntKind::I64);

/// The digests of `tensors`, all in launches as large as the device takes.
fn digests(tensors: Vec<TensorHandle>) -> Vec<[u32; 4]> {
    digests_by(tensors, None)
}

fn digests_by(tensors: Vec<TensorHandle>, plan: Option<Plan>) -> Vec<[u32; 4]> {
    let client = client();
    let most = most_tensors(&client);
    let mut digests = Vec::new();
    for tensors in tensors.chunks(most) {
        let partials = launch(&client, tensors.to_vec(), plan).expect("tensors");
        let bytes = client.read_one(partials.handle()).expect("the sums can be read");
        digests.extend(partials.digests(&bytes));
    }
    digests
}

/// Bytes without a pattern.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| mix(i as u32 ^ 0x5bd1_e995) as u8).collect()
}

#[test]
fn every_length_matches_the_reference() {
    let client = client();
    // Around a cube, around the words of a unit, and past the most cubes.
    let words = [0, 1, 2, 255, 256, 257, 16_383, 16_384, 16_385, 100_003, 256 * 256 * 64 + 257];
    let data: Vec<Vec<u8>> = words.iter().map(|&words| bytes(4 * words)).collect();
    let tensors = data.iter().map(|data| upload(&client, data, &[data.len()], U8));
    // As words: the bytes of a tensor count, not its type.
    let tensors = tensors.map(|tensor| {
        let length = tensor.shape()[0] / 4;
        TensorHandle::new_contiguous(vec![length], tensor.handle, I32)
    });
    let tensors: Vec<TensorHandle> = tensors.collect();
    let want: Vec<[u32; 4]> = data.iter().map(|data| digest(data)).collect();
    assert_eq!(digests(tensors.clone()), want);
    // Word by word beside others, in vectors alone.
    assert!([1, 4].map(|width_of| data.iter().any(|data| width(data.len()) == width_of)) == [true; 2]);
    for (tensor, want) in tensors.into_iter().zip(want) {
        assert_eq!(digests(vec![tensor]), [want]);
    }
}

#[test]
fn every_plan_gives_the_same_digests() {
    let client = client();
    let lengths = [0, 1, 257, 3 * 256 * 5 + 1, 100_003];
    let data = lengths.map(|words| bytes(4 * words));
    let want: Vec<[u32; 4]> = data.iter().map(|data| digest(data)).collect();
    let plans = Plan::candidates(&Problem { vectors: 100_003 });
    assert!([true, false].map(|adds| plans.iter().any(|plan| plan.adds == adds)) == [true; 2], "{plans:?}");
    let whole = bytes(4 * 100_004);
    for plan in plans {
        let tensors = data.iter().map(|data| upload(&client, data, &[data.len()], U8)).collect();
        assert_eq!(digests_by(tensors, Some(plan)), want, "{plan:?}");
        let tensor = upload(&client, &whole, &[whole.len()], U8);
        assert_eq!(digests_by(vec![tensor], Some(plan)), [digest(&whole)], "{plan:?} in vectors");
    }
}

#[test]
fn planned_digests_are_taken() {
    let most = MAX_BYTES / 4;
    for vectors in (0..32).map(|bit| 1 << bit).chain([0, most]) {
        let problem = Problem { vectors };
        for machine in [Machine::Gpu, Machine::Software] {
            let plan = plan(&problem, machine);
            assert_eq!(plan.refuses(&problem).is_none(), vectors <= most, "{plan:?} for {problem:?}");
            assert_eq!(Plan::candidates(&problem).contains(&plan), vectors <= most, "{plan:?}");
        }
    }
    let refused = |cubes, vectors| Plan { cubes, adds: true }.refuses(&Problem { vectors }).is_some();
    assert!(refused(0, 1) && refused(257, 1) && refused(1, most) && refused(256, most + 1));
}

#[test]
fn bytes_behind_the_last_element_do_not_count() {
    let client = client();
    for length in 1..=9 {
        let data = bytes(length);
        // The same elements, before other bytes.
        let mut longer = data.clone();
        longer.resize(12, 0xff);
        let tensor = |data: &[u8]| {
            let handle = client.create_from_slice(data);
            TensorHandle::new_contiguous(vec![length], handle, U8)
        };
        assert_eq!(digests(vec![tensor(&longer), tensor(&data)]), [digest(&data); 2], "{length} bytes");
    }
}

#[test]
fn a_layout_changes_no_digest() {
    let client = client();
    let shape = [3, 5, 7];
    let values = random_values(7, 105);
    let dense = upload(&client, &values, &shape, F32);
    let want = digest(bytemuck::cast_slice(&values));
    let copies = [dense, scattered(1, &client, &values, &shape), scattered(3, &client, &values, &shape)];
    assert_eq!(digests(copies.to_vec()), [want; 3]);
}

#[test]
fn wide_elements_count_in_whole() {
    let values: Vec<i64> = (0..1000).map(|i| i << 33).collect();
    let client = client();
    // Not a tensor that the device computes with: its type may be one that the device lacks.
    let tensor = upload(&client, &values, &[1000], I64);
    assert_eq!(digests(vec![tensor]), [digest(bytemuck::cast_slice(&values))]);
}

#[test]
fn any_change_is_another_digest() {
    let data = bytes(4 * 300);
    let original = digest(&data);
    for word in [0usize, 1, 150, 299] {
        for bit in 0..32 {
            let mut flipped = data.clone();
            flipped[4 * word + bit / 8] ^= 1 << (bit % 8);
            let changed = digest(&flipped);
            assert!((0..4).all(|lane| changed[lane] != original[lane]), "word {word}, bit {bit}: {changed:x?}");
        }
    }
    let mut swapped = data.clone();
    swapped.swap(0, 4);
    let changed = digest(&swapped);
    assert!((0..4).all(|lane| changed[lane] != original[lane]), "two elements change places: {changed:x?}");
    assert_ne!(digest(&[0; 4]), digest(&[0; 8]), "a zero more");
    assert_ne!(digest(&[]), digest(&[0]), "nothing and a zero");
}

/// Of the first 2^16 words with a value at each of two places, no two have a sum in common by more than chance.
#[test]
fn terms_of_neighbours_have_nothing_in_common() {
    for lane in 0..4 {
        let mut seen: Vec<u32> = (0..1 << 9).flat_map(|x| (0..1 << 9).map(move |i| terms(i, x)[lane])).collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        // 2^18 random words of 32 bits have 8 pairs of equals on average; 40 come once in 10^14 times.
        assert!(count - seen.len() < 40, "lane {lane}: {} equals", count - seen.len());
    }
}
