//! Copies of a model that share nothing with it.

use super::transfer::{Copied, Reads};
use crate::module::Path;
use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn_core::tensor::{Bool, Device, Int, Tensor};
use std::any::Any;
use std::collections::{HashMap, HashSet};

/// What is asked of a model once for a step.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// Running states (of a batch norm, say): what a forward pass changes.
    pub(super) states: HashSet<ParamId>,
    /// Parameters that stand in the model more than once, as tied weights do: all places share one tensor.
    tied: HashSet<ParamId>,
    /// The path of a running state that shares its value with one before it.
    pub(super) shared_state: Option<String>,
}

impl Facts {
    /// Of a module without autodiff, which is of no use afterwards.
    pub(super) fn of<M: Module>(module: M) -> Self {
        /// A running state shares its value with its clones, and takes what a mapper of any of them gives it.
        /// Parameters do not.
        struct Mark;
        impl ModuleMapper for Mark {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                param.map(Tensor::from_inner)
            }
        }
        #[derive(Default)]
        struct Visitor {
            facts: Facts,
            seen: HashSet<ParamId>,
            path: Path,
        }
        impl ModuleVisitor for Visitor {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if param.val().device().is_autodiff() {
                    if !self.facts.states.insert(param.id) {
                        self.facts.shared_state.get_or_insert_with(|| self.path.joined());
                    }
                } else if !self.seen.insert(param.id) {
                    self.facts.tied.insert(param.id);
                }
            }
            fn enter_module(&mut self, name: &str, _container: &str) {
                self.path.enter(name);
            }
            fn exit_module(&mut self, _name: &str, _container: &str) {
                self.path.exit();
            }
        }
        let _marked = module.clone().map(&mut Mark);
        let mut visitor = Visitor::default();
        module.visit(&mut visitor);
        visitor.facts
    }
}

/// The values of a model, for other devices.
pub(super) struct Snapshot(Copied);

impl Snapshot {
    /// Reads all of a module without autodiff.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(super) fn read<M: Module>(module: &M) -> Result<Self, String> {
        struct Visitor(Reads);
        impl ModuleVisitor for Visitor {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.0.add(param.id, || param.val());
            }
            fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
                self.0.add(param.id, || param.val());
            }
            fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
                self.0.add(param.id, || param.val());
            }
        }
        let mut visitor = Visitor(Reads::default());
        module.visit(&mut visitor);
        visitor.0.execute().map(Self)
    }

    /// A digest of all.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.0.digest()
    }

    /// Gives a module without autodiff these values, on `device`. It must share no running state with a module in use.
    pub(super) fn put<M: Module>(&self, module: M, device: &Device) -> M {
        struct Mapper<'a> {
            values: &'a Copied,
            device: &'a Device,
        }
        impl ModuleMapper for Mapper<'_> {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let value = self.values.put(param.id, self.device);
                param.map(|_| value)
            }
            fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
                let value = self.values.put(param.id, self.device);
                param.map(|_| value)
            }
            fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
                let value = self.values.put(param.id, self.device);
                param.map(|_| value)
            }
        }
        // Tensors that are no parameters, constants of an encoding, say, are seen by `to_device` alone. The others are
        // there.
        module.map(&mut Mapper { values: &self.0, device }).to_device(device)
    }
}

/// A model for one shard, of a module without autodiff: parameters that require gradients are leaves of its own, and
/// what its running states become is its own.
pub(super) fn for_shard<M: Module>(module: &M, facts: &Facts) -> M {
    /// Makes all places of a tied parameter one leaf.
    struct Tie<'a> {
        tied: &'a HashSet<ParamId>,
        first: HashMap<ParamId, Box<dyn Any>>,
    }
    impl ModuleMapper for Tie<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if !self.tied.contains(&param.id) {
                return param;
            }
            if let Some(first) = self.first.get(&param.id).and_then(|first| first.downcast_ref::<Tensor<D>>()) {
                let first = first.clone();
                return param.map(|_| first);
            }
            self.first.insert(param.id, Box::new(param.val()));
            param
        }
    }
    let module = module.clone().train();
    match facts.tied.is_empty() {
        true => module,
        false => module.map(&mut Tie { tied: &facts.tied, first: HashMap::new() }),
    }
}
