//! A module's parameters, buffers and flags, by their paths.

use super::error::{Difference, Error, Mismatch};
use super::item::Content;
use super::tensor::Stored;
use crate::module::{Path, synchronize};
use burn_backend::{DType, ExecutionError, Shape, TensorData};
use burn_core::module::{Flag, Module, ModuleMapper, ModuleVisitor, Param, ParamId, Parameter};
use burn_core::tensor::{Bool, Gradients, Int, Tensor};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a module holds, by path.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ModuleState(pub(super) BTreeMap<String, Entry>);

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    kind: Kind,
    content: EntryContent,
    /// The first parameter, in visiting order, that has the same id: Burn's optimizers take both for one.
    tied: Option<Tie>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Float,
    Int,
    Bool,
    Flag,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum EntryContent {
    Tensor {
        stored: Stored,
        /// Whether it requires gradients; unknown on a device without autodiff.
        trainable: Option<bool>,
    },
    /// Its values come from random numbers that are still to be drawn when it is first used.
    Uninitialised {
        shape: Vec<usize>,
    },
    Flag(bool),
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tie {
    to: String,
    /// Whether gradients reach both through one tensor.
    shared: bool,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Float => "float tensor",
            Self::Int => "integer tensor",
            Self::Bool => "boolean tensor",
            Self::Flag => "flag",
        }
    }
}

impl ModuleState {
    /// Reads all of `module`, without initialising what is not.
    pub(super) fn read<M: Module>(name: &str, module: &M) -> Result<Self, Error> {
        synchronize(module);
        let mut visitor = Reader::new(Purpose::Save { repeated: repeated(module) });
        module.visit(&mut visitor);
        visitor.finish(name)
    }

    /// Gives `module` these values; its parameters keep their ids.
    pub(super) fn restore<M: Module>(self, name: &str, checkpoint: &str, module: M) -> Result<M, Error> {
        synchronize(&module);
        let mut visitor = Reader::new(Purpose::Compare { saved: &self });
        module.visit(&mut visitor);
        let mismatches = self.mismatches(&visitor.finish(name)?);
        if !mismatches.is_empty() {
            return Err(Error::Mismatch { name: name.to_owned(), checkpoint: checkpoint.to_owned(), mismatches });
        }
        let ties = self.0.values().filter_map(|entry| entry.tied.as_ref());
        let sharing = ties.filter(|tie| tie.shared).map(|tie| tie.to.clone()).collect();
        Ok(module.map(&mut Writer { path: Path::default(), saved: self.0, sharing, shared: HashMap::new() }))
    }

    /// Lists all of it, by path, and whether parameters are trainable.
    pub(super) fn each(&self, add: &mut impl FnMut(String, Content)) {
        for (path, entry) in &self.0 {
            add(path.clone(), entry.content.listed());
            if let EntryContent::Tensor { trainable: Some(trainable), .. } = &entry.content {
                add(format!("{path}: trainable"), Content::Text(trainable.to_string()));
            }
        }
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = &Stored> {
        self.0.values().filter_map(|entry| match &entry.content {
            EntryContent::Tensor { stored, .. } => Some(stored),
            EntryContent::Uninitialised { .. } | EntryContent::Flag(_) => None,
        })
    }

    pub(super) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Stored> {
        self.0.values_mut().filter_map(|entry| match &mut entry.content {
            EntryContent::Tensor { stored, .. } => Some(stored),
            EntryContent::Uninitialised { .. } | EntryContent::Flag(_) => None,
        })
    }

    fn mismatches(&self, present: &Self) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        let mut differ = |path: &str, difference| mismatches.push(Mismatch { path: path.to_owned(), difference });
        for (path, saved) in &self.0 {
            match present.0.get(path) {
                Some(present) => saved.differences(present).into_iter().for_each(|found| differ(path, found)),
                None => differ(path, Difference::NotThere),
            }
        }
        for path in present.0.keys().filter(|path| !self.0.contains_key(*path)) {
            differ(path, Difference::NotSaved);
        }
        mismatches
    }
}

impl EntryContent {
    /// What it is in a list of contents.
    fn listed(&self) -> Content {
        match self {
            Self::Tensor { stored, .. } => Content::Tensor(stored.clone().into_data()),
            Self::Uninitialised { shape } => Content::Text(format!("not initialised, {shape:?}")),
            Self::Flag(set) => Content::Text(set.to_string()),
        }
    }
}

impl Entry {
    fn differences(&self, present: &Self) -> Vec<Difference> {
        if self.kind != present.kind {
            return vec![Difference::Kind { saved: self.kind.name(), present: present.kind.name() }];
        }
        let mut differences = Vec::new();
        let to = |entry: &Self| entry.tied.as_ref().map(|tie| tie.to.clone());
        if to(self) != to(present) {
            differences.push(Difference::Tied { saved: to(self), present: to(present) });
        }
        if self.shape() != present.shape() {
            differences.push(Difference::Shape { saved: self.shape(), present: present.shape() });
        }
        match (&self.content, &present.content) {
            (EntryContent::Tensor { stored, trainable }, EntryContent::Tensor { stored: at_hand, trainable: now }) => {
                if stored.dtype != at_hand.dtype {
                    differences.push(Difference::DType { saved: stored.dtype, present: at_hand.dtype });
                }
                if let (Some(saved), Some(now)) = (*trainable, *now)
                    && saved != now
                {
                    differences.push(Difference::Trainable { saved });
                }
            }
            (EntryContent::Uninitialised { .. }, EntryContent::Tensor { .. }) => {
                differences.push(Difference::Initialised);
            }
            (EntryContent::Flag(saved), EntryContent::Flag(now)) if saved != now => {
                differences.push(Difference::Flag { saved: *saved });
            }
            _ => {}
        }
        differences
    }

    fn shape(&self) -> Shape {
        match &self.content {
            EntryContent::Tensor { stored, .. } => stored.shape(),
            EntryContent::Uninitialised { shape } => Shape::from(shape.clone()),
            EntryContent::Flag(_) => Shape::from(Vec::<usize>::new()),
        }
    }
}

/// The id of each parameter and its path, in visiting order.
pub(super) fn identities<M: Module>(module: &M) -> Vec<(ParamId, String)> {
    #[derive(Default)]
    struct Identities {
        path: Path,
        found: Vec<(ParamId, String)>,
    }
    impl ModuleVisitor for Identities {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.found.push((param.id, self.path.joined()));
        }
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.enter(name);
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.exit();
        }
    }
    let mut identities = Identities::default();
    module.visit(&mut identities);
    identities.found
}

/// The ids that more than one parameter has.
fn repeated<M: Module>(module: &M) -> HashSet<ParamId> {
    let mut seen = HashSet::new();
    identities(module).into_iter().map(|(id, _)| id).filter(|id| !seen.insert(*id)).collect()
}

/// What a traversal is for.
enum Purpose<'a> {
    Save {
        repeated: HashSet<ParamId>,
    },
    /// Bits are not read, and what was saved with values is initialised, to know its dtype.
    Compare {
        saved: &'a ModuleState,
    },
}

struct Reader<'a> {
    purpose: Purpose<'a>,
    path: Path,
    entries: BTreeMap<String, Entry>,
    /// The first parameter of each id, and the gradients of its sum where another one may share its tensor.
    first: HashMap<ParamId, (String, Option<Gradients>)>,
    error: Option<Failure>,
}

enum Failure {
    Unreadable { path: String, reason: String },
    Ambiguous { path: String },
}

impl<'a> Reader<'a> {
    fn new(purpose: Purpose<'a>) -> Self {
        Self { purpose, path: Path::default(), entries: BTreeMap::new(), first: HashMap::new(), error: None }
    }

    fn finish(self, name: &str) -> Result<ModuleState, Error> {
        let name = name.to_owned();
        match self.error {
            None => Ok(ModuleState(self.entries)),
            Some(Failure::Unreadable { path, reason }) => Err(Error::Unreadable { name, path: Some(path), reason }),
            Some(Failure::Ambiguous { path }) => Err(Error::Ambiguous { name, path }),
        }
    }

    fn insert(&mut self, kind: Kind, content: EntryContent, tied: Option<Tie>) {
        let path = self.path.joined();
        if self.entries.insert(path.clone(), Entry { kind, content, tied }).is_some() {
            self.error.get_or_insert(Failure::Ambiguous { path });
        }
    }

    /// Whether to look at the tensor itself.
    fn is_read<T: Parameter>(&self, param: &Param<T>) -> bool {
        param.is_initialized()
            || match &self.purpose {
                Purpose::Save { .. } => false,
                Purpose::Compare { saved } => {
                    let saved = saved.0.get(&self.path.joined());
                    saved.is_some_and(|entry| matches!(entry.content, EntryContent::Tensor { .. }))
                }
            }
    }

    fn content<T: Parameter>(
        &mut self,
        param: &Param<T>,
        dtype: fn(&T) -> DType,
        data: fn(T) -> Result<TensorData, ExecutionError>,
        trainable: Option<bool>,
    ) -> EntryContent {
        let value = param.val();
        let described = || Stored::described(dtype(&value), value.shape());
        let stored = match self.purpose {
            Purpose::Compare { .. } => described(),
            Purpose::Save { .. } => match data(value.clone()) {
                Ok(data) => Stored::new(data),
                Err(error) => {
                    let unreadable = Failure::Unreadable { path: self.path.joined(), reason: error.to_string() };
                    self.error.get_or_insert(unreadable);
                    described()
                }
            },
        };
        EntryContent::Tensor { stored, trainable }
    }

    /// Notes the parameter as the first of its id, or says which was.
    fn tie<const D: usize>(&mut self, param: &Param<Tensor<D>>) -> Option<Tie> {
        let is_leaf = param.is_initialized() && param.is_require_grad();
        match self.first.get(&param.id) {
            Some((to, gradients)) => {
                let shared = gradients.as_ref().is_some_and(|gradients| is_leaf && param.grad(gradients).is_some());
                Some(Tie { to: to.clone(), shared })
            }
            None => {
                let probed = matches!(&self.purpose, Purpose::Save { repeated } if repeated.contains(&param.id));
                let gradients = (probed && is_leaf).then(|| param.val().sum().backward());
                self.first.insert(param.id, (self.path.joined(), gradients));
                None
            }
        }
    }
}

impl ModuleVisitor for Reader<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tied = self.tie(param);
        let content = if self.is_read(param) {
            let trainable = param.is_autodiff().then(|| param.is_require_grad());
            self.content(param, |tensor| tensor.dtype(), Tensor::try_into_data, trainable)
        } else {
            EntryContent::Uninitialised { shape: param.lazy_shape().to_vec() }
        };
        self.insert(Kind::Float, content, tied);
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        let content = if self.is_read(param) {
            self.content(param, |tensor| tensor.dtype(), Tensor::try_into_data, None)
        } else {
            EntryContent::Uninitialised { shape: param.lazy_shape().to_vec() }
        };
        self.insert(Kind::Int, content, None);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        let content = if self.is_read(param) {
            self.content(param, |tensor| tensor.dtype(), Tensor::try_into_data, None)
        } else {
            EntryContent::Uninitialised { shape: param.lazy_shape().to_vec() }
        };
        self.insert(Kind::Bool, content, None);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        // In a module made `valid`, a flag is off and remembers what it is in training.
        let set = flag.clone().train().is_enabled();
        self.insert(Kind::Flag, EntryContent::Flag(set), None);
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}

/// Puts saved values in, where the module has been found to fit.
struct Writer {
    path: Path,
    saved: BTreeMap<String, Entry>,
    /// Paths whose tensor others share.
    sharing: HashSet<String>,
    /// Their tensors.
    shared: HashMap<String, Box<dyn Any>>,
}

impl Writer {
    /// The value saved for the current path, and whose tensor it shares.
    fn take(&mut self) -> Option<(TensorData, Option<String>)> {
        let entry = self.saved.remove(&self.path.joined())?;
        match entry.content {
            EntryContent::Tensor { stored, .. } => {
                Some((stored.into_data(), entry.tied.filter(|tie| tie.shared).map(|tie| tie.to)))
            }
            EntryContent::Uninitialised { .. } | EntryContent::Flag(_) => None,
        }
    }
}

impl ModuleMapper for Writer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some((data, shares)) = self.take() else {
            return param;
        };
        let first = shares.and_then(|first| self.shared.get(&first)?.downcast_ref::<Tensor<D>>());
        let value = first.cloned().unwrap_or_else(|| {
            let dtype = data.dtype();
            let value = Tensor::from_data(data, (&param.device(), dtype));
            if param.is_require_grad() { value.require_grad() } else { value }
        });
        let path = self.path.joined();
        if self.sharing.contains(&path) {
            self.shared.insert(path, Box::new(value.clone()));
        }
        param.map(|_| value)
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let Some((data, _)) = self.take() else {
            return param;
        };
        let dtype = data.dtype();
        param.map(|old| Tensor::from_data(data, (&old.device(), dtype)))
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        let Some((data, _)) = self.take() else {
            return param;
        };
        let dtype = data.dtype();
        param.map(|old| Tensor::from_data(data, (&old.device(), dtype)))
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }
}
