//! Everything that a checkpoint holds, without the program that took it.

use super::item::{Content, Item, each_scalar};
use super::part::Part;
use super::{Checkpoint, value};
use ciborium::Value;

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
