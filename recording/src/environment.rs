//! Where a program ran.

use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names and values of what can decide the bits of a program: versions, device, driver, settings, variables.
///
/// `Display` is a line for each, `name: value`, in the order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment {
    entries: BTreeMap<String, String>,
}

/// Something in which two environments differ. `Display` is `driver: 22.3.6 against 25.0.7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentDifference {
    /// What differs.
    pub name: String,
    /// Its value in the first environment, if it has one.
    pub first: Option<String>,
    /// Its value in the second environment.
    pub second: Option<String>,
}

impl Environment {
    /// Without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an entry.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.entries.insert(name.into(), value.into());
    }

    /// The value of an entry.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(String::as_str)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What differs, by name.
    pub fn differences(&self, other: &Self) -> Vec<EnvironmentDifference> {
        let names: BTreeSet<&String> = self.entries.keys().chain(other.entries.keys()).collect();
        let both = names.into_iter().map(|name| (name, self.entries.get(name), other.entries.get(name)));
        both.filter(|(_, first, second)| first != second)
            .map(|(name, first, second)| EnvironmentDifference {
                name: name.clone(),
                first: first.cloned(),
                second: second.cloned(),
            })
            .collect()
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, value)| writeln!(f, "{name}: {value}"))
    }
}

impl fmt::Display for EnvironmentDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} against {}", self.name, value(&self.first), value(&self.second))
    }
}
