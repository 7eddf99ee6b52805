//! Initial weights that depend on a parameter's name, not on when it was drawn.

use crate::device;
use crate::error::Error;
use crate::random::RandomStream;
use crate::record::name_parameters;
use crate::settings::is_op_determinism_enabled;
use burn_core::module::{Module, ModuleVisitor, Param, ParameterValue};
use burn_core::tensor::{Bool, Int, Tensor};
use std::collections::HashSet;

/// Draws every parameter of `module` that has no value yet, each from a stream of its own.
///
/// Burn draws a parameter where it is first used, so its value depends on what was drawn before it. After this call it
/// depends on the thread's stream and the parameter's path alone: a layer more or less, or another order of use, leaves
/// the other parameters' initial values as they were. The parameter at `encoder.0.weight` draws from
///
/// ```text
/// internal(RandomStream::current()?, "initialize").fork("encoder.0.weight")
/// ```
///
/// entered for it, with `internal` as in the documentation of [`RandomStream`]; what the thread itself draws is not changed. The path has the names of fields, the numbers of
/// elements and the variants of enums, as in [`digest`](crate::digest()).
///
/// Parameters that have a value keep it: loaded ones, and those that were used before. So call it before the first use.
/// A parameter that is shared (a clone, as for tied weights) is drawn once, at the place that Burn visits first, and
/// stays shared.
///
/// # Errors
///
/// [`Error::NotEnabled`] before [`enable_op_determinism`](crate::enable_op_determinism), [`Error::NotCovered`] where a
/// parameter is on a device that is not [covered](crate::covers), [`Error::NoStream`] where the
/// calling thread has no seed and has entered no stream (`Device::seed` is not enough before the first draw), [`Error::DuplicatePath`] when two parameters have one path. An
/// initialiser that a device refuses leaves its error on the parameter's tensor.
pub fn initialize<M: Module>(module: M) -> Result<M, Error> {
    if !is_op_determinism_enabled() {
        return Err(Error::NotEnabled { function: "initialize" });
    }
    for device in module.devices() {
        device::check("initialize", &device)?;
    }
    let stream = RandomStream::current()?.internal("initialize");
    let mut visitor = Initializer { stream, path: Vec::new(), drawn: HashSet::new(), duplicate: None };
    module.visit(&mut visitor);
    match visitor.duplicate {
        Some(path) => Err(Error::DuplicatePath { path }),
        None => {
            name_parameters(&module);
            Ok(module)
        }
    }
}

struct Initializer {
    stream: RandomStream,
    path: Vec<String>,
    /// The paths of what was drawn.
    drawn: HashSet<String>,
    duplicate: Option<String>,
}

impl Initializer {
    fn parameter<T: ParameterValue>(&mut self, parameter: &Param<T>) {
        if parameter.is_initialized() {
            return;
        }
        let path = self.path.join(".");
        if !self.drawn.insert(path.clone()) {
            self.duplicate.get_or_insert(path);
            return;
        }
        let _draws = self.stream.fork(&path).enter();
        // Burn runs the initialiser once, for all clones of the parameter.
        let _value = parameter.base();
    }
}

impl ModuleVisitor for Initializer {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.parameter(param);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.parameter(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.parameter(param);
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}
