//! What every family with plans has in common: a plan that does not apply is [`KernelError::Plan`].

use crate::harness::*;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::arithmetic::Products;
use burn_deterministic_kernels::coarsening;
use burn_deterministic_kernels::convolution::{self, ConvolutionParams, Pass, UnitTile};
use burn_deterministic_kernels::deform_convolution::{self, DeformParams};
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::digest;
use burn_deterministic_kernels::elementwise::{Call, Instruction, Operands, Program, Unary, Value};
use burn_deterministic_kernels::fourier;
use burn_deterministic_kernels::grid_sample::{self, Filter, Padding, SampleParams};
use burn_deterministic_kernels::index_check::Flags;
use burn_deterministic_kernels::interpolation::{self, weights};
use burn_deterministic_kernels::matmul::{self, plan as product};
use burn_deterministic_kernels::order::COLUMNS_BLOCK;
use burn_deterministic_kernels::radix_sort;
use burn_deterministic_kernels::reduce::extreme::{Extreme, search};
use burn_deterministic_kernels::reduce::{self, plan as reduction};
use burn_deterministic_kernels::scan;
use burn_deterministic_kernels::scatter::{self, Addressing, Update};
use burn_deterministic_kernels::sort::{self, Direction, Sorting};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::Client;
use cubecl::std::tensor::TensorHandle;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every function that takes a plan, with the error for one that does not apply to 2 lines, or to `outer` of them.
pub fn refusals(client: &Client, outer: usize) -> Vec<(&'static str, &'static str, Option<KernelError>)> {
    let floats = |shape: &[usize]| upload(client, &vec![1f32; shape.iter().product()], shape, F32);
    let index = |shape: &[usize]| upload(client, &vec![0i32; shape.iter().product()], shape, I32);
    let totals = reduction::Plan {
        first: reduction::Pass::Single(reduction::Cube::WIDE),
        fuses: false,
        totals: Some(reduction::Cube::WIDE),
    };
    const { assert!(8 < COLUMNS_BLOCK, "sums of one block have no totals") };
    let mut program = Program::default();
    let Value::Result(word) = program.word(Instruction::Unary(Unary::Negate, Value::Input(0))) else {
        unreachable!("an instruction has a result")
    };
    program.reduce(word);
    let program = Arc::new(program);
    let computed = Call {
        program: &program,
        shape: &[outer, 8],
        operands: Operands { words: vec![floats(&[outer, 8])], conditions: vec![], scalars: vec![] },
        condition_dtype: ElemType::UInt(UIntKind::U32),
    };
    let split = product::Plan { tile: product::CubeTile::Direct { rows: 16, columns: 8 }, swap: false, split: true };
    let tile = product::CubeTile::Single { sides: [8, 16], depth: 4 };
    let shallow = product::Plan { tile, swap: false, split: false };
    let params = ConvolutionParams { stride: [1], padding: [(0, 0)], dilation: [1], groups: 1 };
    let forward = convolution::Problem {
        pass: Pass::ToOutput,
        rank: params.stride.len(),
        geometry: convolution::Geometry::new("test", &[outer, 2, 9], &[3, 2, 3], &params).expect("it fits"),
        products: Products::Native,
    };
    let operands = convolution::Operands { source: floats(&[outer, 2, 9]), other: floats(&[3, 2, 3]), bias: None };
    let weight = convolution::Plan::Weight { tile: UnitTile { rows: 8, columns: 8 }, span: 1, units: 64 };
    let unchained = scan::Plan { staged: false, chained: 0 };
    let sorted =
        sort::Plan::Select(sort::plan::Selection { slots: 1, chunk: 64, selector: sort::plan::Selector::Unit });
    let updated = scatter::Plan::Privatised;
    let ascending = Sorting { axis: 1, direction: Direction::Ascending, kept: None, values: true, index: None };
    let max = Update::Max;
    let nothing = coarsening::Plan { span: 0 };
    let sampled = SampleParams { filter: Filter::Linear, padding: Padding::Zeros, align_corners: false };
    let deformed =
        DeformParams { stride: [1; 2], padding: [0; 2], dilation: [1; 2], weight_groups: 1, offset_groups: 1 };
    let image = || floats(&[outer, 1, 2, 2]);
    let points = deform_convolution::Operands {
        input: image(),
        offset: floats(&[outer, 2, 2, 2]),
        weight: floats(&[1, 1, 1, 1]),
        mask: None,
    };
    let joint = interpolation::plan::Plan::Joint(nothing);
    let in_lines = fourier::Plan::Lines;
    let rows = || floats(&[outer, 8]);
    let lines = || floats(&[outer, 2, 8]);
    vec![
        ("reduce", "reduce::sum", reduce::reduce(client, reduce::Operation::Sum, rows(), &[1], Some(totals)).err()),
        (
            "reduce_program",
            "reduce::sum",
            reduce::reduce_program(client, reduce::Operation::Sum, computed, &[1], Some(totals)).err(),
        ),
        ("search", "reduce::argmax", search(client, Extreme::Max, rows(), 1, I32, false, Some(totals)).err()),
        ("matmul", "matmul", matmul::matmul(client, Products::Native, rows(), floats(&[8, 3]), Some(split)).err()),
        (
            "matmul_each",
            "matmul",
            matmul::matmul_each(client, Products::Native, vec![[rows(), floats(&[8, 3])]], Some(shallow)).err(),
        ),
        ("run_pass", "test", convolution::run_pass(client, "test", &forward, operands, Some(weight)).err()),
        ("scan", "scan::cumsum", scan::scan(client, scan::Operation::Sum, rows(), 1, Some(unchained)).err()),
        ("sort", "sort::sort", sort::sort(client, rows(), ascending, Some(sorted)).err()),
        (
            "update",
            "scatter::scatter",
            scatter::update(
                client,
                Addressing::Elements { dim: 1 },
                scatter::Operands { tensor: rows(), indices: index(&[outer, 8]), values: rows() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "update_checked",
            "scatter::select_assign",
            scatter::update_checked(
                client,
                Addressing::Rows { dim: 1 },
                scatter::Operands { tensor: rows(), indices: index(&[8]), values: rows() },
                max,
                Some(updated),
                Flags::new(client, 1).flag(0),
            )
            .err(),
        ),
        (
            "update",
            "scatter::update_batches",
            scatter::update(
                client,
                Addressing::Batches,
                scatter::Operands { tensor: lines(), indices: index(&[outer, 2]), values: lines() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "update",
            "scatter::scatter_nd",
            scatter::update(
                client,
                Addressing::Tuples,
                scatter::Operands { tensor: rows(), indices: index(&[outer, 1]), values: rows() },
                max,
                Some(updated),
            )
            .err(),
        ),
        ("launch", "digest", digest::launch(client, vec![rows()], Some(digest::Plan { cubes: 0, adds: true })).err()),
        (
            "sample",
            "grid_sample::sample",
            grid_sample::sample(client, image(), floats(&[outer, 1, 1, 2]), sampled, Some(nothing)).err(),
        ),
        (
            "forward",
            "deform_convolution::forward",
            deform_convolution::forward(client, Products::Native, &points, None, &deformed, Some(nothing)).err(),
        ),
        ("forward", "fourier::forward", fourier::forward(client, rows(), 1, 8192, Some(in_lines)).err()),
        ("inverse", "fourier::inverse", fourier::inverse(client, rows(), rows(), 1, 8192, Some(in_lines)).err()),
        (
            "input_gradient",
            "interpolation::input_gradient",
            interpolation::input_gradient(
                client,
                image(),
                &[outer, 1, 2, 2],
                weights::Filter::Linear,
                false,
                Some(joint),
            )
            .err(),
        ),
        (
            "resize",
            "interpolation::resize",
            interpolation::resize(client, image(), [3, 3], weights::Filter::Linear, false, Some(nothing)).err(),
        ),
    ]
}

#[test]
fn a_forced_plan_that_does_not_apply_is_an_error_in_every_family() {
    let mut cases = BTreeSet::new();
    for (function, family, error) in refusals(&client(), 2) {
        let named = matches!(&error, Some(KernelError::Plan { kernel, .. }) if *kernel == family);
        assert!(named, "{function}: {error:?}, want `Plan` of {family}");
        assert!(cases.insert((function, family)), "{function} of {family} is tested twice");
    }
}

/// The rule of the crate's documentation. A digest is a result of any tensor.
#[test]
fn without_a_result_only_convolutions_look_at_the_plan() {
    for (function, family, error) in refusals(&client(), 0) {
        match function {
            "run_pass" | "launch" => {
                let named = matches!(&error, Some(KernelError::Plan { kernel, .. }) if *kernel == family);
                assert!(named, "{function}: {error:?}, want `Plan` of {family}");
            }
            _ => assert_eq!(error, None, "{function}"),
        }
    }
}

/// More than any plan takes: few elements in memory, read at every position. Of reductions and convolutions some plan
/// applies to whatever 32-bit indices reach.
#[test]
fn where_no_plan_applies_that_is_the_error() {
    let client = client();
    let long = |n: usize, bytes: &[u8], dtype: ElemType| {
        TensorHandle::new(client.create_from_slice(bytes), vec![n], vec![0], dtype)
    };
    let floats = |n: usize| long(n, bytemuck::bytes_of(&1f32), F32);
    let scanned = 3 << 30;
    let sorted = u32::MAX as usize - 1;
    let updated = 1 << 29;
    let index = long(updated, bytemuck::bytes_of(&0i32), I32);
    let target = upload(&client, &[0f32; 3], &[3], F32);
    let operands = scatter::Operands { tensor: target, indices: index, values: floats(updated) };
    let many = scatter::update(&client, Addressing::Elements { dim: 0 }, operands, Update::Max, None).unwrap_err();
    assert!(many.to_string().ends_with("has more values than a launch takes; update in several calls"), "{many}");
    // The batch of the second operand has a stride, so that it does not become rows of one product. Nothing reads it.
    let products = |stride: usize| {
        let one = client.create_from_slice(bytemuck::bytes_of(&1f32));
        TensorHandle::new(one, vec![3usize << 30, 1, 1], vec![stride, 1, 1], F32)
    };
    let ascending = Sorting { axis: 0, direction: Direction::Ascending, kept: None, values: true, index: None };
    for (family, error) in [
        ("scan::cumsum", scan::cumsum(&client, floats(scanned), 0).err()),
        ("sort::sort", sort::sort(&client, floats(sorted), ascending, None).err()),
        ("scatter::scatter", Some(many)),
        ("matmul", matmul::matmul(&client, Products::Native, products(0), products(1), None).err()),
    ] {
        let named = matches!(&error, Some(KernelError::Plan { kernel, .. }) if *kernel == family);
        assert!(named, "{family}: {error:?}, want `Plan`");
    }
    for machine in [Machine::Gpu, Machine::Software] {
        let many = radix_sort::Problem { length: sorted, rows: 1 };
        assert!(radix_sort::plan::plan(&many, machine).refuses(&many).is_some(), "a radix sort takes so many");
    }
}
