//! Tool definitions from Rust types, through `schemars`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::ToolDefinition;
use crate::error::BotError;

impl ToolDefinition {
    /// Creates a tool whose parameters are the fields of a struct: types, defaults and descriptions
    /// from `schemars`, sorted by name. Types outside the specification's table are possible, such
    /// as `number`. A unit has no parameters. `Call::parse` reads the arguments as the same type.
    ///
    /// ```
    /// use snek_proto::llm::tool::ToolDefinition;
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)] // `schemars = "1"` in `Cargo.toml`
    /// struct Roll {
    ///     /// How many sides each die has.
    ///     sides: u32,
    /// }
    ///
    /// let tool = ToolDefinition::from_type::<Roll>("roll", "Rolls a die.")?;
    /// assert_eq!(tool.params()[0].name(), "sides");
    /// # Ok::<(), snek_proto::error::BotError>(())
    /// ```
    ///
    /// # Errors
    /// [`BotError::ValidationError`] if the type is not a struct with named fields.
    pub fn from_type<T: JsonSchema>(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Result<Self, BotError> {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let schema = settings.into_generator().into_root_schema_for::<T>();
        let Value::Object(mut members) = schema.to_value() else {
            return Err(not_an_object::<T>());
        };
        match members.get("type").and_then(Value::as_str) {
            Some("object") => {}
            Some("null") => return Ok(Self::new(name, description)),
            _ => return Err(not_an_object::<T>()),
        }
        members.remove("title");
        members.remove("description");
        Self::from_schema(name, description, Value::Object(members))
    }
}

fn not_an_object<T: JsonSchema>() -> BotError {
    BotError::ValidationError {
        what: "parameters".into(),
        why: format!("{} is not a struct with named fields", T::schema_name()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Search {
        /// What to look for.
        query: String,
        #[serde(default = "ten")]
        limit: u8,
        near: Option<Point>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Point {
        x: f64,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Tree {
        children: Vec<Tree>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Forest {
        oldest: Tree,
    }

    fn ten() -> u8 {
        10
    }

    #[test]
    fn fields_become_parameters() {
        let tool = ToolDefinition::from_type::<Search>("search", "Searches.").unwrap();
        let value = tool.to_value();
        let parameters = &value["function"]["parameters"];
        assert_eq!(parameters["type"], "object");
        assert_eq!(parameters["required"], json!(["query"]));
        let query = json!({"type": "string", "description": "What to look for."});
        assert_eq!(parameters["properties"]["query"], query);
        assert_eq!(parameters["properties"]["limit"]["type"], "integer");
        assert_eq!(parameters["properties"]["limit"]["default"], 10);
        assert!(parameters.get("title").is_none() && parameters.get("$schema").is_none());
        assert!(!value.to_string().contains("$ref"), "{value}");
    }

    #[test]
    fn recursive_types_keep_their_definitions() {
        // The parameters are the root that `#` means.
        let tool = ToolDefinition::from_type::<Tree>("plant", "").unwrap();
        let parameters = &tool.to_value()["function"]["parameters"];
        let children = &parameters["properties"]["children"];
        assert_eq!(children["items"], json!({"$ref": "#"}));
        assert_eq!(parameters["required"], json!(["children"]));
        let tool = ToolDefinition::from_type::<Forest>("plant", "").unwrap();
        let parameters = &tool.to_value()["function"]["parameters"];
        assert!(parameters["$defs"]["Tree"].is_object(), "{parameters}");
    }

    #[test]
    fn the_unit_type_has_no_parameters_and_non_objects_are_refused() {
        let tool = ToolDefinition::from_type::<()>("now", "").unwrap();
        assert_eq!(tool, ToolDefinition::new("now", ""));
        for error in [
            ToolDefinition::from_type::<String>("x", "").unwrap_err(),
            ToolDefinition::from_type::<Vec<u8>>("x", "").unwrap_err(),
        ] {
            assert_eq!(error.name(), "ValidationError");
        }
    }
}
