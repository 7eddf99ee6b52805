//! Everything that a checkpoint holds, without the program that took it.

use super::scalar::{Number, Scalars};
use super::{Checkpoint, Part, module, value};
use burn_backend::TensorData;
use ciborium::Value;

/// Something in a checkpoint: a tensor, a flag, a number of an optimizer, a part of a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// The kind of the part that it is in: `module`, `optimizer`, `scheduler` or `value`; `checkpoint` for what belongs to no
    /// part.
    pub kind: &'static str,
    /// The part's name; empty for what belongs to no part.
    pub part: String,
    /// Where in the part it is: `conv1.weight` in a module, `conv1.weight: moment_1.moment` in an optimizer, `losses[12]` in a
    /// value.
    pub path: String,
    /// What it is.
    pub content: Content,
}

/// What an [`Item`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A tensor with its values.
    Tensor(TensorData),
    /// Anything else, as text. Two numbers have one text if and only if they have the same bits, but for a NaN's payload.
    Text(String),
}

impl Checkpoint {
    /// Everything that is left in the checkpoint: step and random state, then each part in the order of names.
    ///
    /// No module and no device is needed: for tools that look into files. To go on with a training, restore the parts by
    /// [`module`](Self::module) and the like.
    pub fn contents(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let random = blake3::hash(&value::encoded(&self.random)).to_hex();
        for (path, text) in [("step", self.step.to_string()), ("random state", format!("BLAKE3 {}", &random[..16]))] {
            let content = Content::Text(text);
            items.push(Item { kind: "checkpoint", part: String::new(), path: path.to_owned(), content });
        }
        for (name, part) in &self.parts {
            let mut add = |path: String, content: Content| {
                items.push(Item { kind: part.kind(), part: name.clone(), path, content });
            };
            match part {
                Part::Module(state) => state.each(&mut add),
                Part::Optimizer(state) => state.each(&mut add),
                Part::Scheduler(scalars) => each_scalar("", scalars, &mut add),
                Part::Value(value) => each_leaf(String::new(), value, &mut add),
            }
        }
        items
    }
}

impl module::Content {
    /// What it is in a list of contents.
    pub(super) fn listed(&self) -> Content {
        match self {
            Self::Tensor { stored, .. } => Content::Tensor(stored.clone().into_data()),
            Self::Uninitialised { shape } => Content::Text(format!("not initialised, {shape:?}")),
            Self::Flag(set) => Content::Text(set.to_string()),
        }
    }
}

/// Lists scalars, whose names follow `before`.
pub(super) fn each_scalar(before: &str, scalars: &Scalars, add: &mut impl FnMut(String, Content)) {
    for (field, number) in scalars {
        let text = match number {
            Number::Int(value) => value.to_string(),
            Number::UInt(value) => value.to_string(),
            Number::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
            Number::Bool(value) => value.to_string(),
        };
        add(format!("{before}{field}"), Content::Text(text));
    }
}

/// Lists the leaves of a value: `[3]` of a list, `.name` of a map.
fn each_leaf(path: String, value: &Value, add: &mut impl FnMut(String, Content)) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, item)| each_leaf(format!("{path}[{index}]"), item, add));
        }
        Value::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                each_leaf(format!("{path}{dot}{}", text(key)), value, add);
            }
        }
        leaf => add(path, Content::Text(text(leaf))),
    }
}

fn text(leaf: &Value) -> String {
    match leaf {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => i128::from(*number).to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Null => "none".to_owned(),
        other => format!("{other:?}"),
    }
}
