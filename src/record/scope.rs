//! What a program says about the place where it is.

use super::issue::issue;
use super::mark::{Mark, Named, Part, PartKind};
use super::writer::is_recording;
use burn_core::module::{Module, ModuleVisitor, Param, ParameterValue};
use burn_core::tensor::{Bool, Int, Tensor};
use burn_cubecl::fusion::FusionCubeRuntime;
use burn_dispatch::{BackendTensor, DispatchTensorKind};
use burn_fusion::FusionTensor;
use burn_ir::TensorId;
use core::marker::PhantomData;
use core::panic::Location;

/// A part of a program: a labelled one, a step or an epoch. It ends when this is dropped.
#[must_use = "what it says holds until it is dropped; `let _ = ..` drops it at once"]
#[derive(Debug)]
pub struct Scope {
    ends: Option<PartKind>,
    /// Of one thread.
    _thread: PhantomData<*const ()>,
}

impl Scope {
    #[track_caller]
    fn new(part: impl FnOnce() -> Part) -> Self {
        let source = Location::caller();
        let ends = is_recording().then(|| {
            let part = part();
            let kind = part.kind();
            issue(&Mark::Begins(part, source));
            kind
        });
        Self { ends, _thread: PhantomData }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // A panic that unwinds may come from the device, whose queue this would run.
        if let Some(kind) = self.ends.take().filter(|_| !std::thread::panicking()) {
            issue(&Mark::Ends(kind));
        }
    }
}

/// Names what the calling thread issues until the result is dropped, in a recording. Labels nest.
///
/// ```
/// # fn attention() {}
/// let _label = burn_deterministic::label("block 3");
/// attention();
/// ```
///
/// Where nothing is recorded it does nothing.
#[track_caller]
pub fn label(name: impl Into<String>) -> Scope {
    Scope::new(|| Part::Label(name.into()))
}

/// Says that a step of a training begins, in a recording; it ends when the result is dropped, and the tensors that then
/// live are recorded.
///
/// ```no_run
/// # fn train_step() {}
/// for number in 0..10_000 {
///     let _step = burn_deterministic::step(number);
///     train_step();
/// }
/// ```
///
/// A loop over the batches of this crate's [`DataLoader`](crate::data::DataLoader) needs none: each batch is a step, and a
/// `step` within it names it and those after it. Without either, each backward pass is of a step, which ends at the first
/// operation that is not element-wise after its update, or when the next backward pass begins: an optimizer whose updates
/// contain matrix products (Muon) needs `step`. Where nothing is recorded it does nothing.
#[track_caller]
pub fn step(number: u64) -> Scope {
    Scope::new(|| Part::Step(number))
}

/// Says that an epoch begins, in a recording; it ends when the result is dropped.
///
/// A loop over the batches of this crate's [`DataLoader`](crate::data::DataLoader) needs none. Where nothing is recorded it does
/// nothing.
#[track_caller]
pub fn epoch(number: u64) -> Scope {
    Scope::new(|| Part::Epoch(number))
}

/// The steps of a loop over the batches of a loader.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    open: bool,
}

impl Steps {
    /// The step before ends, and one on this batch begins: unless there is no such batch, which [`end`](Self::end) says.
    pub(crate) fn begin(&mut self, epoch: usize, batch: usize) {
        if is_recording() {
            self.open = true;
            issue(&Mark::Batch { epoch: epoch as u64, batch: batch as u64 });
        }
    }

    /// The last step ends.
    pub(crate) fn end(&mut self) {
        if core::mem::take(&mut self.open) && !std::thread::panicking() {
            issue(&Mark::BatchesEnd);
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.end();
    }
}

/// Names the parameters of `module` in a recording, by their paths (`conv1.weight`): those tensors, and what updates
/// make of them.
///
/// Call it once, when the module has its first values, or was loaded. A parameter without a value, which draws it when
/// it is first used, is not named: [`initialize`](crate::initialize()) draws it, and names all. An optimizer's update is
/// recognised by consuming the old value in an element-wise operation. What takes no gradient, as the running statistics of a batch
/// norm, is followed through element-wise operations that read it: the latest result that lives when a step ends has the name.
/// Where nothing is recorded it does nothing.
pub fn name_parameters<M: Module>(module: &M) {
    if !is_recording() {
        return;
    }
    let mut names = Names::default();
    module.visit(&mut names);
    issue(&Mark::Parameters(names.named));
}

#[derive(Default)]
struct Names {
    path: Vec<String>,
    named: Vec<Named>,
}

impl Names {
    fn name<T: ParameterValue>(
        &mut self,
        param: &Param<T>,
        is_buffer: impl FnOnce(&T) -> bool,
        id: impl FnOnce(T) -> Option<TensorId>,
    ) {
        if !param.is_initialized() {
            return;
        }
        let value = param.base();
        let is_buffer = is_buffer(&value);
        if let Some(tensor) = id(value) {
            self.named.push(Named { tensor, path: self.path.join("."), is_buffer });
        }
    }
}

/// The number that Burn's stream knows a tensor by; none where it is on no device of CubeCL's.
fn id_of(kind: DispatchTensorKind) -> Option<TensorId> {
    let DispatchTensorKind::Cube(tensor) = kind else { return None };
    let id = |tensor: FusionTensor<FusionCubeRuntime>| Some(tensor.id);
    match tensor {
        BackendTensor::Float(tensor) => id(tensor),
        BackendTensor::Int(tensor) => id(tensor),
        BackendTensor::Bool(tensor) => id(tensor),
        BackendTensor::Quantized(tensor) => id(tensor),
        #[allow(unreachable_patterns, reason = "with burn-dispatch's feature `autodiff` there is another variant")]
        _ => None,
    }
}

impl ModuleVisitor for Names {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.name(param, |tensor| !tensor.is_require_grad(), |tensor| id_of(tensor.inner().into_dispatch().kind));
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.name(param, |_| true, |tensor| id_of(tensor.into_dispatch().kind));
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.name(param, |_| true, |tensor| id_of(tensor.into_dispatch().kind));
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}
