//! Every plan gives the same bits, and one that does not apply is refused.

use super::*;

/// A software driver ends a shader's loops after 65535 iterations: chains go on in the next launch, or in another block.
#[test]
fn chains_longer_than_a_launch() {
    // Taps times channels, in the forward pass and in the input gradient.
    Case::new(&[3, 8192, 4, 3], &[1, 8192, 3, 3], uniform::<2>(1, (1, 0), 1, 1)).check();
    Case::new(&[3, 1, 4, 3], &[8192, 1, 3, 3], uniform::<2>(1, (1, 0), 1, 1)).check();
    // Channels alone, and taps alone: of these only the last ones meet the input.
    Case::new(&[1, 70_001, 2], &[2, 70_001, 2], uniform::<1>(1, (0, 1), 1, 1)).check();
    Case::new(&[2, 1, 5], &[1, 1, 70_001], uniform::<1>(1, (70_000, 0), 1, 1)).check();
    Case::new(&[2, 1, 5], &[1, 1, 70_001], uniform::<1>(3, (140_000, 0), 2, 1)).check();
    // Blocks of rows of one position, and of rows of nearly a block.
    for shape in [[4_200_000, 1, 1], [257, 1, 16_382]] {
        Case::new(&shape, &[1, 1, 1], uniform::<1>(1, (0, 0), 1, 1)).check();
    }
}

#[test]
fn more_cubes_than_one_axis_of_a_grid_holds() {
    // One unit a position in cubes of 32 or 64: 65,535 cubes cover 2,097,120 or 4,194,240 positions.
    Case::new(&[1, 1, 4_194_304], &[1, 1, 1], uniform::<1>(1, (0, 0), 1, 1)).check();
}

/// The passes of a case by every plan. A process compiles its kernels one by one: each case has a test of its own.
#[track_caller]
fn check_plans<const N: usize>(case: Case<N>) {
    println!("{:?}", case.geometry);
    for pass in [Pass::ToOutput, Pass::ToInput, Pass::ToWeight] {
        let problem = case.problem(pass);
        let (want, _) = case.pass(pass);
        let plans = Plan::candidates(&problem);
        for machine in [Machine::Software, Machine::Gpu] {
            assert!(plans.contains(&plan::plan(&problem, machine)));
        }
        for plan in plans {
            let (_, operands) = case.pass(pass);
            let got = run_pass(&case.client, "test", &problem, operands, Some(plan)).expect("a plan that applies");
            assert_bits(&download(&case.client, got), &want);
        }
    }
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_along_one_axis() {
    let case = Case::new(&[9, 9, 601], &[9, 9, 3], uniform::<1>(1, (1, 1), 1, 1));
    assert_eq!(case.problem(Pass::ToWeight).blocks(), 6);
    check_plans(case);
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_with_strides() {
    check_plans(Case::new(&[3, 5, 700], &[6, 5, 4], uniform::<1>(2, (3, 1), 3, 1)));
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_over_several_tiles() {
    // More than one tile of 16 along both.
    check_plans(Case::new(&[17, 9, 11], &[18, 9, 3], uniform::<1>(1, (1, 1), 1, 1)));
}

/// Whole stages of 16 channels, over more than one tile of channels and columns.
#[test]
fn every_plan_gives_the_bits_of_the_reference_in_whole_stages() {
    check_plans(Case::new(&[5, 16, 6, 7], &[80, 16, 3, 3], uniform::<2>(1, (1, 1), 1, 1)));
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_in_stages_of_several_blocks() {
    check_plans(Case::new(&[3, 160, 5, 5], &[192, 80, 3, 3], uniform::<2>(2, (1, 1), 1, 2)));
}

/// Few channels to read: a stage has terms of several taps, and a chain more than a window of them.
#[test]
fn every_plan_gives_the_bits_of_the_reference_of_few_channels() {
    let case = Case::new(&[2, 3, 19, 17], &[20, 3, 7, 7], uniform::<2>(2, (3, 3), 1, 1));
    assert_eq!(case.problem(Pass::ToOutput).blocks(), 1);
    check_plans(case);
}

/// Blocks that begin within a tap.
#[test]
fn every_plan_gives_the_bits_of_the_reference_in_several_blocks_of_broken_stages() {
    let case = Case::new(&[2, 27, 6, 7], &[21, 27, 7, 7], uniform::<2>(1, (3, 2), 1, 1));
    assert_eq!(case.problem(Pass::ToOutput).blocks(), 2);
    check_plans(case);
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_in_several_blocks_of_whole_stages() {
    let case = Case::new(&[2, 40, 6, 7], &[24, 40, 7, 7], uniform::<2>(1, (3, 2), 1, 1));
    assert_eq!(case.problem(Pass::ToOutput).blocks(), 2);
    check_plans(case);
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_along_three_axes() {
    check_plans(Case::new(&[5, 6, 5, 4, 6], &[10, 3, 2, 3, 2], uniform::<3>(2, (1, 0), 1, 2)));
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_in_chains_longer_than_a_launch() {
    check_plans(Case::new(&[5, 70_001, 2], &[5, 70_001, 2], uniform::<1>(1, (0, 1), 1, 1)));
}

/// A first layer: columns of a weight gradient that are pairs of a channel and a tap, over more than one tile of them.
#[test]
fn every_plan_gives_the_bits_of_the_reference_with_few_channels() {
    let case = Case::new(&[7, 3, 31, 45], &[21, 3, 7, 5], uniform::<2>(2, (3, 2), 1, 1));
    assert_eq!(case.problem(Pass::ToWeight).blocks(), 3);
    check_plans(case);
}

#[test]
fn every_plan_gives_the_bits_of_the_reference_with_few_channels_in_groups() {
    check_plans(Case::new(&[3, 4, 9, 8], &[64, 2, 2, 3], uniform::<2>(1, (0, 1), 2, 2)));
}

/// A weight that is read as it is, through its strides: of elements apart from each other, and of one channel for all.
#[test]
fn a_weight_that_is_not_packed_is_read_through_its_strides() {
    let case = Case::new(&[3, 24, 6, 7], &[20, 12, 3, 3], uniform::<2>(2, (1, 1), 1, 2));
    let mut repeated = Case::new(&[3, 24, 6, 7], &[20, 12, 3, 3], uniform::<2>(2, (1, 1), 1, 2));
    let (first, shape) = (repeated.weight[..12 * 9].to_vec(), repeated.weight_shape.clone());
    repeated.weight = first.repeat(20);
    let of_one = repeated.upload(&first, &[1, 12, 3, 3]);
    let of_one = TensorHandle::new(of_one.handle, shape, vec![0, 9, 3, 1], F32);
    let apart = scattered(2, &case.client, &case.weight, &case.weight_shape);
    for (case, weight) in [(case, apart), (repeated, of_one)] {
        for pass in [Pass::ToOutput, Pass::ToInput] {
            let (problem, (want, operands)) = (case.problem(pass), case.pass(pass));
            let plan = Plan::Tiled { tile: CubeTile::SMALLEST, split: false, packs: false };
            let operands = Operands { other: weight.clone(), ..operands };
            let got = run_pass(&case.client, "test", &problem, operands, Some(plan)).expect("a plan that applies");
            assert_bits(&download(&case.client, got), &want);
        }
    }
}

/// Small and large tiles, of units and of cubes.
#[test]
fn every_plan_rounds_products_where_it_is_asked_to() {
    let case = Case::new(&[5, 32, 6, 7], &[48, 32, 3, 3], uniform::<2>(1, (1, 1), 1, 1));
    let native = case.forward();
    let hazard = case.fma == MultiplyAdd::Fused;
    let case = case.rounded();
    assert_eq!(native != case.forward(), hazard, "the two differ where the device fuses");
    check_plans(case);
}

#[test]
fn a_plan_that_does_not_apply_is_refused() {
    let case = Case::new(&[3, 2, 601], &[3, 2, 3], uniform::<1>(1, (1, 1), 1, 1));
    let tile = UnitTile { rows: 8, columns: 8 };
    let activations = |rows, columns| Plan::Activations { tile: UnitTile { rows, columns }, units: 64 };
    for (pass, plan, wanted) in [
        (Pass::ToOutput, Plan::Weight { tile, span: 1, units: 64 }, "a weight gradient"),
        (Pass::ToInput, activations(0, 8), "a known tile"),
        (Pass::ToInput, activations(3, 8), "a known tile"),
        (Pass::ToWeight, activations(8, 8), "an activation to compute"),
        (
            Pass::ToWeight,
            Plan::Weight { tile, span: 0, units: 64 },
            "rounds of one block to all, of fewer than 2^32 sums",
        ),
        (
            Pass::ToWeight,
            Plan::Weight { tile, span: 3, units: 64 },
            "rounds of one block to all, of fewer than 2^32 sums",
        ),
        (Pass::ToOutput, Plan::Activations { tile, units: 0 }, "1 to 256 units a cube"),
        (Pass::ToWeight, Plan::Weight { tile, span: 1, units: 257 }, "1 to 256 units a cube"),
        (Pass::ToOutput, Plan::Tiled { tile: CubeTile::ALL[0], split: true, packs: true }, "blocks to split"),
        (
            Pass::ToOutput,
            Plan::Tiled { tile: CubeTile::ALL[0], split: false, packs: false },
            "the smallest tile, or a packed weight",
        ),
    ] {
        let problem = case.problem(pass);
        let refused = run_pass(&case.client, "test", &problem, case.pass(pass).1, Some(plan)).unwrap_err().to_string();
        assert_eq!(refused, format!("test: {plan:?} for {problem:?}, want {wanted}"));
    }
}

/// 32-bit indices number the sums of a round and the totals.
#[test]
fn a_round_of_2_to_the_32_sums_is_refused() {
    let params = uniform::<1>(1, (0, 0), 1, 1);
    let weight = [1 << 15, 1 << 15, 1];
    let problem = Problem {
        pass: Pass::ToWeight,
        rank: params.stride.len(),
        geometry: Geometry::new("test", &[1, 1 << 15, 4096], &weight, &params).expect("it fits"),
        products: Products::Native,
    };
    assert_eq!(problem.blocks(), 4);
    let refused =
        |span| Plan::Weight { tile: UnitTile { rows: 8, columns: 8 }, span, units: 64 }.refuses(&problem).is_some();
    assert_eq!([1, 2, 3].map(refused), [false, false, true]);
    for plan in Plan::candidates(&problem) {
        assert_eq!(plan.refuses(&problem), None, "{plan:?}");
    }
    for machine in [Machine::Software, Machine::Gpu] {
        assert_eq!(plan::plan(&problem, machine).refuses(&problem), None);
    }
}

#[test]
fn plans_are_pinned() {
    let tiles = |input: &[usize], weight: &[usize], groups| {
        let params = ConvolutionParams { stride: [1; 2], padding: [(1, 1); 2], dilation: [1; 2], groups };
        [Pass::ToOutput, Pass::ToInput, Pass::ToWeight].map(|pass| {
            let problem = Problem {
                pass,
                rank: params.stride.len(),
                geometry: Geometry::new("test", input, weight, &params).expect("operands that fit together"),
                products: Products::Native,
            };
            [Machine::Software, Machine::Gpu].map(|machine| match plan::plan(&problem, machine) {
                Plan::Activations { tile, .. } | Plan::Weight { tile, .. } => (tile.rows, tile.columns),
                Plan::Tiled { tile, .. } | Plan::TiledWeight { tile, .. } => tile.extent().into(),
            })
        })
    };
    // examples/digits_convnet.
    assert_eq!(tiles(&[64, 1, 8, 8], &[32, 1, 3, 3], 1), [[(8, 4); 2], [(1, 8), (1, 4)], [(8, 1), (32, 32)]]);
    let wide = [(16, 16), (32, 32)];
    assert_eq!(tiles(&[64, 32, 4, 4], &[64, 32, 3, 3], 1), [wide; 3]);
    // 24 would be padded to 32.
    let wide = [(8, 8), (32, 32)];
    assert_eq!(tiles(&[24, 24, 9, 9], &[24, 24, 3, 3], 1), [wide; 3]);
    // A layer that fills a GPU.
    let wide = [(16, 16), (64, 128)];
    assert_eq!(tiles(&[64, 64, 56, 56], &[64, 64, 3, 3], 1)[..2], [wide; 2]);
    // Each channel by itself.
    assert_eq!(tiles(&[16, 32, 28, 28], &[32, 1, 3, 3], 32)[..2], [[(1, 8); 2]; 2]);
    assert!(UnitTile::ALL.iter().all(|tile| tile.rows * tile.columns <= 256));
}

/// Weights of few stages are not packed.
#[test]
fn what_packs_its_weight_is_pinned() {
    let packs = |input: &[usize], weight: &[usize]| {
        [Pass::ToOutput, Pass::ToInput].map(|pass| {
            let geometry =
                Geometry::new("test", input, weight, &uniform::<2>(1, (1, 1), 1, 1)).expect("they fit together");
            match plan::plan(&Problem { pass, rank: 2, geometry, products: Products::Native }, Machine::Gpu) {
                Plan::Tiled { packs, .. } => packs,
                plan => panic!("{plan:?}"),
            }
        })
    };
    assert_eq!(packs(&[32, 32, 8, 8], &[32, 32, 3, 3]), [false; 2], "128 cubes of 16 stages, in two blocks");
    assert_eq!(packs(&[1, 64, 56, 56], &[64, 64, 3, 3]), [true; 2], "588 cubes of 16 stages, in three blocks");
    assert_eq!(packs(&[32, 64, 56, 56], &[64, 64, 3, 3]), [true; 2], "a larger tile");
}

/// Pairs of a channel and a tap where tiles of channels alone would hang far over the edge.
#[test]
fn columns_of_weight_gradients_are_pinned() {
    let columns = |input: &[usize], weight: &[usize], groups| {
        let params = uniform::<2>(1, (1, 1), 1, groups);
        let problem = Problem {
            pass: Pass::ToWeight,
            rank: 2,
            geometry: Geometry::new("test", input, weight, &params).expect("operands that fit together"),
            products: Products::Native,
        };
        match plan::plan(&problem, Machine::Gpu) {
            Plan::TiledWeight { tile, columns, .. } => Some((tile.extent()[1], columns)),
            _ => None,
        }
    };
    let (channels, pairs) = (Some((32, WeightColumns::Channels)), Some((32, WeightColumns::Pairs)));
    assert_eq!(columns(&[128, 1, 28, 28], &[32, 1, 3, 3], 1), pairs);
    assert_eq!(columns(&[32, 3, 224, 224], &[64, 3, 7, 7], 1), Some((64, WeightColumns::Pairs)));
    // Half of each tile, and three quarters.
    assert_eq!(columns(&[8, 16, 9, 9], &[16, 16, 3, 3], 1), pairs);
    assert_eq!(columns(&[8, 24, 9, 9], &[16, 24, 3, 3], 1), channels);
    assert_eq!(columns(&[8, 32, 9, 9], &[32, 32, 3, 3], 1), channels);
    assert_eq!(columns(&[8, 8, 9, 9], &[16, 8, 1, 1], 1), channels);
    // Too few columns, or output channels of a group.
    assert_eq!(columns(&[8, 7, 9, 9], &[16, 7, 1, 1], 1), None);
    assert_eq!(columns(&[8, 32, 28, 28], &[32, 1, 3, 3], 32), None);
}
