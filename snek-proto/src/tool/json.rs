//! The JSON of tool definitions, member by member, so that its order never depends on how
//! `serde_json` keeps maps.

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::{Param, ParamType, ToolDefinition};

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
