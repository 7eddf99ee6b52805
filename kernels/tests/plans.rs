//! What every family with plans has in common: a plan that does not apply is [`KernelError::Plan`].

use crate::harness::*;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::coarsening;
use burn_deterministic_kernels::convolution::{self, ConvolutionParams, Pass, UnitTile};
use burn_deterministic_kernels::deform_convolution::{self, DeformParams};
use burn_deterministic_kernels::elementwise::{self, Instruction, Operands, Program, Unary, Value};
use burn_deterministic_kernels::grid_sample::{self, Filter, Padding, SampleParams};
use burn_deterministic_kernels::interpolation::{self, weights};
use burn_deterministic_kernels::matmul::{self, plan as product};
use burn_deterministic_kernels::order::COLUMNS_BLOCK;
use burn_deterministic_kernels::radix_sort;
use burn_deterministic_kernels::random::{self, Distribution, Key, Source, Stream};
use burn_deterministic_kernels::reduce::extreme::{self, Extreme};
use burn_deterministic_kernels::reduce::{self, plan as reduction};
use burn_deterministic_kernels::scan;
use burn_deterministic_kernels::scatter::{self, Addressing, Update};
use burn_deterministic_kernels::sort::{self, Direction};
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
    let computed = reduce::Computed {
        program: &program,
        shape: &[outer, 8],
        operands: Operands { words: vec![floats(&[outer, 8])], conditions: vec![], scalars: vec![] },
        condition_dtype: ElemType::UInt(UIntKind::U32),
    };
    let split = product::Plan { tile: product::CubeTile::Direct { rows: 16, columns: 8 }, swap: false, split: true };
    let params = ConvolutionParams { stride: [1], padding: [(0, 0)], dilation: [1], groups: 1 };
    let forward = convolution::Problem {
        kernel: "test",
        pass: Pass::ToOutput,
        rank: params.stride.len(),
        geometry: convolution::Geometry::new("test", &[outer, 2, 9], &[3, 2, 3], &params).expect("it fits"),
    };
    let operands = convolution::Operands { source: floats(&[outer, 2, 9]), other: floats(&[3, 2, 3]), bias: None };
    let weight = convolution::Plan::Weight { tile: UnitTile { rows: 8, columns: 8 }, span: 1 };
    let unchained = scan::Plan { chained: 0 };
    let sorted = sort::Plan::Select(sort::plan::Choice { slots: 1, chunk: 64 });
    let updated = scatter::Plan::Privatised;
    let draws = Source { key: Key([0; 8]), stream: Stream(0), block: 0 };
    let odd = random::plan::Plan { units: 64, vector_width: 3 };
    let (up, max) = (Direction::Ascending, Update::Max);
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
    let u32s = ElemType::UInt(UIntKind::U32);
    let words = Operands { words: vec![floats(&[outer, 3])], conditions: vec![], scalars: vec![] };
    let wide = elementwise::plan::Plan { width: 3 };
    let joint = interpolation::plan::Plan::Joint(nothing);
    let rows = || floats(&[outer, 8]);
    let lines = || floats(&[outer, 2, 8]);
    vec![
        (
            "reduce_planned",
            "reduce::sum",
            reduce::reduce_planned(client, reduce::Operation::Sum, rows(), &[1], Some(totals)).err(),
        ),
        (
            "reduce_program_planned",
            "reduce::sum",
            reduce::reduce_program_planned(client, reduce::Operation::Sum, computed, &[1], Some(totals)).err(),
        ),
        (
            "index_of_planned",
            "reduce::argmax",
            extreme::index_of_planned(client, Extreme::Max, rows(), 1, I32, Some(totals)).err(),
        ),
        (
            "with_index_planned",
            "reduce::argmax",
            extreme::with_index_planned(client, Extreme::Max, rows(), 1, I32, Some(totals)).err(),
        ),
        ("matmul_planned", "matmul", matmul::matmul_planned(client, rows(), floats(&[8, 3]), Some(split)).err()),
        ("pass_planned", "test", convolution::pass_planned(client, &forward, operands, Some(weight)).err()),
        (
            "scan_planned",
            "scan::cumsum",
            scan::scan_planned(client, scan::Operation::Sum, rows(), 1, Some(unchained)).err(),
        ),
        ("sort_planned", "sort::sort_with_indices", sort::sort_planned(client, rows(), 1, up, I32, Some(sorted)).err()),
        ("topk_planned", "sort::topk_with_indices", sort::topk_planned(client, rows(), 1, 4, I32, Some(sorted)).err()),
        (
            "update_planned",
            "scatter::scatter",
            scatter::update_planned(
                client,
                Addressing::Elements { dim: 1 },
                scatter::Operands { tensor: rows(), indices: index(&[outer, 8]), values: rows() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "update_planned",
            "scatter::select_assign",
            scatter::update_planned(
                client,
                Addressing::Rows { dim: 1 },
                scatter::Operands { tensor: rows(), indices: index(&[8]), values: rows() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "update_planned",
            "scatter::update_lines",
            scatter::update_planned(
                client,
                Addressing::Lines,
                scatter::Operands { tensor: lines(), indices: index(&[outer, 2]), values: lines() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "update_planned",
            "scatter::scatter_nd",
            scatter::update_planned(
                client,
                Addressing::Tuples,
                scatter::Operands { tensor: rows(), indices: index(&[outer, 1]), values: rows() },
                max,
                Some(updated),
            )
            .err(),
        ),
        (
            "run_planned",
            "elementwise",
            elementwise::run_planned(client, &program, &[outer, 3], words, u32s, Some(wide)).err(),
        ),
        (
            "sample_planned",
            "grid_sample::sample",
            grid_sample::sample_planned(client, image(), floats(&[outer, 1, 1, 2]), sampled, Some(nothing)).err(),
        ),
        (
            "forward_planned",
            "deform_convolution::forward",
            deform_convolution::forward_planned(client, &points, None, &deformed, Some(nothing)).err(),
        ),
        (
            "input_gradient_planned",
            "interpolation::input_gradient",
            interpolation::input_gradient_planned(
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
            "draw_planned",
            "random::uniform",
            random::draw_planned(
                client,
                &[outer, 3],
                F32,
                draws,
                Distribution::Uniform { low: 0.0, high: 1.0 },
                Some(odd),
            )
            .err(),
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

/// The rule of the crate's documentation.
#[test]
fn without_a_result_only_convolutions_and_draws_look_at_the_plan() {
    for (function, family, error) in refusals(&client(), 0) {
        match function {
            "pass_planned" | "draw_planned" => {
                let named = matches!(&error, Some(KernelError::Plan { kernel, .. }) if *kernel == family);
                assert!(named, "{function}: {error:?}, want `Plan` of {family}");
            }
            _ => assert_eq!(error, None, "{function}"),
        }
    }
}

/// More than any plan takes: few elements in memory, read at every position. Of reductions, convolutions and draws some plan
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
    let many = scatter::scatter(&client, 0, target.clone(), index.clone(), floats(updated), Update::Max).unwrap_err();
    assert!(many.to_string().ends_with("has more values than a launch takes; update in several calls"), "{many}");
    // The batch of the second operand has a stride, so that it does not become rows of one product. Nothing reads it.
    let products = |stride: usize| {
        let one = client.create_from_slice(bytemuck::bytes_of(&1f32));
        TensorHandle::new(one, vec![3usize << 30, 1, 1], vec![stride, 1, 1], F32)
    };
    for (family, error) in [
        ("scan::cumsum", scan::cumsum(&client, floats(scanned), 0).err()),
        ("sort::sort", sort::sort(&client, floats(sorted), 0, Direction::Ascending).err()),
        ("scatter::scatter", scatter::scatter(&client, 0, target, index, floats(updated), Update::Max).err()),
        ("matmul", matmul::matmul(&client, products(0), products(1)).err()),
    ] {
        let named = matches!(&error, Some(KernelError::Plan { kernel, .. }) if *kernel == family);
        assert!(named, "{family}: {error:?}, want `Plan`");
    }
    assert!(radix_sort::plan::plan(1, sorted).refuses(1, sorted).is_some(), "a radix sort takes so many");
}
