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

use serde_json::{Map, Value};

/// The type of a parameter: one of the six in the specification's table. Any other type, such as a
/// float, is [`String`](Self::String).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

    /// Returns the type's name in JSON Schema.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
        }
    }
}

/// One parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Param {
    name: String,
    kind: ParamType,
    description: Option<String>,
    default: Option<Value>,
    items: Option<ParamType>,
    /// Replaces everything above; and whether the parameter is required.
    schema: Option<(Value, bool)>,
}

impl Param {
    /// Creates a required parameter.
    pub fn new(name: impl Into<String>, kind: ParamType) -> Self {
        Self {
            name: name.into(),
            kind,
            description: None,
            default: None,
            items: None,
            schema: None,
        }
    }

    /// Makes the parameter optional. The default is written as this JSON value; `null`, `false`,
    /// `0` and empty values are defaults too.
    #[must_use]
    pub fn with_default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Adds a description for the model. The specification has none, so it is omitted by default.
    #[must_use]
    pub fn with_description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets the type of a list's items. The specification omits it, but some services refuse lists
    /// without it. Has no effect on other types.
    #[must_use]
    pub fn with_items(mut self, kind: ParamType) -> Self {
        self.items = Some(kind);
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the parameter is required: it has no default.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        match &self.schema {
            Some((_, required)) => *required,
            None => self.default.is_none(),
        }
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
