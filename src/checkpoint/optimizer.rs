//! An optimizer's state, by the paths of the parameters it belongs to.
//!
//! Burn's record names state by `ParamId`, which is random, and lists it in the order of a hash map. Its contents are
//! reachable through its own file format only, so records pass through that on their way.

use super::error::{Difference, Error, Mismatch};
use super::item::{Content, each_scalar};
use super::module::identities;
use super::scalar::{Number, Scalars};
use super::tensor::Stored;
use crate::panic;
use burn_core::module::Module;
use burn_optim::lr_scheduler::LrSchedulerRecord;
use burn_optim::{LBFGS, ModuleOptimizer, OptimizerRecord};
use burn_pack::{Reader, Tensor, Writer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The optimizers whose state can be saved: Burn's two types.
pub trait Optimizer: Sized + sealed::Sealed {
    /// The state.
    fn to_record(&self) -> OptimizerRecord;
    /// The optimizer with that state.
    fn load_record(self, record: OptimizerRecord) -> Self;
}

mod sealed {
    /// Keeps the set of optimizers closed.
    pub trait Sealed {}
}

impl sealed::Sealed for ModuleOptimizer {}
impl Optimizer for ModuleOptimizer {
    fn to_record(&self) -> OptimizerRecord {
        self.to_record()
    }
    fn load_record(self, record: OptimizerRecord) -> Self {
        self.load_record(record)
    }
}

impl sealed::Sealed for LBFGS {}
impl Optimizer for LBFGS {
    fn to_record(&self) -> OptimizerRecord {
        self.to_record()
    }
    fn load_record(self, record: OptimizerRecord) -> Self {
        self.load_record(record)
    }
}

/// An optimizer's state.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct OptimizerState {
    /// By the parameter's path: the first one, where parameters are tied.
    parameters: BTreeMap<String, ParameterState>,
    /// What belongs to no single parameter.
    whole: Fields,
}

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
struct ParameterState {
    /// The path under which the optimizer met the parameter; it picks the parameter's group by it.
    met: Option<String>,
    fields: Fields,
}

#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
struct Fields {
    tensors: BTreeMap<String, Stored>,
    scalars: Scalars,
}

fn unpacked<T, E: ToString>(name: &str, result: Result<T, E>) -> Result<T, Error> {
    result.map_err(|error| Error::Value { name: name.to_owned(), action: "saved", reason: error.to_string() })
}

fn packed<T, E: ToString>(name: &str, result: Result<T, E>) -> Result<T, Error> {
    result.map_err(|error| Error::Value { name: name.to_owned(), action: "restored", reason: error.to_string() })
}

/// Runs a method of Burn's that panics where it should return an error, and returns the panic's text.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    /// What Burn's plain reads put before the error, with a remedy that is not for our callers.
    const READ: &str = "Error while reading data: use `try_into_data` instead to catch the error at runtime: ";
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = panic::text(&*payload).unwrap_or("Burn panicked without a text");
        text.strip_prefix(READ).unwrap_or(text).to_owned()
    })
}

/// The scalars of a scheduler, which has no other state.
pub(super) fn scheduler_scalars(name: &str, record: LrSchedulerRecord) -> Result<Scalars, Error> {
    let reader = unpacked(name, Reader::from_bytes(unpacked(name, record.into_bytes())?))?;
    Ok(reader.scalars().iter().map(|(key, value)| (key.clone(), Number::from(*value))).collect())
}

pub(super) fn scheduler_record(name: &str, scalars: Scalars) -> Result<LrSchedulerRecord, Error> {
    let writer = Writer::new(Vec::new());
    let writer = scalars.into_iter().fold(writer, |writer, (key, value)| writer.with_scalar(&key, value.into()));
    packed(name, LrSchedulerRecord::from_bytes(packed(name, writer.into_bytes())?))
}

impl OptimizerState {
    /// The state that `optimizer` holds of the parameters of `module`.
    pub(super) fn read<O: Optimizer, M: Module>(name: &str, optimizer: &O, module: &M) -> Result<Self, Error> {
        let mut paths = HashMap::new();
        for (id, path) in identities(module) {
            paths.entry(id.val()).or_insert(path);
        }
        // Burn reads the tensors of the state here, and panics where an operation left an error on one.
        let record = caught(|| optimizer.to_record()).map_err(|reason| Error::Unreadable {
            name: name.to_owned(),
            path: None,
            reason,
        })?;
        let reader = unpacked(name, Reader::from_bytes(unpacked(name, record.into_bytes())?))?;
        let met = reader.metadata().clone();
        let mut state = Self::default();
        for (key, value) in reader.scalars() {
            let (fields, field) = state.fields(name, key, &paths, &met)?;
            fields.scalars.insert(field.to_owned(), Number::from(*value));
        }
        for tensor in unpacked(name, reader.into_tensors())? {
            let (key, dtype, shape, _, bytes) = unpacked(name, tensor.into_parts())?;
            let (fields, field) = state.fields(name, &key, &paths, &met)?;
            let stored = Stored { dtype, shape: shape.to_vec(), length: bytes.len() as u64, bytes };
            fields.tensors.insert(field.to_owned(), stored);
        }
        Ok(state)
    }

    /// Where to put what a record names `key`: `"{id}.{field}"`, or `"{field}"` where it belongs to no parameter.
    fn fields<'a>(
        &mut self,
        name: &str,
        key: &'a str,
        paths: &HashMap<u64, String>,
        met: &BTreeMap<String, String>,
    ) -> Result<(&mut Fields, &'a str), Error> {
        let of_parameter = key.split_once('.').and_then(|(id, field)| Some((id, id.parse::<u64>().ok()?, field)));
        let Some((id, value, field)) = of_parameter else {
            return Ok((&mut self.whole, key));
        };
        let met = met.get(id).cloned();
        match paths.get(&value) {
            Some(path) => {
                let state = self.parameters.entry(path.clone()).or_default();
                state.met = met;
                Ok((&mut state.fields, field))
            }
            None => Err(Error::NotOfTheModule { name: name.to_owned(), path: met.unwrap_or_default() }),
        }
    }

    /// Gives `optimizer` this state, for the parameters of `module`.
    pub(super) fn restore<O: Optimizer, M: Module>(
        self,
        name: &str,
        checkpoint: &str,
        optimizer: O,
        module: &M,
    ) -> Result<O, Error> {
        let mismatch =
            |mismatches| Err(Error::Mismatch { name: name.to_owned(), checkpoint: checkpoint.to_owned(), mismatches });
        let mut ids = HashMap::new();
        for (id, path) in identities(module) {
            ids.insert(path, id.val());
        }
        let absent = self.parameters.keys().filter(|path| !ids.contains_key(*path));
        let absent = absent.map(|path| Mismatch { path: path.clone(), difference: Difference::NotThere });
        let absent: Vec<_> = absent.collect();
        if !absent.is_empty() {
            return mismatch(absent);
        }
        let record = self.record(name, &ids)?;
        // Burn panics over the record of an optimizer of the other type.
        let optimizer = packed(name, caught(|| optimizer.load_record(record)))?;
        // Burn leaves out in silence what the optimizer has no use for, and converts other dtypes than the default.
        let loaded = Self::read(name, &optimizer, module)?;
        let differences = self.differences(&loaded);
        if differences.is_empty() { Ok(optimizer) } else { mismatch(differences) }
    }

    fn record(&self, name: &str, ids: &HashMap<String, u64>) -> Result<OptimizerRecord, Error> {
        let (mut tensors, mut scalars, mut met) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |id: Option<u64>, fields: &Fields| {
            let named = |field: &str| id.map_or_else(|| field.to_owned(), |id| format!("{id}.{field}"));
            for (field, stored) in &fields.tensors {
                tensors.push(Tensor::new(named(field), stored.dtype, stored.shape(), id, stored.bytes.clone()));
            }
            scalars.extend(fields.scalars.iter().map(|(field, value)| (named(field), *value)));
        };
        add(None, &self.whole);
        for (path, state) in &self.parameters {
            add(Some(ids[path]), &state.fields);
            met.extend(state.met.as_ref().map(|met| (ids[path].to_string(), met)));
        }
        let mut writer = Writer::new(tensors);
        for (key, value) in scalars {
            writer = writer.with_scalar(&key, value.into());
        }
        for (key, value) in met {
            writer = writer.with_metadata(&key, value);
        }
        packed(name, OptimizerRecord::from_bytes(packed(name, writer.into_bytes())?))
    }

    fn differences(&self, loaded: &Self) -> Vec<Mismatch> {
        let mut differences = Vec::new();
        let mut compare = |path: &str, saved: &Fields, loaded: &Fields| {
            let named = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}: {field}") };
            let mut differ = |field: &str, difference| {
                differences.push(Mismatch { path: named(field), difference });
            };
            for (field, saved) in &saved.tensors {
                match loaded.tensors.get(field) {
                    None => differ(field, Difference::NotThere),
                    Some(loaded) if loaded.dtype != saved.dtype => {
                        differ(field, Difference::DType { saved: saved.dtype, present: loaded.dtype });
                    }
                    Some(loaded) if loaded != saved => differ(field, Difference::Value),
                    Some(_) => {}
                }
            }
            for (field, saved) in &saved.scalars {
                match loaded.scalars.get(field) {
                    None => differ(field, Difference::NotThere),
                    Some(loaded) if loaded != saved => differ(field, Difference::Value),
                    Some(_) => {}
                }
            }
            let tensors = loaded.tensors.keys().filter(|field| !saved.tensors.contains_key(*field));
            let scalars = loaded.scalars.keys().filter(|field| !saved.scalars.contains_key(*field));
            tensors.chain(scalars).for_each(|field| differ(field, Difference::NotSaved));
        };
        compare("", &self.whole, &loaded.whole);
        let none = ParameterState::default();
        for (path, saved) in &self.parameters {
            let loaded = loaded.parameters.get(path).unwrap_or(&none);
            compare(path, &saved.fields, &loaded.fields);
        }
        differences
    }

    /// Lists all of it, by the parameter's path and the field.
    pub(super) fn each(&self, add: &mut impl FnMut(String, Content)) {
        let mut each = |before: &str, fields: &Fields| {
            for (field, stored) in &fields.tensors {
                add(format!("{before}{field}"), Content::Tensor(stored.clone().into_data()));
            }
            each_scalar(before, &fields.scalars, add);
        };
        each("", &self.whole);
        for (path, state) in &self.parameters {
            each(&format!("{path}: "), &state.fields);
        }
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = &Stored> {
        let parameters = self.parameters.values().flat_map(|state| state.fields.tensors.values());
        self.whole.tensors.values().chain(parameters)
    }

    pub(super) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Stored> {
        let parameters = self.parameters.values_mut().flat_map(|state| state.fields.tensors.values_mut());
        self.whole.tensors.values_mut().chain(parameters)
    }
}
