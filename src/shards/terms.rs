//! What a shard contributes to a step: the gradients of its parameters and its running states, scaled, and sums of
//! them.

use super::transfer::{Copied, Reads};
use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn_core::tensor::{Device, Tensor};
use burn_optim::GradientsParams;
use std::collections::HashSet;

/// Tensors without autodiff by id, all on one device: gradients by parameter, and the values of running states by
/// theirs.
pub(super) struct Terms(GradientsParams);

/// `weight * tensor`. A weight of 1 changes no bit.
pub(super) fn scaled<const D: usize>(tensor: Tensor<D>, weight: f64) -> Tensor<D> {
    if weight == 1.0 { tensor } else { tensor.mul_scalar(weight) }
}

/// What is done for each float parameter and running state of a module.
trait Each {
    fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>);
}

/// Calls `each` once for each id, in visiting order.
fn for_each<M: Module>(module: &M, each: &mut impl Each) {
    struct Once<'a, E> {
        each: &'a mut E,
        seen: HashSet<ParamId>,
    }
    impl<E: Each> ModuleVisitor for Once<'_, E> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if self.seen.insert(param.id) {
                self.each.each(param);
            }
        }
    }
    module.visit(&mut Once { each, seen: HashSet::new() });
}

/// The float parameters and running states of a model, in visiting order: what terms can be of, in any process.
#[derive(Default)]
pub(super) struct Layout(Vec<(ParamId, Vec<usize>)>);

impl Each for Layout {
    fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push((param.id, param.val().dims().to_vec()));
    }
}

impl Layout {
    pub(super) fn of<M: Module>(module: &M) -> Self {
        let mut layout = Self::default();
        for_each(module, &mut layout);
        layout
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ParamId> + Clone {
        self.0.iter().map(|(id, _)| *id)
    }

    pub(super) fn shapes(&self) -> impl Iterator<Item = &[usize]> {
        self.0.iter().map(|(_, shape)| &shape[..])
    }
}

impl Terms {
    /// `weight * gradient` of each parameter that has one, and `weight * value` of each running state of `module`, a
    /// module without autodiff that holds what a shard's forward pass made of them.
    pub(super) fn of<M: Module>(
        module: &M,
        gradients: GradientsParams,
        states: &HashSet<ParamId>,
        weight: f64,
    ) -> Self {
        struct Scale<'a> {
            terms: GradientsParams,
            states: &'a HashSet<ParamId>,
            weight: f64,
        }
        impl Each for Scale<'_> {
            fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let value = match self.states.contains(&param.id) {
                    true => Some(param.val()),
                    false => self.terms.remove::<D>(param.id),
                };
                if let Some(value) = value {
                    self.terms.register(param.id, scaled(value, self.weight));
                }
            }
        }
        let mut scale = Scale { terms: gradients, states, weight };
        for_each(module, &mut scale);
        Self(scale.terms)
    }

    /// `self + other` for each id; where only one has a tensor, that.
    pub(super) fn plus<M: Module>(self, other: Self, module: &M) -> Self {
        struct Add(GradientsParams, GradientsParams);
        impl Each for Add {
            fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(right) = self.1.remove::<D>(param.id) {
                    let sum = match self.0.remove::<D>(param.id) {
                        Some(left) => left + right,
                        None => right,
                    };
                    self.0.register(param.id, sum);
                }
            }
        }
        let mut add = Add(self.0, other.0);
        for_each(module, &mut add);
        Self(add.0)
    }

    /// Reads them.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(super) fn read<M: Module>(&self, module: &M) -> Result<Copied, String> {
        struct Read<'a>(&'a GradientsParams, Reads);
        impl Each for Read<'_> {
            fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(value) = self.0.get::<D>(param.id) {
                    self.1.add(param.id, || value);
                }
            }
        }
        let mut read = Read(&self.0, Reads::default());
        for_each(module, &mut read);
        read.1.execute()
    }

    /// Those that were read on another device, on `device`.
    pub(super) fn put<M: Module>(copied: &Copied, device: &Device, module: &M) -> Self {
        struct Put<'a>(GradientsParams, &'a Copied, &'a Device);
        impl Each for Put<'_> {
            fn each<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if self.1.contains(param.id) {
                    self.0.register::<D>(param.id, self.1.put(param.id, self.2));
                }
            }
        }
        let mut put = Put(GradientsParams::new(), copied, device);
        for_each(module, &mut put);
        Self(put.0)
    }

    /// Takes the running states out, and gives them to `module`, a module with autodiff; what is left are gradients.
    pub(super) fn settle<M: Module>(self, module: &M, states: &HashSet<ParamId>) -> GradientsParams {
        /// A running state shares its value with its clones: what a mapper gives a clone, the module has.
        struct Give<'a>(GradientsParams, &'a HashSet<ParamId>);
        impl ModuleMapper for Give<'_> {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                match self.1.contains(&param.id).then(|| self.0.remove::<D>(param.id)).flatten() {
                    Some(value) => param.map(|_| Tensor::from_inner(value)),
                    None => param,
                }
            }
        }
        if states.is_empty() {
            return self.0;
        }
        let mut give = Give(self.0, states);
        let _shares_states = module.clone().map(&mut give);
        give.0
    }
}
