//! Checkpoints from which a training goes on to the same bits as if it had never stopped.
//!
//! ```no_run
//! # use burn::nn::{Linear, LinearConfig};
//! # use burn::optim::{AdamConfig, ModuleOptimizer};
//! # use burn::prelude::*;
//! use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter};
//!
//! # fn train_step(step: u64, position: &mut u64, model: Linear, optimizer: &mut ModuleOptimizer) -> Linear { model }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = Device::default();
//! let mut model = LinearConfig::new(8, 2).init(&device);
//! let mut optimizer = AdamConfig::new().init();
//! let mut position = 0_u64; // of the data: any value that serde knows
//!
//! let mut writer = CheckpointWriter::open("runs/digits")?.keep(3); // no other process may write there now
//! let mut start = 0;
//! if let Some(mut checkpoint) = writer.latest()? {
//!     model = checkpoint.module("model", model)?;
//!     optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
//!     position = checkpoint.value("position")?;
//!     start = checkpoint.resume()?; // last, for it restores the random state
//! }
//! for step in start..10_000 {
//!     model = train_step(step, &mut position, model, &mut optimizer);
//!     if (step + 1) % 100 == 0 {
//!         let checkpoint = Checkpoint::new(step + 1)?
//!             .with_module("model", &model)?
//!             .with_optimizer("optimizer", &optimizer, &model)?
//!             .with_value("position", &position)?;
//!         writer.save(&checkpoint)?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Another process may read meanwhile, to evaluate the model say. It creates, changes and deletes nothing:
//!
//! ```no_run
//! # use burn::nn::LinearConfig;
//! # use burn::prelude::*;
//! use burn_deterministic::checkpoint::Checkpoints;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let device = Device::default();
//! if let Some(mut checkpoint) = Checkpoints::open("runs/digits")?.latest()? {
//!     let model = checkpoint.module("model", LinearConfig::new(8, 2).init(&device))?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Going back
//!
//! A folder holds one course of a training. A program that starts from the beginning, or from an older checkpoint than the
//! newest, where there are checkpoints already, would leave two in it: its first save is then an error, until the program
//! says what becomes of the checkpoints there ([`CheckpointWriter::truncate_after`], [`CheckpointWriter::clear`]).
//!
//! # Versions
//!
//! A file names the versions of this crate and of Burn that took the checkpoint. Under others it can be read, and its parts
//! restored; but [`Checkpoint::resume`] is an error, because the bits of what follows are not promised.
//! [`Checkpoint::resume_across_versions`] goes on all the same.
//!
//! # Environment
//!
//! A file also has the [environment](crate::environment()) of the training, with the devices of its modules and without a
//! seed: device, driver, CubeCL, compiler, settings, configuration. In another environment [`Checkpoint::resume`] goes on, and
//! a warning on standard error says in words what differs (`driver: llvmpipe Mesa 22.3.6 against llvmpipe Mesa 25.0.7`),
//! because the training can then end with other bits. [`Checkpoint::resume_in_same_environment`] is an error there. The build
//! of the program itself is not noted.
//!
//! # What is saved
//!
//! The random state of the calling thread; the bits of every parameter and buffer, whether a parameter is trainable, and
//! a module's flags (of a dropout, say); the state of optimizers and learning rate schedulers; whatever else the program
//! gives. Parameters and optimizer state are named by the parameter's path (`conv1.weight`), not by Burn's `ParamId`,
//! which is random: two runs of the same training write the same bytes.
//!
//! Taking a checkpoint draws no random numbers and initialises nothing: a parameter that is not initialised yet stays so,
//! and is saved as such. It applies the pending update of running statistics (of a batch norm), as `Module::valid` does. So
//! evaluate with `model.valid()`: inference without it uses the statistics before or after that update, whichever a
//! checkpoint or a digest has left.
//!
//! What the program builds anew is not saved: the configuration of module and optimizer, gradients that are being
//! accumulated, fields marked `#[module(skip)]`. Take a checkpoint between two steps of the optimizer.
//!
//! # Burn's own checkpoints
//!
//! `burn::train::Learner` hands model, optimizer and scheduler to its checkpointers once an epoch, on threads of their
//! own. Neither the random state of the training's thread nor its position in the data is among them, and its files hold
//! random `ParamId`s, the optimizer's in the order of a hash map, so that they differ from run to run where the weights do
//! not. For a resumed run with the same bits, write the loop yourself as above, or let nothing depend on what is missing, as
//! the repository's example `digits_learner` does; to compare the models of two runs of a `Learner`, use
//! [`digest`](crate::digest()).

mod contents;
mod error;
mod file;
mod folder;
mod item;
mod module;
mod optimizer;
mod part;
mod resume;
mod scalar;
mod tensor;
mod value;
mod versions;
mod writer;

pub use error::{Difference, Error, Mismatch};
pub use folder::Checkpoints;
pub use item::{Content, Item};
pub use optimizer::Optimizer;
pub use versions::Versions;
pub use writer::CheckpointWriter;

use crate::backend::check_indices;
use crate::environment::{self, DeviceKey};
use crate::random::{RandomState, random_state};
use crate::record::name_parameters;
use burn_core::module::Module;
use burn_deterministic_recording::Environment;
use burn_optim::lr_scheduler::LrSchedulerRecord;
use module::ModuleState;
use optimizer::OptimizerState;
use part::Part;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// The state of a training between two steps: parts, each under a name.
///
/// It is made with [`new`](Self::new) and the methods `with_*`, and holds everything in memory from then on, so it may be
/// saved at leisure, also in another thread. From a loaded one each part is taken once, and [`resume`](Self::resume) ends
/// it.
#[derive(Clone)]
pub struct Checkpoint {
    step: u64,
    random: RandomState,
    parts: BTreeMap<String, Part>,
    path: Option<PathBuf>,
    written_by: Versions,
    /// Where a loaded checkpoint was taken.
    taken_in: Option<Environment>,
    /// The devices of the modules that were read or restored.
    devices: BTreeSet<DeviceKey>,
}

/// What stands in a file before the bytes of the tensors.
#[derive(Serialize)]
struct Index<'a> {
    step: u64,
    random: &'a RandomState,
    environment: Environment,
    parts: &'a BTreeMap<String, Part>,
}

#[derive(Deserialize)]
struct LoadedIndex {
    step: u64,
    random: RandomState,
    environment: Environment,
    parts: BTreeMap<String, Part>,
}

impl Checkpoint {
    /// A checkpoint of a training that has taken `step` steps, with the calling thread's [random state](random_state).
    ///
    /// # Errors
    ///
    /// [`Error::Random`] when a device cannot run the operations that are to be counted, and when one of the thread's
    /// operations got an index outside its axis.
    pub fn new(step: u64) -> Result<Self, Error> {
        let random = random_state()?;
        // The parts may have been computed long before, and then reading them reports no index out of range.
        check_indices()?;
        Ok(Self {
            step,
            random,
            parts: BTreeMap::new(),
            path: None,
            written_by: Versions::current(),
            taken_in: None,
            devices: BTreeSet::new(),
        })
    }

    /// Reads a module's parameters, buffers and flags.
    ///
    /// # Errors
    ///
    /// - [`Error::Unreadable`] when an operation left an error on a tensor,
    /// - [`Error::Ambiguous`] when two parameters have one path,
    /// - [`Error::Duplicate`] when the name is taken.
    pub fn with_module<M: Module>(mut self, name: &str, module: &M) -> Result<Self, Error> {
        let state = ModuleState::read(name, module)?;
        self.note_devices(module);
        self.with(name, Part::Module(state))
    }

    /// Reads the state of an optimizer of `module`.
    ///
    /// # Errors
    ///
    /// - [`Error::Unreadable`] when an operation left an error on a tensor of the state. Burn reports it by a panic, which
    ///   is caught: the program's panic hook runs, and a program built with `panic = "abort"` ends,
    /// - [`Error::NotOfTheModule`] when it holds state of another module's parameter,
    /// - [`Error::Value`] when Burn cannot write its record,
    /// - [`Error::Duplicate`] when the name is taken.
    pub fn with_optimizer<O: Optimizer, M: Module>(self, name: &str, optimizer: &O, module: &M) -> Result<Self, Error> {
        let state = OptimizerState::read(name, optimizer, module)?;
        self.with(name, Part::Optimizer(state))
    }

    /// Takes the state of a learning rate scheduler: `scheduler.to_record()`.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] when Burn cannot write the record, [`Error::Duplicate`] when the name is taken.
    pub fn with_scheduler(self, name: &str, record: LrSchedulerRecord) -> Result<Self, Error> {
        let scalars = optimizer::scheduler_scalars(name, record)?;
        self.with(name, Part::Scheduler(scalars))
    }

    /// Takes any other value: a position in the data, a history of losses. Numbers keep their bits.
    ///
    /// Maps are written in the order of their keys. A hash set has no order: give a sorted list.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] when serde cannot serialize it, [`Error::Duplicate`] when the name is taken.
    pub fn with_value<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Result<Self, Error> {
        let value = value::save(name, value)?;
        self.with(name, Part::Value(value))
    }

    fn with(mut self, name: &str, part: Part) -> Result<Self, Error> {
        match self.parts.insert(name.to_owned(), part) {
            None => Ok(self),
            Some(_) => Err(Error::Duplicate { name: name.to_owned() }),
        }
    }

    /// Writes the checkpoint to `path`, in the place of what is there.
    ///
    /// A program killed at any moment leaves the previous file or the new one, never a part of it. What a kill can leave
    /// is a file named `.{name}.{random}.writing` beside it. It may be removed; [`CheckpointWriter::open`] does so for files
    /// that a [`CheckpointWriter`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], when the disk is full for example; at `path` is then the previous file or the whole new one.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let index = value::encoded(&Index {
            step: self.step,
            random: &self.random,
            environment: self.environment(),
            parts: &self.parts,
        });
        let tensors: Vec<&[u8]> = self.parts.values().flat_map(Part::tensors).map(|tensor| &tensor.bytes[..]).collect();
        file::write(path.as_ref(), &self.written_by, &index, &tensors)
    }

    /// Reads the checkpoint at `path`, and nothing of it before all of it has been checked against its hash.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Foreign`], [`Error::Version`], [`Error::Length`] and [`Error::Damaged`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut file = file::Verified::open(path)?;
        let index = file.index()?;
        let LoadedIndex { step, random, environment, mut parts } = ciborium::from_reader(&index[..])
            .map_err(|error| file.damaged(format!("its index cannot be decoded: {error}")))?;
        for tensor in parts.values_mut().flat_map(Part::tensors_mut) {
            tensor.bytes = burn_backend::Bytes::from_bytes_vec(file.bytes(tensor.length)?);
            if !tensor.is_whole() {
                return Err(file.damaged("the length of a tensor's data does not match its shape"));
            }
        }
        let written_by = file.written_by().clone();
        file.finish()?;
        Ok(Self {
            step,
            random,
            parts,
            path: Some(path.to_owned()),
            written_by,
            taken_in: Some(environment),
            devices: BTreeSet::new(),
        })
    }

    /// The versions of this crate and of Burn that took the checkpoint.
    pub fn written_by(&self) -> &Versions {
        &self.written_by
    }

    /// The environment that the checkpoint was taken in: that of [`environment`](crate::environment()), with the devices of
    /// the modules in it, and without a seed.
    pub fn environment(&self) -> Environment {
        self.taken_in.clone().unwrap_or_else(|| environment::of(&self.devices))
    }

    fn note_devices<M: Module>(&mut self, module: &M) {
        self.devices.extend(module.devices().iter().map(DeviceKey::of));
    }

    /// Gives `module` the values saved under `name`. Its parameters stay on their devices and keep their ids. In a recording they
    /// are [named](crate::name_parameters).
    ///
    /// # Errors
    ///
    /// - [`Error::Missing`] when no module of that name is left,
    /// - [`Error::Ambiguous`] when two parameters of `module` have one path,
    /// - [`Error::Mismatch`] with every difference in paths, shapes, dtypes, ties, flags and what is trainable.
    pub fn module<M: Module>(&mut self, name: &str, module: M) -> Result<M, Error> {
        let Some(Part::Module(state)) = self.take(name, |part| matches!(part, Part::Module(_))) else {
            return Err(self.missing("module", name));
        };
        self.note_devices(&module);
        let module = state.restore(name, &self.to_string(), module)?;
        name_parameters(&module);
        Ok(module)
    }

    /// Gives `optimizer` the state saved under `name`, for the parameters of `module`.
    ///
    /// Burn loads such state into the default dtype of the default device, and leaves out what the optimizer has no use
    /// for; so it is read back and compared.
    ///
    /// # Errors
    ///
    /// - [`Error::Missing`] when no optimizer of that name is left,
    /// - [`Error::Value`] when Burn cannot make its record, and [`Error::NotOfTheModule`] when `optimizer` holds state of
    ///   parameters that `module` does not have,
    /// - [`Error::Mismatch`] with every path that `module` does not have, and every value that the optimizer does not
    ///   hold as it was saved: it is another optimizer.
    pub fn optimizer<O: Optimizer, M: Module>(&mut self, name: &str, optimizer: O, module: &M) -> Result<O, Error> {
        let Some(Part::Optimizer(state)) = self.take(name, |part| matches!(part, Part::Optimizer(_))) else {
            return Err(self.missing("optimizer", name));
        };
        state.restore(name, &self.to_string(), optimizer, module)
    }

    /// The scheduler's record saved under `name`, for `load_record`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] when no scheduler of that name is left, [`Error::Value`] when Burn cannot make its record.
    pub fn scheduler(&mut self, name: &str) -> Result<LrSchedulerRecord, Error> {
        let Some(Part::Scheduler(scalars)) = self.take(name, |part| matches!(part, Part::Scheduler(_))) else {
            return Err(self.missing("scheduler", name));
        };
        optimizer::scheduler_record(name, scalars)
    }

    /// The value saved under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] when no value of that name is left, [`Error::Value`] when it is not a `T`.
    pub fn value<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Error> {
        let Some(Part::Value(value)) = self.take(name, |part| matches!(part, Part::Value(_))) else {
            return Err(self.missing("value", name));
        };
        value::restore(name, &value)
    }

    fn take(&mut self, name: &str, is_wanted: impl Fn(&Part) -> bool) -> Option<Part> {
        if self.parts.get(name).is_some_and(is_wanted) { self.parts.remove(name) } else { None }
    }

    fn missing(&self, kind: &'static str, name: &str) -> Error {
        Error::Missing { checkpoint: self.to_string(), kind, name: name.to_owned(), present: self.names() }
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.parts.iter().map(|(name, part)| format!("the {} `{name}`", part.kind())).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }
}

/// `` the checkpoint of step 120 in `runs/digits/step-000000000120.checkpoint` ``, with the versions that took it where
/// they are not those of this program.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the checkpoint of step {}", self.step)?;
        self.path.as_ref().map_or(Ok(()), |path| write!(f, " in `{}`", path.display()))?;
        f.write_str(&self.written_by.note())
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}, with {}", self.names())
    }
}
