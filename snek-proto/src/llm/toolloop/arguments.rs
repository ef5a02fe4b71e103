//! Parses the arguments of a call.

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
