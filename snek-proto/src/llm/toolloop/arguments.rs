//! Arguments of a call: parsing them, and a canonical form to compare them.

use rpc_core::{Limits, json};
use serde_json::{Map, Value};

/// Parses the text of the arguments. An empty text means no arguments.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if json::first_byte(text).is_none() {
        return Ok(Map::new());
    }
    match json::parse(text, &Limits::default()) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// Returns compact JSON with all members sorted, whatever the order of the map.
pub(super) fn canonical(arguments: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_map(arguments, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => write_map(members, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_map(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    out.push('{');
    for (name, value) in sorted {
        // Quoted, so that no name can pass for another and its value.
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write(value, out);
        out.push(',');
    }
    out.push('}');
}
