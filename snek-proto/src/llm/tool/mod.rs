//! Definitions of tools for a language model (Snek specification, section 12).
//!
//! ```
//! use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};
//!
//! let tool = ToolDefinition::new("search", "Searches the web.")
//!     .param(Param::new("query", ParamType::String))
//!     .param(Param::new("limit", ParamType::Integer).with_default(10));
//! assert_eq!(
//!     serde_json::to_string(&tool)?,
//!     concat!(
//!         r#"{"type":"function","function":{"name":"search","description":"Searches the web.","#,
//!         r#""parameters":{"type":"object","properties":{"query":{"type":"string"},"#,
//!         r#""limit":{"type":"integer","default":10}},"required":["query"]}}}"#
//!     )
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```

mod json;
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Map, Value};

/// The type of a parameter: one of the six in the specification's table. Any other type, such as a
/// float, is [`String`](Self::String).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ParamType {
    /// A text, or any other type.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
    /// `null`.
    Null,
}

impl ParamType {
    /// Returns the type of a Python annotation: `str`, `int`, `bool`, `list`, `dict` or `None`
    /// exactly; every other one is a `string`, including `float` and `list[str]`.
    #[must_use]
    pub fn from_python(name: &str) -> Self {
        match name {
            "int" => Self::Integer,
            "bool" => Self::Boolean,
            "list" => Self::Array,
            "dict" => Self::Object,
            "None" => Self::Null,
            _ => Self::String,
        }
    }
}

/// One parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Param {
    name: String,
    required: bool,
    property: Property,
}

/// The schema of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Property {
    Own(Own),
    /// From elsewhere, passed on unchanged.
    Foreign(Value),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Own {
    #[serde(rename = "type")]
    kind: ParamType,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Items {
    #[serde(rename = "type")]
    kind: ParamType,
}

impl Param {
    /// Creates a required parameter.
    pub fn new(name: impl Into<String>, kind: ParamType) -> Self {
        Self {
            name: name.into(),
            required: true,
            property: Property::Own(Own {
                kind,
                ..Own::default()
            }),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Own)) -> Self {
        if let Property::Own(own) = &mut self.property {
            change(own);
        }
        self
    }

    /// Makes the parameter optional. The default is written as this JSON value; `null`, `false`,
    /// `0` and empty values are defaults too.
    #[must_use]
    pub fn with_default(mut self, value: impl Into<Value>) -> Self {
        self.required = false;
        self.with(|own| own.default = Some(value.into()))
    }

    /// Adds a description for the model. The specification has none, so it is omitted by default.
    #[must_use]
    pub fn with_description(self, text: impl Into<String>) -> Self {
        self.with(|own| own.description = Some(text.into()))
    }

    /// Sets the type of a list's items. The specification omits it, but some services refuse lists
    /// without it. Has no effect on other types.
    #[must_use]
    pub fn with_items(self, kind: ParamType) -> Self {
        self.with(|own| own.items = (own.kind == ParamType::Array).then_some(Items { kind }))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the parameter is required: it has no default.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.required
    }
}

/// The definition of a tool. Serializes as the specification's function definition, with properties
/// in the order of the parameters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    name: String,
    description: String,
    params: Vec<Param>,
    /// Further members of the parameters' schema.
    extra: Map<String, Value>,
}

impl ToolDefinition {
    /// Creates a tool without parameters. The description may be empty.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            params: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Adds a parameter, or replaces the one with this name in place.
    ///
    /// `self` and names that start with `*` (Python's collecting parameters) are ignored.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        if param.name == "self" || param.name.starts_with('*') {
            return self;
        }
        match self.params.iter_mut().find(|old| old.name == param.name) {
            Some(old) => *old = param,
            None => self.params.push(param),
        }
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description for the model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the parameters in order.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Returns the definition as a value. Serializing `self` keeps the order of the parameters; a
    /// [`Value`] sorts them by name, unless `serde_json` preserves their order.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Strings as keys and JSON as values cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns whether a method of this name is never offered as a tool: it starts with `_`, or is
    /// `serialize` or `handle`.
    #[must_use]
    pub fn is_excluded(name: &str) -> bool {
        name.starts_with('_') || matches!(name, "serialize" | "handle")
    }
}
