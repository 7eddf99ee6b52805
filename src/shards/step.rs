//! One step of a training, computed in shards.

use super::compute::{Common, GRADIENTS, MODEL, Parts, inner};
use super::error::{Error, spelled};
use super::exchange::{Round, mean_in_group};
use super::replica::{Facts, Snapshot};
use super::terms::{Terms, scaled};
use super::tree::Tree;
use super::{Part, Shards};
use crate::panic::caught;
use crate::random::RandomStream;
use burn_core::module::Module;
use burn_core::tensor::{Device, Tensor};
use burn_optim::GradientsParams;
use std::thread;

/// What a step has computed.
pub struct Step<O> {
    /// The gradients of the whole batch, on the first device, for the optimizer.
    pub gradients: GradientsParams,
    /// What each shard of this process has returned, by shard.
    pub outputs: Vec<O>,
    /// The weight of each of them.
    weights: Vec<f64>,
    /// The first of them.
    first: usize,
    device: Device,
    /// The other processes, and the number of the next mean.
    group: Option<Round>,
}

impl<O> Step<O> {
    /// The mean over the batch of a tensor that each shard has, of one shape, such as its loss: folded as the gradients
    /// are, on the first device, without autodiff. In a [group](Shards::in_group) it is the mean over the shards of all
    /// processes, and each of them calls this as often.
    ///
    /// # Panics
    ///
    /// In a group, with what [`try_mean`](Self::try_mean) returns.
    #[track_caller]
    pub fn mean<const D: usize>(&self, tensor: impl Fn(&O) -> Tensor<D>) -> Tensor<D> {
        // A closure would hide the caller.
        match self.try_mean(tensor) {
            Ok(mean) => mean,
            Err(error) => panic!("{error}"),
        }
    }

    /// [`mean`](Self::mean), where another process may fail.
    ///
    /// # Errors
    ///
    /// [`Error::Group`] and [`Error::Copy`], in a group; it has ended then. Without one there is no error.
    pub fn try_mean<const D: usize>(&self, tensor: impl Fn(&O) -> Tensor<D>) -> Result<Tensor<D>, Error> {
        let mut tree = Tree::default();
        for ((shard, output), weight) in (self.first..).zip(&self.outputs).zip(&self.weights) {
            if *weight > 0.0 {
                let value = tensor(output).without_autodiff();
                let value = if value.device() == self.device { value } else { value.to_device(&self.device) };
                tree.add(shard, scaled(value, *weight), |left, right| left + right);
            }
        }
        match &self.group {
            Some(round) => mean_in_group(round, tree, &self.device),
            None => Ok(tree.fold(|left, right| left + right).expect("a step has at least one sample")),
        }
    }
}

impl Shards {
    /// Computes the gradients of `model` over one batch, given in `parts`: part `s` is shard `s`, and there may be
    /// fewer than shards. In a [group](Self::in_group) it is shard `s` of [this process's](Self::own), there may be
    /// none, and all processes call this with the same step, of the same model.
    ///
    /// `run` gets a copy of the model, on the shard's device, and the part; it runs the forward and the backward pass
    /// and returns the gradients of the copy's parameters, and what else the program wants of the shard. It must
    /// compute the same for the same part, on any device and thread. The module documentation has the order of the
    /// sums, what a shard draws from, and what becomes of running states.
    ///
    /// `step` is the number of the step in the training, from 0: what shards draw depends on it, so two steps want two
    /// numbers, and a resumed training goes on with the number it stopped at.
    ///
    /// Where the model has parameters without a value, they draw it now, as in `Module::valid`.
    ///
    /// # Errors
    ///
    /// [`Error::Parts`], [`Error::Empty`], [`Error::Samples`], [`Error::Model`], [`Error::SharedState`],
    /// [`Error::NoStream`], [`Error::Thread`], [`Error::Sum`], and [`Error::Shard`] or [`Error::Copy`] for the first shard
    /// that fails; in a group also [`Error::Group`], and any error ends it for all processes. The model is then as it was.
    ///
    /// A device may fail at an operation after the call that issued it, and tells of it where something is read. With
    /// one device nothing is, so it is the program's next read that fails. With several, each step reads the model first:
    /// what failed on the first device ends the step after, as an [`Error::Copy`] of the model as earlier steps have left
    /// it.
    pub fn step<M, B, O, R>(&mut self, step: u64, model: &M, parts: Vec<Part<B>>, run: R) -> Result<Step<O>, Error>
    where
        M: Module,
        B: Send,
        O: Send,
        R: Fn(&M, B) -> (GradientsParams, O) + Sync,
    {
        let computed = self.step_of_all(step, model, parts, run);
        if let (Err(error), Some(members)) = (&computed, &self.group)
            && !matches!(error, Error::Group(_))
        {
            members.give_up(&error.to_string());
        }
        computed
    }

    fn step_of_all<M, B, O, R>(&self, step: u64, model: &M, parts: Vec<Part<B>>, run: R) -> Result<Step<O>, Error>
    where
        M: Module,
        B: Send,
        O: Send,
        R: Fn(&M, B) -> (GradientsParams, O) + Sync,
    {
        if parts.len() > self.own.len() {
            return Err(Error::Parts { parts: parts.len(), shards: self.own.len() });
        }
        let [first, others @ ..] = &self.devices[..] else { unreachable!("`Shards::new` wants a device") };
        self.check_model(model)?;
        let draws = RandomStream::current().map_err(|_| Error::NoStream { step })?.internal("shard").fork_index(step);
        let module = model.valid();
        let facts = Facts::of(model.valid());
        if let Some(path) = &facts.shared_state {
            return Err(Error::SharedState { path: path.clone() });
        }
        let samples: Vec<usize> = parts.iter().map(|part| part.samples).collect();
        let round = self.group.as_ref().map(|members| Round::new(members.clone(), step));
        let samples_of_all = match &round {
            Some(round) => round.begin(&samples, draws.key(), &module)?,
            None => samples.clone(),
        };
        let weights = weights(step, &samples, &samples_of_all)?;
        let common = Common { number: step, facts: &facts, draws, run: &run };

        let mut by_device: Vec<Parts<B>> = self.devices.iter().map(|_| Vec::new()).collect();
        for ((shard, part), weight) in self.own.clone().zip(parts).zip(&weights) {
            by_device[self.place_of(shard)].push((shard, *weight, part.batch));
        }
        let mut by_device = by_device.into_iter();
        let own = by_device.next().expect("a device");
        // The last batch of an epoch may leave devices without a shard.
        let others = others.iter().zip(&self.streams[1..]).zip(by_device);
        let others: Vec<_> = others.filter(|(_, parts)| !parts.is_empty()).collect();
        let snapshot = match others.is_empty() && round.is_none() {
            true => None,
            false => Some(Snapshot::read(&module).map_err(|why| common.uncopied(MODEL, first, why))?),
        };
        let (tree, outputs, digest) = thread::scope(|scope| {
            let started = others.into_iter().map(|((device, stream), parts)| {
                let (common, snapshot) = (&common, snapshot.as_ref().expect("read for these devices"));
                let module = model.valid();
                let work = move || stream.executes(|| common.compute_on(module, snapshot, parts, device));
                let named = thread::Builder::new().name(format!("shards on {}", spelled(device)));
                let started = named.spawn_scoped(scope, work);
                started.map_err(|error| common.without_thread(device, error.to_string()))
            });
            let started: Vec<_> = started.collect::<Result<_, _>>()?;
            // While the devices compute.
            let digest = match (&round, &snapshot) {
                (Some(_), Some(model)) => {
                    let hashing = thread::Builder::new().spawn_scoped(scope, || model.digest());
                    Some(hashing.map_err(|error| common.without_thread(first, error.to_string()))?)
                }
                _ => None,
            };
            let own = common.compute(&module, own, first);
            let computed: Vec<_> = started.into_iter().map(|thread| thread.join()).collect();
            let (mut tree, mut outputs) = own?;
            for of_device in computed {
                let (nodes, more) = of_device.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                for (from, length, copied) in nodes {
                    let terms = caught(|| Terms::put(&copied, &inner(first), &module));
                    let terms = terms.map_err(|why| common.uncopied(GRADIENTS, first, why))?;
                    let added = caught(|| tree.insert(from, length, terms, |left, right| left.plus(right, &module)));
                    added.map_err(|reason| common.unsummed(first, reason))?;
                }
                outputs.extend(more);
            }
            let digest = digest.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            Ok::<_, Error>((tree, outputs, digest))
        })?;
        let folded = match (&round, digest) {
            (Some(round), Some(digest)) => {
                let folded = caught(|| round.fold(tree, &digest, &module, &inner(first)));
                folded.map_err(|reason| common.unsummed(first, reason))??
            }
            _ => {
                let folded = caught(|| tree.fold(|left, right| left.plus(right, &module)));
                let folded = folded.map_err(|reason| common.unsummed(first, reason))?;
                folded.expect("a step has at least one sample")
            }
        };
        let gradients = folded.settle(model, &facts.states);
        Ok(Step { gradients, outputs, weights, first: self.own.start, device: inner(first), group: round })
    }
}

/// `w[s]` of the shards with these samples.
fn weights(step: u64, own: &[usize], all: &[usize]) -> Result<Vec<f64>, Error> {
    let total = all.iter().try_fold(0_usize, |total, samples| total.checked_add(*samples));
    match total.ok_or(Error::Samples { step })? {
        0 => Err(Error::Empty { step }),
        total => Ok(own.iter().map(|samples| *samples as f64 / total as f64).collect()),
    }
}
