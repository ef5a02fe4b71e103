//! Tools as a language model is told about them (Snek specification, section 12).
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

/// The type of a parameter: the specification's table has these six. What has no place there, a
/// float for example, is [`String`](Self::String).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParamType {
    /// A text, or anything else.
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
    /// The type for a Python annotation: `str`, `int`, `bool`, `list`, `dict` and `None` exactly;
    /// `string` for every other, `float` and `list[str]` too.
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

    /// The word of JSON Schema.
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
    /// Stands for everything above, and whether it is required.
    schema: Option<(Value, bool)>,
}

impl Param {
    /// A parameter that is required.
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

    /// Makes it optional. The default is written as the JSON value that it is; `null`, `false`,
    /// `0` and empty ones are defaults too.
    #[must_use]
    pub fn with_default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Adds a description for the model. The specification has none; the default is to leave it
    /// out.
    #[must_use]
    pub fn with_description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Says what a list holds. The specification leaves it out, but some services refuse lists
    /// without it. Has no effect on other types.
    #[must_use]
    pub fn with_items(mut self, kind: ParamType) -> Self {
        self.items = Some(kind);
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a call must give it: it has no default.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        match &self.schema {
            Some((_, required)) => *required,
            None => self.default.is_none(),
        }
    }
}

/// A tool. Serializes as the specification's function definition, with properties in the order of
/// the parameters.
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
    /// A tool without parameters. The description may be empty.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            params: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Adds a parameter, or replaces the one of this name in its place.
    ///
    /// `self` and names that start with `*` (Python's collecting parameters) are left out.
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

    /// The name that a call uses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does, for the model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The parameters in order.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The definition as a value. Serializing `self` keeps the order of the parameters; a
    /// [`Value`] sorts them by name, unless `serde_json` is told otherwise.
    #[must_use]
    pub fn to_value(&self) -> Value {
        // Strings as keys and JSON as values cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether a method of this name is never offered as a tool: it starts with `_`, or is
    /// `serialize` or `handle`.
    #[must_use]
    pub fn is_excluded(name: &str) -> bool {
        name.starts_with('_') || matches!(name, "serialize" | "handle")
    }
}
