//! The parameters of an operation that are no tensors, as text.

use burn_ir::OperationIr;
use serde_json::{Map, Value};

/// `axis: 1, scalar: 0.5`: every field of the operation that is no tensor, in the order of its declaration.
pub(super) fn of(operation: &OperationIr) -> String {
    let mut fields = Vec::new();
    if let Ok(value) = serde_json::to_value(operation) {
        collect("", &value, &mut fields);
    }
    fields.join(", ")
}

fn collect(name: &str, value: &Value, fields: &mut Vec<String>) {
    match value {
        Value::Object(object) if is_tensor(object) => {}
        Value::Object(object) => match scalar(object) {
            Some(scalar) => fields.push(field(name, scalar)),
            None => object.iter().for_each(|(name, value)| collect(name, value, fields)),
        },
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.iter().for_each(|value| collect(name, value, fields));
        }
        // The dtype of a family of operations: that of its tensors.
        Value::String(_) if FAMILIES.contains(&name) => {}
        Value::Null => {}
        value => fields.push(field(name, value)),
    }
}

/// Variants of `OperationIr` that name a dtype beside the operation.
const FAMILIES: [&str; 3] = ["NumericFloat", "NumericInt", "Float"];

fn field(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name}: {text}"),
        value => format!("{name}: {value}"),
    }
}

fn is_tensor(object: &Map<String, Value>) -> bool {
    ["id", "shape", "status", "dtype"].iter().all(|key| object.contains_key(*key))
}

/// The number in `{"Float": 0.5}`.
fn scalar(object: &Map<String, Value>) -> Option<&Value> {
    let mut fields = object.iter();
    match (fields.next(), fields.next()) {
        (Some((kind, value)), None) if ["Float", "Int", "UInt", "Bool"].contains(&kind.as_str()) => {
            (value.is_number() || value.is_boolean()).then_some(value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use burn_backend::DType;
    use burn_ir::{NumericOperationIr, OperationIr, ScalarIr, ScalarOpIr, TensorId, TensorIr, TensorStatus};

    #[test]
    fn scalars_are_named_and_tensors_left_out() {
        let tensor =
            TensorIr { id: TensorId::new(7), shape: [2, 3].into(), status: TensorStatus::ReadOnly, dtype: DType::F32 };
        let scalar = ScalarOpIr { lhs: tensor.clone(), rhs: ScalarIr::Float(0.5), out: tensor };
        let operation = OperationIr::NumericFloat(DType::F32, NumericOperationIr::AddScalar(scalar));
        assert_eq!(of(&operation), "rhs: 0.5");
    }
}
