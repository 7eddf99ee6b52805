//! Products on tensor cores against their reference.

use crate::harness::*;
use crate::known_answer::with_planted;
use crate::skip::skip;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::{MultiplyAdd, Products};
use burn_deterministic_kernels::matmul::plan::{Problem, Vectors};
use burn_deterministic_kernels::matmul::tensor_cores::plan::{Plan, Tile, plan};
use burn_deterministic_kernels::matmul::tensor_cores::{Sums, matmul, reference, sums};
use burn_deterministic_kernels::matmul::{self, reference as chains};
use burn_deterministic_kernels::order::BLOCK;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// A type that tensor cores multiply.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    Half(Half),
    /// f32, multiplied as TF32.
    Float,
}

/// All of them.
const TYPES: [Type; 3] = [Type::Half(HALVES[0]), Type::Half(HALVES[1]), Type::Float];

impl Type {
    pub fn dtype(self) -> ElemType {
        match self {
            Self::Half(half) => half.dtype,
            Self::Float => F32,
        }
    }

    pub fn rounded(self, values: &[f32]) -> Vec<f32> {
        match self {
            Self::Half(half) => half.rounded(values),
            Self::Float => values.to_vec(),
        }
    }

    pub fn upload(self, client: &Client, values: &[f32], shape: &[usize]) -> TensorHandle {
        match self {
            Self::Half(half) => half.upload(client, values, shape),
            Self::Float => upload(client, values, shape, F32),
        }
    }

    pub fn download(self, client: &Client, tensor: TensorHandle) -> Vec<f32> {
        match self {
            Self::Half(half) => half.download(client, tensor),
            Self::Float => download(client, tensor),
        }
    }

    /// The least number, and the least normal one.
    fn least(self) -> (f32, f32) {
        let (least, normal) = match self {
            Self::Half(half) if half.dtype == HALVES[0].dtype => (-24, -14),
            Self::Half(_) => (-133, -126),
            Self::Float => (-136, -126),
        };
        (2f32.powi(least), 2f32.powi(normal))
    }
}

/// Each type that the device has tensor cores for, with their sums.
pub fn types(client: &Client) -> Vec<(Type, Sums)> {
    let types: Vec<_> =
        TYPES.into_iter().filter_map(|of| Some((of, sums(client, of.dtype()).expect("an answer")?))).collect();
    if types.is_empty() {
        skip("the device has no tensor cores whose sums are known");
    }
    types
}

/// Numbers of a type, and a tensor of them.
fn operand(client: &Client, seed: u64, shape: &[usize], of: Type) -> (Vec<f32>, TensorHandle) {
    let values = of.rounded(&random_values(seed, shape.iter().product()));
    let tensor = of.upload(client, &values, shape);
    (values, tensor)
}

/// The same matrix, stored column by column.
fn by_columns(client: &Client, values: &[f32], [rows, columns]: [usize; 2], of: Type) -> TensorHandle {
    let stored: Vec<f32> = (0..rows * columns).map(|at| values[at % rows * columns + at / rows]).collect();
    let tensor = of.upload(client, &stored, &[columns, rows]);
    TensorHandle::new(tensor.handle, vec![rows, columns], vec![1, rows], of.dtype())
}

fn problem(batch: usize, [m, k, n]: [usize; 3]) -> Problem {
    let vectors = Vectors::None;
    Problem { batch, m, k, n, element: 2, accumulator: 4, vectors, swapped_vectors: vectors }
}

#[track_caller]
fn assert_product(client: &Client, out: TensorHandle, want: &[f32], of: Type, what: &str) {
    let (got, want) = (of.download(client, out), of.rounded(want));
    assert_eq!(got.len(), want.len(), "{what}");
    if let Some(at) = (0..want.len()).find(|&at| got[at].to_bits() != want[at].to_bits()) {
        panic!("{what}: element {at}: got {:e}, want {:e}", got[at], want[at]);
    }
}

/// Every plan, both layouts of both operands, single elements, fours and eights, edges of tiles, fragments, stages and blocks.
#[test]
fn equals_reference_on_every_shape() {
    let client = client();
    let shapes = [
        [1, 1, 1],
        [16, 16, 16],
        [17, 15, 33],
        [64, 64, 64],
        [65, 36, 12],
        [20, 40, 72],
        [1, 200, 130],
        [130, 72, 1],
        [5, BLOCK + 9, 6],
        [8, 2 * BLOCK + 16, 8],
    ];
    for (of, sums) in types(&client) {
        for (seed, sizes @ [m, k, n]) in shapes.into_iter().enumerate() {
            let (a, lhs) = operand(&client, 500 + seed as u64, &[m, k], of);
            let (b, rhs) = operand(&client, 600 + seed as u64, &[k, n], of);
            let want = reference::matmul(&a, &b, sizes, of.dtype(), sums);
            let lhs_t = by_columns(&client, &a, [m, k], of);
            let rhs_t = by_columns(&client, &b, [k, n], of);
            let plans = Plan::candidates(&problem(1, sizes));
            assert!(plans.contains(&plan(&problem(1, sizes))), "{sizes:?}");
            assert_eq!(plans.len(), if k > BLOCK { 6 } else { 3 }, "{sizes:?}");
            let layouts = [(&lhs, &rhs), (&lhs_t, &rhs_t), (&lhs, &rhs_t), (&lhs_t, &rhs)];
            for plan in plans {
                // Layouts of long chains are those of short ones.
                for (lhs, rhs) in layouts.into_iter().take(if k > BLOCK { 1 } else { 4 }) {
                    let out = matmul(&client, lhs.clone(), rhs.clone(), Some(plan)).expect("a valid product");
                    let strides = (lhs.strides(), rhs.strides());
                    let what = format!("{of:?} {plan:?} {m}x{k}x{n}, strides {strides:?}");
                    assert_product(&client, out, &want, of, &what);
                }
            }
        }
    }
}

/// The sums of a device are told apart from the other ones, and from chains of multiply-adds.
#[test]
fn orders_differ() {
    let (m, k, n) = (8, 512, 8);
    for of in TYPES {
        let values = |seed| of.rounded(&random_values(seed, m * k));
        let (a, b) = (values(700), values(701));
        let by = |sums| reference::matmul(&a, &b, [m, k, n], of.dtype(), sums);
        let chain = chains::matmul(&a, &b, [m, k, n], MultiplyAdd::Fused);
        let (ampere, hopper) = (by(Sums::Ampere), by(Sums::Hopper));
        let differing = |x: &[f32], y: &[f32]| x.iter().zip(y).filter(|(x, y)| x.to_bits() != y.to_bits()).count();
        assert!(differing(&ampere, &hopper) > n, "{of:?}");
        assert!(differing(&hopper, &chain) > n, "{of:?}");
        assert!(differing(&ampere, &chain) > n, "{of:?}");
    }
}

/// The emulator has Hopper's; a device without known sums is no device for this kernel.
#[test]
fn the_device_is_asked() {
    let client = client();
    let is_emulator = client.properties().identity.name.starts_with("CUDA emulator");
    for of in TYPES {
        let sums = sums(&client, of.dtype()).expect("an answer");
        if is_emulator {
            assert_eq!(sums, Some(Sums::Hopper), "{of:?}");
        } else if client.name() == "cuda" {
            assert!(
                sums.is_some(),
                "{of:?}: the kernel has a fault on this device, or its tensor cores have other sums"
            );
        }
        if sums.is_none() {
            let ones = of.upload(&client, &[1.0; 4], &[2, 2]);
            let refused = matmul(&client, ones.clone(), ones, None).map(|_| ()).unwrap_err();
            assert!(refused.to_string().contains("tensor core"), "{refused}");
        }
    }
    assert_eq!(sums(&client, I32), Ok(None));
}

/// A row's bits depend on neither the others nor the batch; operands of one batch are broadcast.
#[test]
fn batches_and_rows_change_no_bits() {
    let client = client();
    let (batch, [m, k, n]) = (3, [33, 48, 40]);
    for (of, sums) in types(&client) {
        let (a, lhs) = operand(&client, 720, &[batch, m, k], of);
        let (b, rhs) = operand(&client, 721, &[1, k, n], of);
        let want: Vec<f32> =
            a.chunks(m * k).flat_map(|a| reference::matmul(a, &b, [m, k, n], of.dtype(), sums)).collect();
        let out = matmul(&client, lhs, rhs, None).expect("a valid product");
        assert_product(&client, out, &want, of, "one rhs for all");
        let (b, rhs) = operand(&client, 722, &[batch, k, n], of);
        let lhs = of.upload(&client, &a[..m * k], &[1, m, k]);
        let want: Vec<f32> =
            b.chunks(k * n).flat_map(|b| reference::matmul(&a[..m * k], b, [m, k, n], of.dtype(), sums)).collect();
        let out = matmul(&client, lhs, rhs.clone(), None).expect("a valid product");
        assert_product(&client, out, &want, of, "one lhs for all");
        let row = of.upload(&client, &a[k..2 * k], &[1, 1, k]);
        let out = matmul(&client, row, rhs, None).expect("a valid product");
        let want: Vec<f32> = want.chunks(m * n).flat_map(|product| product[n..2 * n].to_vec()).collect();
        assert_product(&client, out, &want, of, "a row by itself");
    }
}

/// Zeros, infinities, NaN, subnormal numbers; no steps, and no outputs.
#[test]
fn edges_of_the_types() {
    let client = client();
    for (of, sums) in types(&client) {
        let (least, normal) = of.least();
        let values = [0.0, -0.0, 1.0, -1.0, least, -least, normal, -normal, 3.0 * least, f32::INFINITY, -f32::INFINITY];
        let (m, k, n) = (values.len(), 3, values.len());
        // Each value beside a number that is not zero, and once alone.
        let a: Vec<f32> = values.iter().flat_map(|&x| [x, 1.0, -0.0]).collect();
        let b: Vec<f32> = [values.to_vec(), vec![least; n], vec![-0.0; n]].concat();
        let (lhs, rhs) = (of.upload(&client, &a, &[m, k]), of.upload(&client, &b, &[k, n]));
        let want = reference::matmul(&a, &b, [m, k, n], of.dtype(), sums);
        let out = matmul(&client, lhs, rhs, None).expect("a valid product");
        let got = of.download(&client, out);
        for (at, (&got, &want)) in got.iter().zip(&of.rounded(&want)).enumerate() {
            let is_equal = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(is_equal, "{of:?} {} * {}: got {got:e}, want {want:e}", values[at / n], values[at % n]);
        }
        // Sums of tiny numbers alone: a negative zero before the last steps of a stage, terms that are cut to zero one by one, and subnormal ones.
        let tiny = [-2f32.powi(-75), -2f32.powi(-80), 2f32.powi(-80)];
        for (k, left, right) in
            [(1, tiny[0], tiny[2]), (17, tiny[0], tiny[2]), (32, tiny[1], tiny[2]), (33, least, normal)]
        {
            let [left, right] = [left, right]
                .map(|x| if matches!(of, Type::Half(half) if half.dtype == HALVES[0].dtype) { least } else { x });
            let (a, b) = (vec![left; k], vec![right; k]);
            let out = matmul(&client, of.upload(&client, &a, &[1, k]), of.upload(&client, &b, &[k, 1]), None);
            let want = of.rounded(&reference::matmul(&a, &b, [1, k, 1], of.dtype(), sums));
            assert_bits(&of.download(&client, out.expect("a sum of tiny numbers")), &want);
        }
        let empty = |shape: &[usize]| of.upload(&client, &[], shape);
        let out = matmul(&client, empty(&[2, 0]), empty(&[0, 3]), None).expect("zeros");
        assert_bits(&of.download(&client, out), &[0.0; 6]);
        let out = matmul(&client, empty(&[0, 3]), of.upload(&client, &[1.0; 6], &[3, 2]), None);
        assert_eq!(out.expect("no output").shape()[..], [0, 2]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let client = client();
    for (of, _) in types(&client) {
        let ones = |shape: &[usize]| of.upload(&client, &vec![1.0; shape.iter().product()], shape);
        let refused = matmul(&client, ones(&[2, 3]), ones(&[2, 3]), None).map(|_| ()).unwrap_err();
        assert!(matches!(refused, KernelError::Shape { .. }), "{refused}");
        let split = Plan { tile: Tile::SMALL, split: true };
        let refused = matmul(&client, ones(&[2, 3]), ones(&[3, 2]), Some(split)).map(|_| ()).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { .. }), "{refused}");
        let other = Plan { tile: Tile { warps: [1, 1], fragments: [1, 1] }, split: false };
        let refused = matmul(&client, ones(&[2, 3]), ones(&[3, 2]), Some(other)).map(|_| ()).unwrap_err();
        assert!(matches!(refused, KernelError::Plan { .. }), "{refused}");
        let integers = upload(&client, &[1i32; 4], &[2, 2], I32);
        let refused = matmul(&client, integers.clone(), integers, None).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("tensor core"), "{refused}");
        // The chains of multiply-adds stay what they are.
        let chain = matmul::matmul(&client, Products::Native, ones(&[2, 3]), ones(&[3, 2]), None).expect("a product");
        assert_eq!(of.download(&client, chain), [3.0; 4]);
    }
}

/// What the emulator says with planted sums; run by [`other_sums_are_told_apart`].
#[test]
#[ignore = "for a process with planted arithmetic"]
fn asked() {
    let client = client();
    for of in TYPES {
        println!("{:?}: {:?}", of.dtype(), sums(&client, of.dtype()).expect("an answer"));
    }
}

/// Ampere's sums are known, with the bits of their reference; others are none that a product is computed with.
#[test]
fn other_sums_are_told_apart() {
    let tests = ["tensor_cores::asked", "tensor_cores::batches_and_rows_change_no_bits"];
    for (planted, want) in [("ampere", "Some(Ampere)"), ("volta", "None")] {
        let Some(said) = with_planted(planted, &tests) else { return };
        assert_eq!(said.matches(want).count(), TYPES.len(), "{said}");
        assert!(said.contains("2 passed"), "{said}");
    }
}
