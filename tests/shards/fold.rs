//! What a step computes, against the shards computed one by one.

use super::training::{Everything, part, shard};
use crate::deterministic_device;
use crate::one_kind::devices_of_one_kind;
use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::prelude::*;
use burn_deterministic::shards::{Part, Shards};
use burn_deterministic::{RandomStream, digest, set_random_seed};

/// The bits of each gradient, in visiting order.
fn bits<M: Module>(model: &M, gradients: &GradientsParams) -> Vec<(ParamId, Vec<u32>)> {
    struct Visitor<'a>(&'a GradientsParams, Vec<(ParamId, Vec<u32>)>);
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                let values = gradient.into_data().try_to_vec::<f32>().expect("f32");
                self.1.push((param.id, values.into_iter().map(f32::to_bits).collect()));
            }
        }
    }
    let mut visitor = Visitor(gradients, Vec::new());
    model.visit(&mut visitor);
    visitor.1
}

/// The gradient of `sum(w x)` for a shard is its sum of inputs, so that sums are known.
fn gradients_of_inputs(shards: &mut Shards, inputs: &[f32], samples: &[usize]) -> Vec<u32> {
    let model = LinearConfig::new(1, 1).with_bias(false).init(shards.device());
    let parts = inputs.iter().zip(samples).enumerate().map(|(number, (&input, &samples))| {
        let batch = Tensor::<2>::from_data([[input]], shards.device_of(number));
        Part { samples, batch }
    });
    let computed = shards.step(0, &model, parts.collect(), |model: &Linear, input| {
        let loss = model.forward(input).sum();
        (GradientsParams::from_grads(loss.backward(), model), ())
    });
    bits(&model, &computed.expect("no device fails").gradients).remove(0).1
}

#[test]
fn gradients_are_folded_in_the_tree() {
    set_random_seed(812);
    deterministic_device();
    let inputs = [-1.0_f32, 4.0, -4.9, 8.0, 7.2, -8.4, -8.5];
    let samples = [1, 2, 2, 1, 5, 2, 2];
    let total: usize = samples.iter().sum();
    let w: Vec<f32> = samples.iter().map(|&n| (n as f64 / total as f64) as f32).collect();
    let t: Vec<f32> = inputs.iter().zip(&w).map(|(x, w)| x * w).collect();
    let expected = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + t[6]);
    let in_turn = t.iter().copied().reduce(|sum, term| sum + term).expect("terms");
    assert_ne!(expected.to_bits(), in_turn.to_bits(), "these terms show the order");
    for count in 1..=4 {
        let devices = devices_of_one_kind(count);
        if devices.len() < count {
            crate::skip::skip(format!("{count} devices: there are {}", devices.len()));
            return;
        }
        let mut shards = Shards::new(7, devices).expect("devices of one kind");
        assert_eq!(gradients_of_inputs(&mut shards, &inputs, &samples), [expected.to_bits()], "{count} devices");
    }
}

#[test]
fn a_shard_of_no_samples_counts_as_no_shard() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let model = burn_deterministic::initialize(LinearConfig::new(1, 1).init(&device)).expect("a seed");
    let gradients = |samples: &[usize]| {
        let mut shards = Shards::new(3, [device.clone()]).expect("a device");
        let parts = samples.iter().map(|&samples| Part { samples, batch: samples }).collect();
        let computed = shards.step(0, &model, parts, |model: &Linear, samples| {
            let x = Tensor::<2>::ones([4, 1], &device) * 3.0;
            // A mean over no samples is NaN, as a divisor of zero shows.
            let loss = model.forward(x).sum() * (samples as f32) / (samples as f32);
            (GradientsParams::from_grads(loss.clone().backward(), model), loss)
        });
        let computed = computed.expect("no failure");
        let mean = computed.mean(Clone::clone).into_scalar::<f32>();
        assert_eq!(computed.outputs.len(), samples.len());
        let is_nan = |loss: &Tensor<1>| loss.clone().into_scalar::<f32>().is_nan();
        let nans: Vec<bool> = computed.outputs.iter().map(is_nan).collect();
        assert_eq!(nans, samples.iter().map(|&samples| samples == 0).collect::<Vec<_>>());
        (bits(&model, &computed.gradients), mean.to_bits())
    };
    let expected = gradients(&[2, 3]);
    assert_eq!(expected.0.len(), 2);
    assert_eq!(gradients(&[2, 3, 0]), expected);
    let without_first = gradients(&[0, 2, 3]);
    assert!(!f32::from_bits(without_first.1).is_nan());
}

#[test]
fn one_shard_is_a_step_without_shards() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let mut shards = Shards::new(1, [device.clone()]).expect("a device");
    let model = burn_deterministic::initialize(Everything::new(&device)).expect("a seed");
    let alone = model.valid().train().tied();
    let computed = shards.step(3, &model, vec![part(0, 0, &device).expect("samples")], shard).expect("no failure");
    // A tied weight of two places is one parameter.
    let ours = bits(&model, &computed.gradients);

    let draws = RandomStream::current().expect("a seed");
    let _draws = internal(&draws, "shard").fork_index(3).fork_index(0).enter();
    let (gradients, loss) = shard(&alone, part(0, 0, &device).expect("samples").batch);
    assert_eq!(ours, bits(&alone, &gradients));
    let value = |loss: Tensor<1>| loss.into_scalar::<f32>().to_bits();
    assert_eq!(value(computed.mean(Clone::clone)), value(loss));
    assert_eq!(digest(&model), digest(&alone), "running states");
}

/// The stream that the library forks for a use of its own, as its documentation derives it.
fn internal(stream: &RandomStream, of: &str) -> RandomStream {
    let mut hasher = blake3::Hasher::new_derive_key("burn-deterministic 1 stream forked by the library");
    hasher.update(stream.key()).update(of.as_bytes());
    RandomStream::from_key(*hasher.finalize().as_bytes())
}

#[test]
fn running_states_are_folded_and_the_model_is_otherwise_as_it_was() {
    set_random_seed(812);
    let device = deterministic_device().autodiff();
    let model = burn_deterministic::initialize(Everything::new(&device)).expect("a seed");
    let before = burn_deterministic::digests(&model).expect("readable");
    let mut shards = Shards::new(2, [device.clone()]).expect("a device");
    let parts = (0..2).filter_map(|number| part(0, number, &device)).collect();
    shards.step(0, &model, parts, shard).expect("no failure");
    let after = burn_deterministic::digests(&model).expect("readable");
    let changed: Vec<&str> = before.iter().zip(&after).filter(|(b, a)| b != a).map(|(b, _)| b.0.as_str()).collect();
    assert_eq!(changed, ["norm.running_mean", "norm.running_var"]);
}
