//! A part of a checkpoint.

use super::module::ModuleState;
use super::optimizer::OptimizerState;
use super::scalar::Scalars;
use super::tensor::Stored;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Part {
    Module(ModuleState),
    Optimizer(OptimizerState),
    Scheduler(Scalars),
    Value(ciborium::Value),
}

impl Part {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Module(_) => "module",
            Self::Optimizer(_) => "optimizer",
            Self::Scheduler(_) => "scheduler",
            Self::Value(_) => "value",
        }
    }

    pub fn tensors(&self) -> Box<dyn Iterator<Item = &Stored> + '_> {
        match self {
            Self::Module(state) => Box::new(state.tensors()),
            Self::Optimizer(state) => Box::new(state.tensors()),
            Self::Scheduler(_) | Self::Value(_) => Box::new(std::iter::empty()),
        }
    }

    pub fn tensors_mut(&mut self) -> Box<dyn Iterator<Item = &mut Stored> + '_> {
        match self {
            Self::Module(state) => Box::new(state.tensors_mut()),
            Self::Optimizer(state) => Box::new(state.tensors_mut()),
            Self::Scheduler(_) | Self::Value(_) => Box::new(std::iter::empty()),
        }
    }
}
