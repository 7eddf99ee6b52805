//! Every plan gives the same bits, and one that does not apply is refused.

use super::*;

/// Those of the plans for a reduction that read in vectors of four.
#[track_caller]
fn plans_in_vectors(shape: &[usize], axes: &[usize]) -> Vec<Plan> {
    let mut plans = plans(shape, axes, Kind::Reduction);
    plans.retain(|plan| matches!(plan.first, Pass::FourOutputs(_) | Pass::FourElements { .. }));
    assert!(!plans.is_empty(), "{shape:?} over {axes:?} cannot be read in vectors");
    plans
}

#[test]
fn sums_match_the_reference_under_every_plan() {
    let client = client();
    for n in LENGTHS {
        let values = random_values(n as u64, n);
        let want = [reference::sum(&values)];
        for plan in plans(&[n], &[0], Kind::Reduction) {
            let input = upload(&client, &values, &[n], F32);
            let got = reduce::reduce(&client, Operation::Sum, input, &[0], Some(plan)).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}

#[test]
fn products_and_means_match_the_reference_under_every_plan() {
    let client = client();
    type Reference = fn(&[f32]) -> f32;
    let operations: [(Operation, Reference); 2] =
        [(Operation::Prod, reference::prod), (Operation::Mean, reference::mean)];
    for (shape, axis) in [([130, 3], 0), ([130, 33], 1), ([65, 64], 1), ([3, 4101], 1), ([4101, 2], 0), ([3, 4160], 1)]
    {
        // Close to 1, so that no product leaves f32.
        let values = random_values(13, shape[0] * shape[1]).into_iter().map(|x| 1.0 + x / 64.0).collect::<Vec<_>>();
        for (operation, reference) in operations {
            let want: Vec<f32> = outputs_of(&values, &shape, &[axis]).iter().map(|x| reference(x)).collect();
            for plan in plans(&shape, &[axis], Kind::Reduction) {
                let input = upload(&client, &values, &shape, F32);
                let got = reduce::reduce(&client, operation, input, &[axis], Some(plan)).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

#[test]
fn integers_match_the_reference_under_every_plan() {
    let client = client();
    let values: Vec<i32> = (0..3 * 4160).map(|i: i32| i.wrapping_mul(0x9e37_79b9u32 as i32) >> (i % 31)).collect();
    type Reference = fn(&[i32]) -> i32;
    let operations: [(Operation, Reference); 5] = [
        (Operation::Sum, |row| row.iter().fold(0, |a: i32, &x| a.wrapping_add(x))),
        (Operation::Prod, |row| row.iter().fold(1, |a: i32, &x| a.wrapping_mul(x))),
        (Operation::Max, |row| *row.iter().max().unwrap()),
        (Operation::Any, |row| i32::from(row.iter().any(|&x| x != 0))),
        (Operation::All, |row| i32::from(row.iter().all(|&x| x != 0))),
    ];
    for (operation, reference) in operations {
        let want: Vec<i32> = values.chunks(4160).map(reference).collect();
        let transposed: Vec<i32> = (0..values.len()).map(|i| values[i % 3 * 4160 + i / 3]).collect();
        for (values, shape, axis) in [(&values, [3, 4160], 1), (&transposed, [4160, 3], 0)] {
            for plan in plans(&shape, &[axis], Kind::Reduction) {
                let input = upload(&client, values, &shape, I32);
                let got = reduce::reduce(&client, operation, input, &[axis], Some(plan)).unwrap();
                assert_equal(&download::<i32>(&client, got), &want);
            }
        }
    }
}

#[test]
fn every_plan_gives_the_same_bits_for_many_outputs() {
    let client = client();
    for (shape, axes) in [
        (vec![200, 33], vec![0]),
        (vec![33, 200], vec![1]),
        (vec![7, 5, 31, 29], vec![0, 2, 3]),
        // Neighbouring outputs, along an axis of two loops.
        (vec![6, 5, 71, 8], vec![0, 2]),
        (vec![4100, 3], vec![0]),
    ] {
        let values = random_values(9, shape.iter().product());
        let want: Vec<f32> = outputs_of(&values, &shape, &axes).iter().map(|x| reference::sum(x)).collect();
        for plan in plans(&shape, &axes, Kind::Reduction) {
            let input = upload(&client, &values, &shape, F32);
            let got = reduce::reduce(&client, Operation::Sum, input, &axes, Some(plan)).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}

#[test]
fn more_rows_than_a_grid_axis_has_cubes() {
    let client = client();
    let rows = 65_536 * 9 + 3;
    let values = random_values(4, rows * 2);
    let want: Vec<f32> = values.chunks(2).map(reference::sum).collect();
    let input = upload(&client, &values, &[rows, 2], F32);
    let plan = Plan { first: Pass::Single(Cube::NARROW), fuses: false, totals: None };
    let got = reduce::reduce(&client, Operation::Sum, input, &[1], Some(plan)).unwrap();
    assert_bits(&download(&client, got), &want);
}

#[test]
fn extremes_match_the_reference_under_every_plan() {
    let client = client();
    type Reference = fn(&[f32]) -> Option<f32>;
    let operations: [(Operation, Reference); 3] =
        [(Operation::Max, reference::max), (Operation::Min, reference::min), (Operation::MaxAbs, reference::max_abs)];
    for (n, with_nan) in [(1, false), (65, false), (130, true), (4100, false), (4100, true)] {
        let values = with_specials(random_values(n as u64, n * 3), with_nan);
        for (operation, reference) in operations {
            let want: Vec<f32> = outputs_of(&values, &[n, 3], &[0]).iter().map(|x| reference(x).unwrap()).collect();
            for plan in plans(&[n, 3], &[0], Kind::Reduction) {
                let input = upload(&client, &values, &[n, 3], F32);
                let got = reduce::reduce(&client, operation, input, &[0], Some(plan)).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
    }
}

type Reference = fn(&[f32]) -> f32;

/// Those of the operations whose results have the bits of the host.
fn comparable(client: &Client) -> impl Iterator<Item = (Operation, Reference)> {
    let divides = divides_like_the_host(client);
    if !divides {
        skip("the device's quotients are not correctly rounded: no means");
    }
    REDUCTIONS.into_iter().filter(move |(operation, _)| divides || *operation != Operation::Mean)
}

/// What is reduced in vectors of four.
const REDUCTIONS: [(Operation, Reference); 6] = [
    (Operation::Sum, reference::sum),
    (Operation::Prod, reference::prod),
    (Operation::Mean, reference::mean),
    (Operation::Max, |x| reference::max(x).unwrap()),
    (Operation::Min, |x| reference::min(x).unwrap()),
    (Operation::MaxAbs, |x| reference::max_abs(x).unwrap()),
];

#[test]
fn dense_rows_read_in_vectors_match_the_reference() {
    let client = client();
    // A row of a block, one and a bit, whole blocks, and a last block of one row and a bit; 17 rows are three cubes.
    for shape in [[17, 64], [3, 68], [2, 124], [5, 1000], [3, 4096], [2, 4160], [1, 8192 + 68]] {
        let values: Vec<f32> = random_values(11, shape[0] * shape[1]).iter().map(|x| 1.0 + x / 64.0).collect();
        for (operation, reference) in comparable(&client) {
            let want: Vec<f32> = values.chunks(shape[1]).map(reference).collect();
            for plan in plans_in_vectors(&shape, &[1]) {
                let input = upload(&client, &values, &shape, F32);
                let got = reduce::reduce(&client, operation, input, &[1], Some(plan)).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
        let whole: Vec<i32> = values.iter().map(|x| (x * 1e9) as i32).collect();
        let want: Vec<i32> =
            whole.chunks(shape[1]).map(|row| row.iter().fold(0i32, |a, &b| a.wrapping_add(b))).collect();
        for plan in plans_in_vectors(&shape, &[1]) {
            let input = upload(&client, &whole, &shape, I32);
            let got = reduce::reduce(&client, Operation::Sum, input, &[1], Some(plan)).unwrap();
            assert_equal(&download::<i32>(&client, got), &want);
        }
    }
    // Rows that begin past a multiple of four, and every second element: read one by one.
    for (size, strides) in [(1001, [1001, 1]), (1000, [1002, 1]), (500, [1000, 2])] {
        let memory = random_values(12, 2 * strides[0]);
        let row = |r: usize| (0..size).map(|i| memory[r * strides[0] + i * strides[1]]).collect::<Vec<_>>();
        let want = [reference::sum(&row(0)), reference::sum(&row(1))];
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![2usize, size], strides.to_vec(), F32);
        let plan = Plan { first: Pass::FourElements { width: 8 }, fuses: false, totals: None };
        let refused = reduce::reduce(&client, Operation::Sum, input.clone(), &[1], Some(plan)).unwrap_err();
        assert!(refused.to_string().ends_with("want elements in vectors of four"), "{refused}");
        let got = reduce::sum(&client, input, &[1]).unwrap();
        assert_bits(&download(&client, got), &want);
    }
}

/// A plan that does not apply is an error with what it wants, and never another plan in its place.
#[test]
fn a_plan_that_does_not_apply_is_an_error() {
    let client = client();
    let rows = upload(&client, &[1f32; 3 * 68], &[3, 68], F32);
    let whole = Plan { first: Pass::Single(Cube::WIDE), fuses: false, totals: None };
    let text = |plan: Plan| {
        let refused = reduce::reduce(&client, Operation::Sum, rows.clone(), &[1], Some(plan)).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { kernel: "reduce::sum", .. }), "{refused}");
        refused.to_string()
    };
    assert!(
        text(Plan { totals: Some(Cube::WIDE), ..whole })
            .ends_with("want cubes for totals where an output has several blocks")
    );
    assert!(text(Plan { fuses: true, ..whole }).ends_with("want results of a program"));
    let four_outputs = Plan { first: Pass::FourOutputs(Cube::NARROW), ..whole };
    assert!(text(four_outputs).ends_with("want outputs in vectors of four"));
    assert!(text(Plan { first: Pass::FourElements { width: 0 }, ..whole }).ends_with("want cubes with units"));
    let columns = Problem::new(&[68, 4], &[4, 1], &[0], Kind::Search);
    assert!(four_outputs.refuses(&columns).unwrap().ends_with("want elements to reduce"));
    assert_eq!(four_outputs.refuses(&Problem { kind: Kind::Reduction, ..columns }), None);
    let long = Problem::new(&[4097], &[1], &[0], Kind::Reduction);
    assert!(whole.refuses(&long).is_some(), "two blocks have totals");
    let fused = Plan { fuses: true, ..whole };
    let refused = search(&client, Extreme::Max, rows.clone(), 1, I32, false, Some(fused));
    assert!(matches!(refused, Err(KernelError::Plan { kernel: "reduce::argmax", .. })));
}

#[test]
fn outputs_side_by_side_read_in_vectors_match_the_reference() {
    let client = client();
    // A row of a block and its neighbours, whole blocks and theirs, and more units than a cube has.
    let two = [[1, 4], [3, 8], [63, 4], [64, 8], [65, 12], [200, 36], [4096, 4], [4097, 8], [4161, 4], [10_007, 8]];
    let shapes = two.map(|shape| (shape.to_vec(), 0)).into_iter().chain([(vec![3, 70, 8], 1), (vec![5, 4100, 4], 1)]);
    for (shape, axis) in shapes {
        let elements = shape.iter().product();
        let values: Vec<f32> = random_values(13, elements).iter().map(|x| 1.0 + x / 64.0).collect();
        let outputs = outputs_of(&values, &shape, &[axis]);
        for (operation, reference) in comparable(&client) {
            let want: Vec<f32> = outputs.iter().map(|x| reference(x)).collect();
            let input = upload(&client, &values, &shape, F32);
            for plan in plans_in_vectors(&shape, &[axis]).into_iter().map(Some).chain([None]) {
                let got = reduce::reduce(&client, operation, input.clone(), &[axis], plan).unwrap();
                assert_bits(&download(&client, got), &want);
            }
        }
        let whole: Vec<i32> = values.iter().map(|x| (x * 1e9) as i32).collect();
        let sum = |row: &Vec<i32>| row.iter().fold(0i32, |a, &b| a.wrapping_add(b));
        let want: Vec<i32> = outputs_of(&whole, &shape, &[axis]).iter().map(sum).collect();
        let got = reduce::sum(&client, upload(&client, &whole, &shape, I32), &[axis]).unwrap();
        assert_equal(&download::<i32>(&client, got), &want);
    }
    // Parts of longer rows, of which only the first can be read in vectors.
    for row in [24, 22] {
        let memory = random_values(14, 100 * row);
        let values: Vec<f32> = memory.chunks(row).flat_map(|row| &row[..16]).copied().collect();
        let want: Vec<f32> = outputs_of(&values, &[100, 16], &[0]).iter().map(|x| reference::sum(x)).collect();
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![100usize, 16], vec![row, 1], F32);
        assert_bits(&download(&client, reduce::sum(&client, input, &[0]).unwrap()), &want);
    }
}

/// Rows that lie apart, in two loops.
#[test]
fn short_rows_of_a_view_match_the_reference() {
    let client = client();
    let memory = random_values(15, 3 * 400);
    for strides in [[400, 50, 1], [0, 50, 1], [7, 41, 1]] {
        let row = |nth: usize| &memory[nth / 5 * strides[0] + nth % 5 * strides[1]..][..40];
        let want: Vec<f32> = (0..15).map(|nth| reference::sum(row(nth))).collect();
        let handle = client.create_from_slice(bytemuck::cast_slice(&memory));
        let input = TensorHandle::new(handle, vec![3usize, 5, 40], strides.to_vec(), F32);
        let problem = Problem::new(&[3, 5, 40], &strides, &[2], Kind::Reduction);
        let plans = Plan::candidates(&problem);
        assert!(plans.iter().any(|plan| plan.first == Pass::ShortRows), "{problem:?}");
        for plan in plans {
            let got = reduce::reduce(&client, Operation::Sum, input.clone(), &[2], Some(plan)).unwrap();
            assert_bits(&download(&client, got), &want);
        }
    }
}

#[test]
fn plans_are_pinned() {
    use Machine::{Gpu, Software};
    let problem = |view: View| Problem { view, kind: Kind::Reduction };
    let first = |view: View, machine: Machine| plan(&problem(view), machine).first;
    let vectors = Pass::FourElements { width: 8 };
    let rows = View::rows(4096, 128);
    let columns = View { inner_stride: 1, axis_stride: 4096, ..rows };
    assert_eq!(first(rows, Gpu), Pass::Single(Cube::UNIT_A_COLUMN));
    assert_eq!([16, 17, 64, 65].map(|n| first(View::rows(7, n), Gpu) == Pass::ShortRows), [false, true, true, false]);
    assert_eq!(first(columns, Gpu), Pass::FourOutputs(Cube::UNIT_TWO_COLUMNS));
    assert_eq!(first(View { axis: 16, axis_inner: 16, ..columns }, Gpu), Pass::FourOutputs(Cube::WIDE));
    assert_eq!(first(View { axis_stride: 4097, ..columns }, Gpu), Pass::Single(Cube::UNIT_TWO_COLUMNS));
    assert_eq!(first(View::rows(1, 1 << 24), Gpu), Pass::Single(Cube::UNIT_A_COLUMN));
    assert_eq!(plan(&problem(View::rows(1, 1 << 24)), Gpu).totals, Some(Cube::UNIT_A_COLUMN));
    let blocks = [4096, 4097, 16384, 16385].map(|n| plan(&problem(View::rows(9, n)), Gpu));
    assert_eq!(blocks.map(|plan| plan.first == Pass::AllBlocks), [false, true, true, false]);
    assert_eq!(blocks.map(|plan| plan.totals.is_some()), [false, false, false, true]);
    let found = |n: u32| plan(&Problem { view: View::rows(9, n), kind: Kind::Search }, Gpu).first;
    assert_eq!([16, 64, 65].map(found), [Cube::WIDE, Cube::FOUR_UNITS, Cube::UNIT_A_COLUMN].map(Pass::Single));
    assert_eq!(first(rows, Software), vectors);
    assert_eq!(first(columns, Software), Pass::FourOutputs(Cube::NARROW));
    assert_eq!(first(View { axis_stride: 4097, ..columns }, Software), Pass::Single(Cube::WIDE));
    assert_eq!(plan(&problem(rows), Software).totals, None);
    let search = |view| plan(&Problem { view, kind: Kind::Search }, Software).first;
    assert_eq!((search(rows), search(columns)), (vectors, Pass::Single(Cube::WIDE)));
    // Where vectors are not possible, a software driver writes a program's results before.
    let program = |view, machine| plan(&Problem { view, kind: Kind::ProgramReduction }, machine);
    let odd = View { inner: 4095, outputs: 4095, axis_stride: 4095, ..columns };
    assert!(program(rows, Software).fuses && program(columns, Software).fuses && !program(odd, Software).fuses);
    assert!([rows, columns, odd].into_iter().all(|view| program(view, Gpu).fuses));

    assert!(columns.in_vectors_of_outputs().is_some() && rows.in_vectors_of_outputs().is_none());
    let others = [
        View { inner: 2, outer_stride: 4096 * 128, ..columns },
        View { outer_stride: 2, ..columns },
        View { inner_stride: 2, ..columns },
        View { axis_inner: 64, axis_outer_stride: 2, ..columns },
    ];
    assert!(others.iter().all(|view| view.in_vectors_of_outputs().is_none()));
    for (axis, in_vectors) in [(60, false), (64, true), (66, false), (4096, true), (4100, false), (4160, true)] {
        assert_eq!(View::rows(7, axis).has_elements_in_vectors(), in_vectors, "{axis}");
    }
}

/// Whatever is planned applies.
#[test]
fn planned_reductions_are_taken() {
    for axis in [1, 2, 63, 64, 68, 4096, 4097, 8192, 70_001] {
        for outputs in [1, 3, 4, 4096] {
            for (shape, strides, axes) in [
                ([outputs, axis], [axis, 1], [1]),
                ([axis, outputs], [outputs, 1], [0]),
                ([outputs, axis], [0, 3], [1]),
            ] {
                for kind in [Kind::Reduction, Kind::ProgramReduction, Kind::Search] {
                    let problem = Problem::new(&shape, &strides, &axes, kind);
                    for machine in [Machine::Gpu, Machine::Software] {
                        let plan = plan(&problem, machine);
                        assert_eq!(plan.refuses(&problem), None);
                        assert!(Plan::candidates(&problem).contains(&plan), "{plan:?}");
                        // `cargo xtask inspect` relies on it.
                        let of_elements = matches!(plan.first, Pass::FourElements { .. });
                        assert!(machine == Machine::Software || !of_elements, "{plan:?} is for software drivers");
                    }
                }
            }
        }
    }
    // Axes that do not join are copied, and a program's results written before.
    let alternating = Problem::new(&[2; 5], &[16, 8, 4, 2, 1], &[0, 2, 4], Kind::ProgramReduction);
    assert_eq!(alternating, Problem { view: View::rows(4, 8), kind: Kind::Reduction });
}
