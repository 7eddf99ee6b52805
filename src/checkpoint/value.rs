//! A program's own values. CBOR keeps every bit of a number, which decimal text need not.

use super::error::Error;
use ciborium::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Turns a value into one that is written the same way whatever the order of its maps.
pub(super) fn save<T: Serialize + ?Sized>(name: &str, value: &T) -> Result<Value, Error> {
    let failed = |reason: String| Error::Value { name: name.to_owned(), action: "saved", reason };
    let mut value = Value::serialized(value).map_err(|error| failed(error.to_string()))?;
    sort(&mut value);
    Ok(value)
}

pub(super) fn restore<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, Error> {
    let failed = |reason: String| Error::Value { name: name.to_owned(), action: "restored", reason };
    value.deserialized().map_err(|error| failed(error.to_string()))
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Tag(_, inner) => sort(inner),
        Value::Map(entries) => {
            entries.iter_mut().for_each(|(key, value)| [key, value].into_iter().for_each(sort));
            entries.sort_by_cached_key(|(key, _)| encoded(key));
        }
        _ => {}
    }
}

/// The bytes of `value` in a file.
pub(super) fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).expect("memory takes every value that has become CBOR");
    bytes
}
