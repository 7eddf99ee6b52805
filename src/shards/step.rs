//! One step of a training, computed in shards.

use super::error::{Error, spelled};
use super::replica::{Facts, Snapshot, for_shard};
use super::terms::{Terms, scaled};
use super::transfer::Copied;
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
    /// What each shard has returned, by shard.
    pub outputs: Vec<O>,
    /// The weight of each shard.
    weights: Vec<f64>,
    device: Device,
}

impl<O> Step<O> {
    /// The mean over the batch of a tensor that each shard has, of one shape, such as its loss: folded as the gradients are,
    /// on the first device, without autodiff.
    pub fn mean<const D: usize>(&self, tensor: impl Fn(&O) -> Tensor<D>) -> Tensor<D> {
        let mut tree = Tree::default();
        for (shard, (output, weight)) in self.outputs.iter().zip(&self.weights).enumerate() {
            let value = tensor(output).without_autodiff();
            let value = if value.device() == self.device { value } else { value.to_device(&self.device) };
            tree.add(shard, scaled(value, *weight), |left, right| left + right);
        }
        tree.fold(|left, right| left + right).expect("a step has at least one shard")
    }
}

/// What is the same for all devices of a step.
struct Common<'a, R> {
    number: u64,
    facts: &'a Facts,
    /// Forked by the shard, what it draws from.
    draws: Option<RandomStream>,
    run: &'a R,
}

/// What is copied between devices. What an earlier step has issued for the model may fail where this one reads it.
const MODEL: &str = "the model, as earlier steps have left it,";
const GRADIENTS: &str = "the gradients";

/// The parts of one device, with their shards and weights.
type Parts<B> = Vec<(usize, f64, B)>;

impl<R> Common<'_, R> {
    /// Computes the shards of one device, in turn.
    fn compute<M, B, O>(&self, module: &M, parts: Parts<B>, device: &Device) -> Result<(Tree<Terms>, Vec<O>), Error>
    where
        M: Module,
        R: Fn(&M, B) -> (GradientsParams, O),
    {
        let (mut tree, mut outputs) = (Tree::default(), Vec::with_capacity(parts.len()));
        for (shard, weight, batch) in parts {
            let computed = caught(|| {
                let _draws = self.draws.as_ref().map(|draws| draws.fork_index(shard as u64).enter_on_any_device());
                let replica = for_shard(module, self.facts);
                let (gradients, output) = (self.run)(&replica, batch);
                (Terms::of(&replica.valid(), gradients, &self.facts.states, weight), output)
            });
            let (terms, output) = computed.map_err(|reason| self.failed(shard, device, reason))?;
            let added = caught(|| tree.add(shard, terms, |left, right| left.plus(right, module)));
            added.map_err(|reason| self.unsummed(device, reason))?;
            outputs.push(output);
        }
        Ok((tree, outputs))
    }

    /// Computes the shards of a device that does not hold the model, and reads their sums.
    fn compute_on<M, B, O>(
        &self,
        module: M,
        snapshot: &Snapshot,
        parts: Parts<B>,
        device: &Device,
    ) -> Result<(Vec<Node>, Vec<O>), Error>
    where
        M: Module,
        R: Fn(&M, B) -> (GradientsParams, O),
    {
        let module = caught(|| snapshot.put(module, &inner(device)));
        let module = module.map_err(|reason| self.uncopied(MODEL, device, reason))?;
        let (tree, outputs) = self.compute(&module, parts, device)?;
        let nodes = tree.into_nodes().map(|(first, length, terms)| {
            let copied = terms.read(&module).map_err(|reason| self.uncopied(GRADIENTS, device, reason))?;
            Ok((first, length, copied))
        });
        Ok((nodes.collect::<Result<_, _>>()?, outputs))
    }

    fn failed(&self, shard: usize, device: &Device, reason: String) -> Error {
        Error::Shard { step: self.number, shard, device: spelled(device), reason }
    }

    fn unsummed(&self, device: &Device, reason: String) -> Error {
        Error::Sum { step: self.number, device: spelled(device), reason }
    }

    fn uncopied(&self, what: &'static str, device: &Device, reason: String) -> Error {
        Error::Copy { step: self.number, what, device: spelled(device), reason }
    }

    fn without_thread(&self, device: &Device, reason: String) -> Error {
        Error::Thread { step: self.number, device: spelled(device), reason }
    }
}

/// A sum on the host: first shard, number of shards, values.
type Node = (usize, usize, Copied);

impl Shards {
    /// Computes the gradients of `model` over one batch, given in `parts`: part `s` is shard `s`, and there may be fewer
    /// than shards.
    ///
    /// `run` gets a copy of the model, on the shard's device, and the part; it runs the forward and the backward pass and
    /// returns the gradients of the copy's parameters, and what else the program wants of the shard. It must compute the
    /// same for the same part, on any device and thread. The module documentation has the order of the sums, what a shard
    /// draws from, and what becomes of running states.
    ///
    /// `step` is the number of the step in the training, from 0: what shards draw depends on it, so two steps want two
    /// numbers, and a resumed training goes on with the number it stopped at.
    ///
    /// Where the model has parameters without a value, they draw it now, as in `Module::valid`.
    ///
    /// # Errors
    ///
    /// [`Error::Parts`], [`Error::Empty`], [`Error::Model`], [`Error::Thread`], [`Error::Sum`], and [`Error::Shard`] or
    /// [`Error::Copy`] for the first shard that fails. The model is then as it was.
    ///
    /// A device may fail at an operation after the call that issued it, and tells of it where something is read. With one
    /// device nothing is, so it is the program's next read that fails. With several, each step reads the model first: what
    /// failed on the first device then ends the step after, as an [`Error::Copy`] of the model as earlier steps have left it.
    pub fn step<M, B, O, R>(&mut self, step: u64, model: &M, parts: Vec<Part<B>>, run: R) -> Result<Step<O>, Error>
    where
        M: Module,
        B: Send,
        O: Send,
        R: Fn(&M, B) -> (GradientsParams, O) + Sync,
    {
        let weights = self.weights(step, &parts)?;
        let [first, others @ ..] = &self.devices[..] else { unreachable!("`Shards::new` wants a device") };
        self.check_model(model)?;
        let module = model.valid();
        let facts = Facts::of(model.valid());
        let draws = RandomStream::current().ok().map(|stream| stream.internal("shard").fork_index(step));
        let common = Common { number: step, facts: &facts, draws, run: &run };

        let mut by_device: Vec<Parts<B>> = self.devices.iter().map(|_| Vec::new()).collect();
        for (shard, (part, weight)) in parts.into_iter().zip(&weights).enumerate() {
            by_device[self.place_of(shard)].push((shard, *weight, part.batch));
        }
        let mut by_device = by_device.into_iter();
        let own = by_device.next().expect("a device");
        // The last batch of an epoch may leave devices without a shard.
        let others = others.iter().zip(&self.streams[1..]).zip(by_device);
        let others: Vec<_> = others.filter(|(_, parts)| !parts.is_empty()).collect();
        let snapshot = match others.is_empty() {
            true => None,
            false => Some(Snapshot::read(&module).map_err(|why| common.uncopied(MODEL, first, why))?),
        };
        let (tree, outputs) = thread::scope(|scope| {
            let started = others.into_iter().map(|((device, stream), parts)| {
                let (common, snapshot) = (&common, snapshot.as_ref().expect("read for these devices"));
                let module = model.valid();
                let work = move || stream.executes(|| common.compute_on(module, snapshot, parts, device));
                let named = thread::Builder::new().name(format!("shards on {}", spelled(device)));
                let started = named.spawn_scoped(scope, work);
                started.map_err(|error| common.without_thread(device, error.to_string()))
            });
            let started: Vec<_> = started.collect::<Result<_, _>>()?;
            let own = common.compute(&module, own, first);
            let computed: Vec<_> = started.into_iter().map(|thread| thread.join()).collect();
            let (mut tree, mut outputs) = own?;
            for of_device in computed {
                let (nodes, more) = of_device.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                for (from, length, copied) in nodes {
                    let terms = caught(|| Terms::put(&copied, &inner(first), &module));
                    tree.insert(from, length, terms.map_err(|why| common.uncopied(GRADIENTS, first, why))?);
                }
                outputs.extend(more);
            }
            Ok::<_, Error>((tree, outputs))
        })?;
        let folded = caught(|| tree.fold(|left, right| left.plus(right, &module)));
        let folded = folded.map_err(|reason| common.unsummed(first, reason))?.expect("at least one shard has a part");
        let gradients = folded.settle(model, &facts.states);
        Ok(Step { gradients, outputs, weights, device: inner(first) })
    }
}

/// The device of what has no autodiff.
fn inner(device: &Device) -> Device {
    device.clone().without_autodiff()
}
