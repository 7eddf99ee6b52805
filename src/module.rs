//! Reading the parameters and buffers of a module. Nothing is initialised: a parameter without a value draws it later.

use crate::error::Error;
use burn_backend::{ExecutionError, Shape, TensorData};
use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, Parameter};
use burn_core::tensor::{Bool, Device, Int, Tensor};

/// Where a traversal stands.
#[derive(Default)]
pub(crate) struct Path(Vec<String>);

impl Path {
    pub(crate) fn enter(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    pub(crate) fn exit(&mut self) {
        self.0.pop();
    }

    pub(crate) fn joined(&self) -> String {
        self.0.join(".")
    }
}

/// A parameter or buffer.
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Values(TensorData),
    /// Its initialiser has not run. `kind` is `float`, `int` or `bool`; the dtype is not known yet.
    Uninitialised {
        kind: &'static str,
        shape: Shape,
    },
}

/// Hands every parameter and buffer of `module` to `each`, in visiting order, with the last update of running states.
///
/// # Errors
///
/// [`Error::Unreadable`] for the first tensor that cannot be read; `name` is what it calls the module.
pub(crate) fn read<M: Module>(name: &'static str, module: &M, each: impl FnMut(Entry)) -> Result<(), Error> {
    synchronize(module);
    let mut reader = Reader { name, path: Path::default(), each, error: None };
    module.visit(&mut reader);
    reader.error.map_or(Ok(()), Err)
}

/// Takes the last update of each running state (of a batch norm, say) into its value.
///
/// Burn holds it apart until the state is next used, where no visitor sees it. `valid` takes it in, for the module and
/// its clones alike; it would also initialise parameters, which draws random numbers, so it is called on a clone where
/// zeros stand in for those.
pub(crate) fn synchronize<M: Module>(module: &M) {
    struct StandIns;
    impl ModuleMapper for StandIns {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            stand_in(param, |shape, device| Tensor::zeros(shape, device))
        }
        fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
            stand_in(param, |shape, device| Tensor::zeros(shape, device))
        }
        fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
            stand_in(param, |shape, device| Tensor::<D, Int>::zeros(shape, device).bool())
        }
    }
    fn stand_in<T: Parameter + 'static>(param: Param<T>, zeros: fn(Shape, &Device) -> T) -> Param<T> {
        if param.is_initialized() {
            return param;
        }
        let shape = param.lazy_shape();
        let init = {
            let shape = shape.clone();
            move |device: &Device, _require_grad| zeros(shape, device)
        };
        Param::uninitialized(param.id, init, param.lazy_device(), false, shape)
    }
    let _ = module.clone().map(&mut StandIns).valid();
}

struct Reader<F> {
    name: &'static str,
    path: Path,
    each: F,
    /// The first; nothing is read after it.
    error: Option<Error>,
}

impl<F: FnMut(Entry)> Reader<F> {
    fn read<T: Parameter>(
        &mut self,
        kind: &'static str,
        param: &Param<T>,
        data: fn(T) -> Result<TensorData, ExecutionError>,
    ) {
        if self.error.is_some() {
            return;
        }
        let path = self.path.joined();
        if !param.is_initialized() {
            let content = Content::Uninitialised { kind, shape: param.lazy_shape() };
            return (self.each)(Entry { path, content });
        }
        match data(param.val()) {
            Ok(data) => (self.each)(Entry { path, content: Content::Values(data) }),
            Err(error) => self.error = Some(Error::Unreadable { module: self.name, path, reason: error.to_string() }),
        }
    }
}

impl<F: FnMut(Entry)> ModuleVisitor for Reader<F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.read("float", param, Tensor::try_into_data);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.read("int", param, Tensor::try_into_data);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.read("bool", param, Tensor::try_into_data);
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}
