//! What cannot be computed in shards is an error, and the model is as it was.

use super::training::{Everything, part, shard};
use crate::deterministic_device;
use crate::one_kind::devices_of_one_kind;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::prelude::*;
use burn_deterministic::shards::{Error, Part, Shards};
use burn_deterministic::{digest, initialize, set_random_seed};

#[test]
fn devices_and_counts_that_do_not_fit() {
    let device = deterministic_device();
    let new = |count, devices: &[&Device]| Shards::new(count, devices.iter().copied().cloned()).err();
    assert_eq!(new(0, &[&device]), Some(Error::Count { shards: 0, devices: 1 }));
    assert_eq!(new(8, &[]), Some(Error::Count { shards: 8, devices: 0 }));
    assert!(matches!(new(8, &[&device, &device.clone().autodiff()]), Some(Error::Twice { .. })));
    assert_eq!(new(1, &[&device, &device]), Some(Error::Count { shards: 1, devices: 2 }));
    let checkpointing = device.clone().autodiff().gradient_checkpointing();
    assert!(matches!(new(8, &[&checkpointing]), Some(Error::GradientCheckpointing { .. })));
    let error = new(8, &[&device, &Device::flex()]).expect("flex is not covered").to_string();
    assert!(error.contains("does not run on the deterministic backend"), "{error}");
}

#[test]
fn steps_that_cannot_be_computed() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let mut shards = Shards::new(2, [device.clone()]).expect("a device");
    let model = initialize(Everything::new(&device)).expect("a seed");
    let before = digest(&model);
    let parts = |count: usize| (0..count).filter_map(|number| part(0, number, &device)).collect::<Vec<_>>();
    let error =
        |result: Result<_, Error>| result.map(|_: burn_deterministic::shards::Step<_>| ()).expect_err("refused");

    assert_eq!(error(shards.step(0, &model, parts(3), shard)), Error::Parts { parts: 3, shards: 2 });
    assert_eq!(error(shards.step(4, &model, Vec::new(), shard)), Error::Empty { step: 4 });
    let nothing = parts(1).into_iter().map(|part| Part { samples: 0, ..part }).collect();
    assert_eq!(error(shards.step(4, &model, nothing, shard)), Error::Empty { step: 4 });
    let many = parts(2).into_iter().map(|part| Part { samples: usize::MAX / 2 + 1, ..part }).collect();
    assert_eq!(error(shards.step(5, &model, many, shard)), Error::Samples { step: 5 });
    let unseeded = std::thread::scope(|scope| {
        let unseeded =
            || Shards::new(2, [device.clone()]).expect("a device").step(6, &model, parts(2), shard).map(|_| ());
        scope.spawn(unseeded).join().expect("no panic")
    });
    assert_eq!(unseeded, Err(Error::NoStream { step: 6 }));
    let elsewhere = Everything::new(&Device::flex().autodiff());
    assert!(matches!(error(shards.step(0, &elsewhere, parts(2), shard)), Error::Model { .. }));
    assert_eq!(digest(&model), before);
}

/// A batch norm that stands in two places: Burn's copies of a model would have two of it.
#[derive(Module, Debug)]
struct Twice {
    first: BatchNorm,
    second: BatchNorm,
}

#[test]
fn running_states_that_share_their_value_are_refused() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let norm: BatchNorm = BatchNormConfig::new(3).init(&device);
    let run = |model: &Twice| {
        let x = Tensor::<3>::ones([2, 3, 4], &device);
        model.second.forward(model.first.forward(x)).sum()
    };
    let shared = Twice { first: norm.clone(), second: norm.clone() };
    // The hazard: in a copy, what the second place does to the state the first one does not have.
    let means = |model: &Twice| {
        let model = model.valid();
        [&model.first, &model.second]
            .map(|norm| norm.running_mean.value().into_data().try_to_vec::<f32>().expect("f32"))
    };
    let copy = shared.valid().train();
    run(&shared);
    run(&copy);
    let [shared_first, shared_second] = means(&shared);
    let [copy_first, copy_second] = means(&copy);
    assert_eq!(shared_first, shared_second);
    assert_ne!(copy_first, copy_second);

    let mut shards = Shards::new(1, [device.clone()]).expect("a device");
    let mut step = |model: &Twice| {
        let computed = shards.step(0, model, vec![Part { samples: 2, batch: () }], |model, ()| {
            (GradientsParams::from_grads(run(model).backward(), model), ())
        });
        computed.map(|_| ())
    };
    let error = step(&shared).expect_err("refused");
    assert_eq!(error, Error::SharedState { path: "second.running_mean".to_owned() });
    step(&Twice { first: norm, second: BatchNormConfig::new(3).init(&device) }).expect("states of their own");
}

#[test]
fn a_shard_that_fails_is_named_and_nothing_is_applied() {
    set_random_seed(812);
    let first = deterministic_device().autodiff();
    for count in [1, 2] {
        let devices = devices_of_one_kind(count);
        if devices.len() < count {
            crate::skip::skip(format!("{count} devices: there are {}", devices.len()));
            return;
        }
        let mut shards = Shards::new(4, devices).expect("devices of one kind");
        let model = initialize(Everything::new(&first)).expect("a seed");
        let before = digest(&model);
        let parts: Vec<_> = (0..4)
            .filter_map(|number| {
                let Part { samples, batch } = part(0, number, shards.device_of(number))?;
                Some(Part { samples, batch: (number, batch) })
            })
            .collect();
        let failed = shards.step(7, &model, parts, |model, (number, batch)| -> (GradientsParams, ()) {
            assert!(number != 2, "no room for the activations");
            (shard(model, batch).0, ())
        });
        let error = failed.map(|_| ()).expect_err("shard 2 panics").to_string();
        for part in ["shard 2 of step 7", "no room for the activations", "no parameter has changed"] {
            assert!(error.contains(part), "{error}\nlacks\n{part}");
        }
        assert_eq!(digest(&model), before, "running states are as they were");
        let parts = (0..4).filter_map(|number| part(0, number, shards.device_of(number))).collect();
        shards.step(7, &model, parts, shard).expect("the devices are of use afterwards");
    }
}

/// Burn panics where it is to add them.
#[test]
fn gradients_of_other_shapes_are_an_error() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let mut shards = Shards::new(2, [device.clone()]).expect("a device");
    let model = initialize(LinearConfig::new(3, 2).init(&device)).expect("a seed");
    let parts = (0..2).map(|number| Part { samples: 1, batch: number }).collect();
    let added = shards.step(5, &model, parts, |model: &Linear, number: usize| {
        let mut gradients = GradientsParams::new();
        gradients.register(model.weight.id, Tensor::<2>::ones([3 + number, 2], &deterministic_device()));
        (gradients, ())
    });
    let error = added.map(|_| ()).expect_err("of 3 and of 4 rows");
    assert!(matches!(error, Error::Sum { step: 5, .. }), "{error}");
    for part in ["gradients of two shards", "no parameter has changed"] {
        assert!(error.to_string().contains(part), "{error}\nlacks\n{part}");
    }
}

/// Nothing reads on the first device before the next step does.
#[test]
fn a_failure_that_the_next_step_reads_is_one_of_an_earlier_step() {
    set_random_seed(812);
    let first = deterministic_device();
    let devices = devices_of_one_kind(2);
    if devices.len() < 2 {
        crate::skip::skip("2 devices: there is 1".to_owned());
        return;
    }
    let mut shards = Shards::new(2, devices).expect("devices of one kind");
    let mut model = initialize(LinearConfig::new(3, 2).init(&first.clone().autodiff())).expect("a seed");
    let parts = || (0..2).map(|shard| Part { samples: 1, batch: shard }).collect::<Vec<_>>();
    let mut step = |number, model: &Linear| {
        shards.step(number, model, parts(), |model: &Linear, shard: usize| {
            let weight = model.weight.val().inner();
            // Row 3 of three, on the first device.
            let rows = if shard == 0 { [0, 1, 3] } else { [0, 1, 2] };
            let rows = Tensor::<1, Int>::from_data(rows, &weight.device());
            let mut gradients = GradientsParams::new();
            gradients.register(model.weight.id, weight.select(0, rows));
            (gradients, ())
        })
    };
    let gradients = step(6, &model).expect("nothing has read the result").gradients;
    model = SgdConfig::new().init().step(0.1, model, gradients);
    let error = step(7, &model).map(|_| ()).expect_err("step 7 reads the model").to_string();
    for part in ["step 7: the model, as earlier steps have left it,", "float_select"] {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
}

#[test]
fn a_batch_on_another_device_than_its_shard_is_an_error() {
    set_random_seed(812);
    let first = deterministic_device().autodiff();
    let devices = devices_of_one_kind(2);
    if devices.len() < 2 {
        crate::skip::skip("2 devices: there is 1".to_owned());
        return;
    }
    let mut shards = Shards::new(4, devices).expect("devices of one kind");
    let model = initialize(Everything::new(&first)).expect("a seed");
    let before = digest(&model);
    let parts = (0..4).filter_map(|number| part(0, number, &first)).collect();
    let error = shards.step(3, &model, parts, shard).map(|_| ()).expect_err("shards 2 and 3 have batches elsewhere");
    assert!(error.to_string().contains("on its shard's device"), "{error}");
    assert_eq!(digest(&model), before);
    let parts = (0..4).filter_map(|number| part(0, number, shards.device_of(number))).collect();
    shards.step(3, &model, parts, shard).expect("the devices are of use afterwards");
}

#[test]
fn items_are_dealt_to_shards_by_position() {
    let device = deterministic_device();
    let shards = Shards::new(3, [device]).expect("a device");
    let sizes = |items: Vec<Result<usize, &'static str>>| {
        let steps = shards.steps_of(items, |&item| item);
        let sizes = steps.map(|step| step.map(|parts| parts.iter().map(|part| part.samples).collect::<Vec<_>>()));
        sizes.collect::<Vec<_>>()
    };
    assert_eq!(sizes((1..=7).map(Ok).collect()), [Ok(vec![1, 2, 3]), Ok(vec![4, 5, 6]), Ok(vec![7])]);
    assert_eq!(sizes((1..=3).map(Ok).collect()), [Ok(vec![1, 2, 3])]);
    assert_eq!(sizes(vec![]), []);
    assert_eq!(sizes(vec![Ok(1), Ok(2), Ok(3), Ok(4), Err("disk"), Ok(5)]), [Ok(vec![1, 2, 3]), Err("disk")]);
}
