//! The JSON of tool definitions, written member by member, so that the order does not depend on the
//! map type of `serde_json`.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Param, Property, ToolDefinition};
use crate::error::BotError;

impl ToolDefinition {
    /// Creates a tool whose parameters are described by a JSON Schema, such as a tool from another
    /// source. Each property is passed on unchanged, in the order of the map; so are the schema's
    /// other members. `null` means no parameters.
    ///
    /// # Errors
    /// [`BotError::ValidationError`] if the schema does not describe an object.
    pub fn from_schema(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
    ) -> Result<Self, BotError> {
        let wrong = |why: &str| BotError::ValidationError {
            what: "parameters".into(),
            why: why.to_owned(),
        };
        let mut tool = Self::new(name, description);
        let mut members = match schema {
            Value::Object(members) => members,
            Value::Null => return Ok(tool),
            _ => return Err(wrong("the schema is not an object")),
        };
        match members.remove("type") {
            None => {}
            Some(Value::String(kind)) if kind == "object" => {}
            Some(_) => return Err(wrong("the schema's type is not \"object\"")),
        }
        let required = match members.remove("required") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(names)) => names,
            Some(_) => return Err(wrong("the schema's \"required\" is not a list")),
        };
        let properties = match members.remove("properties") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(properties)) => properties,
            Some(_) => return Err(wrong("the schema's \"properties\" is not an object")),
        };
        tool.params = properties
            .into_iter()
            .map(|(name, schema)| {
                let required = required.iter().any(|other| other.as_str() == Some(&name));
                let property = Property::Foreign(schema);
                Param {
                    name,
                    required,
                    property,
                }
            })
            .collect();
        tool.extra = members;
        Ok(tool)
    }
}

impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let required = self.params.iter().filter(|param| param.required);
        let function = Function {
            name: &self.name,
            description: &self.description,
            parameters: Parameters {
                kind: "object",
                properties: Properties(&self.params),
                required: required.map(Param::name).collect(),
                extra: &self.extra,
            },
        };
        let mut out = serializer.serialize_map(Some(2))?;
        out.serialize_entry("type", "function")?;
        out.serialize_entry("function", &function)?;
        out.end()
    }
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Parameters<'a>,
}

#[derive(Serialize)]
struct Parameters<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Properties<'a>,
    required: Vec<&'a str>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

struct Properties<'a>(&'a [Param]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|param| (&param.name, &param.property)))
    }
}
