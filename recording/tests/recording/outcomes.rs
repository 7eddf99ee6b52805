//! Each kind of difference of operations is told from the others.

use crate::synthetic::{SETUP, STEP, Synthetic, cause, compared, digest, of, operand, training};
use burn_deterministic_recording::diff::{Cause, Outcome, Owner};
use burn_deterministic_recording::{Digest, Level, Origin, Record};

fn plain() -> Synthetic {
    let mut plain = training(4, Level::Operations);
    plain.header.deterministic = false;
    plain
}

/// The number of an operation of a step.
fn number(step: u64, index: u64) -> u64 {
    SETUP + step * STEP + index
}

#[test]
fn recordings_that_agree_are_the_same() {
    let training = training(4, Level::Operations);
    let comparison = compared(&training, &training);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert_eq!(comparison.same(), Some(true));
    assert_eq!((comparison.compared.operations, comparison.compared.states), (34, 4));
    assert!(comparison.to_string().contains("\nSAME: 34 operations and 4 states agree\n"), "{comparison}");
    assert!(comparison.to_string().contains("environment: the same in all 5 entries"), "{comparison}");
}

#[test]
fn an_operation_that_is_not_repeatable_is_found_where_its_operands_agree() {
    let first = training(4, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(2, 5));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(number(2, 5))));
    let pair = comparison.difference().expect("a difference").operation.as_ref().expect("an operation");
    assert_eq!(pair.outputs, [0]);
    assert!(pair.operands[0].iter().all(|operand| operand.same == Some(true)), "{pair:?}");
    // Two levels up: the gradient of fc2 was made of what fc2 computed.
    let (parent, operands) = &**pair.operands[0][0].producer.as_ref().expect("the operation before");
    assert_eq!((parent.number, operands.len()), (number(2, 4), 2));
    assert_eq!(operands[0].producer.as_ref().expect("two levels up").0.number, number(2, 3));
    assert_eq!(operands[0].digest, Some(digest(100 + number(2, 3))));
    let state = comparison.state.as_ref().expect("a state");
    assert_eq!((state.place.step, state.differing, state.tensors), (Some(2), 1, 2));
    assert_eq!(state.names, ["fc1.weight"]);
    let text = comparison.to_string();
    assert!(text.contains("`float_scatter_add` is not repeatable"), "{text}");
    assert!(text.contains("step 2, epoch 0, batch 2, backward"), "{text}");
    assert!(text.contains("The kernel is of burn-deterministic"), "{text}");
}

#[test]
fn what_is_computed_from_a_difference_is_counted_by_step() {
    let first = training(4, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 5));
    let spread = compared(&first, &second).spread;
    let differing = |step| spread.steps[&of(step)].differing;
    assert_eq!([differing(0), differing(1), differing(2), differing(3)], [0, 2, 6, 6]);
    assert_eq!(spread.steps[&of(2)].tensors_differing, 2);
    assert_eq!((spread.first.len(), spread.others_count), (12, 0));
    assert_eq!((spread.first[0].number, spread.first[0].name.as_str()), (number(1, 6), "float_sub"));
    assert_eq!(spread.first[0].parameter.as_deref(), Some("fc1.weight"));
    assert_eq!(spread.parameters["fc1.weight"], Some(of(1)));
    assert_eq!(spread.parameters["fc2.weight"], Some(of(2)));
}

#[test]
fn the_owner_of_the_kernel_is_named() {
    let owners = [
        (vec!["burn_cubecl::kernel::index::scatter"], Owner::Burn, "atomics"),
        (vec!["burn_deterministic_kernels::sum", "my_crate::my_kernel"], Owner::Program, "custom operation"),
        (vec!["burner::kernel"], Owner::Program, "custom operation"),
        (vec!["burn_extension::kernel"], Owner::Program, "custom operation"),
        (vec!["cubek_reduce::launch", "cubecl_std::copy"], Owner::Burn, "atomics"),
        (vec![], Owner::Unknown, "No kernel"),
    ];
    for (kernels, owner, word) in owners {
        let mut first = training(2, Level::Operations);
        first.change(number(1, 3), |operation| operation.kernels = kernels.into_iter().map(str::to_owned).collect());
        let mut second = first.clone();
        second.corrupt(number(1, 3));
        let comparison = compared(&first, &second);
        assert_eq!(cause(&comparison), (&Cause::Kernel(owner), Some(number(1, 3))));
        assert!(comparison.to_string().contains(word), "{comparison}");
    }
}

#[test]
fn a_custom_operation_is_the_programs_whatever_kernels_it_runs() {
    let mut first = plain();
    first.change(number(1, 3), |operation| {
        operation.name = "my_crate::attention".into();
        operation.is_custom = true;
        operation.kernels = vec!["burn_cubecl::kernel::index::scatter".into()];
    });
    let mut second = first.clone();
    second.corrupt(number(1, 3));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Program), Some(number(1, 3))));
    // Its other arguments are not recorded.
    assert!(comparison.to_string().contains("Compare the numbers that the program gives it"), "{comparison}");

    second.change(number(1, 3), |operation| operation.kernels = vec!["cubek_reduce::other".into()]);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::KernelChoice);
    assert!(comparison.to_string().contains("Have the custom operation choose its kernels without"), "{comparison}");
}

#[test]
fn another_kernel_is_a_choice_where_the_result_differs_and_is_counted_where_not() {
    let first = plain();
    let mut second = first.clone();
    second.corrupt(number(2, 2));
    second.change(number(2, 2), |operation| operation.kernels = vec!["cubek_matmul::unit".into()]);
    second.change(number(0, 2), |operation| operation.kernels = vec!["cubek_matmul::unit".into()]);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::KernelChoice, Some(number(2, 2))));
    assert_eq!(comparison.compared.other_kernels, 1);
    assert!(comparison.to_string().contains("cubek_matmul::unit in the second"), "{comparison}");
}

#[test]
fn another_operation_is_another_program() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.change(number(1, 3), |operation| operation.name = "float_add".into());
    let comparison = compared(&first, &second);
    let what = "`float_matmul` in the first, `float_add` in the second".to_owned();
    assert_eq!(cause(&comparison), (&Cause::Program(what), Some(number(1, 3))));
    assert!(comparison.spread.only[0] > 0 && comparison.spread.only[0] == comparison.spread.only[1]);
}

#[test]
fn another_shape_dtype_or_operand_is_another_program() {
    let first = training(3, Level::Operations);
    let mut shape = first.clone();
    shape.change(number(1, 3), |operation| operation.inputs[1].shape = vec![32, 10]);
    let mut dtype = first.clone();
    dtype.change(number(1, 3), |operation| operation.outputs[0].dtype = "f16".into());
    let mut count = first.clone();
    count.change(number(1, 3), |operation| drop(operation.inputs.pop()));
    let mut origin = first.clone();
    origin.change(number(1, 3), |operation| operation.inputs[0] = operand(number(1, 1), None));
    for (second, expected) in [
        (shape, "operand 1 is [64, 10] f32 in the first, [32, 10] f32 in the second"),
        (dtype, "result 0 is [64, 10] f32 in the first, [64, 10] f16 in the second"),
        (count, "3 operands in the first, 2 in the second"),
        (origin, "operand 0 is result 0 of operation 12 in the first, result 0 of operation 11 in the second"),
    ] {
        let comparison = compared(&first, &second);
        assert_eq!(cause(&comparison), (&Cause::Program(expected.to_owned()), Some(number(1, 3))));
    }
}

#[test]
fn an_operation_that_one_program_leaves_out_is_another_program() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    // The update of fc2 at the end of step 1.
    let left_out = number(1, 7);
    second
        .records
        .retain(|record| !matches!(record, burn_deterministic_recording::Record::Operation(o) if o.number == left_out));
    let comparison = compared(&first, &second);
    let what = "`float_sub` in the first, and the step ends in the second".to_owned();
    assert_eq!(cause(&comparison), (&Cause::Program(what), Some(left_out)));
}

#[test]
fn another_scalar_is_a_parameter() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 6));
    second.change(number(1, 6), |operation| operation.parameters = "scalar 0.02".into());
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Parameters, Some(number(1, 6))));
    assert!(
        comparison.to_string().contains("`scalar 0.01` in the first run, `scalar 0.02` in the second"),
        "{comparison}"
    );
}

#[test]
fn other_data_are_told_from_the_same_data_in_another_order() {
    let first = training(4, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(2, 0));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(number(2, 0))));

    let mut second = first.clone();
    for (step, other) in [(1, 2), (2, 1)] {
        second.corrupt(number(step, 0));
        second.change(number(step, 0), |operation| {
            operation.outputs[0].digest = Some(digest(100 + number(other, 0)));
        });
    }
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: true }, Some(number(1, 0))));

    // The last batch of an epoch may have another size.
    let mut second = first.clone();
    second.change(number(2, 0), |operation| operation.outputs[0].shape = vec![32, 10]);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: true }, Some(number(2, 0))));
}

#[test]
fn other_weights_that_are_loaded_are_named() {
    let first = training(2, Level::Operations);
    let mut second = first.clone();
    second.corrupt(1);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(1)));
    assert!(comparison.to_string().contains("values for the parameter fc2.weight"), "{comparison}");
}

#[test]
fn another_seed_is_told_from_none() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 1));
    second.change(number(1, 1), |operation| operation.draws[0].key = 813);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Seed, Some(number(1, 1))));

    for mut first in [training(3, Level::Operations), plain()] {
        first.change(number(1, 1), |operation| operation.draws.clear());
        let mut second = first.clone();
        second.corrupt(number(1, 1));
        let comparison = compared(&first, &second);
        assert_eq!(cause(&comparison), (&Cause::Unseeded, Some(number(1, 1))));
    }
}

#[test]
fn draws_from_the_same_place_with_another_result_are_the_fault_of_the_kernel() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 1));
    assert_eq!(cause(&compared(&first, &second)), (&Cause::Kernel(Owner::Library), Some(number(1, 1))));
}

#[test]
fn an_operation_that_fails_in_one_run_is_a_failure() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 3));
    second.change(number(1, 3), |operation| {
        operation.error = Some("out of memory".into());
        operation.outputs[0].digest = None;
    });
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Failure { side: 1 }, Some(number(1, 3))));
    assert!(comparison.to_string().contains("out of memory"), "{comparison}");
}

#[test]
fn the_environment_is_the_cause_where_nothing_else_is() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.header.environment.set("driver", "llvmpipe 22.3.6");
    let same = compared(&first, &second);
    assert_eq!(same.same(), Some(true));
    assert!(same.to_string().contains("  driver: llvmpipe 25.0.7 against llvmpipe 22.3.6"), "{same}");

    let mut kernel = second.clone();
    kernel.corrupt(number(1, 3));
    let comparison = compared(&first, &kernel);
    assert_eq!(cause(&comparison), (&Cause::Environment, Some(number(1, 3))));

    second.corrupt(number(1, 0));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(number(1, 0))));
    assert_eq!(comparison.environment.len(), 1, "listed all the same");
}

#[test]
fn plain_kernels_against_deterministic_ones_are_another_environment() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.header.deterministic = false;
    second.corrupt(number(1, 3));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::Environment);
    assert!(comparison.to_string().contains("kernels: deterministic against Burn's own"), "{comparison}");
}

#[test]
fn operands_older_than_the_recording_are_unknown_and_said_to_be() {
    let level = Level::OperationsOf { first: 1, last: 2 };
    let mut first = training(3, level);
    first.records.retain(|record| !matches!(record, burn_deterministic_recording::Record::State(_)));
    let mut second = first.clone();
    second.corrupt(number(1, 3));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(number(1, 3))));
    let operands = &comparison.difference().expect("one").operation.as_ref().expect("one").operands[0];
    assert_eq!(operands.iter().map(|operand| operand.same).collect::<Vec<_>>(), [Some(true), Some(true), None]);
    assert!(comparison.to_string().contains("1 of its operands are unknown, because they are older"), "{comparison}");

    // With the states, the parameters that step 0 left are known.
    let first = training(3, level);
    let mut second = first.clone();
    second.corrupt(number(1, 3));
    let comparison = compared(&first, &second);
    assert!(!comparison.to_string().contains("older than the recording"), "{comparison}");
}

#[test]
fn a_difference_that_goes_away_is_found() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    second.change(number(1, 2), |operation| operation.outputs[0].digest = Some(Digest([0; 4])));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).1, Some(number(1, 2)));
    assert_eq!((comparison.spread.steps[&of(1)].differing, comparison.state), (1, None));
}

#[test]
fn a_second_difference_of_its_own_is_listed_apart() {
    let first = training(4, Level::Operations);
    let mut second = first.clone();
    second.corrupt(number(1, 5));
    second.change(number(2, 0), |operation| operation.outputs[0].digest = Some(Digest([0; 4])));
    let spread = compared(&first, &second).spread;
    assert_eq!((spread.others_count, spread.others[0].number), (1, number(2, 0)));
}

#[test]
fn each_of_many_results_has_its_own_digest() {
    let mut first = training(2, Level::Operations);
    first.change(number(0, 2), |operation| {
        operation.outputs = (0..12).map(|_| operation.outputs[0].clone()).collect();
    });
    for (output, expected) in [(1, 2), (10, 2)] {
        let mut first = first.clone();
        let of = |output| Some(Origin { operation: number(0, 2), output });
        first.change(number(0, 3), |operation| operation.inputs[0].origin = of(0));
        first.change(number(0, 4), |operation| operation.inputs[1].origin = of(output));
        let mut second = first.clone();
        let other = Some(Digest([0; 4]));
        second.change(number(0, 2), |operation| operation.outputs[output as usize].digest = other);
        second.change(number(0, 4), |operation| operation.outputs[0].digest = other);
        let comparison = compared(&first, &second);
        let pair = comparison.difference().expect("one").operation.as_ref().expect("one");
        assert_eq!((pair.operations[0].number, &pair.outputs[..]), (number(0, 2), &[output as usize][..]));
        assert_eq!(comparison.spread.steps[&crate::synthetic::of(0)].differing, expected);
        assert_eq!(comparison.spread.others_count, 0, "operation 4 reads what differs");
    }
}

#[test]
fn a_result_whose_digest_was_lost_is_neither_equal_nor_different() {
    let mut first = training(3, Level::Operations);
    first.change(number(1, 2), |operation| operation.outputs[0].digest = None);
    let comparison = compared(&first, &training(3, Level::Operations));
    assert_eq!((comparison.same(), comparison.compared.lost), (Some(true), 1), "{comparison}");
    assert!(
        comparison.to_string().contains("SAME as far as is known: 26 operations and 3 states agree"),
        "{comparison}"
    );

    // The operation that reads it is the first that is known to differ.
    let mut second = training(3, Level::Operations);
    second.corrupt(number(1, 2));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(number(1, 3))));
    let text = comparison.to_string();
    assert!(text.contains("But 1 of its operands are unknown"), "{text}");
    assert!(text.contains("\n1 digest was lost"), "{text}");
    assert_eq!(comparison.spread.others_count, 0, "what reads both may have the difference from either");
}

#[test]
fn what_was_known_at_the_end_counts_where_both_have_an_end() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    let Some(Record::End { environment, .. }) = second.records.last_mut() else { panic!("an end") };
    environment.set("seed", "2");
    environment.set("device", "Wgpu(DiscreteGpu)");
    let comparison = compared(&first, &second);
    let told: Vec<String> = comparison.environment.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["device: Wgpu(Cpu) against Wgpu(DiscreteGpu)", "seed: 1 against 2"]);
    second.records.pop();
    assert!(compared(&first, &second).environment.is_empty(), "the end is not known of both");
}
