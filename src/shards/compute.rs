//! What one device computes of a step.

use super::error::{Error, spelled};
use super::group::messages::Node;
use super::replica::{Facts, Snapshot, for_shard};
use super::terms::Terms;
use super::tree::Tree;
use crate::panic::caught;
use crate::random::RandomStream;
use burn_core::module::Module;
use burn_core::tensor::Device;
use burn_optim::GradientsParams;

/// What is the same for all devices of a step.
pub(super) struct Common<'a, R> {
    pub(super) number: u64,
    pub(super) facts: &'a Facts,
    /// Forked by the shard, what it draws from.
    pub(super) draws: RandomStream,
    pub(super) run: &'a R,
}

/// What is copied between devices. What an earlier step has issued for the model may fail where this one reads it.
pub(super) const MODEL: &str = "the model, as earlier steps have left it,";
pub(super) const GRADIENTS: &str = "the gradients";

/// The parts of one device, with their shards and weights.
pub(super) type Parts<B> = Vec<(usize, f64, B)>;

impl<R> Common<'_, R> {
    /// Computes the shards of one device, in turn.
    pub(super) fn compute<M, B, O>(
        &self,
        module: &M,
        parts: Parts<B>,
        device: &Device,
    ) -> Result<(Tree<Terms>, Vec<O>), Error>
    where
        M: Module,
        R: Fn(&M, B) -> (GradientsParams, O),
    {
        let (mut tree, mut outputs) = (Tree::default(), Vec::with_capacity(parts.len()));
        for (shard, weight, batch) in parts {
            let computed = caught(|| {
                let _draws = self.draws.fork_index(shard as u64).enter_on_any_device();
                let replica = for_shard(module, self.facts);
                let (gradients, output) = (self.run)(&replica, batch);
                (Terms::of(&replica.valid(), gradients, &self.facts.states, weight), output)
            });
            let (terms, output) = computed.map_err(|reason| self.failed(shard, device, reason))?;
            // Of no samples: 0 times what a mean over none is, NaN, would be NaN.
            if weight > 0.0 {
                let added = caught(|| tree.add(shard, terms, |left, right| left.plus(right, module)));
                added.map_err(|reason| self.unsummed(device, reason))?;
            }
            outputs.push(output);
        }
        Ok((tree, outputs))
    }

    /// Computes the shards of a device that does not hold the model, and reads their sums.
    pub(super) fn compute_on<M, B, O>(
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
            Ok::<Node, Error>((first, length, copied))
        });
        Ok((nodes.collect::<Result<_, _>>()?, outputs))
    }

    fn failed(&self, shard: usize, device: &Device, reason: String) -> Error {
        Error::Shard { step: self.number, shard, device: spelled(device), reason }
    }

    pub(super) fn unsummed(&self, device: &Device, reason: String) -> Error {
        Error::Sum { step: self.number, device: spelled(device), reason }
    }

    pub(super) fn uncopied(&self, what: &'static str, device: &Device, reason: String) -> Error {
        Error::Copy { step: self.number, what, device: spelled(device), reason }
    }

    pub(super) fn without_thread(&self, device: &Device, reason: String) -> Error {
        Error::Thread { step: self.number, device: spelled(device), reason }
    }
}

/// The device of what has no autodiff.
pub(super) fn inner(device: &Device) -> Device {
    device.clone().without_autodiff()
}
