//! The JSON of tool definitions, written member by member, so that the order does not depend on the
//! map type of `serde_json`.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Param, ParamType, ToolDefinition};
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
                let needed = required.iter().any(|other| other.as_str() == Some(&name));
                let mut param = Param::new(name, ParamType::default());
                param.schema = Some((schema, needed));
                param
            })
            .collect();
        tool.extra = members;
        Ok(tool)
    }
}

impl Serialize for ParamType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for ToolDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(2))?;
        out.serialize_entry("type", "function")?;
        out.serialize_entry("function", &Function(self))?;
        out.end()
    }
}

struct Function<'a>(&'a ToolDefinition);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(3))?;
        out.serialize_entry("name", &self.0.name)?;
        out.serialize_entry("description", &self.0.description)?;
        out.serialize_entry("parameters", &Parameters(self.0))?;
        out.end()
    }
}

struct Parameters<'a>(&'a ToolDefinition);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(3 + self.0.extra.len()))?;
        out.serialize_entry("type", "object")?;
        out.serialize_entry("properties", &Properties(&self.0.params))?;
        out.serialize_entry("required", &Required(&self.0.params))?;
        for (name, value) in &self.0.extra {
            out.serialize_entry(name, value)?;
        }
        out.end()
    }
}

struct Properties<'a>(&'a [Param]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|param| (&param.name, Property(param))))
    }
}

struct Property<'a>(&'a Param);

impl Serialize for Property<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Param {
            kind,
            description,
            default,
            items,
            schema,
            ..
        } = self.0;
        if let Some((schema, _)) = schema {
            return schema.serialize(serializer);
        }
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("type", kind)?;
        if let Some(description) = description {
            out.serialize_entry("description", description)?;
        }
        if let Some(items) = items.filter(|_| *kind == ParamType::Array) {
            out.serialize_entry("items", &Items(items))?;
        }
        if let Some(default) = default {
            out.serialize_entry("default", default)?;
        }
        out.end()
    }
}

struct Items(ParamType);

impl Serialize for Items {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("type", self.0)])
    }
}

struct Required<'a>(&'a [Param]);

impl Serialize for Required<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(None)?;
        for param in self.0.iter().filter(|param| param.is_required()) {
            out.serialize_element(&param.name)?;
        }
        out.end()
    }
}
