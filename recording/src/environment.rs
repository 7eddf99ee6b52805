//! Where a program ran.

use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names and values of what can decide the bits of a program: versions, device, driver, settings, variables.
///
/// `Display` is a line for each, `name: value`, in the order of the names. A value has no line breaks.
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

    /// Sets an entry. A run of white space in `value` becomes a space, so that the entry is one line.
    pub fn set(&mut self, name: impl Into<String>, value: impl AsRef<str>) {
        let words: Vec<&str> = value.as_ref().split_whitespace().collect();
        self.entries.insert(name.into(), words.join(" "));
    }

    /// Adds the entries of another environment, whose values replace those of equal names.
    pub fn extend(&mut self, other: &Self) {
        self.entries.extend(other.entries.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// The value of an entry.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(String::as_str)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first 16 bytes of the BLAKE3 hash of the text that `Display` writes, as 32 hexadecimal digits: equal
    /// environments have equal digests.
    pub fn digest(&self) -> String {
        let hash = blake3::hash(self.to_string().as_bytes());
        hash.as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the lines that `Display` writes, up to an empty one; what follows that is ignored.
    ///
    /// `None` where a line has no colon.
    pub fn parse(text: &str) -> Option<Self> {
        let mut environment = Self::new();
        for line in text.lines().take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
            environment.set(name, value);
        }
        Some(environment)
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

impl<N: Into<String>, V: AsRef<str>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let mut environment = Self::new();
        entries.into_iter().for_each(|(name, value)| environment.set(name, value));
        environment
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(name, value)| match value {
            "" => writeln!(f, "{name}:"),
            value => writeln!(f, "{name}: {value}"),
        })
    }
}

impl fmt::Display for EnvironmentDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} against {}", self.name, value(&self.first), value(&self.second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_lines_in_the_order_of_their_names() {
        let environment =
            Environment::from_iter([("driver", "Mesa 22.3.6\n"), ("burn", " 0.22.1"), ("seed", "8\t 12")]);
        assert_eq!(environment.to_string(), "burn: 0.22.1\ndriver: Mesa 22.3.6\nseed: 8 12\n");
        assert_eq!(environment.get("seed"), Some("8 12"));
    }

    #[test]
    fn differences_are_told_in_words() {
        let first = Environment::from_iter([("driver", "22.3.6"), ("burn", "0.22.1"), ("seed", "812")]);
        let second = Environment::from_iter([("driver", "25.0.7"), ("burn", "0.22.1"), ("os", "Debian")]);
        let told: Vec<String> = first.differences(&second).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["driver: 22.3.6 against 25.0.7", "os: nothing against Debian", "seed: 812 against nothing"]);
        assert!(first.differences(&first).is_empty());
    }

    #[test]
    fn the_digest_is_of_the_text() {
        let first = Environment::from_iter([("driver", "22.3.6"), ("burn", "0.22.1")]);
        assert_eq!(first.digest(), Environment::from_iter([("burn", "0.22.1"), ("driver", "22.3.6")]).digest());
        let hash = blake3::hash(b"burn: 0.22.1\ndriver: 22.3.6\n").to_hex();
        assert_eq!(first.digest(), hash[..32]);
        assert_ne!(first.digest(), Environment::from_iter([("burn", "0.22.1"), ("driver", "22.3.7")]).digest());
    }

    #[test]
    fn what_was_written_is_read() {
        let environment = Environment::from_iter([("driver", "a: b"), ("features", ""), ("variable X", "1")]);
        assert_eq!(environment.to_string(), "driver: a: b\nfeatures:\nvariable X: 1\n");
        let text = format!("{environment}\ndigest {}\n", environment.digest());
        assert_eq!(Environment::parse(&text), Some(environment));
        assert_eq!(Environment::parse("driver\n"), None);
    }

    #[test]
    fn an_extension_replaces_entries() {
        let mut extended = Environment::from_iter([("driver", "22.3.6"), ("burn", "0.22.1")]);
        extended.extend(&Environment::from_iter([("driver", "25.0.7"), ("os", "Debian")]));
        assert_eq!(extended, Environment::from_iter([("driver", "25.0.7"), ("burn", "0.22.1"), ("os", "Debian")]));
    }
}
